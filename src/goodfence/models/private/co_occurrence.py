"""What `PrivateTopN` releases: how often each item occurs, and which of the chosen ones go together.

Proofs of the sensitivities: `docs/mechanisms/private-top-n.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Floats, Integers, as_csr
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.kernels.co_occurrence import COARSER, add_co_occurrences, subtract_centre, weigh_users
from goodfence.kernels.private import add_by_item
from goodfence.models.private.releases import Noisy, cells_by_item, most_rated
from goodfence.parallel import ranges, run
from goodfence.privacy.fixed_point import UP, Arrival, Contributions, integer_sensitivity
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA, Publisher

MOST_CHOSEN = 1 << 11
"""With this many chosen items n - a² is an integer below 2^53 in units of 1/UNIT²."""
UNIT = 1 << 20
"""The centre is in integers of 1/UNIT."""
SPARE = 1 << 38
"""1/4, in units of 1/UNIT²: what is added to n - a², so that nobody's weight is large."""
FINER = 16
"""What users add is in units of 1/FINER of the released integers."""
COUNTS_NAME, CO_OCCURRENCE_NAME = "item counts", "co-occurrence"
_ROWS = 16
_LARGEST_PART = 3000
"""No integer that a user adds is larger than this times the factor on their matrix."""
_FARTHEST_NOISE = 41
COUNTS_SHARE = 0.1
"""What the counts take of the squared mu."""
_CLEAR = 1.6
"""How often an item must occur, over the edge of the noise, to be chosen: a public constant."""
_FEWEST_CHOSEN = 64
"""So many are chosen in any case, if there are as many."""


@dataclass(frozen=True, slots=True)
class EventProfiles(Contributions):
    """Which items each user has; how often is not looked at. Nothing here may be shown to anybody."""

    indptr: AnyIntegers
    indices: AnyIntegers
    n_items: int
    room: int = 0
    """As in `UserProfiles`."""
    arrival: Arrival | None = None
    """As in `UserProfiles`."""

    @classmethod
    def of(cls, events: Ratings) -> EventProfiles:
        """Return the profiles of these events."""
        csr = events.csr
        return cls(csr.indptr, csr.indices, csr.shape[1])

    def __repr__(self) -> str:
        return "EventProfiles(not shown)"

    def on(self, chosen: AnyIntegers) -> sparse.csr_array:
        """Return users x chosen items (columns, ascending) as ones, columns ascending."""
        places = np.full(self.n_items, -1, dtype=np.int64)
        places[chosen] = np.arange(len(chosen))
        columns = places[self.indices]
        kept = columns >= 0
        starts = np.concatenate(([0], np.cumsum(kept)))[self.indptr]
        cells = (np.ones(int(kept.sum()), dtype=np.int8), columns[kept], starts)
        rows = sparse.csr_array(cells, shape=(len(self.indptr) - 1, len(chosen)))
        rows.sort_indices()
        return rows


class ReleasedLists(NamedTuple):
    """All that `PrivateTopN` releases, and what is computed of it on the way."""

    unit: Unit
    items: Noisy
    """How often each item occurs; for the unit user each event of a user with n counts 1/sqrt(n)."""
    chosen: Integers
    """The columns of the items whose pairs were released, ascending."""
    counts: Floats
    """How often they occur, at least as often as the noise is large."""
    centre: Floats
    """The direction of that, of length at most 1."""
    pairs: Noisy
    """Which of them go together beyond the centre; the diagonal is 0."""


def release_lists(profiles: EventProfiles, unit: Unit, mu: float, publisher: Publisher) -> ReleasedLists:
    """Release the counts of all items and the pairs of the chosen ones at privacy cost mu."""
    of_pairs = mu * math.sqrt(1 - COUNTS_SHARE)
    items = release_counts(profiles, unit, mu * math.sqrt(COUNTS_SHARE), publisher)
    chosen = most_rated(items.values, how_many(items, unit, of_pairs))
    counts = np.maximum(items.values[chosen], items.noise)
    centre = centre_of(counts)
    require_exact(items, unit, co_occurrence_size(unit, len(chosen), integer_sensitivity(of_pairs)))
    pairs = release_co_occurrence(profiles, chosen, centre, unit, of_pairs, publisher)
    return ReleasedLists(unit, items, chosen, counts, centre / UNIT, pairs)


def release_counts(profiles: EventProfiles, unit: Unit, mu: float, publisher: Publisher) -> Noisy:
    """Release how often each item occurs at privacy cost mu; for the unit user each counts as 1/sqrt(their items)."""
    limit = integer_sensitivity(mu)
    require(1 <= limit < 1 << 31, "epsilon", "smaller, or larger, for integers of 64 bits", mu)
    noisy = publisher.publish(COUNTS_NAME, profiles.total(count_totals, unit, limit), limit)
    return Noisy(noisy / limit, publisher.sd / limit)


def count_totals(profiles: EventProfiles, unit: Unit, limit: int) -> Integers:
    """Return the counts as integers; one unit of privacy moves them by at most `limit`."""
    # For the unit user an event counts as an integer c with n c² <= limit², n being their items.
    counts = np.diff(profiles.indptr).astype(np.int64)
    each = np.full(len(counts), limit, dtype=np.int64)
    if unit == "user":
        each = (limit / np.sqrt(np.maximum(counts, 1))).astype(np.int64)
        each -= each * each * counts > limit * limit  # a quotient may be rounded up to an integer
    totals, unused = np.zeros((2, profiles.n_items), dtype=np.int64)
    columns, values = profiles.indices, np.repeat(each, counts)
    if profiles.arrival is not None:
        columns, values = columns[profiles.arrival.new], values[profiles.arrival.new]
    add_by_item(columns, values, 0, totals, unused)
    return totals


