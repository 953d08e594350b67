"""The counterexamples: one rating apart, possible in one world and impossible in the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from goodfence.neighbours.draw import draw_neighbours
from goodfence.selection.counterexample import (
    Counterexample,
    answer_counterexample,
    candidate_list,
    pncf_counterexample,
    ppns_counterexample,
)
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import Sensitivity

EPSILONS = [1e-6, 0.1, 1.0, 10.0, 1e6]
ANSWERS: list[Mechanism] = [
    PPNS(k=2, beta=2),
    PPNS(k=2, beta=2, sensitivity=Sensitivity(scope="pair")),
    PNCF(k=2),
    PNCF(k=2, reading="truncated"),
    PNCF(k=2, within=2),
    NPNS(k=2),
    KNN(k=2),
]


def every_counterexample() -> list[Counterexample]:
    return [ppns_counterexample(), pncf_counterexample(), *map(answer_counterexample, ANSWERS)]


@pytest.mark.parametrize("found", every_counterexample())
def test_the_two_data_sets_differ_in_one_rating(found: Counterexample) -> None:
    changed = np.argwhere(found.ratings != found.ratings_without)
    assert [tuple(cell) for cell in changed.tolist()] == [found.rating]
    assert found.ratings[found.rating] > 0
    assert found.rating[0] != 0  # not the asker's own


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("make", [ppns_counterexample, pncf_counterexample])
def test_a_choice_is_impossible_with_the_rating_and_possible_without(make: Any, epsilon: float) -> None:
    with_it, without_it = make(epsilon).probabilities()
    assert with_it == 0.0
    assert without_it > 0.1


def test_the_same_data_tell_apart_the_worlds_of_one_partition() -> None:
    found = replace(ppns_counterexample(), mechanism=PPNS(k=2, beta=1))
    assert found.probabilities() == (1.0, 0.0)


@pytest.mark.parametrize("mechanism", ANSWERS)
def test_an_answer_is_possible_with_the_rating_and_impossible_without(mechanism: Any) -> None:
    with_it, without_it = answer_counterexample(mechanism).probabilities()
    assert with_it > 0.1
    assert without_it == 0.0
    others = np.delete(answer_counterexample(mechanism).ratings_without, 0, axis=0)
    assert (others[:, 3] == 0).all()


@pytest.mark.parametrize("make", [ppns_counterexample, pncf_counterexample])
def test_draws_bear_it_out(make: Any) -> None:
    found = make()
    n_draws = 4000
    for ratings, probability in zip((found.ratings, found.ratings_without), found.probabilities(), strict=True):
        rows, similarities, rs = candidate_list(ratings, found.mechanism.sensitivity)
        lists, everyone = np.tile(similarities, (n_draws, 1)), np.tile(rows, (n_draws, 1))
        places = draw_neighbours(found.mechanism, lists, everyone, np.arange(n_draws), 8, np.full(n_draws, rs))
        seen = sum(set(one) == found.chosen for one in rows[places].tolist())
        spread = np.sqrt(n_draws * probability * (1 - probability))
        assert abs(seen - n_draws * probability) <= 5 * spread


def test_a_counterexample_does_not_show_its_ratings() -> None:
    assert "array" not in repr(ppns_counterexample())
