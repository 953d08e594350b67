"""Claims 10 and 11: the paper's formulas, on real lists and on random ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from goodfence.data.ratings import Ratings
from goodfence.experiments.claims.counted import settled
from goodfence.experiments.claims.verdict import Claim
from goodfence.experiments.reading import DEFAULT
from goodfence.experiments.tallies import Floats
from goodfence.experiments.unattacked import Seed, Unattacked
from goodfence.rng import Streams
from goodfence.selection.inclusion import alpha, inclusion_probabilities, pool_inclusion
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS

_GOOD = 0.01
_EXACT = 1e-9
_RANDOM = 77
_SMALL = (4, 3)
"""k and beta of the enumeration."""


def allocation_is_optimal(ratings: Ratings, seed: Seed, n_lists: int = 20) -> Claim:
    """Claim 10: no feasible allocation has a larger alpha than (k-1, 0, ..., 0, 1)."""
    k, beta = _SMALL
    n_tried, n_better, least = 0, 0, np.inf
    for similarities, rs in _small_lists(ratings, seed, n_lists):
        for epsilon in (1.0, 1000.0):
            best = PPNS(k=k, beta=beta, epsilon=epsilon)
            reached = alpha(best, similarities, rs)
            for counts in _allocations(k, beta):
                other = PPNS(k=k, beta=beta, epsilon=epsilon, allocation=counts)
                margin = reached - alpha(other, similarities, rs)
                n_tried += 1
                n_better += margin < -_EXACT
                least = min(least, margin)
    return settled(
        10,
        holds=n_better == 0,
        sentences=(
            (
                "Given that one neighbour must come from the last partition, taking all others from the first gives "
                "the largest expected similarity: proved, and confirmed by enumeration."
            ),
            "Some other allocation gives a larger expected similarity.",
        ),
        numbers={"allocations tried": n_tried, "better ones": n_better, "least margin": least},
    )


def manly_is_good(ratings: Ratings, seed: Seed, n_lists: int = 10) -> Claim:
    """Claim 11: Manly's approximation of the inclusion probabilities, at the settings of the figures."""
    numbers: dict[str, float] = {}
    for axis in ("user", "item"):
        world = Unattacked(ratings, ratings, "user" if axis == "user" else "item", DEFAULT)
        lists = world.targets(n_lists, seed)
        for mechanism in _settings(world.rows.shape[0]):
            bounds = world.bounds(mechanism)
            errors = [
                _manly_errors(mechanism, listed, None if bounds is None else float(bounds[asker]))
                for asker, listed in zip(lists.askers, lists.similarities, strict=True)
            ]
            name = f"{axis}-based {type(mechanism).__name__} epsilon={getattr(mechanism, 'epsilon', 1):g}"
            probability, relative = (max(part) for part in zip(*errors, strict=True))
            numbers[f"{name}: largest error of a probability"] = probability
            numbers[f"{name}: largest relative error of alpha"] = relative
    equal = [
        float(np.abs(_pool(n, take, "exact") - _pool(n, take, "manly")).max())
        for n, take in ((50, 49), (100, 99), (700, 50), (50, 1))
    ]
    numbers["equal weights: largest error of a probability"] = max(equal)
    largest = max(value for name, value in numbers.items() if name.endswith("probability"))
    return settled(
        11,
        holds=largest <= _GOOD and max(equal) <= _EXACT,
        sentences=(
            (
                f"Manly's formula misses no probability by more than {largest:.4f} at the settings of the figures, "
                "and is exact for equal weights."
            ),
            f"Manly's formula misses a probability by {largest:.4f} at the settings of the figures.",
        ),
        numbers=numbers,
    )


def _settings(n_rows: int) -> tuple[Mechanism, ...]:
    k = min(100, n_rows // 8)
    return (
        PPNS(k=k, beta=4),
        PPNS(k=k, beta=4, epsilon=100.0),
        NPNS(k=k),
        PNCF(k=k),
        PNCF(k=k, epsilon=100.0),
    )


def _manly_errors(
    mechanism: Mechanism, similarities: Floats, rs: float | None
) -> tuple[float, float]:
    exact = inclusion_probabilities(mechanism, similarities, rs)
    manly = inclusion_probabilities(mechanism, similarities, rs, method="manly")
    true_alpha = float(similarities @ exact)
    off = abs(float(similarities @ manly) - true_alpha)
    return float(np.abs(exact - manly).max()), off / true_alpha if true_alpha else 0.0


def _pool(n: int, take: int, method: str) -> Floats:
    return pool_inclusion(np.zeros(n), take, method="manly" if method == "manly" else "exact")


def _small_lists(ratings: Ratings, seed: Seed, n_lists: int) -> Iterator[tuple[Floats, float]]:
    """Hand out short lists: stretches of real ones, near and far, and random ones."""
    k, beta = _SMALL
    world = Unattacked(ratings, ratings, "user", DEFAULT)
    lists = world.targets(n_lists, seed)
    bounds = world.bounds(PPNS(k=k, beta=beta))
    assert bounds is not None, "PPNS has a sensitivity"  # noqa: S101 - for the type checker
    for asker, listed in zip(lists.askers, lists.similarities, strict=True):
        yield listed[: k * beta], float(bounds[asker])
        yield listed[:: len(listed) // (k * beta)][: k * beta], float(bounds[asker])
    generator = Streams(seed).at(_RANDOM)
    for _ in range(n_lists):
        yield np.sort(generator.random(k * beta))[::-1], 0.01 + float(generator.random())


def _allocations(k: int, beta: int) -> Iterator[tuple[int, ...]]:
    """Hand out every feasible allocation of [FINAL]: at least one from the last partition."""
    for counts in product(range(k), repeat=beta - 1):
        last = k - sum(counts)
        if last >= 1:
            yield (*counts, last)
