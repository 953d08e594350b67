"""`frontier`: what is compared, what is recommended, what is drawn and saved."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from goodfence.attack.knn_attack import CoverAttack, KNNAttack
from goodfence.attack.scoring import Estimate
from goodfence.auditing.audit import leak
from goodfence.auditing.compared import Compared, default_list, family_of, label_of
from goodfence.auditing.frontier import Frontier, frontier
from goodfence.auditing.frontier_chart import chart_spec, family_colours
from goodfence.auditing.frontier_point import FrontierPoint, applied, strongest
from goodfence.auditing.label_places import Box, LabelPlaces, Place, box_of
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, FileProblem, SettingError
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private_cf import PrivateCF
from goodfence.models.private_means import PrivateMeans
from goodfence.selection.knn import KNN
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS


def point(
    family: str, label: str, mae: float, advantage: tuple[float, float, float], **other: Any
) -> FrontierPoint:
    recovered = 0.37 + advantage[0]
    plain: dict[str, Any] = {
        "promise": "none",
        "guarantee": "none: for a test",
        "coverage": 1.0,
        "recovery": Estimate(recovered, recovered - 0.05, recovered + 0.05),
        "recovery_without": Estimate(0.37, 0.32, 0.42),
        "guess": Estimate(0.38, 0.36, 0.40),
        "attack": "KNNAttack(known=8)",
        "n_targets": 50,
    }
    return FrontierPoint(
        family=family, label=label, mae=mae, advantage=Estimate(*advantage), **{**plain, **other}
    )


def known_frontier() -> Frontier:
    """Return points of which one is best for each question."""
    points = (
        point("kNN", "k=50", 0.70, (0.5, 0.4, 0.6)),
        point("kNN", "k=100", 0.69, (0.5, 0.4, 0.6)),
        point("PPNS", "k=50, β=7", 0.701, (0.45, 0.4, 0.5), promise="refuted"),
        point("PrivateCF, per rating", "ε=1", 0.73, (0.005, -0.005, 0.015), promise="proved"),
        point("PrivateCF, per rating", "ε=4", 0.72, (0.03, 0.01, 0.05), promise="proved"),
        point("PrivateCF, per user", "ε=4", 0.75, (0.01, -0.01, 0.03), promise="proved"),
        point("uncertain", "", 0.60, (0.1, -0.2, 0.4)),
    )
    return Frontier(
        points=points, guess=points[0].guess, settings={"shape": [943, 1682], "known": [8]}
    )


def made_up() -> Ratings:
    rng = np.random.default_rng(4)
    rated = rng.random((80, 25)) < 0.6
    values = np.clip(np.rint(3 + rng.normal(0, 1, 25) + rng.normal(0, 1, rated.shape)), 1, 5)
    users = [f"secret-{row}" for row in range(80)]
    csr = sparse.csr_array(values * rated)
    return Ratings(csr, users=users, items=range(25), scale=(1, 5))


def test_the_least_error_that_is_no_better_than_guessing_is_recommended() -> None:
    found = known_frontier().recommended()
    assert found is not None
    assert (found.family, found.label) == ("PrivateCF, per rating", "ε=1")
    wide = known_frontier().recommended(bound=0.06)
    assert wide is not None
    assert wide.label == "ε=4"
    assert wide.mae == 0.72
    assert known_frontier().recommended(max_mae=0.71) is None
    with pytest.raises(SettingError, match="bound"):
        known_frontier().recommended(bound=-1)


def test_what_cannot_be_told_is_not_recommended() -> None:
    """An interval from -0.2 to 0.4 includes 0 and says nothing."""
    uncertain = known_frontier().points[-1]
    assert not uncertain.no_better_than_guessing(0.02)


def test_ways_are_measured_by_the_strongest_attack(tmp_path: Path) -> None:
    mechanisms: list[Compared] = [KNN(k=5), PPNS(k=5, beta=3), NPNS(k=5, within=3)]
    ways = [*mechanisms, PrivateMeans(epsilon=8.0)]
    found = frontier(made_up(), ways, known=4, targets=6, rng=3)
    table = found.table()
    assert table.column("family").to_pylist() == ["kNN", "PPNS", "nPNS", "PrivateMeans, per rating"]
    assert table.column("promise").to_pylist()[3] == "proved"
    assert set(table.column("n_targets").to_pylist()) == {6}
    assert len({p.guess for p in found.points}) == 1  # the same targets, the same knowledge
    assert all(0.3 < p.mae < 2 for p in found.points)
    found.save(tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["chart.html", "chart.png", "chart.svg", "frontier.parquet", "manifest.json"]
    assert pq.read_table(tmp_path / "out" / "frontier.parquet").equals(table)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["targets"] == 6
    shown = [repr(found), (tmp_path / "out" / "chart.svg").read_text(encoding="utf-8")]
    assert all("secret-" not in text for text in [*shown, json.dumps(manifest)])


def test_of_several_attacks_the_one_that_finds_out_most_counts() -> None:
    weak, strong = KNNAttack(known=1), KNNAttack(known=8)
    each = [
        leak(made_up(), KNN(k=5), attack=attack, targets=20, rng=3) for attack in (weak, strong)
    ]
    best = strongest(made_up(), KNN(k=5), [weak, strong], 20, 3)
    assert each[0].advantage != each[1].advantage
    assert best.advantage == max(report.advantage for report in each)


def test_mechanisms_repeat_with_a_seed() -> None:
    runs = [frontier(made_up(), [PPNS(k=5, beta=3)], known=4, targets=6, rng=3) for _ in range(2)]
    assert runs[0].points == runs[1].points


def test_a_foreign_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(FileProblem, match="not a saved frontier"):
        known_frontier().save(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]
    known_frontier().save(tmp_path / "new")
    known_frontier().save(tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "new"]


def test_each_way_gets_the_attacks_that_apply_to_it() -> None:
    every, cover = KNNAttack(known=4, ask="all"), CoverAttack(known=4)
    private = PrivateCF(epsilon=1.0)
    assert applied(every, private, 100) is None
    plain = applied(KNNAttack(known=4), private, 100)
    assert plain is not None
    assert plain.fakes == 50
    covering = applied(cover, PNCF(k=5, within=3), 100)
    assert covering is not None
    assert covering.fakes == 15
    assert applied(cover, NPNS(k=5), 100) is None  # the whole list cannot be covered
    assert applied(cover, PPNS(k=5, beta=3), 100) is cover


def test_the_default_list_fits_the_data_and_names_every_family_once_a_setting() -> None:
    ways = default_list(943)
    names = [(family_of(way), label_of(way)) for way in ways]
    assert len(set(names)) == len(names)
    assert {"kNN", "PPNS", "nPNS", "PNCF"} < {family for family, _ in names}
    assert all(isinstance(way, PrivateCF) for way in default_list(20))
    assert family_of(NeighbourCF(KNN(k=3), axis="item")) == "kNN, item-based"


def test_every_family_has_a_colour_of_its_own_and_every_promise_a_shape() -> None:
    colours = family_colours(known_frontier())
    assert len(set(colours.values())) == len(colours) == 5
    layers = chart_spec(known_frontier())["layer"]
    shape = next(layer["encoding"]["shape"] for layer in layers if "shape" in layer["encoding"])
    assert shape["scale"]["domain"] == ["promise proved", "promise refuted", "no promise"]


def test_labels_do_not_hide_each_other() -> None:
    layers = chart_spec(known_frontier())["layer"]
    texts = [layer for layer in layers if layer["mark"]["type"] == "text"]
    words = [layer["data"]["values"][0]["text"] for layer in texts]
    assert {"kNN", "PPNS", "PrivateCF, per rating", "PrivateCF, per user"} <= set(words)
    x, y = (
        layers[0]["encoding"]["x"]["scale"]["domain"],
        layers[0]["encoding"]["y"]["scale"]["domain"],
    )
    boxes = []
    for layer in texts:
        row = layer["data"]["values"][0]
        middle = Place(860 * (row["mae"] - x[0]) / (x[1] - x[0]), 500 * (1 - row["share"] / y[1]))
        boxes.append(box_of(row["text"], layer["mark"]["fontSize"], middle))
    for one, two in itertools.combinations(boxes, 2):
        assert one.overlap(two) < 1


def test_a_label_that_must_be_placed_always_is() -> None:
    full = LabelPlaces(Box(0, 0, 50, 50), [Box(0, 0, 50, 50)])
    assert full.place("here", 10, [Place(25, 25)], [5], must=False) is None
    assert full.place("here", 10, [Place(25, 25)], [5], must=True) is not None


def test_the_chart_is_one_that_altair_takes() -> None:
    assert known_frontier().chart().to_dict()["width"] == 860
    alone = replace(known_frontier(), points=known_frontier().points[:1])
    assert alone.chart().to_dict()["layer"]


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(DataError, match="at least one"):
        frontier(made_up(), [])
    with pytest.raises(SettingError, match="attacks"):
        frontier(made_up(), [KNN(k=5)], attacks=[])
    with pytest.raises(DataError, match="applies"):
        frontier(
            made_up(),
            [PrivateMeans(epsilon=1.0)],
            attacks=[KNNAttack(known=4, ask="all")],
            targets=2,
        )
