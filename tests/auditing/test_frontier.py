"""`frontier`: what is compared, what is recommended, what is drawn and saved."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from goodfence import load
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.knn_attack import CoverAttack, KNNAttack
from goodfence.attack.scoring import Estimate
from goodfence.attack.strongest import applied, strongest
from goodfence.auditing.frontier import Compared, Frontier, frontier
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, FileProblem, SettingError
from goodfence.models.method import default_recommenders, traits_of
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private.cf import PrivateCF, PrivateMeans
from goodfence.report.pages import save_result
from goodfence.selection.knn import KNN
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS
from tests.support.frontiers import known_frontier, point
from tests.support.toy_recommenders import NoisyAnswers


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
    assert (found.family, found.label) == ("PrivateCF, per rating", "ε=4")
    without = [one for one in known_frontier().points if one is not None and one.label != "ε=4"]
    next_best = replace(known_frontier(), points=tuple(without)).recommended()
    assert next_best is not None
    assert next_best.label == "ε=1"
    assert known_frontier().recommended(max_mae=0.71) is None
    with pytest.raises(SettingError, match="bound"):
        known_frontier().recommended(bound=-1)


def test_what_cannot_be_told_is_not_recommended() -> None:
    """An interval from -0.2 to 0.4 includes 0 and says nothing."""
    uncertain = known_frontier().points[-1]
    assert not uncertain.no_better_than_guessing(0.02)


@pytest.mark.slow
def test_ways_are_measured_by_the_strongest_attack(tmp_path: Path) -> None:
    mechanisms: list[Compared] = [KNN(k=5), PPNS(k=5, beta=3), NPNS(k=5, within=3)]
    ways = [*mechanisms, PrivateMeans(epsilon=8.0, items="from ratings")]
    found = frontier(made_up(), ways, known=4, targets=6, rng=3)
    table = found.table()
    assert table.column("family").to_pylist() == ["kNN", "PPNS", "nPNS", "PrivateMeans, per rating"]
    assert table.column("status").to_pylist()[3] == "proved"
    assert table.column("n_targets").to_pylist() == [6, 6, 6, 6]
    assert table.column("verdict").to_pylist() == ["cannot tell"] * 4  # on six users there is no verdict
    assert [len(point.tried) for point in found.points] == [4, 5, 5, 9]
    assert all("membership" in {one.attack for one in point.not_tried} for point in found.points)
    assert all(0.3 < p.mae < 2 for p in found.points)
    save_result(found, tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["chart.html", "chart.png", "chart.svg", "frontier.parquet", "manifest.json"]
    assert pq.read_table(tmp_path / "out" / "frontier.parquet").equals(table)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["targets"] == 6
    shown = [repr(found), (tmp_path / "out" / "chart.svg").read_text(encoding="utf-8")]
    assert all("secret-" not in text for text in [*shown, json.dumps(manifest)])


def test_of_several_attacks_the_one_that_finds_out_most_counts() -> None:
    weak, strong = KNNAttack(known=1), KNNAttack(known=8)
    subject = Subject(made_up(), KNN(k=5))
    best = strongest(subject, [weak, strong], targets=40, rng=3)
    assert [one.strongest for one in best.tried] == [False, True]
    assert best.tried[0].advantage.value < best.tried[1].advantage.value
    again = strong.run(made_up(), KNN(k=5), targets=made_up().users[best.rows], rng=3)
    assert again.table().equals(best.table())


def test_mechanisms_repeat_with_a_seed() -> None:
    runs = [frontier(made_up(), [PPNS(k=5, beta=3)], known=4, targets=6, rng=3) for _ in range(2)]
    assert runs[0].points == runs[1].points
    [point] = runs[0].points
    assert [one.attack for one in point.tried if one.strongest] == [point.attack]
    assert {one.n_targets for one in point.tried} == {6}


@pytest.mark.slow
def test_a_foreign_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(FileProblem, match="not a saved frontier"):
        save_result(known_frontier(), tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]
    save_result(known_frontier(), tmp_path / "new")
    save_result(known_frontier(), tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "new"]


def test_each_recommender_gets_the_attacks_that_apply_to_it() -> None:
    def fitting(attack: Attack, attacked: Compared) -> Attack | None:
        return applied(attack, Subject(made_up(), attacked))

    cover = CoverAttack(known=4)
    plain = fitting(KNNAttack(known=4), PrivateCF(epsilon=1.0))
    assert plain is not None
    assert plain.fakes == 50
    covering = fitting(cover, PNCF(k=5, within=3))
    assert covering is not None
    assert covering.fakes == 15
    assert fitting(cover, NPNS(k=5)) is None  # the whole list cannot be covered
    assert fitting(cover, PrivateCF(epsilon=1.0)) is None
    assert fitting(cover, PPNS(k=5, beta=3)) is cover


@pytest.mark.slow
def test_where_each_answer_has_fresh_noise_all_fakes_ask() -> None:
    """One fake is told little through the noise; the mean of what fifty are told is nearly without it."""
    films = load("movietweetings")
    noisy = NoisyAnswers(KNN(k=50), epsilon=4.0, rng=5)
    for declared in (True, None):
        noisy.fresh_answers = declared  # said, or found out by asking the same question twice
        found = frontier(films, [noisy], targets=12, rng=3).points[0]
        assert re.search(r"askers=[2-9]\d", found.attack)
        assert found.advantage.low > 0
        assert found.advantage.value > 0.2  # twelve users say no more


def test_proved_models_that_cut_the_leak_are_not_called_none_for_a_hair() -> None:
    points = (
        point("kNN", "k=50", 0.70, (0.5, 0.4, 0.6)),
        point("PrivateCF, per rating", "ε=4", 0.72, (0.03, 0.01, 0.05), status="proved"),
        point("PPNS", "k=50, β=7", 0.71, (0.03, 0.01, 0.05), status="refuted"),
    )
    found = Frontier(points=points, guess=points[0].guess, settings={})
    best = found.recommended()
    assert best is points[1]  # a tenth of the leak; what is refuted is not recommended for that
    assert found.cut(points[1]) == pytest.approx(0.5 / 0.05)  # by the worse end of the interval
    assert found.cut(points[0]) == 1.0
    wide = replace(points[1], advantage=Estimate(0.09, 0.05, 0.13))
    assert replace(found, points=(points[0], wide)).recommended() is None


def test_the_default_list_fits_the_data_and_names_every_family_once_a_setting() -> None:
    ways = default_recommenders("full", 943)
    names = [(traits_of(way).family, traits_of(way).settings) for way in ways]
    assert len(set(names)) == len(names)
    assert {"kNN", "PPNS", "nPNS", "PNCF"} < {family for family, _ in names}
    assert all(isinstance(way, PrivateCF) for way in default_recommenders("full", 20))
    mechanisms = [way for way in ways if not isinstance(way, PrivateCF)]
    assert mechanisms == [
        *(KNN(k=30), KNN(k=50), KNN(k=100)),
        *(PPNS(k=50, beta=2), PPNS(k=50, beta=4), PPNS(k=50, beta=7)),
        *(NPNS(k=50, within=4), NPNS(k=50, within=7), NPNS(k=50)),
        *(PNCF(k=50, epsilon=1.0, within=7), PNCF(k=50, epsilon=10.0, within=7)),
    ]
    assert traits_of(NeighbourCF(KNN(k=3), axis="item")).family == "kNN, item-based"


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(DataError, match="at least one"):
        frontier(made_up(), [])
    with pytest.raises(SettingError, match="attacks"):
        frontier(made_up(), [KNN(k=5)], attacks=[])
    with pytest.raises(DataError, match="applies"):
        frontier(made_up(), [PrivateMeans(epsilon=1.0)], attacks=[CoverAttack(known=4)], targets=2)
