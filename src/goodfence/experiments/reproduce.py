"""`reproduce`: a figure of the paper, or all of them with a verdict on every claim."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import goodfence
from goodfence.engines.local.candidates import Axis
from goodfence.engines.progress import Advance, bar
from goodfence.errors import require
from goodfence.experiments.claims.counted import Counted
from goodfence.experiments.claims.of_figures import WITHOUT_ATTACK, claims_of_figures
from goodfence.experiments.claims.of_formulas import allocation_is_optimal, manly_is_good
from goodfence.experiments.claims.of_lists import fakes_needed, partition_one, second_half_is_zero
from goodfence.experiments.claims.verdict import Claim
from goodfence.experiments.definition import ORDER
from goodfence.experiments.figure import Figure, Reproduction
from goodfence.experiments.points import Experiment
from goodfence.experiments.sources import Sources
from goodfence.experiments.tables import summary, sums_of, tidy
from goodfence.selection.settings import settings_of

N_SEEDS, N_TARGETS = 5, 200
QUICK_SEEDS, QUICK_TARGETS = 2, 100
_LISTS = 2_000
"""Of so many rows at most the second half of the list is looked at: all of MovieLens."""


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
    figure
        Its name: `item-movielens`, `user-movielens`, `user-douban`, `attack-beta`, `attack-k`,
        `attack-epsilon` or `attack-m`.
    rng
        A seed: the same seed gives the same tables. None draws one, and the manifest says which.
    quick
        Fewer points, seeds and targets.
    data
        A catalogue name or a path to use instead of the data of the paper. None takes those, or the bundled
        ratings where they are not at hand, and the figure says so.
    keep
        A folder that finished points are kept in, and taken from: a run that was stopped goes on there.
    threads
        How many threads to use; None for as many as there are cores.
    progress
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
        whole = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
        require(whole, "rng", "None, or an integer of at least 0", rng)
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
        counted = Counted(definition, sums_of(definition, points), experiment.ratings.scale)
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
        "reading": dict(experiment.reading.settings),
    }


def _taken(wall: float, cpu: float) -> dict[str, float]:
    return {
        "seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }
