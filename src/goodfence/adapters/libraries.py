"""Libraries that goodfence works with but does not need: their data, and the models of implicit."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from goodfence.adapters.black_box import BlackBox
from goodfence.arrays import Flags, Floats, row_numbers
from goodfence.data.columns import FEEDBACK, Feedback
from goodfence.data.frame import ReadOptions
from goodfence.data.load import read_ratings
from goodfence.data.ratings import Id, Ratings
from goodfence.data.scale import ScaleLike
from goodfence.errors import DataError, MissingExtra, require
from goodfence.settings import one_of

Zeros: TypeAlias = Literal["error", "keep", "drop"]
_Ids: TypeAlias = "Sequence[Id] | npt.NDArray[Any]"

_PACKAGES = {"sklearn": "scikit-learn", "surprise": "scikit-surprise"}
"""The names under which libraries are installed, where these differ from the module."""


def library(module: str) -> Any:
    """Return a module of an optional library; raise `MissingExtra` with the command that installs it."""
    name = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name:
            raise  # the library is there, and misses something of its own
    extra = "lenskit" if name == "lenskit" else "adapters"  # LensKit brings PyTorch
    raise MissingExtra(
        f"{_PACKAGES.get(name, name)} must be installed for this adapter; pip install 'goodfence[{extra}]'"
    )


def base_class(module: str, name: str) -> Any:
    """Return a class of an optional library to derive from; if that is missing, one that cannot be instantiated."""
    try:
        return getattr(library(module), name)
    except MissingExtra:
        return type(name, (), {"__new__": lambda *_, **__: library(module)})


def flatten(ratings: Ratings) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Floats]:
    """Return ratings as three columns in row order: users, items and values."""
    csr = ratings.csr
    users = ratings.users[row_numbers(csr.indptr)]
    return users, ratings.items[csr.indices], np.array(csr.data)


def ratings_from_columns(users: Any, items: Any, values: Any, *, scale: ScaleLike | None = None) -> Ratings:
    """Return ratings from three columns, checked like a file; the inverse of `flatten`."""
    columns = {}
    for name, given in {"user": users, "item": items, "rating": values}.items():
        array = np.asarray(given)  # numpy keeps text as objects, of which arrow makes text
        columns[name] = pa.array(array.tolist() if array.dtype.kind in "OU" else array)
    return Ratings.from_frame(pa.table(columns), scale=scale)


def predict_known(recommender: Any, ratings: Ratings, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> Floats:
    """Return predictions where both the user and the item are in `ratings`, NaN elsewhere."""
    known = among(users, ratings.users) & among(items, ratings.items)
    predictions = np.full(len(known), np.nan)
    if known.any():
        # As the ratings hold them: integers, or text as objects.
        known_users = users[known].astype(ratings.users.dtype)
        known_items = items[known].astype(ratings.items.dtype)
        predictions[known] = recommender.predict(known_users, known_items)
    return predictions


def among(wanted: npt.NDArray[Any], ids: npt.NDArray[Any]) -> Flags:
    """Return which of `wanted` are among the ids; text and numbers are never the same."""
    if ids.dtype != object and wanted.dtype.kind in "iu":
        return np.isin(wanted, ids)
    known = set(ids.tolist())
    return np.array([one in known for one in wanted.tolist()], dtype=np.bool_)


def seeded_copy(model: Any, rng: int | None) -> Any:
    """Return a deep copy of a model, with this seed as its `random_state` if it has one."""
    own = copy.deepcopy(model)
    if rng is not None and hasattr(own, "random_state"):
        own.random_state = rng % 2**32
    return own


def from_implicit(model: Any) -> BlackBox:
    """Return a model of implicit (`AlternatingLeastSquares`, `CosineRecommender`, ...) that can be attacked.

    A copy is fitted in each world, with the target's seed where it has a `random_state`.
    """
    library("implicit")

    def train(events: Ratings, rng: int | None = None) -> Any:
        own, csr = seeded_copy(model, rng), events.csr
        cells = (csr.data.astype(np.float32), csr.indices.copy(), csr.indptr.copy())  # it writes
        matrix = sparse.csr_matrix(cells, shape=csr.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how it converts its own matrices
            own.fit(matrix, show_progress=False)

        def recommend(user: Any, n: int) -> Any:
            row = events.row(user)
            columns, scores = own.recommend(row, matrix[row], N=n, filter_already_liked_items=True)
            listed = (columns >= 0) & np.isfinite(scores) & (scores > np.finfo(np.float32).min)
            return events.items[columns[listed]]

        return recommend

    return BlackBox(train, asks="lists")


def ratings_from_matrix(
    matrix: Any,
    *,
    users: _Ids | None = None,
    items: _Ids | None = None,
    scale: ScaleLike | None = None,
    zeros: Zeros = "error",
    feedback: Feedback = "explicit",
    weights: bool = False,
) -> Ratings:
    """Return the ratings or events of a sparse users x items matrix, as implicit and RecTools use them.

    Parameters
    ----------
    matrix : scipy sparse array
        The stored values are ratings, not confidences or counts, unless `feedback` is "implicit".
    users, items : sequence of id, optional
        The ids of rows and columns; None numbers them from 0, as these libraries do.
    scale : Scale or tuple of float, optional
        What ratings can be given; None observes it.
    zeros : {"error", "keep", "drop"}, default "error"
        Keep a stored 0 as a rating of 0, drop it, or refuse it. It is never an event.
    feedback : {"explicit", "implicit"}, default "explicit"
        Whether the stored values are ratings, or events: clicks, purchases, plays.
    weights : bool, default False
        For events: use the stored values as weights; else each event counts 1.
    """
    events = one_of(feedback, "feedback", FEEDBACK) == "implicit"
    require(events or weights is False, "weights", "left out for ratings", weights)
    require(not events or scale is None, "scale", "left out for events", scale)
    one_of(zeros, "zeros", get_args(Zeros))
    if not sparse.issparse(matrix):
        raise DataError(f"matrix must be a scipy sparse matrix, got {type(matrix).__name__}")
    csr = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    n_zeros = int((csr.data == 0).sum())
    if n_zeros and zeros == "error":
        raise DataError(f"the matrix has {n_zeros:,} stored zeros; choose zeros='keep' or zeros='drop'")
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


def ratings_from_inter(
    path: str | os.PathLike[str],
    options: ReadOptions | None = None,
    *,
    fields: tuple[str, ...] = ("user_id", "item_id", "rating"),
) -> Ratings:
    r"""Return the ratings or events of RecBole's `.inter` file, checked like any other file.

    Parameters
    ----------
    path : str or path
        The file.
    options : ReadOptions, optional
        How to read it: feedback, likes, scale, duplicates, max_bytes, and RecBole's `field_separator` as separator,
        a tab unless given.
    fields : tuple of str, default ("user_id", "item_id", "rating")
        RecBole's `USER_ID_FIELD`, `ITEM_ID_FIELD` and `RATING_FIELD`, without their types; events have no rating.
    """
    given = options or ReadOptions()
    least = 3 if given.rated else 2
    require(len(fields) >= least, "fields", f"the names of {least} columns", len(fields))
    named = replace(
        given,
        user=f"{fields[0]}:token",
        item=f"{fields[1]}:token",
        rating=f"{fields[2]}:float" if given.rated else None,
        separator=given.separator or "\t",
    )
    return read_ratings(path, named)
