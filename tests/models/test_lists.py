"""Recommenders on events: their lists, what they refuse, and the lists of everybody as a file."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv, parquet
from scipy import sparse

import goodfence as gf
from goodfence.errors import DataError, FileProblem, SettingError
from goodfence.models import events
from goodfence.models.events import MOST_ITEMS
from goodfence.models.method import configured
from goodfence.models.recommender import RecommendedLists
from tests.support import reference
from tests.support.contracts import RecommenderContract

EVENTS = gf.synthetic(users=60, items=40, ratings=700, rng=3).likes(2)


class TestPopularity(RecommenderContract):
    ratings = EVENTS

    def made(self) -> Any:
        return gf.Popularity()


class TestEASE(RecommenderContract):
    ratings = EVENTS

    def made(self) -> Any:
        return gf.EASE(regularisation=20, items=35)


MECHANISMS: list[Any] = [gf.KNN(k=5), gf.NPNS(k=5), gf.PNCF(k=5, epsilon=2.0), gf.PPNS(k=5, beta=3, epsilon=2.0)]


@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: type(one).__name__)
class TestNeighbourCF(RecommenderContract):
    ratings = EVENTS

    @pytest.fixture(autouse=True)
    def _how(self, mechanism: Any, axis: Any) -> None:
        self.mechanism, self.axis = mechanism, axis
        self.from_profiles = axis == "item"  # else the user is a neighbour of the own profile

    def made(self) -> Any:
        return gf.NeighbourCF(self.mechanism, axis=self.axis, rng=1)

    def test_a_saved_model_is_the_same(self, tmp_path: Path) -> None:
        model = gf.NeighbourCF(self.mechanism, axis=self.axis, rng=1).fit(self.ratings)
        model.save(tmp_path / "model.gf")
        loaded: Any = gf.load_model(tmp_path / "model.gf")
        assert repr(loaded) == repr(model)
        assert loaded.ratings_.feedback == "implicit"
        ours, theirs = (one.recommend_many(n=6) for one in (model, loaded))
        np.testing.assert_array_equal(ours.columns, theirs.columns)
        np.testing.assert_array_equal(ours.scores, theirs.scores)
        profile = dict.fromkeys(self.ratings.items[[3, 8, 9]].tolist(), 1.0)
        asked = self.ratings.items
        np.testing.assert_array_equal(model.predict(profile, asked), loaded.predict(profile, asked))

    def test_scores_are_sums_of_weights(self) -> None:
        model = gf.NeighbourCF(self.mechanism, axis=self.axis, rng=1).fit(self.ratings)
        table = self.ratings.csr.toarray()
        rows, columns = np.divmod(np.arange(table.size), table.shape[1])
        found = model.predict_cells(rows, columns).reshape(table.shape)
        near, weights = model.neighbours_, model.weights_
        for row in range(0, len(table), 7):
            if self.axis == "user":
                have = [{int(c): 1.0 for c in np.flatnonzero(own)} for own in table]
                one = near[row].tolist(), weights[row].tolist()
                wanted = np.array(reference.votes(*one, have, 40))
            else:
                has = table[row][near] > 0
                wanted = np.where(has.any(axis=1), (weights * has).sum(axis=1), np.nan)
            np.testing.assert_allclose(found[row], wanted, atol=1e-13)
            listed = model.recommend(self.ratings.users[row], n=40)
            places = self.ratings.columns(listed.items)
            np.testing.assert_array_equal(listed.scores, found[row][places])


@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: type(one).__name__)
def test_neighbours_among_those_who_have_the_item(mechanism: Any, axis: Any, tmp_path: Path) -> None:
    model = gf.NeighbourCF(mechanism, axis=axis, among="raters", rng=1).fit(EVENTS)
    found = model.recommend(EVENTS.users[4], n=8)
    asked = np.repeat(EVENTS.users[4], len(found.items))
    np.testing.assert_allclose(model.predict(asked, found.items), found.scores, rtol=1e-12)
    assert (found.scores[:-1] >= found.scores[1:]).all()
    profile = dict.fromkeys(EVENTS.items[[2, 7, 11]].tolist(), 1.0)
    listed = model.recommend(profile, n=8)
    np.testing.assert_array_equal(model.predict(profile, listed.items), listed.scores)
    model.save(tmp_path / "model.gf")
    loaded: Any = gf.load_model(tmp_path / "model.gf")
    np.testing.assert_array_equal(loaded.recommend(profile, n=8).items, listed.items)


def test_the_nearest_who_have_the_item_are_added_up() -> None:
    """Three people have item 3; k=2 of them count, by their cosine with the asker, who has items 0 and 1."""
    rows = [{0: 1, 1: 1}, {0: 1, 3: 1}, {0: 1, 1: 1, 3: 1}, {2: 1, 3: 1}]
    csr = sparse.csr_array(np.array([[row.get(i, 0) for i in range(4)] for row in rows], float))
    events = gf.Ratings(csr, list("abcd"), list(range(4)), feedback="implicit")
    model = gf.NeighbourCF(gf.KNN(k=2), among="raters").fit(events)
    found = model.recommend("a", n=4)
    assert found.items.tolist() == [3]
    assert found.scores == pytest.approx([2 / np.sqrt(6) + 1 / 2])


@pytest.mark.parametrize("axis", ["user", "item"])
def test_jaccard_on_events(axis: Any) -> None:
    model = gf.NeighbourCF(gf.KNN(k=4), axis=axis, similarity="jaccard").fit(EVENTS)
    table = EVENTS.csr.toarray() if axis == "user" else EVENTS.csr.toarray().T
    both = table @ table.T
    either = table.sum(axis=1)[:, None] + table.sum(axis=1) - both
    np.fill_diagonal(both, -1)
    nearest = np.sort(both / np.maximum(either, 1), axis=1)[:, ::-1][:, :4]
    np.testing.assert_allclose(model.similarities_, nearest, atol=1e-15)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"center": "user_mean"}, "center must be None on events"),
        ({"fallback": "item_mean"}, "fallback must be None on events"),
        ({"over": "neighbours"}, "over must be 'raters' on events"),
        ({"min_neighbours": 2}, "min_neighbours must be 1 on events"),
        ({"similarity": "pearson"}, "similarity must be cosine or jaccard on events"),
    ],
)
def test_settings_that_average_ratings_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        gf.NeighbourCF(gf.KNN(k=5), **settings).fit(EVENTS)


@pytest.mark.parametrize(
    "model",
    [
        gf.PrivateCF(epsilon=1.0, items="from ratings"),
        gf.PrivateMeans(epsilon=1.0, items="from ratings"),
        gf.papers.McSherryMironov(epsilon=1.0, items="from ratings"),
        gf.papers.SlopeOne(),
        gf.papers.NoisyAnswers(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_ratings_say_so(model: Any) -> None:
    with pytest.raises(DataError, match=f"{type(model).__name__} needs ratings"):
        model.fit(EVENTS)


@pytest.mark.parametrize("model", [gf.EASE(), gf.Popularity()], ids=["EASE", "Popularity"])
def test_models_of_events_say_so(model: Any) -> None:
    with pytest.raises(DataError, match=r"needs events.*ratings.likes\(4\)"):
        model.fit(gf.synthetic(users=20, items=10, ratings=90, rng=3))


def test_popularity_counts_people() -> None:
    model = gf.Popularity().fit(EVENTS)
    counts = EVENTS.csr.toarray().sum(axis=0)
    for row, user in enumerate(EVENTS.users[:10]):
        seen = np.flatnonzero(EVENTS.csr.toarray()[row]).tolist()
        found = model.recommend(user, n=7)
        wanted = reference.best_list(counts, seen, list(range(40)), 7)
        assert EVENTS.columns(found.items).tolist() == [column for column, _ in wanted]


@pytest.mark.parametrize("regularisation", [1.0, 500.0])
def test_ease_is_its_closed_form(regularisation: float) -> None:
    table = EVENTS.csr.toarray()
    inverse = np.linalg.inv(table.T @ table + regularisation * np.eye(40))
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    model = gf.EASE(regularisation=regularisation).fit(EVENTS)
    np.testing.assert_allclose(model.weights_, weights, atol=1e-12)
    cells = np.repeat(np.arange(60), 40), np.tile(np.arange(40), 60)
    np.testing.assert_allclose(model.predict_cells(*cells), (table @ weights).ravel(), atol=1e-12)


def test_ease_on_the_most_frequent_items() -> None:
    counts = EVENTS.csr.toarray().sum(axis=0)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:10])
    part = EVENTS.csr.toarray()[:, chosen]
    inverse = np.linalg.inv(part.T @ part + 30 * np.eye(10))
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    model = gf.EASE(regularisation=30, items=10).fit(EVENTS)
    np.testing.assert_allclose(model.weights_, weights, atol=1e-12)
    lists = model.recommend_many(n=40)
    assert set(np.unique(lists.columns).tolist()) <= {-1, *chosen.tolist()}
    assert lists.items.dtype == object  # shorter lists end in None
    assert lists.items[0].tolist().count(None) == (lists.columns[0] < 0).sum() > 0


def test_ease_says_how_many_items_are_too_many() -> None:
    cells = (np.ones(2), ([0, 0], [0, MOST_ITEMS]))
    csr = sparse.csr_array(cells, shape=(1, MOST_ITEMS + 1))
    wide = gf.Ratings(csr, [1], np.arange(MOST_ITEMS + 1), feedback="implicit")
    with pytest.raises(SettingError, match="ratings must be of at most 20,000 items"):
        gf.EASE().fit(wide)
    assert gf.EASE(items=2).fit(wide).recommend([0]).items.tolist() == [MOST_ITEMS]


def test_of_many_items_the_weights_are_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    films = gf.load("movietweetings").likes(8)
    exact = gf.EASE().fit(films).weights_
    monkeypatch.setattr(events, "MOST_IN_DOUBLE", 100)
    model = gf.EASE().fit(films)
    assert model.weights_.dtype == np.float32
    assert model.weights_ == pytest.approx(exact, rel=1e-3, abs=1e-6)
    assert len(model.recommend(films.users[0]).items) == 10


def test_too_little_memory_for_the_weights_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(events, "weights_between_items", full)
    with pytest.raises(SettingError, match="do not fit into memory"):
        gf.EASE().fit(gf.load("movietweetings").likes(8))


@pytest.mark.parametrize("name", ["lists.parquet", "lists.csv"])
def test_lists_become_a_file_that_only_their_owner_reads(tmp_path: Path, name: str) -> None:
    users = EVENTS.users[np.diff(EVENTS.csr.indptr) <= 37]  # who can be shown three items
    lists = gf.Popularity().fit(EVENTS).recommend_many(users, n=3)
    lists.save(tmp_path / name)
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    read: Any = parquet.read_table if name.endswith("parquet") else csv.read_csv
    table = read(tmp_path / name)
    assert table.column_names == ["user", "rank", "item", "score"]
    assert table.column("rank").to_pylist() == [1, 2, 3] * len(users)
    assert table.column("user").to_pylist() == np.repeat(users, 3).tolist()
    assert table.column("item").to_pylist() == lists.items.ravel().tolist()
    with pytest.raises(FileProblem, match=r"path must end in \.parquet or \.csv"):
        lists.save(tmp_path / "lists.txt")


def test_lists_show_nobody() -> None:
    lists = gf.Popularity().fit(EVENTS).recommend_many(n=3)
    assert repr(lists) == "RecommendedLists(60 users, at most 3 items each)"
    assert isinstance(lists, RecommendedLists)


def test_allowed_items_that_nobody_has_are_no_error() -> None:
    model = gf.Popularity().fit(EVENTS)
    some = EVENTS.items[:5].tolist()
    found = model.recommend([], n=9, allowed=[*some, 10**9, *some])
    assert sorted(found.items.tolist()) == some


def test_the_number_of_items_is_no_public_list() -> None:
    public = {"items": "from ratings"}
    assert configured({"mechanism": "ease"}, public=public).recommender.items is None
    assert configured({"mechanism": "ease", "items": 9}, public=public).recommender.items == 9
