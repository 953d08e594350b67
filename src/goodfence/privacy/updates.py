"""A guarantee for the whole life of a model: measurements that overlap in time, of which each record pays for one.

Let x_t be the exact integer sums of batch t. Update t publishes y_t = sum over k of C_k x_(t-k), plus fresh noise, with
integers C_k near 64 binom(2k, k)/4^k: the square root of the matrix that sums over time (Fichtenberger, Henzinger and
Upadhyay 2023). A record moves one x_s only, so it moves all y_t together by at most |C| times its sensitivity, however
many updates there are. Dividing power series gives the running totals back, with noise of known size. Proofs:
`docs/mechanisms/updates.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from goodfence.arrays import AnyIntegers, Floats, Integers
from goodfence.errors import SettingError, require
from goodfence.privacy.accounting import Release, lattice_distance
from goodfence.privacy.fixed_point import UP
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA, Noise, Publisher
from goodfence.settings import at_least, between, checked

SCALE = 64
"""C_0; the decoding inverts the rounded coefficients, so a coarse grid costs little."""
MOST_SLACK = 1 << 60
"""What an account may spend on the distance of an endless life's noise from real noise."""
ENDLESS = 1 << 128
"""The dimension stated for an endless life: the Gaussian bound then claims nothing, and the concentrated one counts."""
MOST_MU = 1.0
"""The sums of one batch are on so fine a grid that a record moves them by up to this many sigma."""
_FINER = 8
_MOST_TERMS = 1 << 14
_FORGOTTEN = 2.0**-20
"""What counts for less than this in a forgetting total is left out."""

Draw: TypeAlias = Callable[[str, Integers, int], Integers]
"""Takes the name of a stage, the exact integers of this update and their batch's sensitivity; returns them with noise,
or `LOST`."""
LOST: Integers = np.empty(0, dtype=np.int64)
"""In the place of a release that was paid for and never seen."""
LEAST_PART = 0.5
"""No batch counts less than this in a running total."""
_STRENGTHS = (0.0, *(np.geomspace(1e-3, 1e9, 200) / SCALE**2).tolist())
_SMALLEST = 0.05
"""No batch is taken to be smaller than this part of the mean one."""
_UNKNOWN = 1e6
"""The noise of a total of which nothing was seen yet, over that of one measurement."""
_STAGES = 5
"""How many stages an update has at most."""


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """How a private model lasts: one guarantee for its fit and all its updates together.

    Parameters
    ----------
    updates : int, default 32
        How many updates there will be, the fit included. Update often at first, and later when the elapsed time has
        grown by a quarter: 32 such updates, weekly at first, last some fifty years.
    pairs : {"batch", "history"}, default "batch"
        Whether two ratings of one user form a pair if they arrive in one update, or whenever they arrive, with more
        noise: for users who return in more than two to four updates.
    half_life : float, optional
        After how many updates data counts half. Such a life has no end, and `updates` does not count.
    wait : int, default 0
        Unit user: how many updates a new user waits before the model learns from them, once.
    """

    updates: Annotated[int, at_least(1, most=1024)] = 32
    pairs: Literal["batch", "history"] = "batch"
    half_life: Annotated[float, between(1, 1024)] | None = None
    wait: Annotated[int, at_least(0, most=1024)] = 0

    @property
    def fade(self) -> float:
        """How much less data counts with each update: 1 for a running total, less with a half-life."""
        return 1.0 if self.half_life is None else 2.0 ** (-1 / self.half_life)

    @property
    def coefficients(self) -> tuple[int, ...]:
        """The integers C_k; of an endless life as many as are not 0."""
        return _coefficients(self.updates, self.half_life)

    @property
    def squares(self) -> int:
        """The sum of C_k²: 8,887 for 32 updates."""
        return sum(each**2 for each in self.coefficients)

    def weights(self, n: int) -> Floats:
        """Return what y_n, y_(n-1), ... count in the total after n updates."""
        return _weights(self.coefficients, self.fade, n)

    def factor(self, n: int) -> float:
        """Return the noise of the total after n updates, over that of one fit with the whole budget."""
        return math.sqrt(self.squares) * float(np.linalg.norm(self.weights(n)))


