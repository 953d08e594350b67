"""The points of a figure: each is computed once and kept on disk, so that a run that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import goodfence
from goodfence.arrays import Flags, Floats, Integers, Rows
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.scoring import Estimate, Statistic, Tally, combination, item_means
from goodfence.attack.targets import Targets, find_targets
from goodfence.attack.worlds import NeighbourWorlds
from goodfence.data.files import atomic_write
from goodfence.data.ratings import Ratings
from goodfence.data.splits import sample_targets
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.neighbours.candidate_lists import Axis, RowsAgainstAll, rows_along
from goodfence.neighbours.draw import check_similarity, choose_from_lists
from goodfence.neighbours.predict import Neighbourhoods
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.papers.protocol import CHOICES, TARGETS
from goodfence.papers.reproduction.definition import DEFAULT, PRIVATE, Definition, Interpretation, Number
from goodfence.registry import settings_of
from goodfence.rng import Streams
from goodfence.selection.inclusion import list_metrics
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.sensitivity import Sensitivity, pair_sensitivities, sensitivities

Seed: TypeAlias = list[int]
CountsByName: TypeAlias = dict[str, Floats]
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
    "alpha": ("alpha", "listed"),
    "beta": ("beta", "listed"),
}
"""Each metric as the ratio of two counts."""
LIST_METRICS = ("alpha", "beta")
PAPER_METRICS = (*("mae", "mae_clipped", "mae_common", "mae_common_clipped", "coverage"), *LIST_METRICS)
_NUMBERING = 99
"""The stream that numbers the targets, apart from those of the experiments."""
_LOWEST = {"advantage": -1.0}
_HIGHEST = {name: np.inf for name in PAPER_METRICS if name != "coverage"}


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """What one method predicts of the hidden ratings of some targets; without an attack there is one world only."""

    with_target: Floats
    without_target: Floats | None = None
    chosen: Floats | None = None
    """(targets,): the share of the asking fakes that had the target among their neighbours."""
    metrics: Floats | None = None
    """(targets, 2): alpha [ACCURACY] by Manly's mean [approx], and beta."""


def count(answers: Mapping[str, Predictions], targets: Targets, ratings: Ratings, numbers: Integers) -> pa.Table:
    """Return the counts of each series and target; common ratings are those that all private methods predict."""
    private = [~np.isnan(answers[series].with_target) for series in PRIVATE if series in answers]
    common = np.logical_and.reduce(private)
    counts = [_counts(told, common, targets, ratings) for told in answers.values()]
    columns: dict[str, object] = {
        "series": np.repeat(list(answers), len(targets)),
        "target": np.tile(numbers, len(answers)),
    }
    columns |= {name: np.concatenate([one[name] for one in counts]) for name in counts[0]}
    return pa.table(columns)


