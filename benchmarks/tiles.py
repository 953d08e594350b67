"""What the two inner loops of a tile cost: adding a popular item to a column, and one sparse update."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import goodfence as gf
from benchmarks.results import write_table
from goodfence.engines.local.layout import Items, lay_out
from goodfence.kernels.tiles.dots import add_popular, dot_tile
from goodfence.similarity.profiles import Profiles

BLOCK = 4096
DEPTH = 1024


def seconds(work: Callable[..., None], *arguments: object) -> float:
    """Return the best of some runs."""
    best = np.inf
    for _ in range(8):
        start = time.perf_counter()
        work(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    table = []
    for name in ("ml-1m", "netflix-tenth"):
        profiles = Profiles.of(gf.load(name).csr)
        rows = np.argsort(profiles.squared_norms, kind="stable").astype(np.int32)
        layout = lay_out(profiles, rows, Items.of(profiles, 5), BLOCK)
        block = len(layout.blocks) // 2
        side, columns = layout.row_side, layout.columns(block)
        tile = np.zeros((DEPTH, layout.width(block)), dtype=np.uint32)
        first = layout.n_positions // 2
        last = first + DEPTH
        n_items = int(side.starts[side.segments[last]] - side.starts[side.segments[first]])
        popular = seconds(add_popular, tile, first, DEPTH, 0, side, columns)
        both = seconds(dot_tile, tile, first, DEPTH, 0, side, columns)
        updates = np.diff(columns.starts)[side.tail_items[side.tail[first] : side.tail[last]]].sum()
        dense = popular / (n_items * layout.width(block)) * 1e9
        sparse = (both - popular) / float(updates) * 1e9
        table.append([name, f"{dense:.4f}", f"{sparse:.2f}"])
    write_table("tiles", __doc__, ["data", "dense: ns a column", "sparse: ns an update"], table)


if __name__ == "__main__":
    main()
