"""Predictions in bulk, over threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.engines.local.candidates import Axis, rows_of
from goodfence.engines.local.draws import Chosen
from goodfence.engines.local.threads import ranges, run, thread_count
from goodfence.errors import require
from goodfence.kernels.predict import predict_cells

Over: TypeAlias = Literal["raters", "neighbours"]

Floats = npt.NDArray[np.float64]
_PIECE = 65_536


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Who the chosen neighbours of each row are, and how much each of them counts."""

    neighbours: npt.NDArray[np.int32]
    """(rows, k)."""
    weights: Floats
    """(rows, k): the similarities, with noise where the mechanism adds it."""
    over_raters: bool
    """Divide by the weights of those who rated the item, or of all neighbours."""

    def predict(
        self,
        csr: sparse.csr_array,
        rows: npt.NDArray[np.integer],
        columns: npt.NDArray[np.integer],
        threads: int | None = None,
    ) -> Floats:
        """Return the prediction for each cell (row, column), NaN where no neighbour rated it."""
        ordered = bool((rows[1:] >= rows[:-1]).all())
        order = None if ordered else np.argsort(rows, kind="stable")
        sorted_rows = np.asarray(rows if order is None else rows[order], dtype=np.int64)
        cells = np.asarray(columns if order is None else columns[order], dtype=np.int64)
        starts = np.flatnonzero(
            np.r_[True, sorted_rows[1:] != sorted_rows[:-1]][: len(sorted_rows)]
        )
        groups = np.append(starts, len(sorted_rows)).astype(np.int64)
        results = np.empty(len(cells))
        group_rows = sorted_rows[starts]

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            predict_cells(
                groups[first : last + 1],
                group_rows[first:last],
                cells,
                self.neighbours,
                self.weights,
                csr.indptr,
                csr.indices,
                csr.data,
                self.over_raters,
                csr.shape[1],
                results,
            )

        run(work, _pieces(len(group_rows), len(cells), thread_count(threads)), threads=threads)
        if order is None:
            return results
        predictions = np.empty(len(cells))
        predictions[order] = results
        return predictions


def predict(
    ratings: Ratings,
    chosen: Chosen,
    cells: tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]],
    *,
    axis: Axis = "user",
    over: Over = "raters",
    threads: int | None = None,
) -> Floats:
    """Return predictions [PRED] for cells given by user rows and item columns, NaN where no neighbour rated it.

    Examples
    --------
    >>> import goodfence as gf
    >>> from goodfence.engines.local.draws import choose_neighbours
    >>> films = gf.load("movietweetings")
    >>> chosen = choose_neighbours(films, gf.KNN(k=30))
    >>> len(predict(films, chosen, (np.array([0, 0]), np.array([1, 2]))))
    2
    """
    require(over in ("raters", "neighbours"), "over", "'raters' or 'neighbours'", over)
    rows, columns = cells if axis == "user" else cells[::-1]
    around = Neighbourhoods(chosen.neighbours, chosen.weights, over == "raters")
    return around.predict(rows_of(ratings, axis).csr, rows, columns, threads)


def _pieces(n_groups: int, n_cells: int, threads: int) -> list[tuple[int, int]]:
    """Cut the rows so that each thread has work, and a piece is neither long nor tiny."""
    n_pieces = max(threads, -(-n_cells // _PIECE))
    return ranges(n_groups, max(1, -(-n_groups // n_pieces)))