@lru_cache(maxsize=64)
def _coefficients(updates: int, half_life: float | None) -> tuple[int, ...]:
    found, exact = [], (1, 1)  # binom(2k, k)/4^k as a fraction
    for k in range(updates if half_life is None else _MOST_TERMS):
        above, below = exact
        if half_life is None:
            nearest = (2 * SCALE * above + below) // (2 * below)
        else:
            nearest = round(SCALE * above / below * 2.0 ** (-k / half_life))
        if nearest == 0:
            break
        found.append(nearest)
        exact = (above * (2 * k + 1), below * (2 * k + 2))
    return tuple(found)


@lru_cache(maxsize=256)
def _weights(coefficients: tuple[int, ...], fade: float, n: int) -> Floats:
    weights = np.array(total_weights(coefficients, fade, n))
    if fade < 1:
        weights = weights[: 1 + int(np.flatnonzero(weights > _FORGOTTEN * weights[0]).max())]
    weights.flags.writeable = False
    return weights


def total_weights(coefficients: Sequence[int], fade: Any, n: int) -> list[Any]:
    """Return the first n coefficients of 1/((1 - fade q) C(q)); exact where `fade` is a `Fraction`."""
    inverse: list[Any] = []
    for k in range(n):
        before = sum(coefficients[j] * inverse[k - j] for j in range(1, min(k + 1, len(coefficients))))
        inverse.append(((fade**0 if k == 0 else 0) - before) / coefficients[0])
    for k in range(1, n):
        inverse[k] += fade * inverse[k - 1]
    return inverse


def exact_weights(lasting: Lasting, n: int, lost: Sequence[int]) -> Floats:
    """Return weights as `Lasting.weights` does where measurements were lost, each followed by an empty batch."""
    if not lost:
        return lasting.weights(n)
    seen, batches, matrix = _seen(lasting, n, lost)
    return _placed(np.linalg.lstsq(matrix.T, lasting.fade ** (n - 1.0 - batches), rcond=None)[0], seen, n)


def quiet_weights(lasting: Lasting, sizes: Floats, lost: Sequence[int]) -> Floats:
    """Return weights with less noise: batches of these sizes count more or less than once, as much on the whole.

    A mean over users hardly changes if one batch counts a little less than another, but its noise does.
    """
    n = len(sizes)
    seen, batches, matrix = _seen(lasting, n, lost)
    if lasting.fade < 1 or not len(batches):
        return exact_weights(lasting, n, lost)
    # The least |w|² + strength |g - 1|², g being how much batches count, where all count as much as they hold.
    basis, values, others = np.linalg.svd(matrix, full_matrices=False)
    own = sizes[batches]
    once, held = values * others.sum(axis=1), values * (others @ own)  # what the sums of 1 and of the sizes show
    for strength in _STRENGTHS:
        left = 1 / (1 + strength * values**2)
        found = left * strength * once
        found += left * held * (own.sum() - held @ found) / max(float(held @ (left * held)), 1e-300)
        if (others.T @ (values * found)).min() >= LEAST_PART:
            break
    return _placed(basis @ found, seen, n)


def _seen(lasting: Lasting, n: int, lost: Sequence[int]) -> tuple[Integers, Integers, Floats]:
    """Return which measurements were seen, of which batches, and how often they hold these."""
    seen = np.array([at for at in range(n) if at not in lost], dtype=np.int64)
    last = int(seen.max(initial=-1))  # what came after the last measurement is in none
    batches = np.array([at for at in range(last + 1) if at - 1 not in lost], dtype=np.int64)
    terms = np.zeros(n)
    terms[: len(lasting.coefficients)] = lasting.coefficients[:n]
    ages = seen[:, None] - batches
    return seen, batches, np.where(ages >= 0, terms[ages], 0.0)


