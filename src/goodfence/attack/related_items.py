"""The passive attack on related-items lists over time, after Calandrino et al. (2011): watch, and compare.

The attacker opens no account. They know some of the items that the target rated, and look at the public lists "related
to this item" of these before and after a refresh. A rating by the target of a new item x raises x on the list of every
item that they rated. So the score of x is

    s(x) = how many of the known items have x on their list after the refresh, and had it lower or not at all before,

and the attacker names the x with the highest score, if one alone has it (or every x with at least so many).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.arrays import Flags, Floats, Integers, Rows, row_numbers
from goodfence.attack.scoring import Estimate, combination, share
from goodfence.attack.targets import KNOWLEDGE, SAMPLES, TARGETS, Wanted
from goodfence.data.ratings import Id, Ratings
from goodfence.errors import DataError, require
from goodfence.kernels.attack import RatedSoFar, count_ratings, count_risen, nearest_items
from goodfence.parallel import bar
from goodfence.rng import RNG, Streams, seed_of
from goodfence.settings import Count, at_least, checked, each

ListsOf: TypeAlias = Callable[[Ratings], Mapping[Any, Sequence[Id]]]

DEFAULT_TARGETS = 60
"""How many users are watched."""
Intervals: TypeAlias = Annotated[tuple[int, ...], each(at_least(1))]
EVERY = (1, 20, 100, 500)
"""After how many ratings, by anybody, the lists are refreshed."""


class RatingLog:
    """Ratings in an order, that of their times unless another is given; equal times are in the order of the matrix."""

    def __init__(self, ratings: Ratings, order: Integers | None = None) -> None:
        if order is None:
            if ratings.times is None:
                raise DataError("the ratings must have times; name their column with time=")
            order = np.argsort(ratings.times, kind="stable")
        self.ratings, self.order, csr = ratings, order, ratings.csr
        self.rows = row_numbers(csr.indptr)[self.order]
        self.columns = csr.indices.astype(np.int64)[self.order]

    def until(self, position: int, row: int = 0, without: Integers | None = None) -> Ratings:
        """Return the first `position` ratings; of `row`, those of the columns `without` are left out."""
        cells = np.arange(position)
        if without is not None:
            gone = (self.rows[:position] == row) & np.isin(self.columns[:position], without)
            cells = cells[~gone]
        values = self.ratings.csr.data[self.order[cells]]
        places = self.rows[cells], self.columns[cells]
        return self.ratings.replaced(sparse.csr_array((values, places), self.ratings.shape))


class Refreshes(NamedTuple):
    """What the attacker got at one refresh interval; arrays of shape (targets,)."""

    every: int
    """After how many ratings the lists are refreshed."""
    new: Floats
    """How many new ratings of the target there were to be named."""
    named: Floats
    """How many items were named after refreshes with such a rating."""
    right: Floats
    """How many of these the target had rated since the refresh before."""
    named_without: Floats
    """How many would be named if these ratings of the target were not in the lists."""
    right_without: Floats
    """How many of these are right, by chance: people rate what others rate."""
    quiet: Floats
    """How many refreshes without any rating of the target were looked at, too."""
    alarms: Floats
    """How many of these led the attacker to name something."""

    @property
    def found(self) -> Estimate:
        """The share of the new ratings that was named (yield)."""
        return share(self.right, self.new)

    @property
    def precision(self) -> Estimate:
        """The share of what was named that is right, of an attacker who knows that the target was active."""
        return share(self.right, self.named)

    @property
    def precision_without(self) -> Estimate:
        """The same where the target's new ratings are not in the lists: what chance gives."""
        return share(self.right_without, self.named_without)

    @property
    def gain(self) -> Estimate:
        """Precision less that without the target's new ratings: what these gave away; targets are paired."""
        if not self.named_without.sum():
            return self.precision
        terms = (1.0, self.right, self.named), (-1.0, self.right_without, self.named_without)
        return combination(terms).estimate(lowest=-1.0, highest=1.0)

    @property
    def false_alarms(self) -> Estimate:
        """How often something is named though the target rated nothing: for one who does not know."""
        return share(self.alarms, self.quiet)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        names = ("precision", "precision_without", "gain", "false_alarms")
        counted = {"new_ratings": int(self.new.sum()), "named": int(self.named.sum())}
        found = {name: getattr(self, name)._asdict() for name in names}
        return {"every": self.every, **counted, "yield": self.found._asdict(), **found}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RelatedItemsReport:
    """What watching the lists gives away, by refresh interval. It holds no id and no rating."""

    refreshes: tuple[Refreshes, ...]
    """In the order of the intervals."""
    n_targets: int
    """How many users were watched."""
    n_left_out: int
    """How many users could not be: fewer ratings than the attacker is to know in the first half of theirs."""
    settings: dict[str, Any]
    """The attack's settings, as plain values."""
    seed: Any
    """The seed of the experiment."""

    def refresh_after(self, precision: float = 0.1) -> int | None:
        """Return the advice: refresh after at least so many ratings for the gain in precision to stay below this level.

        That is the shortest interval tried from which on its whole 95% interval is below; None if there is none.
        """
        require(0 < precision < 1, "precision", "between 0 and 1", precision)
        advised = None
        for one in reversed(self.refreshes):
            # Where nothing was named there is no precision, and nothing to fear.
            if one.named.sum() > 0 and not one.gain.high < precision:
                break
            advised = one.every
        return advised

    def __repr__(self) -> str:
        head = f"RelatedItemsReport({self.n_targets:,} targets, {self.n_left_out:,} users left out)"
        lines = [
            f"  refreshed every {one.every:,}: yield {one.found}, precision {one.precision}, "
            f"without {one.precision_without}, false alarms {one.false_alarms}"
            for one in self.refreshes
        ]
        return "\n".join([head, *lines])

    def to_dict(self, precision: float = 0.1) -> dict[str, Any]:
        """Return settings and figures as plain values; `precision` is the level of the advice."""
        return {
            "settings": self.settings,
            "seed": self.seed,
            "targets": self.n_targets,
            "left_out_users": self.n_left_out,
            "refreshes": [one.to_dict() for one in self.refreshes],
            "advice": {"precision": precision, "refresh_after": self.refresh_after(precision)},
        }


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedItemsAttack:
    """Watch the related-items lists of known items, and name what rose on several of them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> log = pa.table({"user": [0, 0, 1, 1, 0, 0], "item": [0, 1, 2, 3, 4, 5], "time": range(6)})
    >>> clicks = Ratings.from_frame(log, feedback="implicit")  # user 0 clicks 4 and 5 after 0 and 1
    >>> found = RelatedItemsAttack(known=2, n=4, every=(1,)).run(clicks, targets=[0], rng=7)
    >>> found.refreshes[0].found.value
    1.0
    """

    known: Count = 16
    """m: how many items the attacker knows, drawn by chance from the first half of what the target rated."""
    n: Count = 50
    """N: how many items a list shows."""
    every: Intervals = EVERY
    """The refresh intervals to try, in ratings by anybody, ascending."""
    at_least: Count | None = None
    """Name every item with at least this score; None names the one with the highest, if it is alone."""

    def __post_init__(self) -> None:
        ascending = bool(self.every) and list(self.every) == sorted(set(self.every))
        require(ascending, "every", "ascending", self.every)

    @checked
    def run(
        self,
        ratings: Ratings,
        *,
        lists: ListsOf | None = None,
        targets: Wanted = DEFAULT_TARGETS,
        rng: RNG = None,
        progress: bool | None = None,
    ) -> RelatedItemsReport:
        """Replay ratings in the order of time, refresh the lists every so many ratings, and watch some users.

        Parameters
        ----------
        ratings : Ratings
            Ratings or events with times. Those of the same time are replayed in the order of the matrix.
        lists : callable, optional
            Takes the `Ratings` so far and returns {item: [items, best first]}; called at every refresh that matters.
            None: as `co_rated_lists`, kept up to date rating by rating.
        targets : int or sequence of ids, default 60
            How many users to draw among those who can be watched, or their ids.
        rng, progress
            As in `KNNAttack.run`.
        """
        log, streams = RatingLog(ratings), Streams(rng)
        watched, n_left_out = _watched(log, targets, self.known, streams)
        snapshots = _CoRated(log, watched, self.n) if lists is None else _Given(log, watched, self.n, lists)
        windows = _windows(log, watched, self.every, streams)
        counts = self._play(snapshots, windows, watched, progress)
        return RelatedItemsReport(
            refreshes=tuple(map(Refreshes, self.every, *counts)),
            n_targets=len(watched),
            n_left_out=n_left_out,
            settings={"name": type(self).__name__, **dataclasses.asdict(self)},
            seed=seed_of(rng),
        )

    def _play(
        self, snapshots: _CoRated | _Given, windows: list[_Window], watched: list[_Watched], progress: bool | None
    ) -> Floats:
        """Compare the lists at both ends of every window, in one pass over the log: (counts, intervals, targets)."""
        counts = np.zeros((7, len(self.every), len(watched)))
        moments = [(one.start, 1, place) for place, one in enumerate(windows)]
        moments += [(one.stop, 0, place) for place, one in enumerate(windows)]
        before: dict[int, Rows] = {}
        with bar("related items", len(windows), show=progress) as advance:
            for position, begins, place in sorted(moments):
                window = windows[place]
                seen = snapshots.at(position, window.target)
                if begins:
                    before[place] = seen
                    continue
                old, known = before.pop(place), watched[window.target].known
                named = self.named(old, seen, known)
                told = [0, 0, 0, 0, 0, 1, min(len(named), 1)]
                if len(window.new):
                    unmoved = snapshots.at(position, window.target, window.new)
                    both = named, self.named(old, unmoved, known)
                    hits = (n for one in both for n in (len(one), np.isin(one, window.new).sum()))
                    told = [len(window.new), *map(int, hits), 0, 0]
                counts[:, window.interval, window.target] += told
                advance(1)
        return counts

    def named(self, before: Rows, after: Rows, known: Integers) -> Integers:
        """Return the columns that the attacker names from the lists, (known, n), before and after a refresh.

        Examples
        --------
        >>> attack = RelatedItemsAttack(known=2, n=2)
        >>> before = np.array([[4, 5], [5, -1]], dtype=np.int32)
        >>> attack.named(before, np.array([[6, 4], [5, 6]], dtype=np.int32), np.array([0, 1]))
        array([6])
        """
        n_items = 1 + max(int(before.max(initial=0)), int(after.max(initial=0)), int(known.max()))
        scores = np.zeros(n_items, dtype=np.int64)
        count_risen(before, after, np.empty(n_items, dtype=np.int64), scores)
        scores[known] = 0
        if self.at_least is not None:
            return np.flatnonzero(scores >= self.at_least)
        best = np.flatnonzero(scores == scores.max())
        return best if len(best) == 1 and scores.max() > 0 else best[:0]


