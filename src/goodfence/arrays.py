"""The arrays that are passed around, by name: what they hold, not how long they are."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Float32s: TypeAlias = npt.NDArray[np.float32]
AnyFloats: TypeAlias = npt.NDArray[np.floating[Any]]
Integers: TypeAlias = npt.NDArray[np.int64]
AnyIntegers: TypeAlias = npt.NDArray[np.integer[Any]]
Rows: TypeAlias = npt.NDArray[np.int32]  # row or column numbers
Flags: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]  # random bits, 64 at a time


class Csr(NamedTuple):
    """A sparse matrix as kernels take it."""

    starts: AnyIntegers  # (rows + 1,): where each row begins
    columns: AnyIntegers
    values: npt.NDArray[Any]


def as_csr(matrix: Any) -> Csr:
    """Return a sparse matrix of scipy as kernels take it."""
    return Csr(matrix.indptr, matrix.indices, matrix.data)


def row_numbers(starts: AnyIntegers) -> Integers:
    """Return the row number of every stored cell of a CSR matrix, given its `indptr`."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))
