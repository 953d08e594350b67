"""Neighbours among the raters of an item: beside the slow reference, and the law of the draw."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest

import goodfence as gf
from goodfence.kernels.predict import sum_nearest
from goodfence.models.recommender import Center, unfitted_copy
from goodfence.neighbours import raters as engine
from goodfence.neighbours.similarity import Name
from tests.support import reference
from tests.support.contracts import FALSE_ALARM, chi_squared, choice_distribution
from tests.support.strategies import from_rows

pytestmark = pytest.mark.kernel

MADE_UP = gf.synthetic(users=40, items=25, ratings=420, rng=3)
DRAWN: list[Any] = [gf.NPNS(k=3), gf.NPNS(k=2, weights="uniform", within=2), gf.PNCF(k=3), gf.PPNS(k=3, beta=2)]


def rows_of(ratings: gf.Ratings) -> list[dict[int, float]]:
    csr = ratings.csr
    pairs = zip(csr.indptr[:-1], csr.indptr[1:], strict=True)
    return [
        dict(zip(csr.indices[start:stop].tolist(), csr.data[start:stop].tolist(), strict=True)) for start, stop in pairs
    ]


def every_cell(ratings: gf.Ratings) -> tuple[Any, Any]:
    n_users, n_items = ratings.shape
    return np.repeat(ratings.users, n_items), np.tile(ratings.items, n_users)


def expected_predictions(axis: str, name: str, center: str | None, k: int, least: int, **more: Any) -> np.ndarray:
    """Return every prediction by the book: similarities, the k nearest raters, the mean of deviations."""
    users, (n_users, n_items) = rows_of(MADE_UP), MADE_UP.shape
    rows = reference.compared_rows(users, n_items, axis, name)
    similar = [[reference.similarity(a, b, name, **more) for b in rows] for a in rows]
    base = reference.baseline(users, n_items, center)
    averaged = reference.without_baseline(users, base)
    by_item = reference.turned(averaged, n_items)
    found = np.empty(MADE_UP.shape)
    for u, i in product(range(n_users), range(n_items)):
        row, raters = (u, by_item[i]) if axis == "user" else (i, averaged[u])
        near = reference.nearest_raters(similar[row], raters, row, k)
        found[u, i] = base[u][i] + reference.weighted_mean(near, least)
    return found


@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("name", get_args(Name))
def test_every_similarity_is_the_book_s(axis: Any, name: Any) -> None:
    users, n_items = rows_of(MADE_UP), MADE_UP.shape[1]
    rows = reference.compared_rows(users, n_items, axis, name)
    given: list[dict[str, Any]] = [{}, {"shrinkage": 7.5, "min_common": 3}]
    for more in given:
        measure = gf.Similarity(name=name, **{"shrinkage": 0.0, **more})
        n = len(rows) - 1
        lists = gf.candidate_lists(MADE_UP, n=n, axis=axis, similarity=measure)
        for row in range(0, len(rows), 5):
            others = lists.indices[row].tolist()
            wanted = [reference.similarity(rows[row], rows[j], name, **more) for j in others]
            assert lists.similarities[row] == pytest.approx(wanted, abs=1e-12)
            assert (np.diff(lists.similarities[row]) <= 0).all()
            assert sorted([*others, row]) == list(range(len(rows)))


@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("center", [None, *get_args(Center)])
@pytest.mark.parametrize("name", ["cosine", "centred_cosine", "pearson_baseline", "msd"])
def test_predictions_are_the_book_s(axis: Any, center: Any, name: Any) -> None:
    similarity = gf.Similarity(name=name, shrinkage=2.0)
    model = gf.NeighbourCF(
        gf.KNN(k=4), axis=axis, similarity=similarity, center=center, among="raters", min_neighbours=3
    )
    found = model.fit(MADE_UP).predict(*every_cell(MADE_UP)).reshape(MADE_UP.shape)
    wanted = expected_predictions(axis, name, center, 4, 3, shrinkage=2.0)
    assert found == pytest.approx(wanted, rel=1e-10, nan_ok=True)
    assert np.isnan(found).any()
    assert not np.isnan(found).all()


@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("center", [None, *get_args(Center)])
def test_fixed_neighbours_are_centred_likewise(axis: Any, center: Any) -> None:
    model = gf.NeighbourCF(gf.KNN(k=6), axis=axis, center=center, min_neighbours=2).fit(MADE_UP)
    found = model.predict(*every_cell(MADE_UP)).reshape(MADE_UP.shape)
    users, (n_users, n_items) = rows_of(MADE_UP), MADE_UP.shape
    base = reference.baseline(users, n_items, center)
    averaged = reference.without_baseline(users, base)
    rows = averaged if axis == "user" else reference.turned(averaged, n_items)
    for u, i in product(range(n_users), range(n_items)):
        row, column = (u, i) if axis == "user" else (i, u)
        near = zip(model.similarities_[row], model.neighbours_[row], strict=True)
        pairs = [(s, rows[j][column]) for s, j in near if column in rows[j] and s != 0]
        wanted = base[u][i] + reference.weighted_mean(pairs, 2)
        assert found[u, i] == pytest.approx(wanted, rel=1e-10, nan_ok=True)


@pytest.mark.parametrize("mechanism", [gf.KNN(k=3), *DRAWN], ids=repr)
@pytest.mark.parametrize("axis", ["user", "item"])
def test_where_everybody_rated_everything_nothing_is_new(axis: Any, mechanism: Any) -> None:
    values = np.random.default_rng(2).integers(1, 6, size=(14, 12))
    whole = from_rows([dict(enumerate(row.tolist())) for row in values], 12)
    settings: Any = {"axis": axis, "rng": 5}
    fixed = gf.NeighbourCF(mechanism, **settings).fit(whole)
    among = gf.NeighbourCF(mechanism, among="raters", **settings).fit(whole)
    cells = every_cell(whole)
    assert among.predict(*cells) == pytest.approx(fixed.predict(*cells), rel=1e-12)


@pytest.mark.parametrize("mechanism", DRAWN, ids=repr)
@pytest.mark.parametrize("axis", ["user", "item"])
def test_the_draw_is_the_same_however_it_is_asked_for(axis: Any, mechanism: Any) -> None:
    settings: Any = {"axis": axis, "among": "raters", "center": "user_mean", "fallback": "bias"}
    one = gf.NeighbourCF(mechanism, rng=7, threads=1, **settings).fit(MADE_UP)
    two = gf.NeighbourCF(mechanism, rng=7, threads=2, **settings).fit(MADE_UP)
    users, items = every_cell(MADE_UP)
    together = one.predict(users, items)
    assert np.array_equal(together, one.predict(users, items))
    assert np.array_equal(together, two.predict(users, items))
    order = np.random.default_rng(1).permutation(len(users))
    assert np.array_equal(one.predict(users[order], items[order]), together[order])
    alone = [one.predict(users[[cell]], items[[cell]])[0] for cell in range(0, len(users), 97)]
    assert alone == together[::97].tolist()
    other = gf.NeighbourCF(mechanism, rng=8, **settings).fit(MADE_UP)
    assert not np.array_equal(other.predict(users, items), together)


@pytest.mark.parametrize("mechanism", [gf.KNN(k=3), *DRAWN], ids=repr)
def test_an_item_based_answer_is_the_prediction_for_that_profile(
    mechanism: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: Any = {"axis": "item", "among": "raters", "center": "bias"}
    model = gf.NeighbourCF(mechanism, rng=3, **settings).fit(MADE_UP)
    expected = model.predict(*every_cell(MADE_UP)).reshape(MADE_UP.shape)
    for row in (0, 11, 39):
        profile = {MADE_UP.items[i]: rating for i, rating in rows_of(MADE_UP)[row].items()}
        found = model.predict(profile, MADE_UP.items)
        assert found == pytest.approx(expected[row], rel=1e-12, nan_ok=True)
        few = model.predict(dict(reversed(profile.items())), MADE_UP.items[:2])
        assert few == pytest.approx(expected[row, :2], rel=1e-12, nan_ok=True)
    monkeypatch.setattr(engine, "_KEPT_BYTES", 8 * 25 * 4)  # room for four of the rows
    again = gf.NeighbourCF(mechanism, rng=3, **settings).fit(MADE_UP)
    assert np.array_equal(again.predict(*every_cell(MADE_UP)).reshape(MADE_UP.shape), expected, equal_nan=True)


@pytest.mark.parametrize("axis", ["user", "item"])
def test_lists_add_up_the_ratings_of_the_nearest_raters(axis: Any) -> None:
    """Whatever is subtracted for predictions, and however few the neighbours are."""
    settings: Any = {"among": "raters", "center": "bias", "min_neighbours": 2, "fallback": "bias"}
    model = gf.NeighbourCF(gf.KNN(k=3), axis=axis, **settings).fit(MADE_UP)
    users, (n_users, n_items) = rows_of(MADE_UP), MADE_UP.shape
    rows = reference.compared_rows(users, n_items, axis, "cosine")
    similar = [[reference.similarity(a, b, "cosine") for b in rows] for a in rows]
    by_item = reference.turned(users, n_items)
    for row in range(0, n_users, 5):
        scores = np.full(n_items, np.nan)
        for i in range(n_items):
            which, raters = (row, by_item[i]) if axis == "user" else (i, users[row])
            near = reference.nearest_raters(similar[which], raters, which, 3)
            scores[i] = sum(weight * value for weight, value in near) if near else np.nan
        found = model.recommend(MADE_UP.users[row], n=6)
        expected = reference.best_list(scores, list(users[row]), list(range(n_items)), 6)
        assert MADE_UP.columns(found.items).tolist() == [column for column, _ in expected]
    profile = {MADE_UP.items[i]: rating for i, rating in users[0].items()}
    alike = model.recommend(profile, n=6)
    assert len(alike.items) == 6
    if axis == "item":
        assert alike.scores == pytest.approx(model.recommend(MADE_UP.users[0], n=6).scores)


@pytest.mark.parametrize("mechanism", [gf.KNN(k=3), *DRAWN], ids=repr)
@pytest.mark.parametrize("scope", ["target", "pair"])
def test_a_fold_in_gets_the_same_draw_again(mechanism: Any, scope: Any) -> None:
    if mechanism.sensitivity is not None:
        fields = {name: getattr(mechanism, name) for name in ("k", "epsilon")}
        beta = {"beta": mechanism.beta} if hasattr(mechanism, "beta") else {}
        mechanism = type(mechanism)(**fields, **beta, sensitivity=gf.Sensitivity(scope=scope))
    model = gf.NeighbourCF(mechanism, among="raters", center="bias").fit(MADE_UP)
    profile = dict.fromkeys(MADE_UP.items[:7].tolist(), 4.0)
    first = model.predict(profile, MADE_UP.items)
    again = model.predict(dict(reversed(profile.items())), MADE_UP.items)
    assert np.array_equal(first, again, equal_nan=True)
    assert np.isfinite(first).any()
    assert np.isfinite(model.predict(*every_cell(MADE_UP))).any()


def test_a_knn_fold_in_is_the_prediction_of_an_appended_row() -> None:
    rows, n_items = rows_of(MADE_UP), MADE_UP.shape[1]
    settings: Any = {"similarity": "centred_cosine", "center": "user_mean", "among": "raters"}
    model = gf.NeighbourCF(gf.KNN(k=4), **settings).fit(MADE_UP)
    appended = from_rows([*rows, rows[3]], n_items)
    whole = gf.NeighbourCF(gf.KNN(k=4), **settings).fit(appended)
    expected = whole.predict([len(rows)] * n_items, appended.items)
    profile = {MADE_UP.items[i]: rating for i, rating in rows[3].items()}
    assert model.predict(profile, MADE_UP.items) == pytest.approx(expected, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [gf.NPNS(k=2, weights="uniform"), gf.PPNS(k=2, beta=2), gf.PPNS(k=3, beta=2)], ids=repr
)
def test_the_law_of_a_draw_among_few_raters(mechanism: Any) -> None:
    """The list of the raters, filled up with nobody: the chosen follow the mechanism's law on that list."""
    rated: list[dict[int, float]]
    rated = [{0: 5, 1: 3, 2: 1}, {0: 4, 1: 4, 2: 2, 3: 1}, {0: 1, 1: 5, 3: 2}, {1: 2, 2: 5, 3: 4}]
    ratings = from_rows([*rated, {0: 2, 2: 3}], 4)
    model = gf.NeighbourCF(mechanism, among="raters", rng=0).fit(ratings)
    shortest = max(3, getattr(mechanism, "beta", 1) * mechanism.k)
    lists = gf.candidate_lists(ratings, n=4)
    raters = [(s, j) for s, j in zip(lists.similarities[0], lists.indices[0], strict=True) if j < 4]
    values = np.zeros(shortest)
    values[:3] = [s for s, _ in raters]
    law: dict[frozenset[int], float] = {}
    found = model._draws.row_bounds(np.array([0]))
    bounds = None if found is None else found[0]
    for chosen, chance in choice_distribution(mechanism, values, bounds).items():
        real = frozenset(place for place in chosen if place < 3)
        law[real] = law.get(real, 0.0) + chance
    answers = {prediction_of(raters, rated, real): real for real in law}
    assert len(answers) == len(law)
    n_draws, seen = 4000, Counter[frozenset[int]]()
    for key in range(n_draws):
        told = model.restore(ratings, key, None).predict([0], [3])[0]
        seen[answers[round(float(told), 9) if np.isfinite(told) else None]] += 1
    assert chi_squared(seen, law, n_draws) > FALSE_ALARM


