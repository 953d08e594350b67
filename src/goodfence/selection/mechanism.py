"""What a selection mechanism is: two statements about a sorted list and its sensitivity."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats
from goodfence.errors import SettingError, require
from goodfence.kernels.draw import PoolArrays
from goodfence.privacy.guarantee import Guarantee
from goodfence.selection.sensitivity import Sensitivity
from goodfence.settings import are_numbers, integer, is_number

RS: TypeAlias = float | Floats | None


class Mechanism(Protocol):
    """A frozen value that says from which pools how many are taken, and with what log-weights.

    `similarities` has shape (n,) for one target or (rows, n) for a batch, sorted descending along the last axis.
    `sensitivity` is one number for a target, (rows,) for a batch; with `scope="pair"` it has the shape of
    `similarities`. A batch is the same as its rows one by one. `Plain` has the usual answers.
    """

    @property
    def k(self) -> int:
        """How many neighbours are chosen."""

    @property
    def sensitivity(self) -> Sensitivity | None:
        """Which sensitivity the mechanism needs, or `None`."""

    def reach(self, n_candidates: int) -> int:
        """Return how many of the nearest it may look at; a list too short is an error."""

    def pools(self, similarities: Floats, sensitivity: RS = None) -> tuple[Pool, ...]:
        """Return the pools; their takes sum to `k`."""

    def log_weights(self, similarities: Floats, sensitivity: RS = None) -> Floats:
        """Return the log-weights, finite or -inf, of the shape of `similarities`."""

    def noise_scale(self, sensitivity: RS = None) -> RS:
        """Return the scale of the Laplace noise on the similarities in prediction, or `None`."""

    def guarantee(self) -> Guarantee:
        """Return what the mechanism guarantees, and whether that holds."""


class Plain:
    """What most mechanisms share: no sensitivity is needed, and similarities are used as they are."""

    @property
    def sensitivity(self) -> Sensitivity | None:
        """None."""
        return None

    def noise_scale(self, sensitivity: RS = None) -> RS:  # noqa: ARG002 - protocol
        """Return None: the similarities are used as they are."""
        return None


def refuted(epsilon: float, reason: str) -> Guarantee:
    """Return the guarantee that a paper claims for one rating and a counterexample refutes."""
    return Guarantee(
        status="refuted",
        unit="rating",
        adjacency="add/remove",
        epsilon=epsilon,
        delta=0.0,
        reason=f"The paper claims this epsilon, but {reason}",
    )


def is_mechanism(thing: object) -> TypeGuard[Mechanism]:
    """Return whether this is a selection mechanism, which a recommender never is."""
    made = not isinstance(thing, type) and not hasattr(thing, "fit")
    return made and callable(getattr(thing, "pools", None))


def weights_if_drawn(mechanism: Mechanism, pools: tuple[Pool, ...], similarities: Floats, sensitivity: RS) -> Floats:
    """Return the log-weights; equal ones, and no sensitivity needed, where all of every pool is taken."""
    if takes_all(pools):
        return np.zeros(similarities.shape)
    return mechanism.log_weights(similarities, sensitivity)


def require_list(needed: int, n_candidates: int, *, k: int, beta: int = 1) -> int:
    """Return `needed`, or raise when the list has fewer candidates."""
    if needed > integer(n_candidates, "n_candidates", least=0):
        name, got = ("k", k) if beta == 1 else ("beta * k", f"beta={beta}, k={k}")
        raise SettingError(
            f"{name} must be at most the list's length {n_candidates}, got {got}: "
            "there are no more others to choose from"
        )
    return needed


def shortest_list(mechanism: Mechanism, *, at_most: int) -> int | None:
    """Return how many candidates the mechanism needs at least, in steps of k; None if that is more than `at_most`."""
    for n_candidates in range(mechanism.k, at_most + 1, mechanism.k):
        try:
            mechanism.reach(n_candidates)
        except SettingError:
            continue
        return n_candidates
    return None


Ranks: TypeAlias = int | npt.NDArray[np.int64]


class Pool(NamedTuple):
    """Take `take` candidates of ranks `start` to `stop` - 1 of the sorted list (0 is the nearest).

    Each field is an integer, or for a batch of targets an array of shape (rows,).
    """

    start: Ranks
    stop: Ranks
    take: Ranks


def pool_arrays(pools: tuple[Pool, ...], n_rows: int) -> PoolArrays:
    """Return the starts, stops and takes of `pools`, each of shape (n_rows, number of pools)."""
    columns = (
        [np.broadcast_to(np.asarray(part, dtype=np.int64), (n_rows,)) for part in parts]
        for parts in zip(*pools, strict=True)
    )
    return PoolArrays(*(np.ascontiguousarray(np.stack(parts, axis=1)) for parts in columns))


def takes_all(pools: tuple[Pool, ...]) -> bool:
    """Return whether all of every pool is taken, so that nothing is left to chance."""
    return all(bool(np.all(np.subtract(pool.stop, pool.start) == np.asarray(pool.take))) for pool in pools)


_LARGEST = 1e300  # so that the difference of two log-weights is still a number


def log_omega(scores: Floats, sensitivity: Floats, *, epsilon: float, k: int) -> Floats:
    """Return the logarithms of the selection weights [OMEGA].

    `scores` are the similarities, `sensitivity` is RS, broadcast against them. Where it is 0 nothing is co-rated, no
    score says anything, and the log-weight is 0: equal weights.
    """
    divisor = 4.0 * k * sensitivity
    known = divisor > 0
    with np.errstate(over="ignore"):
        exponents = epsilon * scores / np.where(known, divisor, 1.0)
    return np.where(known, np.clip(exponents, -_LARGEST, _LARGEST), 0.0)


def as_lists(similarities: object) -> Floats:
    """Return candidate lists as an array, one list (n,) or a batch (rows, n); an array of floats is not copied."""
    if isinstance(similarities, np.ndarray) and similarities.dtype.kind == "f":
        lists = similarities
    else:
        require(are_numbers(similarities), "similarities", _LISTS, type(similarities))
        lists = np.asarray(similarities, dtype=np.float64)
    # The least and the largest are NaN where any is.
    known = not lists.size or (math.isfinite(lists.min()) and math.isfinite(lists.max()))
    require(lists.ndim in (1, 2) and known, "similarities", _LISTS, type(similarities))
    return lists


_LISTS = "finite numbers in an array of one or two dimensions"


def as_sensitivity(sensitivity: object) -> Floats:
    """Return RS as an array of the same shape; what is no finite number of at least 0 is an error."""
    if sensitivity is None:
        raise SettingError("sensitivity must be given: weights [OMEGA] and noise are measured by it")
    array = isinstance(sensitivity, np.ndarray) and sensitivity.dtype.kind in "fiu"
    if not (array or is_number(sensitivity) or are_numbers(sensitivity)):
        require(False, "sensitivity", "a number or an array of numbers", type(sensitivity))
    values: Floats = np.asarray(sensitivity, dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise SettingError("sensitivity must be finite and at least 0")
    return values


def spread_over(similarities: Floats, sensitivity: object, options: Sensitivity) -> Floats:
    """Return RS in a shape that broadcasts against `similarities`; anything else is an error."""
    values = as_sensitivity(sensitivity)
    wanted = similarities.shape if options.scope == "pair" else similarities.shape[:-1]
    if values.shape != wanted and values.ndim > 0:
        raise SettingError(f"sensitivity must have shape {wanted} for scope={options.scope!r}, got {values.shape}")
    return values if values.shape == similarities.shape else values[..., np.newaxis]
