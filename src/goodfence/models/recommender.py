"""What every recommender can do, and what evaluation, attack and audit ask of one."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.arrays import AnyIntegers, Flags, Floats, Rows
from goodfence.data.columns import Feedback
from goodfence.data.files import write_table
from goodfence.data.ids import Ids
from goodfence.data.ratings import Id, Profile, ProfileLike, Ratings, positions_among
from goodfence.errors import DataError, FileProblem, NotFittedError, require
from goodfence.kernels.lists import NO_ITEM
from goodfence.markup import html_table
from goodfence.models.persistence import load_as
from goodfence.neighbours.baseline import Base
from goodfence.neighbours.lists import Ranked, best_of, no_lists
from goodfence.neighbours.similarity import Similarity
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import checked, integer

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
        """Return what was asked for, as a notebook shows it: items and scores, and not whose they are."""
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
        return (
            f"RecommendedLists({len(self):,} users, at most {self.columns.shape[1]:,} items each)"
        )

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
        columns = self.columns[rows, ranks]
        return pa.table(
            {
                "user": self.users[rows],
                "rank": ranks + 1,
                "item": self.catalogue[columns],
                "score": self.scores[rows, ranks],
            }
        )

    @checked
    def save(self, path: str | PathLike[str]) -> None:
        """Write the table to a `.parquet` or `.csv` file in one atomic step, readable by its owner only."""
        target = Path(path)
        if target.suffix.lower() not in (".parquet", ".csv"):
            raise FileProblem("path must end in .parquet or .csv")
        write_table(target, self.table(), mode=0o600)


class Recommender(Protocol):
    """A recommender that is fitted to ratings or events, predicts, and states its guarantee."""

    def fit(self, ratings: Ratings) -> Self:
        """Learn from the ratings; every random choice is made here, once."""
        ...

    def predict(self, users: IdsLike, items: IdsLike) -> Floats:
        """Return the predicted rating of users[j] for items[j], NaN where there is none."""
        ...

    def recommend(
        self, user: Id, n: int = 10, *, allowed: IdsLike | None = None
    ) -> Recommendations:
        """Return at most n items the user has not rated, best first."""
        ...

    def recommend_many(
        self, users: IdsLike | None = None, n: int = 10, *, allowed: IdsLike | None = None
    ) -> RecommendedLists:
        """Return the lists of these users, or of everybody."""
        ...

    def answer(self, profile: Profile, items: IdsLike) -> Floats:
        """Return predictions for an out-of-sample user, from their ratings {item: rating} (fold-in)."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what is guaranteed, for which unit, and whether that is proved."""
        ...

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted recommender to a file, atomically."""
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


class ShowsLists(Protocol):
    """All that an attack needs of a recommender of lists that knows its users: `fit` and `recommend`."""

    def fit(self, ratings: Ratings, /) -> Any:
        """Learn, and return what can be asked."""
        ...

    def recommend(self, user: Any, n: int, /) -> Any:
        """Return at most n items, best first: ids, ids and scores, or `Recommendations`."""
        ...


class FoldsInLists(Protocol):
    """All that an attack needs of a recommender of lists that is asked with a profile: `fit` and `answer_list`."""

    def fit(self, ratings: Ratings, /) -> Any:
        """Learn, and return what can be asked."""
        ...

    def answer_list(self, profile: Any, n: int, /) -> Any:
        """Return at most n items for an out-of-sample user, as `recommend` does."""
        ...


Attackable: TypeAlias = Predicts | FoldsIn | ShowsLists | FoldsInLists
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
    """What recommenders share that keep the ratings they were fitted to, as `ratings_`.

    A list is made of scores: those of the users in the data (`_row_list_scores`), or of a profile (`_list_scores`).
    """

    ratings_: Ratings

    @checked
    def predict(self, users: IdsLike, items: IdsLike) -> Floats:
        """Return the predicted rating of users[j] for items[j], of events the score; NaN where there is none."""
        self._require_fitted()
        require(len(users) == len(items), "items", "as many as users", len(items))
        return self.predict_cells(self.ratings_.rows(users), self.ratings_.columns(items))

    @abstractmethod
    def predict_cells(self, rows: AnyIntegers, columns: AnyIntegers) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""

    @checked
    def recommend(
        self, user: Id, n: int = 10, *, allowed: IdsLike | None = None
    ) -> Recommendations:
        """Return at most n items the user has not rated, best first.

        Parameters
        ----------
        user : id
            A user of the data.
        n : int, default 10
            How many items at most.
        allowed : sequence of ids, optional
            The items that may be listed; None for all. Those that are not in the data cannot be.
        """
        self._require_fitted()
        row = np.array([self.ratings_.row(user)])
        ranked = self._rank_rows(row, integer(n, "n", least=1), self._allowed(allowed))
        return self._as_ids(Ranked(ranked.columns[0], ranked.scores[0]))

    @checked
    def recommend_many(
        self, users: IdsLike | None = None, n: int = 10, *, allowed: IdsLike | None = None
    ) -> RecommendedLists:
        """Return for each of these users, or for everybody, the list that `recommend` returns.

        Parameters
        ----------
        users : sequence of ids, optional
            Users of the data; None for all of them.
        n, allowed
            As in `recommend`.

        Examples
        --------
        >>> import goodfence as gf
        >>> films = gf.load("movietweetings")
        >>> gf.NeighbourCF(gf.KNN(k=30)).fit(films).recommend_many(films.users[:3], n=5)
        RecommendedLists(3 users, at most 5 items each)
        """
        self._require_fitted()
        ratings = self.ratings_
        rows = np.arange(ratings.shape[0]) if users is None else ratings.rows(users)
        ranked = self._rank_rows(rows, integer(n, "n", least=1), self._allowed(allowed))
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

    @abstractmethod
    def _fold_in(self, columns: AnyIntegers, values: Floats, wanted: AnyIntegers) -> Floats:
        """Return predictions of the wanted columns for an out-of-sample user with these ratings."""

    @checked
    def answer_list(
        self, profile: ProfileLike, n: int = 10, *, allowed: IdsLike | None = None
    ) -> Recommendations:
        """Return at most n items for an out-of-sample user (fold-in), best first; `profile` as in `answer`."""
        self._require_fitted()
        columns, values = self.ratings_.profile_cells(profile)
        scores = self._list_scores(columns, values)
        n = integer(n, "n", least=1)
        return self._as_ids(best_of(scores, columns, self._allowed(allowed), n))

    @abstractmethod
    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        """Return what ranks each item in the list of an out-of-sample user; NaN where it is not to be listed."""

    def _row_list_scores(self, row: int) -> Floats:
        """Return what ranks each item in the list of a user of the data."""
        return self._list_scores(*row_of(self.ratings_.csr, row))

    def _score_cells(self, rows: Any, columns: Any) -> Floats:
        """Return what ranks items in lists, for cells given by user row and item column, a user at a time."""
        self._require_fitted()
        asked, wanted = self.ratings_.cells(rows, columns)
        order = np.argsort(asked, kind="stable")
        users, starts = np.unique(asked[order], return_index=True)
        found = np.empty(len(asked))
        parts = np.split(order, starts[1:]) if len(order) else []
        for user, part in zip(users.tolist(), parts, strict=True):
            found[part] = self._row_list_scores(user)[wanted[part]]
        return found

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        """Return the lists of users of the data, row by row; models that can do it faster do."""
        csr = self.ratings_.csr
        lists = no_lists(len(rows), n, csr.shape[1])
        for place, row in enumerate(rows.tolist()):
            found = best_of(self._row_list_scores(row), row_of(csr, row)[0], allowed, n)
            lists.columns[place, : len(found.columns)] = found.columns
            lists.scores[place, : len(found.columns)] = found.scores
        return lists

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the fitted model that was saved in the file `path`."""
        return load_as(cls, path)

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
        flags: Flags = may
        return flags

    def _as_ids(self, ranked: Ranked) -> Recommendations:
        listed = ranked.columns != NO_ITEM
        return Recommendations(self.ratings_.items[ranked.columns[listed]], ranked.scores[listed])


def row_of(csr: Any, row: int) -> tuple[AnyIntegers, Floats]:
    """Return the columns and values of one row of a sparse matrix."""
    part = slice(csr.indptr[row], csr.indptr[row + 1])
    return csr.indices[part], csr.data[part]


def require_feedback(ratings: Ratings, wanted: Feedback, what: str) -> None:
    """Raise unless these are ratings, or events, as the model `what` needs them."""
    if ratings.feedback == wanted:
        return
    if wanted == "explicit":
        raise DataError(f"{what} must be fitted to ratings, and these are events (clicks or likes)")
    raise DataError(
        f"{what} must be fitted to events, and these are ratings; ratings.likes(4) makes events of those of 4 or more"
    )


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


def rows_of(csr: Any, rows: AnyIntegers) -> Any:
    """Return some rows of the ratings, read-only as these are: no copy where they are all of them, in order."""
    if len(rows) == csr.shape[0] and bool((rows == np.arange(len(rows))).all()):
        return csr
    found = csr[rows]
    for array in (found.data, found.indices, found.indptr):  # kernels are compiled for one kind
        array.flags.writeable = False
    return found
