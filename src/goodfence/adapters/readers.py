"""Ratings and events of sparse matrices (implicit, RecTools) and of `.inter` files (RecBole)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.data.columns import FEEDBACK, Feedback
from goodfence.data.files import DEFAULT_MAX_BYTES
from goodfence.data.frame import Duplicates, ReadOptions
from goodfence.data.load import read_ratings
from goodfence.data.ratings import Id, Ratings
from goodfence.data.scale import ScaleLike
from goodfence.errors import DataError, require
from goodfence.settings import one_of, switch

Zeros: TypeAlias = Literal["error", "keep", "drop"]
_Ids: TypeAlias = "Sequence[Id] | npt.NDArray[Any]"


def read_matrix(
    matrix: Any,
    *,
    users: _Ids | None = None,
    items: _Ids | None = None,
    scale: ScaleLike | None = None,
    zeros: Zeros = "error",
    feedback: Feedback = "explicit",
    weights: bool = False,
) -> Ratings:
    """Return the ratings or events of a sparse users x items matrix: implicit's `user_items`, RecTools' interactions.

    Parameters
    ----------
    matrix : scipy sparse array
        Any scipy sparse matrix, users x items. What is stored must be ratings, not confidences or counts, unless it is
        declared as events: the attack asks how exactly they can be read.
    users, items : sequence of id, optional
        The ids of rows and columns; None numbers them from 0, as these libraries do.
    scale : Scale or tuple of float, optional
        What ratings can be given; None observes it.
    zeros : {"error", "keep", "drop"}, default "error"
        What a stored 0 is: a rating of 0 ("keep"), nothing ("drop"), or not expected ("error"). It is no event.
    feedback : {"explicit", "implicit"}, default "explicit"
        Whether what is stored are ratings, or events: clicks, purchases, plays.
    weights : bool, default False
        Of events: whether what is stored says how much each counts; else each counts 1.

    Examples
    --------
    >>> read_matrix(sparse.csr_matrix([[5, 0], [3, 4]]), scale=(1, 5))
    Ratings(2 users x 2 items, 3 ratings, integers 1-5)
    >>> read_matrix(sparse.csr_matrix([[5, 0], [3, 4]]), feedback="implicit")
    Ratings(2 users x 2 items, 3 events)
    """
    one_of(feedback, "feedback", FEEDBACK)
    switch(weights, "weights")
    events = feedback == "implicit"
    require(events or not weights, "weights", "left out for ratings", weights)
    require(not events or scale is None, "scale", "left out for events", scale)
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
    if events:
        if not (csr.data > 0).all():
            raise DataError("every event must count more than 0; at least one does not")
        csr.sum_duplicates()
        csr.data = csr.data if weights else np.ones(len(csr.data))
    own_users = np.arange(csr.shape[0]) if users is None else users
    own_items = np.arange(csr.shape[1]) if items is None else items
    return Ratings(csr, own_users, own_items, scale, items_declared=False, feedback=feedback)


def read_inter(
    path: str | os.PathLike[str],
    *,
    fields: tuple[str, ...] = ("user_id", "item_id", "rating"),
    feedback: Feedback = "explicit",
    likes: float | None = None,
    scale: ScaleLike | None = None,
    duplicates: Duplicates | None = None,
    separator: str = "\t",
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Ratings:
    r"""Return the ratings or events of a `.inter` file, checked as those of every other file are.

    Parameters
    ----------
    path : str or path
        The file.
    fields : tuple of str, default ("user_id", "item_id", "rating")
        RecBole's `USER_ID_FIELD`, `ITEM_ID_FIELD` and `RATING_FIELD`, without their types; events have no rating.
    feedback, likes, scale, duplicates, max_bytes
        As in `gf.load` of a file.
    separator : str, default tab
        RecBole's `field_separator`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "tiny.inter")
    >>> _ = path.write_text("user_id:token\titem_id:token\trating:float\n7\ta\t4\n8\ta\t3.5\n")
    >>> read_inter(path, scale=(0.5, 5, 0.5))
    Ratings(2 users x 1 items, 2 ratings, 0.5-5 in steps of 0.5)
    >>> folder.cleanup()
    """
    rated = feedback == "explicit" or likes is not None
    least = 3 if rated else 2
    require(len(fields) >= least, "fields", f"the names of {least} columns", len(fields))
    options = ReadOptions(
        user=f"{fields[0]}:token",
        item=f"{fields[1]}:token",
        rating=f"{fields[2]}:float" if rated else None,
        feedback=feedback,
        likes=likes,
        scale=scale,
        duplicates=duplicates,
        separator=separator,
        max_bytes=max_bytes,
    )
    return read_ratings(path, options)
