"""Predictions [PRED] from the ratings of the chosen neighbours, weighted by similarity.

For one row all sums are formed in the order of its neighbours, so `predict`, `recommend` and `answer` agree to the last
bit. `fixed` is the denominator over all neighbours; it is negative where only those who rated the item count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Csr
from goodfence.kernels import inner, kernel
from goodfence.kernels.order import descending_order, kth_largest

LOOK_UP_COST = 30  # what looking one column up in one row costs, in steps of walking through a row
MIN_SIMILARITY = 1e-6  # who is less similar than this is no candidate among the raters of an item
GUESSES = 20
"""How often the similarity of the k-th nearest is guessed before it is selected. Only time depends on it."""
NOBODY = -1  # the entry of a place in a list that no rater takes


class CellGroups(NamedTuple):
    """The cells to predict, grouped by row."""

    groups: AnyIntegers  # (rows + 1,): where each row's cells begin in `columns`
    rows: AnyIntegers
    columns: AnyIntegers


class RaterCandidates(NamedTuple):
    """How similar some rows are to some candidates, and who of these rated each column."""

    similarities: AnyFloats  # (rows, candidates)
    own: AnyIntegers  # (rows,): where a row itself is among the candidates, or -1
    raters: Csr  # for each column the candidates that rated it, ascending, with what is averaged


@inner
def _add_neighbours(
    neighbours: AnyIntegers, weights: AnyFloats, rated: Csr, places: AnyIntegers, sums: AnyFloats, sizes: AnyFloats
) -> None:
    for position in range(neighbours.size):
        weight = weights[position]
        size = abs(weight)
        neighbour = neighbours[position]
        for entry in range(rated.starts[neighbour], rated.starts[neighbour + 1]):
            place = places[rated.columns[entry]]
            if place >= 0:
                sums[place] += weight * rated.values[entry]
                sizes[place] += size


@inner
def divided(total: float, size: float, fixed: float) -> float:
    """Return the prediction from its two sums, NaN where the denominator is 0."""
    denominator = fixed if fixed >= 0.0 else size
    return total / denominator if denominator > 0.0 else float(np.nan)


@inner
def sum_sizes(weights: AnyFloats) -> float:
    """Return the sum of the absolute weights, in their order."""
    total = 0.0
    for weight in weights:
        total += abs(weight)
    return total


@inner
def search(rated: Csr, row: int, column: int) -> int:
    """Return the entry of `column` in `row`, or -1."""
    low, high = rated.starts[row], rated.starts[row + 1]
    while low < high:
        middle = (low + high) // 2
        if rated.columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    if low < rated.starts[row + 1] and rated.columns[low] == column:
        return int(low)
    return -1


@inner
def _predict_one(column: int, neighbours: AnyIntegers, weights: AnyFloats, rated: Csr) -> tuple[float, float]:
    total, size = 0.0, 0.0
    for position in range(neighbours.size):
        entry = search(rated, neighbours[position], column)
        if entry >= 0:
            total += weights[position] * rated.values[entry]
            size += abs(weights[position])
    return total, size


@kernel
def predict_cells(
    cells: CellGroups,
    neighbours: AnyIntegers,
    weights: AnyFloats,
    rated: Csr,
    over_raters: bool,
    n_columns: int,
    predictions: AnyFloats,
) -> None:
    """Predict each of the cells.

    A row with few cells looks them up in each neighbour's row; one with many walks through all that the neighbours
    rated.
    """
    places, columns = np.full(n_columns, -1, dtype=np.int32), cells.columns
    sums, sizes = np.zeros(n_columns), np.zeros(n_columns)
    for group in range(cells.groups.size - 1):
        first, last, row = cells.groups[group], cells.groups[group + 1], cells.rows[group]
        near, weight = neighbours[row], weights[row]
        fixed = -1.0 if over_raters else sum_sizes(weight)
        n_rated = 0
        for neighbour in near:
            n_rated += rated.starts[neighbour + 1] - rated.starts[neighbour]
        if (last - first) * near.size * LOOK_UP_COST < n_rated:
            for cell in range(first, last):
                total, size = _predict_one(columns[cell], near, weight, rated)
                predictions[cell] = divided(total, size, fixed)
            continue
        n_places = 0
        for cell in range(first, last):
            if places[columns[cell]] < 0:
                places[columns[cell]], sums[n_places], sizes[n_places] = n_places, 0.0, 0.0
                n_places += 1
        _add_neighbours(near, weight, rated, places, sums, sizes)
        for cell in range(first, last):
            place = places[columns[cell]]
            predictions[cell] = divided(sums[place], sizes[place], fixed)
        for cell in range(first, last):
            places[columns[cell]] = -1


@kernel
def predict_for_profile(
    profile: AnyFloats,
    rows: AnyIntegers,
    neighbours: AnyIntegers,
    weights: AnyFloats,
    over_raters: bool,
    predictions: AnyFloats,
) -> None:
    """Predict each of `rows` (items) from one column: `profile[j]` is the rating of row j, NaN where it has none."""
    for position in range(rows.size):
        row = rows[position]
        total, size, fixed = 0.0, 0.0, 0.0
        for rank in range(neighbours.shape[1]):
            weight = weights[row, rank]
            rating = profile[neighbours[row, rank]]
            fixed += abs(weight)
            if not np.isnan(rating):
                total += weight * rating
                size += abs(weight)
        predictions[position] = divided(total, size, -1.0 if over_raters else fixed)


@inner
def _gather(candidates: RaterCandidates, row: int, column: int, similarities: AnyFloats, source: Any, out: Any) -> int:
    """Write the raters of one column who are similar at all, with `source` at their entries; return how many.

    The arrays have room for one more. Each rater is written, and overwritten unless similar enough: no branch.
    """
    raters, similar, own = candidates.raters, candidates.similarities[row], candidates.own[row]
    count = np.uint64(0)
    for entry in range(np.uint64(raters.starts[column]), np.uint64(raters.starts[column + 1])):
        candidate = raters.columns[entry]
        similarity = similar[np.uint32(candidate)]
        similarities[count], out[count] = similarity, source[entry]
        count += np.uint64((similarity >= MIN_SIMILARITY) & (candidate != own))
    return int(count)


@inner
def _most_raters(candidates: RaterCandidates, columns: AnyIntegers) -> int:
    most = 0
    for column in columns:
        n_raters = candidates.raters.starts[column + 1] - candidates.raters.starts[column]
        most = max(most, n_raters)
    return most


@inner
def _count_from(similarities: AnyFloats, limit: float) -> int:
    count = np.int64(0)
    for place in range(similarities.size):  # in this form it is compiled to count eight at a time
        count += np.int64(similarities[place] >= limit)
    return int(count)


@kernel
def limit_of_nearest(similarities: AnyFloats, k: int) -> float:
    """Return a limit that exactly k of more than k similarities reach, or -1 where ties hide it.

    To count takes nanoseconds, so the limit is guessed: as if numbers fell exponentially, and at times by halves.
    """
    low, n_low, high, n_high = MIN_SIMILARITY, similarities.size, 1.0, 0
    for guess in range(GUESSES):
        share = 0.5
        if guess % 4 != 3:
            share = np.log((n_low + 0.5) / (k + 0.5)) / np.log((n_low + 0.5) / (n_high + 0.5))
        limit = low + share * (high - low)
        count = _count_from(similarities, limit)
        if count == k:
            return limit
        if count > k:
            low, n_low = limit, count
        else:
            high, n_high = limit, count
    return -1.0


class Nearest(NamedTuple):
    """How a cell is predicted from the nearest raters of its column."""

    k: int
    least: int  # with fewer raters there is no prediction
    summed: bool  # whether what they have is added up by their similarities, and not averaged


@kernel
def sum_nearest(similarities: AnyFloats, values: AnyFloats, k: int, scratch: AnyFloats) -> tuple[float, float]:
    """Return the sum over the k most similar (of equals the first), weighted by similarity, and of the weights."""
    limit = limit_of_nearest(similarities, k) if similarities.size > k else MIN_SIMILARITY
    total, size = 0.0, 0.0
    if limit > 0.0:
        near, rated = scratch
        count = np.uint64(0)
        for place in range(np.uint64(similarities.size)):  # without a branch, as in `_gather`
            similarity = similarities[place]
            near[count] = similarity
            rated[count] = values[place]
            count += np.uint64(similarity >= limit)
        for place in range(count):
            total += near[place] * rated[place]
            size += near[place]
        return total, size
    scratch[0, : similarities.size] = similarities
    last = kth_largest(scratch[0, : similarities.size], k)
    n_ties = k - _count_from(similarities, np.nextafter(last, np.inf))
    for place in range(similarities.size):
        similarity = similarities[place]
        if similarity > last or (similarity == last and n_ties > 0):
            n_ties -= similarity == last
            total += similarity * values[place]
            size += similarity
    return total, size


@kernel
def predict_nearest_raters(
    candidates: RaterCandidates, rows: AnyIntegers, columns: AnyIntegers, nearest: Nearest, predictions: AnyFloats
) -> None:
    """Predict each cell from the nearest of those who rated its column; NaN where they are too few."""
    longest, averaged = _most_raters(candidates, columns) + 1, candidates.raters.values
    similarities, values, scratch = np.empty(longest), np.empty(longest), np.empty((2, longest))
    for cell in range(rows.size):
        n = _gather(candidates, rows[cell], columns[cell], similarities, averaged, values)
        predictions[cell] = np.nan
        if n >= nearest.least:
            total, size = sum_nearest(similarities[:n], values[:n], nearest.k, scratch)
            predictions[cell] = total if nearest.summed else total / size


@kernel
def count_raters(candidates: RaterCandidates, rows: AnyIntegers, columns: AnyIntegers, counts: AnyIntegers) -> None:
    """Write how many candidates there are among the raters of each cell's column."""
    longest = _most_raters(candidates, columns) + 1
    similarities, values, averaged = np.empty(longest), np.empty(longest), candidates.raters.values
    for cell in range(rows.size):
        row, column = rows[cell], columns[cell]
        counts[cell] = _gather(candidates, row, column, similarities, averaged, values)


@kernel
def list_raters(
    candidates: RaterCandidates, rows: AnyIntegers, columns: AnyIntegers, similarities: AnyFloats, entries: AnyIntegers
) -> None:
    """Write for each cell the raters of its column, (cells, length), nearest first, then `NOBODY` of similarity 0."""
    longest = _most_raters(candidates, columns) + 1
    found, places = np.empty(longest), np.empty(longest, dtype=np.int64)
    numbers = np.arange(candidates.raters.values.size)
    for cell in range(rows.size):
        n = _gather(candidates, rows[cell], columns[cell], found, numbers, places)
        order = descending_order(found[:n])
        length = min(n, similarities.shape[1])
        for rank in range(length):
            similarities[cell, rank] = found[order[rank]]
            entries[cell, rank] = places[order[rank]]
        similarities[cell, length:] = 0.0
        entries[cell, length:] = NOBODY
