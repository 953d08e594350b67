"""Recommendation-aware sensitivity RS [RS]: how much one rating can move a cosine.

For a pair (i, j) and a co-rated item s, N = |r_i||r_j| and N' is the same without item s. Ratings are the rows of a
sparse matrix, norms go over all items of a row, and ratings must not be negative. Term 1, `r[i,s] r[j,s] / N'`, is the
product of the two *strengths* `r[i,s] / |r_i'|`, so for one target only the strongest other rating of each item counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Floats, Integers, as_csr, row_numbers
from goodfence.errors import DataError, SettingError
from goodfence.kernels.sensitivity import (
    N_PEAKS,
    OwnRatings,
    Peaks,
    RatedRows,
    compare_with_rows,
    find_peaks,
    strongest_pair,
    strongest_products,
)
from goodfence.settings import checked


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Which interpretation of RS is meant [RS].

    Parameters
    ----------
    reading : {"printed", "derived"}, default "printed"
        The second term: as printed (it never binds), or as derived, `sim (N/N' - 1)`.
    scope : {"target", "pair"}, default "target"
        One value for a target, the largest over all candidates; or one value for each candidate, as the paper's figures
        are drawn here ("for any user pair"): then a more similar candidate may weigh less, and Zhu's draw is undefined.
    clamp : bool, default True
        Take min(RS, 1), also where N' = 0; False leaves out pairs with N' = 0.

    Examples
    --------
    >>> Sensitivity(reading="derived")
    Sensitivity(reading='derived', scope='target', clamp=True)
    """

    reading: Literal["printed", "derived"] = "printed"
    scope: Literal["target", "pair"] = "target"
    clamp: bool = True

    @classmethod
    def of(cls, options: Any, name: str = "sensitivity") -> Sensitivity:
        """Return `options` itself, or the value of options read from a file."""
        if isinstance(options, Sensitivity):
            return options
        known = {"reading", "scope", "clamp"}
        if not isinstance(options, Mapping) or not known.issuperset(options):
            raise SettingError(f"{name} must be a Sensitivity, with {sorted(known)}")
        return cls(**options)


@dataclass(frozen=True, eq=False, repr=False)
class ItemPeaks:
    """The strongest ratings of each item, computed once and asked for many targets."""

    csr: sparse.csr_array
    options: Sensitivity
    rated: RatedRows
    strongest: Peaks


def item_peaks(csr: sparse.csr_array, options: Sensitivity | None = None) -> ItemPeaks:
    """Return the strongest ratings of each item of `csr` (rows x items)."""
    if csr.nnz and csr.data.min() < 0:
        raise DataError("ratings must not be negative: RS bounds a cosine of non-negative vectors")
    stated, rated = options or Sensitivity(), _rated(csr)
    n_items = csr.shape[1]
    peaks = Peaks(np.zeros((n_items, N_PEAKS)), np.full((n_items, N_PEAKS), -1, dtype=np.int64))
    find_peaks(_row_strengths(rated, stated), peaks)
    return ItemPeaks(csr, stated, rated, peaks)


def sensitivities(csr: sparse.csr_array, options: Sensitivity | None = None) -> Floats:
    """Return RS of each row as a target: the largest over all others; 0 if nothing is co-rated."""
    found = item_peaks(csr, options)
    stated, rated = found.options, found.rated
    out = np.zeros(csr.shape[0])
    if stated.reading == "printed":
        strongest_products(_row_strengths(rated, stated), found.strongest, out)
        return np.minimum(out, 1.0) if stated.clamp else out
    order = sparse.csr_array((np.arange(csr.nnz), csr.indices, csr.indptr), csr.shape).tocsc().data
    turned = csr.tocsc()
    by_item = as_csr(turned)
    strongest_pair(rated, RatedRows(by_item, rated.rests[order], rated.norms), stated.clamp, out)
    return out


def pair_sensitivities(
    csr: sparse.csr_array, targets: AnyIntegers, candidates: AnyIntegers, options: Sensitivity | None = None
) -> Floats:
    """Return RS of each target row, (rows,), and each of its candidate rows, (rows, n)."""
    peaks = item_peaks(csr, options)
    out = np.zeros(candidates.shape)
    for place, target in enumerate(targets):
        part = slice(csr.indptr[target], csr.indptr[target + 1])
        others = np.ascontiguousarray(candidates[place], dtype=np.int64)
        out[place] = _compared(peaks, csr.indices[part], csr.data[part], others)
    return out


