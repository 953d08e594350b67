"""The loops behind RS [RS]: strongest ratings of an item, and terms of a pair."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Csr
from goodfence.kernels import inner, kernel

N_PEAKS = 3  # how many an item keeps: enough when the asker and one deleted row do not count


class Peaks(NamedTuple):
    """The strongest ratings of each item."""

    values: AnyFloats  # (items, N_PEAKS): the largest strengths, 0 where there are fewer
    rows: AnyIntegers  # (items, N_PEAKS): whose they are, -1 where there are fewer


class RatedRows(NamedTuple):
    """Rows of ratings, and their norms without one of them: N' of a pair [RS] is the product of two such rests."""

    ratings: Csr
    rests: AnyFloats  # for each rating the norm of its row without it
    norms: AnyFloats  # (rows,): the norm of each row


class OwnRatings(NamedTuple):
    """One profile, over all items."""

    ratings: AnyFloats
    rests: AnyFloats  # the norm without this rating, below 0 where there is no rating
    norm: float


@kernel
def find_peaks(strengths: Csr, peaks: Peaks) -> None:
    """Fill in the peaks, which start as 0 and -1; a strength of 0 is no peak."""
    for row in range(strengths.starts.size - 1):
        for place in range(strengths.starts[row], strengths.starts[row + 1]):
            item, strength, owner = strengths.columns[place], strengths.values[place], row
            for rank in range(N_PEAKS):
                if strength > peaks.values[item, rank]:
                    peaks.values[item, rank], strength = strength, peaks.values[item, rank]
                    peaks.rows[item, rank], owner = owner, peaks.rows[item, rank]


@kernel
def strongest_products(strengths: Csr, peaks: Peaks, out: AnyFloats) -> None:
    """Fill `out` with each row's largest product of a strength and another row's best there."""
    for row in range(strengths.starts.size - 1):
        best = 0.0
        for place in range(strengths.starts[row], strengths.starts[row + 1]):
            item, strength = strengths.columns[place], strengths.values[place]
            other = peaks.values[item, 1 if peaks.rows[item, 0] == row else 0]
            if strength > 0.0 and other > 0.0:
                best = max(best, strength * other)
        out[row] = best


@inner
def _pair_value(term: float, dot: float, rest: float, norms: float, derived: bool, clamp: bool) -> float:
    value = term
    if derived and dot > 0.0:
        value = max(value, dot / rest - dot / norms if rest > 0.0 else np.inf)
    return min(value, 1.0) if clamp else value


@kernel
def compare_with_rows(
    own: OwnRatings, rated: RatedRows, rows: AnyIntegers, derived: bool, clamp: bool, out: AnyFloats
) -> None:
    """Fill `out` with RS of one profile and each of `rows`."""
    for number in range(rows.size):
        row = rows[number]
        term, dot, smallest = 0.0, 0.0, np.inf
        for place in range(rated.ratings.starts[row], rated.ratings.starts[row + 1]):
            item = rated.ratings.columns[place]
            product = own.ratings[item] * rated.ratings.values[place]
            rest = own.rests[item] * rated.rests[place]
            if own.rests[item] < 0.0 or product == 0.0:
                continue
            dot += product
            if rest > 0.0:
                term = max(term, product / rest)
                smallest = min(smallest, rest)
            elif clamp:
                term, smallest = np.inf, 0.0
        norms = own.norm * rated.norms[row]
        out[number] = _pair_value(term, dot, smallest, norms, derived, clamp)


@kernel
def strongest_pair(rated: RatedRows, by_item: RatedRows, clamp: bool, out: AnyFloats) -> None:
    """Fill `out` with each row's largest RS over all pairs, second term as derived; `by_item` is `rated` by item."""
    ratings, norms, raters = rated.ratings, rated.norms, by_item.ratings
    n_rows = ratings.starts.size - 1
    # Of this row and each other: term 1, the dot product and the smallest N'.
    terms, dots, smallest = np.zeros(n_rows), np.zeros(n_rows), np.full(n_rows, np.inf)
    for row in range(n_rows):
        for place in range(ratings.starts[row], ratings.starts[row + 1]):
            value, item, own_rest = (ratings.values[place], ratings.columns[place], rated.rests[place])
            if value <= 0.0:
                continue
            for entry in range(raters.starts[item], raters.starts[item + 1]):
                other = raters.columns[entry]
                product = value * raters.values[entry]
                rest = own_rest * by_item.rests[entry]
                if product == 0.0:
                    continue
                dots[other] += product
                if rest > 0.0:
                    terms[other] = max(terms[other], product / rest)
                    smallest[other] = min(smallest[other], rest)
                elif clamp:
                    terms[other], smallest[other] = np.inf, 0.0
        dots[row] = terms[row] = 0.0
        best = 0.0
        for other in range(n_rows):
            if dots[other] > 0.0:
                norm = norms[row] * norms[other]
                value = _pair_value(terms[other], dots[other], smallest[other], norm, True, clamp)
                best = max(best, value)
        out[row] = best
        terms[:], dots[:], smallest[:] = 0.0, 0.0, np.inf