def co_rated_lists(ratings: Ratings, n: int = 50) -> dict[Id, list[Id]]:
    """Return the n items most similar to each item by the cosine of their sets of raters, best first.

    Ties are in the order of the columns; items without a common rater are not listed.
    """
    log, every = RatingLog(ratings, np.arange(ratings.csr.nnz)), np.arange(ratings.shape[1])
    found = _CoRated(log, [_Watched(0, every, every[:0])], n).at(ratings.csr.nnz, 0)
    listed = ratings.items.tolist()
    return {listed[column]: [listed[one] for one in found[column] if one >= 0] for column in every}


class _Watched(NamedTuple):
    """One target: columns that the attacker knows, and where in the log the new ratings are."""

    row: int
    known: Integers
    positions: Integers


class _Window(NamedTuple):
    """The ratings between two refreshes, as one target's attacker looks at them."""

    interval: int
    """The position of the refresh interval among those that are tried."""
    target: int
    start: int
    stop: int
    new: Integers
    """What the target rated in it for the first time."""


class _CoRated:
    """Lists by the cosine of the sets of raters, from co-counts that grow with the log: moments do not go back."""

    def __init__(self, log: RatingLog, watched: list[_Watched], n: int) -> None:
        self.log, self.n, self.position = log, n, 0
        n_items, lengths = log.ratings.shape[1], np.diff(log.ratings.csr.indptr).astype(np.int64)
        columns = np.unique(np.concatenate([one.known for one in watched]))
        self.watch = np.full(n_items, -1, dtype=np.int64)
        self.watch[columns] = np.arange(len(columns))
        self.known = [self.watch[one.known] for one in watched]
        self.so_far = RatedSoFar(
            starts=np.cumsum(lengths) - lengths,
            lengths=np.zeros(len(lengths), dtype=np.int64),
            items=np.empty(len(log.rows), dtype=np.int32),
            n_raters=np.zeros(n_items, dtype=np.int64),
            co_counts=np.zeros((len(columns), n_items), dtype=np.int32),
        )

    def at(self, position: int, target: int, without: Integers | None = None) -> Rows:
        """Return the lists, (known, n), after `position` ratings, `without` those of the target of these columns."""
        part = slice(self.position, position)
        count_ratings(self.log.rows[part], self.log.columns[part], self.watch, self.so_far)
        self.position, known = position, self.known[target]
        gone = np.empty(0, dtype=np.int64) if without is None else without
        lists = np.empty((len(known), self.n), dtype=np.int32)
        self.so_far.co_counts[np.ix_(known, gone)] -= 1
        self.so_far.n_raters[gone] -= 1
        nearest_items(known, self.so_far, np.empty(self.n), lists)
        self.so_far.co_counts[np.ix_(known, gone)] += 1
        self.so_far.n_raters[gone] += 1
        return lists


