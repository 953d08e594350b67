"""Ratings: who rated what how, as one immutable sparse matrix with the caller's own ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Floats, Integers
from goodfence.data.columns import FEEDBACK
from goodfence.data.columns import Feedback as Feedback
from goodfence.data.frame import ReadOptions, Triplets, read_triplets
from goodfence.data.ids import Ids
from goodfence.data.matrix import frozen, liked_cells, move_columns
from goodfence.data.scale import Scale, ScaleLike
from goodfence.errors import DataError, SettingError, ValueProblem, given, require, warn
from goodfence.markup import html_table
from goodfence.settings import checked, finite, is_number, is_sequence, one_of

Id: TypeAlias = str | int
IdSequence: TypeAlias = Sequence[Id] | npt.NDArray[Any]
Profile: TypeAlias = Mapping[Any, float]  # what one user rated, by item id; or who rated one item, by user id
ProfileLike: TypeAlias = Profile | IdSequence
"""The same, or the items alone: each counts as the best rating, or as one event."""


class Ratings:
    """An immutable users x items matrix of ratings, or of events (implicit feedback).

    A stored 0 is a rating of 0; only what is not stored was not rated. An event is stored as 1, or as how often it
    happened where the caller asked for that.

    Parameters
    ----------
    csr : scipy.sparse.csr_array
        The ratings, users x items, each cell at most once.
    users, items : sequence of id
        The ids of the rows and of the columns, integers or text, all different.
    scale : Scale or tuple of float, optional
        What ratings can be given: a `Scale`, or (lowest, highest) or (lowest, highest, step),
        which declares it. None observes it from the data, and says so.
    titles : mapping of id to str, optional
        What the items are called, where that is known.
    items_declared : bool, default True
        Whether `items` is stated by the caller or a catalogue; False where these are the items that somebody rated,
        a list which a private model does not take for public.
    feedback : {"explicit", "implicit"}, default "explicit"
        Whether these are ratings, or events such as clicks, purchases and plays. Events have no scale to declare.
    times : array of int64, optional
        When each rating was given, in the order of `csr.data`; `csr` must then be in canonical order.
    liked_from : float, optional
        Of events that were ratings: the least rating that counts as one.

    Examples
    --------
    >>> from scipy import sparse
    >>> matrix = sparse.csr_array(np.array([[5.0, 0.0], [3.0, 4.0]]))
    >>> ratings = Ratings(matrix, users=["ann", "bob"], items=[10, 20], scale=(1, 5))
    >>> ratings
    Ratings(2 users x 2 items, 3 ratings, integers 1-5)
    >>> ratings.likes(4)
    Ratings(2 users x 2 items, 2 events)
    """

    def __init__(
        self,
        csr: sparse.csr_array,
        users: IdSequence | Ids,
        items: IdSequence | Ids,
        scale: ScaleLike | None = None,
        titles: Mapping[Any, str] | None = None,
        *,
        items_declared: bool = True,
        feedback: Feedback = "explicit",
        times: npt.ArrayLike | None = None,
        liked_from: float | None = None,
    ) -> None:
        self._user_ids, self._item_ids = Ids.of(users, "users"), Ids.of(items, "items")
        one_of(feedback, "feedback", FEEDBACK)
        self._feedback: Feedback = feedback
        self._times = _checked_times(csr, times)
        self._times_of: Ratings | None = None
        if liked_from is not None:
            require(feedback == "implicit", "liked_from", "left out for ratings", liked_from)
            liked_from = finite(liked_from, "liked_from")
        self._liked_from = liked_from
        self._csr = frozen(csr)
        shape = (len(self._user_ids), len(self._item_ids))
        require(self._csr.shape == shape, "csr", f"of shape {shape}", self._csr.shape)
        self._scale = _checked_scale(self._csr.data, scale, feedback)
        named = titles is None or isinstance(titles, Mapping)
        require(named, "titles", "a mapping of items to text", type(titles))
        self._titles = dict(titles or {})
        self._items_declared = items_declared

    @classmethod
    @checked
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        time: str | None = None,
        scale: ScaleLike | None = None,
        feedback: Feedback = "explicit",
        likes: float | None = None,
        items: IdSequence | Ids | None = None,
        read: ReadOptions | str | None = None,
    ) -> Ratings:
        """Return the ratings of a data frame: pandas, polars, arrow, or anything narwhals knows.

        Parameters
        ----------
        frame : data frame
            One row per rating, or per event.
        user, item, rating, time, scale, feedback, likes, items, read
            As in `gf.load`; of `read`, the options `weight` and `duplicates` count.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"userId": [1, 2, 2], "movieId": [7, 7, 8], "rating": [4.0, 5.0, 1.5]})
        >>> Ratings.from_frame(table, scale=(0.5, 5, 0.5))
        Ratings(2 users x 2 items, 3 ratings, 0.5-5 in steps of 0.5)
        >>> Ratings.from_frame(table.drop(["rating"]), feedback="implicit")
        Ratings(2 users x 2 items, 3 events)
        """
        columns = {"user": user, "item": item, "rating": rating, "time": time}
        options = ReadOptions.parse(read).merged(**columns, scale=scale, likes=likes, feedback=feedback)
        ratings = cls.from_triplets(read_triplets(frame, options), options)
        return ratings if items is None else ratings.on_items(items)

    @classmethod
    @checked
    def from_triplets(cls, triplets: Triplets, options: ReadOptions) -> Ratings:
        """Return the ratings or the events of checked triplets, read with these options."""
        found = cls(
            triplets.csr(),
            triplets.users,
            triplets.items,
            options.scale,
            items_declared=False,
            feedback="explicit" if options.rated else "implicit",
            times=triplets.times,
        )
        return found if options.likes is None else found.liked(options.likes)

    @property
    def feedback(self) -> Feedback:
        """Whether these are ratings ("explicit") or events ("implicit")."""
        return self._feedback

    @property
    def times(self) -> Integers | None:
        """When each rating was given, in the order of `csr.data`; None where that is not known."""
        if self._times_of is not None:  # few who transpose ask when
            turned = self._times_of._carried(lambda places: sparse.csr_array(places.T.tocsr()))
            self._times, self._times_of = turned, None
        return self._times

    @property
    def liked_from(self) -> float | None:
        """Of events that were ratings, the least rating that counts as one; None of all others."""
        return self._liked_from

    @property
    def csr(self) -> sparse.csr_array:
        """The ratings, users x items; read-only."""
        return self._csr

    @property
    def users(self) -> npt.NDArray[Any]:
        """The users' own ids, in row order."""
        return self._user_ids.values

    @property
    def items(self) -> npt.NDArray[Any]:
        """The items' own ids, in column order."""
        return self._item_ids.values

    @property
    def scale(self) -> Scale:
        """Which ratings can be given."""
        return self._scale

    @property
    def items_declared(self) -> bool:
        """Whether the list of items was stated, and not taken from what was rated."""
        return self._items_declared

    @property
    def shape(self) -> tuple[int, int]:
        """The number of users and of items."""
        return len(self._user_ids), len(self._item_ids)

    @property
    def n_ratings(self) -> int:
        """The number of ratings."""
        return int(self._csr.nnz)

    @cached_property
    def transposed(self) -> Ratings:
        """The same ratings, items x users: built once, and its own transposed is this very object."""
        other = Ratings.__new__(Ratings)
        other._user_ids, other._item_ids = self._item_ids, self._user_ids
        other._csr = frozen(sparse.csr_array(self._csr.T.tocsr()))
        other._scale, other._titles = self._scale, self._titles
        other._items_declared = self._items_declared
        other._feedback, other._liked_from = self._feedback, self._liked_from
        other._times, other._times_of = None, self
        other.__dict__["transposed"] = self
        return other

    @checked
    def rows(self, users: IdSequence) -> Integers:
        """Return the row numbers of these users."""
        return self._user_ids.positions(users)

    def row(self, user: Id) -> int:
        """Return the row number of one user."""
        asked: Any = user
        if isinstance(asked, list | tuple | set | dict | np.ndarray):
            raise SettingError(f"user must be one id, got {given(type(user))}; recommend_many takes several")
        return int(self.rows([user])[0])

    @checked
    def columns(self, items: IdSequence) -> Integers:
        """Return the column numbers of these items."""
        return self._item_ids.positions(items)

    def cells(self, rows: Any, columns: Any) -> tuple[Integers, Integers]:
        """Return row and column numbers as kernels take them: as many of each, and all within the matrix."""
        asked = []
        n_rows, n_columns = self.shape
        for name, numbers, size in (("rows", rows, n_rows), ("columns", columns, n_columns)):
            array = np.asarray(numbers)
            whole = array.ndim == 1 and (array.dtype.kind in "iu" or not array.size)
            if not whole or (array.size and not (array.min() >= 0 and array.max() < size)):
                raise DataError(f"{name} must be numbers of {name} of the ratings; at least one is not")
            asked.append(np.asarray(array, dtype=np.int64))
        require(len(asked[0]) == len(asked[1]), "columns", "as many as rows", len(asked[1]))
        return asked[0], asked[1]

    def profile_cells(self, profile: ProfileLike) -> tuple[Integers, Floats]:
        """Return the columns, ascending, and the ratings of an out-of-sample user, given as {item: rating}.

        Items alone are enough: each counts as the best rating of the scale, or as one event. What is no finite number,
        off a declared scale, or named twice is an error. Unknown items are left out, which a warning counts, unless all
        are unknown.
        """
        told: Any = profile
        mapped, of_events = isinstance(told, Mapping), self._feedback == "implicit"
        if not mapped and not is_sequence(told):
            kind = f"a mapping of items to {'counts' if of_events else 'ratings'}, or a list of items"
            raise SettingError(f"profile must be {kind}, got {given(type(told))}")
        columns, values = self._item_ids.find(list(told)), self._profile_values(told)
        known = np.flatnonzero(columns >= 0)
        if len(known) < len(columns):
            if not len(known):
                hint = "" if mapped else "; for several users call recommend_many"
                raise self._item_ids.unknown("none of the items of the profile is known", hint)
            unknown = f"{len(columns) - len(known):,} of the {len(columns):,} items of the profile"
            warn(f"the model does not know {unknown}, and ignored them")
        order = known[np.argsort(columns[known])]
        if (np.diff(columns[order]) == 0).any():
            raise ValueProblem("a profile must name each item once")
        return columns[order], values[order]

    def _profile_values(self, profile: Any) -> Floats:
        """Return the ratings of a profile, in its order; of items alone the best rating, or one event."""
        if not isinstance(profile, Mapping):
            return np.full(len(profile), 1.0 if self._feedback == "implicit" else self.scale.highest)
        if not all(is_number(rating) for rating in profile.values()):
            raise ValueProblem("a profile must hold finite ratings only")
        values = np.array(list(profile.values()), dtype=np.float64)
        if self._feedback == "implicit" and not (values > 0).all():
            raise ValueProblem("every event of a profile must count more than 0")
        if self._feedback == "explicit" and self.scale.declared and not self.scale.holds(values).all():
            raise ValueProblem("every rating of the profile must be on the scale; one is not")
        return values

    def title(self, item: Id) -> str:
        """Return what the item is called, or its id where no title is known."""
        require(isinstance(item, str | int | np.integer), "item", "one id", type(item))
        return str(self._titles.get(item, item))

    @property
    def titles(self) -> Mapping[Id, str]:
        """What the items are called, where that is known; read-only."""
        return MappingProxyType(self._titles)

    @checked
    def on_items(self, items: IdSequence | Ids) -> Ratings:
        """Return the same ratings with these items as columns, in this order; all that were rated must be there.

        A private model takes the list of items as public, and needs one that the caller states.
        """
        wanted = Ids.of(items, "items")
        if len(self._item_ids) and wanted.are_text != self._item_ids.are_text:
            raise SettingError("the given items must be ids of the same kind as those of the ratings")
        positions = positions_among(self._item_ids, wanted)
        rated = np.zeros(len(positions), dtype=np.bool_)
        rated[self._csr.indices] = True
        if (positions[rated] < 0).any():
            raise DataError("items must list every item that was rated, and at least one is missing")
        moved = move_columns(self._csr, positions, len(wanted))
        moved.sum_duplicates()  # in canonical order, as the times will be
        times = self._carried(lambda places: move_columns(places, positions, len(wanted)))
        return self.replaced(moved, times, items=wanted, items_declared=True)

    def _carried(self, moved: Callable[[sparse.csr_array], sparse.csr_array]) -> Integers | None:
        """Return the times in the order of the ratings after `moved`, if there are any."""
        times = self.times
        if times is None:
            return None
        csr = self._csr
        places = (np.arange(float(csr.nnz)), csr.indices, csr.indptr)
        order = moved(sparse.csr_array(places, shape=csr.shape))
        order.sum_duplicates()
        return _frozen_times(times[order.data.astype(np.int64)])

    def replaced(
        self,
        csr: sparse.csr_array,
        times: Integers | None = None,
        *,
        users: IdSequence | None = None,
        items: IdSequence | Ids | None = None,
        titles: Mapping[Any, str] | None = None,
        items_declared: bool | None = None,
    ) -> Ratings:
        """Return ratings of the same scale with another matrix and its times; None keeps ids and titles."""
        return Ratings(
            csr,
            self._user_ids if users is None else users,
            self._item_ids if items is None else items,
            self._scale,
            self._titles if titles is None else titles,
            items_declared=self._items_declared if items_declared is None else items_declared,
            feedback=self._feedback,
            times=times,
            liked_from=self._liked_from,
        )

    @checked
    def likes(self, at: float) -> Ratings:
        """Return the ratings of at least `at` as events, with the same users and items; all others are left out."""
        least = finite(at, "at")
        require(self._feedback == "explicit", "ratings", "ratings and not events", self._feedback)
        return Ratings(
            liked_cells(self._csr, least),
            self._user_ids,
            self._item_ids,
            titles=self._titles,
            items_declared=self._items_declared,
            feedback="implicit",
            times=None if self.times is None else self.times[self._csr.data >= least],
            liked_from=least,
        )

    def liked(self, at: float) -> Ratings:
        """Return the same as `likes`, and raise where nothing is left."""
        events = self.likes(at)
        if events.n_ratings == 0:
            raise DataError("likes must leave an event, and no rating is at least that (--likes)")
        return events

    def _repr_html_(self) -> str:
        n_users, n_items = self.shape
        implicit = self._feedback == "implicit"
        what = "events" if implicit else "ratings"
        counts = {"users": n_users, "items": n_items, what: self.n_ratings}
        rows = [(name, f"{count:,}") for name, count in counts.items()]
        if not implicit:
            rows.append(("scale", str(self.scale)))
        elif self._liked_from is not None:
            rows.append(("made of", f"ratings of at least {self._liked_from:g}"))
        return html_table(["Ratings", ""], rows)

    def __repr__(self) -> str:
        n_users, n_items = self.shape
        shape = f"{n_users:,} users x {n_items:,} items"
        if self._feedback == "implicit":
            return f"Ratings({shape}, {self.n_ratings:,} events)"
        return f"Ratings({shape}, {self.n_ratings:,} ratings, {self.scale})"


