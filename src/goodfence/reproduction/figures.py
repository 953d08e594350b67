"""`reproduce`: a figure of the paper, or all of them with a verdict on every claim."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import goodfence
from goodfence.data.files import atomic_write
from goodfence.errors import require
from goodfence.neighbours.candidate_lists import Axis
from goodfence.neighbours.threads import Advance, bar
from goodfence.registry import settings_of
from goodfence.report.serialize import write_json
from goodfence.reproduction.claims import Claim, Counted
from goodfence.reproduction.definition import ORDER, Definition, Sources
from goodfence.reproduction.figure_claims import WITHOUT_ATTACK, claims_of_figures
from goodfence.reproduction.list_claims import (
    allocation_is_optimal,
    fakes_needed,
    manly_is_good,
    partition_one,
    second_half_is_zero,
)
from goodfence.reproduction.runs import Experiment, Sums, summary, tidy
from goodfence.settings import checked

if TYPE_CHECKING:
    import altair

N_SEEDS, N_TARGETS = 5, 200
QUICK_SEEDS, QUICK_TARGETS = 2, 100
_LISTS = 2_000
"""The most rows of which the second half of the list is looked at: all of MovieLens."""


@checked
def reproduce(
    figure: str,
    *,
    rng: int | None = None,
    quick: bool = False,
    data: str | None = None,
    keep: str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Figure:
    """Draw one figure of the paper again.

    Parameters
    ----------
    figure : str
        Its name: `item-movielens`, `user-movielens`, `user-douban`, `attack-beta`, `attack-k`,
        `attack-epsilon` or `attack-m`.
    rng : int, optional
        A seed: the same seed gives the same tables. None draws one, and the manifest says which.
    quick : bool, default False
        Fewer points, seeds and targets.
    data : str, optional
        A catalogue name or a path to use instead of the data of the paper. None takes those, or the bundled
        ratings where they are not at hand, and the figure says so.
    keep : path, optional
        A folder that finished points are kept in, and taken from: a run that was stopped goes on there.
    threads : int, optional
        How many threads to use; None for as many as there are cores.
    progress : bool, optional
        Show a bar on standard error; None for a terminal only.

    Examples
    --------
    >>> import goodfence as gf
    >>> figure = gf.reproduce("user-movielens", rng=7, quick=True, data="movietweetings")
    >>> figure.claims[0].number, figure.claims[0].verdict
    (1, 'holds')
    """
    run = _Run.of(rng, quick, data, keep, threads)
    experiment = run.experiment(figure)
    with bar(figure, experiment.n_points, show=progress) as advance:
        return run.figure(experiment, advance)


@checked
def reproduce_all(
    *,
    rng: int | None = None,
    quick: bool = False,
    data: str | None = None,
    keep: str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Reproduction:
    """Draw all seven figures of the paper again, and judge its fourteen claims.

    Parameters
    ----------
    rng, quick, data, keep, threads, progress
        As in `reproduce`.
    """
    started = time.perf_counter(), time.process_time()
    run = _Run.of(rng, quick, data, keep, threads)
    experiments = [run.experiment(name) for name in ORDER]
    others = run.other_claims(experiments)
    n_steps = sum(experiment.n_points for experiment in experiments) + len(others)
    with bar("figures and claims", n_steps, show=progress) as advance:
        figures = tuple(run.figure(experiment, advance) for experiment in experiments)
        claims = list(claims_of_figures({one.definition.id: one.counted for one in figures}))
        for judge in others:
            claims.append(judge())
            advance(1)
    manifest = {**run.stated(), **_taken(*started), "figures": [one.manifest for one in figures]}
    return Reproduction(figures=figures, claims=tuple(claims), manifest=manifest)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _Run:
    """The settings that all figures of a run share."""

    rng: int
    quick: bool
    sources: Sources
    keep: Path | None
    threads: int | None

    @classmethod
    def of(
        cls,
        rng: int | None,
        quick: bool,
        data: str | None,
        keep: str | PathLike[str] | None,
        threads: int | None,
    ) -> _Run:
        seed = secrets.randbits(32) if rng is None else rng
        valid = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
        require(valid, "rng", "None, or an integer of at least 0", rng)
        return cls(
            rng=seed,
            quick=quick,
            sources=Sources(data),
            keep=None if keep is None else Path(keep),
            threads=threads,
        )

    @property
    def n_targets(self) -> int:
        return QUICK_TARGETS if self.quick else N_TARGETS

    def experiment(self, name: str) -> Experiment:
        definition, ratings = self.sources.figure(name, quick=self.quick)
        return Experiment(
            definition=definition,
            ratings=ratings,
            n_seeds=QUICK_SEEDS if self.quick else N_SEEDS,
            n_targets=self.n_targets,
            rng=self.rng,
            threads=self.threads,
            keep=self.keep,
        )

    def figure(self, experiment: Experiment, advance: Advance) -> Figure:
        started = time.perf_counter(), time.process_time()
        definition, points, n_computed = experiment.definition, [], 0
        for x, seed, table, computed in experiment.points():
            points.append((x, seed, table))
            n_computed += computed
            advance(1)
        counted = Counted(definition, Sums.of(points), experiment.ratings.scale)
        manifest = {
            **self.stated(),
            **_stated(experiment),
            "points": experiment.n_points,
            "points_computed": n_computed,
            **_taken(*started),
        }
        return Figure(
            definition=definition,
            table=tidy(definition, points),
            summary=summary(definition, counted.sums),
            claims=claims_of_figures({definition.id: counted}),
            manifest=manifest,
            counted=counted,
        )

    def other_claims(self, experiments: list[Experiment]) -> list[Callable[[], Claim]]:
        """Return what judges claims 10 to 14, by the ratings of the figures."""
        by_name = {one.definition.id: one for one in experiments}
        ratings = by_name["attack-m"].ratings
        seed, n_targets = [self.rng, 0], self.n_targets
        settings: dict[str, tuple[Any, Axis]] = {
            name: (by_name[name].ratings, by_name[name].definition.axis) for name in WITHOUT_ATTACK
        }
        return [
            lambda: allocation_is_optimal(ratings, seed),
            lambda: manly_is_good(ratings, seed),
            lambda: partition_one(ratings, seed, n_targets),
            lambda: second_half_is_zero(settings, seed, _LISTS),
            lambda: fakes_needed(ratings, seed, n_targets),
        ]

    def stated(self) -> dict[str, Any]:
        return {"goodfence": goodfence.__version__, "seed": self.rng, "quick": self.quick}


def _stated(experiment: Experiment) -> dict[str, Any]:
    definition = experiment.definition
    last = definition.values[-1]
    return {
        "figure": definition.id,
        "protocol": definition.protocol,
        "axis": definition.axis,
        "data": definition.data,
        "note": definition.note,
        "ratings": experiment.checksum,
        "shape": list(experiment.ratings.shape),
        "scale": dataclasses.asdict(experiment.ratings.scale),
        "seeds": [experiment.seed(number) for number in range(experiment.n_seeds)],
        "targets": experiment.n_targets,
        "x": definition.x,
        "values": list(definition.values),
        "fixed": dict(definition.fixed),
        "series_at_last_x": {
            name: settings_of(definition.mechanism(name, last)) for name in definition.series
        },
        "interpretation": dataclasses.asdict(experiment.interpretation),
    }


def _taken(wall: float, cpu: float) -> dict[str, float]:
    return {
        "seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure:
    """One figure of the paper, drawn again."""

    definition: Definition
    table: pa.Table
    """(figure, series, x, seed, metric, value): the same for the same seed, byte for byte."""
    summary: pa.Table
    """(figure, series, x, metric, value, low, high, targets): over all seeds, with 95% bands."""
    claims: tuple[Claim, ...]
    """The claims that this figure alone can judge."""
    manifest: Mapping[str, Any]
    counted: Counted

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{claim.number} {claim.verdict}" for claim in self.claims)
        return f"Figure({self.definition.id}: {self.table.num_rows:,} values; claims: {verdicts})"

    def chart(self) -> altair.VConcatChart:
        """Return the chart."""
        from goodfence.reproduction.figure_charts import figure_chart

        return figure_chart(self.chart_spec())

    def chart_spec(self) -> dict[str, Any]:
        """Return the chart as a Vega-Lite specification."""
        from goodfence.reproduction.figure_charts import figure_spec

        return figure_spec(self.definition, self.summary, self.manifest)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write tables (parquet, csv), charts (PNG, SVG, HTML), claims and manifest to `folder`."""
        from goodfence.report.charts import chart_files

        place = Path(folder)
        for name, table in (("table", self.table), ("summary", self.summary)):
            with atomic_write(place / f"{name}.parquet") as file:
                pq.write_table(table, file, compression="zstd")
            with atomic_write(place / f"{name}.csv") as file:
                pa_csv.write_csv(table, file)
        for name, content in chart_files(self.chart_spec()).items():
            with atomic_write(place / name) as file:
                file.write(content)
        _save_claims(place, self.claims, self.manifest)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reproduction:
    """All figures of the paper and all its claims."""

    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    """The fourteen claims, judged by all figures together."""
    manifest: Mapping[str, Any]

    def __repr__(self) -> str:
        verdicts = [claim.verdict for claim in self.claims]
        told = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
        return f"Reproduction({len(self.figures)} figures, {len(self.claims)} claims: {told})"

    def save(self, folder: str | PathLike[str]) -> None:
        """Write every figure to a folder of its own in `folder`, and the claims beside them."""
        place = Path(folder)
        for figure in self.figures:
            figure.save(place / figure.definition.id)
        _save_claims(place, self.claims, self.manifest)


def _save_claims(folder: Path, claims: Sequence[Claim], manifest: Mapping[str, Any]) -> None:
    write_json(folder / "claims.json", {"claims": [claim.to_dict() for claim in claims]})
    write_json(folder / "manifest.json", manifest)
