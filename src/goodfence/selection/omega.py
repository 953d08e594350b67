"""The selection weight of PNCF and PPNS: `w = exp(epsilon * sim / (4 k RS))` [OMEGA]."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.errors import SettingError
from goodfence.selection.sensitivity import Sensitivity

Floats: TypeAlias = npt.NDArray[np.float64]

_LARGEST = 1e300  # so that the difference of two log-weights is still a number


def log_omega(scores: Floats, sensitivity: Floats, *, epsilon: float, k: int) -> Floats:
    """Return the logarithms of the selection weights [OMEGA].

    Where the sensitivity is 0 nothing is co-rated, no score says anything, and the log-weight is 0:
    equal weights.

    Parameters
    ----------
    scores
        The similarities.
    sensitivity
        RS, broadcast against `scores`.

    Examples
    --------
    >>> log_omega(np.array([0.8, 0.4]), np.array(0.1), epsilon=1.0, k=2)
    array([1. , 0.5])
    """
    divisor = 4.0 * k * sensitivity
    known = divisor > 0
    with np.errstate(over="ignore"):
        exponents = epsilon * scores / np.where(known, divisor, 1.0)
    return np.where(known, np.clip(exponents, -_LARGEST, _LARGEST), 0.0)


def spread_over(similarities: Floats, sensitivity: object, options: Sensitivity) -> Floats:
    """Return RS in a shape that broadcasts against `similarities`; anything else is an error.

    Examples
    --------
    >>> spread_over(np.zeros((2, 3)), [0.1, 0.2], Sensitivity()).shape
    (2, 1)
    """
    if sensitivity is None:
        raise SettingError("sensitivity must be given: the selection weight [OMEGA] divides by it")
    values: Floats = np.asarray(sensitivity, dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise SettingError("sensitivity must be finite and at least 0")
    wanted = similarities.shape if options.scope == "pair" else similarities.shape[:-1]
    if values.shape != wanted and values.ndim > 0:
        raise SettingError(
            f"sensitivity must have shape {wanted} for scope={options.scope!r}, got {values.shape}"
        )
    return values if options.scope == "pair" else values[..., np.newaxis]
