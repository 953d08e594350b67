"""Pairs of ratings that arrive in different updates: each pair enters once, in the batch of the later rating.

A rating's residual is taken when it arrives, with a user bias from all that the user gave by then, and never changes.
The pair of k and l enters as w(v) x_k x_l, v being the sum of the squares of the user's residuals by then, and w(v)
1/r for v up to r², r/v beyond. Proofs of the sensitivities: `docs/mechanisms/updates.md`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Flags, Floats, Integers, row_numbers
from goodfence.errors import SettingError
from goodfence.models.private.co_occurrence import CO_OCCURRENCE_NAME, EventProfiles
from goodfence.models.private.releases import COVARIANCE_GRID, COVARIANCE_NAME, OVERLAP_NAME, Noisy, sum_pairs
from goodfence.privacy.fixed_point import UP, Arrival, Clamps, UserProfiles, integer_sensitivity
from goodfence.privacy.noise import Publisher
from goodfence.privacy.updates import Updater

PAIRS = Clamps(near=0.3, prior=200, wide=0.5, history=True)
"""The residuals of pairs: what one rating moves through the user bias would be most of the noise."""
FLAT = {"rating": 18, "event": 30}
"""Up to this sum of squares, r², all pairs weigh alike."""
RESIDUAL = 0.42
"""The size of a clamped residual."""
_TYPICAL = 100
"""How many ratings have such a sum of squares: each of .18 on average."""
_PAIR, _BIAS = math.sqrt(2), 2 + 2 * math.sqrt(1.5)
"""How far a rating moves its own pairs, and by how much other pairs follow the residuals that its user bias moves."""


def pairs_move(wide: float, move: float, flat: float) -> float:
    """Bound how far one rating moves all pairs of its user in a whole life, for residuals up to `wide`."""
    return math.hypot(_PAIR * wide, wide**2 / math.sqrt(flat) + _BIAS * move) * UP


def pairs_size(n_items: int, n_listed: int, target: int) -> float:
    """Return the factor on the weighted products of residuals for which one rating moves them by `target`."""
    spent = max(0.0, target - _rounding(n_listed))
    _, wide = PAIRS.on(COVARIANCE_GRID)
    move = PAIRS.others_move(COVARIANCE_GRID, n_items)
    return spent / pairs_move(wide, move, FLAT["rating"] * COVARIANCE_GRID**2)


def events_size(n_listed: int, target: int) -> float:
    """Return the same factor for pairs of events: every residual is 1, and no user bias moves it."""
    return max(0.0, target - _rounding(n_listed)) / pairs_move(1.0, 0.0, FLAT["event"])


def _rounding(n_listed: int) -> float:
    """Bound what rounding adds: each pair enters once, rounded in both data sets."""
    return (1 + 2.0**-18) * math.sqrt(n_listed * (n_listed - 1) / 2)


def arriving_pairs(rows: sparse.csr_array, new: Flags, flat: int, size: float, idle: Flags) -> Integers:
    """Return the sums over users of the pairs that a batch completes, above the diagonal, each rounded by itself.

    `rows` holds the residuals of users by now, `new` says which came in this batch, `idle` which form no new pairs.
    """
    squares = np.diff(np.concatenate(([0], np.cumsum(rows.data.astype(np.int64) ** 2)))[rows.indptr])
    root = math.sqrt(flat)
    weights = np.where(squares <= flat, size / root, size * root / np.maximum(squares, 1))
    # Pairs of which both are old are the same integers in both sums.
    every, old = (sum_pairs(_only(rows, kept), weights, toward_zero=False) for kept in (~idle, ~idle & ~new))
    return every - old


def _only(rows: sparse.csr_array, kept: Flags) -> sparse.csr_array:
    starts = np.concatenate(([0], np.cumsum(kept)))[rows.indptr]
    return sparse.csr_array((rows.data[kept], rows.indices[kept], starts), shape=rows.shape)


def arrival_of(profiles: UserProfiles | EventProfiles) -> Arrival:
    """Return what is known of each rating's arrival."""
    if profiles.arrival is None:
        raise SettingError("pairs over the history need the users' earlier ratings")
    return profiles.arrival


def on_listed(
    profiles: UserProfiles | EventProfiles, values: AnyIntegers, listed: AnyIntegers
) -> tuple[sparse.csr_array, Flags, Flags]:
    """Return users x listed items with these values, and which cells are new and idle."""
    places = np.full(profiles.n_items, -1, dtype=np.int64)
    places[listed] = np.arange(len(listed))
    columns = places[profiles.indices]
    inside = (columns >= 0) & (values != 0)
    starts = np.concatenate(([0], np.cumsum(inside)))[profiles.indptr]
    cells = np.flatnonzero(inside)
    order = np.lexsort((columns[cells], row_numbers(starts)))
    cells = cells[order]
    rows = sparse.csr_array((values[cells], columns[cells], starts), shape=(len(starts) - 1, len(listed)))
    rows.has_sorted_indices = True
    arrival = arrival_of(profiles)
    return rows, arrival.new[cells], arrival.idle[cells]