def centre_of(counts: Floats) -> Integers:
    """Return the direction of these positive counts as integers of 1/UNIT, of length at most 1."""
    share = counts / counts.max()
    centre: Integers = np.floor(share / math.sqrt(float(share @ share)) * (UNIT - 1)).astype(np.int64)
    require(int(centre @ centre) <= UNIT**2, "counts", "of a direction", "one longer than 1")
    return centre


def release_co_occurrence(
    profiles: EventProfiles, chosen: AnyIntegers, centre: Integers, unit: Unit, mu: float, publisher: Publisher
) -> Noisy:
    """Release which of the chosen items (ascending) go together, beyond their `centre`, at privacy cost mu."""
    # Each user enters as y yᵀ/sqrt(|y|² + 1/4) (unit event) or y yᵀ/(|y|² + 1/4) (unit user), y being their events
    # without the direction of the centre, above the diagonal only.
    target = integer_sensitivity(mu)
    size = co_occurrence_size(unit, max(len(chosen), publisher.listed), target)
    totals = co_occurrence_totals(profiles, chosen, centre, unit, size)
    above = publisher.pairs(len(chosen))
    noisy = publisher.publish(CO_OCCURRENCE_NAME, totals[above], target)
    matrix = np.zeros(totals.shape)
    matrix[above] = noisy / max(size, 1.0)
    matrix += matrix.T
    return Noisy(matrix, publisher.sd / max(size, 1.0))


def co_occurrence_noise(unit: Unit, n_chosen: int, mu: float) -> float:
    """Return the standard deviation of the co-occurrence's noise at privacy cost mu."""
    return SIGMA / max(co_occurrence_size(unit, n_chosen, integer_sensitivity(mu)), 1.0)


def co_occurrence_size(unit: Unit, n_chosen: int, target: int) -> float:
    """Return the factor on each user's matrix for which one unit of privacy moves the integers by `target` at most."""
    # Without rounding it moves them by the factor (unit event), or by the factor over sqrt(2) (unit user).
    require(n_chosen <= MOST_CHOSEN, "n_chosen", f"at most {MOST_CHOSEN}", n_chosen)
    of_users = (n_chosen + 2 * math.sqrt(n_chosen) + COARSER) / FINER
    of_cells = 1.001 * math.sqrt(n_chosen * (n_chosen - 1) / 2)
    left = max(0.0, target - of_users - of_cells) / UP
    return left if unit == "event" else left * math.sqrt(2)


def co_occurrence_totals(
    profiles: EventProfiles, chosen: AnyIntegers, centre: Integers, unit: Unit, size: float
) -> Integers:
    """Return the sum over users of their matrices times `size`, above the diagonal, as integers."""
    matrix, sums, along = profiles.total(co_occurrence_sums, chosen, centre, unit, size)
    subtract_centre(matrix, sums, along[0], centre / UNIT)
    return np.asarray(matrix)


def co_occurrence_sums(
    profiles: EventProfiles, chosen: AnyIntegers, centre: Integers, unit: Unit, size: float
) -> tuple[Integers, Integers, Integers]:
    """Return the integers of which the co-occurrence is made: of pairs, of single items, and along the centre."""
    rows = profiles.on(chosen)
    n_users, n_items = rows.shape
    added = np.empty((n_users, 3), dtype=np.int64)
    power = 1 if unit == "event" else 2
    weigh_users(rows.indptr, rows.indices, centre, (UNIT, SPARE), FINER * size, power, added)
    by_item, by_user = cells_by_item(rows), as_csr(rows)
    weights, out = np.ascontiguousarray(added[:, 0]), np.zeros((n_items, n_items), dtype=np.int64)

    def work(chunk: tuple[int, int]) -> None:
        add_co_occurrences(*chunk, by_item, by_user, weights, out)

    run(work, ranges(n_items, _ROWS))
    sums, unused = np.zeros((2, n_items), dtype=np.int64)
    add_by_item(rows.indices, np.repeat(added[:, 1], np.diff(rows.indptr)), 0, sums, unused)
    return out, sums, added[:, 2].sum(keepdims=True)


def require_exact(items: Noisy, unit: Unit, size: float) -> None:
    """Refuse, by the noisy counts alone, as many events as could overflow the sums of `co_occurrence_totals`."""
    # The noise ends within 41 of its deviations, but for a probability that no float can hold. A user of the unit user
    # adds at least 1/2 to the counts.
    slack = _FARTHEST_NOISE * items.noise
    most = items.values.max() + slack
    if unit == "user":
        most = 2 * (items.values.sum() + slack * math.sqrt(len(items.values)))
    fits = bool(_LARGEST_PART * size * most < 1 << 62)
    require(fits, "epsilon", "smaller: sums over so many events would leave 64 bits", "one too large")


def how_many(items: Noisy, unit: Unit, mu: float) -> int:
    """Return how many of the most frequent items (by noisy counts) are chosen: those that stand out of the noise."""
    # An item's row is the sum of as many vectors of length at most 1 as its count says, and the noise's eigenvalues
    # end at twice its deviation times the root of the number of items.
    ordered = np.sort(items.values)[::-1][:MOST_CHOSEN]
    n_items = len(ordered)
    noise = co_occurrence_noise(unit, n_items, mu)
    clear = ordered >= _CLEAR * noise * np.sqrt(np.arange(1, n_items + 1))
    found = int(np.flatnonzero(clear).max(initial=-1)) + 1
    return min(max(found, _FEWEST_CHOSEN), n_items)
