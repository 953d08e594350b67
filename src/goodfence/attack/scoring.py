"""What an attack got: counts for each target, shares over all, and 95% intervals over targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import betaincinv

from goodfence.arrays import Flags, Floats, Integers
from goodfence.attack.targets import HALVES, Targets
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.rng import Streams

EXACT = 1e-6
"""A prediction this near to the hidden rating equals it."""
ON_GRID = 0.01
"""A number this part of a step from a value of the scale is one."""
CONFIDENCE = 0.95
_TENTH = 0.1
_TOLERANCE = 0.025
_NO_SPREAD = 1e-12


class Estimate(NamedTuple):
    """A number over all targets, and its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "not known"
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


UNKNOWN = Estimate(np.nan, np.nan, np.nan)


class Statistic(NamedTuple):
    """A number over targets, its standard error, and how many targets it rests on."""

    value: float
    error: float
    n: int
    effective: float = np.nan
    """How many targets that count alike would say as much: (sum of weights)^2 / sum of squared weights."""

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Return half the width of Student's interval; NaN for fewer than two targets."""
        return float(stats.t.ppf(0.5 + confidence / 2, max(self.n - 1, 1))) * self.error

    def estimate(self, *, lowest: float = 0.0, highest: float = np.inf, confidence: float = CONFIDENCE) -> Estimate:
        """Return the number with its interval, inside what is possible.

        Where all targets are at one end of the possible, nothing spreads: the interval is Wilson's with no exception.
        """
        half = self.half_width(confidence)
        low, high = max(self.value - half, lowest), min(self.value + half, highest)
        if self.error < _NO_SPREAD and np.isfinite(highest - lowest):
            z_squared = float(stats.norm.ppf(0.5 + confidence / 2)) ** 2
            beyond = (highest - lowest) * z_squared / (self.effective + z_squared)
            if abs(self.value - highest) < _NO_SPREAD:
                low = highest - beyond
            elif abs(self.value - lowest) < _NO_SPREAD:
                high = lowest + beyond
        return Estimate(self.value, low, high)


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """What one set of answers got, for each target: arrays of shape (targets,)."""

    hidden: Floats
    """How many ratings were hidden."""
    predicted: Floats
    """How many of them got a prediction."""
    error: Floats
    """The sum of the absolute errors of these."""
    recovered: Floats
    """How many predictions round to the hidden rating."""
    exact: Floats
    """How many equal it."""
    near: Floats
    """How many round to it or to the next value of the scale; without steps, as many as `recovered`."""

    @classmethod
    def of(cls, answers: Floats, targets: Targets, ratings: Ratings) -> Tally:
        """Count for each target what `answers`, one for each hidden rating, got."""
        made = ~np.isnan(answers)
        errors = np.where(made, np.abs(answers - targets.ratings), 0.0)
        rounded, near = (is_recovered(answers, targets, ratings, steps=steps) for steps in (0, 1))
        parts = (np.ones(len(answers)), made, errors, rounded, made & (errors < EXACT), near)
        owners, n = targets.owners, len(targets)
        return cls(*(np.bincount(owners, part, n).astype(np.float64) for part in parts))

    def estimates(self) -> dict[str, Estimate]:
        """Return mae, coverage, recovery and exact."""
        return {
            "mae": ratio(self.error, self.predicted),
            "coverage": share(self.predicted, self.hidden),
            "recovery": share(self.recovered, self.hidden),
            "exact": share(self.exact, self.hidden),
        }


def is_recovered(answers: Floats, targets: Targets, ratings: Ratings, *, steps: int = 0) -> Flags:
    """Return for each hidden rating whether the answer rounds to it, or misses it by `steps`; no answer does not.

    On a scale without steps an answer within `tolerance` of the rating recovers it.
    """
    # A value of the scale is a sum of steps, which may miss the rating by the last bit.
    allowed = steps * (ratings.scale.step or 0.0) + EXACT
    if ratings.scale.step is None:
        allowed += tolerance(ratings.scale)
    recovered: Flags = np.abs(ratings.scale.round(answers) - targets.ratings) < allowed
    return recovered


def tolerance(scale: Scale) -> float:
    """Return how far an answer may be from a rating to recover it: half a step, or a fortieth of a scale without."""
    return (scale.highest - scale.lowest) * _TOLERANCE if scale.step is None else scale.step / 2


def is_rating(values: Floats, scale: Scale) -> Flags:
    """Return which values are ratings of the scale; where any value is one, nothing can be told from it."""
    if scale.step is None:
        return np.zeros(values.shape, dtype=np.bool_)
    near: Flags = np.abs(scale.round(values) - values) <= ON_GRID * scale.step
    return near


def combination(terms: Iterable[tuple[float, Floats, Floats]]) -> Statistic:
    """Return a weighted sum of ratios, (weight, numerators, denominators) each, over the same targets.

    The error is the ratio estimator's of survey sampling: the spread of `numerator - ratio * denominator`.
    """
    value, residuals, effective = 0.0, np.zeros(()), np.inf
    for weight, numerators, denominators in terms:
        total = float(denominators.sum())
        if total == 0:
            return Statistic(np.nan, np.nan, 0)
        ratio_of_sums = float(numerators.sum()) / total
        value += weight * ratio_of_sums
        rests = (numerators - ratio_of_sums * denominators) / total
        residuals = residuals + weight * rests
        effective = min(effective, total**2 / float((denominators**2).sum()))
    n = residuals.size
    error = float(np.sqrt((residuals**2).sum() * n / (n - 1))) if n > 1 else np.nan
    return Statistic(value, error, n, effective)


def ratio(numerators: Floats, denominators: Floats, *, lowest: float = 0.0, highest: float = np.inf) -> Estimate:
    """Return the ratio of two sums over targets, with its interval over targets, inside what is possible."""
    return combination([(1.0, numerators, denominators)]).estimate(lowest=lowest, highest=highest)


def share(numerators: Floats, denominators: Floats) -> Estimate:
    """Return a share of all that the targets have, between 0 and 1."""
    return ratio(numerators, denominators, highest=1.0)


def difference(first: Floats, second: Floats, denominators: Floats) -> Estimate:
    """Return the difference of two shares of the same, each target paired with itself, between -1 and 1."""
    return ratio(first - second, denominators, lowest=-1.0, highest=1.0)


def frequency(happened: Floats) -> Estimate:
    """Return how often something happened, one value between 0 and 1 for each target.

    Where each target says yes or no the interval is Wilson's, which stays honest near 0 and 1.
    """
    binary = np.isin(happened, (0.0, 1.0)).all() and len(happened) > 0
    if np.isnan(happened).any() or not binary:
        return share(happened, np.ones(len(happened)))
    test = stats.binomtest(int(happened.sum()), len(happened))
    interval = test.proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(float(happened.mean()), float(interval.low), float(interval.high))


def more_often(first: Flags, second: Flags) -> bool:
    """Return whether `first` happened to more targets than `second` by more than chance (one-sided sign test, 2.5%)."""
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    if only_first <= only_second:
        return False
    test = stats.binomtest(only_first, only_first + only_second, alternative="greater")
    return bool(test.pvalue < (1 - CONFIDENCE) / 2)


