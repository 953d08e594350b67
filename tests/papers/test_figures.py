"""A figure run: repeatable to the byte, resumable, and saved whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import goodfence as gf
from goodfence.errors import SettingError
from goodfence.papers.reproduction.claims import Counted, claims_of_figures
from goodfence.papers.reproduction.definition import definition
from goodfence.papers.reproduction.figures import Panel, _view
from goodfence.papers.reproduction.runs import Experiment, Sums, tidy

RUN = {"rng": 7, "quick": True, "data": "movietweetings"}


def experiment(keep: Path | None, rng: int = 7) -> Experiment:
    figure = definition("attack-beta", bundled=True, quick=True)
    return Experiment(
        definition=replace(figure, values=(1, 7)),
        ratings=gf.load("movietweetings"),
        n_seeds=2,
        n_targets=15,
        rng=rng,
        keep=keep,
    )


def test_a_run_that_was_stopped_goes_on_and_gives_the_same(tmp_path: Path) -> None:
    whole = [(x, seed, table) for x, seed, table, _ in experiment(None).points()]
    for count, _ in enumerate(experiment(tmp_path).points()):
        if count == 1:  # as if interrupted in the middle
            break
    resumed = list(experiment(tmp_path).points())
    assert [computed for *_, computed in resumed] == [False, False, True, True]
    again = list(experiment(tmp_path).points())
    assert not any(computed for *_, computed in again)
    figure = experiment(None).definition
    for run in (resumed, again):
        assert tidy(figure, [point[:3] for point in run]).equals(tidy(figure, whole))


def test_a_point_that_is_not_whole_is_computed_again(tmp_path: Path) -> None:
    list(experiment(tmp_path).points())
    damaged = sorted(tmp_path.glob("*.parquet"))[0]
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert [computed for *_, computed in experiment(tmp_path).points()].count(True) == 1


def test_another_seed_or_another_number_of_targets_is_another_point(tmp_path: Path) -> None:
    list(experiment(tmp_path).points())
    assert all(computed for *_, computed in experiment(tmp_path, rng=8).points())
    fewer = replace(experiment(tmp_path), n_targets=14)
    assert all(computed for *_, computed in fewer.points())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figure")
    gf.papers.reproduce("user-movielens", **RUN, threads=2).save(folder)  # type: ignore[arg-type]  # mixed kinds
    return folder


@pytest.mark.slow
def test_the_same_seed_gives_the_same_tables_byte_for_byte(saved: Path, tmp_path: Path) -> None:
    gf.papers.reproduce("user-movielens", **RUN, threads=1).save(tmp_path)  # type: ignore[arg-type]  # mixed kinds
    for name in ("table.parquet", "table.csv", "summary.parquet", "summary.csv", "claims.json"):
        assert (saved / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_the_tidy_table_has_one_line_for_each_number(saved: Path) -> None:
    table = pq.read_table(saved / "table.parquet")
    assert table.column_names == ["figure", "series", "x", "seed", "metric", "value"]
    keys = table.drop_columns(["value"]).to_pylist()
    assert len({tuple(line.values()) for line in keys}) == table.num_rows
    assert set(table["metric"].to_pylist()) >= {"mae", "coverage", "mae_common"}
    lines = (saved / "table.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == table.num_rows + 1


def test_a_value_of_the_table_is_the_papers_protocol_with_that_seed(saved: Path) -> None:
    lines = pq.read_table(saved / "table.parquet").to_pylist()
    [value] = [
        line["value"]
        for line in lines
        if (line["series"], line["x"], line["seed"], line["metric"]) == ("PPNS", 4.0, 1, "mae")
    ]
    films = gf.load("movietweetings")
    mechanism = gf.PPNS(k=100, beta=4, sensitivity=gf.Sensitivity(scope="pair"))
    scores = gf.papers.paper_protocol(films, mechanism, targets=100, rng=[7, 1])
    assert value == pytest.approx(scores.mae, rel=1e-12)


def test_the_manifest_says_what_was_run(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["goodfence"] == gf.__version__
    assert manifest["seed"] == 7
    assert manifest["data"] == "movietweetings"
    assert re.fullmatch("[0-9a-f]{64}", manifest["ratings"])
    assert manifest["seconds"] > 0
    assert manifest["series_at_last_x"]["PPNS"]["beta"] == 9
    assert manifest["series_at_last_x"]["PPNS"]["sensitivity"]["scope"] == "pair"
    assert "NOT from MovieLens" in manifest["note"]


def test_the_charts_are_pictures_and_a_page_that_needs_no_network(saved: Path) -> None:
    assert (saved / "chart.png").read_bytes().startswith(b"\x89PNG")
    svg = (saved / "chart.svg").read_text(encoding="utf-8")
    assert "MovieTweetings" in svg
    assert "NOT from MovieLens" in svg
    page = (saved / "chart.html").read_text(encoding="utf-8")
    assert "vegaEmbed" in page
    assert not re.search(r"<(script|link)[^>]*(src|href)=[\"']?(https?:)?//", page)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["user-movielens", "attack-epsilon"])
def test_a_chart_shows_the_paper_and_what_leaks(name: str) -> None:
    figure = gf.papers.reproduce(name, **RUN)  # type: ignore[arg-type]  # mixed kinds
    spec = figure.chart().to_dict()
    [panels] = [row["hconcat"] for row in spec["vconcat"]]
    headings = [panel["title"]["text"] for panel in panels]
    if figure.definition.protocol == "attack":
        assert headings == ["MAE of the fake: LOW is bad", "Recovery: HIGH is bad", "Advantage: HIGH is bad"]
        assert "LOW is bad" in figure.definition.caption
        assert "targets with more than 8 ratings" in spec["title"]["subtitle"][0]
        assert "other people" in figure.definition.caption
    else:
        assert len(headings) == 2
    for panel in panels:  # intervals beside each other, not over each other
        rules = [layer["mark"] for layer in panel["layer"] if layer["mark"]["type"] == "rule"]
        assert len({mark["xOffset"] for mark in rules}) == len(rules) >= 2
    legends = [layer["encoding"]["color"]["legend"] for panel in panels for layer in panel["layer"]]
    assert all(legend == legends[0] for legend in legends)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["user-movielens", "attack-epsilon"])
def test_the_neutral_chart_has_the_papers_measure_and_methods_and_no_comment(name: str) -> None:
    figure = gf.papers.reproduce(name, **RUN)  # type: ignore[arg-type]  # mixed kinds
    spec = figure.paper_spec()
    [view] = spec["vconcat"]
    assert {line["metric"] for line in spec["data"]["values"]} == {"mae"}
    [domain] = {tuple(layer["encoding"]["color"]["scale"]["domain"]) for layer in view["layer"]}
    assert set(domain) == {"kNN", "nPNS", "PNCF", "PPNS"}
    assert {layer["mark"]["type"] for layer in view["layer"]} == {"line", "point"}
    assert "bad" not in json.dumps(spec)


def test_alpha_and_beta_are_metrics_of_every_method(saved: Path) -> None:
    lines = pq.read_table(saved / "summary.parquet").to_pylist()
    found = {(one["series"], one["x"], one["metric"]): one["value"] for one in lines}
    for x in (1.0, 4.0, 9.0):
        assert found["PPNS", x, "beta"] == x
        assert found["kNN", x, "beta"] == 1
        assert found["nPNS", x, "beta"] > 9
        assert found["kNN", x, "alpha"] >= found["PPNS", x, "alpha"] > found["nPNS", x, "alpha"]
    assert found["kNN", 1.0, "alpha"] == found["PPNS", 1.0, "alpha"]


def test_a_wrong_seed_is_refused() -> None:
    with pytest.raises(SettingError, match="rng must be None, or an integer of at least 0"):
        gf.papers.reproduce("attack-m", rng=-1)


def test_small_data_leaves_out_points_and_the_claims_that_need_them() -> None:
    small = gf.synthetic(users=230, items=40, ratings=3_000, rng=7)
    figure = definition("user-movielens").fitted(small)
    assert figure.judged == (1,)
    points = Experiment(definition=figure, ratings=small, n_seeds=1, n_targets=10, rng=7).points()
    counted = Counted(figure, Sums.of([point[:3] for point in points]), small.scale)
    assert claims_of_figures({figure.id: counted}) == ()


def test_a_panel_is_of_its_metric_and_has_a_line_and_points_for_each_series() -> None:
    figure = definition("attack-beta", bundled=True, quick=True)
    view = _view(figure, Panel("mae", "MAE of the fake", "MAE", ("kNN", "PPNS")))
    assert view["title"]["text"] == "MAE of the fake"
    chosen = {"field": "series", "oneOf": ["kNN", "PPNS"]}
    assert view["transform"] == [{"filter": "datum.metric === 'mae'"}, {"filter": chosen}]
    marks = [layer["mark"]["type"] for layer in view["layer"]]
    assert marks == ["rule", "line", "point"] * 2


def test_there_is_a_point_for_each_value_and_each_seed() -> None:
    assert experiment(None).n_points == 2 * 2
    assert replace(experiment(None), n_seeds=3).n_points == 2 * 3
