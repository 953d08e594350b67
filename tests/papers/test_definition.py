"""Figure definitions: what each figure of the paper is, and how it fits other data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.errors import SettingError
from goodfence.papers.reproduction.definition import BUNDLED, COMPARED, LARGEST_RS, ORDER, Interpretation, definition


@pytest.mark.parametrize("bundled", [False, True])
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", ORDER)
def test_every_point_of_every_figure_has_four_mechanisms(name: str, quick: bool, bundled: bool) -> None:
    figure = definition(name, quick=quick, bundled=bundled)
    assert list(figure.series) == [*COMPARED, LARGEST_RS]
    scopes = [getattr(figure.mechanism(one, figure.values[-1]), "sensitivity", None) for one in figure.series]
    assert [None if one is None else one.scope for one in scopes] == [None, None, "pair", "pair", "target"]
    assert list(figure.values) == sorted(set(figure.values))
    for x in figure.values:
        parameters = figure.parameters(x)
        for series in figure.series:
            assert figure.mechanism(series, x).k == parameters["k"]


@pytest.mark.parametrize(
    ("name", "fixed", "x", "ends"),
    [
        ("item-movielens", {"epsilon": 1, "k": 100}, "beta", (1, 8)),
        ("user-movielens", {"epsilon": 1, "k": 100}, "beta", (1, 9)),
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
    fitted = definition("user-movielens").fitted(small)
    assert fitted.values == (1, 2, 3, 4)
    assert fitted.judged == (1, 2), "claims are judged within the paper's bound of beta"
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


def test_an_interpretation_changes_what_it_names_and_nothing_else() -> None:
    pair = gf.Sensitivity(scope="pair")
    pncf, ppns = gf.PNCF(k=5, sensitivity=pair), gf.PPNS(k=5, beta=2, sensitivity=pair)
    assert Interpretation().applied(pncf) == pncf
    assert Interpretation().applied(gf.KNN(k=5)) == gf.KNN(k=5)
    assert Interpretation(noise=False).applied(pncf) == gf.PNCF(k=5, sensitivity=pair, noise=False)
    assert Interpretation(noise=False).applied(ppns) == ppns
    whole = Interpretation(scope="target", clamp=False, rs="derived").applied(ppns)
    told = gf.Sensitivity(scope="target", clamp=False, reading="derived")
    assert whole == gf.PPNS(k=5, beta=2, sensitivity=told)
    # Zhu et al.'s draw is not defined for the pair's own RS.
    assert Interpretation(pncf="truncated").applied(pncf) == gf.PNCF(k=5, reading="truncated")
