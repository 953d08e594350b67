"""Lists by weights between items: the kernels are their slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from goodfence.kernels.weight_lists import HOT, TILE
from goodfence.models.private.top_n import ListModel
from tests.support import reference

pytestmark = pytest.mark.kernel


def made_up(n_items: int, n_chosen: int) -> ListModel:
    """Return a model whose chosen items are spread over all."""
    chance = np.random.default_rng(n_items)
    chosen = np.sort(chance.choice(n_items, n_chosen, replace=False))
    partial = np.triu(chance.uniform(-1, 1, (n_chosen, n_chosen)), 1).astype(np.float32)
    scale = chance.uniform(0.5, 1.0, n_chosen)
    return ListModel(chance.normal(0.05, 0.05, n_items), chosen, partial + partial.T, scale)


def profiles_of(n_users: int, n_items: int) -> sparse.csr_array:
    held = np.random.default_rng(5).random((n_users, n_items)) < 0.1
    held[0] = False
    return sparse.csr_array(held.astype(float))


SHAPES = [(40, 30), (TILE + 90, TILE + 20), (50, 5), (30, 30), (7, 1), ((HOT + 3) * TILE, (HOT + 2) * TILE + 7)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_scores_are_those_of_the_page(shape: tuple[int, int]) -> None:
    model, profiles = made_up(*shape), profiles_of(12, shape[0])
    own = [each.tolist() for each in (model.popularity, model.chosen, model.partial, model.scale)]
    for row, scores in enumerate(model.scores(profiles)):
        held = profiles.indices[profiles.indptr[row] : profiles.indptr[row + 1]].tolist()
        assert scores == pytest.approx(reference.weighted_scores(held, *own), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("n", [1, 20, 500])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_lists_are_all_scores_sorted(shape: tuple[int, int], n: int) -> None:
    model, profiles = made_up(*shape), profiles_of(19, shape[0])
    allowed = np.arange(shape[0]) % 5 != 2
    lists = model.rank(profiles, allowed, n)
    scores = model.scores(profiles)
    for row in range(profiles.shape[0]):
        held = profiles.indices[profiles.indptr[row] : profiles.indptr[row + 1]].tolist()
        may = np.flatnonzero(allowed).tolist()
        twin = reference.best_list(scores[row], held, may, n)
        listed = lists.columns[row] >= 0
        assert lists.columns[row][listed].tolist() == [column for column, _ in twin]
        assert lists.scores[row][listed].tolist() == [score for _, score in twin]


def test_a_list_does_not_depend_on_how_many_are_made_together() -> None:
    model, profiles = made_up(900, 800), profiles_of(333, 900)
    every = np.ones(900, dtype=np.bool_)
    together = model.rank(profiles, every, 15)
    for row in range(333):
        alone = model.rank(profiles[[row]], every, 15)
        assert (alone.columns[0] == together.columns[row]).all()
        assert (alone.scores[0] == together.scores[row]).all()


def test_no_rounding_of_the_rough_scores_hides_an_item() -> None:
    # The weights of each item are tiny but for one, so that all others round to 0 or to a whole step.
    n_items = (HOT + 4) * TILE
    chance = np.random.default_rng(3)
    partial = np.triu(chance.uniform(0, 0.008, (n_items, n_items)), 1).astype(np.float32)
    partial[np.arange(0, n_items - 1, 2), np.arange(1, n_items, 2)] = 1.0
    model = ListModel(np.zeros(n_items), np.arange(n_items), partial + partial.T, np.ones(n_items))
    held = np.zeros((4, n_items))
    for row, n_held in enumerate((0, 3, 200, n_items - 30)):
        held[row, chance.choice(n_items, n_held, replace=False)] = 1.0
    profiles = sparse.csr_array(held)
    lists, scores = model.rank(profiles, np.ones(n_items, dtype=np.bool_), 20), model.scores(profiles)
    for row in range(len(held)):
        twin = reference.best_list(scores[row], np.flatnonzero(held[row]).tolist(), list(range(n_items)), 20)
        assert list(zip(lists.columns[row].tolist(), lists.scores[row].tolist(), strict=True)) == twin
