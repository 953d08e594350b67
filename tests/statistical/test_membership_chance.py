"""Who gives nobody away is not said to: the AUC of item means and of private models, and intervals that hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, sparse, stats

import goodfence as gf
from goodfence.attack.membership import MembershipReport, likelihood_ratios
from goodfence.attack.roc import auc, true_positive_bound, true_positives_at
from tests.support.attack_worlds import ItemMeans
from tests.support.contracts import FALSE_ALARM

N_USERS, N_ITEMS = 240, 30


def everybody_rates_everything(seed: int) -> gf.Ratings:
    cells = np.random.default_rng(seed).integers(1, 6, size=(N_USERS, N_ITEMS)).astype(np.float64)
    return gf.Ratings(sparse.csr_array(cells), range(N_USERS), range(N_ITEMS), scale=(1, 5))


def wins(found: MembershipReport) -> tuple[int, int]:
    """Return how often a member scored above another user, over pairs of two users each, who are in no other pair.

    So the pairs are independent of each other, and the number is binomial. Ties are left out.
    """
    members, others = found.scores[0::2], found.scores_without[1::2]
    n = min(len(members), len(others))
    decided = members[:n] != others[:n]
    return int((members[:n] > others[:n])[decided].sum()), int(decided.sum())


def is_chance(found: MembershipReport, highest: float) -> bool:
    """Return whether an AUC between 1 - highest and highest is believable, at the false-alarm rate."""
    won, n = wins(found)
    above = stats.binomtest(won, n, highest, alternative="greater").pvalue
    below = stats.binomtest(won, n, 1 - highest, alternative="less").pvalue
    return bool(min(above, below) > FALSE_ALARM)


def test_item_means_tell_members_from_nobody() -> None:
    """A rating moves a mean of 240 by 4/240 at most, six of them the score by 0.1; scores spread over about 1."""
    attack = gf.MembershipAttack(known=26, left_out=6, fakes=1)
    found = attack.run(everybody_rates_everything(1), ItemMeans(), targets=N_USERS, rng=7)
    assert wins(found)[1] > 100
    assert is_chance(found, 0.56)


def test_neighbours_tell_members_and_the_test_can_fail() -> None:
    attack = gf.MembershipAttack(known=26, left_out=6)
    found = attack.run(everybody_rates_everything(1), gf.KNN(k=20), targets=N_USERS, rng=7)
    assert found.auc.value > 0.9
    assert not is_chance(found, 0.56)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [gf.PrivateMeans(epsilon=0.2, unit="user"), gf.PrivateCF(epsilon=0.2, unit="user")], ids=repr
)
def test_private_models_stay_within_their_guarantee(model: Any) -> None:
    """Every attacker's AUC is at most the area under the curve of the bound, 0.55 for epsilon 0.2."""
    epsilon, delta = model.guarantee().epsilon, model.guarantee().delta
    allowed, _ = integrate.quad(lambda rate: true_positive_bound(epsilon, delta, rate), 0, 1)
    assert allowed < 0.56
    attack = gf.MembershipAttack(known=26, left_out=6, fakes=1)
    found = attack.run(everybody_rates_everything(2), model, targets=120, rng=7)
    assert found.n_fits == 1
    assert is_chance(found, allowed)


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
def test_the_interval_of_the_auc_holds_the_truth(shift: float) -> None:
    """Normal scores of the same users in both worlds, which go together: at least 94 intervals of 100 hold it."""
    generator, n_runs, n_targets, held = np.random.default_rng(3), 1500, 100, 0
    truth = stats.norm.cdf(shift / np.sqrt(2))
    for _ in range(n_runs):
        shared = generator.normal(size=n_targets) * np.sqrt(0.3)
        own = generator.normal(size=(2, n_targets)) * np.sqrt(0.7)
        _, low, high = auc(shift + shared + own[0], shared + own[1])
        held += low <= truth <= high
    assert stats.binomtest(held, n_runs, 0.94, alternative="less").pvalue > FALSE_ALARM


@pytest.mark.parametrize(("n", "rate", "decimals"), [(300, 0.05, 9), (1000, 0.01, 9), (1000, 0.001, 9), (300, 0.05, 0)])
def test_the_interval_of_a_true_positive_rate_holds_the_truth(n: int, rate: float, decimals: int) -> None:
    """Scores of the same users in both worlds, which go together; of no decimals, they tie."""
    generator, n_runs, held = np.random.default_rng(4), 1500, 0
    values = np.arange(-6.0, 7.0)
    above = stats.norm.sf(values + 0.5)  # the share of rounded scores above each value
    threshold = values[above <= rate][0] + 0.5 if decimals == 0 else stats.norm.isf(rate)
    truth = stats.norm.sf(threshold - 1.5)
    for _ in range(n_runs):
        shared = generator.normal(size=n) * np.sqrt(0.3)
        own = generator.normal(size=(2, n)) * np.sqrt(0.7)
        members, others = (1.5 + shared + own[0]).round(decimals), (shared + own[1]).round(decimals)
        _, low, high = true_positives_at(members, others, rate)
        held += low <= truth <= high
    assert stats.binomtest(held, n_runs, 0.95, alternative="less").pvalue > FALSE_ALARM


def test_ratios_without_a_difference_are_chance() -> None:
    """Answers of one distribution in both worlds and in all shadow fits: members score as others do."""
    generator, n, n_asked = np.random.default_rng(5), 4000, 3
    shadows = generator.normal(size=(8, 2, n * n_asked))
    parts = generator.normal(size=(2, n * n_asked))
    members, others = likelihood_ratios(parts, shadows).reshape(2, n, n_asked).sum(axis=2)
    for rate in (0.01, 0.05):
        found = true_positives_at(members, others, rate)
        assert found.low < rate < found.high
    won = int((members > others).sum())  # each pair of worlds is independent of the others
    assert stats.binomtest(won, n).pvalue > FALSE_ALARM
