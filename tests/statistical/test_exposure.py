"""Exposure from inclusion probabilities: the exact distribution, and what draws do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import goodfence as gf
from goodfence.attack.exposure import alone_in_pool, exposure
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.targets import Targets, find_targets
from goodfence.attack.worlds import NeighbourWorlds
from goodfence.rng import Streams
from goodfence.selection.inclusion import pool_inclusion
from tests.support import reference
from tests.support.attack_worlds import tied_ratings
from tests.support.contracts import FALSE_ALARM

N_DRAWS = 3000
MECHANISMS = [
    gf.KNN(k=4),
    gf.PPNS(k=4, beta=3, epsilon=20.0),
    gf.NPNS(k=4),
    gf.NPNS(k=4, within=2, weights="exponential", rate=3.0),
    gf.PNCF(k=4, within=2, epsilon=20.0),
    gf.PNCF(k=4, reading="truncated", epsilon=20.0),
]


@given(
    weights=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    take=st.integers(0, 6),
    target=st.integers(0, 5),
    rivals=st.sets(st.integers(0, 5)),
)
def test_alone_in_pool_is_the_law_of_successive_sampling(
    weights: list[int], take: int, target: int, rivals: set[int]
) -> None:
    """Enumerated as fractions; a weight of 0 is drawn last, which a weight of 1 in 10**15 comes near to."""
    n = len(weights)
    take, target = min(take, n), target % n
    rivals = {rival for rival in rivals if rival < n} - {target}
    given = [Fraction(weight) or Fraction(1, 10**15) for weight in weights]
    with np.errstate(divide="ignore"):
        log_weights = np.log(np.array(weights, dtype=np.float64))
    found = alone_in_pool(log_weights, take, target, np.isin(np.arange(n), list(rivals)))
    assert found == pytest.approx(float(reference.exposed(given, take, target, rivals)), abs=1e-9)
    nobody = alone_in_pool(log_weights, take, None, np.isin(np.arange(n), list(rivals)))
    chosen = reference.successive_sampling(given, take)
    out = sum(p for each, p in chosen.items() if not each & rivals)
    assert nobody == pytest.approx(float(out), abs=1e-9)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 2000.0])
@pytest.mark.parametrize(("n", "take"), [(2, 2), (9, 3), (60, 20), (60, 60), (300, 50)])
def test_without_rivals_it_is_the_inclusion_probability(n: int, take: int, spread: float) -> None:
    """However far apart the weights are."""
    log_weights = np.random.default_rng(n).normal(size=n + 1) * spread
    expected = pool_inclusion(log_weights, take)
    for target in range(0, n + 1, max(1, n // 5)):
        found = alone_in_pool(log_weights, take, target, np.zeros(n + 1, dtype=np.bool_))
        assert found == pytest.approx(float(expected[target]), abs=1e-11)


def repeated(targets: Targets, n: int) -> Targets:
    """Return one target, `n` times."""
    return Targets(
        np.repeat(targets.rows, n),
        np.repeat(targets.known_columns, n, axis=0),
        np.repeat(targets.known_ratings, n, axis=0),
        np.arange(n + 1) * len(targets.columns),
        np.tile(targets.columns, n),
        np.tile(targets.ratings, n),
    )


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_draws_are_as_exposed_as_computed(mechanism: Any) -> None:
    """How often a target is alone among the raters, counted over draws: binomial with the exact probability."""
    ratings, attack = tied_ratings(12), KNNAttack(known=3)
    worlds = NeighbourWorlds(ratings, gf.NeighbourCF(mechanism), 4)
    computed = exposure(ratings, mechanism, attack=attack, targets=4, rng=3)
    found, _ = find_targets(ratings, 4, 3, "random", Streams(3))
    dense = ratings.csr.toarray() > 0
    open_cells = 0
    for position in range(4):
        target = found.part(position, position + 1)
        lists, _ = worlds.lists(repeated(target, N_DRAWS))
        keys = np.array([Streams(draw).key(position) for draw in range(N_DRAWS)], dtype=np.uint64)
        neighbours, weights = worlds.choose(lists, keys, 1)
        near, weighted = neighbours[:, 0], weights[:, 0] != 0
        there = near == target.rows[0]
        _require_binomial(there.any(axis=1), float(computed.chosen[position]))
        for place, column in enumerate(target.columns.tolist()):
            rated = weighted & (near >= 0) & dense[near, column]
            alone = (rated & there).any(axis=1) & (rated.sum(axis=1) == 1)
            probability = float(computed.alone[found.starts[position] + place])
            _require_binomial(alone, probability)
            open_cells += 0 < probability < 1
    assert open_cells > 0 or isinstance(mechanism, gf.KNN)


def _require_binomial(happened: np.ndarray, probability: float) -> None:
    count, n = int(happened.sum()), len(happened)
    if min(probability, 1 - probability) < 1e-9:
        assert count == round(probability) * n
        return
    assert stats.binomtest(count, n, probability).pvalue > FALSE_ALARM


def test_exposure_agrees_with_an_attack() -> None:
    """The share of hidden ratings on the target alone, and how often the target is chosen, on larger data."""
    ratings, mechanism = gf.load("movietweetings"), gf.PPNS(k=20, beta=3)
    attack = KNNAttack(known=8)
    computed = exposure(ratings, mechanism, attack=attack, targets=300, rng=5)
    report = attack.run(ratings, mechanism, targets=300, rng=5)
    low, high = report.estimates["target_chosen"][1:]
    assert low <= computed.target_chosen.value <= high
    # Who rests on the target alone is exact; others agree with the target by chance, as often as without.
    assert computed.share.value <= report.estimates["exact"].high
    assert computed.share.value >= report.exact - report.estimates["exact_without"].high - 0.05
    assert "Exposure(300 targets" in repr(computed)
