from __future__ import annotations

import hashlib
import math
import struct
from itertools import product
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.models.neighbour_cf import _profile_key
from goodfence.models.recommender import Fallback
from goodfence.neighbours.candidate_lists import Axis
from goodfence.neighbours.predict import Over
from goodfence.selection.mechanism import Mechanism
from tests.support import reference
from tests.support.strategies import from_rows

pytestmark = pytest.mark.kernel

MECHANISMS: list[Mechanism] = [gf.KNN(k=6), gf.NPNS(k=6), gf.PNCF(k=6), gf.PPNS(k=6, beta=3)]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"among": "raters"},
    {"among": "raters", "center": "bias", "fallback": "bias"},
    {"center": "user_mean", "min_neighbours": 2},
]
SMALL = gf.synthetic(users=120, items=60, ratings=2_400, rng=5)


def rows_of(ratings: gf.Ratings) -> list[dict[int, float]]:
    csr = ratings.csr
    pairs = zip(csr.indptr[:-1], csr.indptr[1:], strict=True)
    return [
        dict(zip(csr.indices[start:stop].tolist(), csr.data[start:stop].tolist(), strict=True)) for start, stop in pairs
    ]


def every_cell(ratings: gf.Ratings) -> tuple[np.ndarray, np.ndarray]:
    n_users, n_items = ratings.shape
    return np.repeat(ratings.users, n_items), np.tile(ratings.items, n_users)


@pytest.mark.parametrize("over", ["raters", "neighbours"])
def test_predictions_equal_the_formula(over: Over) -> None:
    model = gf.NeighbourCF(gf.KNN(k=6), over=over).fit(SMALL)
    rows = rows_of(SMALL)
    users, items = every_cell(SMALL)
    found = model.predict(users, items).reshape(SMALL.shape)
    for row in range(0, SMALL.shape[0], 7):
        near, weights = model.neighbours_[row].tolist(), model.similarities_[row].tolist()
        for column in range(SMALL.shape[1]):
            expected = reference.prediction(near, weights, rows, column, over == "raters")
            assert found[row, column] == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_the_printed_formula_gives_zero_where_no_neighbour_rated() -> None:
    users, items = every_cell(SMALL)
    raters = gf.NeighbourCF(gf.KNN(k=6)).fit(SMALL).predict(users, items)
    printed = gf.NeighbourCF(gf.KNN(k=6), over="neighbours").fit(SMALL).predict(users, items)
    nobody = np.isnan(raters)
    assert nobody.any()
    assert (printed[nobody] == 0).all()
    assert not np.isnan(printed).any()


def test_without_its_second_noise_pncf_draws_the_same_and_predicts_by_similarities() -> None:
    noisy, quiet = (gf.NeighbourCF(gf.PNCF(k=6, noise=noise), rng=7).fit(SMALL) for noise in (True, False))
    assert (noisy.neighbours_ == quiet.neighbours_).all()
    assert (quiet.weights_ == quiet.similarities_).all()
    assert not (noisy.weights_ == noisy.similarities_).any()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_few_and_many_cells_of_a_row_are_predicted_alike(settings: dict[str, Any]) -> None:
    model = gf.NeighbourCF(gf.KNN(k=6), **settings).fit(SMALL)
    users, items = every_cell(SMALL)
    together = model.predict(users, items)
    shuffled = np.random.default_rng(1).permutation(len(users))
    assert np.array_equal(model.predict(users[shuffled], items[shuffled]), together[shuffled], equal_nan=True)
    for cell in range(0, len(users), 331):
        alone = model.predict(users[[cell]], items[[cell]])
        assert np.array_equal(alone, together[[cell]], equal_nan=True)


@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_the_draw_depends_on_seed_and_row_only(mechanism: Mechanism, axis: Axis) -> None:
    one = gf.NeighbourCF(mechanism, axis=axis, rng=7, threads=1).fit(SMALL)
    two = gf.NeighbourCF(mechanism, axis=axis, rng=7, threads=2).fit(SMALL)
    assert (one.neighbours_ == two.neighbours_).all()
    assert (one.weights_ == two.weights_).all()
    assert (np.diff(one.similarities_) <= 0).all()
    assert one.neighbours_.shape == (SMALL.shape[0 if axis == "user" else 1], 6)
    own = np.arange(len(one.neighbours_))[:, None]
    assert not (one.neighbours_ == own).any()
    if not isinstance(mechanism, gf.KNN):
        other = gf.NeighbourCF(mechanism, axis=axis, rng=8).fit(SMALL)
        fresh = [gf.NeighbourCF(mechanism, axis=axis).fit(SMALL) for _ in range(2)]
        assert (one.neighbours_ != other.neighbours_).any()
        assert (fresh[0].neighbours_ != fresh[1].neighbours_).any()


