"""A 95% interval over targets holds the truth about 95 times in 100."""

from __future__ import annotations

import numpy as np
from scipy import stats

from goodfence.attack.scoring import frequency, ratio
from tests.support.contracts import FALSE_ALARM

N_RUNS, N_TARGETS = 4000, 200


def test_intervals_of_shares_hold_the_truth() -> None:
    """Targets differ in how much is hidden and in how much of it is found; both go together, as in real data."""
    generator = np.random.default_rng(8)
    hidden = generator.integers(5, 200, size=(N_RUNS, N_TARGETS)).astype(np.float64)
    chances = np.clip(0.9 - hidden / 300, 0.1, 0.9) * (generator.random(hidden.shape) < 0.7)
    found = generator.binomial(hidden.astype(np.int64), chances).astype(np.float64)
    sizes = np.arange(5, 200)
    truth = 0.7 * (sizes * np.clip(0.9 - sizes / 300, 0.1, 0.9)).sum() / sizes.sum()
    held = 0
    for run in range(N_RUNS):
        _, low, high = ratio(found[run], hidden[run])
        held += low <= truth <= high
    # The ratio is biased by one part in the number of targets: between 94 and 96 in 100 is allowed for.
    assert stats.binomtest(held, N_RUNS, 0.94, alternative="less").pvalue > FALSE_ALARM
    assert stats.binomtest(held, N_RUNS, 0.96, alternative="greater").pvalue > FALSE_ALARM


def test_intervals_of_frequencies_hold_the_truth() -> None:
    happened = np.random.default_rng(9).random((N_RUNS // 4, N_TARGETS)) < 0.02
    held = sum(low <= 0.02 <= high for _, low, high in map(frequency, happened.astype(np.float64)))
    assert stats.binomtest(held, N_RUNS // 4, 0.93, alternative="less").pvalue > FALSE_ALARM
