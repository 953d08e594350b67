"""The distributions of what the counter-based generator gives: uniform, independent, Laplace."""

from __future__ import annotations

import numpy as np
from scipy.stats import chisquare, kstest, pearsonr

from goodfence.kernels.draw import DRAW, hash_candidates
from goodfence.neighbours.draw import draw_neighbours, laplace_noise
from goodfence.selection.inclusion import pool_inclusion
from goodfence.selection.npns import NPNS
from tests.support.contracts import FALSE_ALARM

N = 100_000


def test_hashes_of_candidates_in_a_row_are_uniform_and_independent() -> None:
    out = np.empty(N, dtype=np.uint64)
    hash_candidates(np.uint64(99), DRAW, np.uint64(5), np.arange(N, dtype=np.int32), out)
    uniforms = (out.astype(np.float64) + 0.5) / 2.0**52
    assert kstest(uniforms, "uniform").pvalue > FALSE_ALARM
    assert pearsonr(uniforms[:-1], uniforms[1:]).pvalue > FALSE_ALARM
    lowest_bits = np.bincount((out & np.uint64(7)).astype(np.int64), minlength=8)
    assert chisquare(lowest_bits).pvalue > FALSE_ALARM


def test_hashes_of_askers_in_a_row_are_independent() -> None:
    columns = []
    for asker in (0, 1):
        out = np.empty(N, dtype=np.uint64)
        candidates = np.arange(N, dtype=np.int32)
        hash_candidates(np.uint64(99), DRAW, np.uint64(asker), candidates, out)
        columns.append(out.astype(np.float64))
    assert pearsonr(*columns).pvalue > FALSE_ALARM


def test_noise_is_laplace() -> None:
    rows = np.arange(N).reshape(1000, 100)
    noise = laplace_noise(rows, np.arange(1000), 12, 0.25)
    assert kstest(noise.ravel(), "laplace", args=(0.0, 0.25)).pvalue > FALSE_ALARM


def test_large_lists_are_drawn_with_the_exact_inclusion_probabilities() -> None:
    similarities = np.linspace(1.0, 0.01, 400)
    n_draws, k = 4000, 40
    lists = np.tile(similarities, (n_draws, 1))
    rows = np.tile(np.arange(400), (n_draws, 1))
    chosen = draw_neighbours(NPNS(k=k), lists, rows, np.arange(n_draws), 31)
    counts = np.bincount(chosen.ravel(), minlength=400).reshape(40, 10).sum(axis=1)
    included = pool_inclusion(np.log(similarities), k).reshape(40, 10).sum(axis=1)
    # Draws without replacement vary less than independent ones, so this test errs on the quiet side.
    assert chisquare(counts, included * n_draws).pvalue > FALSE_ALARM
    deviations = (counts - included * n_draws) / np.sqrt(included * n_draws)
    assert np.abs(deviations).max() < 5.7
