"""Candidate lists of fake profiles, their draws, and the answers they get.

Rows have the numbers of the real data, and a fake is `FAKE`. Only the draw sees the numbers of the attacked data: real
rows after a removed one move up by one, and the fakes follow all real rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Floats, Integers, Rows, Words
from goodfence.kernels import kernel
from goodfence.kernels.draw import PoolArrays, draw, fill_laplace
from goodfence.kernels.predict import divided, search, sum_sizes

FAKE = -1  # the number of every fake in a list of real rows


class AttackedData(NamedTuple):
    """The data that each target's fakes are in."""

    keys: Words  # (targets,): the key of the random stream
    removed: AnyIntegers  # (targets,): the row that is not there, -1 for none
    n_rows: int  # how many real rows there are with the target's


@kernel
def insert_fakes(
    rows: AnyIntegers,
    similarities: AnyFloats,
    fake_similarities: AnyFloats,
    n_fakes: int,
    removed: AnyIntegers,
    all_rows: AnyIntegers,
    all_similarities: AnyFloats,
) -> None:
    """Write candidate lists of real rows, without the `removed` one (-1: none), and fakes, last among equals."""
    for target in range(rows.shape[0]):
        source, fakes = 0, 0
        similarity = fake_similarities[target]
        for place in range(all_rows.shape[1]):
            if source < rows.shape[1] and rows[target, source] == removed[target]:
                source += 1
            real = source < rows.shape[1]
            if real and (fakes == n_fakes or similarities[target, source] >= similarity):
                all_rows[target, place] = rows[target, source]
                all_similarities[target, place] = similarities[target, source]
                source += 1
            else:
                all_rows[target, place] = FAKE
                all_similarities[target, place] = similarity
                fakes += 1


@kernel
def number_rows(rows: AnyIntegers, removed: int, n_real: int, asker: int, numbers: AnyIntegers) -> None:
    """Write the numbers in the attacked data: `n_real` rows, then the fakes; fake `asker` is not in the list."""
    fake = 0
    for place in range(rows.size):
        row = rows[place]
        if row == FAKE:
            numbers[place] = n_real + fake + (1 if fake >= asker else 0)
            fake += 1
        else:
            numbers[place] = row - (1 if 0 <= removed < row else 0)


@kernel
def draw_for_fakes(
    log_weights: AnyFloats,
    rows: AnyIntegers,
    pools: PoolArrays,
    data: AttackedData,
    positions: AnyIntegers,
    numbers: AnyIntegers,
) -> None:
    """Draw the neighbours of each asking fake: `positions` in the list and `numbers`, both (targets, askers, k)."""
    listed = np.empty(rows.shape[1], np.int32)
    for target in range(positions.shape[0]):
        removed, key = data.removed[target], data.keys[target]
        n_real = data.n_rows - (1 if removed >= 0 else 0)
        own = PoolArrays(pools.starts[target], pools.stops[target], pools.takes[target])
        for asker in range(positions.shape[1]):
            number_rows(rows[target], removed, n_real, asker, listed)
            chosen = positions[target, asker]
            draw(log_weights[target], listed, own, key, np.uint64(n_real + asker), chosen)
            for place in range(chosen.size):
                numbers[target, asker, place] = listed[chosen[place]]


@kernel
def noise_for_fakes(data: AttackedData, numbers: AnyIntegers, scales: AnyFloats, noise: AnyFloats) -> None:
    """Fill `noise` with Laplace noise for each (asking fake, neighbour): shapes (targets, askers, k)."""
    askers = np.empty(numbers.shape[1], np.int32)
    for target in range(numbers.shape[0]):
        n_real = data.n_rows - (1 if data.removed[target] >= 0 else 0)
        for asker in range(askers.size):
            askers[asker] = n_real + asker
        fill_laplace(data.keys[target], askers, numbers[target], scales[target], noise[target])


@kernel
def predict_beside_helpers(
    cells: AnyIntegers,
    rating: float,
    neighbours: AnyIntegers,
    weights: AnyFloats,
    rated: Csr,
    over_raters: bool,
    predictions: AnyFloats,
) -> None:
    """Predict column `cells[q]` for question q, where every fake neighbour gave that column `rating`."""
    for question in range(cells.size):
        near, weight = neighbours[question], weights[question]
        total, size = 0.0, 0.0
        for place in range(near.size):
            fake = near[place] == FAKE
            entry = 0 if fake else search(rated, near[place], cells[question])
            if entry >= 0:
                total += weight[place] * (rating if fake else rated.values[entry])
                size += abs(weight[place])
        fixed = -1.0 if over_raters else sum_sizes(weight)
        predictions[question] = divided(total, size, fixed)


class RatedSoFar(NamedTuple):
    """The ratings up to a moment, and the counts that follow; the kernels write to all of it."""

    starts: Integers  # (users,): where the items of each user begin in `items`
    lengths: Integers  # (users,): how many each has rated so far
    items: Rows  # (ratings,): what each user rated, in the order of time
    n_raters: Integers  # (items,): how many rated each item
    co_counts: Rows  # (watched, items): how many rated both


@kernel
def count_ratings(users: AnyIntegers, items: AnyIntegers, watch: Integers, so_far: RatedSoFar) -> None:
    """Add ratings, in the order of time; `watch` is each item's row among the watched, or -1."""
    for event in range(users.size):
        user, item = users[event], items[event]
        first = so_far.starts[user]
        own = watch[item]
        for place in range(first, first + so_far.lengths[user]):
            other = so_far.items[place]
            if own >= 0:
                so_far.co_counts[own, other] += 1
            if watch[other] >= 0:
                so_far.co_counts[watch[other], item] += 1
        so_far.items[first + so_far.lengths[user]] = item
        so_far.lengths[user] += 1
        so_far.n_raters[item] += 1


@kernel
def nearest_items(watched: Integers, so_far: RatedSoFar, keys: Floats, lists: Rows) -> None:
    """Write the most similar items of each watched row, best first, then -1; `keys` is a scratch as long as a list."""
    n = lists.shape[1]
    for number in range(watched.size):
        filled = 0
        for item in range(so_far.n_raters.size):
            common = np.float64(so_far.co_counts[watched[number], item])
            if common == 0.0:
                continue
            key = common * common / so_far.n_raters[item]
            if filled == n and key <= keys[n - 1]:
                continue
            place = min(filled, n - 1)
            while place > 0 and keys[place - 1] < key:
                keys[place], lists[number, place] = keys[place - 1], lists[number, place - 1]
                place -= 1
            keys[place], lists[number, place] = key, item
            filled = min(filled + 1, n)
        lists[number, filled:] = -1


@kernel
def count_risen(before: Rows, after: Rows, ranks: Integers, scores: Integers) -> None:
    """Add to `scores` on how many lists each item entered or moved up; lists end with -1, `ranks` is a scratch."""
    n = before.shape[1]
    for number in range(before.shape[0]):
        ranks[:] = n
        for rank in range(n):
            if before[number, rank] >= 0:
                ranks[before[number, rank]] = rank
        for rank in range(after.shape[1]):
            item = after[number, rank]
            if item >= 0 and rank < ranks[item]:
                scores[item] += 1
