"""The picture of the frontier: the advantage upwards, a letter in each mark, outliers in their strip."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from goodfence.auditing.frontier import Frontier
from goodfence.report.charts import FILE, NARROW, WIDE, Theme, chart_files
from goodfence.report.frontier_chart import LETTERS, Plane, beyond, farthest_in_place, frontier_chart, frontier_spec
from tests.support.frontiers import known_frontier, point

HOSTILE = "</script><script>document.title = 'ran'</script>"


def with_outlier() -> Frontier:
    found = known_frontier()
    far = point("PNCF", "k=50, ε=1", 3.0, (0.48, 0.40, 0.56), status="refuted")
    return replace(found, points=(*found.points, far))


def texts(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the row of every label, by its words."""
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    return {row["text"]: row for layer in layers for row in layer["data"]["values"]}


def marks(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the marks."""
    layer = next(one for one in spec["layer"] if "shape" in one["encoding"])
    rows: list[dict[str, Any]] = layer["data"]["values"]
    return rows


def test_every_guarantee_has_a_shape_of_its_own() -> None:
    layers = frontier_spec(known_frontier())["layer"]
    shape = next(layer["encoding"]["shape"] for layer in layers if "shape" in layer["encoding"])
    assert shape["scale"]["domain"] == ["guarantee proved", "guarantee refuted", "no guarantee"]
    assert len(set(shape["scale"]["range"])) == 3


@pytest.mark.parametrize("theme", [FILE, WIDE, NARROW], ids=lambda theme: theme.name)
def test_every_mark_has_its_letter_in_it_or_above_a_group(theme: Theme) -> None:
    found = known_frontier()
    layers = [one for one in frontier_spec(found, theme)["layer"] if one["mark"]["type"] == "text"]
    rows = [row for one in layers for row in one["data"]["values"] if "mae" in row]
    letters = {letter for row in rows for letter in row["text"].split() if len(letter) == 1}
    assert letters == set(LETTERS[: len(found.points)])
    for letter, point_ in zip(LETTERS, found.points, strict=False):
        alone = [row for row in rows if row["text"] == letter]
        if alone:
            place = (point_.mae, point_.advantage.value)
            assert (alone[0]["mae"], alone[0]["share"]) == pytest.approx(place)


def test_marks_that_overlap_share_a_label() -> None:
    points = [point("kNN", f"k={k}", 0.7 + k / 1e6, (0.5, 0.4, 0.6)) for k in (3, 2, 1)]
    found = replace(known_frontier(), points=(*points, point("PPNS", "", 0.9, (0.1, 0.0, 0.2))))
    told = texts(frontier_spec(found))
    assert {"C B A", "D"} <= set(told)


def test_a_file_says_beside_the_chart_what_the_letters_mean() -> None:
    found = known_frontier()
    told = texts(frontier_spec(found))
    for one in found.points:
        assert {f"{one.family} {one.label}".strip(), f"{one.mae:.3f}", one.status} <= set(told)
    assert told["kNN k=50"]["down"] == told["A"].get("down", told["kNN k=50"]["down"])
    assert "kNN k=50" not in texts(frontier_spec(found, WIDE))  # a page has its own table


@pytest.mark.slow
def test_the_chart_is_one_that_altair_takes() -> None:
    assert frontier_chart(known_frontier()).to_dict()["width"] == 860
    alone = replace(known_frontier(), points=known_frontier().points[:1])
    assert frontier_chart(alone).to_dict()["layer"]


def test_upwards_is_the_advantage() -> None:
    found = known_frontier()
    spec = frontier_spec(found)
    told = [row["share"] for row in marks(spec)]
    assert told == pytest.approx([one.advantage.value for one in found.points])
    assert [row["mae"] for row in marks(spec)] == pytest.approx([one.mae for one in found.points])
    assert "given away (down is better)" in spec["layer"][0]["encoding"]["y"]["title"]
    zero = spec["layer"][0]["data"]["values"][0]
    assert zero["share"] == 0.0
    assert "nothing given away" in texts(spec)


@pytest.mark.parametrize(
    ("errors", "farthest"),
    [
        ([0.7, 0.71, 0.75, 3.0], 0.75),
        ([0.7, 0.71, 0.75, 2.9, 3.0], 3.0),  # two of five are no outliers
        ([0.7, 0.71, 0.72, 0.73, 0.75, 2.9, 3.0], 0.75),
        ([0.7, 0.701, 0.9], 0.9),  # near each other, whatever the gaps
        ([0.7, 3.0], 3.0),
        ([0.7], 0.7),
    ],
)
def test_what_is_far_from_all_others(errors: list[float], farthest: float) -> None:
    assert farthest_in_place(errors) == farthest


@pytest.mark.parametrize("theme", [FILE, WIDE, NARROW], ids=lambda theme: theme.name)
def test_an_outlier_does_not_squeeze_the_rest(theme: Theme) -> None:
    found = with_outlier()
    plane = Plane(found, theme)
    places = [(plane.place(one)["mae"] - plane.x[0]) * plane.scales[0] for one in found.points]
    assert max(places[:-1]) - min(places[:-1]) > 0.6 * theme.width
    assert max(places[:-1]) < places[-1] < theme.width
    spec = frontier_spec(found, theme)
    ticks = spec["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert 2 <= len(ticks) <= 8
    assert max(ticks) < 0.8  # no number stands where the strip is not to scale
    assert "3.00" in texts(spec)
    assert [one.label for one in beyond(found)] == ["k=50, ε=1"]
    assert beyond(known_frontier()) == []


def test_the_words_say_what_is_not_to_scale() -> None:
    subtitle = " ".join(frontier_spec(with_outlier())["title"]["subtitle"])
    assert "At the right edge, not to scale: PNCF k=50, ε=1: 3.00." in subtitle
    assert "not to scale" not in " ".join(frontier_spec(known_frontier())["title"]["subtitle"])


def test_a_model_without_answers_is_in_the_strip() -> None:
    found = known_frontier()
    silent = replace(found.points[0], family="silent", mae=math.nan)
    spec = frontier_spec(replace(found, points=(*found.points, silent)))
    assert "no answers" in texts(spec)


def test_the_chart_names_its_data_and_how_much_is_known() -> None:
    found = known_frontier()
    named = replace(found, settings={**found.settings, "data": "MovieLens 100K"})
    first = frontier_spec(named)["title"]["subtitle"][0]
    assert first.startswith("MovieLens 100K, about 943 users, 1,682 items.")
    assert "8 known ratings of each target" in first


@pytest.mark.parametrize("theme", [FILE, WIDE, NARROW], ids=lambda theme: theme.name)
def test_a_reference_is_a_line_with_its_name(theme: Theme) -> None:
    found = known_frontier()
    stated = {"name": "best unprotected model", "mae": 0.66}
    spec = frontier_spec(replace(found, settings={**found.settings, "reference": stated}), theme)
    dashed_lines = [one for one in spec["layer"] if "strokeDash" in one["mark"]]
    assert [one["data"]["values"][0]["mae"] for one in dashed_lines] == [0.66]
    assert ("best unprotected model: 0.660" in texts(spec)) == (theme is not NARROW)


@pytest.mark.slow
def test_a_name_never_runs_as_a_script() -> None:
    found = known_frontier()
    hostile = replace(found.points[0], family=HOSTILE, label="<img src=x onerror=alert(1)>")
    found = replace(found, points=(hostile, *found.points[1:]))
    html = chart_files(frontier_spec(found))["chart.html"].decode()
    assert "<script>document.title" not in html
    assert "<img src=x" not in html
    assert len(re.findall(r"</script>", html)) == len(re.findall(r"<script", html))
    assert "\\u003c/script>\\u003cscript>document.title" in html  # the name itself is kept
    shown = found._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
