"""Ratings of bare matrices, as implicit and RecTools have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.data.ratings import Id, Ratings
from goodfence.data.scale import Scale
from goodfence.errors import DataError, require

Zeros: TypeAlias = Literal["error", "keep", "drop"]
_Ids: TypeAlias = "Sequence[Id] | npt.NDArray[Any]"


def read_matrix(
    matrix: Any,
    *,
    users: _Ids | None = None,
    items: _Ids | None = None,
    scale: Scale | tuple[float, ...] | None = None,
    zeros: Zeros = "error",
) -> Ratings:
    """Return the ratings of a sparse users x items matrix: implicit's `user_items`, RecTools' interactions.

    Parameters
    ----------
    matrix
        Any scipy sparse matrix, users x items. What is stored must be ratings, not confidences or counts: the
        attack asks how exactly they can be read.
    users, items
        The ids of rows and columns; None numbers them from 0, as these libraries do.
    scale
        What ratings can be given; None observes it.
    zeros
        What a stored 0 is: a rating of 0 ("keep"), nothing ("drop"), or not expected ("error").

    Examples
    --------
    >>> read_matrix(sparse.csr_matrix([[5, 0], [3, 4]]), scale=(1, 5))
    Ratings(2 users x 2 items, 3 ratings, whole numbers 1-5)
    """
    require(zeros in get_args(Zeros), "zeros", f"one of {', '.join(get_args(Zeros))}", zeros)
    if not sparse.issparse(matrix):
        raise DataError(
            f"matrix must be a scipy sparse one, users x items, got {type(matrix).__name__}"
        )
    csr = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    n_zeros = int((csr.data == 0).sum())
    if n_zeros and zeros == "error":
        raise DataError(
            "matrix must hold no stored zeros unless zeros= says what they are ('keep' or 'drop'), "
            f"it holds {n_zeros:,}"
        )
    if zeros == "drop":
        csr.eliminate_zeros()
    own_users = np.arange(csr.shape[0]) if users is None else users
    own_items = np.arange(csr.shape[1]) if items is None else items
    return Ratings(csr, own_users, own_items, scale)