def prediction_of(raters: Any, rated: Any, chosen: frozenset[int]) -> float | None:
    pairs = [(float(raters[place][0]), float(rated[raters[place][1]][3])) for place in chosen]
    return round(reference.weighted_mean(pairs), 9) if pairs else None


def test_nobody_is_similar_or_nobody_rated() -> None:
    ratings = from_rows([{0: 3}, {1: 4}, {2: 5}], 4)
    for mechanism in (gf.KNN(k=2), *DRAWN):
        model = gf.NeighbourCF(mechanism, among="raters").fit(ratings)
        assert np.isnan(model.predict(*every_cell(ratings))).all()
        assert np.isnan(model.predict({}, ratings.items)).all()
        filled = gf.NeighbourCF(mechanism, among="raters", fallback="bias").fit(ratings)
        assert np.isfinite(filled.predict(*every_cell(ratings))).all()
        assert np.isfinite(filled.predict({}, ratings.items)).all()


def test_what_makes_no_sense_is_refused_in_one_sentence() -> None:
    knn = gf.KNN(k=5)
    for wrong, message in (
        ({"center": "mean"}, "center must be"),
        ({"among": "everybody"}, "among must be"),
        ({"among": "raters", "over": "neighbours"}, "over must be"),
        ({"min_neighbours": 6}, "min_neighbours must be"),
        ({"min_neighbours": 0}, "min_neighbours must be"),
        ({"shrinkage": -1.0}, "shrinkage must be"),
        ({"shrinkage": float("nan")}, "shrinkage must be"),
        ({"min_common": 0}, "min_common must be"),
        ({"min_common": 1.5}, "min_common must be"),
        ({"fallback": "median"}, "fallback must be"),
        ({"similarity": "adjusted"}, "did you mean"),
    ):
        settings: Any = wrong
        with pytest.raises(gf.SettingError, match=message):
            gf.NeighbourCF(knn, **settings)
    for settings in ({"shrinkage": 5.0}, {"min_common": 2}, {"similarity": "adjusted_cosine"}):
        with pytest.raises(gf.SettingError, match="RS is not defined"):
            gf.NeighbourCF(gf.PPNS(k=2, beta=2), **settings).fit(MADE_UP)


