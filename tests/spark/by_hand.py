"""The exchanges of the Spark engine done by hand, in this process: the tasks are the same, the cluster is a loop."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

import goodfence as gf
from goodfence.engines.spark.again import Again
from goodfence.engines.spark.blocks import cut
from goodfence.engines.spark.comparing import Comparison
from goodfence.engines.spark.guessing import Guessing
from goodfence.engines.spark.lists import Merging
from goodfence.engines.spark.parcels import Parcel, Shorten, Work, closed, done, opened
from goodfence.engines.spark.tiling import tile_number
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles


def exchanged(
    parcels: Iterable[Parcel], work: Work, shorten: Shorten | None = None
) -> list[Parcel]:
    """Bring parcels to their places, in any order but the right one, and return what is sent from there."""
    places: dict[int, list[Parcel]] = {}
    for parcel in parcels:
        places.setdefault(parcel.place, []).insert(0, parcel)
    return [
        sent
        for arrived in places.values()
        for batch in done(work, iter([closed(arrived)]), shorten)
        for sent in opened(batch)
    ]


def comparison(ratings: gf.Ratings, n: int, similarity: str = "cosine") -> Comparison:
    measure = Similarity.of(similarity)
    profiles = Profiles.of(ratings.csr)
    lowest = ratings.csr.data.min(initial=0.0)
    return Comparison(
        n=n,
        n_rows=ratings.shape[0],
        similarity=measure,
        factor=profiles.factor,
        by_kernel=measure.name == "cosine" and profiles.factor > 0 and lowest >= 0,
    )


def at_tiles(blocks: list[Parcel]) -> list[Parcel]:
    """Return each block once for each tile that it is part of."""
    n = len(blocks)
    return [
        Parcel(tile_number(a, b, n), block.part, block.arrays)
        for a in range(n)
        for b in range(a, n)
        for block in ([blocks[a], blocks[b]] if a < b else [blocks[a]])
    ]


def guessed(blocks: list[Parcel], how: Comparison) -> list[Parcel]:
    """Return the blocks with thresholds, where that pays."""
    guessing = Guessing(n=how.n, n_rows=how.n_rows, n_blocks=len(blocks), factor=how.factor)
    if not (how.by_kernel and guessing.pays):
        return blocks
    sample = exchanged(exchanged(blocks, guessing.take), guessing.spread)
    return sorted(exchanged([*blocks, *sample], guessing.guess))


def lists_by_hand(
    ratings: gf.Ratings, how: Comparison, block_rows: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], int]:
    """Return the lists of all rows, and how many of them had to be made again."""
    blocks = guessed(cut(ratings.csr, block_rows), how)
    merging = Merging(n=how.n)
    offers = exchanged(at_tiles(blocks), how.tile)
    lists = sorted(exchanged(offers, merging.merge, merging.shorten))
    unsure = [parcel.part for parcel in lists]
    if any(unsure):
        again = Again.of(unsure, n=how.n, factor=how.factor)
        asked = exchanged([*blocks, *lists], again.ask)
        sent = [
            Parcel(group * len(blocks) + block.place, block.part, block.arrays)
            for group in range(again.n_groups)
            for block in blocks
        ]
        lists = sorted(exchanged([*lists, *exchanged([*asked, *sent], again.answer)], again.settle))
    found = [parcel.arrays for parcel in lists]
    return (
        np.concatenate([one["indices"] for one in found]),
        np.concatenate([one["similarities"] for one in found]),
        sum(unsure),
    )
