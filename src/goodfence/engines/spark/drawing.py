"""What a task does with the lists of one block: it draws the neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.engines.local.draws import choose_from_lists
from goodfence.engines.local.threads import ranges
from goodfence.engines.spark.blocks import Block, profiles_of
from goodfence.engines.spark.parcels import Arrays, Parcel
from goodfence.engines.spark.tiling import tile_number
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.sensitivity import Sensitivity, pair_sensitivities

_CELLS = 2_000_000
"""The most list entries that are drawn from at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Draws neighbours from lists: by (key, row number), wherever the lists are."""

    mechanism: Mechanism
    key: int

    def draw(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the chosen neighbours of a block."""
        for parcel in parcels:
            lists = parcel.arrays
            n_rows, n = lists["indices"].shape
            askers = lists["first"][0] + np.arange(n_rows)
            bounds = lists.get("bounds")
            found = []
            for piece in ranges(n_rows, max(1, _CELLS // max(n, 1))):
                part = slice(*piece)
                own = None if bounds is None else bounds[part]
                entries = lists["indices"][part], lists["similarities"][part]
                found.append(
                    choose_from_lists(self.mechanism, self.key, askers[part], *entries, own)
                )
            names = ("neighbours", "similarities", "weights")
            columns = zip(names, zip(*found, strict=True), strict=True)
            arrays = {name: np.concatenate(parts) for name, parts in columns}
            yield Parcel(place, place, {"first": lists["first"], **arrays})


@dataclass(frozen=True, slots=True, kw_only=True)
class PairBounds:
    """RS of every pair of a row and a candidate: each is computed in the tile that has the ratings of both."""

    options: Sensitivity
    factor: int
    block_rows: int
    n_blocks: int

    def ask(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the entries of a block's lists to the tiles of the candidates."""
        lists = parcels[0].arrays
        others = lists["indices"] // self.block_rows
        for other in np.unique(others).tolist():
            owners, slots = np.nonzero(others == other)
            entries = {
                "owners": owners.astype(np.int32),
                "slots": slots.astype(np.int32),
                "rows": lists["indices"][owners, slots],
                "first": lists["first"],
            }
            tile = tile_number(min(place, other), max(place, other), self.n_blocks)
            yield Parcel(tile, place, entries)

    def answer(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send RS of the entries that came to this tile, back to their lists."""
        blocks = [Block.of(one.arrays) for one in parcels if "counts" in one.arrays]
        csr = profiles_of(blocks, self.factor).rows
        numbers = np.concatenate([block.numbers for block in blocks])
        for asked in (one for one in parcels if "owners" in one.arrays):
            entries = asked.arrays
            owners, rows = entries["owners"], entries["rows"]
            local = np.searchsorted(numbers, rows)
            targets = np.searchsorted(numbers, entries["first"][0] + owners)
            bounds = _ragged(csr, targets, local, self.options)
            kept = {name: entries[name] for name in ("owners", "slots")}
            yield Parcel(asked.part, place, {**kept, "bounds": bounds})

    def settle(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send a block's lists with RS of every entry."""
        lists: Arrays = dict(next(one.arrays for one in parcels if "indices" in one.arrays))
        bounds = np.zeros(lists["indices"].shape)
        for one in parcels:
            if "owners" in one.arrays:
                bounds[one.arrays["owners"], one.arrays["slots"]] = one.arrays["bounds"]
        yield Parcel(place, place, {**lists, "bounds": bounds})


def _ragged(
    csr: object, targets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], options: Sensitivity
) -> npt.NDArray[np.float64]:
    """Return RS of (targets[j], rows[j]) for each j; targets ascend. Short ones are filled up with themselves."""
    every, owners, counts = np.unique(targets, return_inverse=True, return_counts=True)
    starts = np.cumsum(counts) - counts
    slots = np.arange(len(targets)) - starts[owners]
    padded = np.repeat(every[:, np.newaxis], counts.max(), axis=1)
    padded[owners, slots] = rows
    bounds: npt.NDArray[np.float64] = pair_sensitivities(csr, every, padded, options)
    return bounds[owners, slots]
