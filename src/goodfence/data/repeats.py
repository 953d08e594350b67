"""Pairs of person and item that were rated more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Repeats:
    """The rows of a table, grouped by their pair, in the order of the pairs."""

    order: npt.NDArray[np.int64]
    """The rows by pair, and by their place in the table within a pair."""
    starts: npt.NDArray[np.int64]
    """Where each pair begins in `order`."""

    @property
    def n_repeated(self) -> int:
        """How many rows are for a pair that an earlier row has."""
        return len(self.order) - len(self.starts)

    in_order: bool = False
    """Whether the table is in the order of its pairs already, each of them once."""

    def first(self, column: npt.NDArray[T]) -> npt.NDArray[T]:
        """Return what `column` holds in the first row of each pair."""
        return column if self.in_order else column[self.order[self.starts]]

    def last(self, column: npt.NDArray[T]) -> npt.NDArray[T]:
        """Return what `column` holds in the last row of each pair."""
        ends = np.append(self.starts[1:], len(self.order))
        chosen: npt.NDArray[T] = column[self.order[ends - 1]]
        return chosen

    def mean(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the mean of each pair's values.

        Examples
        --------
        >>> find_repeats(np.array([0, 0]), np.array([1, 1]), 2).mean(np.array([3.0, 4.0]))
        array([3.5])
        """
        counts = np.diff(np.append(self.starts, len(self.order)))
        sums: npt.NDArray[np.float64] = np.add.reduceat(values[self.order], self.starts)
        return sums / counts

    def earliest(self) -> tuple[int, int]:
        """Return the first row that repeats a pair and the row it repeats, both counted from 1."""
        is_first = np.zeros(len(self.order), dtype=np.bool_)
        is_first[self.starts] = True
        later = np.where(is_first, len(self.order), self.order)
        place = int(np.argmin(later))
        start = self.starts[np.searchsorted(self.starts, place, side="right") - 1]
        return int(self.order[place]) + 1, int(self.order[start]) + 1


def find_repeats(
    rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], n_columns: int
) -> Repeats:
    """Return the table's rows grouped by (row, column) of the matrix.

    Examples
    --------
    >>> find_repeats(np.array([1, 0, 1]), np.array([0, 1, 0]), 2).earliest()
    (3, 1)
    """
    keys = rows.astype(np.int64) * n_columns + columns
    if bool((keys[1:] > keys[:-1]).all()):
        everything = np.arange(len(keys), dtype=np.int64)
        return Repeats(everything, everything, in_order=True)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return Repeats(order, starts)
