"""What a task does with everything that was found for one block: its lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.engines.spark.parcels import Arrays, Parcel
from goodfence.kernels.tiles.buffers import MARGIN
from goodfence.kernels.tiles.merging import list_best, place_lists
from goodfence.kernels.tiles.thresholds import SMALLEST

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_MOST = 3
"""So many times what can be listed may wait to be merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """Puts the lists of a block together."""

    n: int
    """The length of the lists."""

    def merge(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the lists of block `place`; `part` says how many of them are not sure yet.

        A list is not sure where a guessed threshold may have turned away somebody who belongs to it.
        """
        slices = {int(one.arrays["first"][0]): len(one.arrays["lengths"]) for one in parcels}
        begin, n_rows = min(slices), sum(slices.values())
        indices, similarities = np.empty((n_rows, self.n), np.int32), np.empty((n_rows, self.n))
        unsure, bounds = np.empty(n_rows, np.bool_), np.empty(n_rows)
        for first, count in slices.items():
            found = [one.arrays for one in parcels if one.arrays["first"][0] == first]
            own = slice(first - begin, first - begin + count)
            indices[own], similarities[own], lengths = merged(found, count, self.n)
            guesses = next(one["thresholds"] for one in found if "thresholds" in one)
            unsure[own] = _unsure(similarities[own], lengths, guesses)
            filled = np.where(unsure[own], self.n, lengths)
            fill_up(indices[own], similarities[own], filled, first)
            bounds[own] = _largest(found) if "bounds" in found[0] else 0
        arrays = {
            "first": np.array([begin]),
            "indices": indices,
            "similarities": similarities,
            "unsure": np.flatnonzero(unsure),
        }
        if "bounds" in parcels[0].arrays:
            arrays["bounds"] = bounds
        yield Parcel(place, int(unsure.sum()), arrays)

    def shorten(self, parcels: list[Parcel]) -> list[Parcel]:
        """Merge what has come so far where it is much: only the n best of each row can be listed in the end."""
        *_, last = parcels
        first = last.arrays["first"]
        others = [one for one in parcels if one.arrays["first"] != first]
        found = [one.arrays for one in parcels if one.arrays["first"] == first]
        n_rows = len(last.arrays["lengths"])
        if len(found) == 1 or sum(len(one["rows"]) for one in found) <= _MOST * n_rows * self.n:
            return parcels
        indices, similarities, lengths = merged(found, n_rows, self.n)
        listed = np.arange(self.n) < lengths[:, np.newaxis]
        arrays = {
            "first": first,
            "lengths": lengths,
            "rows": indices[listed],
            "similarities": similarities[listed],
        }
        if "bounds" in found[0]:
            arrays["bounds"] = _largest(found)
        for guesses in (one["thresholds"] for one in found if "thresholds" in one):
            arrays["thresholds"] = guesses
        return [*others, Parcel(last.place, -1, arrays)]


def merged(found: list[Arrays], n_owners: int, n: int) -> tuple[Rows, Floats, Rows]:
    """Return the n best of everything that was found for each owner, and how many there were."""
    counts = np.sum([one["lengths"] for one in found], axis=0, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
    places = starts[:-1].copy()
    for one in found:
        place_lists(one["lengths"], one["rows"], one["similarities"], places, rows, values)
    lengths = np.zeros(n_owners, dtype=np.int32)
    indices = np.full((n_owners, n), -1, dtype=np.int32)
    similarities = np.zeros((n_owners, n))
    list_best(starts, rows, values, indices, similarities, lengths)
    return indices, similarities, lengths


def _largest(found: list[Arrays]) -> Floats:
    """Return RS of each row: the largest of what the tiles say."""
    largest: Floats = np.max([one["bounds"] for one in found], axis=0)
    return largest


def fill_up(indices: Rows, similarities: Floats, lengths: Rows, first: int) -> None:
    """Go on with rows of similarity zero, in row order, where fewer than n were found."""
    n = indices.shape[1]
    for row in np.flatnonzero(lengths < n):
        found = indices[row, : lengths[row]]
        free = np.ones(n + 1, dtype=np.bool_)  # of n + 1 rows, as many are free as are wanted
        free[found[found <= n]] = False
        if first + row <= n:
            free[first + row] = False
        indices[row, lengths[row] :] = np.flatnonzero(free)[: n - lengths[row]]
        similarities[row, lengths[row] :] = 0.0


def _unsure(
    similarities: Floats, lengths: Rows, guesses: npt.NDArray[np.float32]
) -> npt.NDArray[np.bool_]:
    """Return which rows may miss a candidate: the last of n is not clearly above what was turned away."""
    if len(guesses) == 0:
        return np.zeros(len(lengths), dtype=np.bool_)
    last = np.where(lengths == similarities.shape[1], similarities[:, -1], 0.0)
    unsure: npt.NDArray[np.bool_] = (guesses > SMALLEST) & (last * MARGIN < guesses)
    return unsure
