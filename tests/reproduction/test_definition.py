"""Figure definitions: what each figure of the paper is, and how it fits other data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.errors import SettingError
from goodfence.reproduction.definition import BUNDLED, ORDER, definition


@pytest.mark.parametrize("bundled", [False, True])
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", ORDER)
def test_every_point_of_every_figure_has_four_mechanisms(
    name: str, quick: bool, bundled: bool
) -> None:
    figure = definition(name, quick=quick, bundled=bundled)
    assert list(figure.series) == ["kNN", "nPNS", "PNCF", "PPNS"]
    assert list(figure.values) == sorted(set(figure.values))
    for x in figure.values:
        parameters = figure.parameters(x)
        for series in figure.series:
            assert figure.mechanism(series, x).k == parameters["k"]


@pytest.mark.parametrize(
    ("name", "fixed", "x", "ends"),
    [
        ("item-movielens", {"epsilon": 1, "k": 100}, "beta", (1, 8)),
        ("user-movielens", {"epsilon": 1, "k": 100}, "beta", (1, 4)),
        ("user-douban", {"epsilon": 1, "k": 100}, "beta", (1, 66)),
        ("attack-beta", {"epsilon": 1, "k": 50, "known": 8}, "beta", (1, 9)),
        ("attack-k", {"epsilon": 1, "known": 8, "beta": 7}, "k", (10, 100)),
        ("attack-epsilon", {"k": 50, "known": 8, "beta": 7}, "epsilon", (0.1, 100)),
        ("attack-m", {"epsilon": 1, "k": 50, "beta": 7}, "known", (1, 64)),
    ],
)
def test_the_figures_are_those_of_the_paper(
    name: str, fixed: dict[str, float], x: str, ends: tuple[float, float]
) -> None:
    figure = definition(name)
    assert dict(figure.fixed) == fixed
    assert figure.x == x
    assert (figure.values[0], figure.values[-1]) == ends
    within = [figure.series[series].get("within") for series in ("nPNS", "PNCF")]
    assert within == (["beta"] * 2 if figure.protocol == "attack" else [None] * 2)


@pytest.mark.parametrize("name", ORDER)
def test_the_bundled_points_fit_the_bundled_ratings(name: str) -> None:
    ratings = gf.load(BUNDLED)
    figure = definition(name, bundled=True)
    assert figure.fitted(ratings).values == figure.values
    assert "NOT from" in figure.note
    assert "MovieLens" not in figure.title
    assert "Douban" not in figure.title


def test_points_that_do_not_fit_are_left_out_and_no_point_at_all_is_an_error() -> None:
    small = gf.Ratings(sparse.csr_array(np.ones((450, 9))), range(450), range(9), scale=(1, 5))
    assert definition("user-movielens").fitted(small).values == (1, 2)
    assert definition("attack-beta").fitted(small).values == tuple(range(1, 9))
    with pytest.raises(SettingError, match="data must be larger for the figure item-movielens"):
        definition("item-movielens").fitted(small)


def test_targets_have_more_ratings_than_any_point_needs() -> None:
    assert definition("attack-m").most_known == 64
    assert definition("attack-k").most_known == 8
    assert definition("user-douban").most_known == 0


def test_an_unknown_figure_is_refused_with_a_near_name() -> None:
    with pytest.raises(SettingError, match="got 'atack-m'; did you mean 'attack-m'"):
        definition("atack-m")
