"""`goodfence paper predict` is Algorithm 1 and prints neighbours only when asked; `goodfence paper alpha`."""

from __future__ import annotations

import numpy as np
import pytest

import goodfence as gf
from tests.support.running import run, run_json

FILMS = gf.load("movietweetings")
POPULAR = int(np.diff(FILMS.transposed.csr.indptr).argmax())
USER, ITEM = FILMS.users[3], FILMS.items[POPULAR]
ASKED = ("paper", "predict", "movietweetings", USER, ITEM, "--seed", 7, "--quiet")
PPNS = ("--method", "ppns k=20 beta=3")


@pytest.mark.parametrize("axis", ["user", "item"])
def test_one_prediction_is_that_of_the_fitted_model(axis: str) -> None:
    told = run_json(*ASKED, "--method", f"ppns k=20 beta=3 axis={axis}", "--show-neighbours")
    model = gf.NeighbourCF(gf.PPNS(k=20, beta=3), axis="item" if axis == "item" else "user", rng=7).fit(FILMS)
    assert told["prediction"] == model.predict([USER], [ITEM])[0]
    row, ids = (3, FILMS.users) if axis == "user" else (POPULAR, FILMS.items)
    assert [one["neighbour"] for one in told["neighbours"]] == ids[model.neighbours_[row]].tolist()


def test_neighbours_are_told_to_whom_asks_for_them_only() -> None:
    assert "neighbours" not in run_json(*ASKED, *PPNS)
    code, stdout, _ = run(*ASKED, *PPNS)
    assert code == 0
    assert "Predicted" in stdout
    assert "neighbour" not in stdout
    _, shown, _ = run(*ASKED, *PPNS, "--show-neighbours")
    assert len(shown.splitlines()) == len(stdout.splitlines()) + 21
    found = gf.papers.algorithm_1(FILMS, gf.PPNS(k=20, beta=3), USER, ITEM, rng=7)
    assert repr(found) == "Prediction(20 neighbours)"


def test_the_options_of_rs_and_of_the_second_noise_reach_the_mechanism() -> None:
    method = "pncf k=20 rs_scope=pair rs_reading=derived rs_clamp=no"
    told = run_json(*ASKED, "--method", f"{method} noise=no")
    sensitivity = gf.Sensitivity(scope="pair", reading="derived", clamp=False)
    mechanism = gf.PNCF(k=20, sensitivity=sensitivity, noise=False)
    assert told["prediction"] == gf.papers.algorithm_1(FILMS, mechanism, USER, ITEM, rng=7).rating
    noisy = run_json(*ASKED, "--method", method)
    assert noisy["prediction"] != told["prediction"]


def test_as_printed_an_item_that_no_neighbour_rated_is_predicted_as_zero() -> None:
    counts = np.diff(FILMS.transposed.csr.indptr)
    rare = FILMS.items[int(counts.argmin())]
    asked = ("paper", "predict", "movietweetings", USER, rare, "--seed", 7, "--quiet")
    assert run_json(*asked, "--method", "knn k=2")["prediction"] is None
    assert run_json(*asked, "--method", "knn k=2 over=neighbours")["prediction"] == 0
    _, stdout, _ = run(*asked, "--method", "knn k=2")
    assert "no neighbour rated the item" in stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("paper", "predict", "movietweetings", "1"), "ITEM"),
        ((*ASKED, "--method", "private-means epsilon=1"), "must be neighbour-based"),
        ((*ASKED, "--method", "knn fallback=bias"), "fallback must be left out"),
        ((*ASKED, "--method", "ppns beta=3 rs_clamp=maybe"), "clamp must be"),
        ((*ASKED, "--method", "ppns beta=3 rs_scope=everybody"), "scope must be one of"),
        ((*ASKED, "--method", "knn rs_scope=pair"), "KNN has no setting 'rs_scope'"),
        ((*ASKED, "--method", "knn noise=no"), "KNN has no setting 'noise'"),
        (("paper", "alpha", "movietweetings", "--method", "private-means epsilon=1"), "neighbour-based"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(arguments: tuple[object, ...], says: str) -> None:
    code, stdout, stderr = run(*arguments)
    assert (code, stdout) == (2, "")
    assert says in stderr.splitlines()[-1]


def test_alpha_of_the_command_is_that_of_the_lists() -> None:
    told = run_json("paper", "alpha", "movietweetings", *PPNS, "--targets", 10, "--seed", 7, "--quiet")
    assert told["beta"] == 3
    assert told["n"] == 10
    assert told["alpha"] < told["largest"]
    nearest = run_json(
        "paper", "alpha", "movietweetings", "--method", "knn k=20", "--targets", 10, "--seed", 7, "--quiet"
    )
    assert nearest["alpha"] == pytest.approx(told["largest"])
    assert nearest["beta"] == 1
    pair = run_json(
        "paper",
        "alpha",
        "movietweetings",
        "--targets",
        10,
        "--seed",
        7,
        "--method",
        "ppns k=20 beta=3 rs_scope=pair",
        "--quiet",
    )
    assert pair["alpha"] != told["alpha"]
