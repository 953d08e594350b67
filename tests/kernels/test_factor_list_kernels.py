"""Lists by popularity and factors: the kernels are their slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from goodfence.kernels.factor_lists import TILE
from goodfence.models.private.top_n import ListModel
from tests.support import reference

pytestmark = pytest.mark.kernel


def made_up(n_items: int, n_chosen: int, n_factors: int) -> ListModel:
    """Return a model whose chosen items are spread over all, with factors of different lengths."""
    chance = np.random.default_rng(n_items + n_factors)
    factors = np.zeros((n_items, n_factors))
    chosen = np.sort(chance.choice(n_items, n_chosen, replace=False))
    factors[chosen] = chance.normal(size=(n_chosen, n_factors)) / np.sqrt(n_chosen)
    factors[:, : n_factors // 2] *= 0.8  # these are trusted less
    factors[chosen[:2]] *= 4.0  # these two carry much
    return ListModel(chance.normal(0.05, 0.05, n_items), factors)


def profiles_of(n_users: int, n_items: int) -> sparse.csr_array:
    held = np.random.default_rng(5).random((n_users, n_items)) < 0.1
    held[0] = False
    return sparse.csr_array(held.astype(float))


SHAPES = [(40, 30, 3), (TILE + 90, TILE + 20, 6), (50, 5, 1), (30, 30, 4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_weights_are_those_of_the_page(shape: tuple[int, int, int]) -> None:
    model, profiles = made_up(*shape), profiles_of(12, shape[0])
    found = model.weigh(profiles)
    for row, weights in enumerate(found):
        held = profiles.indices[profiles.indptr[row] : profiles.indptr[row + 1]].tolist()
        twin = reference.factor_weights(held, model.popularity.tolist(), model.factors.tolist())
        assert weights == pytest.approx(twin, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("n", [1, 20, 500])
@pytest.mark.parametrize("shape", [*SHAPES, (25, 0, 0)])
def test_the_lists_are_all_scores_sorted(shape: tuple[int, int, int], n: int) -> None:
    model, profiles = (made_up(*shape) if shape[1] else no_factors(shape[0]), profiles_of(19, shape[0]))
    allowed = np.arange(shape[0]) % 5 != 2
    lists = model.rank(profiles, allowed, n)
    scores = model.scores(model.weigh(profiles))
    for row in range(profiles.shape[0]):
        held = profiles.indices[profiles.indptr[row] : profiles.indptr[row + 1]].tolist()
        may = np.flatnonzero(allowed).tolist()
        twin = reference.best_list(scores[row], held, may, n)
        listed = lists.columns[row] >= 0
        assert lists.columns[row][listed].tolist() == [column for column, _ in twin]
        assert lists.scores[row][listed] == pytest.approx([score for _, score in twin])


def no_factors(n_items: int) -> ListModel:
    return ListModel(np.linspace(0.1, 0.9, n_items), np.zeros((n_items, 0)))


def test_a_list_does_not_depend_on_how_many_are_made_together() -> None:
    model, profiles = made_up(300, 280, 7), profiles_of(33, 300)
    every = np.ones(300, dtype=np.bool_)
    together = model.rank(profiles, every, 15)
    for row in range(33):
        alone = model.rank(profiles[[row]], every, 15)
        assert (alone.columns[0] == together.columns[row]).all()
        assert (alone.scores[0] == together.scores[row]).all()
