"""What releases cost together: each is integers plus integer Gaussian noise, the total is (epsilon, delta).

Two bounds hold at the same time, and the smaller one is stated (proofs: `docs/mechanisms/noise.md`).

* Concentrated: a release of l2-sensitivity D with noise sigma is D²/(2 sigma²)-zCDP, exactly, for the integer
  Gaussian too. zCDP adds up under adaptive composition, and turns into (epsilon, delta) by Canonne, Kamath and
  Steinke (2020), Proposition 12.
* Gaussian: with real Gaussian noise, rounded or not, the release would be D/sigma-GDP (Dong, Roth and Su 2022), and
  squares of mu add up. The integer Gaussian is another distribution, but within `lattice_distance` of it in total
  variation, and that distance is paid for in delta: by less than one part in a thousand at the noise used here.

Every number is rounded to the side that guarantees less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr

from goodfence.errors import require
from goodfence.privacy.guarantee import Unit
from goodfence.settings import Count, Fraction, Positive, at_least, between, checked

_SLACK = 1e-11
"""Relative allowance for rounding in scipy's normal distribution, far above its stated error."""
MOST_EPSILON = 1e100
"""Beyond it squares of mu leave floating point, and a search would never end."""
_STEPS = 70
"""Halvings of a bisection: more than the significand of a float64 has bits."""


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One released vector of integers with integer Gaussian noise, as the accountant sees it."""

    name: str
    """What was released."""
    sensitivity: Annotated[int, at_least(0)]
    """A proved bound on how far, in l2, one unit of privacy moves the vector."""
    sigma: Annotated[int, at_least(16)]
    """The parameter of the integer Gaussian."""
    dimension: Annotated[int, at_least(0)]
    """How many integers."""
    unit: Unit | None = None
    """What one unit of privacy is, where that is stated."""

    @property
    def mu_squared(self) -> float:
        """The square of sensitivity/sigma: twice the rho of zCDP, the square of the mu of GDP."""
        ratio = self.sensitivity / self.sigma
        return math.nextafter(ratio**2, math.inf) if ratio else 0.0


@dataclass(frozen=True, slots=True)
class Account:
    """Releases made one after the other on the same data, each free to depend on those before it."""

    releases: tuple[Release, ...] = ()

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy that real noise would have."""
        squares = math.fsum(release.mu_squared for release in self.releases)
        return math.nextafter(math.sqrt(squares), math.inf) if squares else 0.0

    @property
    def rho(self) -> float:
        """The rho of zero-concentrated differential privacy."""
        return self.mu**2 / 2

    @property
    def distance(self) -> float:
        """How far, in total variation, all noise together is from rounded real Gaussian noise."""
        return math.fsum(lattice_distance(each.dimension, each.sigma) for each in self.releases)

    def epsilon(self, delta: float) -> float:
        """Return an epsilon such that everything released is (epsilon, delta)-differentially private."""
        return total_epsilon(self.mu, self.distance, delta)


def lattice_distance(dimension: int, sigma: int) -> float:
    """Bound the total variation between `dimension` integer Gaussians and as many rounded real ones.

    The bound is sqrt(dimension/32)/sigma², times 1.01; `docs/mechanisms/noise.md` derives it for sigma >= 16.
    """
    return 1.01 * math.sqrt(dimension / 32) / sigma**2


def total_epsilon(mu: float, distance: float, delta: float) -> float:
    """Return the smaller of the concentrated and the Gaussian bound on epsilon at `delta`; the rest as in `Account`."""
    _require_delta(delta)
    if mu == 0:
        return 0.0
    concentrated = zcdp_epsilon(mu**2 / 2, delta)
    # (1 + e^epsilon) distance is what the distance costs in delta; epsilon is at most `concentrated`.
    cost = (1 + math.exp(min(concentrated, 700))) * distance
    if cost >= delta:
        return concentrated
    return min(concentrated, gaussian_epsilon(mu, delta - cost))


@lru_cache(maxsize=256)  # of public settings only, and an attack or audit fits thousands of times
def total_mu(epsilon: float, delta: float, distance: float) -> float:
    """Return the largest mu whose `total_epsilon` is at most `epsilon`, rounded down."""
    require(0 < epsilon <= MOST_EPSILON, "epsilon", f"positive, at most {MOST_EPSILON:g}", epsilon)
    _require_delta(delta)
    highest = math.sqrt(2 * epsilon)
    within, _ = _bisect(lambda mu: total_epsilon(mu, distance, delta) > epsilon, highest)
    return within * (1 - 1e-9)


