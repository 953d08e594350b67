"""Worlds of a user-based `NeighbourCF` without a fit: the fakes' own candidate lists decide what they are told.

A block of targets is asked about at once. Both worlds share the similarities to the real rows: in the world
without the target its row is skipped, and the rows behind move up by one. The answers equal those of `RefitWorlds`
(append the fakes, fit with the same seed, ask) to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Csr, Floats, Integers, Rows
from goodfence.attack.targets import Asked, Targets, fake_profiles, fake_similarities
from goodfence.data.ratings import Ratings
from goodfence.kernels.attack import (
    FAKE,
    AttackedData,
    draw_for_fakes,
    insert_fakes,
    noise_for_fakes,
    predict_beside_helpers,
)
from goodfence.kernels.draw import PoolArrays
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.draw import check_similarity
from goodfence.neighbours.predict import Neighbourhoods
from goodfence.neighbours.similarity import Profiles
from goodfence.neighbours.threads import ranges, run
from goodfence.rng import Streams
from goodfence.selection.mechanism import Pool, pool_arrays, takes_all
from goodfence.selection.sensitivity import (
    ItemPeaks,
    Sensitivity,
    item_peaks,
    pair_sensitivities,
    profile_pair_sensitivities,
    profile_sensitivity,
)

_CELLS = 2_000_000
"""How many list entries are held at a time."""
_MOST = 512
_PIECE = 32


@dataclass(frozen=True, eq=False, repr=False)
class Lists:
    """The candidate lists of the asking fakes of some targets, in one of the worlds."""

    rows: Rows
    """(targets, reach): real rows, `FAKE` for a fake."""
    similarities: Floats
    """(targets, reach): descending."""
    removed: Integers
    """(targets,): the row that this world lacks, -1 for none."""
    bounds: Floats | None
    """RS of each asker, (targets,), or of each pair, (targets, reach); None where the mechanism needs none."""


class NeighbourWorlds:
    """Worlds of `model`, which need not be fitted, attacked by `n_fakes` fake profiles."""

    one_by_one = False

    def __init__(
        self, ratings: Ratings, model: NeighbourCF, n_fakes: int, *, threads: int | None = None
    ) -> None:
        check_similarity(model.mechanism, model.similarity)
        self.mechanism, self.similarity = model.mechanism, model.similarity
        self.over_raters = model.over == "raters"
        self.n_fakes, self.threads = n_fakes, model.threads if threads is None else threads
        self.ratings = ratings
        self.profiles = Profiles.of(ratings.csr)
        self.n_rows = ratings.shape[0]
        self.reach = self.mechanism.reach(self.n_rows + n_fakes - 1)
        self.reach_without = self.mechanism.reach(self.n_rows + n_fakes - 2)

    @cached_property
    def sensitivity(self) -> FakeSensitivity | None:
        """RS of the fakes, where the mechanism needs it."""
        options = self.mechanism.sensitivity
        if options is None:
            return None
        return FakeSensitivity(item_peaks(self.profiles.rows, options), options)

    def at_once(self, n_askers: int) -> int:
        """Return how many targets' lists are held at a time."""
        return max(1, min(_MOST, _CELLS // max(self.reach, n_askers * self.mechanism.k)))

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
        keys = np.array([Streams(seed).key() for seed in seeds], dtype=np.uint64)
        told = []
        for lists in self.lists(targets, helper_rating):
            neighbours, weights = self._choose(lists, keys, n_askers)
            answers = self._answers(targets, neighbours, weights, helper_rating)
            told.append((neighbours, answers))
        (neighbours, with_target), (_, without_target) = told
        among = (neighbours == targets.rows[:, np.newaxis, np.newaxis]).any(axis=2)
        return Asked(with_target, without_target, among.mean(axis=1))

    def lists(self, targets: Targets, helper_rating: float | None = None) -> tuple[Lists, Lists]:
        """Return the candidate lists of the asking fakes, in the world with each target and without.

        They are the same for every fake that asks, but for the numbers of the others.
        """
        askers, helpers = fake_profiles(self.profiles, targets, helper_rating)
        engine = RowsAgainstAll(self.profiles, self.similarity)
        n_nearest = min(self.n_rows, self.reach + 1)
        every = np.arange(len(targets))
        nearest = engine.nearest(askers, every, n_nearest, themselves=False, threads=self.threads)
        alike = fake_similarities(askers, helpers, self.similarity)
        nobody = np.full(len(targets), -1, dtype=np.int64)
        worlds = []
        for removed, reach in ((nobody, self.reach), (targets.rows, self.reach_without)):
            shape = (len(targets), reach)
            merged = np.empty(shape, dtype=np.int32), np.empty(shape)
            insert_fakes(*nearest, alike, self.n_fakes - 1, removed, *merged)
            bounds = self._bounds(merged[0], askers, helpers, removed)
            worlds.append(Lists(*merged, removed, bounds))
        return worlds[0], worlds[1]

    def _choose(
        self, lists: Lists, keys: npt.NDArray[np.uint64], n_askers: int
    ) -> tuple[Rows, Floats]:
        """Return the neighbours of each asker and what they count, (targets, askers, k)."""
        log_weights, pools = self.statements(lists)
        starts, stops, takes = pool_arrays(pools, len(keys))
        shape = (len(keys), n_askers, self.mechanism.k)
        positions, numbers = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int32)

        def work(piece: tuple[int, int]) -> None:
            block = slice(*piece)
            draw_for_fakes(
                log_weights[block],
                lists.rows[block],
                PoolArrays(starts[block], stops[block], takes[block]),
                AttackedData(keys[block], lists.removed[block], self.n_rows),
                positions[block],
                numbers[block],
            )

        run(work, ranges(len(keys), _PIECE), threads=self.threads)
        flat = positions.reshape(len(keys), -1)
        neighbours = np.take_along_axis(lists.rows, flat, axis=1).reshape(shape)
        weights = np.take_along_axis(lists.similarities, flat, axis=1).reshape(shape)
        return neighbours, self._with_noise(weights, flat, lists, keys, numbers)

    def statements(self, lists: Lists) -> tuple[Floats, tuple[Pool, ...]]:
        """Return the mechanism's log-weights and pools for some lists."""
        pools = self.mechanism.pools(lists.similarities, lists.bounds)
        if takes_all(pools):
            return np.zeros(lists.similarities.shape), pools
        log_weights = self.mechanism.log_weights(lists.similarities, lists.bounds)
        return np.ascontiguousarray(log_weights), pools

    def _bounds(
        self, rows: Rows, askers: Profiles, helpers: Profiles, removed: Integers
    ) -> Floats | None:
        """Return RS of each asker, or of each pair, or None."""
        if self.sensitivity is None:
            return None
        fellows = helpers if self.n_fakes > 1 else None
        if self.sensitivity.options.scope == "target":
            return self.sensitivity.of_askers(askers, fellows, removed)
        alike = None if fellows is None else self.sensitivity.of_helpers(askers, fellows)
        return self.sensitivity.of_pairs(askers, rows.astype(np.int64), alike)

    def _with_noise(
        self,
        weights: Floats,
        positions: Integers,
        lists: Lists,
        keys: npt.NDArray[np.uint64],
        numbers: Rows,
    ) -> Floats:
        """Return the weights with the mechanism's noise, where it adds any."""
        scale = None if lists.bounds is None else self.mechanism.noise_scale(lists.bounds)
        if scale is None:
            return weights
        wide = np.broadcast_to(np.asarray(scale).reshape(len(keys), -1), lists.similarities.shape)
        scales = np.take_along_axis(wide, positions, axis=1).reshape(weights.shape)
        noise = np.empty(weights.shape)
        noise_for_fakes(AttackedData(keys, lists.removed, self.n_rows), numbers, scales, noise)
        return weights + (noise + 0.0)

    def _answers(
        self, targets: Targets, neighbours: Rows, weights: Floats, helper_rating: float | None
    ) -> Floats:
        """Return the predictions of the hidden cells, (askers, hidden)."""
        n_targets, n_askers, k = neighbours.shape
        if helper_rating is not None:
            csr = self.ratings.csr
            rated = Csr(csr.indptr, csr.indices, csr.data)
            answers = np.empty((n_askers, n_targets))
            for asker in range(n_askers):
                predict_beside_helpers(
                    targets.columns,
                    helper_rating,
                    np.ascontiguousarray(neighbours[:, asker]),
                    np.ascontiguousarray(weights[:, asker]),
                    rated,
                    self.over_raters,
                    answers[asker],
                )
            return answers
        # Fakes rated none of the hidden items: an empty row stands in for each of them.
        near = np.where(neighbours == FAKE, np.int32(self.n_rows), neighbours)
        groups = Neighbourhoods(near.reshape(-1, k), weights.reshape(-1, k), self.over_raters)
        rows = targets.owners * n_askers + np.arange(n_askers)[:, np.newaxis]
        columns = np.tile(targets.columns, n_askers)
        answers = groups.predict(self._rated, rows.ravel(), columns, threads=self.threads)
        return answers.reshape(n_askers, -1)

    @cached_property
    def _rated(self) -> sparse.csr_array:
        """The real ratings, and one row with none."""
        csr = self.ratings.csr
        indptr = np.append(csr.indptr, csr.indptr[-1])
        indptr.flags.writeable = False
        shape = (csr.shape[0] + 1, csr.shape[1])
        return sparse.csr_array((csr.data, csr.indices, indptr), shape=shape, copy=False)


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
            rated = _row(askers.rows, row)
            real[row] = profile_sensitivity(self.peaks, *rated, n_copies=1, without=without)
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
        owners = _owners(askers)
        gone = self.peaks.strongest.rows[columns] == removed[owners][:, np.newaxis]
        gone &= removed[owners][:, np.newaxis] >= 0
        others = np.where(gone, 0.0, self.peaks.strongest.values[columns]).max(axis=1, initial=0.0)
        if helpers is not None:
            # A helper has the asker's items, and perhaps one more, which they do not share.
            cells = [
                _owners(one) * np.int64(askers.rows.shape[1]) + one.rows.indices
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
        csr, owners = profiles.rows, _owners(profiles)
        squares = csr.data * csr.data
        totals = np.bincount(owners, weights=squares, minlength=csr.shape[0])
        rests = np.sqrt(totals[owners] - squares)
        alone = np.inf if self.options.clamp else 0.0
        only = np.where(csr.data > 0, alone, 0.0)
        return np.where(rests > 0, csr.data / np.where(rests > 0, rests, 1.0), only)


def _owners(profiles: Profiles) -> Integers:
    """Return whose each rating is."""
    return np.repeat(np.arange(profiles.n_rows), np.diff(profiles.rows.indptr))


def _row(csr: sparse.csr_array, row: int) -> tuple[npt.NDArray[np.int32], Floats]:
    part = slice(csr.indptr[row], csr.indptr[row + 1])
    return csr.indices[part], csr.data[part]
