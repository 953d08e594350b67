"""What every recommender can do. Evaluation, attack and audit ask for nothing more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Id, Ratings
from goodfence.engines.local.ranking import best_columns
from goodfence.privacy.guarantee import Guarantee

Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = Sequence[Id] | npt.NDArray[Any]
Profile: TypeAlias = Mapping[Any, float]


class Recommendations(NamedTuple):
    """Items somebody has not rated, best first."""

    items: npt.NDArray[Any]
    """The items' own ids."""
    scores: Floats
    """The predicted ratings."""

    def __repr__(self) -> str:
        return f"Recommendations({len(self.items)} items)"


class Recommender(Protocol):
    """A recommender that learns from ratings, answers questions, and states its promise."""

    def fit(self, ratings: Ratings) -> Self:
        """Learn from the ratings; every random choice is made here, once."""
        ...

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Return the predicted rating of users[j] for items[j], NaN where there is none."""
        ...

    def recommend(self, user: Id, n: int = 10) -> Recommendations:
        """Return at most n items the user has not rated, best first."""
        ...

    def answer(self, profile: Profile, items: Ids) -> Floats:
        """Return predictions for somebody who is not in the data, from her ratings."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what is promised, to whom, and whether that is proved."""
        ...

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted recommender to a folder, whole or not at all."""
        ...


def best(
    items: npt.NDArray[Any], scores: Floats, unseen: npt.NDArray[np.bool_], n: int
) -> Recommendations:
    """Return the n best-scored unseen items: NaN is no score, ties stand in column order."""
    chosen = best_columns(scores, unseen, n)
    return Recommendations(items[chosen], scores[chosen])
