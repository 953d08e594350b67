"""What REPRODUCTION.md adds to the figures: other interpretations of the paper, other data, ratings held out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from goodfence.attack.knn_attack import KNNAttack
from goodfence.data.ratings import Ratings
from goodfence.data.splits import holdout
from goodfence.papers.reproduction.claims import Counted, against_others, judged
from goodfence.papers.reproduction.definition import (
    BUNDLED,
    DEFAULT,
    PRIVATE,
    Definition,
    Interpretation,
    Sources,
    definition,
)
from goodfence.papers.reproduction.runs import Experiment, Sums, Unattacked, count
from goodfence.parallel import Advance, bar

DATA_SETS = ("ml-100k", "ml-1m", "douban-movie", BUNDLED)
_KNOWN, _BETA = 8, 7


class Size(NamedTuple):
    """How much of everything is run, from which seed, and where finished points are kept."""

    n_seeds: int
    n_targets: int
    rng: int
    keep: Path | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Extras:
    """What the report adds to the figures."""

    interpretations: tuple[Compared, ...]
    data_sets: Mapping[str, Compared]
    held_out: Mapping[str, Sums]
    all_asking: Mapping[str, float]
    """For kNN and PPNS: the recovery when every fake asks, and the most frequent answer is taken."""
    facts: Mapping[str, int]
    """The fewest and the most ratings of a film and of a user."""


def gather(sources: Sources, size: Size) -> Extras:
    """Run everything that the report adds."""
    sets = {name: found for name in DATA_SETS if (found := sources.ratings(name)) is not None}
    ratings = sets[DATA_SETS[0]]
    with bar("interpretations and data", len(INTERPRETATIONS) + 2 * len(sets) + 2) as advance:
        interpretations = tuple(compare_interpretations(ratings, size, advance))
        data_sets, held_out = {}, {}
        for name, each in sets.items():
            data_sets[name] = compare(each, name, DEFAULT, size)
            advance(1)
            held_out[name] = hold_out(each, size)
            advance(1)
        all_asking = {}
        for series in ("kNN", "PPNS"):
            all_asking[series] = _all_asking(ratings, series, size)
            advance(1)
    return Extras(
        interpretations=interpretations,
        data_sets=data_sets,
        held_out=held_out,
        all_asking=all_asking,
        facts=_facts(ratings),
    )


def _all_asking(ratings: Ratings, series: str, size: Size) -> float:
    attacked = definition("attack-beta").mechanism(series, _BETA)
    attack = KNNAttack(known=_KNOWN, ask="all")
    seed = [size.rng, 0]
    report = attack.run(ratings, attacked, targets=size.n_targets, rng=seed, progress=False)
    return float(report.raw_recovery)


def _facts(ratings: Ratings) -> dict[str, int]:
    by_item = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
    by_user = np.diff(ratings.csr.indptr)
    return {
        "film_least": int(by_item.min()),
        "film_most": int(by_item.max()),
        "user_least": int(by_user.min()),
        "user_most": int(by_user.max()),
        "films_outside": int(((by_item < 20) | (by_item > 250)).sum()),
        "films": ratings.shape[1],
    }


FRACTION = 0.2
BETA = 4
"""The partitions of PPNS, as in the last point of `user-movielens`."""


def hold_out(ratings: Ratings, size: Size) -> Sums:
    """Return the counts of the four methods at beta = 4, a fifth of all ratings held out."""
    figure, points = definition("user-movielens"), []
    for number in range(size.n_seeds):
        seed = [size.rng, number]
        train, test = holdout(ratings, fraction=FRACTION, rng=seed)
        lists = Unattacked.of(train, size.n_targets, seed, held_out=test)
        predictions = {series: lists.predict(figure.mechanism(series, BETA)) for series in figure.series}
        table = count(predictions, lists.targets, train, lists.targets.rows)
        points.append((BETA, number, table))
    return Sums.of(points)


INTERPRETATIONS: Mapping[str, Interpretation] = {
    "default": DEFAULT,
    "`cosine_corated`": Interpretation(similarity="cosine_corated"),
    "RS: largest over the candidates": Interpretation(scope="target"),
    "RS not clamped": Interpretation(clamp=False),
    "RS as derived": Interpretation(rs="derived"),
    "PNCF truncated (Zhu et al.)": Interpretation(pncf="truncated"),
    "PNCF without its second noise": Interpretation(noise=False),
    "divide by all neighbours, as printed": Interpretation(over="neighbours"),
    "`cosine_corated`, RS as derived, PNCF truncated, divided by all": Interpretation(
        similarity="cosine_corated", rs="derived", pncf="truncated", over="neighbours"
    ),
}
"""The default, each other one alone, and all together."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Compared:
    """The four methods under one interpretation, on one data set, at one setting of each protocol."""

    name: str
    free: Sums
    """Without an attack, user-based."""
    attack: Sums
    beta: float
    """Of the setting without an attack."""
    beta_attack: float
    best: tuple[str, str]
    """Whether PPNS has the lowest error of the three, without an attack and under attack."""

    def error(self, series: str) -> float:
        """Return the error without an attack."""
        return self.free.value("mae", series, self.beta)

    def attacked(self, metric: str, series: str) -> float:
        """Return a number under attack."""
        return self.attack.value(metric, series, self.beta_attack)


def compare_interpretations(ratings: Ratings, size: Size, advance: Advance) -> Iterator[Compared]:
    """Hand out the methods under each interpretation, on the same targets."""
    for name, interpretation in INTERPRETATIONS.items():
        yield compare(ratings, name, interpretation, size)
        advance(1)


def compare(ratings: Ratings, name: str, interpretation: Interpretation, size: Size) -> Compared:
    """Return the methods under one interpretation, at beta = 4, and at beta = 7 under attack."""
    free = _at("user-movielens", 4)
    attack = _at("attack-beta", 7)
    sums = {}
    for each in (free, attack):
        experiment = Experiment(definition=each, ratings=ratings, interpretation=interpretation, **size._asdict())
        sums[each.id] = Sums.of([point[:3] for point in experiment.points()])
    best = tuple(_best(Counted(each, sums[each.id], ratings.scale)) for each in (free, attack))
    return Compared(
        name=name,
        free=sums[free.id],
        attack=sums[attack.id],
        beta=free.values[0],
        beta_attack=attack.values[0],
        best=(best[0], best[1]),
    )


def _at(name: str, beta: int) -> Definition:
    return replace(definition(name), values=(beta,))


def _best(figure: Counted) -> str:
    """Return whether PPNS has the lowest error of the private methods, on common cells, at 1%."""
    outcomes = [one.outcome for one in judged(against_others({figure.definition.id: figure}))]
    if all(outcome == "as claimed" for outcome in outcomes):
        return "yes"
    beaten = [other for other, outcome in zip(PRIVATE[:-1], outcomes, strict=True) if outcome != "as claimed"]
    return f"no ({', '.join(beaten)})"