def row_sensitivity(peaks: ItemPeaks, row: int, *, without: int | None = None) -> float:
    """Return RS of one row as a target, in the data without row `without`."""
    part = slice(peaks.csr.indptr[row], peaks.csr.indptr[row + 1])
    columns, values = peaks.csr.indices[part], peaks.csr.data[part]
    return _largest(peaks, columns, values, (row, without), alike=False)


def profile_sensitivity(
    peaks: ItemPeaks, columns: AnyIntegers, values: Floats, *, n_copies: int = 1, without: int | None = None
) -> float:
    """Return RS of a profile of which `n_copies` are appended to the data (without row `without`); the first asks."""
    return _largest(peaks, columns, values, (without,), alike=n_copies > 1)


def profile_pair_sensitivities(peaks: ItemPeaks, columns: AnyIntegers, values: Floats) -> tuple[Floats, float]:
    """Return RS of a profile that is not in the data with each row, and with an equal profile."""
    rows = np.arange(peaks.csr.shape[0], dtype=np.int64)
    return _compared(peaks, columns, values, rows), _with_copy(peaks, columns, values)


def _largest(
    peaks: ItemPeaks, columns: AnyIntegers, values: Floats, excluded: tuple[int | None, ...], *, alike: bool
) -> float:
    copy = _with_copy(peaks, columns, values) if alike else 0.0
    gone = [row for row in excluded if row is not None]
    if peaks.options.reading == "derived":
        others = np.setdiff1d(np.arange(peaks.csr.shape[0], dtype=np.int64), gone)
        return float(_compared(peaks, columns, values, others).max(initial=copy))
    strengths = _strengths(values, _profile_rests(values), peaks.options)
    others = ~np.isin(peaks.strongest.rows[columns], gone)
    best = np.where(others, peaks.strongest.values[columns], 0.0).max(axis=1, initial=0.0)
    counted = (strengths > 0) & (best > 0)
    largest = (strengths[counted] * best[counted]).max(initial=copy)
    return float(min(largest, 1.0)) if peaks.options.clamp else float(largest)


def _compared(peaks: ItemPeaks, columns: AnyIntegers, values: Floats, rows: Integers) -> Floats:
    """Return RS of a profile and each of `rows`."""
    n_items, options = peaks.csr.shape[1], peaks.options
    ratings, rests = np.zeros(n_items), np.full(n_items, -1.0)
    ratings[columns], rests[columns] = values, _profile_rests(values)
    own = OwnRatings(ratings, rests, float(np.sqrt(_squared_norm(values))))
    out = np.zeros(rows.size)
    compare_with_rows(own, peaks.rated, rows, options.reading == "derived", options.clamp, out)
    return out


def _with_copy(peaks: ItemPeaks, columns: AnyIntegers, values: Floats) -> float:
    """Return RS of a profile and an equal one."""
    indptr = np.array([0, len(columns)], dtype=np.int64)
    shape = (1, peaks.csr.shape[1])
    alone = sparse.csr_array((np.asarray(values, np.float64), np.asarray(columns), indptr), shape)
    copy = replace(peaks, csr=alone, rated=_rated(alone))
    return float(_compared(copy, columns, values, np.zeros(1, dtype=np.int64))[0])


def _rated(csr: sparse.csr_array) -> RatedRows:
    """Return the rows with their norms, and with their norms without each rating."""
    owners = row_numbers(csr.indptr)
    squares = csr.data * csr.data
    totals = np.bincount(owners, weights=squares, minlength=csr.shape[0])
    ratings = as_csr(csr)
    return RatedRows(ratings, np.sqrt(totals[owners] - squares), np.sqrt(totals))


def _squared_norm(values: Floats) -> float:
    """Return the sum of squares, added up in the order in which `_rated` adds them."""
    squares = np.asarray(values, dtype=np.float64) ** 2
    return float(np.bincount(np.zeros(squares.size, np.int64), weights=squares, minlength=1)[0])


def _profile_rests(values: Floats) -> Floats:
    return np.sqrt(_squared_norm(values) - values**2)


def _row_strengths(rated: RatedRows, options: Sensitivity) -> Csr:
    """Return the strength of each rating, by row."""
    starts, columns, values = rated.ratings
    return Csr(starts, columns, _strengths(values, rated.rests, options))


def _strengths(values: AnyFloats, rests: AnyFloats, options: Sensitivity) -> Floats:
    """Return `r / |r'|`; infinite where a row has nothing else, or 0 where such are left out."""
    alone = np.inf if options.clamp else 0.0
    only = np.where(values > 0, alone, 0.0)
    return np.where(rests > 0, values / np.where(rests > 0, rests, 1.0), only)