def _placed(weights: Floats, seen: Integers, n: int) -> Floats:
    every = np.zeros(n)
    every[seen] = weights
    return every[::-1]


@dataclass
class Series:
    """One stage of a life: the exact sums of each batch, which are secret, and what was published."""

    begun: int
    """The update, from 0, of the first."""
    sums: list[AnyIntegers] = field(default_factory=list, repr=False)
    """x_t, on a grid finer than that of y_t. With y_t it shows the noise."""
    noisy: list[AnyIntegers] = field(default_factory=list)
    """y_t."""

    def lacks(self, update: int) -> bool:
        """Return whether what was published in this update was lost."""
        at = update - self.begun
        return 0 <= at < len(self.noisy) and len(self.noisy[at]) == 0 < len(self.sums[at])


def narrowed(numbers: AnyIntegers) -> AnyIntegers:
    """Return the integers in 32 bits if they fit: a life keeps two for every pair of items and update."""
    bounds = np.iinfo(np.int32)
    fits = not len(numbers) or (bounds.min <= numbers.min() and numbers.max() <= bounds.max)
    return numbers.astype(np.int32) if fits else numbers


def mix_batches(coefficients: Sequence[int], sums: Sequence[AnyIntegers], finer: int) -> Integers:
    """Return the sum over k of C_k x_(t-k) for the last t, rounded to the grid of what is published."""
    total = np.zeros(len(sums[-1]), dtype=np.int64)
    for coefficient, each in zip(coefficients, reversed(sums), strict=False):
        total[: len(each)] += np.multiply(each, coefficient, dtype=np.int64)
    return (total + ((1 << finer) >> 1)) >> finer


def decoded(weights: Floats, noisy: Sequence[AnyIntegers]) -> Floats:
    """Return the running total that the last of these measurements completes; what is new began at 0."""
    total = np.zeros(max(map(len, noisy)))
    for weight, each in zip(weights, reversed(noisy), strict=False):
        total[: len(each)] += weight * each
    return total


@dataclass(frozen=True, slots=True)
class Terms:
    """The constants of a life, fixed at its beginning: public."""

    lasting: Lasting
    numbers: int
    """How many integers one update publishes at most, all stages together."""
    mu: float
    """What one record may cost in the whole life."""

    @classmethod
    def of(cls, lasting: Lasting, numbers: int, total_mu: Callable[[float], float]) -> Terms:
        """Return the terms of a life; `total_mu` turns the distance of all its noise from real noise into a mu."""
        return cls(lasting, numbers, total_mu(lattice_distance(planned(lasting, numbers), SIGMA)))

    @property
    def finer(self) -> int:
        """By how many bits the grid of x_t is finer than that of y_t."""
        room = MOST_MU * math.sqrt(self.lasting.squares) / self.mu
        return max(0, min(_FINER, math.floor(math.log2(room))))

    @property
    def of_batch(self) -> float:
        """The mu on which a batch's sums may be calibrated, as if they were published by themselves."""
        # Rounding y_t moves an integer by less than 1 more; a record can move as many as there are, in each release
        # that it is in.
        rounding = math.sqrt(len(self.lasting.coefficients) * self.numbers) if self.finer else 0.0
        left = (self.mu * SIGMA - rounding) / UP
        require(left > SIGMA * self.mu / 2, "epsilon", "larger for so many updates of this catalogue", self.mu)
        return left / SIGMA * 2.0**self.finer / math.sqrt(self.lasting.squares)

    def costs(self, age: int, sensitivity: int, dimension: int) -> list[int]:
        """Return what a release costs a record of each batch so far, the oldest first, in ticks: squared integers."""
        rounding = math.sqrt(dimension) if self.finer else 0.0
        moved = [coefficient * sensitivity / 2.0**self.finer for coefficient in self.lasting.coefficients[: age + 1]]
        moved += [-rounding] * (age + 1 - len(moved))  # a batch so old is in no measurement
        return [math.ceil((each + rounding) ** 2) for each in reversed(moved)]

    @property
    def slack(self) -> int:
        """What a record's account may spend on the distance of all noise from real noise, in units of sigma^-2."""
        if self.lasting.half_life is not None:
            return MOST_SLACK
        return self.lasting.updates * _STAGES * math.ceil(lattice_distance(self.numbers, SIGMA) * SIGMA**2 + 1)

    @property
    def sensitivity(self) -> int:
        """How far one record moves everything that is published in the whole life, in l2."""
        return math.floor(self.mu * SIGMA)


