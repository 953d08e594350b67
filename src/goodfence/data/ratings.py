"""Ratings: who rated what how, as one immutable sparse matrix with the caller's own ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.data.ids import Ids
from goodfence.data.layout import lay_out, places_on
from goodfence.data.scale import Scale
from goodfence.data.triplets import Duplicates, Triplets, read_triplets
from goodfence.errors import DataError, require

Id: TypeAlias = "str | int"


class Ratings:
    """An immutable users x items matrix of ratings.

    A stored 0 is a rating of 0; only what is not stored was not rated.

    Parameters
    ----------
    csr
        The ratings, users x items, each cell at most once.
    users, items
        The ids of the rows and of the columns, integers or text, all different.
    scale
        What ratings can be given: a `Scale`, or (lowest, highest) or (lowest, highest, step),
        which declares it. None observes it from the data, and says so.
    titles
        What the items are called, where that is known: id to name.

    Examples
    --------
    >>> from scipy import sparse
    >>> matrix = sparse.csr_array(np.array([[5.0, 0.0], [3.0, 4.0]]))
    >>> Ratings(matrix, users=["ann", "bob"], items=[10, 20], scale=(1, 5))
    Ratings(2 users x 2 items, 3 ratings, whole numbers 1-5)
    """

    def __init__(
        self,
        csr: sparse.csr_array,
        users: Sequence[Id] | npt.NDArray[Any] | Ids,
        items: Sequence[Id] | npt.NDArray[Any] | Ids,
        scale: Scale | tuple[float, ...] | None = None,
        titles: Mapping[Any, str] | None = None,
    ) -> None:
        self._user_ids = Ids.of(users, "users")
        self._item_ids = Ids.of(items, "items")
        self._csr = _frozen(csr)
        shape = (len(self._user_ids), len(self._item_ids))
        require(self._csr.shape == shape, "csr", f"of shape {shape}", self._csr.shape)
        self._scale = _checked_scale(self._csr.data, scale)
        self._titles = dict(titles or {})

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        scale: Scale | tuple[float, ...] | None = None,
        duplicates: Duplicates = "error",
        items: Sequence[Id] | npt.NDArray[Any] | Ids | None = None,
    ) -> Ratings:
        """Return the ratings of a data frame: pandas, polars, arrow, or anything narwhals knows.

        Columns are found by their names unless `user`, `item` and `rating` name them. `items` lists all items there
        are, as in `on_items`; None takes those that somebody rated.

        Examples
        --------
        >>> import pyarrow as pa
        >>> columns = {"userId": [1, 2, 2], "movieId": ["a", "a", "b"], "rating": [4.0, 5.0, 1.5]}
        >>> table = pa.table(columns)
        >>> Ratings.from_frame(table, scale=(0.5, 5, 0.5))
        Ratings(2 users x 2 items, 3 ratings, 0.5-5 in steps of 0.5)
        """
        stated = None if scale is None else Scale.of(scale)
        triplets = read_triplets(
            frame, user=user, item=item, rating=rating, duplicates=duplicates, scale=stated
        )
        ratings = cls.from_triplets(triplets, scale=stated)
        return ratings if items is None else ratings.on_items(items)

    @classmethod
    def from_triplets(
        cls,
        triplets: Triplets,
        *,
        scale: Scale | tuple[float, ...] | None = None,
        titles: Mapping[Any, str] | None = None,
    ) -> Ratings:
        """Return the ratings of checked triplets."""
        return cls(triplets.csr(), triplets.users, triplets.items, scale, titles)

    @property
    def csr(self) -> sparse.csr_array:
        """The ratings, users x items; read-only."""
        return self._csr

    @property
    def users(self) -> npt.NDArray[Any]:
        """The users' own ids, in row order."""
        return self._user_ids.values

    @property
    def items(self) -> npt.NDArray[Any]:
        """The items' own ids, in column order."""
        return self._item_ids.values

    @property
    def scale(self) -> Scale:
        """Which ratings can be given."""
        return self._scale

    @property
    def shape(self) -> tuple[int, int]:
        """The number of users and of items."""
        return len(self._user_ids), len(self._item_ids)

    @property
    def n_ratings(self) -> int:
        """The number of ratings."""
        return int(self._csr.nnz)

    @cached_property
    def transposed(self) -> Ratings:
        """The same ratings, items x users.

        Built once, kept, and its own transposed is this very object.
        """
        other = Ratings.__new__(Ratings)
        other._user_ids, other._item_ids = self._item_ids, self._user_ids
        other._csr = _frozen(sparse.csr_array(self._csr.T.tocsr()))
        other._scale, other._titles = self._scale, self._titles
        other.__dict__["transposed"] = self
        return other

    def rows(self, users: Sequence[Id] | npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the row numbers of these users."""
        return self._user_ids.positions(users)

    def columns(self, items: Sequence[Id] | npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the column numbers of these items."""
        return self._item_ids.positions(items)

    def title(self, item: Id) -> str:
        """Return what the item is called, or its id where no title is known."""
        return str(self._titles.get(item, item))

    @property
    def titles(self) -> dict[Id, str]:
        """What the items are called, where that is known."""
        return dict(self._titles)

    def on_items(self, items: Sequence[Id] | npt.NDArray[Any] | Ids) -> Ratings:
        """Return the same ratings with these items as columns, in this order; all that were rated must be there.

        Which items exist is then what the caller says, and not what happened to be rated: a private model, which
        takes the list of items as public, needs it so (or its own `catalogue`).

        Examples
        --------
        >>> from scipy import sparse
        >>> one = Ratings(sparse.csr_array(np.array([[5.0]])), ["ann"], ["b"], scale=(1, 5))
        >>> one.on_items(["a", "b", "c"])
        Ratings(1 users x 3 items, 1 ratings, whole numbers 1-5)
        """
        wanted = Ids.of(items, "items")
        places = places_on(self._item_ids, wanted)
        rated = np.zeros(len(places), dtype=np.bool_)
        rated[self._csr.indices] = True
        if (places[rated] < 0).any():
            raise DataError(
                "items must list every item that was rated, and at least one is missing"
            )
        laid = lay_out(self._csr, places, len(wanted))
        return Ratings(laid, self._user_ids, wanted, self._scale, self._titles)

    def replaced(self, csr: sparse.csr_array) -> Ratings:
        """Return ratings with the same ids, titles and scale, and another matrix."""
        scale = self._scale
        return Ratings(csr, self._user_ids, self._item_ids, scale, self._titles)

    def __repr__(self) -> str:
        n_users, n_items = self.shape
        shape = f"{n_users:,} users x {n_items:,} items"
        return f"Ratings({shape}, {self.n_ratings:,} ratings, {self.scale})"


def _frozen(csr: sparse.csr_array) -> sparse.csr_array:
    """Return a canonical float64 copy that cannot be written to; explicit zeros stay."""
    if not sparse.issparse(csr):
        raise DataError("csr must be a scipy sparse array, users x items")
    frozen = sparse.csr_array(csr, dtype=np.float64)
    n_stored = frozen.nnz
    if not frozen.has_canonical_format:
        frozen = frozen.copy()
        frozen.sum_duplicates()
    if frozen.nnz != n_stored:
        raise DataError("csr must hold each cell at most once")
    if not np.isfinite(frozen.data).all():
        raise DataError("csr must hold finite ratings only")
    parts = (_read_only(part) for part in (frozen.data, frozen.indices, frozen.indptr))
    data, indices, indptr = parts
    result = sparse.csr_array((data, indices, indptr), shape=frozen.shape, copy=False)
    result.has_canonical_format = True
    return result


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    kept = array.copy() if array.flags.writeable else array
    kept.flags.writeable = False
    return kept


def _checked_scale(
    values: npt.NDArray[np.float64], scale: Scale | tuple[float, ...] | None
) -> Scale:
    if scale is None:
        if values.size == 0:
            raise DataError("ratings must not be empty unless their scale is declared")
        return Scale.observed(values)
    stated = Scale.of(scale)
    if not stated.holds(values).all():
        raise DataError(f"every rating must be on the scale ({stated}); at least one is not")
    return stated
