"""Predictions in bulk, over threads [PRED]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Flags, Floats, Rows, as_csr
from goodfence.kernels.predict import CellGroups, predict_cells, predict_for_profile
from goodfence.parallel import ranges, run, thread_count

Over: TypeAlias = Literal["raters", "neighbours"]

_PIECE = 65_536


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Who the chosen neighbours of each row are, and how much each of them counts."""

    neighbours: Rows  # (rows, k)
    weights: Floats  # (rows, k): the similarities, with noise where the mechanism adds it
    over_raters: bool  # divide by the weights of those who rated the item, or of all neighbours
    least: int = 1  # with fewer neighbours who rated the item there is no prediction

    def predict(
        self, csr: sparse.csr_array, rows: AnyIntegers, columns: AnyIntegers, threads: int | None = None
    ) -> Floats:
        """Return the prediction for each cell (row, column), NaN where too few neighbours rated it."""
        predictions = self._predict(csr, rows, columns, threads)
        if self.least > 1:
            ones = sparse.csr_array((np.ones(csr.nnz), csr.indices, csr.indptr), csr.shape)
            shares = self._shares._predict(ones, rows, columns, threads)
            predictions[self._too_few(shares, rows)] = np.nan
        return predictions

    def predict_column(self, rated: AnyIntegers, values: Floats, rows: AnyIntegers) -> Floats:
        """Return the predictions of `rows` (items) in one column, where the rows `rated` have `values`."""
        predictions = self._predict_column(rated, values, rows)
        if self.least > 1:
            shares = self._shares._predict_column(rated, np.ones(len(rated)), rows)
            predictions[self._too_few(shares, rows)] = np.nan
        return predictions

    @property
    def _shares(self) -> Neighbourhoods:
        """The same neighbours, each counting 1 or nothing: of all ones they predict the share that rated."""
        return Neighbourhoods(self.neighbours, (self.weights != 0).astype(np.float64), False)

    def _too_few(self, shares: Floats, rows: AnyIntegers) -> Flags:
        """Return where fewer neighbours rated the item than are needed."""
        counts = np.nan_to_num(shares) * (self.weights != 0).sum(axis=1)[rows]
        return np.asarray(counts < self.least - 0.5)

    def _predict_column(self, rated: AnyIntegers, values: Floats, rows: AnyIntegers) -> Floats:
        profile = np.full(len(self.neighbours), np.nan)
        profile[rated] = values
        predictions = np.empty(len(rows))
        near = (self.neighbours, self.weights)
        predict_for_profile(profile, np.asarray(rows), *near, self.over_raters, predictions)
        return predictions

    def _predict(self, csr: sparse.csr_array, rows: AnyIntegers, columns: AnyIntegers, threads: int | None) -> Floats:
        order: Any = slice(None)
        if not (rows[1:] >= rows[:-1]).all():
            order = np.argsort(rows, kind="stable")
        sorted_rows = np.asarray(rows[order], dtype=np.int64)
        cells = np.asarray(columns[order], dtype=np.int64)
        starts = np.flatnonzero(np.r_[True, sorted_rows[1:] != sorted_rows[:-1]][: len(sorted_rows)])
        groups = np.append(starts, len(sorted_rows)).astype(np.int64)
        rated, results = as_csr(csr), np.empty(len(cells))
        group_rows, near = sorted_rows[starts], (self.neighbours, self.weights)

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            part = CellGroups(groups[first : last + 1], group_rows[first:last], cells)
            predict_cells(part, *near, rated, self.over_raters, csr.shape[1], results)

        # Each thread has work, and a piece is neither long nor tiny.
        n_pieces = max(thread_count(threads), -(-len(cells) // _PIECE))
        pieces = ranges(len(group_rows), max(1, -(-len(group_rows) // n_pieces)))
        run(work, pieces, threads=threads)
        predictions = np.empty(len(cells))
        predictions[order] = results
        return predictions
