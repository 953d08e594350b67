"""The informed attacker: where the answers hold nothing, they guess as well as one can without the target's data.

A guess uses what everybody else rated and the known ratings of the target, so it is the same in the world with the
target and in the world without. In each world the attacker believes what serves best there: all that was concluded from
the answers, only what is surely right, or the guesses alone. So nothing is counted as a leak that somebody without the
target's data could have known. Which rule guesses best, and what is best believed, is found on one half of the
targets and used on the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from goodfence.arrays import Flags, Floats, Integers
from goodfence.attack.scoring import Outcomes, Tally, is_recovered
from goodfence.attack.targets import HALVES, Targets
from goodfence.data.ratings import Ratings
from goodfence.rng import Streams

GUESSES = ("item mean", "item mode", "item mean and the bias of the known ratings")
BELIEFS = ("all conclusions", "sure conclusions", "guesses alone")
_BLOCK = 2**18
_MOST_VALUES = 101


def first_half(n: int, streams: Streams) -> Flags:
    """Return which of `n` targets are the half on which things are chosen: by the seed, and the smaller half.

    Examples
    --------
    >>> int(first_half(9, Streams(7)).sum()), bool((first_half(9, Streams(7)) == first_half(9, Streams(7))).all())
    (4, True)
    """
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[streams.order(n, HALVES)[: n // 2]] = True
    return chosen


@dataclass(frozen=True, eq=False, kw_only=True)
class Informed:
    """What the informed attacker gets in both worlds, for each target, and by guessing alone."""

    with_target: Tally
    without_target: Tally
    guessed: Tally
    """What guessing alone gets."""
    sure: Tally
    """What the attacker knows to be right: only these are predictions."""
    sure_without: Tally
    """The same in the world without the target."""
    rules: Mapping[str, tuple[str, str]]
    """How they guess and what they believe in each world, for each half of the targets."""

    def __repr__(self) -> str:
        return f"Informed({len(self.guessed.hidden):,} targets)"


@dataclass(frozen=True, eq=False)
class Conclusions:
    """What an attacker concludes about each hidden rating in one world."""

    values: Floats
    """(hidden,): NaN where there was no answer, or none with information."""
    sure: Flags
    """(hidden,): which the attacker knows to be right: told by one neighbour alone, agreed, or decoded to a rating."""


def informed(
    with_target: Conclusions,
    without_target: Conclusions,
    targets: Targets,
    ratings: Ratings,
    streams: Streams,
) -> tuple[Informed, Outcomes]:
    """Return what the informed attacker gets, counted for each target and told for each hidden rating."""
    judge = _Judge(targets, ratings, first_half(len(targets), streams))
    guesses, guessing = judge.best(all_guesses(targets, ratings), GUESSES)
    worlds, filled, beliefs, sure = (with_target, without_target), [], [], []
    for world in worlds:
        sure.append(np.where(world.sure, world.values, np.nan))
        told = np.stack([world.values, sure[-1], np.full(len(guesses), np.nan)])
        best, believed = judge.best(np.where(np.isnan(told), guesses, told), BELIEFS)
        filled.append(best)
        beliefs.append(believed)
    tallies = [Tally.of(values, targets, ratings) for values in (*filled, guesses, *sure)]
    counted = Informed(
        with_target=tallies[0],
        without_target=tallies[1],
        guessed=tallies[2],
        sure=tallies[3],
        sure_without=tallies[4],
        rules={"guess": guessing, "with_target": beliefs[0], "without_target": beliefs[1]},
    )
    each = Outcomes(
        owners=targets.owners,
        columns=targets.columns,
        recovered=is_recovered(filled[0], targets, ratings),
        recovered_without=is_recovered(filled[1], targets, ratings),
        guessed=is_recovered(guesses, targets, ratings),
    )
    return counted, each


@dataclass(frozen=True, eq=False)
class _Judge:
    """Chooses among several values for each hidden rating, for one half of the targets by the other."""

    targets: Targets
    ratings: Ratings
    first: Flags
    """(targets,): who is in the first half."""

    def best(self, values: Floats, names: Sequence[str]) -> tuple[Floats, tuple[str, str]]:
        """Return the values, of (options, hidden), that are right most often in the other half, and their names.

        Of several that are, the first.
        """
        right = np.array([is_recovered(each, self.targets, self.ratings) for each in values])
        in_first = self.first[self.targets.owners]
        of_first, of_second = (
            int(right[:, cells].sum(axis=1).argmax()) for cells in (~in_first, in_first)
        )
        chosen: Floats = np.where(in_first, values[of_first], values[of_second])
        return chosen, (names[of_first], names[of_second])


def all_guesses(targets: Targets, ratings: Ratings) -> Floats:
    """Return what each rule guesses, (rules, hidden); an item that nobody else rated counts as the average one."""
    means, overall = _other_means(
        targets.rows, targets.owners, targets.columns, targets.ratings, ratings
    )
    n_known = targets.known_columns.shape[1]
    owners = np.repeat(np.arange(len(targets)), n_known)
    known = targets.known_columns.ravel(), targets.known_ratings.ravel()
    known_means, _ = _other_means(targets.rows, owners, *known, ratings)
    biases = (
        (targets.known_ratings - known_means.reshape(-1, n_known)).mean(axis=1)
        if n_known
        else 0.0 * overall
    )
    return np.stack([means, _modes(targets, ratings, means), means + biases[targets.owners]])


def _other_means(
    rows: Integers, owners: Integers, columns: Integers, values: Floats, ratings: Ratings
) -> tuple[Floats, Floats]:
    """Return for each cell the mean of the item's other ratings, or else of all others'; the latter for each row."""
    csr = ratings.csr
    sums = np.bincount(csr.indices, weights=csr.data, minlength=csr.shape[1])[columns] - values
    counts = np.bincount(csr.indices, minlength=csr.shape[1])[columns] - 1
    until = np.concatenate([[0.0], np.cumsum(csr.data)])
    own = until[csr.indptr[rows + 1]] - until[csr.indptr[rows]]
    lengths = csr.indptr[rows + 1] - csr.indptr[rows]
    others = np.maximum(csr.nnz - lengths, 1)
    middle = (ratings.scale.lowest + ratings.scale.highest) / 2
    overall = np.where(csr.nnz > lengths, (csr.data.sum() - own) / others, middle)
    means: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), overall[owners])
    return means, overall


def _modes(targets: Targets, ratings: Ratings, means: Floats) -> Floats:
    """Return the most frequent of each item's other ratings, the nearest to their mean of several."""
    csr = ratings.csr
    values, places = np.unique(csr.data, return_inverse=True)
    if len(values) > _MOST_VALUES:
        return means  # ratings of any value hardly repeat
    n_values = len(values)
    cells = csr.indices.astype(np.int64) * n_values + places
    counts = np.bincount(cells, minlength=csr.shape[1] * n_values).reshape(-1, n_values)
    modes = np.empty(len(means))
    for start in range(0, len(means), _BLOCK):
        part = slice(start, start + _BLOCK)
        held = counts[targets.columns[part]]
        own = np.searchsorted(values, targets.ratings[part])
        held[np.arange(len(held)), own] -= 1
        far = np.abs(values - means[part, np.newaxis])
        score = held - far / (far.max(axis=1, keepdims=True) + 1.0)  # below 1: it only breaks ties
        modes[part] = np.where(held.any(axis=1), values[score.argmax(axis=1)], means[part])
    return modes