def group_epsilon(epsilon: float, delta: float, size: int, *, unit: Unit | None = None) -> float:
    """Return the epsilon, at the same delta, of `size` units together, where one of them has `epsilon`.

    They move a release at most `size` times as far, so mu is `size` times as large, and epsilon grows faster than that.
    With `unit="event"` they are events of one user, and mu grows by the root of `size`: proved for `PrivateTopN` alone,
    in `docs/mechanisms/private-top-n.md`.
    """
    require(size >= 1, "size", "at least 1", size)
    farther = math.sqrt(size) if unit == "event" else size
    return gaussian_epsilon(farther * total_mu(epsilon, delta, 0.0), delta)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of mu-GDP at `epsilon` [Dong, Roth and Su, Corollary 2.13], rounded up."""
    first = float(ndtr(-epsilon / mu + mu / 2))
    second = math.exp(min(0.0, epsilon + float(log_ndtr(-epsilon / mu - mu / 2))))
    return max(0.0, first - second) + _SLACK * (first + second)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon at which mu-GDP has at most `delta`, rounded up."""
    _require_delta(delta)
    highest = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1
    return _bisect(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, highest)[1]


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon of rho-zCDP at `delta` [Canonne, Kamath and Steinke, Proposition 12], rounded up."""
    _require_delta(delta)

    def at(log_order: float) -> float:
        above = math.exp(log_order)  # the order of Rényi divergence is 1 + above
        order = 1 + above
        spent = (math.log(1 / delta) - math.log(order)) / above
        return order * rho + spent + math.log1p(-1 / order)

    # Any order gives a true bound, so the search need not be perfect to be sound.
    found = minimize_scalar(at, bounds=(-12.0, 12.0), method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(found.fun)) * (1 + _SLACK) + _SLACK


def _require_delta(delta: float) -> None:
    require(0 < delta < 1, "delta", "between 0 and 1", delta)


def _bisect(holds: Callable[[float], bool], highest: float) -> tuple[float, float]:
    """Return where `holds` becomes true, and stays so: a point just before, and one at or just behind."""
    low, high = 0.0, highest
    while not holds(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


@dataclass(frozen=True, slots=True)
class AllFits:
    """What all fits of a model may have spent together, on data that was in all of them; also those that failed."""

    unit: Unit
    n_fits: int = 0
    mu: float = 0.0
    distance: float = 0.0
    """As in `Account`."""
    private: bool = True
    """Whether nobody can know or repeat the noise of any."""

    def plus(self, mu: float, distance: float, *, private: bool) -> AllFits:
        """Return the same with one fit more."""
        together = math.hypot(self.mu, mu) * (1 + _SLACK)
        return AllFits(self.unit, self.n_fits + 1, together, self.distance + distance, self.private and private)


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class FitRecord:
    """What one fit was asked and released: a guarantee is made from this, never from settings that can change."""

    unit: Unit
    """What was protected."""
    epsilon: Positive
    """What was asked before anything was released."""
    delta: Fraction
    """The delta that goes with it."""
    account: Account
    """What was released."""
    private: bool
    """Whether nobody can know or repeat the noise, of this fit and those before it."""
    catalogue_given: bool = False
    """Whether the caller gave the list of items, rather than let that of the ratings be public."""
    n_fits: Count = 1
    """Which fit of this model it was."""
    mu: Annotated[float, between(0, math.inf)] = 0.0
    """What it and those before it may have spent, as in `AllFits`."""
    distance: Annotated[float, between(0, math.inf)] = 0.0
    """The same."""

    def __post_init__(self) -> None:
        require(bool(self.account.releases), "account", "of at least one release", 0)
        units = {release.unit for release in self.account.releases}
        require(units <= {None, self.unit}, "unit", "that of all releases", self.unit)
        spent = self.n_fits == 1 or self.mu > self.account.mu
        require(spent, "mu", "that of all fits", self.mu)

    @property
    def stated_epsilon(self) -> float:
        """What may be guaranteed: of one fit what was asked, since the cost of its stages depends on what was released.

        Of several it is what all may have spent, which holds for whoever is in the data of each.
        """
        alone = max(self.epsilon, self.account.epsilon(self.delta))
        return alone if self.n_fits == 1 else max(alone, total_epsilon(self.mu, self.distance, self.delta))
