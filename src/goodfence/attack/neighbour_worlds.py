"""Worlds of a selection mechanism without a refit: only the fakes' own candidate lists decide what they are told.

A block of targets is asked about at once. Both worlds share the similarities to the real rows: in the world
without the target she is skipped, and the rows behind her move up by one. The answers equal those of the long
way (append the fakes, fit `NeighbourCF` with the same seed, ask), which `RefitWorlds` goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.attack.fake_sensitivity import FakeSensitivity
from goodfence.attack.fakes import fake_profiles, fake_similarities
from goodfence.attack.targets import Floats, Integers, Targets
from goodfence.attack.worlds import Asked
from goodfence.data.ratings import Ratings
from goodfence.engines.local.predictions import Neighbourhoods
from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.engines.local.threads import ranges, run
from goodfence.errors import SettingError
from goodfence.kernels.attack import (
    FAKE,
    draw_for_fakes,
    insert_fakes,
    noise_for_fakes,
    predict_beside_helpers,
)
from goodfence.rng import Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.pool import Pool, pool_arrays, takes_all
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

_CELLS = 2_000_000
"""How many list entries are held at a time."""
_MOST = 512
_PIECE = 32


@dataclass(frozen=True, eq=False, repr=False)
class Lists:
    """The candidate lists of the asking fakes of some targets, in one of the worlds."""

    rows: npt.NDArray[np.int32]
    """(targets, reach): real rows, `FAKE` for a fake."""
    similarities: Floats
    """(targets, reach): descending."""
    removed: Integers
    """(targets,): the row that this world lacks, -1 for none."""
    bounds: Floats | None
    """RS of each asker, (targets,), or of each pair, (targets, reach); None where the mechanism needs none."""


class NeighbourWorlds:
    """Worlds of `NeighbourCF(mechanism)`, user-based, attacked by `n_fakes` fakes."""

    def __init__(
        self,
        ratings: Ratings,
        mechanism: Mechanism,
        n_fakes: int,
        *,
        similarity: Similarity,
        over_raters: bool,
        threads: int | None = None,
    ) -> None:
        if mechanism.sensitivity is not None and similarity.name == "pearson":
            raise SettingError(
                "similarity must be a cosine for a mechanism with a sensitivity: RS is not defined for pearson"
            )
        self.mechanism, self.similarity, self.over_raters = mechanism, similarity, over_raters
        self.n_fakes, self.threads = n_fakes, threads
        self.ratings = ratings
        self.profiles = Profiles.of(ratings.csr)
        self.n_rows = ratings.shape[0]
        self.reach = mechanism.reach(self.n_rows + n_fakes - 1)
        self.reach_without = mechanism.reach(self.n_rows + n_fakes - 2)

    @cached_property
    def sensitivity(self) -> FakeSensitivity | None:
        """RS of the fakes, where the mechanism needs it."""
        options = self.mechanism.sensitivity
        return None if options is None else FakeSensitivity.of(self.profiles, options)

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
        """Return what the first `n_askers` fakes are told about the hidden items of each target."""
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
        """Return the candidate lists of the asking fakes, in the world with each target and without her.

        They are the same for every fake that asks, but for the numbers of its fellows.
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
        self,
        lists: Lists,
        keys: npt.NDArray[np.uint64],
        n_askers: int,
    ) -> tuple[npt.NDArray[np.int32], Floats]:
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
                starts[block],
                stops[block],
                takes[block],
                keys[block],
                lists.removed[block],
                self.n_rows,
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
        self,
        rows: npt.NDArray[np.int32],
        askers: Profiles,
        helpers: Profiles,
        removed: Integers,
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
        numbers: npt.NDArray[np.int32],
    ) -> Floats:
        """Return the weights with the mechanism's noise, where it adds any."""
        scale = None if lists.bounds is None else self.mechanism.noise_scale(lists.bounds)
        if scale is None:
            return weights
        wide = np.broadcast_to(np.asarray(scale).reshape(len(keys), -1), lists.similarities.shape)
        scales = np.take_along_axis(wide, positions, axis=1).reshape(weights.shape)
        noise = np.empty(weights.shape)
        noise_for_fakes(keys, lists.removed, self.n_rows, numbers, scales, noise)
        return weights + (noise + 0.0)

    def _answers(
        self,
        targets: Targets,
        neighbours: npt.NDArray[np.int32],
        weights: Floats,
        helper_rating: float | None,
    ) -> Floats:
        """Return the predictions of the hidden cells, (askers, hidden)."""
        n_targets, n_askers, k = neighbours.shape
        if helper_rating is not None:
            csr = self.ratings.csr
            answers = np.empty((n_askers, n_targets))
            for asker in range(n_askers):
                predict_beside_helpers(
                    targets.columns,
                    helper_rating,
                    np.ascontiguousarray(neighbours[:, asker]),
                    np.ascontiguousarray(weights[:, asker]),
                    csr.indptr,
                    csr.indices,
                    csr.data,
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
