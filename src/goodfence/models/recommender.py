"""What every recommender can do, and what evaluation, attack and audit ask of one."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.arrays import AnyIntegers, Flags, Floats, Integers, Rows
from goodfence.data.columns import Feedback
from goodfence.data.files import write_table
from goodfence.data.ids import Ids
from goodfence.data.ratings import Id, ProfileLike, Ratings, positions_among
from goodfence.errors import DataError, FileProblem, ModelFileError, NotFittedError, require
from goodfence.kernels.lists import NO_ITEM
from goodfence.markup import html_table
from goodfence.models.persistence import Arrays, load_model, pack_ratings, refusing, unpack_ratings, write_model
from goodfence.neighbours.baseline import Base
from goodfence.neighbours.lists import Ranked, best_of, no_lists
from goodfence.neighbours.similarity import Similarity
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import Count, checked

IdsLike: TypeAlias = Sequence[Id] | npt.NDArray[Any]
R = TypeVar("R")


class Recommendations(NamedTuple):
    """Items that a user has not rated, best first."""

    items: npt.NDArray[Any]
    """The items' own ids."""
    scores: Floats
    """What the list is ranked by, which each model says of itself; `predict` returns predicted ratings."""

    def __repr__(self) -> str:
        return f"Recommendations({len(self.items)} items)"

    def _repr_html_(self) -> str:
        pairs = zip(self.items.tolist(), self.scores.tolist(), strict=True)
        rows = [(rank, item, f"{score:.2f}") for rank, (item, score) in enumerate(pairs, start=1)]
        return html_table(["", "item", "score"], rows, title="Recommendations")


@dataclass(frozen=True, eq=False)
class RecommendedLists:
    """The lists of several users: of each the items that they have not rated, best first."""

    users: npt.NDArray[Any]
    """The users' own ids."""
    columns: Rows
    """(users, n): the numbers of the items, -1 where a list is shorter."""
    scores: Floats
    """(users, n): as in `Recommendations`, NaN where a list is shorter."""
    catalogue: npt.NDArray[Any]
    """The ids of all items, by their number."""

    def __repr__(self) -> str:
        n = self.columns.shape[1]
        return f"RecommendedLists({len(self):,} users, at most {n:,} items each)"

    def __len__(self) -> int:
        return len(self.users)

    def __iter__(self) -> Iterator[Recommendations]:
        """Yield the list of each user in turn."""
        for columns, scores in zip(self.columns, self.scores, strict=True):
            listed = columns != NO_ITEM
            yield Recommendations(self.catalogue[columns[listed]], scores[listed])

    @cached_property
    def items(self) -> npt.NDArray[Any]:
        """(users, n): the items' own ids; of objects, with None where a list is shorter."""
        missing = self.columns == NO_ITEM
        if not missing.any():
            return self.catalogue[self.columns]
        found = np.full(self.columns.shape, None, dtype=object)
        found[~missing] = self.catalogue[self.columns[~missing]]
        return found

    def table(self) -> pa.Table:
        """Return an arrow table of user, rank (from 1), item and score."""
        rows, ranks = np.nonzero(self.columns != NO_ITEM)
        items, scores = self.catalogue[self.columns[rows, ranks]], self.scores[rows, ranks]
        table = {"user": self.users[rows], "rank": ranks + 1, "item": items, "score": scores}
        return pa.table(table)

    @checked
    def save(self, path: str | PathLike[str]) -> None:
        """Write the table to a `.parquet` or `.csv` file in one atomic step, readable by its owner only."""
        target = Path(path)
        if target.suffix.lower() not in (".parquet", ".csv"):
            raise FileProblem("path must end in .parquet or .csv")
        write_table(target, self.table(), mode=0o600)


class Recommender(Protocol):
    """What attack, audit and evaluation need: `fit`, which returns what can be asked, and at least one way to ask it.

    `predict(users, items)` and `recommend(user, n)` are asked for users of the data, `answer(profile, items)` and
    `answer_list(profile, n)` for out-of-sample users. `FittedRecommender` has all four.
    """

    def fit(self, ratings: Ratings, /) -> Any:
        """Learn, and return what can be asked."""
        ...


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
    attackers: tuple[str, ...] = ()
    """Names of attacks, in the registry, that are made for such a recommender and are tried as well."""
    fresh_noise: bool = False
    """Whether its guarantee is lost with a seed, so that an attack must not set one."""
    released: bool = False
    """Whether an answer rests on what the fit released and on the profile that asks: then one fit serves many."""


