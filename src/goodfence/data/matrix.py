"""Sparse matrices of ratings: checked, frozen, and with their columns moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Flags, Floats, Integers, row_numbers
from goodfence.errors import DataError


def cells_inside(csr: sparse.csr_array, inside: Flags) -> sparse.csr_array:
    """Return the stored cells that are `inside`, and nothing for the others."""
    starts = np.concatenate(([0], np.cumsum(inside)))[csr.indptr].astype(csr.indptr.dtype)
    return sparse.csr_array((csr.data[inside], csr.indices[inside], starts), shape=csr.shape)


def liked_cells(csr: sparse.csr_array, least: float) -> sparse.csr_array:
    """Return 1 for each rating of at least `least`, and nothing for the others."""
    liked = cells_inside(csr, csr.data >= least)
    return sparse.csr_array((np.ones(liked.nnz), liked.indices, liked.indptr), shape=csr.shape)


def check_csr(starts: Any, columns: Any, n_stored: int, shape: tuple[int, ...]) -> None:
    """Raise unless these arrays make a sparse matrix of this shape: compiled code reads wherever an index points."""
    check_starts(starts, n_stored, "csr")
    if len(starts) != shape[0] + 1 or len(columns) != n_stored:
        raise DataError("csr must have one start a row, and one column a rating")
    _check_indices(columns, shape[1])


def check_starts(starts: Any, n_stored: int, name: str) -> None:
    """Raise unless these are where the rows of a sparse matrix begin: from 0, never falling, to the end."""
    _check_integers(starts, name)
    ends = len(starts) > 0 and starts[0] == 0 and starts[-1] == n_stored
    if not ends or (starts[1:] < starts[:-1]).any():
        raise DataError(f"{name} must have starts from 0 to its end that never fall")


def _check_indices(indices: Any, size: int) -> None:
    _check_integers(indices, "csr")
    if len(indices) and not (indices.min() >= 0 and indices.max() < size):
        raise DataError("csr must have indices within its shape; at least one is not")


def _check_integers(array: Any, name: str) -> None:
    plain = isinstance(array, np.ndarray) and array.ndim == 1
    if not plain or array.dtype not in (np.int32, np.int64):
        raise DataError(f"{name} must have one-dimensional 32- or 64-bit integers as its indices")


def frozen(csr: Any) -> sparse.csr_array:
    """Return a canonical float64 copy that cannot be written to, of a csr, csc or coo array; explicit zeros stay."""
    form = csr.format if sparse.issparse(csr) and csr.ndim == 2 else ""
    if form in ("csr", "csc"):
        shape = csr.shape if form == "csr" else csr.shape[::-1]
        check_csr(csr.indptr, csr.indices, len(csr.data), shape)
    elif form == "coo":
        for axis, indices in enumerate((csr.row, csr.col)):
            _check_indices(indices, csr.shape[axis])
            if len(indices) != len(csr.data):
                raise DataError("csr must have one row and one column a rating")
    else:
        raise DataError("csr must be a scipy sparse array, users x items, of the format csr, csc or coo")
    if csr.dtype.kind not in "buif":
        raise DataError("csr must hold numbers")
    frozen = sparse.csr_array(csr, dtype=np.float64)
    n_stored = frozen.nnz
    if not frozen.has_canonical_format:
        frozen = frozen.copy()
        frozen.sum_duplicates()
    if frozen.nnz != n_stored:
        raise DataError("csr must hold each cell at most once")
    if not np.isfinite(frozen.data).all():
        raise DataError("csr must hold finite ratings only")
    small = max(frozen.nnz, *frozen.shape) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64  # kernels compile for one kind
    data, indices, starts = (
        part.astype(to, copy=part.flags.writeable)
        for part, to in ((frozen.data, np.float64), (frozen.indices, kind), (frozen.indptr, kind))
    )
    result = read_only((data, indices, starts), frozen.shape)
    result.has_canonical_format = True
    return result


def read_only(parts: tuple[Floats, npt.NDArray[Any], npt.NDArray[Any]], shape: tuple[int, int]) -> sparse.csr_array:
    """Return a matrix that cannot be written to: one kind of array for the kernels, so they compile once."""
    views = [part.view() for part in parts]
    for view in views:
        view.flags.writeable = False
    return sparse.csr_array(tuple(views), shape=shape, copy=False)


def move_columns(csr: sparse.csr_array, positions: Integers, n_columns: int) -> sparse.csr_array:
    """Return the matrix with column j moved to positions[j], and left out where that is -1; a stored 0 stays."""
    rows = row_numbers(csr.indptr)
    columns = positions[csr.indices]
    kept = columns >= 0
    cells: tuple[Any, ...] = (csr.data[kept], (rows[kept], columns[kept]))
    return sparse.csr_array(cells, shape=(csr.shape[0], n_columns))
