"""The tables of a figure: tidy values by seed, values with 95% bands, and the sums that claims are judged by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodfence.experiments.definition import PRIVATE, Definition, Number
from goodfence.experiments.estimates import ATTACK_METRICS, METRICS, PAPER_METRICS, Sums
from goodfence.experiments.tallies import Floats

Points = Sequence[tuple[Number, int, pa.Table]]


def metrics_of(definition: Definition, series: str) -> tuple[str, ...]:
    """Return which metrics a series has; kNN is not among those compared on common cells."""
    every = ATTACK_METRICS if definition.protocol == "attack" else PAPER_METRICS
    return tuple(name for name in every if series in PRIVATE or "common" not in name)


def tidy(definition: Definition, points: Points) -> pa.Table:
    """Return (figure, series, x, seed, metric, value), one line for each number."""
    lines = []
    for x, seed, table in points:
        for series in definition.series:
            counts = _totals(_of_series(table, series))
            for metric in metrics_of(definition, series):
                above, below = METRICS[metric]
                value = counts[above] / counts[below] if counts[below] else float("nan")
                lines.append((definition.id, series, float(x), seed, metric, value))
    return _table(("figure", "series", "x", "seed", "metric", "value"), lines)


def summary(definition: Definition, sums: Sums) -> pa.Table:
    """Return (figure, series, x, metric, value, low, high, targets): values over all seeds, 95% bands."""
    lines = []
    for x in definition.values:
        for series in definition.series:
            for metric in metrics_of(definition, series):
                found = sums.estimate(metric, series, x)
                band = sums.band(metric, series, x)
                key = (definition.id, series, float(x), metric)
                lines.append((*key, found.value, *band, found.n))
    names = ("figure", "series", "x", "metric", "value", "low", "high", "targets")
    return _table(names, lines)


def sums_of(definition: Definition, points: Points) -> Sums:
    """Return the counts over all seeds, targets in ascending order of their numbers."""
    numbers = np.unique(np.concatenate([np.asarray(table["target"]) for _, _, table in points]))
    counts: dict[tuple[Number, str], dict[str, Floats]] = {}
    for x, _, table in points:
        for series in definition.series:
            part = _of_series(table, series)
            places = np.searchsorted(numbers, part["target"])
            into = counts.setdefault((x, series), {})
            for name in part:
                if name != "target":
                    np.add.at(into.setdefault(name, np.zeros(len(numbers))), places, part[name])
    return Sums(counts)


def _of_series(table: pa.Table, series: str) -> dict[str, Floats]:
    part = table.filter(pc.equal(table["series"], series)).drop_columns(["series"])
    columns = {name: np.asarray(part[name]) for name in part.column_names}
    if "recovered_without" in columns:
        columns["gained"] = columns["recovered"] - columns["recovered_without"]
    return columns


def _totals(columns: dict[str, Floats]) -> dict[str, float]:
    return {name: float(values.sum()) for name, values in columns.items()}


def _table(names: tuple[str, ...], lines: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*lines, strict=True)
    return pa.table(dict(zip(names, map(list, columns), strict=True)))
