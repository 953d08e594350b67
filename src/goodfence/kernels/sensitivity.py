"""The loops behind RS [RS]: strongest ratings of an item, and terms of a pair."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints

N_PEAKS = 3
"""How many an item keeps: enough when the asker herself and one deleted row do not count."""


@kernel
def find_peaks(indptr: Ints, indices: Ints, strengths: Floats, values: Floats, rows: Ints) -> None:
    """Fill `values` and `rows`, (items, N_PEAKS): each item's largest strengths, and whose.

    `values` starts as 0 and `rows` as -1; a strength of 0 is no peak.
    """
    for row in range(indptr.size - 1):
        for place in range(indptr[row], indptr[row + 1]):
            item, strength, owner = indices[place], strengths[place], row
            for rank in range(N_PEAKS):
                if strength > values[item, rank]:
                    values[item, rank], strength = strength, values[item, rank]
                    rows[item, rank], owner = owner, rows[item, rank]


@kernel
def strongest(
    indptr: Ints,
    indices: Ints,
    strengths: Floats,
    peak_values: Floats,
    peak_rows: Ints,
    out: Floats,
) -> None:
    """Fill `out` with each row's largest product of a strength and another row's best there."""
    for row in range(indptr.size - 1):
        best = 0.0
        for place in range(indptr[row], indptr[row + 1]):
            item = indices[place]
            other = peak_values[item, 1 if peak_rows[item, 0] == row else 0]
            if strengths[place] > 0.0 and other > 0.0:
                best = max(best, strengths[place] * other)
        out[row] = best


@kernel
def pair_value(
    term: float, dot: float, rest: float, norms: float, derived: bool, clamp: bool
) -> float:
    """Return RS of a pair from term 1, the dot product, the smallest N', N, and the options."""
    value = term
    if derived and dot > 0.0:
        value = max(value, dot / rest - dot / norms if rest > 0.0 else np.inf)
    return min(value, 1.0) if clamp else value


@kernel
def compare(
    own: Floats,
    own_rests: Floats,
    indices: Ints,
    values: Floats,
    rests: Floats,
    clamp: bool,
) -> tuple[float, float, float]:
    """Return term 1, the dot product and the smallest N' of a profile and a row.

    `own` and `own_rests` are over all items; `own_rests` is below 0 where the profile has no
    rating.
    """
    term, dot, smallest = 0.0, 0.0, np.inf
    for place in range(indices.size):
        item = indices[place]
        product = own[item] * values[place]
        rest = own_rests[item] * rests[place]
        if own_rests[item] < 0.0 or product == 0.0:
            continue
        dot += product
        if rest > 0.0:
            term = max(term, product / rest)
            smallest = min(smallest, rest)
        elif clamp:
            term, smallest = np.inf, 0.0
    return term, dot, smallest


@kernel
def compare_with_rows(
    own: Floats,
    own_rests: Floats,
    own_norm: float,
    rows: Ints,
    indptr: Ints,
    indices: Ints,
    values: Floats,
    rests: Floats,
    norms: Floats,
    derived: bool,
    clamp: bool,
    out: Floats,
) -> None:
    """Fill `out` with RS of one profile and each of `rows`."""
    for place in range(rows.size):
        row = rows[place]
        part = slice(indptr[row], indptr[row + 1])
        term, dot, rest = compare(own, own_rests, indices[part], values[part], rests[part], clamp)
        out[place] = pair_value(term, dot, rest, own_norm * norms[row], derived, clamp)


@kernel
def strongest_pair(
    indptr: Ints,
    indices: Ints,
    values: Floats,
    rests: Floats,
    norms: Floats,
    item_indptr: Ints,
    item_rows: Ints,
    item_values: Floats,
    item_rests: Floats,
    clamp: bool,
    out: Floats,
) -> None:
    """Fill `out` with each row's largest RS, second term as derived: a loop over all pairs."""
    n_rows = indptr.size - 1
    terms, dots, smallest = np.zeros(n_rows), np.zeros(n_rows), np.full(n_rows, np.inf)
    for row in range(n_rows):
        for place in range(indptr[row], indptr[row + 1]):
            if values[place] > 0.0:
                item = indices[place]
                part = slice(item_indptr[item], item_indptr[item + 1])
                _add_item(
                    values[place],
                    rests[place],
                    item_rows[part],
                    item_values[part],
                    item_rests[part],
                    clamp,
                    terms,
                    dots,
                    smallest,
                )
        dots[row] = terms[row] = 0.0
        best = 0.0
        for other in range(n_rows):
            if dots[other] > 0.0:
                norm = norms[row] * norms[other]
                value = pair_value(terms[other], dots[other], smallest[other], norm, True, clamp)
                best = max(best, value)
        out[row] = best
        terms[:], dots[:], smallest[:] = 0.0, 0.0, np.inf


@kernel
def _add_item(
    value: float,
    rest: float,
    rows: Ints,
    values: Floats,
    rests: Floats,
    clamp: bool,
    terms: Floats,
    dots: Floats,
    smallest: Floats,
) -> None:
    for place in range(rows.size):
        other, product, left = rows[place], value * values[place], rest * rests[place]
        if product == 0.0:
            continue
        dots[other] += product
        if left > 0.0:
            terms[other] = max(terms[other], product / left)
            smallest[other] = min(smallest[other], left)
        elif clamp:
            terms[other], smallest[other] = np.inf, 0.0
