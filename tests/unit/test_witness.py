"""The witnesses: one rating apart, possible in one world and impossible in the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from goodfence.selection.draw import draw_neighbours
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import Sensitivity
from goodfence.selection.witness import (
    Witness,
    answer_witness,
    candidate_list,
    pncf_witness,
    ppns_witness,
)

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


def every_witness() -> list[Witness]:
    return [ppns_witness(), pncf_witness(), *map(answer_witness, ANSWERS)]


@pytest.mark.parametrize("witness", every_witness())
def test_the_two_data_sets_differ_in_one_rating(witness: Witness) -> None:
    changed = np.argwhere(witness.ratings != witness.ratings_without)
    assert [tuple(cell) for cell in changed.tolist()] == [witness.rating]
    assert witness.ratings[witness.rating] > 0
    assert witness.rating[0] != 0  # not the asker's own


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("make", [ppns_witness, pncf_witness])
def test_a_choice_is_impossible_with_the_rating_and_possible_without(
    make: Any, epsilon: float
) -> None:
    with_it, without_it = make(epsilon).probabilities()
    assert with_it == 0.0
    assert without_it > 0.1


def test_the_same_data_tell_apart_the_worlds_of_one_partition() -> None:
    witness = replace(ppns_witness(), mechanism=PPNS(k=2, beta=1))
    assert witness.probabilities() == (1.0, 0.0)


@pytest.mark.parametrize("mechanism", ANSWERS)
def test_an_answer_is_possible_with_the_rating_and_impossible_without(mechanism: Any) -> None:
    with_it, without_it = answer_witness(mechanism).probabilities()
    assert with_it > 0.1
    assert without_it == 0.0
    others = np.delete(answer_witness(mechanism).ratings_without, 0, axis=0)
    assert (others[:, 3] == 0).all()


@pytest.mark.parametrize("make", [ppns_witness, pncf_witness])
def test_draws_bear_it_out(make: Any) -> None:
    witness = make()
    n_draws = 4000
    for ratings, probability in zip(
        (witness.ratings, witness.ratings_without), witness.probabilities(), strict=True
    ):
        rows, similarities, rs = candidate_list(ratings, witness.mechanism.sensitivity)
        lists, everyone = np.tile(similarities, (n_draws, 1)), np.tile(rows, (n_draws, 1))
        places = draw_neighbours(
            witness.mechanism, lists, everyone, np.arange(n_draws), 8, np.full(n_draws, rs)
        )
        seen = sum(set(one) == witness.chosen for one in rows[places].tolist())
        spread = np.sqrt(n_draws * probability * (1 - probability))
        assert abs(seen - n_draws * probability) <= 5 * spread


def test_a_witness_does_not_show_its_ratings() -> None:
    assert "array" not in repr(ppns_witness())
