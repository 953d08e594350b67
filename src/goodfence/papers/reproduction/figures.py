"""`reproduce`: a figure of the paper with its chart, or all of them with a verdict on every claim."""

from __future__ import annotations

import json
import secrets
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import goodfence
from goodfence.data.files import atomic_write
from goodfence.errors import require
from goodfence.neighbours.candidate_lists import Axis
from goodfence.papers.reproduction.claims import WITHOUT_ATTACK, Claim, Counted, claims_of_figures
from goodfence.papers.reproduction.definition import COMPARED, LARGEST_RS, ORDER, Definition, Sources
from goodfence.papers.reproduction.list_claims import (
    allocation_is_optimal,
    differentially_private,
    fakes_needed,
    fakes_to_cover,
    largest_alpha,
    manly_is_good,
    partition_one,
    second_half_is_zero,
)
from goodfence.papers.reproduction.runs import Experiment, Sums, summary, tidy
from goodfence.parallel import Advance, bar
from goodfence.report.charts import FONT, SCHEMA, Spec, as_altair, chart_files
from goodfence.report.serialize import write_json
from goodfence.settings import checked, place

if TYPE_CHECKING:
    import altair

N_SEEDS, N_TARGETS = 5, 200
_QUICK = 2, 100
"""How many seeds and targets a quick run has."""
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
    >>> figure = gf.papers.reproduce("user-movielens", rng=7, quick=True, data="movietweetings")
    >>> figure.claims[0].number, figure.claims[0].verdict
    (1, 'holds')
    """
    run = _Run(rng, quick, data, keep, threads)
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
    """Draw all seven figures of the paper again, and judge its sixteen claims; parameters as in `reproduce`."""
    started = time.perf_counter(), time.process_time()
    run = _Run(rng, quick, data, keep, threads)
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


class _Run:
    """The settings that all figures of a run share."""

    def __init__(self, rng: int | None, quick: bool, data: str | None, keep: Any, threads: int | None) -> None:
        self.rng = secrets.randbits(32) if rng is None else rng
        require(self.rng >= 0, "rng", "None, or an integer of at least 0", rng)
        self.sources, self.quick = Sources(data), quick
        self.n_seeds, self.n_targets = _QUICK if quick else (N_SEEDS, N_TARGETS)
        self._how: dict[str, Any] = {"threads": threads, "keep": None if keep is None else Path(keep)}

    def experiment(self, name: str) -> Experiment:
        definition, ratings = self.sources.figure(name, quick=self.quick)
        size: dict[str, Any] = {"n_seeds": self.n_seeds, "n_targets": self.n_targets}
        return Experiment(definition=definition, ratings=ratings, rng=self.rng, **size, **self._how)

    def figure(self, experiment: Experiment, advance: Advance) -> Figure:
        started = time.perf_counter(), time.process_time()
        definition, points, n_computed = experiment.definition, [], 0
        for x, seed, table, computed in experiment.points():
            points.append((x, seed, table))
            n_computed += computed
            advance(1)
        counted = Counted(definition, Sums.of(points), experiment.ratings.scale)
        counts = {"points": experiment.n_points, "points_computed": n_computed}
        manifest = {**self.stated(), **experiment.stated(), **counts, **_taken(*started)}
        return Figure(
            definition=definition,
            table=tidy(definition, points),
            summary=summary(definition, counted.sums),
            claims=claims_of_figures({definition.id: counted}),
            manifest=manifest,
            counted=counted,
        )

    def other_claims(self, experiments: list[Experiment]) -> list[Callable[[], Claim]]:
        """Return what judges claims 10 to 16, by the ratings of the figures."""
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
            lambda: fakes_to_cover(ratings, seed, n_targets),
            lambda: fakes_needed(ratings, seed, n_targets),
            lambda: largest_alpha(settings, ratings, seed, n_targets),
            differentially_private,
        ]

    def stated(self) -> dict[str, Any]:
        return {"goodfence": goodfence.__version__, "seed": self.rng, "quick": self.quick}


def _taken(wall: float, cpu: float) -> dict[str, float]:
    return {"seconds": round(time.perf_counter() - wall, 2), "cpu_seconds": round(time.process_time() - cpu, 2)}


@dataclass(frozen=True, eq=False, kw_only=True)
class _Judged:
    claims: tuple[Claim, ...]
    """A figure has those that it alone can judge; a reproduction all sixteen, two of them in two parts."""
    manifest: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return claims and manifest as plain values."""
        return {"claims": [one.to_dict() for one in self.claims], "manifest": dict(self.manifest)}

    def _save_claims(self, folder: Path) -> None:
        told = self.to_dict()
        write_json(folder / "claims.json", {"claims": told["claims"]})
        write_json(folder / "manifest.json", told["manifest"])


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure(_Judged):
    """One figure of the paper, drawn again."""

    definition: Definition
    table: pa.Table
    """(figure, series, x, seed, metric, value): the same for the same seed, byte for byte."""
    summary: pa.Table
    """(figure, series, x, metric, value, low, high, targets): over all seeds, with 95% intervals."""
    counted: Counted

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{claim.label} {claim.verdict}" for claim in self.claims)
        return f"Figure({self.definition.id}: {self.table.num_rows:,} values; claims: {verdicts})"

    def chart(self) -> altair.VConcatChart:
        """Return the chart."""
        chart: altair.VConcatChart = as_altair(self.chart_spec(), "VConcatChart")
        return chart

    def chart_spec(self) -> Spec:
        """Return the chart as a Vega-Lite specification: one panel for each measure, one legend for all."""
        definition = self.definition
        panels = _ATTACK if definition.protocol == "attack" else _PAPER
        metrics = pa.array(sorted({panel.metric for panel in panels}))
        rows = self.summary.filter(pc.is_in(self.summary["metric"], metrics)).to_pylist()
        views = [_view(definition, panel) for panel in panels]
        views[0]["layer"][-1]["params"] = [_CHART["picked"]]  # one legend serves all panels
        letters = _LETTERS[len(panels)]
        n_users, n_items = self.manifest["shape"]
        of_whom = f" with more than {known} ratings" if (known := definition.most_known) else ""
        what = (
            f"{definition.data}: {n_users:,} users x {n_items:,} items; {len(self.manifest['seeds'])} seeds x "
            f"{self.manifest['targets']} targets{of_whom} a point; upright lines: 95% over targets"
        )
        subtitle = [what, *textwrap.wrap(definition.note, letters)]
        caption = {"text": textwrap.wrap(definition.caption, letters), **_CHART["caption"]}
        title = {"text": definition.title, "subtitle": subtitle, **_CHART["heading"]}
        return _spec(rows, title, {"hconcat": views, "spacing": 28, "title": caption})

    def paper_spec(self) -> Spec:
        """Return the chart as the paper has it: its caption, its measure, its four methods, and no comment."""
        metric = pc.equal(self.summary["metric"], _AS_PRINTED.metric)
        view = _view(self.definition, _AS_PRINTED, plain=True)
        view["layer"][-1]["params"] = [_CHART["picked"]]
        view |= {"width": 460, "height": 320, "title": None}
        title = {"text": self.definition.title, **_CHART["printed"]}
        return _spec(self.summary.filter(metric).to_pylist(), title, view)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write tables (parquet, csv), charts (PNG, SVG, HTML; `paper` is neutral), claims and manifest to `folder`."""
        target = place(folder, "folder")
        for name, table in (("table", self.table), ("summary", self.summary)):
            with atomic_write(target / f"{name}.parquet") as file:
                pq.write_table(table, file, compression="zstd")
            with atomic_write(target / f"{name}.csv") as file:
                pa_csv.write_csv(table, file)
        for stem, spec in (("chart", self.chart_spec()), ("paper", self.paper_spec())):
            for name, content in chart_files(spec).items():
                with atomic_write(target / name.replace("chart", stem)) as file:
                    file.write(content)
        self._save_claims(target)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reproduction(_Judged):
    """All figures of the paper and all its claims."""

    figures: tuple[Figure, ...]

    def __repr__(self) -> str:
        verdicts = [claim.verdict for claim in self.claims]
        told = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
        return f"Reproduction({len(self.figures)} figures, {len(self.claims)} claims: {told})"

    def save(self, folder: str | PathLike[str]) -> None:
        """Write every figure to a folder of its own in `folder`, and the claims beside them."""
        target = place(folder, "folder")
        for figure in self.figures:
            figure.save(target / figure.definition.id)
        self._save_claims(target)


_CHART: Spec = json.loads((files("goodfence.papers.reproduction") / "definitions" / "chart.json").read_text("utf-8"))
"""How charts look. The series are in the order of drawing, in Okabe and Ito's colours, which the colour-blind can tell
apart; each has a mark of its own, and stands `beside` the others by so many pixels."""
_LETTERS = {2: 118, 3: 185}
"""How many letters of a caption fit below 2 or 3 panels."""


class Panel(NamedTuple):
    """One panel: a metric, its heading, the title of its axis, and the series that are drawn."""

    metric: str
    heading: str
    axis: str
    series: tuple[str, ...] = COMPARED


_PAPER = (Panel("mae", "All methods", "MAE"), Panel("mae", "PNCF by the scope of RS", "MAE", ("PNCF", LARGEST_RS)))
_ATTACK = (
    Panel("mae", "MAE of the fake: LOW is bad", "MAE", (*COMPARED, LARGEST_RS)),
    Panel("recovery", "Recovery: HIGH is bad", "hidden ratings found out"),
    Panel("advantage", "Advantage: HIGH is bad", "hidden ratings leaked"),
)
_AS_PRINTED = Panel("mae", "", "MAE")
"""The panel of the neutral chart."""


def _view(definition: Definition, panel: Panel, *, plain: bool = False) -> Spec:
    """Return one panel: for each series a line, points and intervals; a `plain` one has no intervals."""
    shown = panel.series if plain else _CHART["looks"]
    looks = {name: one for name, one in _CHART["looks"].items() if name in shown}
    values = [float(value) for value in definition.values]
    x = {
        **{"field": "x", "type": "quantitative", "title": definition.label},
        "scale": {"type": definition.scale, **_CHART["x scale"]},
        "axis": {"values": values, **_CHART["x axis"]},
    }
    y = {
        **{"type": "quantitative", "title": panel.axis},
        "scale": {"zero": definition.protocol == "attack", "nice": True},
        "axis": {"format": "%" if panel.metric in ("recovery", "advantage") else "~g"},
    }
    colour = _coded({name: one["colour"] for name, one in looks.items()})
    shared = {"x": x, "y": {**y, "field": "value"}, "color": colour, "opacity": _CHART["shown"]}
    between = {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    titles = {"value": panel.metric, "low": "95% from", "high": "to"}
    tooltip: list[Spec] = [
        {"field": "series", "type": "nominal", "title": "method"},
        {"field": "x", "type": "quantitative", "title": definition.x},
        *({"field": name, "type": "quantitative", "title": title, "format": ".4f"} for name, title in titles.items()),
    ]
    shape = _coded({name: one["shape"] for name, one in looks.items()})
    points, layers = {**shared, "shape": shape, "tooltip": tooltip}, []
    for name in panel.series:
        look, only = looks[name], [{"filter": f"datum.series === '{name}'"}]
        width, dash = look.get("width", 2), look.get("dash", [1, 0])
        line = {"type": "line", "strokeWidth": width, "strokeDash": dash}
        marks = [(_CHART["interval"], between), (line, shared), (_CHART["point"], points)]
        for mark, encoding in marks[1:] if plain else marks:
            beside = {**mark, "xOffset": 0 if plain else look["beside"]}
            layers.append({"transform": only, "mark": beside, "encoding": encoding})
    return {
        "width": 330,
        "height": 290,
        "title": {"text": panel.heading, **_CHART["panel"]},
        "transform": [
            {"filter": f"datum.metric === '{panel.metric}'"},
            {"filter": {"field": "series", "oneOf": list(panel.series)}},
        ],
        "layer": layers,
    }


def _coded(codes: Mapping[str, str]) -> Spec:
    legend = {**_CHART["legend"], "columns": len(codes)}
    scale = {"domain": list(codes), "range": list(codes.values())}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend}


def _spec(rows: list[Any], title: Spec, view: Spec) -> Spec:
    config = {"font": FONT, **_CHART["config"]}
    head = {"$schema": SCHEMA, "config": config, "data": {"values": rows}}
    return {**head, "title": title, "vconcat": [view]}