def worst_tenth_loss(recovered: Floats, without: Floats) -> Estimate:
    """Return the mean loss of the tenth of the targets that lose most, `recovered - without`.

    Chance alone makes somebody lose most. So the mean of the highest tenth of the losses is taken less that of the
    highest tenth of the gains, `without - recovered`: without any leak both are alike. The mean of a tenth is `q +
    mean(max(x - q, 0)) / 0.1` with q its threshold; the interval is that of its influence function, each target paired
    with itself. Where all of a tenth are alike, each mean has its own (`_tied_tenth`).
    """
    if len(recovered) == 0:
        return UNKNOWN
    sides = np.maximum(recovered - without, 0.0), np.maximum(without - recovered, 0.0)
    parts = [_highest_tenth(values) for values in sides]
    paired = ratio(parts[0] - parts[1], np.ones(len(recovered)), lowest=-1.0, highest=1.0)
    tied = [bool(np.ptp(part) < _NO_SPREAD) for part in parts]
    if not any(tied) or len(recovered) == 1:
        return paired
    one, other = (
        _tied_tenth(values) if alike else share(part, np.ones(len(part)))
        for values, part, alike in zip(sides, parts, tied, strict=True)
    )
    return Estimate(paired.value, max(one.low - other.high, -1.0), min(one.high - other.low, 1.0))


def _highest_tenth(values: Floats) -> Floats:
    """Return for each target its part in the mean of the highest tenth: their mean is that mean."""
    in_tenth = max(1, int(np.ceil(_TENTH * len(values))))
    threshold = np.sort(values)[-in_tenth]
    part = in_tenth / len(values)
    return np.asarray(threshold + np.maximum(values - threshold, 0.0) / part)


def _tied_tenth(values: Floats) -> Estimate:
    """Return the mean of the highest tenth, all of one value v, with an interval that needs no spread.

    By Clopper and Pearson's bounds on the share p with v (p / 0.1 of it at least), and of those with more, not seen.
    """
    value, n = float(values.max()), len(values)
    risk, n_having = (1 - CONFIDENCE) / 2, np.array(float((values == value).sum()))
    having = min(float(lowest_rate(n_having, n, risk)) / _TENTH, 1.0)
    more = min(float(highest_rate(np.zeros(()), n, risk)) / _TENTH, 1.0)
    return Estimate(value, value * having, value + (1 - value) * more)


def lowest_rate(seen: Floats, n: int, risk: float) -> Floats:
    """Return Clopper and Pearson's lower bound on a rate; it is above the rate with probability `risk` at most."""
    inner = np.clip(seen, 1, n)
    return np.where(seen <= 0, 0.0, betaincinv(inner, n - inner + 1, risk))


def highest_rate(seen: Floats, n: int, risk: float) -> Floats:
    """Return Clopper and Pearson's upper bound on a rate; it is below the rate with probability `risk` at most."""
    inner = np.clip(seen, 0, n - 1)
    return np.where(seen >= n, 1.0, betaincinv(inner + 1, n - inner, 1 - risk))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Outcomes:
    """One entry for each hidden rating: whose it is, of which item, and what recovered it. The rating is not in it."""

    owners: Integers
    """(hidden,): the position among the targets."""
    columns: Integers
    """(hidden,): the item's column."""
    recovered: Flags
    """(hidden,): whether the informed attacker recovers it."""
    recovered_without: Flags
    """(hidden,): the same in the world without the target."""
    guessed: Flags
    """(hidden,): whether the guess does."""


GUESSES = ("item mean", "item mode", "item mean and the bias of the known ratings")
BELIEFS = ("all conclusions", "sure conclusions", "guesses alone")
_BLOCK = 2**18
_MOST_VALUES = 101