class _Given:
    """Lists of the caller's own function, called once for each moment."""

    def __init__(self, log: RatingLog, watched: list[_Watched], n: int, lists: ListsOf) -> None:
        self.log, self.watched, self.n, self.lists = log, watched, n, lists
        self.position, self.listed = -1, {}  # type: tuple[int, Mapping[Any, Sequence[Id]]]

    def at(self, position: int, target: int, without: Integers | None = None) -> Rows:
        row, known, _ = self.watched[target]
        if without is None and position != self.position:
            self.position, self.listed = position, self.lists(self.log.until(position))
        moved = without is not None
        listed = self.lists(self.log.until(position, row, without)) if moved else self.listed
        found, ratings = np.full((len(known), self.n), -1, dtype=np.int32), self.log.ratings
        for number, item in enumerate(ratings.items[known].tolist()):
            shown = list(listed.get(item, ()))[: self.n]
            found[number, : len(shown)] = ratings.columns(shown)
        return found


def _watched(log: RatingLog, wanted: Wanted, known: int, streams: Streams) -> tuple[list[_Watched], int]:
    """Return whom the attacker watches with what they know, and how many users cannot be watched."""
    starts = log.ratings.csr.indptr
    eligible: Flags = np.diff(starts) // 2 >= known
    if not eligible.any():
        raise DataError(f"no user can be watched: nobody has {2 * known} ratings, twice known")
    if isinstance(wanted, int | np.integer):
        require(wanted >= 1, "targets", "a positive integer, or ids", wanted)
        order = streams.order(len(eligible), TARGETS)
        rows = order[eligible[order]][: int(wanted)]
    else:
        rows = log.ratings.rows(wanted)
        if len(rows) == 0 or len(np.unique(rows)) != len(rows) or not eligible[rows].all():
            raise DataError(f"targets must be different users with {2 * known} ratings or more")
    by_user = np.argsort(log.rows, kind="stable")
    found = []
    for row in rows.tolist():
        own = by_user[starts[row] : starts[row + 1]]
        past, new = own[: len(own) // 2], own[len(own) // 2 :]
        drawn = past[streams.order(len(past), KNOWLEDGE, row)[:known]]
        found.append(_Watched(row, np.sort(log.columns[drawn]), new))
    return found, int((~eligible).sum())


def _windows(log: RatingLog, watched: list[_Watched], every: tuple[int, ...], streams: Streams) -> list[_Window]:
    """Return the windows with new ratings of each target, and as many without any, drawn by chance after the first."""
    found = []
    for interval, length in enumerate(every):
        last = (len(log.rows) - 1) // length
        for target, one in enumerate(watched):
            numbers = one.positions // length
            active = np.unique(numbers)
            others = np.setdiff1d(np.arange(active[0], last + 1), active, assume_unique=True)
            order = streams.order(len(others), SAMPLES, interval, target)
            for number in [*active.tolist(), *others[order[: len(active)]].tolist()]:
                new = log.columns[one.positions[numbers == number]]
                ends = number * length, min((number + 1) * length, len(log.rows))
                found.append(_Window(interval, target, *ends, new))
    return found
