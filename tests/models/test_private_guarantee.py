"""On what the private models' guarantee rests: what is fixed at `fit`, what is public, who may hold what."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, ModelFileError, SettingError, UnknownId
from goodfence.models.persistence import read_model
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.cf import PrivateCF, PrivateMeans
from goodfence.papers.mcsherry_mironov import McSherryMironov
from goodfence.privacy.accounting import Account, FitRecord, Release, gaussian_epsilon, total_mu
from tests.models.test_private_models import made_up

ONE_MORE = 99
"""An item that only one user has rated."""


def frame(with_one_more: bool) -> Ratings:
    columns = {"user": [1, 1, 2], "item": [10, 20, 10], "rating": [3, 4, 5]}
    if with_one_more:
        columns = {
            "user": [*columns["user"], 2],
            "item": [*columns["item"], ONE_MORE],
            "rating": [*columns["rating"], 1],
        }
    return Ratings.from_frame(pa.table(columns), scale=(1, 5))


@pytest.mark.parametrize("plan", ["auto", "means", "covariance"])
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_the_stated_epsilon_does_not_tell_which_stages_were_taken(plan: Any, epsilon: float) -> None:
    model = PrivateCF(epsilon=epsilon, plan=plan, items="from ratings").fit(made_up(n_users=60, n_items=20))
    assert model.guarantee().epsilon == epsilon
    assert model.account_.epsilon(model.delta) <= epsilon


def test_settings_changed_after_the_fit_change_no_guarantee(tmp_path: Path) -> None:
    model = PrivateMeans(epsilon=8.0, unit="rating", items="from ratings").fit(made_up())
    stated = model.guarantee()
    model.epsilon, model.delta, model.unit, model.catalogue = 0.001, 0.5, "user", ["i1"]
    assert model.guarantee() == stated
    model.save(tmp_path / "model")
    assert gf.load_model(tmp_path / "model").guarantee() == stated


def test_a_seed_taken_away_after_the_fit_is_still_known() -> None:
    model = PrivateMeans(epsilon=1.0, rng=3, items="from ratings").fit(made_up())
    model.rng = None
    assert model.guarantee().status == "none"


def test_fits_are_counted_and_each_is_said_to_spend_again(tmp_path: Path) -> None:
    model = PrivateMeans(epsilon=1.0, items="from ratings").fit(made_up())
    assert "Each fit spends this again." in model.guarantee().reason
    model.fit(made_up()).save(tmp_path / "model")
    assert "This is what 2 fits on the same data spend." in model.guarantee().reason
    _, settings, _ = read_model(tmp_path / "model")
    assert settings["fit"]["n_fits"] == 2
    again = PrivateMeans.load(tmp_path / "model")
    assert again.guarantee() == model.guarantee()
    assert again.fit(made_up()).record_.n_fits == 3


@pytest.mark.parametrize(
    "model",
    [
        PrivateMeans(epsilon=1.0, items="from ratings"),
        PrivateCF(epsilon=50.0, items="from ratings"),  # does not spend all it may
        PrivateCF(epsilon=2.0, unit="user", items="from ratings"),
    ],
    ids=repr,
)
def test_the_epsilon_of_several_fits_is_that_of_all_together(model: PrivateRecommender) -> None:
    ratings = made_up()
    stated = [model.fit(ratings).guarantee().epsilon or 0.0 for _ in range(3)]
    assert stated[0] == model.epsilon
    mu = model._useful(total_mu(model.epsilon, model.delta, model._distance(ratings.shape[1])))
    for n_fits in (2, 3):  # k Gaussian mechanisms of mu are one of sqrt(k) mu
        together = gaussian_epsilon(math.sqrt(n_fits) * mu, model.delta)
        assert max(model.epsilon, together) <= stated[n_fits - 1] <= max(model.epsilon, 1.01 * together)
    model.epsilon = model.epsilon / 4
    assert (model.fit(ratings).guarantee().epsilon or 0.0) > together  # what was spent stays spent


def test_another_unit_or_a_seed_is_no_guarantee_with_what_was_spent_before() -> None:
    model = PrivateCF(epsilon=1.0, items="from ratings").fit(made_up())
    model.unit = "user"
    with pytest.raises(SettingError, match="unit must be 'rating', as before, or the model a new one"):
        model.fit(made_up())
    model.unit, model.rng = "rating", 7
    assert model.fit(made_up()).guarantee().status == "none"
    model.rng = None
    assert model.fit(made_up()).guarantee().status == "none"


def test_nothing_released_is_no_guarantee(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="at least one release"):
        FitRecord(unit="rating", epsilon=1.0, delta=1e-5, account=Account(), private=True)
    PrivateMeans(epsilon=1.0, items="from ratings").fit(made_up()).save(tmp_path / "model")
    _, settings, arrays = read_model(tmp_path / "model")
    with pytest.raises(ModelFileError):
        PrivateMeans.from_saved({**settings, "releases": []}, arrays)


def test_more_released_than_asked_is_stated() -> None:
    """Where the account shows a higher privacy cost than was asked, that is the guarantee."""
    costly = Release(name="sums", sensitivity=1 << 24, sigma=1 << 24, dimension=3)
    account = Account((costly,))
    record = FitRecord(unit="rating", epsilon=1.0, delta=1e-5, account=account, private=True)
    assert record.stated_epsilon == record.account.epsilon(1e-5) > 4
    assert dataclasses.replace(record, epsilon=50.0).stated_epsilon == 50.0


@pytest.mark.parametrize("kind", [PrivateMeans, PrivateCF, McSherryMironov])
def test_an_item_that_one_user_rated_does_not_show_in_a_given_catalogue(kind: Any) -> None:
    shapes = set()
    for with_one_more in (False, True):
        model = kind(epsilon=0.1, catalogue=[10, 20, 30]).fit(frame(with_one_more))
        shapes.add((model.model_.bias.shape, model.account_.releases[0].dimension))
        assert "the given catalogue" in model.guarantee().reason
        assert model.ratings_.items.tolist() == [10, 20, 30]
        assert np.isfinite(model.predict([1, 2], [30, 20])).all()
        with pytest.raises(UnknownId):
            model.predict([2], [ONE_MORE])
    assert len(shapes) == 1


def test_without_a_catalogue_the_list_of_items_is_said_to_be_public() -> None:
    fits = [PrivateMeans(epsilon=0.1, items="from ratings").fit(frame(more)) for more in (False, True)]
    shapes = {model.model_.bias.shape for model in fits}
    assert shapes == {(2,), (3,)}  # which is why it must be said
    reason = fits[0].guarantee().reason
    assert "the list of items in the ratings" in reason
    assert "public" in reason


def test_a_catalogue_changes_nothing_but_the_columns() -> None:
    ratings = made_up()
    backwards = ratings.items[::-1]
    model = PrivateMeans(epsilon=1.0, catalogue=backwards, rng=1).fit(ratings)
    assert model.ratings_.n_ratings == ratings.n_ratings
    assert (model.ratings_.csr.toarray()[:, ::-1] == ratings.csr.toarray()).all()


def test_a_catalogue_is_checked() -> None:
    with pytest.raises(DataError, match="different"):
        PrivateMeans(epsilon=1.0, catalogue=["i1", "i1"]).fit(made_up())
    with pytest.raises(SettingError, match="left out where a catalogue is given"):
        PrivateMeans(epsilon=1.0, catalogue=["i1"], items="from ratings")
    with pytest.raises(SettingError, match="items must be 'from ratings'"):
        PrivateMeans(epsilon=1.0, items="rated")  # type: ignore[arg-type]


def test_a_catalogue_is_saved(tmp_path: Path) -> None:
    model = PrivateMeans(epsilon=1.0, catalogue=["i3", "i1"]).fit(made_up())
    model.save(tmp_path / "model")
    again = PrivateMeans.load(tmp_path / "model")
    assert again.guarantee() == model.guarantee()
    assert again.catalogue is not None
    assert list(again.catalogue) == ["i3", "i1"]


@pytest.mark.parametrize(
    "model", [PrivateMeans(epsilon=1.0, items="from ratings"), PrivateCF(epsilon=1.0, items="from ratings")], ids=repr
)
def test_saved_without_the_ratings(model: PrivateRecommender, tmp_path: Path) -> None:
    ratings = made_up()
    model.fit(ratings).save(tmp_path / "model", ratings=False)
    _, _, arrays = read_model(tmp_path / "model")
    assert len(arrays["data"]) == len(arrays["indices"]) == len(arrays["users"]) == 0
    again = gf.load_model(tmp_path / "model")
    assert again.guarantee() == model.guarantee()
    assert (again.predict({"i3": 4.0}, ["i1"]) == model.predict({"i3": 4.0}, ["i1"])).all()
    for users in ([1], np.array([1])):
        with pytest.raises(UnknownId, match="saved without ratings answers a profile only"):
            again.predict(users, ["i1"])


def test_a_scale_whose_length_overflows_is_refused() -> None:
    """Of such a scale every rating would lie at infinity, and integers made of it anywhere."""
    scale = gf.Scale(-1.7e308, 1.7e308, None)
    csr = sparse.csr_array(np.full((1, 3), 1.7e308))
    for model in (PrivateMeans(epsilon=1.0, items="from ratings"), PrivateCF(epsilon=1.0, items="from ratings")):
        with pytest.raises(DataError, match="overflows"):
            model.fit(Ratings(csr, users=[0], items=range(3), scale=scale))


@pytest.mark.parametrize("epsilon", [8000.0, 50_000.0])
@pytest.mark.parametrize("kind", [PrivateMeans, PrivateCF, McSherryMironov])
def test_a_budget_beyond_the_ends_of_the_noise_is_refused(kind: Any, epsilon: float) -> None:
    """The noise ends at 121 sigma: one rating must not move anything nearly as far."""
    with pytest.raises(SettingError, match="epsilon must be smaller"):
        kind(epsilon=epsilon, items="from ratings").fit(made_up(n_users=5, n_items=3))


def test_the_largest_budget_leaves_room_to_the_ends_of_the_noise() -> None:
    model = PrivateMeans(epsilon=2000.0, items="from ratings").fit(made_up(n_users=5, n_items=3))
    assert 50 < model.account_.mu <= 64


@pytest.mark.parametrize(
    ("n_items", "delta", "message"), [(300, 1e-5, "larger, or covariance_items fewer"), (60, 1e-7, "larger, got")]
)
def test_a_budget_too_small_for_the_rounding_is_refused(n_items: int, delta: float, message: str) -> None:
    """Where rounding alone exceeds the sensitivity, nothing of the budget is left for the statistics."""
    with pytest.raises(SettingError, match=f"epsilon must be {message}"):
        McSherryMironov(epsilon=1e-6, delta=delta, items="from ratings").fit(made_up(n_users=5, n_items=n_items))


@pytest.mark.parametrize("kind", [PrivateMeans, PrivateCF, McSherryMironov])
def test_what_is_not_fitted_speaks_of_no_earlier_fit(kind: Any) -> None:
    reason = kind(epsilon=1.0, items="from ratings").guarantee().reason
    assert reason.endswith("The scale and the list of items in the ratings are public. Each fit spends this again.")
