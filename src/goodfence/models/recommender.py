"""What every recommender can do, and what evaluation, attack and audit ask of one."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.arrays import AnyIntegers, Flags, Floats, Integers, Rows
from goodfence.data.columns import Feedback
from goodfence.data.files import write_table
from goodfence.data.ids import Ids
from goodfence.data.ratings import Id, ProfileLike, Ratings, positions_among
from goodfence.errors import DataError, FileProblem, MissingExtra, ModelFileError, NotFittedError, SettingError, require
from goodfence.kernels.lists import NO_ITEM
from goodfence.markup import html_table
from goodfence.models.persistence import Arrays, load_model, pack_ratings, refusing, unpack_ratings, write_model
from goodfence.neighbours.baseline import Base
from goodfence.neighbours.lists import Ranked, best_of, no_lists
from goodfence.neighbours.similarity import Similarity
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import Count, checked, is_sequence

IdsLike: TypeAlias = Sequence[Id] | npt.NDArray[Any]
Whom: TypeAlias = Id | ProfileLike  # who asks: a user of the data by id, or anybody by a profile
Measure: TypeAlias = Literal["rating", "rank", "similarity"]
R = TypeVar("R")
_SHOWN = 5  # how many lists a notebook shows


@dataclass(frozen=True, eq=False)
class Recommendations:
    """Items that somebody has not rated, best first; `items, scores = model.recommend(...)` takes it apart."""

    items: npt.NDArray[Any]
    """The items' own ids."""
    scores: Floats
    """What `predict` returns for them: the predicted ratings. Of events it is what ranks the list, and only its order
    means something."""
    titles: tuple[str, ...] = ()
    """What the items are called, where titles are known."""
    measure: Measure = "rating"
    """What the scores are: predicted ratings, similarities, or of events what ranks them, which is not shown."""

    def __repr__(self) -> str:
        return f"Recommendations({len(self.items)} items)"

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the items, then the scores."""
        yield from (self.items, self.scores)

    def _repr_html_(self) -> str:
        return html_table(*self.shown(), title="Recommendations")

    def shown(self) -> tuple[list[str], list[list[str]]]:
        """Return the list as text, head and rows: ranks, scores that mean something alone, ids and titles."""
        columns = {"": [f"{rank}" for rank in range(1, len(self.items) + 1)]}
        if self.measure != "rank":
            columns[self.measure] = ["" if np.isnan(score) else f"{score:.2f}" for score in self.scores.tolist()]
        columns["item"] = [str(item) for item in self.items.tolist()]
        if self.titles:
            columns["title"] = list(self.titles)
        return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True, eq=False)
class RecommendedLists:
    """The lists of several users or profiles: of each the items that they have not rated, best first."""

    users: npt.NDArray[Any]
    """The users' own ids; of profiles their places, from 0."""
    columns: Rows
    """(users, n): the numbers of the items, -1 where a list is shorter."""
    scores: Floats
    """(users, n): as in `Recommendations`, NaN where a list is shorter."""
    catalogue: npt.NDArray[Any]
    """The ids of all items, by their number."""
    titles: Mapping[Id, str]
    """What the items are called, where that is known."""
    measure: Measure = "rating"
    """As in `Recommendations`."""

    def __repr__(self) -> str:
        n = self.columns.shape[1]
        return f"RecommendedLists({len(self):,} users, at most {n:,} items each)"

    def __len__(self) -> int:
        return len(self.users)

    def __iter__(self) -> Iterator[Recommendations]:
        """Yield the list of each user in turn."""
        for columns, scores in zip(self.columns, self.scores, strict=True):
            yield listed_items(Ranked(columns, scores), self.catalogue, self.titles, self.measure)

    @cached_property
    def items(self) -> npt.NDArray[Any]:
        """(users, n): the items' own ids; of objects, with None where a list is shorter."""
        missing, ids = self.columns == NO_ITEM, self.catalogue
        if not missing.any():
            return ids[self.columns]
        found = np.full(self.columns.shape, None, dtype=object)
        found[~missing] = ids[self.columns[~missing]]
        return found

    def _repr_html_(self) -> str:
        head = ["", *(str(rank) for rank in range(1, self.columns.shape[1] + 1))]
        few = [[self.titles.get(item, item) for item in one.items.tolist()] for one in islice(self, _SHOWN)]
        rows = [[place, *items, *[""] * (len(head) - 1 - len(items))] for place, items in enumerate(few, start=1)]
        return html_table(head, rows, title=repr(self))

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return the table as a data frame of this library."""
        if backend != "pyarrow" and find_spec(backend) is None:
            raise MissingExtra(f"{backend} is not installed: pip install {backend}")
        return nw.from_arrow(self.table(), backend=backend).to_native()

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


def listed_items(
    ranked: Ranked, catalogue: npt.NDArray[Any], titles: Mapping[Id, str], measure: Measure
) -> Recommendations:
    """Return one ranked list with the items' own ids and titles."""
    listed = ranked.columns != NO_ITEM
    items = catalogue[ranked.columns[listed]]
    named = tuple(titles.get(item, "") for item in items.tolist()) if titles else ()
    return Recommendations(items, ranked.scores[listed], named, measure)


