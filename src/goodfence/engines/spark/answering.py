"""What tasks do to answer in bulk: bring the neighbours' ratings to those who ask, then predict as on one machine.

Those who ask stand in groups of consecutive rows. A group asks every block for the rows that it needs, and gets
exactly these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.engines.local.predictions import Neighbourhoods
from goodfence.engines.local.ranking import best_columns
from goodfence.engines.spark.blocks import Block, profiles_of
from goodfence.engines.spark.lists import merged
from goodfence.engines.spark.parcels import Arrays, Parcel
from goodfence.kernels.predict import predict_for_profile

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Answers from the ratings of neighbours."""

    over_raters: bool
    """Divide by the weights of those who rated the item, or of all neighbours."""
    block_rows: int
    n: int = 0
    """How many items are recommended."""

    def ask(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Ask the blocks for the ratings of the neighbours of a group, and for its own where these matter."""
        arrays = _askers(parcels)
        wanted = np.unique(arrays["neighbours"])
        if self.n:
            wanted = np.union1d(wanted, arrays["rows"])
        blocks = wanted // self.block_rows
        for block in np.unique(blocks).tolist():
            yield Parcel(block, place, {"wanted": wanted[blocks == block]})

    def give(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send each group the rows of this block that it asked for."""
        block = Block.of(next(one.arrays for one in parcels if "counts" in one.arrays))
        for one in parcels:
            if "wanted" in one.arrays:
                wanted = one.arrays["wanted"]
                arrays = {**block.rows(wanted).arrays(), "numbers": wanted}
                yield Parcel(one.part, place, arrays)

    def predict(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Predict the cells that a group asked for."""
        numbers, csr = _given(parcels)
        arrays = _askers(parcels)
        cells = [one.arrays for one in parcels if "cell_rows" in one.arrays]
        rows = np.concatenate([one["cell_rows"] for one in cells])
        columns = np.concatenate([one["cell_columns"] for one in cells])
        near = np.searchsorted(numbers, arrays["neighbours"]).astype(np.int32)
        around = Neighbourhoods(near, arrays["weights"], self.over_raters)
        places = np.searchsorted(arrays["rows"], rows)
        predictions = around.predict(csr, places, columns, threads=1)
        answers: Arrays = {"rows": rows, "columns": columns, "predictions": predictions}
        if "cell_numbers" in cells[0]:
            answers["cell_numbers"] = np.concatenate([one["cell_numbers"] for one in cells])
        yield Parcel(place, place, answers)

    def recommend(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Rank what the rows of a group have not rated."""
        numbers, csr = _given(parcels)
        arrays = _askers(parcels)
        near = np.searchsorted(numbers, arrays["neighbours"]).astype(np.int32)
        around = Neighbourhoods(near, arrays["weights"], self.over_raters)
        own = np.searchsorted(numbers, arrays["rows"])
        every = np.arange(csr.shape[1])
        found = []
        for asker, row in enumerate(own.tolist()):
            scores = around.predict(csr, np.full(len(every), asker), every, threads=1)
            unseen = np.ones(len(every), dtype=np.bool_)
            unseen[csr.indices[csr.indptr[row] : csr.indptr[row + 1]]] = False
            columns = best_columns(scores, unseen, self.n)
            found.append((columns, scores[columns]))
        yield Parcel(place, place, {"rows": arrays["rows"], **_ragged(found)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnswering:
    """Ranks items for people from the neighbours of items: a block of people against a block of items."""

    over_raters: bool
    n: int

    def rank(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the best of these items for each of these people."""
        parcel = next(one for one in parcels if "counts" in one.arrays)
        people = Block.of(parcel.arrays)
        items = _askers(parcels)
        local = np.arange(len(items["rows"]))
        first, scores = int(items["rows"][0]), np.empty(len(local))
        csr, found = people.csr, []
        for row in range(people.n_rows):
            rated = csr.indices[csr.indptr[row] : csr.indptr[row + 1]]
            profile = np.full(csr.shape[1], np.nan)
            profile[rated] = csr.data[csr.indptr[row] : csr.indptr[row + 1]]
            near, weights = items["neighbours"], items["weights"]
            predict_for_profile(profile, local, near, weights, self.over_raters, scores)
            unseen = np.isnan(profile[first : first + len(local)])
            columns = best_columns(scores, unseen, self.n)
            found.append((columns + first, scores[columns]))
        yield Parcel(parcel.part, place, {"rows": people.numbers, **_ragged(found)})

    def merge(self, place: int, parcels: list[Parcel]) -> Iterator[Parcel]:
        """Send the best of all items for the people of a block."""
        found = [
            {"lengths": one["lengths"], "rows": one["columns"], "similarities": one["scores"]}
            for one in (parcel.arrays for parcel in parcels)
        ]
        rows = parcels[0].arrays["rows"]
        columns, scores, lengths = merged(found, len(rows), self.n)
        listed = np.arange(self.n) < lengths[:, np.newaxis]
        best: Arrays = {"lengths": lengths, "columns": columns[listed], "scores": scores[listed]}
        yield Parcel(place, place, {"rows": rows, **best})


def _askers(parcels: list[Parcel]) -> Arrays:
    return next(one.arrays for one in parcels if "neighbours" in one.arrays)


def _given(parcels: list[Parcel]) -> tuple[npt.NDArray[np.int64], sparse.csr_array]:
    """Return the rows that were sent, and their numbers, in ascending order."""
    given = [one.arrays for one in parcels if "numbers" in one.arrays]
    csr = profiles_of([Block.of(one) for one in given], 0).rows
    return np.concatenate([one["numbers"] for one in given]), csr


def _ragged(found: list[tuple[npt.NDArray[np.int64], Floats]]) -> Arrays:
    return {
        "lengths": np.array([len(columns) for columns, _ in found], dtype=np.int32),
        "columns": np.concatenate([columns for columns, _ in found]).astype(np.int32),
        "scores": np.concatenate([scores for _, scores in found]),
    }
