"""Who is attacked, what the attacker knows of them, and the fake profiles that are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Flags, Floats, Integers, as_csr, row_numbers
from goodfence.data.ratings import Id, Ratings
from goodfence.data.splits import sample_targets
from goodfence.errors import DataError, require
from goodfence.kernels.moments import paired_cosines
from goodfence.models.recommender import row_of
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.rng import RNG, Streams
from goodfence.selection.sensitivity import (
    ItemPeaks,
    Sensitivity,
    pair_sensitivities,
    profile_pair_sensitivities,
    profile_sensitivity,
)
from goodfence.settings import is_sequence

Wanted: TypeAlias = int | Sequence[Id] | npt.NDArray[Any]

RANDOM, RAREST, POPULAR = "random", "rarest", "most_popular"
RULES = (RANDOM, RAREST, POPULAR)

# The streams below one seed: the draws of an attack never share a number.
TARGETS, KNOWLEDGE, WORLDS, SAMPLES, HALVES = range(5)


@dataclass(frozen=True, eq=False)
class Targets:
    """Attacked users, in rows and columns of the ratings; the hidden ratings of all of them in one array."""

    rows: Integers
    """(targets,): their rows."""
    known_columns: Integers
    """(targets, m): what the attacker knows, ascending; -1 behind it for a target of whom less is known."""
    known_ratings: Floats
    """(targets, m): how they rated it; NaN behind it."""
    starts: Integers
    """(targets + 1,): where the hidden ratings of each one begin."""
    columns: Integers
    """(hidden,): what they rated and the attacker does not know, ascending for each."""
    ratings: Floats
    """(hidden,): how they rated it."""

    def __repr__(self) -> str:
        return f"Targets({len(self):,} users, {len(self.columns):,} hidden ratings)"

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def owners(self) -> Integers:
        """(hidden,): whose each hidden rating is, as a position among the targets."""
        return row_numbers(self.starts)

    @property
    def n_known(self) -> Integers:
        """(targets,): how many ratings of each the attacker knows."""
        return np.asarray((self.known_columns >= 0).sum(axis=1))

    def blocks(self, size: int) -> list[tuple[int, int]]:
        """Cut the targets in blocks of at most `size`, of whom as much is known of each."""
        edges = [0, *(np.flatnonzero(np.diff(self.n_known)) + 1).tolist(), len(self)]
        return [
            (start, min(start + size, last)) for first, last in pairwise(edges) for start in range(first, last, size)
        ]

    def known_of(self, at: int) -> tuple[Integers, Floats]:
        """Return the known columns and ratings of one target."""
        there = self.known_columns[at] >= 0
        return self.known_columns[at][there], self.known_ratings[at][there]

    def part(self, first: int, last: int) -> Targets:
        """Return the targets from `first` to before `last`; of all that is known no more columns than they need."""
        some, cells = slice(first, last), slice(self.starts[first], self.starts[last])
        width = int(self.n_known[some].max(initial=0))
        known = self.known_columns[some, :width], self.known_ratings[some, :width]
        starts = self.starts[first : last + 1] - self.starts[first]
        return Targets(self.rows[some], *known, starts, self.columns[cells], self.ratings[cells])

    def some(self, places: Integers) -> Targets:
        """Return the targets at these positions, ascending."""
        cells = np.isin(self.owners, places)
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[places])])
        known = self.known_columns[places], self.known_ratings[places]
        return Targets(self.rows[places], *known, starts, self.columns[cells], self.ratings[cells])

    @classmethod
    def joined(cls, parts: Sequence[Targets]) -> Targets:
        """Return the targets of several parts, of whom as much is known at most."""
        starts = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(one.starts) for one in parts]))])
        names = ("rows", "known_columns", "known_ratings", "columns", "ratings")
        rows, *known, columns, ratings = (np.concatenate([getattr(one, name) for one in parts]) for name in names)
        return cls(rows, known[0], known[1], starts, columns, ratings)

    def one_by_one(self) -> Targets:
        """Return one entry for each hidden rating: as many targets, each with one thing to find out."""
        owners = self.owners
        known, starts = (self.known_columns[owners], self.known_ratings[owners]), len(owners) + 1
        return Targets(self.rows[owners], *known, np.arange(starts), self.columns, self.ratings)

    def sampled(self, n: int, streams: Streams) -> Targets:
        """Return the same targets with at most `n` of the hidden ratings of each, by chance."""
        kept = []
        for position, row in enumerate(self.rows.tolist()):
            start, stop = self.starts[position : position + 2]
            order = streams.order(int(stop - start), SAMPLES, row)[:n]
            kept.append(start + np.sort(order))
        inside = np.concatenate(kept)
        starts = np.cumsum([0, *(len(part) for part in kept)])
        known = self.known_columns, self.known_ratings
        return Targets(self.rows, *known, starts, self.columns[inside], self.ratings[inside])


def find_targets(
    ratings: Ratings, wanted: Wanted, known: int, choose: str | Sequence[Id], streams: Streams, *, few: bool = False
) -> tuple[Targets, int]:
    """Return the targets with what is known of each, and how many users were left out.

    A number draws that many of the users who can be attacked: those with more than `known` ratings and, where
    the known items are named, with all of these among them. Named users must all be such. With `few`, half of the
    ratings are known of users who have no more than `known`, and they come last; only users with one are left out.
    """
    csr, columns = ratings.csr, None if isinstance(choose, str) else ratings.columns(choose)
    few = few and columns is None
    eligible = _eligible(ratings, columns, min(known, 1) if few else known)
    if isinstance(wanted, int | np.integer) or not is_sequence(wanted):
        n = wanted if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool) else 0
        require(n >= 1, "targets", "a positive integer, or ids", wanted)
        if not eligible.any():
            raise DataError("no user can be attacked: nobody has more ratings than the attacker knows; lower known")
        order = ratings.rows(sample_targets(ratings, ratings.shape[0], rng=streams.at(TARGETS)))
        rows = order[eligible[order]][: int(n)]
    else:
        rows = ratings.rows(wanted)
        if len(rows) == 0 or len(np.unique(rows)) != len(rows):
            raise DataError("targets must be different users, at least one")
        if not eligible[rows].all():
            also = "" if columns is None else ", the items named in choose among them"
            least = f"known={known}" if not few else "one"
            raise DataError(f"every target must have more than {least} ratings{also}")
    if few:
        rows = rows[np.argsort(-_n_known(np.diff(csr.indptr)[rows], known), kind="stable")]
    return _knowledge(ratings, rows, known, choose, columns, streams), int((~eligible).sum())


def _eligible(ratings: Ratings, columns: Integers | None, least: int) -> Flags:
    """Return which users have more than `least` ratings, and all of these items where they are named."""
    csr = ratings.csr
    eligible: Flags = np.diff(csr.indptr) > least
    if columns is not None:
        owners = row_numbers(csr.indptr)[np.isin(csr.indices, columns)]
        eligible &= np.bincount(owners, minlength=csr.shape[0]) == len(columns)
    return eligible


def _n_known(lengths: Integers, known: int) -> Integers:
    """Return how much is known of users with so many ratings: half of them where there are no more than `known`."""
    return np.where(lengths > known, known, lengths // 2)


def _knowledge(
    ratings: Ratings, rows: Integers, known: int, choose: str | Sequence[Id], columns: Integers | None, streams: Streams
) -> Targets:
    csr = ratings.csr
    counts = np.bincount(csr.indices, minlength=csr.shape[1])
    lengths = csr.indptr[rows + 1] - csr.indptr[rows]
    n_known = _n_known(lengths, known)
    starts = np.concatenate([[0], np.cumsum(lengths - n_known)]).astype(np.int64)
    known_cells = np.full((len(rows), known), -1, dtype=np.int64)
    hidden_cells = np.empty(starts[-1], dtype=np.int64)
    for position, row in enumerate(rows.tolist()):
        first, last, n = int(csr.indptr[row]), int(csr.indptr[row + 1]), int(n_known[position])
        rated = csr.indices[first:last]
        if columns is not None:
            places = np.searchsorted(rated, columns)
        elif choose == RANDOM:
            places = streams.order(last - first, KNOWLEDGE, row)[:n]
        else:
            popularity = counts[rated] if choose == RAREST else -counts[rated]
            places = np.argsort(popularity, kind="stable")[:n]  # ties by column
        inside = np.zeros(last - first, dtype=np.bool_)
        inside[places] = True
        known_cells[position, :n] = first + np.flatnonzero(inside)
        hidden_cells[starts[position] : starts[position + 1]] = first + np.flatnonzero(~inside)
    there = known_cells >= 0
    known_columns = np.where(there, csr.indices[known_cells].astype(np.int64), -1)
    known_ratings = np.where(there, csr.data[known_cells], np.nan)
    hidden = csr.indices[hidden_cells].astype(np.int64), csr.data[hidden_cells]
    return Targets(rows, known_columns, known_ratings, starts, *hidden)


def fake_profiles(profiles: Profiles, targets: Targets, helper_rating: float | None) -> tuple[Profiles, Profiles]:
    """Return what the asking fake of each target rated, and what the others did: with a `helper_rating`, one more."""
    askers = profiles.lay_out(list(targets.known_columns), list(targets.known_ratings))
    if helper_rating is None:
        return askers, askers
    columns, ratings = helper_cells(targets, helper_rating)
    return askers, profiles.lay_out(list(columns), list(ratings))


def helper_cells(targets: Targets, helper_rating: float) -> tuple[Integers, Floats]:
    """Return the columns and ratings of the helpers of targets with one hidden item each, (targets, m + 1)."""
    extra = np.full((len(targets), 1), helper_rating)
    columns = np.hstack([targets.known_columns, targets.columns[:, np.newaxis]])
    ratings = np.hstack([targets.known_ratings, extra])
    order = np.argsort(columns, axis=1)
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(ratings, order, axis=1)


def fake_similarities(askers: Profiles, helpers: Profiles, similarity: Similarity) -> Floats:
    """Return the similarity of each asker to the other fakes of its target, (targets,); mostly 1 for equal profiles."""
    if similarity.is_plain_cosine:
        found, norms = np.empty(askers.n_rows), (askers.squared_norms, helpers.squared_norms)
        paired_cosines(as_csr(askers.rows), as_csr(helpers.rows), *norms, found)
        return found
    engine = RowsAgainstAll(helpers, similarity)
    return np.array([engine.similarities(askers, row)[row] for row in range(askers.n_rows)])


def equal_runs(profiles: Profiles) -> tuple[Integers, Integers]:
    """Return the first row of each run of equal profiles, and in which run each row is."""
    csr, lengths = profiles.rows, np.diff(profiles.rows.indptr)
    new = np.ones(len(lengths), dtype=np.bool_)
    if len(lengths) and (lengths == lengths[0]).all():
        for part in (csr.indices, csr.data):
            cells = part.reshape(len(lengths), -1)
            changed = (cells[1:] != cells[:-1]).any(axis=1)
            new[1:] = changed if part is csr.indices else new[1:] | changed
    return np.flatnonzero(new), np.cumsum(new) - 1


def with_fakes(
    ratings: Ratings,
    removed: int | Integers | None,
    columns: Sequence[npt.NDArray[np.integer]],
    values: Sequence[Floats],
) -> tuple[Ratings, npt.NDArray[Any]]:
    """Return the ratings without the rows `removed`, followed by one row for each fake, and the fakes' new ids."""
    csr, n_rows = ratings.csr, ratings.shape[0]
    kept = np.ones(n_rows, dtype=np.bool_)
    if removed is not None:
        kept[removed] = False
    lengths = np.diff(csr.indptr)
    cells = np.repeat(kept, lengths)
    counts = np.concatenate([lengths[kept], [len(row) for row in columns]])
    parts = (
        np.concatenate([csr.data[cells], *values]),
        np.concatenate([csr.indices[cells], *columns]),
        np.concatenate([[0], np.cumsum(counts)]),
    )
    ids = new_ids(ratings.users, len(columns))
    users = np.concatenate([ratings.users[kept], ids])
    world = sparse.csr_array(parts, shape=(len(users), csr.shape[1]))
    stated, least = (ratings.scale, ratings.titles), ratings.liked_from
    feedback = ratings.feedback
    return Ratings(world, users, ratings.items, *stated, feedback=feedback, liked_from=least), ids


