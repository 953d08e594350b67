"""The private models: what they guarantee, what they predict, what they refuse."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from goodfence.data.load import load
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, ModelFileError, NotFittedError, SettingError, UnknownId
from goodfence.models.persistence import read_model
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.cf import FIRST_SHARE, MEANS, PrivateCF, PrivateMeans, choose_stages
from goodfence.models.private.estimation import listed_counts
from goodfence.models.private.item_model import FARTHEST, ItemBiases
from goodfence.models.private.releases import ItemSums
from goodfence.papers.mcsherry_mironov import McSherryMironov
from tests.support import reference

KINDS = (PrivateMeans, PrivateCF, McSherryMironov)


def made_up(n_users: int = 400, n_items: int = 60, low: float = 1, high: float = 5) -> Ratings:
    """Return ratings whose items differ clearly in quality: item 0 worst, the last best."""
    rng = np.random.default_rng(1)
    quality = np.linspace(-1.5, 1.5, n_items)
    rated = rng.random((n_users, n_items)) < 0.4
    raw = 3 + quality + rng.normal(0, 0.5, (n_users, 1)) + rng.normal(0, 0.7, (n_users, n_items))
    on_five = np.clip(np.rint(raw), 1, 5)
    values = low + (on_five - 1) / 4 * (high - low)
    rows, columns = np.nonzero(rated)
    csr = sparse.csr_array((values[rows, columns], (rows, columns)), shape=rated.shape)
    step = (high - low) / 4
    return Ratings(csr, users=range(n_users), items=[f"i{i}" for i in range(n_items)], scale=(low, high, step))


def every_model(**settings: Any) -> list[PrivateRecommender]:
    return [
        PrivateMeans(**settings, items="from ratings"),
        PrivateMeans(**settings, unit="user", items="from ratings"),
        *(PrivateCF(**settings, plan=plan, items="from ratings") for plan in ("auto", "means", "covariance")),
        *(
            PrivateCF(**settings, plan=plan, unit="user", items="from ratings")
            for plan in ("auto", "means", "covariance", "half_step")
        ),
        McSherryMironov(**settings, covariance_items=40, rank=3, items="from ratings"),
    ]


@pytest.mark.parametrize("model", every_model(epsilon=2.0), ids=repr)
def test_what_was_released_costs_no_more_than_was_asked(model: PrivateRecommender) -> None:
    model.fit(made_up())
    stated = model.guarantee()
    assert stated.status == ("claimed" if isinstance(model, McSherryMironov) else "proved")
    assert (stated.unit, stated.adjacency, stated.delta) == (model.unit, "add/remove", 1e-5)
    assert stated.epsilon == 2.0  # what was asked, not the cost of the stages that were taken
    assert 0.99 * 2.0 < model.account_.epsilon(1e-5) <= 2.0  # and nearly all of it is used


@pytest.mark.parametrize("model", every_model(epsilon=20.0), ids=repr)
def test_it_learns_which_items_are_good(model: PrivateRecommender) -> None:
    ratings = made_up()
    model.fit(ratings)
    predictions = model.predict({"i30": 3.0}, ratings.items)
    assert np.corrcoef(predictions, np.arange(60))[0, 1] > 0.8
    assert ((predictions >= 1) & (predictions <= 5)).all()


@pytest.mark.parametrize("model", every_model(epsilon=1.0, rng=7), ids=repr)
def test_a_seed_repeats_the_fit_and_guarantees_nothing(model: PrivateRecommender) -> None:
    ratings = made_up()
    users, items = ratings.users[:50], ratings.items[:50]
    first = model.fit(ratings).predict(users, items)
    assert (model.fit(ratings).predict(users, items) == first).all()
    assert model.guarantee().status == "none"
    assert "seed" in model.guarantee().reason


@pytest.mark.parametrize("n_items", [2, 3, 60])
@pytest.mark.parametrize("unit", ["rating", "user"])
def test_factors_are_a_function_of_the_release(n_items: int, unit: Any) -> None:
    """No randomness after the release: an iteration that begins again somewhere else would be one."""
    ratings = made_up(n_users=40, n_items=n_items)
    model = PrivateCF(epsilon=1.0, unit=unit, plan="covariance", rng=7, items="from ratings")
    fits = {model.fit(ratings).model_.features.tobytes() for _ in range(60 if n_items < 60 else 5)}
    assert len(fits) == 1


def test_without_a_seed_every_fit_is_another() -> None:
    ratings = made_up()
    model = PrivateMeans(epsilon=1.0, items="from ratings")
    first = model.fit(ratings).model_.bias
    assert (model.fit(ratings).model_.bias != first).any()


@pytest.mark.parametrize("scale", [(0.0, 10.0), (0.5, 5.0), (-1.0, 1.0)])
def test_the_scale_does_not_matter(scale: tuple[float, float]) -> None:
    low, high = scale
    plain, mapped = made_up(), made_up(low=low, high=high)
    users, items = plain.users[:60], plain.items[:60]
    on_five = PrivateCF(epsilon=1.0, rng=3, items="from ratings").fit(plain).predict(users, items)
    there = PrivateCF(epsilon=1.0, rng=3, items="from ratings").fit(mapped).predict(users, items)
    assert there == pytest.approx(low + (on_five - 1) / 4 * (high - low), abs=1e-6)


def test_an_observed_scale_is_refused() -> None:
    csr = sparse.csr_array(np.array([[5.0, 3.0], [0.0, 4.0]]))
    observed = Ratings(csr, users=[1, 2], items=[1, 2])
    with pytest.raises(DataError, match="declared"):
        PrivateMeans(epsilon=1.0, items="from ratings").fit(observed)
    with pytest.raises(DataError, match="more than one value"):
        PrivateMeans(epsilon=1.0, items="from ratings").fit(
            Ratings(sparse.csr_array((2, 2)), [1, 2], [1, 2], scale=(3, 3))
        )


@pytest.mark.parametrize("model", every_model(epsilon=1.0), ids=repr)
def test_no_ratings_at_all_can_be_fitted(model: PrivateRecommender) -> None:
    """An error here would tell that nobody rated anything."""
    nothing = Ratings(sparse.csr_array((3, 5)), users=[1, 2, 3], items=range(5), scale=(1, 5))
    predictions = model.fit(nothing).predict([1, 2], [0, 4])
    assert np.isfinite(predictions).all()


@pytest.mark.parametrize("model", every_model(epsilon=1.0), ids=repr)
def test_one_item_can_be_fitted(model: PrivateRecommender) -> None:
    csr = sparse.csr_array(np.array([[5.0], [3.0]]))
    assert np.isfinite(model.fit(Ratings(csr, [1, 2], [1], scale=(1, 5))).predict([1], [1])).all()


@pytest.mark.parametrize(("epsilon", "most"), [(0.1, FARTHEST), (1.0, 5), (4.0, 5), (30.0, 5)])
@pytest.mark.parametrize("plan", ["covariance", "half_step"])
def test_factors_reach_their_bounds_by_much_noise_only(plan: Any, epsilon: float, most: float) -> None:
    model = PrivateCF(epsilon=epsilon, unit="user", plan=plan, items="from ratings").fit(load("movietweetings"))
    assert model.model_.features.shape[1] > 1
    assert np.abs(model.model_.features).max() <= most
    assert np.abs(model.model_.bias).max() <= most


def test_an_out_of_sample_user_gets_what_a_row_with_these_ratings_gets() -> None:
    ratings = made_up()
    model = PrivateCF(epsilon=2.0, rng=1, items="from ratings").fit(ratings)
    row = ratings.csr[[5]].tocoo()
    profile = {ratings.items[c]: v for c, v in zip(row.coords[1], row.data, strict=True)}
    asked = ratings.items[:20]
    assert model.predict(profile, asked) == pytest.approx(model.predict([5] * 20, asked))


def test_recommendations_are_unseen_and_best_first() -> None:
    ratings = made_up()
    model = PrivateCF(epsilon=5.0, items="from ratings").fit(ratings)
    found = model.recommend(3, n=8)
    seen = set(ratings.items[ratings.csr[[3]].tocoo().coords[1]])
    assert len(found.items) == 8
    assert not seen & set(found.items)
    assert found.scores == pytest.approx(model.predict(3, found.items))


def test_lists_are_ranked_by_counts_and_what_is_expected_to_be_liked() -> None:
    """Count times the root of the probability of more than 3.5 on the scale 1..5, where ratings vary by 0.85."""
    ratings = made_up()
    model = PrivateCF(epsilon=5.0, items="from ratings").fit(ratings)
    counts = model.model_.counts
    every = np.arange(ratings.shape[1])
    for row in (0, 3, 9):
        part = slice(*ratings.csr.indptr[[row, row + 1]])
        columns, values = ratings.csr.indices[part], ratings.csr.data[part]
        predicted = 3.5 + model.model_.predict_user(columns, values - 3.5, every)
        liked = [NormalDist(one, math.sqrt(0.85)).cdf(3.5) for one in predicted]
        scores = counts * np.sqrt(1 - np.array(liked))
        wanted = reference.best_list(scores, columns.tolist(), every.tolist(), 8)
        for found in (
            model.recommend(ratings.users[row], n=8),
            model.recommend(dict(zip(ratings.items[columns], values, strict=True)), n=8),
        ):
            assert ratings.columns(found.items).tolist() == [column for column, _ in wanted]
            expected = np.minimum(predicted, 5.0)[ratings.columns(found.items)]
            assert found.scores == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("kind", "near"), [(PrivateCF, 11.0), (PrivateMeans, 1.5)])
def test_counts_of_lists_are_those_of_the_data_where_noise_is_small(kind: Any, near: float) -> None:
    """Counts are 137 to 182; PrivateCF spends no more than mu = 2.9, and its noise is 1.8."""
    ratings = made_up()
    model = kind(epsilon=500.0, items="from ratings").fit(ratings)
    counts = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
    np.testing.assert_allclose(model.model_.counts, counts, atol=near)


def test_a_count_near_its_noise_is_what_the_prior_makes_of_it() -> None:
    """400 is far above a noise of 10: 400² / (400² + 40²) of it is believed, and of -30 nothing."""
    sums = ItemSums(np.zeros(2), np.array([400.0, -30.0]), 1.0, 10.0)
    items = ItemBiases(np.zeros(2), np.ones(2), np.array([300.0, 2.0]))
    share = 400**2 / (400**2 + 40**2)
    assert listed_counts(sums, items) == pytest.approx([share * 400 + (1 - share) * 300, 2.0])


def test_a_file_without_counts_or_with_impossible_ones_is_refused(tmp_path: Path) -> None:
    model = PrivateMeans(epsilon=1.0, items="from ratings").fit(made_up())
    model.save(tmp_path / "model.gf")
    _, settings, arrays = read_model(tmp_path / "model.gf")
    loaded = PrivateMeans.from_saved(settings, arrays)
    np.testing.assert_array_equal(loaded.model_.counts, model.model_.counts)
    without = {name: array for name, array in arrays.items() if name != "counts"}
    with pytest.raises(ModelFileError, match="not sound"):
        PrivateMeans.from_saved(settings, without)
    for wrong in (-1.0, np.nan, np.inf, 1e300):
        changed = arrays["counts"].copy()
        changed[0] = wrong
        with pytest.raises(ModelFileError):
            PrivateMeans.from_saved(settings, {**arrays, "counts": changed})
    with pytest.raises(ModelFileError):
        PrivateMeans.from_saved(settings, {**arrays, "counts": arrays["counts"][:-1]})


def test_answers_are_the_same_however_often_asked() -> None:
    ratings = made_up()
    model = PrivateCF(epsilon=1.0, items="from ratings").fit(ratings)
    first = model.predict({"i3": 4.0}, ratings.items)
    assert all((model.predict({"i3": 4.0}, ratings.items) == first).all() for _ in range(3))


def test_another_users_ratings_reach_a_prediction_only_through_the_release() -> None:
    ratings = made_up()
    model = PrivateCF(epsilon=1.0, rng=1, items="from ratings").fit(ratings)
    before = model.predict([0] * 10, ratings.items[:10])
    others = ratings.csr.copy().tolil()
    others[5:, :] = 0
    emptied = ratings.replaced(sparse.csr_array(others.tocsr()))
    model.restore(emptied, model.model_, model.record_)
    assert (model.predict([0] * 10, ratings.items[:10]) == before).all()


@pytest.mark.parametrize("model", every_model(epsilon=1.0), ids=repr)
def test_saved_and_restored(model: PrivateRecommender, tmp_path: Path) -> None:
    ratings = made_up()
    model.fit(ratings).save(tmp_path / "model")
    kind, settings, arrays = read_model(tmp_path / "model")
    again = type(model).from_saved(settings, arrays)
    assert kind == type(model).__name__
    assert again.guarantee() == model.guarantee()
    assert repr(again) == repr(model)
    assert (again.predict([1, 2], ["i1", "i2"]) == model.predict([1, 2], ["i1", "i2"])).all()


def test_a_seeded_model_stays_unprotected_when_restored(tmp_path: Path) -> None:
    PrivateMeans(epsilon=1.0, rng=5, items="from ratings").fit(made_up()).save(tmp_path / "model")
    _, settings, arrays = read_model(tmp_path / "model")
    assert PrivateMeans.from_saved(settings, arrays).guarantee().status == "none"
    with pytest.raises(ModelFileError):
        PrivateMeans.from_saved({**settings, "releases": [{"name": "x"}]}, arrays)
    with pytest.raises(ModelFileError):
        PrivateMeans.from_saved(settings, {**arrays, "effects": arrays["effects"][:3]})


def test_public_features_help_and_cost_nothing() -> None:
    ratings = made_up()
    features = np.tile(np.eye(4), (15, 1))
    plain = PrivateCF(epsilon=1.0, plan="means", items="from ratings").fit(ratings)
    with_features = PrivateCF(epsilon=1.0, plan="means", features=features, items="from ratings").fit(ratings)
    first, second = (model.account_.releases for model in (with_features, plain))
    assert [each.name for each in first] == [each.name for each in second]
    assert [each.dimension for each in first] == [each.dimension for each in second]
    assert with_features.model_.features.shape[1] == plain.model_.features.shape[1] + 4
    with pytest.raises(SettingError, match="features"):
        PrivateCF(epsilon=1.0, features=features[:5], items="from ratings").fit(ratings)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (PrivateMeans, {"epsilon": 0.0}),
        (PrivateMeans, {"epsilon": float("inf")}),
        (PrivateMeans, {"epsilon": 1.0, "delta": 0.0}),
        (PrivateMeans, {"epsilon": 1.0, "unit": "household"}),
        (PrivateCF, {"epsilon": 1.0, "plan": "magic"}),
        (PrivateCF, {"epsilon": 1.0, "plan": "half_step"}),
        (McSherryMironov, {"epsilon": 1.0, "clamp": 0.05}),
        (McSherryMironov, {"epsilon": 1.0, "covariance_items": 10**6}),
    ],
)
def test_settings_are_checked(kind: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        kind(**settings)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_by_name_only(kind: Any) -> None:
    parameters = list(inspect.signature(kind).parameters.values())
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters)


def test_asked_before_it_is_fitted() -> None:
    with pytest.raises(NotFittedError):
        PrivateMeans(epsilon=1.0, items="from ratings").predict([1], [1])
    assert PrivateMeans(epsilon=1.0, items="from ratings").guarantee().epsilon == 1.0


def test_somebody_unknown_is_not_named() -> None:
    model = PrivateMeans(epsilon=1.0, items="from ratings").fit(made_up())
    with pytest.raises(UnknownId) as caught:
        model.predict([987654], ["i1"])
    assert "987654" not in str(caught.value)


def test_every_plan_spends_the_same() -> None:
    ratings = made_up()
    for unit in ("rating", "user"):
        assert MEANS[unit].total + FIRST_SHARE[unit] == pytest.approx(1.0)
        for plan in ("auto", "means", "covariance") + (("half_step",) if unit == "user" else ()):
            model = PrivateCF(epsilon=3.0, unit=unit, plan=plan, rng=0, items="from ratings").fit(ratings)
            assert model.stages_.total + FIRST_SHARE[unit] == pytest.approx(1.0)


def test_stages_are_chosen_from_what_was_released() -> None:
    """The choice takes no ratings at all: what it is given is noisy, or public."""
    assert "profiles" not in inspect.signature(choose_stages).parameters
    assert "ratings" not in inspect.signature(choose_stages).parameters


@pytest.mark.parametrize(
    ("count", "variance", "taken"),
    [(200.0, 0.01, True), (200.0, 0.5, False), (0.1, 0.01, False)],
    ids=["sure and much rated", "unsure", "hardly rated"],
)
def test_a_half_step_needs_sure_biases_and_loadings_that_survive(count: float, variance: float, taken: bool) -> None:
    each = np.ones(50)
    items = ItemBiases(0 * each, variance * each, count * each)
    stages = choose_stages("auto", "user", items, 1000.0, 0.9)
    assert bool(stages.half_steps) == taken
    assert taken or stages == MEANS["user"]
