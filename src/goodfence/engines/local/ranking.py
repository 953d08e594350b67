"""The order of recommendations: best score first, ties by column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from goodfence.errors import require


def best_columns(
    scores: npt.NDArray[np.float64], unseen: npt.NDArray[np.bool_], n: int
) -> npt.NDArray[np.int64]:
    """Return the columns of the n best scores among the unseen: NaN is no score, ties stand in column order.

    Examples
    --------
    >>> best_columns(np.array([3.0, np.nan, 4.0, 3.0]), np.ones(4, dtype=bool), 2)
    array([2, 0])
    """
    require(n >= 1, "n", "at least 1", n)
    eligible = np.flatnonzero(unseen & ~np.isnan(scores))
    if len(eligible) > n:
        last = np.partition(scores[eligible], len(eligible) - n)[len(eligible) - n]
        eligible = eligible[scores[eligible] >= last]
    order = np.argsort(-scores[eligible], kind="stable")[:n]
    return eligible[order]
