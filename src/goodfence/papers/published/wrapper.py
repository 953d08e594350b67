"""What stands around another recommender: it is fitted, asked and saved through this."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats
from goodfence.data.ratings import Ratings
from goodfence.errors import ModelFileError
from goodfence.models.method import as_recommender, traits_of
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.persistence import Arrays, refusing
from goodfence.models.recommender import Traits, unfitted_copy
from goodfence.papers.published.published_recommender import (
    Items,
    PublishedRecommender,
    checked_key,
)
from goodfence.registry import find_kind
from goodfence.rng import RNG, Streams
from goodfence.selection.knn import KNN


@dataclass(eq=False, kw_only=True, repr=False)
class Wrapper(PublishedRecommender):
    """Another recommender, of which a copy is fitted; `_told` says what becomes of its predictions."""

    wraps: ClassVar[bool] = True
    """As an option, k and the settings of `NeighbourCF` are those of the recommender inside."""

    recommender: Any = field(default=None, kw_only=False)
    rng: RNG = None

    def __post_init__(self) -> None:
        inside = self.recommender
        self.recommender = NeighbourCF(KNN(k=50)) if inside is None else as_recommender(inside)

    def __repr__(self) -> str:
        own = "".join(f", {name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({self.recommender!r}{own})"

    def _traits(self, settings: str, *, fresh_answers: bool | None) -> Traits:
        inside = traits_of(self.recommender)
        return Traits(
            family=self.label,
            settings=settings,
            title=repr(self),
            similarity=inside.similarity,
            n_neighbours=inside.n_neighbours,
            among=inside.among,
            center=inside.center,
            fresh_answers=fresh_answers,
        )

    def _learn(self, streams: Streams) -> None:
        self.inner_ = unfitted_copy(self.recommender, streams.key(1)).fit(self.ratings_)

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        items = self.ratings_.items[wanted]
        if row >= 0:
            told = self.inner_.predict(np.repeat(self.ratings_.users[row], len(items)), items)
        else:
            rated = self.ratings_.items[columns].tolist()
            told = self.inner_.answer(dict(zip(rated, values.tolist(), strict=True)), items)
        return self._told(np.asarray(told, dtype=np.float64), columns, values, wanted, row)

    @abstractmethod
    def _told(
        self, told: Floats, columns: Items, values: Floats, wanted: Items, row: int
    ) -> Floats:
        """Return what becomes of the predictions for one user; the rest as in `_answer`."""

    def packed(
        self, ratings: Ratings | None = None
    ) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return the kind, the settings and the arrays of the saved model, the fitted recommender's inside."""
        self._require_fitted()
        kind, settings, arrays = self.inner_.packed(ratings)
        stated = {**self._stated(), "inside": {"kind": kind, "settings": settings}}
        return type(self).__name__, stated, {**arrays, **self._arrays()}

    @classmethod
    def from_saved(cls, settings: dict[str, Any], arrays: Arrays) -> Self:
        """Return the fitted model of a manifest's settings and its arrays."""
        with refusing("the model's settings are not sound; save the model again"):
            inside, key = find_kind(settings["inside"]["kind"]), checked_key(settings, arrays)
            if inside is None or issubclass(inside, Wrapper):
                raise ModelFileError("the model holds another of a kind that is not known")
            fitted: Any = inside.from_saved(settings["inside"]["settings"], arrays)
            model = cls._made_of(copy.copy(fitted), settings["arguments"])
            model.inner_, model.key_, model.ratings_ = fitted, key, fitted.ratings_
            model.seeded_ = settings["seeded"]
            model._restore_state(arrays)
            model._check_guarantee(arrays)
        return model

    @classmethod
    def _made_of(cls, recommender: Any, arguments: dict[str, Any]) -> Self:
        return cls(recommender, **arguments)
