"""Neighbours chosen for each prediction among those who rated the item, as LensKit and Surprise choose them.

The candidate list of a cell (row, column) holds the other rows that rated the column and are at all similar, filled up
with nobody where it is too short. Draw and noise depend on (key, row, candidate) only: asking again, or about another
column, reveals no other number. Where everybody rated everything these are the neighbours of `among="all"`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Csr, Floats, Integers, as_csr, row_numbers
from goodfence.errors import SettingError
from goodfence.kernels.predict import (
    NOBODY,
    Nearest,
    RaterCandidates,
    count_raters,
    list_raters,
    predict_nearest_raters,
)
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.draw import Draws, draw_with_noise
from goodfence.neighbours.similarity import Profiles
from goodfence.parallel import ranges, run, thread_count
from goodfence.selection.mechanism import shortest_list

_BLOCK_CELLS = 1 << 18  # the most similarities of a thread: they stay in the cache
_LIST_CELLS = 1 << 20  # the most list entries that one thread draws from at a time
_COLUMN_CELLS = 1 << 24  # the most similarities that one column is predicted from at once
_KEPT_BYTES = 256 << 20  # the most memory for similarities that are kept to be asked for again
_LONGEST = 1 << 24  # a mechanism that needs a longer list is refused


class Askers(NamedTuple):
    """Some rows that ask, beside the candidates that they can have."""

    candidates: RaterCandidates
    askers: AnyIntegers  # (rows,): row numbers; that of an out-of-sample row is the number of rows
    numbers: AnyIntegers  # (candidates,): their row numbers
    bounds: Floats | None  # RS of each asker, (rows,), or of each pair, (rows, candidates)
    key: int


class KeptSimilarities:
    """The similarities of rows to all rows: computed when they are asked for, and kept while there is room."""

    def __init__(self, engine: RowsAgainstAll) -> None:
        self.engine = engine
        self._room = _KEPT_BYTES // (8 * max(engine.profiles.n_rows, 1))
        self._kept: dict[int, Floats] = {}
        self._asked: set[int] = set()
        engine.compute_shared()

    def keep_all(self, threads: int | None) -> None:
        """Compute and keep those of all rows, if there is room."""
        n_rows = self.engine.profiles.n_rows
        if self._room < n_rows:
            return
        table = np.empty((n_rows, n_rows))

        def work(piece: tuple[int, int]) -> None:
            table[slice(*piece)] = self.engine.block(np.arange(*piece))

        run(work, ranges(n_rows, max(1, _BLOCK_CELLS // max(n_rows, 1))), threads=threads)
        self._kept = dict(enumerate(table))

    def of(self, rows: Integers) -> Floats:
        """Return the similarities of some rows to all, (rows, all rows); keep what was asked for before."""
        missing = [row for row in rows.tolist() if row not in self._kept]
        computed = self.engine.block(np.array(missing, dtype=np.int64))
        own = dict(zip(missing, computed, strict=True))
        for row in self._asked.intersection(missing):
            if len(self._kept) < self._room:
                self._kept[row] = own[row].copy()
        self._asked.update(missing)
        if len(missing) == len(rows):
            return computed
        return np.array([own[row] if row in own else self._kept[row] for row in rows.tolist()])


@dataclass(frozen=True, eq=False)
class RaterNeighbourhoods:
    """Predicts each cell from neighbours drawn among those who rated its column."""

    draws: Draws
    raters: sparse.csr_array  # columns x rows: who rated each column, and what is averaged
    least: int  # with fewer neighbours there is no prediction
    summed: bool = False  # add up what the neighbours have, for lists; do not average it [PRED]

    def __post_init__(self) -> None:
        _ = self._shortest

    def voting(self, raters: sparse.csr_array) -> RaterNeighbourhoods:
        """Return the same neighbours adding up what `raters` holds; similarities are computed once for both."""
        made = replace(self, raters=raters, least=1, summed=True)
        made.__dict__["similarities"] = self.similarities
        return made

    def predict(self, rows: AnyIntegers, columns: AnyIntegers, threads: int | None = None) -> Floats:
        """Return the prediction for each cell (row, column), NaN where too few neighbours rated it."""
        return self._by_rows(rows, columns, as_csr(self.raters), threads)

    def predict_fold_in(self, others: Profiles, key: int, columns: AnyIntegers) -> Floats:
        """Return the predictions of an out-of-sample row, the one row of `others`, drawn with its own key."""
        similarities = self.similarities.engine.similarities(others, 0)[np.newaxis]
        candidates = RaterCandidates(similarities, np.array([-1]), as_csr(self.raters))
        bounds, askers = self.draws.profile_bounds(others), np.array([self._n_rows])
        asking = Askers(candidates, askers, self._every, bounds, key)
        return self._answers(asking, np.zeros(len(columns), dtype=np.int64), np.asarray(columns))

    def predict_column(self, rated: AnyIntegers, values: Floats, rows: AnyIntegers) -> Floats:
        """Return the predictions of `rows` (items) in one column, where the rows `rated` have `values`."""
        order = np.argsort(rated)
        numbers = np.asarray(rated, dtype=np.int64)[order]
        averaged = np.asarray(values, dtype=np.float64)[order]
        ends, asked = np.array([0, len(numbers)]), np.asarray(rows, dtype=np.int64)
        one = np.zeros(len(asked), dtype=np.int64)
        if not len(numbers) < len(asked) <= _COLUMN_CELLS // max(len(numbers), 1):
            return self._by_rows(asked, one, Csr(ends, numbers, averaged), threads=1)
        # Similarities are symmetric: the fewer of both are compared with all.
        similarities = np.ascontiguousarray(self.similarities.of(numbers)[:, asked].T)
        places = np.searchsorted(numbers, asked)
        own = np.where(np.isin(asked, numbers), places, -1)
        raters = Csr(ends, np.arange(len(numbers)), averaged)
        candidates, bounds = (RaterCandidates(similarities, own, raters), self._bounds(asked, numbers))
        asking = Askers(candidates, asked, numbers, bounds, self.draws.key)
        return self._answers(asking, np.arange(len(asked)), one)

    def _by_rows(self, rows: AnyIntegers, columns: AnyIntegers, raters: Csr, threads: int | None) -> Floats:
        """Predict cells a block of rows at a time, from the similarities of each of these rows to all."""
        order = np.argsort(rows, kind="stable")
        askers, starts = np.unique(np.asarray(rows, dtype=np.int64)[order], return_index=True)
        ends = np.append(starts, len(order))
        wanted, found = np.asarray(columns, dtype=np.int64)[order], np.empty(len(order))

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            block = askers[first:last]
            candidates = RaterCandidates(self.similarities.of(block), block, raters)
            bounds = self._bounds(block, self._every)
            asking = Askers(candidates, block, self._every, bounds, self.draws.key)
            cells = slice(ends[first], ends[last])
            places = row_numbers(ends[first : last + 1])
            found[cells] = self._answers(asking, places, wanted[cells])

        most = max(1, _BLOCK_CELLS // max(self._n_rows, 1))
        share = -(-len(askers) // (4 * thread_count(threads)))
        run(work, ranges(len(askers), max(1, min(most, share))), threads=threads)
        predictions = np.empty(len(order))
        predictions[order] = found
        return predictions

    def _answers(self, asking: Askers, places: Integers, columns: Integers) -> Floats:
        """Return the predictions of some cells: each by the place of its row among the asking, and its column."""
        predictions = np.empty(len(places))
        if self._takes_nearest:
            nearest = Nearest(self.draws.mechanism.k, self.least, self.summed)
            predict_nearest_raters(asking.candidates, places, columns, nearest, predictions)
            return predictions
        counts = np.empty(len(places), dtype=np.int64)
        count_raters(asking.candidates, places, columns, counts)
        needed, which = np.unique(np.maximum(counts, self._shortest), return_inverse=True)
        lengths = np.array([self.draws.mechanism.reach(n) for n in needed.tolist()])[which]
        for length in np.unique(lengths).tolist():
            cells = np.flatnonzero(lengths == length)
            for first, last in ranges(len(cells), max(1, _LIST_CELLS // length)):
                part = cells[first:last]
                predictions[part] = self._drawn(asking, places[part], columns[part], length)
        return predictions

    def _drawn(self, asking: Askers, places: Integers, columns: Integers, length: int) -> Floats:
        """Return the predictions of cells whose lists all have this length: the mechanism's draw, then [PRED]."""
        similarities = np.empty((len(places), length))
        entries = np.empty((len(places), length), dtype=np.int64)
        list_raters(asking.candidates, places, columns, similarities, entries)
        raters, nobody = asking.candidates.raters, entries == NOBODY
        if nobody.all():
            return np.full(len(places), np.nan)
        positions = raters.columns[np.where(nobody, 0, entries)]
        indices = np.where(nobody, self._n_rows + np.arange(length), asking.numbers[positions])
        bounds = asking.bounds
        if bounds is not None:
            bounds = bounds[places]
            if bounds.ndim == 2:
                bounds = np.where(nobody, 0.0, np.take_along_axis(bounds, positions, axis=1))
        drawn, weights = draw_with_noise(
            self.draws.mechanism, asking.key, asking.askers[places], indices, similarities, bounds
        )
        chosen = np.take_along_axis(entries, drawn, axis=1)
        real = chosen != NOBODY
        counted = np.where(real, weights, 0.0)
        totals = (counted * raters.values[np.where(real, chosen, 0)]).sum(axis=1)
        sizes = np.abs(counted).sum(axis=1)
        said = (real.sum(axis=1) >= self.least) & (sizes > 0)
        divisors = np.where(said & (not self.summed), sizes, 1.0)
        return np.where(said, totals / divisors, np.nan)

    def _bounds(self, askers: Integers, numbers: Integers) -> Floats | None:
        if self._takes_nearest:
            return None
        found = self.draws.row_bounds(askers)
        return found if found is None or found.ndim == 1 else found[:, numbers]

    @cached_property
    def _shortest(self) -> int:
        """How many places a list must have, so that the mechanism can choose."""
        found = shortest_list(self.draws.mechanism, at_most=_LONGEST)
        if found is None:
            raise SettingError("mechanism needs a list of more than 16 million candidates")
        return found

    @cached_property
    def _takes_nearest(self) -> bool:
        """Whether the k nearest are taken as they are, so that nothing is drawn."""
        mechanism = self.draws.mechanism
        looks_at_k = mechanism.reach(self._shortest + 1) == mechanism.k
        return looks_at_k and mechanism.noise_scale(1.0) is None

    @cached_property
    def similarities(self) -> KeptSimilarities:
        """The similarities of all rows, as far as they were asked for."""
        return KeptSimilarities(RowsAgainstAll(self.draws.profiles, self.draws.similarity))

    @cached_property
    def _every(self) -> Integers:
        return np.arange(self._n_rows)

    @property
    def _n_rows(self) -> int:
        return self.draws.profiles.n_rows