@pytest.mark.parametrize("room", [8 * 40 * 10, 1 << 20])
@pytest.mark.parametrize("axis", ["user", "item"])
def test_similarities_are_the_same_computed_ahead_asked_for_or_kept(
    axis: Any, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = expected_predictions(axis, "centred_cosine", None, 4, 1)
    monkeypatch.setattr(engine, "_KEPT_BYTES", room)
    ahead = gf.NeighbourCF(gf.KNN(k=4), axis=axis, similarity="centred_cosine", among="raters")
    lazy = unfitted_copy(ahead, None)
    assert ahead.computes_ahead
    assert not lazy.computes_ahead
    for model in (ahead, lazy):
        model.fit(MADE_UP)
        for _ in range(3):
            found = model.predict(*every_cell(MADE_UP)).reshape(MADE_UP.shape)
            assert found == pytest.approx(wanted, rel=1e-10, nan_ok=True)


@pytest.mark.kernel
@pytest.mark.parametrize(("k", "wanted"), [(1, 1.0), (2, 1.5), (3, 2.0), (4, 3.8 / 1.7)])
def test_of_equally_similar_raters_the_first_count(k: int, wanted: float) -> None:
    similarities, values = np.array([0.5, 0.5, 0.5, 0.2]), np.array([1.0, 2.0, 3.0, 4.0])
    total, size = sum_nearest(similarities, values, k, np.full((2, 5), -7.0))
    assert total / size == pytest.approx(wanted)