def first_half(n: int, streams: Streams) -> Flags:
    """Return which of `n` targets are the half on which things are chosen: by the seed, and the smaller half."""
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[streams.order(n, HALVES)[: n // 2]] = True
    return chosen


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
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


class Answers(NamedTuple):
    """What the attacker concludes about some targets."""

    with_target: Floats
    """(hidden,): in the world with each target; NaN where there was no answer, or none with information."""
    without_target: Floats
    """(hidden,): in the world without."""
    chosen: Floats
    """(targets,): the share of the asking fakes that have the target among their neighbours; NaN if unknown."""
    sure: Flags
    """(hidden,): what the attacker knows to be right, in the world with each target: told by one neighbour alone,
    agreed, or decoded to a rating."""
    sure_without: Flags
    """(hidden,): in the world without."""


def informed(answers: Answers, targets: Targets, ratings: Ratings, streams: Streams) -> tuple[Informed, Outcomes]:
    """Return what the informed attacker gets, counted for each target and told for each hidden rating."""
    judged = targets, ratings, first_half(len(targets), streams)
    guesses, guessing = _best(all_guesses(targets, ratings), GUESSES, *judged)
    values, sure, rules = {"guessed": guesses}, {}, {"guess": guessing}
    for name, sure_name in (("with_target", "sure"), ("without_target", "sure_without")):
        concluded: Floats = getattr(answers, name)
        sure[sure_name] = np.where(getattr(answers, sure_name), concluded, np.nan)
        told = np.stack([concluded, sure[sure_name], np.full(len(guesses), np.nan)])
        filled = np.where(np.isnan(told), guesses, told)
        values[name], rules[name] = _best(filled, BELIEFS, *judged)
    tallies = {name: Tally.of(each, targets, ratings) for name, each in (values | sure).items()}
    right = {name: is_recovered(each, targets, ratings) for name, each in values.items()}
    return Informed(**tallies, rules=rules), Outcomes(
        owners=targets.owners,
        columns=targets.columns,
        recovered=right["with_target"],
        recovered_without=right["without_target"],
        guessed=right["guessed"],
    )


def _best(
    values: Floats, names: Sequence[str], targets: Targets, ratings: Ratings, first: Flags
) -> tuple[Floats, tuple[str, str]]:
    """Return the values, of (options, hidden), right most often, for one half by the other; and the two names."""
    right = np.array([is_recovered(each, targets, ratings) for each in values])
    in_first = first[targets.owners]
    ours, theirs = (int(right[:, cells].sum(axis=1).argmax()) for cells in (~in_first, in_first))
    chosen: Floats = np.where(in_first, values[ours], values[theirs])
    return chosen, (names[ours], names[theirs])


def all_guesses(targets: Targets, ratings: Ratings) -> Floats:
    """Return what each rule guesses, (rules, hidden); an item that nobody else rated counts as the average one."""
    rows, there = targets.rows, targets.known_columns >= 0
    hidden = targets.owners, targets.columns, targets.ratings
    means = _other_means(rows, *hidden, ratings)
    owners = np.nonzero(there)[0]
    values = targets.known_ratings[there]
    apart = values - _other_means(rows, owners, targets.known_columns[there], values, ratings)
    biases = np.bincount(owners, apart, len(targets)) / np.maximum(targets.n_known, 1)
    return np.stack([means, _modes(targets, ratings, means), means + biases[targets.owners]])


def _other_means(rows: Integers, owners: Integers, columns: Integers, values: Floats, ratings: Ratings) -> Floats:
    """Return for each cell the mean of the item's other ratings, or else of all others'."""
    csr, means = ratings.csr, item_means(columns, values, ratings)
    until = np.concatenate([[0.0], np.cumsum(csr.data)])
    own = until[csr.indptr[rows + 1]] - until[csr.indptr[rows]]
    lengths = csr.indptr[rows + 1] - csr.indptr[rows]
    others = np.maximum(csr.nnz - lengths, 1)
    middle = (ratings.scale.lowest + ratings.scale.highest) / 2
    overall = np.where(csr.nnz > lengths, (csr.data.sum() - own) / others, middle)
    return np.where(np.isnan(means), overall[owners], means)


def item_means(columns: Integers, values: Floats, ratings: Ratings) -> Floats:
    """Return for each cell the mean of the item's other ratings, NaN where there is none."""
    csr = ratings.csr
    sums = np.bincount(csr.indices, weights=csr.data, minlength=csr.shape[1])[columns] - values
    counts = np.bincount(csr.indices, minlength=csr.shape[1])[columns] - 1
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


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