def planned(lasting: Lasting, numbers: int) -> int:
    """Return the dimension of one release whose noise is as far from real noise as that of a whole life may be."""
    if lasting.half_life is not None:
        return ENDLESS
    each = lattice_distance(numbers, SIGMA) * SIGMA**2 + 1  # rounded up by a ledger, stage by stage
    return math.ceil(32 * (lasting.updates * _STAGES * (each + 1)) ** 2)


@dataclass
class Updater(Publisher):
    """The one door of a lasting model: sums of one batch go in, running totals with noise come out."""

    terms: Terms = field(kw_only=True)
    series: dict[str, Series] = field(default_factory=dict, kw_only=True)
    now: int = field(default=0, kw_only=True)
    """The update that is being made, from 0."""
    draw: Draw | None = field(default=None, kw_only=True)
    """What draws the noise; None draws it here."""
    known: dict[str, Any] = field(default_factory=dict, init=False)
    """The public numbers that this batch's sums are computed with; once set they stay, if the update is resumed."""
    past: list[dict[str, Any]] = field(default_factory=list, init=False)
    """Those of earlier batches."""
    spent: int = field(default=0, init=False)
    """The squares of the sensitivities of this update's stages, together."""
    published: int = field(default=0, init=False)
    """How many integers they are."""
    sized: Mapping[str | None, tuple[str, slice]] = field(default_factory=dict, kw_only=True)
    """Which noisy integers of which stage add up to the size of a batch: for stages by name, None for all others."""

    def publish(self, name: str, totals: Integers, sensitivity: int) -> Any:
        """Publish this batch's sums, mixed with those of earlier ones, and return the running total with its noise."""
        require(totals.dtype == np.int64, "totals", "64-bit integers", totals.dtype)
        self._spend(sensitivity, totals.size)
        one = self.series.setdefault(name, Series(self.now))
        due = self.now - one.begun
        require(len(one.noisy) in (due, due + 1), "updates", "one after the other", len(one.noisy))
        own = np.ascontiguousarray(totals.T).ravel()  # item by item: what is new comes last
        if len(one.sums) == due:
            one.sums.append(narrowed(own))
        if len(one.noisy) == due:  # else it was published before something failed, and is published once only
            exact = mix_batches(self.terms.lasting.coefficients, one.sums, self.terms.finer)
            one.noisy.append(narrowed(self._with_noise(name, exact, sensitivity)))
        found = self.total(name)
        found.resize(totals.size, refcheck=False)  # what is new, and lost, is 0
        return found.reshape(totals.shape[::-1]).T

    def _spend(self, sensitivity: int, dimension: int) -> None:
        """Refuse what a record of this batch may not cost: the squares of its stages' sensitivities add up."""
        self.spent += sensitivity**2
        self.published += dimension
        require(self.published <= self.terms.numbers, "totals", "as few as planned", self.published)
        most = (self.terms.of_batch * SIGMA) ** 2 * UP  # of the two factors UP that `of_batch` leaves in the square
        require(self.spent <= most, "sensitivity", "within what a record may cost", sensitivity)

    def _with_noise(self, name: str, exact: Integers, sensitivity: int) -> Integers:
        if self.draw is not None:
            return self.draw(name, exact, sensitivity)
        return exact + self.noise.draw(exact.size)

    def total(self, name: str, until: int | None = None, *, exact: bool = False) -> Floats:
        """Return the running total of a stage, of what was published before an update; `sd` is that of its noise."""
        fine, noisy = 2.0**self.terms.finer, self.series[name].noisy[: self.covered(name, until)]
        weights = self.weights(name, until, exact=exact or len(noisy[-1]) == 1)  # one number is hardly hidden
        self.sd = SIGMA * fine * (float(np.linalg.norm(weights)) or _UNKNOWN)
        return decoded(weights, noisy) * fine

    def weights(self, name: str, until: int | None = None, *, exact: bool = False) -> Floats:
        """Return what the measurements of a stage count in its total, the last one first."""
        noisy = self.series[name].noisy[: self.covered(name, until)]
        lost = [at for at, each in enumerate(noisy) if len(each) == 0]
        if exact:
            return exact_weights(self.terms.lasting, len(noisy), lost)
        return quiet_weights(self.terms.lasting, self._sizes(name)[: len(noisy)], lost)

    def parts(self, name: str, until: int | None = None) -> tuple[Floats, float]:
        """Return which part of a stage's total is of each batch in it, and which part of all data these batches are."""
        weights, begun, all_sizes = self.weights(name, until), self.series[name].begun, self._sizes()
        terms = self.terms.lasting.coefficients[: len(weights)]
        counted = np.convolve(weights, terms)[: len(weights)][::-1]  # how often each batch counts
        of_batches = np.maximum(counted, 0.0) * self._sizes(name)[: len(weights)]
        faded = all_sizes * self.terms.lasting.fade ** np.arange(len(all_sizes))[::-1]
        part = float(faded[begun : begun + len(weights)].sum() / faded.sum())
        return of_batches / max(float(of_batches.sum()), 1e-300), part

    def _sizes(self, name: str | None = None) -> Floats:
        """Return how large the batches are, by noisy sums; those of a stage from its first batch on."""
        begun = self.series[name].begun if name is not None else 0
        by, cells = self.sized.get(name if name in self.sized else None, ("", slice(0)))
        if by not in self.series:
            return np.ones(self.now + 1 - begun)
        noisy = self.series[by].noisy
        seen, batches, matrix = _seen(self.terms.lasting, len(noisy), [at for at, y in enumerate(noisy) if not len(y)])
        sums = np.array([float(noisy[at][cells].sum()) for at in seen])
        found = np.zeros(self.now + 1)
        found[batches] = np.linalg.lstsq(matrix, sums, rcond=None)[0]
        return np.maximum(found, _SMALLEST * max(float(found.mean()), 1e-300))[begun:]

    def covered(self, name: str, until: int | None = None) -> int:
        """Return how many measurements of a stage there are, or were before an update."""
        if name not in self.series:
            return 0
        one = self.series[name]
        return len(one.noisy) if until is None else min(len(one.noisy), until - one.begun)

    def pairs(self, n: int) -> tuple[Integers, Integers]:
        """Return where the pairs of n items lie above the diagonal, those of a later item later."""
        return pairs_in_order(n)

    def effective(self, mu: float) -> float:
        """Return the mu of one fit whose noise is that of the running total by now."""
        weights = quiet_weights(self.terms.lasting, self._sizes(), ())
        return mu / (2.0**self.terms.finer * float(np.linalg.norm(weights)))


def open_updater(terms: Terms, noise: Noise, **how: Any) -> Updater:
    """Return the door of a life that begins, or goes on with what was published before."""
    lasting, now = terms.lasting, how.get("now", 0)
    if lasting.half_life is None and now >= lasting.updates:
        raise SettingError(
            f"all {lasting.updates} updates have been released; a new model may learn from data that arrive from now on"
        )
    return Updater(noise, terms=terms, **how)


def pairs_in_order(n: int) -> tuple[Integers, Integers]:
    """Return where the pairs of n items lie above the diagonal, those of a later item later."""
    later, earlier = np.tril_indices(n, -1)
    return earlier, later


def life_release(terms: Terms, unit: Unit) -> Release:
    """Return a whole life as one release, which is how it is accounted for from the first update on."""
    dimension = planned(terms.lasting, terms.numbers)
    name = "all updates together"
    return Release(name=name, sensitivity=terms.sensitivity, sigma=SIGMA, dimension=dimension, unit=unit)
