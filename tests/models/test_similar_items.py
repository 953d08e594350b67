"""Items like an item, from what a private model released or from the similarities of others; notebooks."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.errors import MissingExtra, SettingError, UnknownId
from goodfence.models import recommender

RATINGS = gf.synthetic(users=300, items=60, ratings=6_000, rng=3)
EVENTS = gf.synthetic(users=300, items=60, ratings=6_000, rng=3, feedback="implicit")
PRIVATE: list[Any] = [
    gf.PrivateCF(epsilon=20.0, plan="covariance", items="from ratings", rng=1),
    gf.PrivateCF(epsilon=20.0, unit="user", items="from ratings", rng=1),
    gf.PrivateTopN(epsilon=20.0, items="from ratings", rng=1),
    gf.PrivateTopN(epsilon=20.0, unit="user", items="from ratings", rng=1),
]


def learnt(model: Any) -> Any:
    return model.fit(EVENTS if model.learns_from == "implicit" else RATINGS)


@pytest.mark.parametrize("model", PRIVATE, ids=repr)
def test_a_private_model_finds_them_in_what_it_released(model: Any, tmp_path: Path) -> None:
    learnt(model).save(tmp_path / "public.gf", ratings=False)
    public: Any = gf.load_model(tmp_path / "public.gf")
    assert public.ratings_.n_ratings == 0
    item = int(RATINGS.items[np.argmax(np.bincount(EVENTS.csr.indices))])
    found, same = model.similar_items(item, n=7), public.similar_items(item, n=7)
    assert len(found.items) == 7
    assert item not in found.items
    assert (np.diff(found.scores) <= 0).all()
    np.testing.assert_array_equal(found.items, same.items)
    np.testing.assert_array_equal(found.scores, same.scores)


def test_factors_that_point_the_same_way_are_similar() -> None:
    model: Any = learnt(PRIVATE[0])
    factors = model.model_.features[:, 1:]
    lengths = np.sqrt((factors**2).sum(axis=1) + 0.03)
    cosines = factors @ factors[4] / (lengths * lengths[4])
    found = model.similar_items(RATINGS.items[4], n=59)
    np.testing.assert_allclose(found.scores, cosines[RATINGS.columns(found.items)])
    allowed = RATINGS.items[:10]
    assert set(model.similar_items(RATINGS.items[4], allowed=allowed).items) == set(allowed) - {RATINGS.items[4]}


@pytest.mark.parametrize("mechanism", [gf.KNN(k=9), gf.PNCF(k=9)], ids=repr)
def test_item_based_neighbours_are_similar_items(mechanism: Any) -> None:
    model = gf.NeighbourCF(mechanism, axis="item", rng=1).fit(RATINGS)
    found = model.similar_items(RATINGS.items[4], n=20)
    assert sorted(RATINGS.columns(found.items)) == sorted(model.neighbours_[4])
    assert found.scores.tolist() == sorted(model.weights_[4].tolist(), reverse=True)


def test_the_nearest_items_among_raters() -> None:
    """Their neighbours depend on who asks, but without a draw their similarities do not."""
    table = RATINGS.csr.toarray()
    model = gf.NeighbourCF(gf.KNN(k=3), axis="item", among="raters").fit(RATINGS)
    found = model.similar_items(RATINGS.items[4], n=10)
    lengths = np.linalg.norm(table, axis=0)
    cosines = table.T @ table[:, 4] / (lengths * lengths[4])
    cosines[4] = -1
    np.testing.assert_allclose(found.scores, np.sort(cosines)[::-1][:10])


@pytest.mark.parametrize("among", ["all", "raters"])
@pytest.mark.parametrize("similarity", ["cosine", "pearson", "jaccard"])
def test_a_user_based_recommender_compares_items_by_their_raters(among: Any, similarity: Any) -> None:
    model = gf.NeighbourCF(gf.NPNS(k=5, within=2), among=among, similarity=similarity, rng=1).fit(RATINGS)
    item = RATINGS.items[4]
    found = model.similar_items(item, n=10)
    lists = gf.candidate_lists(RATINGS, n=10, axis="item", similarity=similarity)
    np.testing.assert_allclose(found.scores, lists.similarities[4])
    assert item not in found.items
    again = model.fit(RATINGS.replaced(RATINGS.csr[:100], users=RATINGS.users[:100])).similar_items(item, n=10)
    assert not np.array_equal(again.scores, found.scores)


def test_ease_has_weights_between_items() -> None:
    model = gf.EASE(items=40).fit(EVENTS)
    weights = np.full(60, np.nan)
    weights[model._chosen] = model.weights_[5]
    item = EVENTS.items[model._chosen[5]]
    found = model.similar_items(item, n=10)
    wanted = np.delete(weights, model._chosen[5])
    np.testing.assert_allclose(found.scores, np.sort(wanted[~np.isnan(wanted)])[::-1][:10])
    left_out = np.setdiff1d(EVENTS.items, EVENTS.items[model._chosen])[0]
    assert len(model.similar_items(left_out).items) == 0


@pytest.mark.parametrize(
    "model",
    [
        gf.Popularity(),
        gf.NeighbourCF(gf.PPNS(k=5, beta=2), axis="item", among="raters", rng=1),
        gf.PrivateMeans(epsilon=1.0, items="from ratings"),
        gf.papers.SlopeOne(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_who_compares_no_items_says_so(model: Any) -> None:
    with pytest.raises(SettingError, match="similar_items needs a recommender that compares items, and"):
        learnt(model).similar_items(RATINGS.items[0])


def test_an_unknown_item_is_not_named() -> None:
    with pytest.raises(UnknownId) as told:
        learnt(PRIVATE[0]).similar_items(987_654)
    assert "987" not in str(told.value)


@pytest.mark.parametrize("model", [gf.NeighbourCF(gf.KNN(k=5), axis="item", rng=7), PRIVATE[0], PRIVATE[2]], ids=repr)
def test_a_notebook_shows_models_and_lists_and_no_ids_of_users(model: Any) -> None:
    assert "<td>no</td>" in gf.PrivateCF(epsilon=1.0)._repr_html_()
    plain = EVENTS if model.learns_from == "implicit" else RATINGS
    users, titles = [f"someone {row}" for row in range(300)], {item: f"<b>{item}" for item in range(2, 61)}
    fitted = copy.copy(model).fit(plain.replaced(plain.csr, users=users, titles=titles))
    shown = fitted._repr_html_()
    assert "<td>60 items</td>" in shown
    assert fitted.guarantee().status in shown
    for found in (fitted.recommend_many(n=9), fitted.recommend("someone 7"), fitted.similar_items(4)):
        assert "someone" not in found._repr_html_()
        assert "&lt;b&gt;" in found._repr_html_()
        assert "<b>" not in found._repr_html_()
    assert fitted.recommend_many(n=9)._repr_html_().count("<tr>") == 6  # a head, and the first five lists
    untitled = fitted.recommend_many(allowed=[1])._repr_html_()
    assert "<td>1</td><td>1</td>" in untitled or "<td>2</td><td>1</td>" in untitled


def test_lists_become_data_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = gf.Popularity().fit(EVENTS).recommend_many(EVENTS.users[:2], n=3)
    assert lists.to_frame("pyarrow").equals(lists.table())
    for backend in ("pandas", "polars"):
        frame = pytest.importorskip(backend) and lists.to_frame(backend)
        assert type(frame).__module__.startswith(backend)
        assert list(frame.columns) == ["user", "rank", "item", "score"]
        assert frame["item"].to_list() == lists.table()["item"].to_pylist()
    monkeypatch.setattr(recommender, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match="polars is not installed: pip install polars"):
        lists.to_frame("polars")
