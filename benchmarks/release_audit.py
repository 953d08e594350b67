"""`audit_release`: one noisy release, drawn many times on two neighbouring data sets, beside its claim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.auditing.lower_bound import CONFIDENCE, LowerBound, lower_bound
from goodfence.errors import require
from goodfence.privacy.accounting import Account, Release
from goodfence.privacy.noise import SIGMA, Noise, Publisher, SystemNoise

TRIALS = 100_000
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAudit:
    """What repeated releases prove, beside what is claimed."""

    name: str
    """What was released."""
    moved: float
    """How far the two data sets' integers differ, divided by the stated sensitivity: above 1 is a violation."""
    claimed_epsilon: float
    """What the accountant says that one such release costs at `bound.delta`."""
    claimed_mu: float
    """The stated sensitivity divided by the stated noise."""
    bound: LowerBound
    """What the runs prove."""

    @property
    def broken(self) -> bool:
        """Whether anything that was found exceeds what was claimed."""
        above = self.bound.epsilon > self.claimed_epsilon or self.bound.mu > self.claimed_mu
        return above or self.moved > 1

    def __str__(self) -> str:
        word = "BROKEN" if self.broken else "not broken"
        return (
            f"{self.name}: {word}; mu at least {self.bound.mu:.4f}, claimed {self.claimed_mu:.4f}; "
            f"epsilon at least {self.bound.epsilon:.3f}, claimed {self.claimed_epsilon:.3f}"
        )


def audit_release(
    name: str,
    without: Integers,
    with_it: Integers,
    sensitivity: int,
    *,
    noise: Noise | None = None,
    trials: int = TRIALS,
    delta: float = 1e-5,
    confidence: float = CONFIDENCE,
) -> ReleaseAudit:
    """Release the integers of two neighbouring data sets many times, and try to tell which is which.

    The score is the noisy integers' projection on the difference, which orders them as their likelihood ratio does. The
    `sensitivity` is what is stated: the largest l2 distance between the integers of any two neighbouring data sets.

    Examples
    --------
    >>> moved = np.array([0]), np.array([2**22])
    >>> audit = audit_release("a sum", *moved, 2**22, trials=2000, confidence=1 - 1e-6)
    >>> audit.broken, round(audit.claimed_mu, 6)
    (False, 0.25)
    """
    require(without.shape == with_it.shape, "with_it", "of the other's shape", with_it.shape)
    source = SystemNoise() if noise is None else noise
    moved = (with_it - without).ravel()
    support = np.flatnonzero(moved)  # elsewhere both have the same noise: nothing to learn
    direction = moved[support].astype(np.float64)
    length = float(np.sqrt((direction**2).sum()))
    direction = direction / max(length, 1.0)
    pair = without.ravel()[support], with_it.ravel()[support]
    # Both are measured from the same point: only the noise may hide that they are not the same.
    centre = float(pair[0] @ direction)
    scores = [_scores(each, direction, sensitivity, source, trials) - centre for each in pair]
    release = Release(name=name, sensitivity=sensitivity, sigma=SIGMA, dimension=max(without.size, 1))
    account = Account((release,))
    return ReleaseAudit(
        name=name,
        moved=length / sensitivity,
        claimed_epsilon=account.epsilon(delta),
        claimed_mu=account.mu,
        bound=lower_bound(*scores, delta=delta, confidence=confidence),
    )


def _scores(totals: Integers, direction: Floats, sensitivity: int, noise: Noise, trials: int) -> Floats:
    scores = np.zeros(trials)
    if len(totals) == 0:
        return scores
    size = max(1, _AT_ONCE // len(totals))
    for start in range(0, trials, size):
        n = min(size, trials - start)
        repeated = np.broadcast_to(totals, (n, len(totals)))
        noisy = Publisher(noise).publish("audit", repeated, sensitivity)
        scores[start : start + n] = noisy @ direction
    return scores