def new_ids(users: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return `n` ids of the same kind that none of the users has."""
    if users.dtype == object:
        taken = set(users.tolist())
        name = "fake"
        while any(f"{name} {number}" in taken for number in range(n)):
            name += "'"
        ids = np.empty(n, dtype=object)
        ids[:] = [f"{name} {number}" for number in range(n)]
        return ids
    highest = int(users.max(initial=-1))
    if highest <= np.iinfo(np.int64).max - n - 1:
        return np.arange(highest + 1, highest + 1 + n)
    free = np.setdiff1d(np.arange(n + len(users)), users)
    return free[:n]


@dataclass(frozen=True, eq=False)
class FakeSensitivity:
    """RS of fakes against one set of real rows."""

    peaks: ItemPeaks
    options: Sensitivity

    def of_askers(self, askers: Profiles, helpers: Profiles | None, removed: Integers) -> Floats:
        """Return RS of each asker, (askers,), in the data without row `removed` (-1: with everybody).

        `helpers` has for each asker what its fellow fakes rated; None where it has no fellows.
        """
        if self.options.reading == "printed":
            return self._printed(askers, helpers, removed)
        alike = 0.0 if helpers is None else self.of_helpers(askers, helpers)
        real = np.empty(askers.n_rows)
        for row in range(askers.n_rows):
            without = int(removed[row]) if removed[row] >= 0 else None
            rated = row_of(askers.rows, row)
            real[row] = profile_sensitivity(self.peaks, *rated, without=without)
        return np.maximum(real, alike)

    def of_pairs(self, askers: Profiles, rows: Integers, alike: Floats | None) -> Floats:
        """Return RS of each asker with each row of its list, (askers, n); a negative row is a fellow fake."""
        result = np.empty(rows.shape)
        for asker in range(askers.n_rows):
            by_row, _ = profile_pair_sensitivities(self.peaks, *row_of(askers.rows, asker))
            fellow = 0.0 if alike is None else alike[asker]
            result[asker] = np.where(rows[asker] < 0, fellow, by_row[rows[asker]])
        return result

    def of_helpers(self, askers: Profiles, helpers: Profiles) -> Floats:
        """Return RS of each asker with a fellow fake, (askers,)."""
        both = sparse.csr_array(sparse.vstack([askers.rows, helpers.rows], format="csr"))
        every = np.arange(askers.n_rows)
        fellows = (askers.n_rows + every)[:, np.newaxis]
        pairs: Floats = pair_sensitivities(both, every, fellows, self.options)
        return pairs[:, 0]

    def _printed(self, askers: Profiles, helpers: Profiles | None, removed: Integers) -> Floats:
        """Return the largest product of two strengths `r / |r'|` over the asker's items."""
        columns, own = askers.rows.indices, self._strengths(askers)
        owners = row_numbers(askers.rows.indptr)
        gone = self.peaks.strongest.rows[columns] == removed[owners][:, np.newaxis]
        gone &= removed[owners][:, np.newaxis] >= 0
        others = np.where(gone, 0.0, self.peaks.strongest.values[columns]).max(axis=1, initial=0.0)
        if helpers is not None:
            # A helper has the asker's items, and perhaps one more, which they do not share.
            cells = [
                row_numbers(one.rows.indptr) * np.int64(askers.rows.shape[1]) + one.rows.indices
                for one in (askers, helpers)
            ]
            shared = np.isin(cells[1], cells[0], assume_unique=True)
            others = np.maximum(others, self._strengths(helpers)[shared])
        both = (own > 0) & (others > 0)
        products = np.where(both, own, 0.0) * np.where(both, others, 0.0)
        largest = np.zeros(askers.n_rows)
        np.maximum.at(largest, owners, products)
        return np.minimum(largest, 1.0) if self.options.clamp else largest

    def _strengths(self, profiles: Profiles) -> Floats:
        csr, owners = profiles.rows, row_numbers(profiles.rows.indptr)
        squares = csr.data * csr.data
        totals = np.bincount(owners, weights=squares, minlength=csr.shape[0])
        rests = np.sqrt(totals[owners] - squares)
        alone = np.inf if self.options.clamp else 0.0
        only = np.where(csr.data > 0, alone, 0.0)
        return np.where(rests > 0, csr.data / np.where(rests > 0, rests, 1.0), only)


class Asked(NamedTuple):
    """What the fakes were told, in both worlds."""

    with_target: Floats
    """(askers, hidden): the answers, NaN where there was none."""
    without_target: Floats
    """(askers, hidden): the answers in the world without the target."""
    chosen: Floats
    """(targets,): the share of the asking fakes that had the target among their neighbours; NaN if not known."""

    @classmethod
    def joined(cls, parts: Sequence[Asked]) -> Asked:
        """Return the answers about all targets from those about some at a time."""
        return cls(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))

    def __repr__(self) -> str:
        return f"Asked({self.with_target.shape[0]} askers, {self.with_target.shape[1]:,} hidden ratings)"


def world_seed(rng: RNG | Streams, row: int, turn: int = 0) -> int:
    """Return the seed of the recommender in both worlds of the target in `row`, in round `turn`.

    Each target has its own: only then are targets independent of each other, as the intervals assume.
    """
    streams = rng if isinstance(rng, Streams) else Streams(rng)
    return streams.key(WORLDS, row, turn)
