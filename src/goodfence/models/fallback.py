"""What a recommender may say where no neighbour rated the item: a mean, on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.errors import require

Fallback: TypeAlias = Literal["item_mean", "user_mean", "global_mean"]
Floats = npt.NDArray[np.float64]


def check_fallback(fallback: Fallback | None) -> None:
    """Raise unless `fallback` is None or one of the means."""
    known = get_args(Fallback)
    require(fallback is None or fallback in known, "fallback", f"None or one of {known}", fallback)


@dataclass(frozen=True, eq=False)
class Means:
    """The means of the ratings; a row or column without ratings has the mean of all."""

    users: Floats
    items: Floats
    overall: float

    @classmethod
    def of(cls, ratings: Ratings) -> Means:
        """Return the means of `ratings`."""
        overall = float(ratings.csr.data.mean()) if ratings.n_ratings else float(np.nan)
        users = _row_means(ratings, overall)
        return cls(users, _row_means(ratings.transposed, overall), overall)

    def of_cells(
        self, fallback: Fallback, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]
    ) -> Floats:
        """Return the mean that stands in for each cell."""
        known: dict[str, Floats] = {"item_mean": self.items[columns], "user_mean": self.users[rows]}
        return known.get(fallback, np.full(len(rows), self.overall))

    def of_newcomer(
        self, fallback: Fallback, own_mean: float, columns: npt.NDArray[np.integer]
    ) -> Floats:
        """Return the mean that stands in for each column, for somebody whose own mean is given."""
        known: dict[str, Floats] = {
            "item_mean": self.items[columns],
            "user_mean": np.full(len(columns), own_mean),
        }
        return known.get(fallback, np.full(len(columns), self.overall))


def _row_means(ratings: Ratings, overall: float) -> Floats:
    counts = np.diff(ratings.csr.indptr)
    sums = np.asarray(ratings.csr.sum(axis=1))
    return np.where(counts > 0, sums / np.maximum(counts, 1), overall)