def test_pncf_adds_noise_to_the_weights_only() -> None:
    model = gf.NeighbourCF(gf.PNCF(k=6), rng=1).fit(SMALL)
    assert (model.weights_ != model.similarities_).all()
    assert (model.similarities_ >= 0).all()
    other = gf.NeighbourCF(gf.PPNS(k=6, beta=2), rng=1).fit(SMALL)
    assert (other.weights_ == other.similarities_).all()


@pytest.mark.parametrize("settings", [SETTINGS[0], SETTINGS[3]], ids=str)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("axis", ["user", "item"])
def test_lists_are_ranked_by_what_the_neighbours_rated_and_how(
    axis: Axis, mechanism: Mechanism, settings: dict[str, Any]
) -> None:
    model = gf.NeighbourCF(mechanism, axis=axis, rng=3, **settings).fit(SMALL)
    rows, n_items = rows_of(SMALL), SMALL.shape[1]
    for row in (0, 17, 119):
        found = model.recommend(SMALL.users[row], n=5)
        if axis == "user":
            near = model.neighbours_[row].tolist(), model.weights_[row].tolist()
            scores = reference.votes(*near, rows, n_items)
        else:
            scores = [math.nan] * n_items
            for item, rated in product(range(n_items), rows[row].items()):
                weight = dict(zip(model.neighbours_[item], model.weights_[item], strict=True))
                if rated[0] in weight:
                    before = 0.0 if math.isnan(scores[item]) else scores[item]
                    scores[item] = before + rated[1] * weight[rated[0]]
        expected = reference.best_list(scores, list(rows[row]), list(range(n_items)), 5)
        assert SMALL.columns(found.items).tolist() == [column for column, _ in expected]
        np.testing.assert_array_equal(found.scores, model.predict(SMALL.users[row], found.items))


def test_recommend_gives_what_there_is_and_no_more() -> None:
    model = gf.NeighbourCF(gf.KNN(k=1)).fit(from_rows([{0: 5}, {0: 4, 1: 3}, {2: 1}], 3))
    assert model.recommend(0, n=10).items.tolist() == [1]
    with pytest.raises(gf.SettingError, match="n must be an integer of at least 1"):
        model.recommend(0, n=0)


