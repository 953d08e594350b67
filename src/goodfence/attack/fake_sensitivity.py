"""RS [RS] of an asking fake: over the real rows, with or without the target, and over its fellow fakes.

The printed reading is computed for a block of targets at once, from the strongest ratings of each item.
Everything equals RS of that row in the whole data with the fakes appended, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.selection.sensitivity import (
    ItemPeaks,
    Sensitivity,
    item_peaks,
    pair_sensitivities,
    profile_pair_sensitivities,
    profile_sensitivity,
)
from goodfence.similarity.profiles import Profiles

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FakeSensitivity:
    """RS of fakes against one set of real rows."""

    peaks: ItemPeaks
    options: Sensitivity

    @classmethod
    def of(cls, profiles: Profiles, options: Sensitivity) -> FakeSensitivity:
        """Prepare for the rows of `profiles`."""
        return cls(item_peaks(profiles.rows, options), options)

    def of_askers(self, askers: Profiles, helpers: Profiles | None, removed: Integers) -> Floats:
        """Return RS of each asker, (askers,), in the data without row `removed` (-1: with everybody).

        `helpers` has for each asker what its fellow fakes rated; None where it has no fellows.
        """
        if self.options.reading == "printed":
            return self._printed(askers, helpers, removed)
        alike = 0.0 if helpers is None else self.of_helpers(askers, helpers)
        real = np.empty(askers.n_rows)
        for row in range(askers.n_rows):
            without = int(removed[row]) if removed[row] >= 0 else None
            columns, values = _row(askers.rows, row)
            real[row] = profile_sensitivity(
                self.peaks, columns, values, n_copies=1, without=without
            )
        return np.maximum(real, alike)

    def of_pairs(self, askers: Profiles, rows: Integers, alike: Floats | None) -> Floats:
        """Return RS of each asker with each row of its list, (askers, n); a negative row is a fellow fake."""
        result = np.empty(rows.shape)
        for asker in range(askers.n_rows):
            by_row, _ = profile_pair_sensitivities(self.peaks, *_row(askers.rows, asker))
            fellow = 0.0 if alike is None else alike[asker]
            result[asker] = np.where(rows[asker] < 0, fellow, by_row[rows[asker]])
        return result

    def of_helpers(self, askers: Profiles, helpers: Profiles) -> Floats:
        """Return RS of each asker with a fellow fake, (askers,)."""
        both = sparse.csr_array(sparse.vstack([askers.rows, helpers.rows], format="csr"))
        every = np.arange(askers.n_rows)
        fellows = (askers.n_rows + every)[:, np.newaxis]
        pairs: Floats = pair_sensitivities(both, every, fellows, self.options)
        return pairs[:, 0]

    def _printed(self, askers: Profiles, helpers: Profiles | None, removed: Integers) -> Floats:
        """Return the largest product of two strengths `r / |r'|` over the asker's items."""
        columns, own = askers.rows.indices, self._strengths(askers)
        owners = np.repeat(np.arange(askers.n_rows), np.diff(askers.rows.indptr))
        gone = self.peaks.rows[columns] == removed[owners][:, np.newaxis]
        gone &= removed[owners][:, np.newaxis] >= 0
        others = np.where(gone, 0.0, self.peaks.values[columns]).max(axis=1, initial=0.0)
        if helpers is not None:
            # A helper has the asker's items, and perhaps one more, which they do not share.
            shared = _shared(askers.rows, helpers.rows)
            others = np.maximum(others, self._strengths(helpers)[shared])
        both = (own > 0) & (others > 0)
        products = np.where(both, own, 0.0) * np.where(both, others, 0.0)
        largest = np.zeros(askers.n_rows)
        np.maximum.at(largest, owners, products)
        return np.minimum(largest, 1.0) if self.options.clamp else largest

    def _strengths(self, profiles: Profiles) -> Floats:
        csr = profiles.rows
        owners = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
        squares = csr.data * csr.data
        totals = np.bincount(owners, weights=squares, minlength=csr.shape[0])
        rests = np.sqrt(totals[owners] - squares)
        alone = np.inf if self.options.clamp else 0.0
        only = np.where(csr.data > 0, alone, 0.0)
        return np.where(rests > 0, csr.data / np.where(rests > 0, rests, 1.0), only)


def _shared(askers: sparse.csr_array, helpers: sparse.csr_array) -> npt.NDArray[np.bool_]:
    """Return which entries of `helpers` are at a column that its asker has too."""
    n_columns = np.int64(askers.shape[1])
    cells = [
        np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr)) * n_columns + csr.indices
        for csr in (askers, helpers)
    ]
    return np.isin(cells[1], cells[0], assume_unique=True)


def _row(csr: sparse.csr_array, row: int) -> tuple[npt.NDArray[np.int32], Floats]:
    part = slice(csr.indptr[row], csr.indptr[row + 1])
    return csr.indices[part], csr.data[part]
