"""Small ratings that are hard on ties: tiny scales, equal profiles, rows with one rating or none, zeros."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import goodfence as gf

SCALES: dict[str, list[float]] = {
    "two values": [1, 2],
    "one to five": [1, 2, 3, 4, 5],
    "half stars": [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5],
    "zero to ten": list(range(11)),
}


def from_rows(rows: list[dict[int, float]], n_columns: int) -> gf.Ratings:
    """Return ratings given as one {column: rating} for each row."""
    starts = np.cumsum([0, *(len(row) for row in rows)])
    columns = [column for row in rows for column in sorted(row)]
    values = [row[column] for row in rows for column in sorted(row)]
    parts = (np.array(values, dtype=np.float64), np.array(columns, dtype=np.int32), starts)
    csr = sparse.csr_array(parts, shape=(len(rows), n_columns))
    return gf.Ratings(csr, np.arange(len(rows)), np.arange(n_columns), scale=gf.Scale(-100, 100, None))


@st.composite
def rated_rows(
    draw: st.DrawFn, values: list[float] | None = None, min_rows: int = 2, max_rows: int = 12
) -> tuple[list[dict[int, float]], int]:
    """Draw rows of ratings and the number of columns; some rows are copies of others."""
    n_columns = draw(st.integers(1, 8))
    scale = values or draw(st.sampled_from(sorted(SCALES)).map(SCALES.__getitem__))
    row = st.dictionaries(st.integers(0, n_columns - 1), st.sampled_from(scale), max_size=n_columns)
    rows = draw(st.lists(row, min_size=min_rows, max_size=max_rows))
    copies = draw(st.lists(st.sampled_from(range(len(rows))), max_size=3))
    return [*rows, *(dict(rows[i]) for i in copies)], n_columns
