"""Python calls that users get wrong: each error says what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

import goodfence as gf

RATINGS = gf.synthetic(users=30, items=20, ratings=200, rng=7)
API: Any = gf


@pytest.mark.parametrize("mechanism", [gf.KNN(k=5), gf.NPNS(k=5), gf.PPNS(k=5, beta=2)], ids=repr)
@pytest.mark.parametrize("method", ["fit", "predict", "recommend"])
def test_a_mechanism_used_as_a_recommender_names_neighbour_cf(mechanism: Any, method: str) -> None:
    with pytest.raises(AttributeError, match=r"gf\.NeighbourCF\(\w+\(k=5.*\)\)\.fit\(ratings\)"):
        getattr(mechanism, method)(RATINGS)
    assert not hasattr(mechanism, "fit")


@pytest.mark.parametrize(
    "make",
    [
        lambda: API.PPNS(k=5, beta=2, eps=1.0),
        lambda: API.PNCF(k=5, eps=1.0),
        lambda: API.PrivateCF(eps=1.0),
        lambda: API.PrivateMeans(eps=1.0),
        lambda: API.PrivateTopN(eps=1.0),
    ],
)
def test_eps_is_called_epsilon(make: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'eps'; did you mean 'epsilon'"):
        make()


def test_a_mistyped_argument_of_a_function_is_suggested() -> None:
    with pytest.raises(TypeError, match="'target'; did you mean 'targets'"):
        API.audit(RATINGS, gf.KNN(k=5), target=3)


def test_a_mistyped_name_is_suggested() -> None:
    with pytest.raises(AttributeError, match="no attribute 'PrivateTopn'; did you mean 'PrivateTopN'"):
        _ = API.PrivateTopn


@pytest.mark.parametrize("name", ["BlurMe", "SlopeOne", "reproduce", "paper_protocol", "PairAttack"])
def test_a_name_that_moved_says_where_it_is(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"it is gf\.papers\.{name}"):
        getattr(API, name)
    assert getattr(API.papers, name) is not None


def test_a_class_instead_of_a_mechanism_is_named() -> None:
    with pytest.raises(gf.SettingError, match=r"that is the class; write KNN\(\.\.\.\)"):
        API.NeighbourCF(gf.KNN)


def test_a_profile_is_recommended_to() -> None:
    model = gf.NeighbourCF(gf.KNN(k=5), rng=7).fit(RATINGS)
    first, second = RATINGS.items[:2].tolist()
    assert len(model.recommend({first: 5.0, second: 3.0}, n=3).items) == 3
    assert len(model.recommend([first, second], n=3).items) == 3
