"""Who is exposed: what was read of people with few or many ratings, and of items that few or many rated."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from goodfence.attack.outcomes import Outcomes
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Estimate, share
from goodfence.errors import DataError

SMALLEST = 10
"""A group of fewer people is merged with the next: its figures would be about somebody."""
_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some of those attacked, and what was read of them."""

    least: int
    """From so many ratings."""
    below: int | None
    """To fewer than this; None for the last group. A round number: who has most ratings is not told."""
    n_people: int
    """How many people these figures are about."""
    n_hidden: int
    """How many hidden ratings."""
    read: Estimate
    """The share of these that was read."""
    read_without: Estimate
    """The same in the world without the target."""
    guess: Estimate
    """The share that guessing the item's mean gives."""


def by_activity(report: AttackReport) -> tuple[Group, ...]:
    """Return what was read of people with few ratings and with many; nothing below ten people.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = gf.KNNAttack(known=8).run(films, gf.KNN(k=20), targets=100, rng=7)
    >>> groups = by_activity(report)
    >>> sum(group.n_people for group in groups), min(group.n_people for group in groups) >= 10
    (100, True)
    """
    found = _outcomes(report)
    n_ratings = np.diff(report.ratings.csr.indptr)[report.rows]
    return _grouped(n_ratings[found.owners], found)


def by_popularity(report: AttackReport) -> tuple[Group, ...]:
    """Return what was read of ratings of rare items and of popular ones; nothing below ten people.

    A person is in every group of which she rated an item.
    """
    found = _outcomes(report)
    csr = report.ratings.csr
    n_raters = np.bincount(csr.indices, minlength=csr.shape[1])
    return _grouped(n_raters[found.columns], found)


def _outcomes(report: AttackReport) -> Outcomes:
    if report.outcomes is None:
        raise DataError("the report must know what became of each hidden rating: run the attack")
    return report.outcomes


def _grouped(sizes: npt.NDArray[Any], found: Outcomes) -> tuple[Group, ...]:
    edges = _round_numbers(int(sizes.max(initial=1)))
    wanted = [(sizes >= low) & (sizes < high) for low, high in pairwise(edges)]
    spans = _merged([_n_people(found, cells) for cells in wanted], wanted, found)
    groups = []
    for first, last in spans:
        cells = np.logical_or.reduce(wanted[first:last])
        below = None if last == len(wanted) else edges[last]
        groups.append(_group(edges[first], below, cells, found))
    return tuple(groups)


def _round_numbers(highest: int) -> list[int]:
    """Return 1, 2, 5, 10, ... until one is above `highest`."""
    numbers = [1]
    while numbers[-1] <= highest:
        power, step = divmod(len(numbers), len(_STEPS))
        numbers.append(_STEPS[step] * 10**power)
    return numbers


def _merged(
    n_people: list[int], cells: list[npt.NDArray[np.bool_]], found: Outcomes
) -> list[tuple[int, int]]:
    """Return spans of neighbouring groups, each of enough people; none where all together are too few."""
    spans: list[tuple[int, int]] = []
    first = 0
    for last in range(1, len(n_people) + 1):
        if _n_people(found, np.logical_or.reduce(cells[first:last])) >= SMALLEST:
            spans.append((first, last))
            first = last
    if spans and first < len(n_people):
        spans[-1] = spans[-1][0], len(n_people)
    return spans


def _n_people(found: Outcomes, cells: npt.NDArray[np.bool_]) -> int:
    return len(np.unique(found.owners[cells]))


def _group(least: int, below: int | None, cells: npt.NDArray[np.bool_], found: Outcomes) -> Group:
    _, owners = np.unique(found.owners[cells], return_inverse=True)
    hidden = np.bincount(owners).astype(np.float64)

    def shared(happened: npt.NDArray[np.bool_]) -> Estimate:
        return share(np.bincount(owners, weights=happened[cells]).astype(np.float64), hidden)

    return Group(
        least=least,
        below=below,
        n_people=len(hidden),
        n_hidden=int(hidden.sum()),
        read=shared(found.read),
        read_without=shared(found.read_without),
        guess=shared(found.guessed),
    )
