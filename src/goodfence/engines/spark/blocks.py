"""Blocks: the ratings of consecutive rows, as one parcel.

Blocks are cut by row. So an item that everybody rated is spread over all of them, and no single task meets it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.engines.local.threads import ranges
from goodfence.engines.spark.parcels import Arrays, Parcel
from goodfence.similarity.profiles import Profiles

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Block:
    """The ratings of some consecutive rows, in the smallest kinds of number that hold them exactly."""

    first: int
    """The number of the first row."""
    n_columns: int
    counts: npt.NDArray[np.int32]
    """(rows,): how many ratings each row has."""
    columns: npt.NDArray[Any]
    """(ratings,)."""
    ratings: npt.NDArray[Any]
    thresholds: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    """(rows,): below which similarity nobody is a candidate, as guessed from a sample; empty if nobody guessed."""

    def __repr__(self) -> str:
        return f"Block({self.n_rows:,} rows)"

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.counts)

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The row numbers."""
        return np.arange(self.first, self.first + self.n_rows)

    @cached_property
    def csr(self) -> sparse.csr_array:
        """(rows of the block, all columns), as they were given."""
        return profiles_of([self], 0).rows

    def arrays(self) -> Arrays:
        """Return the block as arrays."""
        return {
            "first": np.array([self.first, self.n_columns]),
            "counts": self.counts,
            "columns": self.columns,
            "ratings": self.ratings,
            "thresholds": self.thresholds,
        }

    @classmethod
    def of(cls, arrays: Arrays) -> Block:
        """Return the block that `arrays` made."""
        first, n_columns = arrays["first"].tolist()
        names = ("counts", "columns", "ratings", "thresholds")
        return cls(first, n_columns, *(arrays[name] for name in names))

    @classmethod
    def of_rows(cls, first: int, csr: sparse.csr_array) -> Block:
        """Return the rows of a matrix as a block."""
        n_columns = csr.shape[1]
        narrow = np.uint16 if n_columns <= np.iinfo(np.uint16).max else np.int32
        columns = csr.indices.astype(narrow, copy=False)
        counts = np.diff(csr.indptr).astype(np.int32)
        return cls(first, n_columns, counts, columns, small(csr.data))

    def rows(self, numbers: npt.NDArray[np.integer]) -> Block:
        """Return some rows as a block of their own; their numbers are kept by whoever asked."""
        return Block.of_rows(-1, self.csr[numbers - self.first])


def cut(csr: sparse.csr_array, n_rows: int) -> list[Parcel]:
    """Return a matrix in blocks of at most `n_rows` rows."""
    parcels = []
    for number, (first, last) in enumerate(ranges(csr.shape[0], n_rows)):
        indptr = csr.indptr[first : last + 1]
        # Seen where they lie: a slice of the matrix would be a copy.
        own = slice(indptr[0], indptr[-1])
        parts = csr.data[own], csr.indices[own], indptr - indptr[0]
        block = sparse.csr_array(parts, shape=(last - first, csr.shape[1]), copy=False)
        parcels.append(Parcel(number, number, Block.of_rows(first, block).arrays()))
    return parcels


def small(values: Floats) -> npt.NDArray[Any]:
    """Return ratings in the smallest kind of number that holds all of them exactly.

    Examples
    --------
    >>> small(np.array([1.0, 5.0])).dtype, small(np.array([0.5, 5.0])).dtype
    (dtype('uint8'), dtype('float32'))
    """
    if bool(((values >= 0) & (values <= np.iinfo(np.uint8).max)).all()):
        bytes_ = values.astype(np.uint8)
        if bool((bytes_ == values).all()):
            return bytes_
    with np.errstate(over="ignore"):
        halves = values.astype(np.float32)
    return halves if bool((halves == values).all()) else values


def profiles_of(blocks: list[Block], factor: int, *, spare: bool = False) -> Profiles:
    """Lay the rows of several blocks out together, in the units in which all rows are compared.

    `spare` adds a last row without ratings.
    """
    ratings = np.concatenate([block.ratings for block in blocks])
    values = ratings.astype(np.float64, copy=False)
    if factor and (factor > 1 or ratings.dtype != np.uint8):
        values = np.rint(values * factor)
    columns = np.concatenate([block.columns for block in blocks])
    indices = columns.astype(np.int32, copy=False)
    counts = [block.counts for block in blocks] + [np.zeros(int(spare), dtype=np.int32)]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int32)
    for part in (values, indices, indptr):
        part.flags.writeable = False  # the kernels are compiled for such, as everywhere
    shape = (len(indptr) - 1, blocks[0].n_columns)
    return Profiles(sparse.csr_array((values, indices, indptr), shape=shape, copy=False), factor)