def frozen_residuals(profiles: UserProfiles, item_bias: Floats, listed: AnyIntegers) -> Integers:
    """Return the residual of every cell, on the grid: as it was when it arrived, 0 of items that were not listed."""
    found = profiles.residuals(PAIRS, item_bias, COVARIANCE_GRID)
    known = np.zeros(profiles.n_items, dtype=np.bool_)
    known[listed] = True
    arrival = arrival_of(profiles)
    return np.where(arrival.new, np.where(known[profiles.indices], found, 0), arrival.frozen)


def history_pair_totals(profiles: UserProfiles, item_bias: Floats, listed: AnyIntegers, size: float) -> Integers:
    """Return the integers of the pairs of ratings that this batch completes, above the diagonal."""
    values = frozen_residuals(profiles, item_bias, listed)
    rows, new, idle = on_listed(profiles, values, listed)
    return arriving_pairs(rows, new, FLAT["rating"] * COVARIANCE_GRID**2, size, idle)


def history_event_totals(profiles: EventProfiles, listed: AnyIntegers, size: float) -> Integers:
    """Return the integers of the pairs of events that this batch completes, above the diagonal."""
    rows, new, idle = on_listed(profiles, frozen_events(profiles, listed), listed)
    return arriving_pairs(rows, new, FLAT["event"], size, idle)


def frozen_events(profiles: EventProfiles, listed: AnyIntegers) -> Integers:
    """Return 1 for every event whose item was listed when it arrived, else 0."""
    arrival = arrival_of(profiles)
    return np.where(arrival.new, np.isin(profiles.indices, listed), arrival.frozen).astype(np.int64)


def history_overlap(profiles: UserProfiles, target: int) -> Integers:
    """Return by how much the weights of all pairs grow, as one integer: n² of a user with n ratings, then in a line.

    The slope never falls and is at most 2·_TYPICAL, so one rating moves all batches together by at most `target`.
    """
    now = profiles.counts
    before = now - np.diff(np.concatenate(([0], np.cumsum(arrival_of(profiles).new)))[profiles.indptr])
    grown = _bent(now) - _bent(before)
    return np.array([int(grown.sum()) * (target // (2 * _TYPICAL))], dtype=np.int64)


def _bent(counts: Integers) -> Integers:
    return np.where(counts <= _TYPICAL, counts**2, _TYPICAL**2 + 2 * _TYPICAL * (counts - _TYPICAL))


def release_history_overlap(profiles: UserProfiles, mu: float, publisher: Publisher) -> float:
    """Return, with noise, the weights of all pairs, as the overlap of ratings that would weigh them so."""
    target = integer_sensitivity(mu)
    noisy = publisher.publish(OVERLAP_NAME, profiles.total(history_overlap, target), target)
    each = target // (2 * _TYPICAL)
    # A pair weighs 1/r where n is small, and 1/(RESIDUAL sqrt(n)) in one release.
    return float(noisy[0] / max(each, 1)) * RESIDUAL / math.sqrt(FLAT["rating"])


def release_history_pairs(
    profiles: UserProfiles, item_bias: Floats, listed: AnyIntegers, mu: float, updater: Updater
) -> Noisy:
    """Release the covariance of the listed items' residuals by the pairs that a batch completes."""
    target = integer_sensitivity(mu)
    size = pairs_size(profiles.most_items, updater.listed, target)
    totals = profiles.total(history_pair_totals, item_bias, listed, size)
    return _published(COVARIANCE_NAME, totals, target, updater, size)


def release_history_events(
    profiles: EventProfiles, listed: AnyIntegers, centre: Floats, mu: float, updater: Updater
) -> Noisy:
    """Release which of the listed items go together; the centre is taken out of what was released."""
    target = integer_sensitivity(mu)
    size = events_size(updater.listed, target)
    totals = profiles.total(history_event_totals, listed, size)
    found = _published(CO_OCCURRENCE_NAME, totals, target, updater, size / COVARIANCE_GRID)
    along = centre / max(float(np.linalg.norm(centre)), 1e-300)
    seen = found.values @ along
    rest = found.values - np.outer(along, seen) - np.outer(seen, along) + (along @ seen) * np.outer(along, along)
    return Noisy(rest, found.noise)


def _published(name: str, totals: Integers, target: int, updater: Updater, size: float) -> Noisy:
    above, scale = updater.pairs(len(totals)), max(size * COVARIANCE_GRID, 1.0)
    noisy = updater.publish(name, totals[above], target)
    matrix = np.zeros(totals.shape, dtype=np.float32)
    matrix[above] = noisy / scale
    matrix += matrix.T
    return Noisy(matrix, updater.sd / scale)
