"""Kernels of the attack beside their slow, obvious twins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from goodfence.arrays import Csr
from goodfence.attack.targets import fake_similarities
from goodfence.kernels.attack import (
    FAKE,
    AttackedData,
    draw_for_fakes,
    insert_fakes,
    noise_for_fakes,
    number_rows,
    predict_beside_helpers,
)
from goodfence.kernels.draw import PoolArrays
from goodfence.kernels.inclusion import included_beside
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.draw import draw_neighbours, laplace_noise
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.selection.npns import NPNS
from tests.support import reference

pytestmark = pytest.mark.kernel

N_ROWS = 9


def sorted_rows(similarities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return real rows and similarities in the order of a candidate list, with one target axis."""
    order = np.argsort(-similarities, kind="stable")
    return order[np.newaxis].astype(np.int32), similarities[order][np.newaxis]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("removed", [-1, 0, 4, 8])
def test_lists_with_fakes_are_sorted_lists(seed: int, removed: int) -> None:
    generator = np.random.default_rng(seed)
    similarities = generator.choice([0.0, 0.5, 1.0], size=N_ROWS)
    n_fakes, asker = int(generator.integers(1, 5)), 0
    fake_similarity = float(generator.choice([0.0, 0.5, 1.0]))
    length = N_ROWS - (removed >= 0) + n_fakes - 1
    rows, listed = np.empty((1, length), dtype=np.int32), np.empty((1, length))
    insert_fakes(
        *sorted_rows(similarities), np.array([fake_similarity]), n_fakes - 1, np.array([removed]), rows, listed
    )
    for asker in range(n_fakes):
        numbers = np.empty(length, dtype=np.int32)
        number_rows(rows[0], removed, N_ROWS - (removed >= 0), asker, numbers)
        expected = reference.fake_candidates(similarities.tolist(), fake_similarity, n_fakes, removed, asker)
        assert list(zip(numbers.tolist(), listed[0].tolist(), strict=True)) == expected


@pytest.mark.parametrize("n_fakes", [3, 6])  # fewer than neighbours, and more
@pytest.mark.parametrize("removed", [-1, 2])
def test_draws_and_noise_are_those_of_the_attacked_rows(removed: int, n_fakes: int) -> None:
    similarities = np.linspace(0.9, 0.1, N_ROWS)
    mechanism, key = NPNS(k=4), 2**63 + 5
    n_real = N_ROWS - (removed >= 0)
    length = n_real + n_fakes - 1
    rows, listed = np.empty((1, length), dtype=np.int32), np.empty((1, length))
    away = np.array([removed])
    insert_fakes(*sorted_rows(similarities), np.array([0.5]), n_fakes - 1, away, rows, listed)
    positions = np.empty((1, n_fakes, 4), dtype=np.int64)
    numbers = np.empty((1, n_fakes, 4), dtype=np.int32)
    pools = PoolArrays(*(np.array([[part]]) for part in (0, length, 4)))
    data = AttackedData(np.array([key], dtype=np.uint64), away, N_ROWS)
    weights = mechanism.log_weights(listed)
    draw_for_fakes(weights, rows, pools, data, positions, numbers)
    noise = np.empty((1, n_fakes, 4))
    noise_for_fakes(data, numbers, np.full((1, n_fakes, 4), 0.3), noise)
    for asker in range(n_fakes):
        expected = reference.fake_candidates(similarities.tolist(), 0.5, n_fakes, removed, asker)
        order = np.array([[number for number, _ in expected]], dtype=np.int32)
        asking = np.array([n_real + asker])
        chosen = draw_neighbours(mechanism, listed, order, asking, key)
        np.testing.assert_array_equal(positions[0, asker], chosen[0])
        near = np.take_along_axis(order, chosen, axis=1)
        np.testing.assert_array_equal(numbers[0, asker], near[0])
        np.testing.assert_array_equal(noise[0, asker], laplace_noise(near, asking, key, 0.3)[0])


@pytest.mark.parametrize("over_raters", [True, False])
def test_predictions_beside_helpers(over_raters: bool) -> None:
    rows = [{0: 5.0, 2: 1.0}, {1: 4.0}, {}, {0: 2.0, 1: 3.0, 2: 2.0}]
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([column for row in rows for column in row])
    ratings = np.array([rating for row in rows for rating in row.values()])
    neighbours = np.array([[0, FAKE, 3], [1, 2, FAKE], [2, 0, 1]])
    weights = np.array([[0.5, -0.25, 1.0], [0.3, 0.2, 0.7], [0.0, 0.4, 0.0]])
    cells = np.array([0, 1, 1])
    predictions = np.empty(3)
    predict_beside_helpers(cells, 1.5, neighbours, weights, Csr(starts, columns, ratings), over_raters, predictions)
    for question, cell in enumerate(cells.tolist()):
        helper = {cell: 1.5}
        near = [4 if row == FAKE else row for row in neighbours[question].tolist()]
        expected = reference.prediction(near, weights[question].tolist(), [*rows, helper], cell, over_raters)
        assert predictions[question] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("take", [2, 3, 4])
def test_inclusion_beside_the_same_others(take: int) -> None:
    others, candidates = [5, 2, 2, 1], [1, 3, 40]
    shift = np.log(sorted(others, reverse=True)[take - 1])
    found = included_beside(
        np.log(others) - shift, np.log(candidates) - shift, take, *np.polynomial.legendre.leggauss(16)
    )
    for place, weight in enumerate(candidates):
        weights = [Fraction(each) for each in (*others, weight)]
        expected = [reference.inclusion(weights, draws)[-1] for draws in (take, take - 1)]
        np.testing.assert_allclose(found[:, place], expected, atol=1e-12)


def test_similarities_of_pairs_are_those_of_single_rows() -> None:
    chance = np.random.default_rng(5)
    rows = [chance.choice(30, size=6, replace=False) for _ in range(20)]
    given = [chance.integers(1, 6, 6).astype(float) for _ in rows]
    profiles = Profiles.of(sparse.csr_array(np.eye(30)))
    askers = profiles.lay_out(rows, given)
    helpers = profiles.lay_out(rows[1:] + rows[:1], given[1:] + given[:1])
    measure = Similarity.of("cosine")
    engine = RowsAgainstAll(helpers, measure)
    alone = [engine.similarities(askers, row)[row] for row in range(20)]
    assert fake_similarities(askers, helpers, measure).tolist() == alone
    assert len({*alone}) > 5
