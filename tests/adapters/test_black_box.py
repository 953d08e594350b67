"""Any recommender from outside: functions and objects of every style give the numbers of what is inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.adapters.black_box import BlackBox
from goodfence.errors import BlackBoxProblem, GoodfenceError, NotFittedError, SettingError
from tests.support.attack_worlds import tied_ratings

RATINGS = tied_ratings(3)
ATTACK = gf.KNNAttack(known=3, fakes=4)


def model(rng: int | None = None) -> gf.NeighbourCF:
    return gf.NeighbourCF(gf.NPNS(k=4), rng=rng, progress=False)


def train(ratings: gf.Ratings, rng: int | None = None) -> gf.NeighbourCF:
    return model(rng).fit(ratings)


def train_to_function(ratings: gf.Ratings, rng: int | None = None) -> Any:
    return lambda users, items: model(rng).fit(ratings).predict(users, items).tolist()


class Returns:
    """Fits in place and returns nothing."""

    rng: int | None = None

    def fit(self, ratings: gf.Ratings) -> None:
        self.inside = model(self.rng).fit(ratings)

    def predict(self, users: Any, items: Any) -> list[float | None]:
        told = self.inside.predict(users, items).tolist()
        return [None if one != one else one for one in told]


@pytest.mark.parametrize(
    "box", [model(), train, train_to_function, Returns()], ids=["object", "train", "function", "None"]
)
def test_a_box_is_attacked_as_what_is_inside(box: Any) -> None:
    outside = ATTACK.run(RATINGS, BlackBox(box), targets=4, rng=5)
    inside = ATTACK.run(RATINGS, model(), targets=4, rng=5)
    # Who was chosen is not to be seen from outside.
    names = ["target_chosen"]
    assert outside.table().drop_columns(names).equals(inside.table().drop_columns(names))
    assert np.isnan(outside.target_chosen)


@pytest.mark.parametrize(
    "box", [model(), train, lambda ratings, rng: train(ratings, rng).predict], ids=["object", "train", "function"]
)
def test_profiles_stay_outside_the_data(box: Any) -> None:
    class OnlyAnswers:
        rng: int | None = None
        profiles_only = True

        def fit(self, ratings: gf.Ratings) -> gf.NeighbourCF:
            return train(ratings, self.rng)

        def predict(self, profile: Any, items: Any) -> Any:
            raise NotImplementedError

    outside = ATTACK.run(RATINGS, BlackBox(box, asks="profile"), targets=4, rng=5)
    inside = ATTACK.run(RATINGS, OnlyAnswers(), targets=4, rng=5)
    assert outside.table().equals(inside.table())


def test_a_box_can_be_evaluated() -> None:
    kept, held_out = gf.holdout(RATINGS, fraction=0.2, rng=1)
    box: Any = BlackBox(train, rng=3).fit(kept)
    assert gf.evaluate(box, held_out) == gf.evaluate(train(kept, 3), held_out)


def test_the_given_object_is_never_fitted() -> None:
    given = Returns()
    BlackBox(given, rng=9).fit(RATINGS)
    assert not hasattr(given, "inside")
    assert given.rng is None


def test_functions_that_take_no_rng_get_none() -> None:
    box = BlackBox(lambda _: lambda _, items: np.ones(len(items))).fit(RATINGS)
    assert box.predict(RATINGS.users[:2], RATINGS.items[:2]).tolist() == [1, 1]


def test_a_box_guarantees_nothing() -> None:
    assert BlackBox(train).guarantee().status == "none"


def test_no_repr_shows_what_is_inside() -> None:
    assert repr(BlackBox(train)) == "BlackBox(train, asks='users')"
    assert repr(BlackBox(Returns()).fit(RATINGS)) == "BlackBox(Returns, asks='users')"


class Fitted:
    def predict(self, users: Any, items: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("box", "settings", "rule"),
    [
        (3, {}, "box must be able to learn"),
        (Returns, {}, "box must be an instance"),
        (Returns(), {"asks": "profile_lists"}, "box must have recommend"),
        (Fitted(), {}, "box must be able to learn"),
        (train, {"asks": "items"}, "asks must be"),
    ],
)
def test_what_cannot_be_audited_is_refused_at_once(box: Any, settings: Any, rule: str) -> None:
    with pytest.raises(SettingError, match=rule):
        BlackBox(box, **settings)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ([1.0], r"2 were asked, and the answers have the shape \(1,\)"),
        ([[1.0, 2.0]], "each question once"),
        (3.5, "each question once"),
        (["user 3", "x"], "with numbers"),
        ([1.0, np.inf], "finite"),
        ({"user 3": 1}, "with numbers"),
        ([[1.0], [1.0, 2.0]], "with numbers"),
    ],
)
def test_answers_that_are_none_are_refused_without_repeating_them(told: Any, rule: str) -> None:
    box = BlackBox(lambda _: lambda *_: told).fit(RATINGS)
    with pytest.raises(BlackBoxProblem, match=rule) as caught:
        box.predict(RATINGS.users[:2], RATINGS.items[:2])
    assert "user 3" not in str(caught.value)
    assert isinstance(caught.value, GoodfenceError)


def test_a_box_that_learns_nothing_askable_is_refused() -> None:
    with pytest.raises(BlackBoxProblem, match="must be a function or have predict, got int"):
        BlackBox(lambda _: 3).fit(RATINGS)


def test_a_box_is_asked_after_fit_and_in_its_own_way() -> None:
    box = BlackBox(train)
    with pytest.raises(NotFittedError):
        box.predict(RATINGS.users[:1], RATINGS.items[:1])
    with pytest.raises(SettingError, match="items must be as many as users"):
        box.fit(RATINGS).predict(RATINGS.users[:1], RATINGS.items[:2])
    with pytest.raises(AttributeError, match="use predict"):
        _ = box.recommend
    with pytest.raises(AttributeError, match="use recommend"):
        _ = BlackBox(train, asks="profile_lists").predict


def test_what_goes_wrong_inside_is_told_as_it_is() -> None:
    def broken(ratings: gf.Ratings) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        BlackBox(broken).fit(RATINGS)
    with pytest.raises(TypeError, match="not iterable"):  # written in C: nobody can see whether it takes a seed
        BlackBox(max).fit(RATINGS)
