"""Ratings as three columns, the form in which most recommenders want them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale

Floats: TypeAlias = npt.NDArray[np.float64]


class Flat(NamedTuple):
    """One entry for each rating, in row order."""

    users: npt.NDArray[Any]
    """The users' own ids."""
    items: npt.NDArray[Any]
    """The items' own ids."""
    values: Floats
    """The ratings."""

    def __repr__(self) -> str:
        return f"Flat({len(self.values):,} ratings)"


def flatten(ratings: Ratings) -> Flat:
    """Return who rated what how, one entry for each rating.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> len(flatten(films).values) == films.n_ratings
    True
    """
    csr = ratings.csr
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    return Flat(ratings.users[rows], ratings.items[csr.indices], np.array(csr.data))


def gather(
    users: Any, items: Any, values: Any, *, scale: Scale | tuple[float, ...] | None = None
) -> Ratings:
    """Return ratings from three columns, checked as those of a file are; the inverse of `flatten`.

    Examples
    --------
    >>> gather(["ann", "bob"], [10, 10], [4, 5], scale=(1, 5))
    Ratings(2 users x 1 items, 2 ratings, whole numbers 1-5)
    """
    columns = {"user": _column(users), "item": _column(items), "rating": _column(values)}
    return Ratings.from_frame(pa.table(columns), scale=scale)


def within(values: Floats, ends: tuple[float, float]) -> Scale:
    """Return the scale between `ends` with the step that the values show: observed, for nobody stated the step.

    Examples
    --------
    >>> print(within(np.array([2.0, 4.0]), (1, 5)))
    whole numbers 1-5 (observed)
    """
    lowest, highest = float(ends[0]), float(ends[1])
    seen = Scale.observed(np.append(values, (lowest, highest)))
    return Scale(lowest, highest, seen.step, declared=False)


def _column(values: Any) -> pa.Array:
    """Return one column; numpy keeps text as objects, of which arrow is told to make text."""
    array = np.asarray(values)
    return pa.array(array.tolist() if array.dtype.kind in "OU" else array)
