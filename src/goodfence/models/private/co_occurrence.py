"""What `PrivateTopN` releases: how often each item occurs, and which of the chosen ones go together.

Proofs of the sensitivities: `docs/mechanisms/private-top-n.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Floats, Integers, as_csr
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.kernels.co_occurrence import add_co_occurrences, subtract_centre, weigh_users
from goodfence.kernels.private import add_by_item
from goodfence.models.private.releases import Noisy, cells_by_item
from goodfence.parallel import ranges, run
from goodfence.privacy.fixed_point import UP, integer_sensitivity
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
_ROWS = 16


@dataclass(frozen=True, slots=True)
class EventProfiles:
    """Which items each user has; how often is not looked at. Nothing here may be shown to anybody."""

    indptr: AnyIntegers
    indices: AnyIntegers
    n_items: int

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


def release_counts(profiles: EventProfiles, unit: Unit, mu: float, publisher: Publisher) -> Noisy:
    """Release how often each item occurs at privacy cost mu; for the unit user each counts as 1/sqrt(their items)."""
    limit = integer_sensitivity(mu)
    require(1 <= limit < 1 << 31, "epsilon", "smaller, or larger, for integers of 64 bits", mu)
    noisy = publisher.publish("item counts", count_totals(profiles, unit, limit), limit)
    return Noisy(noisy / limit, SIGMA / limit)


def count_totals(profiles: EventProfiles, unit: Unit, limit: int) -> Integers:
    """Return the counts as integers; one unit of privacy moves them by at most `limit`."""
    # For the unit user an event counts as an integer c with n c² <= limit², n being their items.
    counts = np.diff(profiles.indptr).astype(np.int64)
    each = np.full(len(counts), limit, dtype=np.int64)
    if unit == "user":
        each = (limit / np.sqrt(np.maximum(counts, 1))).astype(np.int64)
        each -= each * each * counts > limit * limit  # a quotient may be rounded up to an integer
    totals, unused = np.zeros((2, profiles.n_items), dtype=np.int64)
    add_by_item(profiles.indices, np.repeat(each, counts), 0, totals, unused)
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
    size = co_occurrence_size(unit, len(chosen), target)
    totals = co_occurrence_totals(profiles, chosen, centre, unit, size)
    above = np.triu_indices(len(chosen), 1)
    noisy = publisher.publish("co-occurrence", totals[above], target)
    matrix = np.zeros(totals.shape)
    matrix[above] = noisy / max(size, 1.0)
    matrix += matrix.T
    return Noisy(matrix, SIGMA / max(size, 1.0))


def co_occurrence_noise(unit: Unit, n_chosen: int, mu: float) -> float:
    """Return the standard deviation of the co-occurrence's noise at privacy cost mu."""
    return SIGMA / max(co_occurrence_size(unit, n_chosen, integer_sensitivity(mu)), 1.0)


def co_occurrence_size(unit: Unit, n_chosen: int, target: int) -> float:
    """Return the factor on each user's matrix for which one unit of privacy moves the integers by `target` at most."""
    # Without rounding it moves them by the factor (unit event), or by the factor over sqrt(2) (unit user).
    require(n_chosen <= MOST_CHOSEN, "n_chosen", f"at most {MOST_CHOSEN}", n_chosen)
    of_users = (n_chosen + 2 * math.sqrt(n_chosen) + 1) / FINER
    of_cells = 1.5 * math.sqrt(n_chosen * (n_chosen - 1) / 2)
    left = max(0.0, target - of_users - of_cells) / UP
    return left if unit == "event" else left * math.sqrt(2)


def co_occurrence_totals(
    profiles: EventProfiles, chosen: AnyIntegers, centre: Integers, unit: Unit, size: float
) -> Integers:
    """Return the sum over users of their matrices times `size`, above the diagonal, as integers."""
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
    total = float(added[:, 2].sum())
    subtract_centre(out, sums.astype(np.float64), total, centre / UNIT)
    return out
