"""Fake profiles: what they rate, how similar they are to each other, and the data with them appended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Floats, Integers
from goodfence.attack.targets import WORLDS, Targets
from goodfence.data.ratings import Ratings
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.rng import RNG, Streams
from goodfence.selection.sensitivity import (
    ItemPeaks,
    Sensitivity,
    item_peaks,
    pair_sensitivities,
    profile_pair_sensitivities,
    profile_sensitivity,
)


def fake_profiles(
    profiles: Profiles, targets: Targets, helper_rating: float | None
) -> tuple[Profiles, Profiles]:
    """Return what the asking fake of each target rated, and what the other fakes of the same target did.

    All rate exactly what the attacker knows; with a `helper_rating` the others also rate the one hidden item.
    """
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
    """Return the similarity of each asker to the other fakes of its target, (targets,).

    That is 1 for equal profiles, but for rounding where ratings are not on a grid, and for profiles without
    length or variance.
    """
    if askers is helpers and similarity.is_plain_cosine and askers.are_integers:
        return np.where(askers.squared_norms > 0, 1.0, 0.0)
    engine = RowsAgainstAll(helpers, similarity)
    return np.array([engine.similarities(askers, row)[row] for row in range(askers.n_rows)])


def attacked(
    ratings: Ratings,
    removed: int | None,
    columns: list[npt.NDArray[np.integer]],
    values: list[Floats],
) -> tuple[Ratings, npt.NDArray[Any]]:
    """Return the ratings without row `removed`, followed by one row for each fake, and the fakes' new ids."""
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
    return Ratings(world, users, ratings.items, ratings.scale, ratings.titles), ids


def new_ids(users: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return `n` ids of the same kind that none of the users has.

    Examples
    --------
    >>> new_ids(np.array([3, 9]), 2)
    array([10, 11])
    """
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

    @classmethod
    def of(cls, profiles: Profiles, options: Sensitivity) -> FakeSensitivity:
        """Prepare for the rows of `profiles`."""
        return cls(item_peaks(profiles.rows, options), options)

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
            columns, values = _row(askers.rows, row)
            real[row] = profile_sensitivity(
                self.peaks, columns, values, n_copies=1, without=without
            )
        return np.maximum(real, alike)

    def of_pairs(self, askers: Profiles, rows: Integers, alike: Floats | None) -> Floats:
        """Return RS of each asker with each row of its list, (askers, n); a negative row is a fellow fake."""
        result = np.empty(rows.shape)
        for asker in range(askers.n_rows):
            by_row, _ = profile_pair_sensitivities(self.peaks, *_row(askers.rows, asker))
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
        owners = np.repeat(np.arange(askers.n_rows), np.diff(askers.rows.indptr))
        gone = self.peaks.strongest.rows[columns] == removed[owners][:, np.newaxis]
        gone &= removed[owners][:, np.newaxis] >= 0
        others = np.where(gone, 0.0, self.peaks.strongest.values[columns]).max(axis=1, initial=0.0)
        if helpers is not None:
            # A helper has the asker's items, and perhaps one more, which they do not share.
            shared = _shared(askers.rows, helpers.rows)
            others = np.maximum(others, self._strengths(helpers)[shared])
        both = (own > 0) & (others > 0)
        products = np.where(both, own, 0.0) * np.where(both, others, 0.0)
        largest = np.zeros(askers.n_rows)
        np.maximum.at(largest, owners, products)
        return np.minimum(largest, 1.0) if self.options.clamp else largest

    def _strengths(self, profiles: Profiles) -> Floats:
        csr = profiles.rows
        owners = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
        squares = csr.data * csr.data
        totals = np.bincount(owners, weights=squares, minlength=csr.shape[0])
        rests = np.sqrt(totals[owners] - squares)
        alone = np.inf if self.options.clamp else 0.0
        only = np.where(csr.data > 0, alone, 0.0)
        return np.where(rests > 0, csr.data / np.where(rests > 0, rests, 1.0), only)


def _shared(askers: sparse.csr_array, helpers: sparse.csr_array) -> npt.NDArray[np.bool_]:
    """Return which entries of `helpers` are at a column that its asker has too."""
    n_columns = np.int64(askers.shape[1])
    cells = [
        np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr)) * n_columns + csr.indices
        for csr in (askers, helpers)
    ]
    return np.isin(cells[1], cells[0], assume_unique=True)


def _row(csr: sparse.csr_array, row: int) -> tuple[npt.NDArray[np.int32], Floats]:
    part = slice(csr.indptr[row], csr.indptr[row + 1])
    return csr.indices[part], csr.data[part]


@dataclass(frozen=True, eq=False)
class Asked:
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
        return cls(
            np.concatenate([part.with_target for part in parts], axis=1),
            np.concatenate([part.without_target for part in parts], axis=1),
            np.concatenate([part.chosen for part in parts]),
        )

    def __repr__(self) -> str:
        return f"Asked({self.with_target.shape[0]} askers, {self.with_target.shape[1]:,} hidden ratings)"


class Worlds(Protocol):
    """Builds the worlds of each target and asks in them."""

    ratings: Ratings
    """The real ratings."""
    n_fakes: int
    """How many fake profiles attack each target."""
    similarity: Similarity
    """What the attacker supposes neighbours to be chosen by."""
    one_by_one: bool
    """Whether `ask` goes from target to target, however many it is given."""

    def at_once(self, n_askers: int) -> int:
        """Return how many targets are best asked about at once."""
        ...

    def ask(
        self,
        targets: Targets,
        seeds: Sequence[int],
        n_askers: int,
        helper_rating: float | None = None,
    ) -> Asked:
        """Return what the first `n_askers` fakes are told about the hidden items of each target.

        Parameters
        ----------
        seeds
            One for each target; both of its worlds use it.
        helper_rating
            Every fake but the first also gives this rating to the one hidden item of its target.
        """
        ...


def world_seed(rng: RNG | Streams, row: int, turn: int = 0) -> int:
    """Return the seed of the recommender in both worlds of the target in `row`, in round `turn`.

    Each target has its own: only then are targets independent of each other, as the intervals assume.

    Examples
    --------
    >>> world_seed(7, row=3) == world_seed(7, row=3), world_seed(7, row=3) == world_seed(7, row=4)
    (True, False)
    """
    streams = rng if isinstance(rng, Streams) else Streams(rng)
    return streams.key(WORLDS, row, turn)
