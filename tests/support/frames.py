"""Ratings as tables, and lists of a data frame as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import goodfence as gf
from goodfence.neighbours.candidate_lists import CandidateLists


def table_of(ratings: gf.Ratings, seed: int = 0) -> pa.Table:
    """Return ratings as user, item, rating, in a random order."""
    rows = np.repeat(np.arange(ratings.shape[0]), np.diff(ratings.csr.indptr))
    order = np.random.default_rng(seed).permutation(len(rows))
    columns = {
        "user": ratings.users[rows][order].tolist(),
        "item": ratings.items[ratings.csr.indices][order].tolist(),
        "rating": ratings.csr.data[order],
    }
    return pa.table(columns)


def frame_of_lists(frame: Any, ids: npt.NDArray[Any]) -> CandidateLists:
    """Return the lists of a data frame as the local engine has them, after a look at the ids."""
    table = frame.orderBy("row").toArrow()
    assert table["row"].to_pylist() == list(range(len(ids)))
    assert table["id"].to_pylist() == ids.tolist()
    arrays = [
        table[name].combine_chunks().flatten().to_numpy().reshape(len(ids), -1) for name in ("indices", "similarities")
    ]
    return CandidateLists(*arrays)