def _counts(told: Predictions, common: Flags, targets: Targets, ratings: Ratings) -> CountsByName:
    tally = partial(Tally.of, targets=targets, ratings=ratings)
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
    metrics = np.zeros((len(targets), 2)) if told.metrics is None else told.metrics
    counts |= dict(zip(LIST_METRICS, metrics.T, strict=True))
    counts["listed"] = np.full(len(targets), float(told.metrics is not None))
    if told.without_target is not None and told.chosen is not None:
        counts["recovered_without"] = tally(told.without_target).recovered
        counts["gained"] = counts["recovered"] - counts["recovered_without"]
        counts["guessed"] = tally(item_means(targets.columns, targets.ratings, ratings)).recovered
        counts["chosen"] = told.chosen
    return counts


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """The counts of a figure: for each point and series one number for each target, over all seeds."""

    counts: Mapping[tuple[Number, str], CountsByName]
    """By (x, series): name of the count to an array of shape (targets,)."""

    @classmethod
    def of(cls, points: Points) -> Sums:
        """Add up the counts of all seeds, targets in ascending order of their numbers."""
        numbers = np.unique(np.concatenate([np.asarray(table["target"]) for _, _, table in points]))
        counts: dict[tuple[Number, str], CountsByName] = {}
        for x, _, table in points:
            for series, part in _by_series(table):
                positions = np.searchsorted(numbers, part.pop("target"))
                into = counts.setdefault((x, series), {})
                for name, values in part.items():
                    np.add.at(into.setdefault(name, np.zeros(len(numbers))), positions, values)
        return cls(counts)

    def value(self, metric: str, series: str, x: Number) -> float:
        """Return one metric of one series at one point."""
        return self.mean(metric, series, [x]).value

    def estimate(self, metric: str, series: str, x: Number) -> Estimate:
        """Return the same with its 95% interval, inside what is possible."""
        lowest, highest = _LOWEST.get(metric, 0.0), _HIGHEST.get(metric, 1.0)
        return self.mean(metric, series, [x]).estimate(lowest=lowest, highest=highest)

    def difference(self, metric: str, first: str, second: str, xs: Sequence[Number]) -> Statistic:
        """Return the first series' metric minus the second's, the mean over `xs`, paired over targets."""
        share = 1.0 / len(xs)
        terms = [(share, first, x) for x in xs]
        return self._combined(metric, terms + [(-share, second, x) for x in xs])

    def mean(self, metric: str, series: str, xs: Sequence[Number]) -> Statistic:
        """Return the mean of a metric over `xs`."""
        return self._combined(metric, [(1.0 / len(xs), series, x) for x in xs])

    def trend(self, metric: str, series: str, xs: Sequence[Number], *, log: bool = False) -> Statistic:
        """Return how much the straight line through the metric rises from the first x to the last."""
        positions = np.log(xs) if log else np.asarray(xs, dtype=np.float64)
        centred = positions - positions.mean()
        weights = centred / (centred @ centred) * (positions[-1] - positions[0])
        return self._combined(metric, list(zip(weights.tolist(), [series] * len(xs), xs, strict=True)))

    def _combined(self, metric: str, terms: Sequence[tuple[float, str, Number]]) -> Statistic:
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
                if metric in LIST_METRICS and not below:  # of the first seed only
                    continue
                value = above / below if below else float("nan")
                lines.append((definition.id, series, float(x), seed, metric, value))
    return _table(("figure", "series", "x", "seed", "metric", "value"), lines)


def summary(definition: Definition, sums: Sums) -> pa.Table:
    """Return (figure, series, x, metric, value, low, high, targets): values over all seeds, 95% intervals."""
    lines = []
    for x in definition.values:
        for series in definition.series:
            for metric in _metrics(definition, series):
                found = sums.estimate(metric, series, x)
                n_targets = sums.mean(metric, series, [x]).n
                lines.append((definition.id, series, float(x), metric, *found, n_targets))
    names = ("figure", "series", "x", "metric", "value", "low", "high", "targets")
    return _table(names, lines)


def _metrics(definition: Definition, series: str) -> tuple[str, ...]:
    """Return which metrics a series has; kNN is not among those compared on common ratings."""
    every = tuple(METRICS) if definition.protocol == "attack" else PAPER_METRICS
    return tuple(name for name in every if series in PRIVATE or "common" not in name)


def _by_series(table: pa.Table) -> Iterator[tuple[str, CountsByName]]:
    """Hand out each series of a point, in the order of the table, with its columns."""
    for series in pc.unique(table["series"]).to_pylist():
        part = table.filter(pc.equal(table["series"], series)).drop_columns(["series"])
        yield series, {name: np.asarray(part[name]) for name in part.column_names}


