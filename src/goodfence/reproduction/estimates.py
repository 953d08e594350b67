"""The counts of each target at each point, and the estimates that claims and charts rest on.

No prediction, rating or id is kept: targets are numbered in an order drawn by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.arrays import Flags, Floats, Integers
from goodfence.attack.scoring import Estimate, Statistic, Tally, combination, item_mean_guesses
from goodfence.attack.targets import Targets
from goodfence.data.ratings import Ratings
from goodfence.reproduction.definition import PRIVATE, Definition, Number

Counts: TypeAlias = dict[str, Floats]
Points: TypeAlias = Sequence[tuple[Number, int, pa.Table]]
"""(x, seed number, table of counts) each."""

METRICS: dict[str, tuple[str, str]] = {
    "mae": ("error", "predicted"),
    "mae_clipped": ("error_clipped", "predicted"),
    "mae_common": ("error_common", "common"),
    "mae_common_clipped": ("error_common_clipped", "common"),
    "coverage": ("predicted", "hidden"),
    "recovery": ("recovered", "hidden"),
    "recovery_without": ("recovered_without", "hidden"),
    "advantage": ("gained", "hidden"),
    "exact": ("exact", "hidden"),
    "target_chosen": ("chosen", "targets"),
    "guess": ("guessed", "hidden"),
}
"""Each metric as the ratio of two counts."""
PAPER_METRICS = ("mae", "mae_clipped", "mae_common", "mae_common_clipped", "coverage")
_LOWEST = {"advantage": -1.0}
_HIGHEST = dict.fromkeys(PAPER_METRICS[:-1], np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """What one method predicts of the hidden ratings of some targets; without an attack there is one world only."""

    with_target: Floats
    without_target: Floats | None = None
    chosen: Floats | None = None
    """(targets,): the share of the asking fakes that had the target among their neighbours."""


def count(
    answers: Mapping[str, Predictions], targets: Targets, ratings: Ratings, numbers: Integers
) -> pa.Table:
    """Return one line of counts for each series and target, the targets named by `numbers`.

    Methods are compared on the common ratings, those that all private methods predict.
    """
    private = [~np.isnan(answers[series].with_target) for series in PRIVATE if series in answers]
    common = np.logical_and.reduce(private)
    counts = [_counts(told, common, targets, ratings) for told in answers.values()]
    columns: dict[str, object] = {
        "series": np.repeat(list(answers), len(targets)),
        "target": np.tile(numbers, len(answers)),
    }
    columns |= {name: np.concatenate([one[name] for one in counts]) for name in counts[0]}
    return pa.table(columns)


def _counts(told: Predictions, common: Flags, targets: Targets, ratings: Ratings) -> Counts:
    def tally(values: Floats) -> Tally:
        return Tally.of(values, targets, ratings)

    values = told.with_target
    clipped = np.clip(values, ratings.scale.lowest, ratings.scale.highest)
    own, shared = tally(values), tally(np.where(common, values, np.nan))
    counts = {
        "targets": np.ones(len(targets)),
        "hidden": own.hidden,
        "predicted": own.predicted,
        "error": own.error,
        "error_clipped": tally(clipped).error,
        "common": shared.predicted,
        "error_common": shared.error,
        "error_common_clipped": tally(np.where(common, clipped, np.nan)).error,
        "exact": own.exact,
        "recovered": own.recovered,
    }
    if told.without_target is not None and told.chosen is not None:
        counts["recovered_without"] = tally(told.without_target).recovered
        counts["gained"] = counts["recovered"] - counts["recovered_without"]
        counts["guessed"] = tally(item_mean_guesses(targets, ratings)).recovered
        counts["chosen"] = told.chosen
    return counts


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """The counts of a figure: for each point and series one number for each target, over all seeds."""

    counts: Mapping[tuple[Number, str], Counts]
    """By (x, series): name of the count to an array of shape (targets,)."""

    @classmethod
    def of(cls, points: Points) -> Sums:
        """Add up the counts of all seeds, targets in ascending order of their numbers."""
        numbers = np.unique(np.concatenate([np.asarray(table["target"]) for _, _, table in points]))
        counts: dict[tuple[Number, str], Counts] = {}
        for x, _, table in points:
            for series, part in _by_series(table):
                positions = np.searchsorted(numbers, part.pop("target"))
                into = counts.setdefault((x, series), {})
                for name, values in part.items():
                    np.add.at(into.setdefault(name, np.zeros(len(numbers))), positions, values)
        return cls(counts)

    def statistic(self, metric: str, series: str, x: Number) -> Statistic:
        """Return one metric of one series at one point."""
        return self._combined(metric, [(1.0, series, x)])

    def estimate(self, metric: str, series: str, x: Number) -> Estimate:
        """Return the same with its 95% interval, inside what is possible."""
        lowest, highest = _LOWEST.get(metric, 0.0), _HIGHEST.get(metric, 1.0)
        return self.statistic(metric, series, x).estimate(lowest=lowest, highest=highest)

    def difference(self, metric: str, first: str, second: str, xs: Sequence[Number]) -> Statistic:
        """Return the first series' metric minus the second's, the mean over `xs`, paired over targets."""
        share = 1.0 / len(xs)
        terms = [(share, first, x) for x in xs]
        return self._combined(metric, terms + [(-share, second, x) for x in xs])

    def mean(self, metric: str, series: str, xs: Sequence[Number]) -> Statistic:
        """Return the mean of a metric over `xs`."""
        return self._combined(metric, [(1.0 / len(xs), series, x) for x in xs])

    def trend(
        self, metric: str, series: str, xs: Sequence[Number], *, log: bool = False
    ) -> Statistic:
        """Return how much the straight line through the metric rises from the first x to the last."""
        positions = np.log(xs) if log else np.asarray(xs, dtype=np.float64)
        centred = positions - positions.mean()
        weights = centred / (centred @ centred) * (positions[-1] - positions[0])
        pairs = zip(weights.tolist(), xs, strict=True)
        return self._combined(metric, [(weight, series, x) for weight, x in pairs])

    def _combined(self, metric: str, terms: Sequence[tuple[float, str, Number]]) -> Statistic:
        """Return a weighted sum of a metric, (weight, series, x) each."""
        above, below = METRICS[metric]
        found = ((weight, self.counts[x, series]) for weight, series, x in terms)
        return combination((weight, each[above], each[below]) for weight, each in found)


def tidy(definition: Definition, points: Points) -> pa.Table:
    """Return (figure, series, x, seed, metric, value), one line for each number."""
    lines = []
    for x, seed, table in points:
        for series, counts in _by_series(table):
            for metric in _metrics(definition, series):
                above, below = (float(counts[name].sum()) for name in METRICS[metric])
                value = above / below if below else float("nan")
                lines.append((definition.id, series, float(x), seed, metric, value))
    return _table(("figure", "series", "x", "seed", "metric", "value"), lines)


def summary(definition: Definition, sums: Sums) -> pa.Table:
    """Return (figure, series, x, metric, value, low, high, targets): values over all seeds, 95% bands."""
    lines = []
    for x in definition.values:
        for series in definition.series:
            for metric in _metrics(definition, series):
                found = sums.estimate(metric, series, x)
                n_targets = sums.statistic(metric, series, x).n
                lines.append((definition.id, series, float(x), metric, *found, n_targets))
    names = ("figure", "series", "x", "metric", "value", "low", "high", "targets")
    return _table(names, lines)


def _metrics(definition: Definition, series: str) -> tuple[str, ...]:
    """Return which metrics a series has; kNN is not among those compared on common ratings."""
    every = tuple(METRICS) if definition.protocol == "attack" else PAPER_METRICS
    return tuple(name for name in every if series in PRIVATE or "common" not in name)


def _by_series(table: pa.Table) -> Iterator[tuple[str, Counts]]:
    """Hand out each series of a point, in the order of the table, with its columns."""
    for series in pc.unique(table["series"]).to_pylist():
        part = table.filter(pc.equal(table["series"], series)).drop_columns(["series"])
        yield series, {name: np.asarray(part[name]) for name in part.column_names}


def _table(names: tuple[str, ...], lines: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*lines, strict=True)
    return pa.table(dict(zip(names, map(list, columns), strict=True)))
