"""Draw neighbours, and the noise on their similarities: written once, for every mechanism.

A draw depends on (key, asker, candidate row) only. So a batch may be cut into any parts, in any
order, for any number of threads: the kernels let go of the interpreter lock, and the parts give
what the whole gives.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.errors import SettingError
from goodfence.kernels.draw import draw_rows, laplace
from goodfence.selection.mechanism import RS, Floats, Mechanism, weights_if_drawn
from goodfence.selection.pool import pool_arrays

Rows: TypeAlias = npt.NDArray[np.integer[Any]]


def draw_neighbours(
    mechanism: Mechanism,
    similarities: Floats,
    rows: Rows,
    askers: Rows,
    key: int,
    sensitivity: RS = None,
) -> npt.NDArray[np.int64]:
    """Return which positions of each target's list are her neighbours, shape (rows, k), ascending.

    Parameters
    ----------
    similarities
        Shape (rows, n), each row descending.
    rows
        The candidates' row numbers, of the shape of `similarities`.
    askers
        The targets' row numbers, shape (rows,).
    key
        64 bits, from `Streams.key`.
    sensitivity
        RS where the mechanism needs it: (rows,), or with `scope="pair"` of the shape of
        `similarities`.

    Examples
    --------
    >>> from goodfence.selection.knn import KNN
    >>> lists = np.array([[0.9, 0.5, 0.1]])
    >>> draw_neighbours(KNN(k=2), lists, np.array([[4, 7, 1]]), np.array([0]), key=7)
    array([[0, 1]])
    """
    if similarities.ndim != 2 or rows.shape != similarities.shape:
        raise SettingError("similarities and rows must both have shape (targets, candidates)")
    if askers.shape != similarities.shape[:1]:
        raise SettingError("askers must have one row number for each target")
    pools = mechanism.pools(similarities, sensitivity)
    log_weights = weights_if_drawn(mechanism, pools, similarities, sensitivity)
    chosen = np.empty((len(similarities), mechanism.k), dtype=np.int64)
    draw_rows(
        np.ascontiguousarray(log_weights),
        np.ascontiguousarray(rows, dtype=np.int32),
        *pool_arrays(pools, len(similarities)),
        np.uint64(key),
        np.ascontiguousarray(askers, dtype=np.int32),
        chosen,
    )
    return chosen


def laplace_noise(rows: Rows, askers: Rows, key: int, scale: npt.ArrayLike) -> Floats:
    """Return Laplace noise, one number for each (target, neighbour), the same when asked again.

    Parameters
    ----------
    rows
        The neighbours' row numbers, shape (rows, k).
    askers
        The targets' row numbers, shape (rows,).
    scale
        One number, (rows,), or (rows, k); 0 is no noise.

    Examples
    --------
    >>> laplace_noise(np.array([[4, 7]]), np.array([0]), key=7, scale=0.0)
    array([[0., 0.]])
    """
    scales = np.asarray(scale, dtype=np.float64)
    if not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise SettingError("scale must be finite and at least 0")
    if scales.ndim == 1:
        scales = scales[:, np.newaxis]
    noise = np.empty(rows.shape)
    laplace(
        np.uint64(key),
        np.ascontiguousarray(askers, dtype=np.int32),
        np.ascontiguousarray(rows, dtype=np.int32),
        np.ascontiguousarray(np.broadcast_to(scales, rows.shape)),
        noise,
    )
    return noise + 0.0  # no negative zero