class FittedRecommender(ABC):
    """What all recommenders here share: they keep the ratings they were fitted to, as `ratings_`, and can be saved.

    A list is made of scores: those of the users in the data (`_row_list_scores`), or of a profile (`_list_scores`).
    For events these are also what is predicted.
    """

    learns_from: ClassVar[Feedback] = "explicit"
    """Ratings, or events."""
    _saved: ClassVar[tuple[str, ...]] = ()
    """The arguments that are saved."""
    _saved_as: ClassVar[str | None] = None
    """The kind that is saved, if it is not the class itself."""
    ratings_: Ratings

    def __repr__(self) -> str:
        stated = (f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({', '.join(stated)})"

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as they are saved."""
        return {name: getattr(self, name) for name in self._saved}

    @abstractmethod
    def fit(self, ratings: Ratings) -> Self:
        """Learn from the ratings; every random choice is made here, once."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return what is guaranteed, for which unit, and whether that is proved."""

    @checked
    def predict(self, users: IdsLike, items: IdsLike) -> Floats:
        """Return the predicted rating of users[j] for items[j], of events the score; NaN where there is none."""
        self._require_fitted()
        require(len(users) == len(items), "items", "as many as users", len(items))
        return self.predict_cells(self.ratings_.rows(users), self.ratings_.columns(items))

    def predict_cells(self, rows: AnyIntegers, columns: AnyIntegers) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""
        self._require_fitted()
        asked, wanted = self.ratings_.cells(rows, columns)
        found = np.empty(len(asked))
        for user, part in by_user(asked):
            found[part] = self._row_list_scores(user)[wanted[part]]
        return found

    @checked
    def recommend(self, user: Id | ProfileLike, n: Count = 10, *, allowed: IdsLike | None = None) -> Recommendations:
        """Return at most n items the user has not rated, best first.

        Parameters
        ----------
        user : id or {item: rating}
            A user of the data, or the profile of an out-of-sample user, as in `answer_list`.
        n : int, default 10
            How many items at most.
        allowed : sequence of ids, optional
            The items that may be listed; None for all. Those that are not in the data cannot be.
        """
        if isinstance(user, Mapping):
            return self.answer_list(user, n, allowed=allowed)
        self._require_fitted()
        asked: Any = user
        ranked = self._rank_rows(np.array([self.ratings_.row(asked)]), n, self._allowed(allowed))
        return self._as_ids(Ranked(ranked.columns[0], ranked.scores[0]))

    @checked
    def recommend_many(
        self, users: IdsLike | None = None, n: Count = 10, *, allowed: IdsLike | None = None
    ) -> RecommendedLists:
        """Return for each of these users, or for everybody, the list that `recommend` returns.

        Parameters
        ----------
        users : sequence of ids, optional
            Users of the data; None for all of them.
        n, allowed
            As in `recommend`.
        """
        self._require_fitted()
        ratings = self.ratings_
        rows = np.arange(ratings.shape[0]) if users is None else ratings.rows(users)
        ranked = self._rank_rows(rows, n, self._allowed(allowed))
        return RecommendedLists(ratings.users[rows], *ranked, ratings.items)

    @checked
    def answer(self, profile: ProfileLike, items: IdsLike) -> Floats:
        """Return predictions for an out-of-sample user (fold-in), from their ratings {item: rating}.

        Of events, scores, and the profile may be the items alone. The same profile gets the same answer, except where
        the model draws anew for each.
        """
        self._require_fitted()
        wanted = self.ratings_.columns(items)
        return self._fold_in(*self.ratings_.profile_cells(profile), wanted)

    def _fold_in(self, columns: AnyIntegers, values: Floats, wanted: AnyIntegers) -> Floats:
        return self._list_scores(columns, values)[wanted]

    @checked
    def answer_list(self, profile: ProfileLike, n: Count = 10, *, allowed: IdsLike | None = None) -> Recommendations:
        """Return at most n items for an out-of-sample user (fold-in), best first; `profile` as in `answer`."""
        self._require_fitted()
        columns, values = self.ratings_.profile_cells(profile)
        scores = self._list_scores(columns, values)
        return self._as_ids(best_of(scores, columns, self._allowed(allowed), n))

    @abstractmethod
    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        """Return what ranks each item in the list of an out-of-sample user; NaN where it is not to be listed."""

    def _row_list_scores(self, row: int) -> Floats:
        """Return what ranks each item in the list of a user of the data."""
        return self._list_scores(*row_of(self.ratings_.csr, row))

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        """Return the lists of users of the data, row by row; models that can do it faster do."""
        csr = self.ratings_.csr
        lists = no_lists(len(rows), n, csr.shape[1])
        for place, row in enumerate(rows.tolist()):
            found = best_of(self._row_list_scores(row), row_of(csr, row)[0], allowed, n)
            lists.columns[place, : len(found.columns)] = found.columns
            lists.scores[place, : len(found.columns)] = found.scores
        return lists

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model, with the ratings it answers from, to the file `path`, atomically."""
        write_model(path, *self.packed())

    def packed(self, ratings: Ratings | None = None) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return the kind, the settings and the arrays of the saved model, with its own ratings unless given."""
        self._require_fitted()
        stated, arrays = pack_ratings(self.ratings_ if ratings is None else ratings)
        settings = {**self._stated(), "ratings": stated}
        return self._saved_as or type(self).__name__, settings, {**arrays, **self._arrays()}

    def _stated(self) -> dict[str, Any]:
        """Return the settings of the saved model but for its ratings."""
        return {"arguments": self.settings()}

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that cannot be learnt again from ratings and settings."""
        return {}

    @classmethod
    def from_saved(cls, settings: dict[str, Any], arrays: Arrays) -> Self:
        """Return the fitted model of a manifest's settings and its arrays; what `save` cannot have written raises."""
        with refusing("the model's settings are not sound; save the model again"):
            ratings = unpack_ratings(settings["ratings"], arrays)
            return cls._restored(ratings, settings, arrays)

    @classmethod
    def _restored(
        cls,
        ratings: Ratings,
        settings: dict[str, Any],
        arrays: Arrays,  # noqa: ARG003 - for others
    ) -> Self:
        """Return the fitted model; one without any chance is fitted again."""
        return cls(**settings["arguments"]).fit(ratings)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the fitted model that was saved in the file `path`."""
        model = load_model(path)
        if not isinstance(model, cls):
            raise ModelFileError(f"the saved model is a {type(model).__name__}, not a {cls.__name__}")
        return model

    def _require_fitted(self) -> None:
        if not hasattr(self, "ratings_"):
            raise NotFittedError("the model must be fitted before it is asked; call fit(ratings)")

    def _allowed(self, allowed: IdsLike | None) -> Flags:
        """Return which items may be listed."""
        items = self.ratings_.items
        if allowed is None:
            return np.ones(len(items), dtype=np.bool_)
        single = all(isinstance(one, Hashable) for one in allowed)
        require(single, "allowed", "a sequence of ids", "a sequence of something else")
        wanted = Ids.of(list(dict.fromkeys(allowed)), "items")
        may = positions_among(Ids.of_sorted(items, "items"), wanted) >= 0
        require(bool(may.any()), "allowed", "items of the data, at least one", "none of them")
        return np.asarray(may, dtype=np.bool_)

    def _as_ids(self, ranked: Ranked) -> Recommendations:
        listed = ranked.columns != NO_ITEM
        return Recommendations(self.ratings_.items[ranked.columns[listed]], ranked.scores[listed])


def by_user(rows: AnyIntegers) -> Iterator[tuple[int, Integers]]:
    """Yield each user row among `rows`, ascending, and at which places it is."""
    order = np.argsort(rows, kind="stable")
    users, starts = np.unique(rows[order], return_index=True)
    yield from zip(users.tolist(), np.split(order, starts[1:]), strict=False)


def row_of(csr: Any, row: int) -> tuple[AnyIntegers, Floats]:
    """Return the columns and values of one row of a sparse matrix."""
    part = slice(csr.indptr[row], csr.indptr[row + 1])
    return csr.indices[part], csr.data[part]


def require_feedback(ratings: Ratings, wanted: Feedback, what: str) -> None:
    """Raise unless these are ratings, or events, as the model `what` needs them."""
    if ratings.feedback == wanted:
        return
    if wanted == "explicit":
        raise DataError(f"{what} needs ratings, and these are events (clicks or likes)")
    raise DataError(
        f"{what} needs events, and these are ratings; ratings.likes(4) (--likes 4) makes events of ratings of 4 or more"
    )


def unfitted_copy(recommender: R, rng: RNG) -> R:
    """Return a copy to be fitted and asked a little, with this `rng` if it has one; what was given stays as it is."""
    copied = copy.copy(recommender)
    for name, value in (("rng", rng), ("computes_ahead", False)):
        if hasattr(copied, name):
            setattr(copied, name, value)
    return copied


def fit_received(recommender: Any, received: Ratings) -> Any:
    """Fit to what users sent: where they change their ratings (`perturbed`), `fit` would let them do it again."""
    return getattr(recommender, "fit_sent", recommender.fit)(received)


def guarantee_of(recommender: Any) -> Guarantee:
    """Return the guarantee; a recommender that states none has the status `none`."""
    silent = Guarantee(status="none", reason="The recommender states no guarantee.")
    stated: Guarantee = getattr(recommender, "guarantee", lambda: silent)()
    return stated


def rated_rows(csr: Any, rows: AnyIntegers) -> Any:
    """Return some rows of the ratings, read-only as these are: no copy where they are all of them, in order."""
    if len(rows) == csr.shape[0] and bool((rows == np.arange(len(rows))).all()):
        return csr
    found = csr[rows]
    for array in (found.data, found.indices, found.indptr):  # kernels are compiled for one kind
        array.flags.writeable = False
    return found
