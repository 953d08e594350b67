"""The matrices the benchmarks run on, kept as plain arrays for the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import goodfence as gf
from goodfence.arrays import row_numbers

DOUBAN_SIZE: dict[str, Any] = {"users": 129_490, "items": 58_541, "ratings": 16_830_839}
CACHE = Path(__file__).resolve().parent.parent / ".venv" / "benchmark-data"


def ratings_of(name: str) -> gf.Ratings:
    """Return the ratings called `name`: of the catalogue, or `douban-size` for the synthetic one."""
    return gf.synthetic(**DOUBAN_SIZE, rng=7) if name == "douban-size" else gf.load(name)


def matrix_file(name: str) -> Path:
    """Return a file with the ratings as users x items arrays."""
    path = CACHE / f"{name}.npz"
    if not path.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        ratings = ratings_of(name)
        csr = ratings.csr
        scale = np.array([ratings.scale.lowest, ratings.scale.highest])
        partial = CACHE / f"{name}.partial.npz"
        np.savez(partial, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape, scale=scale)
        partial.rename(path)
    return path


def read_matrix(path: str | Path) -> sparse.csr_array:
    """Return the users x items matrix in `path`."""
    with np.load(path) as arrays:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        return sparse.csr_array(parts, shape=tuple(arrays["shape"]))


def write_csv(ratings: gf.Ratings, path: Path) -> None:
    """Write ratings as user, item, rating."""
    import pyarrow as pa
    from pyarrow import csv

    matrix = ratings.csr
    rows = row_numbers(matrix.indptr)
    columns = {"user": ratings.users[rows], "item": ratings.items[matrix.indices], "rating": matrix.data}
    csv.write_csv(pa.table(columns), path)


def known_only(train: gf.Ratings, test: gf.Ratings) -> gf.Ratings:
    """Leave out cells of items nobody rated in the training part: not every library can be asked about them."""
    known = np.diff(train.transposed.csr.indptr) > 0
    rows = row_numbers(test.csr.indptr)
    kept = known[test.csr.indices]
    parts = (test.csr.data[kept], (rows[kept], test.csr.indices[kept]))
    return test.replaced(sparse.csr_array(parts, shape=test.shape))
