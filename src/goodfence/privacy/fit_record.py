"""What one fit was asked to keep, and what it released: written down when the fit is over, and not changed again."""

from __future__ import annotations

from dataclasses import dataclass

from goodfence.errors import require
from goodfence.privacy.accounting import Account
from goodfence.privacy.guarantee import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRecord:
    """The terms of one fit. A promise is made from this, never from settings that can still be changed.

    Examples
    --------
    >>> from goodfence.privacy.accounting import Release
    >>> sums = Release(name="item sums", sensitivity=4_000_000, sigma=2**24, dimension=3000)
    >>> record = FitRecord(unit="user", epsilon=1.0, delta=1e-5, account=Account((sums,)), private=True)
    >>> record.stated_epsilon
    1.0
    """

    unit: Unit
    """What was protected."""
    epsilon: float
    """What was asked before anything was released."""
    delta: float
    """The delta that goes with it."""
    account: Account
    """What was released."""
    private: bool
    """Whether nobody can know or repeat the noise."""
    catalogue_given: bool = False
    """Whether the caller gave the list of items, rather than let that of the ratings be public."""
    n_fits: int = 1
    """Which fit of this model it was. Earlier ones have spent their own budgets on the data they saw."""

    def __post_init__(self) -> None:
        require(0 < self.epsilon < float("inf"), "epsilon", "positive and finite", self.epsilon)
        require(0 < self.delta < 1, "delta", "between 0 and 1", self.delta)
        require(self.n_fits >= 1, "n_fits", "at least 1", self.n_fits)
        require(bool(self.account.releases), "account", "of at least one release", 0)

    @property
    def stated_epsilon(self) -> float:
        """What may be promised: what was asked, never the price of the branch that was taken.

        Which stages follow the first is decided by what it showed, and they do not all cost the same to the last
        digit. A number that depends on what was released is not an epsilon; the one fixed beforehand is.
        """
        return max(self.epsilon, self.account.epsilon(self.delta))