class Recommender(Protocol):
    """What attack, audit and evaluation need: `fit`, which returns what can be asked, and at least one way to ask it.

    These are `predict(users, items)` and `recommend(user, n)`. Users are ids, or profiles of out-of-sample users,
    {item: rating}; one that knows only profiles says so by `profiles_only = True`. `FittedRecommender` knows both.
    """

    def fit(self, ratings: Ratings, /) -> Any:
        """Learn, and return what can be asked."""


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

    def _repr_html_(self) -> str:
        fitted = f"{self.ratings_.shape[1]:,} items" if hasattr(self, "ratings_") else "no"
        rows = [("settings", repr(self)), ("fitted", fitted), ("guarantee", str(self.guarantee()))]
        return html_table([type(self).__name__, ""], rows)

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
    def predict(self, users: Whom | Sequence[Whom], items: IdsLike) -> Floats:
        """Return the predicted rating of users[j] for items[j], of events the score; NaN where there is none.

        Parameters
        ----------
        users : sequence of ids or profiles, or one id or profile {item: rating}
            Users of the data, or profiles as in `recommend`, one for each item; one alone is asked for all the items.
        items : sequence of ids
            The items.
        """
        self._require_fitted()
        wanted, asked = self.ratings_.columns(items), users
        if isinstance(asked, Mapping):
            return self._fold_in(*self.ratings_.profile_cells(asked), wanted)
        if not is_sequence(asked):
            return self.predict_cells(np.full(len(wanted), self.ratings_.row(asked)), wanted)  # type: ignore[arg-type]
        several: Any = asked
        require(len(several) == len(wanted), "items", "as many as users", len(wanted))
        if not _are_profiles(several):
            return self.predict_cells(self.ratings_.rows(several), wanted)
        places: dict[int, list[int]] = {}
        for place, profile in enumerate(several):
            places.setdefault(id(profile), []).append(place)
        found = np.empty(len(wanted))
        for own in places.values():
            found[own] = self._fold_in(*self.ratings_.profile_cells(several[own[0]]), wanted[own])
        return found

    def predict_cells(self, rows: AnyIntegers, columns: AnyIntegers) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""
        self._require_fitted()
        asked, wanted = self.ratings_.cells(rows, columns)
        found = np.empty(len(asked))
        for user, part in by_user(asked):
            found[part] = self._row_list_scores(user)[wanted[part]]
        return found

    @checked
    def recommend(self, user: Whom, n: Count = 10, *, allowed: IdsLike | None = None) -> Recommendations:
        """Return at most n items the user has not rated, best first.

        Parameters
        ----------
        user : id, {item: rating}, or list of items
            A user of the data, or the profile of anybody (fold-in). Where a profile names items alone, each counts as
            the best rating of the scale, or as one event. Items that the model does not know are ignored, with a
            warning of how many; if it knows none that is an error.
        n : int, default 10
            How many items at most.
        allowed : sequence of ids, optional
            The items that may be listed; None for all. Those that are not in the data cannot be.

        Notes
        -----
        Equal profiles get equal lists, except where the model draws anew for each. The order is not always that of the
        predicted ratings: see `docs/ranking.md`.
        """
        self._require_fitted()
        may = self._allowed(allowed)
        if isinstance(user, Mapping) or is_sequence(user):
            return self._as_ids(self._rank_profile(user, n, may))
        row = np.array([self.ratings_.row(user)])  # type: ignore[arg-type]
        ranked = self._with_predictions(row, self._rank_rows(row, n, may))
        return self._as_ids(Ranked(ranked.columns[0], ranked.scores[0]))

    @checked
    def recommend_many(
        self, users: Sequence[Whom] | npt.NDArray[Any] | None = None, n: Count = 10, *, allowed: IdsLike | None = None
    ) -> RecommendedLists:
        """Return what `recommend` lists, `n` and `allowed` as there, for several users or profiles; None is all."""
        self._require_fitted()
        ratings, may, several = self.ratings_, self._allowed(allowed), users
        if several is not None and _are_profiles(several):
            lists = no_lists(len(several), n, ratings.shape[1])
            for place, profile in enumerate(several):
                _put(lists, place, self._rank_profile(profile, n, may))
            return self._as_lists(np.arange(len(several)), lists)
        asked: Any = several
        rows = np.arange(ratings.shape[0]) if asked is None else ratings.rows(asked)
        return self._as_lists(ratings.users[rows], self._with_predictions(rows, self._rank_rows(rows, n, may)))

    @checked
    def similar_items(self, item: Id, n: Count = 10, *, allowed: IdsLike | None = None) -> Recommendations:
        """Return at most n other items, the most similar first, with their similarities.

        Of a private model they follow from what it released: asking is free, and shows nothing of anybody's data. Of a
        user-based `NeighbourCF` they are the raw similarities of the items' ratings, which no mechanism protects.
        """
        self._require_fitted()
        column = self.ratings_.columns([item])
        found = self._similarities(int(column[0]))
        if found is None:
            raise SettingError(f"similar_items needs a recommender that compares items, and {self!r} does not")
        return self._as_ids(best_of(found, column, self._allowed(allowed), n), "similarity")

    def _similarities(self, column: int) -> Floats | None:  # noqa: ARG002 - for others
        """Return how similar each item is to this one, NaN where nothing is known; None if items are not compared."""
        return None

    @property
    def _ranked_by_prediction(self) -> bool:
        """Whether lists are ranked by what `predict` returns."""
        return self.ratings_.feedback == "implicit"

    def _with_predictions(self, rows: AnyIntegers, ranked: Ranked) -> Ranked:
        """Return the lists of these users with what `predict` returns as their scores."""
        if self._ranked_by_prediction:
            return ranked
        places, ranks = np.nonzero(ranked.columns != NO_ITEM)
        scores = np.full(ranked.scores.shape, np.nan)
        scores[places, ranks] = self.predict_cells(rows[places], ranked.columns[places, ranks])
        return Ranked(ranked.columns, scores)

    def _rank_profile(self, profile: Any, n: int, allowed: Flags) -> Ranked:
        """Return the list of an out-of-sample user, with what `predict` returns as its scores."""
        columns, values = self.ratings_.profile_cells(profile)
        ranked = best_of(self._list_scores(columns, values), columns, allowed, n)
        if self._ranked_by_prediction or not len(ranked.columns):
            return ranked
        return Ranked(ranked.columns, self._fold_in(columns, values, ranked.columns.astype(np.int64)))

    def _fold_in(self, columns: AnyIntegers, values: Floats, wanted: AnyIntegers) -> Floats:
        """Return predictions of `wanted` for an out-of-sample user, as `predict` does."""
        return self._list_scores(columns, values)[wanted]

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
            _put(lists, place, best_of(self._row_list_scores(row), row_of(csr, row)[0], allowed, n))
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

    @property
    def _measure(self) -> Measure:
        return "rank" if self.ratings_.feedback == "implicit" else "rating"

    def _as_ids(self, ranked: Ranked, measure: Measure | None = None) -> Recommendations:
        ratings = self.ratings_
        return listed_items(ranked, ratings.items, ratings.titles, measure or self._measure)

    def _as_lists(self, users: npt.NDArray[Any], ranked: Ranked) -> RecommendedLists:
        ratings = self.ratings_
        return RecommendedLists(users, *ranked, ratings.items, dict(ratings.titles), self._measure)


def _are_profiles(users: Any) -> bool:
    """Return whether these are profiles and not ids; several are of one kind."""
    first = next(iter(users), None)
    return isinstance(first, Mapping) or is_sequence(first)


def _put(lists: Ranked, place: int, found: Ranked) -> None:
    """Write one list to its place among several."""
    lists.columns[place, : len(found.columns)] = found.columns
    lists.scores[place, : len(found.columns)] = found.scores


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
    return getattr(recommender, "guarantee", lambda: silent)()


def rated_rows(csr: Any, rows: AnyIntegers) -> Any:
    """Return some rows of the ratings, read-only as these are: no copy where they are all of them, in order."""
    if len(rows) == csr.shape[0] and bool((rows == np.arange(len(rows))).all()):
        return csr
    found = csr[rows]
    for array in (found.data, found.indices, found.indptr):  # kernels are compiled for one kind
        array.flags.writeable = False
    return found