def _checked_times(csr: Any, times: npt.ArrayLike | None) -> Integers | None:
    """Return times that cannot be written to: one 64-bit integer for each rating of a matrix in canonical order."""
    if times is None:
        return None
    given = np.array(times)
    whole = given.ndim == 1 and given.dtype.kind in "iu"
    ordered = sparse.issparse(csr) and csr.format == "csr" and csr.has_canonical_format
    if not whole or not ordered or len(given) != csr.nnz:
        raise DataError("times must be integers, one for each rating of a csr in canonical order")
    return _frozen_times(given.astype(np.int64))


def _frozen_times(times: Integers) -> Integers:
    times.flags.writeable = False
    return times


def _checked_scale(values: Floats, scale: ScaleLike | None, feedback: Feedback) -> Scale:
    if feedback == "implicit":
        if not (values > 0).all():
            raise DataError("every event must count more than 0; at least one does not")
        return Scale(1, 1) if (values == 1).all() else Scale.observed(values)
    if scale is None:
        if values.size == 0:
            raise DataError("ratings must not be empty unless their scale is declared")
        return Scale.observed(values)
    stated = Scale.of(scale)
    if not stated.holds(values).all():
        raise DataError(f"every rating must be on the scale ({stated}); at least one is not")
    return stated


def positions_among(items: Ids, wanted: Ids) -> Integers:
    """Return the position of each item among the wanted ones, or -1; 7 is the same as "7", and not as "07"."""
    listed, asked = wanted.values.tolist(), items.values.tolist()
    if wanted.are_text != items.are_text:
        listed, asked = [str(item) for item in listed], [str(item) for item in asked]
    position = {item: at for at, item in enumerate(listed)}
    return np.array([position.get(item, -1) for item in asked], dtype=np.int64)
