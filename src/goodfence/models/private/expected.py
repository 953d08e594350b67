"""What error to expect at a size, before any budget is spent: a rule fitted to public data, not to yours.

Of every model the error is taken as floor + slope·x^-power, a share of the length of the scale, where x says how much
is known of an item: ratings an item, for the private ones times mu, and for the unit user with the root of the ratings
of a user taken out, as noise is the same for a user however much they rated. Fitted to parts of netflix-tenth by
`benchmarks/size.py`, which also says how far off the rule is on other data. Nothing here is given any rating.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from goodfence.errors import require
from goodfence.privacy.accounting import total_mu
from goodfence.privacy.guarantee import Unit

Model: TypeAlias = Literal["PrivateCF", "PrivateMeans"]
MODELS: tuple[Model, ...] = ("PrivateCF", "PrivateMeans")
BUDGETS: dict[Unit, tuple[float, ...]] = {"rating": (0.5, 1.0, 4.0), "user": (1.0, 4.0, 16.0)}
"""The epsilons that are spoken of."""
OWN_MEAN = 0.2
"""The error of everybody's own mean, a share of the scale: what costs no privacy, because nothing is shared."""
WORTHWHILE = 0.95
"""What is not below this part of everybody's own mean is not worth a budget."""


@dataclass(frozen=True, slots=True)
class Law:
    """An error as a share of the scale, floor + slope·x^-power."""

    floor: float
    slope: float
    power: float

    def at(self, x: float) -> float:
        """Return the error at x, which is never worse than everybody's own mean."""
        return min(OWN_MEAN, self.floor + self.slope * math.pow(max(x, 1e-12), -self.power))


LAWS: dict[tuple[str, Unit | None], Law] = {
    ("unprotected", None): Law(0.1575, 0.1137, 0.5885),
    ("PrivateCF", "rating"): Law(0.1200, 0.0811, 0.1303),
    ("PrivateMeans", "rating"): Law(0.1774, 0.0273, 0.5378),
    ("PrivateCF", "user"): Law(0.1200, 0.0695, 0.0993),
    ("PrivateMeans", "user"): Law(0.1700, 0.0220, 0.2085),
}
"""By model and unit; the unprotected model has none. As `benchmarks/results/size_rule.md` has them."""
OFF_BY = 0.06
"""How far off, at most, it was on other data: of how much more error there is than unprotected, a share of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large data are: numbers that are declared, or public."""

    users: int
    items: int
    ratings: int

    def __post_init__(self) -> None:
        for name in ("users", "items", "ratings"):
            require(getattr(self, name) >= 1, name, "a positive integer", getattr(self, name))
        most = self.users * self.items
        require(self.ratings <= most, "ratings", f"at most users times items, {most}", self.ratings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The error to expect of one model at one budget, a share of the scale."""

    model: Model
    unit: Unit
    epsilon: float
    error: float
    useful: bool
    """Whether it is nearer to the unprotected model than to everybody's own mean, and clearly below that."""


def known_of_an_item(size: Size, unit: Unit | None, mu: float = 1.0) -> float:
    """Return x of the rule: ratings an item, times mu; for the unit user over the root of a user's ratings."""
    each = size.ratings / size.items
    return each * mu / (math.sqrt(size.ratings / size.users) if unit == "user" else 1.0)


def expected_unprotected(size: Size) -> float:
    """Return the error to expect of `NeighbourCF.accurate()`, which protects nobody, a share of the scale."""
    return LAWS["unprotected", None].at(known_of_an_item(size, None))


def expected_errors(size: Size, delta: float | None = None) -> list[Expected]:
    """Return what to expect of every private model at the `BUDGETS`.

    Parameters
    ----------
    size : Size
        How many users, items and ratings there are, as declared.
    delta : float, optional
        Of the guarantee; a tenth of one over the number of users, at most 1e-5, unless given.

    Examples
    --------
    >>> small, large = (Size(users=n, items=1000, ratings=100 * n) for n in (300, 100_000))
    >>> [found[0].error > expected_errors(large)[0].error for found in [expected_errors(small)]]
    [True]
    """
    delta = min(1e-5, 0.1 / size.users) if delta is None else delta
    unprotected = expected_unprotected(size)
    found = []
    for unit, budgets in BUDGETS.items():
        for epsilon in budgets:
            x = known_of_an_item(size, unit, total_mu(epsilon, delta, 0.0))
            for model in MODELS:
                error = max(LAWS[model, unit].at(x), unprotected)
                useful = error <= min((unprotected + OWN_MEAN) / 2, WORTHWHILE * OWN_MEAN)
                found.append(
                    Expected(model=model, unit=unit, epsilon=epsilon, error=error, useful=useful)
                )
    return found
