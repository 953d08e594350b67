"""What is released, used on each person's side: her ratings and the items' features give her predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from goodfence.engines.local.threads import ranges, run
from goodfence.kernels.local_ridge import predict_rows, solve_person
from goodfence.models.private.empirical_bayes import ItemEffects
from goodfence.privacy.fixed_point import Floats

NOISE = 0.85
"""The variance of a rating that no feature explains, on the scale 1..5: a public constant."""
OFFSET_PENALTY = 2.0
"""The same, divided by how widely people's offsets lie."""
FARTHEST = 10.0
"""No direction of an item is longer than this either way: a public constant, far beyond what is found in practice."""
_PIECE = 64

Columns = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class ItemModel:
    """All that is known of the items, made from released quantities only: it may be given to anybody.

    Ratings and effects are measured from the centre of the scale 1..5.
    """

    effects: Floats
    """Each item's effect."""
    features: Floats
    """Each item's features; the first is 1, and carries a person's offset."""
    weights: Floats
    """How much a rating of the item says about a person: less where its effect is unsure."""

    @classmethod
    def of(cls, items: ItemEffects, directions: Floats) -> ItemModel:
        """Return the model of items with these effects, and features besides the constant one.

        All numbers are finite and within public bounds, whatever came before: people's own numbers are computed
        with them, and must neither overflow nor divide by zero.
        """
        ones = np.ones((len(items.effects), 1))
        features = np.ascontiguousarray(np.concatenate([ones, bounded(directions)], axis=1))
        unsure = np.maximum(np.nan_to_num(items.variances), 0.0)
        return cls(bounded(items.effects), features, NOISE / (NOISE + unsure))

    @property
    def penalties(self) -> Floats:
        """The ridge's penalties: of the offset, and of every other feature."""
        penalties = np.full(self.features.shape[1], NOISE)
        penalties[0] = OFFSET_PENALTY
        return penalties

    def predict_person(self, columns: Columns, values: Floats, wanted: Columns) -> Floats:
        """Return predictions of the wanted items for somebody with these ratings."""
        targets = values - self.effects[columns]
        answer = solve_person(columns, targets, self.features, self.weights, self.penalties)
        predictions: Floats = self.effects[wanted] + self.features[wanted] @ answer
        return predictions

    def predict_cells(
        self, indptr: Columns, indices: Columns, values: Floats, rows: Columns, columns: Columns
    ) -> Floats:
        """Return predictions of columns[j] for the person in rows[j]; each person's regression is solved once."""
        order = np.argsort(rows, kind="stable")
        people, starts = np.unique(rows[order], return_index=True)
        ends = np.append(starts, len(rows))
        sorted_columns = np.asarray(columns)[order]
        found = np.empty(len(rows))

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            predict_rows(
                people[first:last],
                ends[first : last + 1],
                sorted_columns,
                indptr,
                indices,
                values,
                self.effects,
                self.features,
                self.weights,
                self.penalties,
                found,
            )

        run(work, ranges(len(people), _PIECE))
        out = np.empty(len(rows))
        out[order] = found
        return out


def bounded(values: Floats) -> Floats:
    """Return the values cut to plus and minus `FARTHEST`, 0 where they are not numbers.

    Examples
    --------
    >>> bounded(np.array([0.5, -4e8, np.nan]))
    array([  0.5, -10. ,   0. ])
    """
    return np.asarray(np.clip(np.nan_to_num(values), -FARTHEST, FARTHEST), dtype=np.float64)