def test_recommend_takes_a_profile_too() -> None:
    model = gf.NeighbourCF(gf.KNN(k=4)).fit(SMALL)
    profile = {int(item): 3.0 for item in SMALL.items[:6]}
    found = model.recommend(profile, n=5)
    alone = model.recommend(list(profile), n=5)  # as if each had the best rating
    assert not set(profile) & set(found.items.tolist())
    assert alone.items.tolist() == model.recommend(dict.fromkeys(profile, 5.0), n=5).items.tolist()
    with pytest.raises(gf.SettingError, match="user must be text or an integer"):
        model.recommend({0, 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_a_profile_gets_the_same_answer_in_any_order(mechanism: Mechanism, settings: dict[str, Any]) -> None:
    model = gf.NeighbourCF(mechanism, **settings).fit(SMALL)
    profile = {int(item): 3.0 for item in SMALL.items[:6]}
    first = model.predict(profile, SMALL.items)
    again = model.predict(dict(reversed(profile.items())), SMALL.items)
    assert np.array_equal(first, again, equal_nan=True)


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_a_knn_answer_is_the_prediction_of_an_appended_row(settings: dict[str, Any]) -> None:
    rows = rows_of(SMALL)
    profile = dict(rows[3])
    model = gf.NeighbourCF(gf.KNN(k=6), **settings).fit(SMALL)
    appended = from_rows([*rows, profile], SMALL.shape[1])
    whole = gf.NeighbourCF(gf.KNN(k=6), **settings).fit(appended)
    expected = whole.predict([len(rows)] * SMALL.shape[1], appended.items)
    by_item = {int(SMALL.items[column]): rating for column, rating in profile.items()}
    assert np.array_equal(model.predict(by_item, SMALL.items), expected, equal_nan=True)


def test_an_item_based_answer_uses_the_profile_only() -> None:
    model = gf.NeighbourCF(gf.KNN(k=6), axis="item").fit(SMALL)
    row = 11
    profile = {SMALL.items[column]: rating for column, rating in rows_of(SMALL)[row].items()}
    expected = model.predict([SMALL.users[row]] * SMALL.shape[1], SMALL.items)
    assert np.array_equal(model.predict(profile, SMALL.items), expected, equal_nan=True)


@pytest.mark.parametrize("fallback", ["item_mean", "user_mean", "global_mean"])
def test_a_fallback_fills_the_gaps_and_only_them(fallback: Fallback) -> None:
    plain = gf.NeighbourCF(gf.KNN(k=2)).fit(SMALL)
    filled = gf.NeighbourCF(gf.KNN(k=2), fallback=fallback).fit(SMALL)
    users, items = every_cell(SMALL)
    before, after = plain.predict(users, items), filled.predict(users, items)
    made = ~np.isnan(before)
    assert np.isnan(before).any()
    assert (before[made] == after[made]).all()
    csr = SMALL.csr
    cell = int(np.flatnonzero(~made)[0])
    row, column = divmod(cell, SMALL.shape[1])
    dense = np.full(SMALL.shape, np.nan)
    dense[np.repeat(np.arange(SMALL.shape[0]), np.diff(csr.indptr)), csr.indices] = csr.data
    means = {
        "item_mean": np.nanmean(dense[:, column]),
        "user_mean": np.nanmean(dense[row]),
        "global_mean": np.nanmean(dense),
    }
    assert after[cell] == pytest.approx(means[fallback])
    assert not np.isnan(filled.predict({SMALL.items[0]: 4.0}, SMALL.items)).any()


def test_edges() -> None:
    """k = n; a target with one rating; an item nobody else rated; all ratings equal."""
    ratings = from_rows([{0: 3}, {0: 3, 1: 3}, {0: 3, 2: 3}, {1: 3}], 3)
    model = gf.NeighbourCF(gf.KNN(k=3)).fit(ratings)
    assert sorted(model.neighbours_[0].tolist()) == [1, 2, 3]
    assert model.predict([0, 2], [1, 2])[0] == 3.0
    assert math.isnan(model.predict([2], [2])[0])
    whole = gf.NeighbourCF(gf.PPNS(k=1, beta=3), rng=1).fit(ratings)
    assert whole.neighbours_.shape == (4, 1)
    with pytest.raises(gf.SettingError, match="k"):
        gf.NeighbourCF(gf.KNN(k=4)).fit(ratings)


def test_asked_before_fit() -> None:
    with pytest.raises(gf.GoodfenceError, match="fitted"):
        gf.NeighbourCF(gf.KNN(k=2)).predict([1], [1])


def test_no_sensitivity_for_pearson() -> None:
    with pytest.raises(gf.SettingError, match="pearson"):
        gf.NeighbourCF(gf.PPNS(k=2, beta=2), similarity="pearson").fit(SMALL)


def test_errors_and_repr_name_nobody() -> None:
    model = gf.NeighbourCF(gf.KNN(k=2)).fit(from_rows([{0: 3}, {0: 4}, {0: 5}], 1))
    with pytest.raises(gf.DataError) as caught:
        model.predict([4711], [0])
    assert "4711" not in str(caught.value)
    assert repr(model) == "NeighbourCF(KNN(k=2), axis='user', similarity='cosine')"


def test_the_preset_is_item_based_and_takes_any_mechanism() -> None:
    model = gf.NeighbourCF.accurate()
    assert repr(model) == (
        "NeighbourCF(KNN(k=20), axis='item', similarity='centred_cosine', center='item_mean', "
        "among='raters', min_neighbours=3)"
    )
    assert gf.NeighbourCF.accurate(gf.NPNS(k=2)).min_neighbours == 2
    assert np.isfinite(model.fit(SMALL).predict(*every_cell(SMALL))).all()


def test_traits_say_how_neighbours_are_chosen() -> None:
    plain = gf.NeighbourCF(gf.KNN(k=5)).traits
    assert (plain.among, plain.center, plain.needs_refits) == ("all", None, False)
    for settings in (
        {"among": "raters"},
        {"center": "user_mean"},
        {"min_neighbours": 2},
        {"shrinkage": 5.0},
        {"min_common": 3},
        {"similarity": "centred_cosine"},
    ):
        given: dict[str, Any] = settings
        assert gf.NeighbourCF(gf.KNN(k=5), **given).traits.needs_refits
    among = gf.NeighbourCF(gf.KNN(k=5), among="raters", center="user_mean").traits
    assert (among.family, among.settings) == ("kNN, among raters", "k=5, center=user_mean")
    assert (among.among, among.center, among.n_neighbours) == ("raters", "user_mean", 5)


def test_the_key_of_a_profile_has_64_bits_and_follows_from_seed_and_profile() -> None:
    """By hashlib alone: the seed's key, the columns in order, the ratings in their order."""
    columns, values = np.array([3, 1], dtype=np.int64), np.array([5.0, 2.0])
    packed = struct.pack("<Q2q2d", 7, 1, 3, 2.0, 5.0)
    wanted = int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")
    assert _profile_key(7, columns, values) == wanted < 2**64
    assert _profile_key(7, columns[::-1], values[::-1]) == wanted
    assert _profile_key(8, columns, values) != wanted


@pytest.mark.kernel
def test_a_cell_that_is_asked_for_twice_is_answered_twice() -> None:
    """With all others of its row: more cells than there are columns."""
    films = gf.synthetic(users=12, items=8, ratings=70, rng=7)
    model = gf.NeighbourCF(gf.KNN(k=4)).fit(films)
    once = model.predict_cells(np.zeros(8, dtype=int), np.arange(8))
    columns = np.array([0, 0, *range(8), 0, 7])
    np.testing.assert_array_equal(model.predict_cells(np.zeros(len(columns), dtype=int), columns), once[columns])