def _table(names: tuple[str, ...], lines: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*lines, strict=True)
    return pa.table(dict(zip(names, map(list, columns), strict=True)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """A figure with its data, its seeds and its number of targets."""

    definition: Definition
    ratings: Ratings
    n_seeds: int
    n_targets: int
    rng: int
    interpretation: Interpretation = DEFAULT
    threads: int | None = None
    keep: Path | None = None

    def __repr__(self) -> str:
        return f"Experiment({self.definition.id}, {self.n_seeds} seeds x {self.n_targets} targets)"

    @property
    def n_points(self) -> int:
        """How many points there are to compute."""
        return len(self.definition.values) * self.n_seeds

    @cached_property
    def checksum(self) -> str:
        """The checksum of the ratings."""
        return ratings_checksum(self.ratings)

    def seed(self, number: int) -> Seed:
        """Return the seed of the run with this number: what `rng=` takes to repeat it by hand."""
        return [self.rng, number]

    def _settings(self) -> dict[str, Any]:
        definition = self.definition
        return {
            "figure": definition.id,
            "protocol": definition.protocol,
            "axis": definition.axis,
            "ratings": self.checksum,
            "targets": self.n_targets,
            "interpretation": asdict(self.interpretation),
        }

    def stated(self) -> dict[str, Any]:
        """Return what a manifest says of the experiment."""
        definition, last = self.definition, self.definition.values[-1]
        drawn = {name: definition.mechanism(name, last) for name in definition.series}
        return {
            **self._settings(),
            **{name: getattr(definition, name) for name in ("data", "note", "x")},
            "shape": list(self.ratings.shape),
            "scale": asdict(self.ratings.scale),
            "seeds": [self.seed(number) for number in range(self.n_seeds)],
            "values": list(definition.values),
            "fixed": dict(definition.fixed),
            "series_at_last_x": {name: settings_of(one) for name, one in drawn.items()},
        }

    def points(self) -> Iterator[tuple[Number, int, pa.Table, bool]]:
        """Hand out (x, seed number, table of counts, whether it was computed now) of each point."""
        for number in range(self.n_seeds):
            protocol = _Protocol(self, self.seed(number))
            for x in self.definition.values:
                path = self._path(x, number)
                table = None
                if path is not None and path.is_file():
                    with suppress(pa.ArrowException, OSError):  # damaged: it is computed again
                        table = pq.read_table(path)
                found = protocol.counts(x) if table is None else table
                if table is None and path is not None:
                    with atomic_write(path) as file:
                        pq.write_table(found, file, compression="zstd")
                yield x, number, found, table is None

    @cached_property
    def target_numbers(self) -> Integers:
        """An anonymous number for each row, the same at every point: its position in an order drawn by chance."""
        n_rows = self.ratings.shape[0 if self.definition.axis == "user" else 1]
        numbers = np.empty(n_rows, dtype=np.int64)
        numbers[Streams(self.rng).order(n_rows, _NUMBERING)] = np.arange(n_rows)
        return numbers

    def _path(self, x: Number, number: int) -> Path | None:
        """Return where a point is kept: its name is a fingerprint of every setting."""
        if self.keep is None:
            return None
        definition = self.definition
        stated = {
            **self._settings(),
            "version": goodfence.__version__,
            "series": {name: repr(definition.mechanism(name, x)) for name in definition.series},
            "parameters": definition.parameters(x),
            "most_known": definition.most_known,
            "seed": self.seed(number),
        }
        text = json.dumps(stated, sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.keep / f"{definition.id}-{definition.x}-{x:g}-seed-{number}-{name}.parquet"


@dataclass(frozen=True, eq=False, repr=False)
class _Protocol:
    """One seed of an experiment, by its protocol."""

    experiment: Experiment
    seed: Seed
    _made: dict[tuple[str, int], Predictions] = field(default_factory=dict)

    def counts(self, x: Number) -> pa.Table:
        """Return one line of counts for each series and target at x."""
        experiment, definition = self.experiment, self.experiment.definition
        known = definition.known(x) if definition.protocol == "attack" else 0
        targets = self._targets(known) if known else self._unattacked.targets
        # Alpha and beta have no chance in them but that of the targets.
        metrics = self.seed == experiment.seed(0)
        predictions = {}
        for series in definition.series:
            mechanism = definition.mechanism(series, x)
            key = repr(mechanism), known
            if key not in self._made:  # many series are the same at every x
                self._made[key] = (
                    self._attacked(mechanism, targets, metrics=metrics)
                    if known
                    else self._unattacked.predict(mechanism, metrics=metrics)
                )
            predictions[series] = self._made[key]
        numbers = experiment.target_numbers[targets.rows]
        return count(predictions, targets, experiment.ratings, numbers)

    @cached_property
    def _unattacked(self) -> Unattacked:
        of, axis = self.experiment, self.experiment.definition.axis
        how: dict[str, Any] = {"interpretation": of.interpretation, "threads": of.threads}
        return Unattacked.of(of.ratings, of.n_targets, self.seed, axis=axis, **how)

    def _targets(self, known: int) -> Targets:
        """Return what the attacker knows of the targets, the same ones for any `known`, and what is hidden."""
        of, streams = self.experiment, Streams(self.seed)
        least = max(of.definition.most_known, of.interpretation.more_than)
        ids = sample_targets(of.ratings, of.n_targets, rng=streams.at(TARGETS), more_than=least)
        return find_targets(of.ratings, ids, known, of.interpretation.choose, streams)[0]

    def _attacked(self, mechanism: Mechanism, targets: Targets, *, metrics: bool) -> Predictions:
        """Return what the first fake of each target is told, with and without the target."""
        of, how = self.experiment, self.experiment.interpretation
        applied = how.applied(mechanism)
        model = NeighbourCF(applied, similarity=how.similarity, over=how.over)
        worlds = NeighbourWorlds(of.ratings, model, applied.k, threads=of.threads)
        attack = KNNAttack(known=targets.known_columns.shape[1])
        told = attack.answers(worlds, targets, Streams(self.seed), progress=False)
        found = None
        if metrics:
            lists = worlds.lists(targets)[0]
            found = _list_metrics(applied, lists.similarities, lists.bounds)
        return Predictions(told.with_target, told.without_target, told.chosen, found)


@dataclass(frozen=True, eq=False, repr=False)
class Unattacked:
    """Targets by the paper's protocol, with their candidate lists, which every mechanism draws from."""

    rows: Ratings
    profiles: Profiles
    targets: Targets
    indices: Rows
    similarities: Floats
    key: int
    interpretation: Interpretation
    threads: int | None
    _sensitivities: dict[Sensitivity, Floats] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        ratings: Ratings,
        n_targets: int,
        seed: Seed,
        *,
        axis: Axis = "user",
        held_out: Ratings | None = None,
        interpretation: Interpretation = DEFAULT,
        threads: int | None = None,
    ) -> Unattacked:
        """Draw targets as `paper_protocol` does; their ratings are asked for, or those held out."""
        rows, streams = rows_along(ratings, axis), Streams(seed)
        askers = rows.rows(sample_targets(rows, n_targets, rng=streams.at(TARGETS)))
        profiles = Profiles.of(rows.csr)
        engine = RowsAgainstAll(profiles, Similarity.of(interpretation.similarity))
        n_candidates = profiles.n_rows - 1
        lists = engine.nearest(profiles, askers, n_candidates, themselves=True, threads=threads)
        asked = rows if held_out is None else rows_along(held_out, axis)
        targets = _every_rating(asked, askers)  # nothing is known of them
        return cls(rows, profiles, targets, *lists, streams.key(CHOICES), interpretation, threads)

    def sensitivities(self, mechanism: Mechanism) -> Floats | None:
        """Return RS of every target, or of every pair, where the mechanism needs it; computed once for all rows."""
        options = mechanism.sensitivity
        if options is None:
            return None
        if options not in self._sensitivities:
            rows, askers = self.profiles.rows, self.targets.rows
            self._sensitivities[options] = (
                pair_sensitivities(rows, askers, self.indices, options)
                if options.scope == "pair"
                else sensitivities(rows, options)[askers]
            )
        return self._sensitivities[options]

    def predict(self, mechanism: Mechanism, *, metrics: bool = False) -> Predictions:
        """Return the prediction of each rating that is asked for, NaN where no neighbour rated it."""
        applied, targets = self.interpretation.applied(mechanism), self.targets
        reach = applied.reach(self.profiles.n_rows - 1)
        check_similarity(applied, Similarity.of(self.interpretation.similarity))
        listed, bounds = self.similarities[:, :reach], self.sensitivities(applied)
        if bounds is not None and bounds.ndim == 2:
            bounds = bounds[:, :reach]
        neighbours, _, weights = choose_from_lists(
            applied, self.key, targets.rows, self.indices[:, :reach], listed, bounds
        )
        near = Neighbourhoods(neighbours, weights, self.interpretation.over == "raters")
        csr = self.rows.csr
        told = near.predict(csr, targets.owners, targets.columns, threads=self.threads)
        found = _list_metrics(applied, listed, bounds) if metrics else None
        return Predictions(told, metrics=found)


def _list_metrics(mechanism: Mechanism, similarities: Floats, bounds: Floats | None) -> Floats:
    """Return alpha and beta of each list, (lists, 2)."""
    each = [None] * len(similarities) if bounds is None else list(bounds)
    pairs = zip(similarities, each, strict=True)
    found = [list_metrics(mechanism, listed, one, method="manly") for listed, one in pairs]
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _every_rating(ratings: Ratings, rows: Integers) -> Targets:
    csr = ratings.csr[rows]
    known = np.empty((len(rows), 0), dtype=np.int64)
    starts, columns = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
    return Targets(rows, known, known.astype(np.float64), starts, columns, csr.data)


def ratings_checksum(ratings: Ratings) -> str:
    """Return the sha256 of the ratings: shape, scale, and each cell in order; ids are not in it."""
    csr, scale = ratings.csr, ratings.scale
    digest = hashlib.sha256(repr((csr.shape, scale.lowest, scale.highest, scale.step)).encode())
    digest.update(b"" if ratings.feedback == "explicit" else b"events")
    for part, kind in ((csr.indptr, "<i8"), (csr.indices, "<i8"), (csr.data, "<f8")):
        digest.update(np.ascontiguousarray(part, dtype=kind).tobytes())
    return digest.hexdigest()
