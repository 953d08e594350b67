"""Similarity rows: one row against all, in time that does not depend on all pairs.

Serves every similarity, any rating values, and rows that are not in the data (an attacker's, a newcomer's).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.engines.local.threads import ranges, run
from goodfence.engines.progress import Advance
from goodfence.kernels.moments import add_dots, add_moments, corated_cosines, correlations, cosines
from goodfence.kernels.order import nearest
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_PIECE = 64


@dataclass(frozen=True, eq=False)
class RowsAgainstAll:
    """Compares single rows with all rows of `profiles`."""

    profiles: Profiles
    similarity: Similarity

    def similarities(self, others: Profiles, row: int) -> Floats:
        """Return the similarity of row `row` of `others` to every row of the profiles."""
        start, stop = others.rows.indptr[row], others.rows.indptr[row + 1]
        columns, values = others.rows.indices[start:stop], others.rows.data[start:stop]
        table = self.profiles.columns
        n_rows = self.profiles.n_rows
        result = np.empty(n_rows)
        if self.similarity.name == "cosine":
            dots = np.zeros(n_rows)
            add_dots(columns, values, table.indptr, table.indices, table.data, dots)
            squared_norm = float(values @ values)
            cosines(dots, squared_norm, self.profiles.squared_norms, result)
            return result
        moments = np.zeros((n_rows, 6))
        add_moments(columns, values, table.indptr, table.indices, table.data, moments)
        if self.similarity.name == "cosine_corated":
            corated_cosines(moments, result)
            return result
        count = float(len(values)) if self.similarity.centre == "all" else -1.0
        total = float(values.sum())
        correlations(moments, total, count, self.profiles.totals, self.profiles.counts, result)
        return result

    def nearest(
        self,
        others: Profiles,
        rows: npt.NDArray[np.integer],
        n: int,
        *,
        themselves: bool,
        threads: int | None = None,
        advance: Advance | None = None,
    ) -> tuple[Rows, Floats]:
        """Return the n nearest rows to each of `rows` of `others`, and their similarities.

        `themselves` says that `others` are the profiles: then no row is its own neighbour.
        """
        indices = np.empty((len(rows), n), dtype=np.int32)
        values = np.empty((len(rows), n))
        self.lay_out_shared()

        def work(piece: tuple[int, int]) -> None:
            scratch = np.empty(self.profiles.n_rows)
            for position in range(*piece):
                row = int(rows[position])
                similarities = self.similarities(others, row)
                skip = row if themselves else -1
                nearest(similarities, skip, scratch, indices[position], values[position])

        run(work, ranges(len(rows), _PIECE), threads=threads, advance=advance)
        return indices, values

    def n_pieces(self, n_rows: int) -> int:
        """Return how many steps `nearest` reports for so many rows."""
        return len(ranges(n_rows, _PIECE))

    def lay_out_shared(self) -> None:
        """Compute what the threads share before they start."""
        _ = self.profiles.columns, self.profiles.squared_norms
        _ = self.profiles.totals, self.profiles.counts
