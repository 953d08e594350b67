"""What a selection mechanism is: two statements about a sorted list and its sensitivity."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.errors import SettingError
from goodfence.privacy.guarantee import Guarantee
from goodfence.selection.pool import Pool, takes_all
from goodfence.selection.sensitivity import Sensitivity

Floats: TypeAlias = npt.NDArray[np.float64]
RS: TypeAlias = "float | Floats | None"


class Mechanism(Protocol):
    """A frozen value that says from which pools how many are taken, and with what log-weights.

    `similarities` has shape (n,) for one target or (rows, n) for a batch, sorted descending along
    the last axis. `sensitivity` is one number for a target, (rows,) for a batch; with
    `scope="pair"` it has the shape of `similarities`. A batch is the same as its rows one by one.
    """

    @property
    def k(self) -> int:
        """How many neighbours are chosen."""
        ...

    @property
    def sensitivity(self) -> Sensitivity | None:
        """Which sensitivity the mechanism needs, or `None`."""
        ...

    def reach(self, n_candidates: int) -> int:
        """Return how many of the nearest it may look at; a list too short is an error."""
        ...

    def pools(self, similarities: Floats, sensitivity: RS = None) -> tuple[Pool, ...]:
        """Return the pools; their takes sum to `k`."""
        ...

    def log_weights(self, similarities: Floats, sensitivity: RS = None) -> Floats:
        """Return the log-weights, finite or -inf, of the shape of `similarities`."""
        ...

    def noise_scale(self, sensitivity: RS = None) -> RS:
        """Return the scale of the Laplace noise on the similarities in prediction, or `None`."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what the mechanism promises, and what that is worth."""
        ...


def weights_if_drawn(
    mechanism: Mechanism, pools: tuple[Pool, ...], similarities: Floats, sensitivity: RS
) -> Floats:
    """Return the log-weights; equal ones, and no sensitivity needed, where every pool is taken whole."""
    if takes_all(pools):
        return np.zeros(similarities.shape)
    return mechanism.log_weights(similarities, sensitivity)


def require_list(needed: int, n_candidates: int, *, k: int, beta: int = 1) -> int:
    """Return `needed`, or raise when the list has fewer candidates.

    Examples
    --------
    >>> require_list(350, 942, k=50, beta=7)
    350
    >>> require_list(350, 300, k=50, beta=7)
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: beta * k must be at most the list's length 300, got beta=7, k=50
    """
    if needed > n_candidates:
        name = "k" if beta == 1 else "beta * k"
        raise SettingError(
            f"{name} must be at most the list's length {n_candidates}, got beta={beta}, k={k}"
        )
    return needed
