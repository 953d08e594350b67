"""What every recommender can do, and what evaluation, attack and audit ask of one."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from goodfence.arrays import AnyIntegers, Flags, Floats
from goodfence.data.ratings import Id, Profile, Ratings
from goodfence.errors import NotFittedError, require
from goodfence.markup import html_table
from goodfence.models.persistence import load_as
from goodfence.neighbours.baseline import Base
from goodfence.neighbours.predict import best_columns
from goodfence.neighbours.similarity import Similarity
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import checked

IdsLike: TypeAlias = Sequence[Id] | npt.NDArray[Any]
R = TypeVar("R")


class Recommendations(NamedTuple):
    """Items that a user has not rated, best first."""

    items: npt.NDArray[Any]
    """The items' own ids."""
    scores: Floats
    """The predicted ratings."""

    def __repr__(self) -> str:
        return f"Recommendations({len(self.items)} items)"

    def _repr_html_(self) -> str:
        """Return what was asked for, as a notebook shows it: items and scores, and not whose they are."""
        pairs = zip(self.items.tolist(), self.scores.tolist(), strict=True)
        rows = [(rank, item, f"{score:.2f}") for rank, (item, score) in enumerate(pairs, start=1)]
        return html_table(["", "item", "score"], rows, title="Recommendations")


class Recommender(Protocol):
    """A recommender that is fitted to ratings, predicts, and states its guarantee."""

    def fit(self, ratings: Ratings) -> Self:
        """Learn from the ratings; every random choice is made here, once."""
        ...

    def predict(self, users: IdsLike, items: IdsLike) -> Floats:
        """Return the predicted rating of users[j] for items[j], NaN where there is none."""
        ...

    def recommend(self, user: Id, n: int = 10) -> Recommendations:
        """Return at most n items the user has not rated, best first."""
        ...

    def answer(self, profile: Profile, items: IdsLike) -> Floats:
        """Return predictions for an out-of-sample user, from their ratings {item: rating} (fold-in)."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what is guaranteed, for which unit, and whether that is proved."""
        ...

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted recommender to a folder, atomically."""
        ...


class Predicts(Protocol):
    """All that an attack needs of a recommender that knows its users: `fit` and `predict`."""

    def fit(self, ratings: Ratings) -> Any:
        """Learn, and return what can be asked."""
        ...

    def predict(self, users: IdsLike, items: IdsLike) -> Floats:
        """Return the predicted rating of users[j] for items[j], NaN where there is none."""
        ...


class FoldsIn(Protocol):
    """All that an attack needs of a recommender that is asked with a profile: `fit` and `answer`."""

    def fit(self, ratings: Ratings) -> Any:
        """Learn, and return what can be asked."""
        ...

    def answer(self, profile: Profile, items: IdsLike) -> Floats:
        """Return predictions for an out-of-sample user, from their ratings."""
        ...


Attackable: TypeAlias = "Predicts | FoldsIn"
Among: TypeAlias = Literal["all", "raters"]
Center: TypeAlias = Literal["user_mean", "item_mean", "bias"]
Fallback: TypeAlias = Base


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What attack and audit must know of a recommender, as its attribute `traits`.

    The defaults hold for one that says nothing of itself.
    """

    family: str
    """Its name in tables, without settings."""
    settings: str = ""
    """The settings that tell it from others of its family."""
    title: str
    """Its name with all settings, and without data."""
    mechanism: Mechanism | None = None
    """Which mechanism chooses a user's neighbours among the users; None for none, or an unknown one."""
    similarity: Similarity | None = None
    """What these neighbours are chosen by."""
    n_neighbours: int | None = None
    """How many users a user's predictions rest on; 0 for no user alone, None if that is not known."""
    needs_refits: bool = True
    """Whether an attack must fit it in each world; if not, candidate lists give the same answers."""
    answers_alike: bool = True
    """Whether equal profiles get equal answers, so that a second fake profile is told nothing new."""
    fresh_answers: bool | None = None
    """Whether the same question gets another answer each time; None if that is not known: then it is asked twice."""
    among: Among = "all"
    """Whether a user has the same neighbours for all items, or for each item some of its raters."""
    center: Center | None = None
    """What is subtracted from the neighbours' ratings, and added to their mean."""
    pairwise: bool = False
    """Whether it answers from differences of two items, one of which an account may have rated alone."""
    fresh_noise: bool = False
    """Whether its guarantee is lost with a seed, so that an attack must not set one."""
    released: bool = False
    """Whether an answer rests on what the fit released and on the profile that asks: then one fit serves many."""


class FittedRecommender(ABC):
    """What recommenders share that keep the ratings they were fitted to, as `ratings_`."""

    ratings_: Ratings

    @checked
    def predict(self, users: IdsLike, items: IdsLike) -> Floats:
        """Return the predicted rating of users[j] for items[j], NaN where there is none."""
        self._require_fitted()
        require(len(users) == len(items), "items", "as many as users", len(items))
        return self.predict_cells(self.ratings_.rows(users), self.ratings_.columns(items))

    @abstractmethod
    def predict_cells(self, rows: AnyIntegers, columns: AnyIntegers) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the fitted model that was saved in the folder `path`."""
        return load_as(cls, path)

    def _require_fitted(self) -> None:
        if not hasattr(self, "ratings_"):
            raise NotFittedError("the model must be fitted before it is asked; call fit(ratings)")

    def _unseen(self, rated: AnyIntegers) -> Flags:
        """Return which items are not among those of these columns."""
        unseen = np.ones(self.ratings_.shape[1], dtype=np.bool_)
        unseen[rated] = False
        return unseen


def unfitted_copy(recommender: R, rng: RNG) -> R:
    """Return a copy to be fitted and asked a little, with this `rng` if it has one; what was given stays as it is."""
    copied: Any = copy.copy(recommender)
    if hasattr(copied, "rng"):
        copied.rng = rng
    if hasattr(copied, "computes_ahead"):
        copied.computes_ahead = False
    made: R = copied
    return made


def fit_received(recommender: Any, received: Ratings) -> Any:
    """Fit to what users sent: where they change their ratings (`perturbed`), `fit` would let them do it again."""
    return getattr(recommender, "fit_sent", recommender.fit)(received)


def guarantee_of(recommender: Any) -> Guarantee:
    """Return the guarantee; a recommender that states none has the status `none`."""
    if not hasattr(recommender, "guarantee"):
        return Guarantee(status="none", reason="The recommender states no guarantee.")
    stated: Guarantee = recommender.guarantee()
    return stated


def best(items: npt.NDArray[Any], scores: Floats, unseen: Flags, n: int) -> Recommendations:
    """Return the n best-scored unseen items: NaN is no score, ties are in column order."""
    chosen = best_columns(scores, unseen, n)
    return Recommendations(items[chosen], scores[chosen])
