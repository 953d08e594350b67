"""The two worlds of each target, with the target's data and without, from candidate lists.

`NeighbourWorlds` needs no fit: of a user-based `NeighbourCF` the fakes' own candidate lists decide what they are told.
A block of targets is asked about at once. Both worlds share the similarities to the real rows: in the world without the
target its row is skipped, and the rows behind move up by one. Predictions and lists equal those of `RefitWorlds`
(append the fakes, fit with the same seed, ask), which are for any recommender, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from goodfence.arrays import Floats, Integers, Rows, Words, as_csr
from goodfence.attack.fakes import FakeCells
from goodfence.attack.targets import Asked, FakeSensitivity, Targets, equal_runs, fake_profiles, fake_similarities
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
from goodfence.kernels.lists import NO_ITEM
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.draw import check_similarity
from goodfence.neighbours.lists import UserVotes
from goodfence.neighbours.predict import Neighbourhoods
from goodfence.neighbours.similarity import Profiles
from goodfence.parallel import ranges, run, thread_count
from goodfence.rng import keys_of
from goodfence.selection.mechanism import Pool, pool_arrays, takes_all
from goodfence.selection.sensitivity import item_peaks

_CELLS = 2_000_000
"""How many list entries are held at a time."""
_MOST = 512
_PIECE = 32


class Accounts(NamedTuple):
    """What the fakes of some targets hold: the same for all fakes of one target."""

    rows: Integers
    """(targets,): the targets' rows."""
    cells: Sequence[FakeCells]
    """For each target the columns, ascending, and their values."""
    seeds: Sequence[int]
    """(targets,): the seed of each target's worlds."""

    def __repr__(self) -> str:
        return f"Accounts({len(self.rows):,} targets)"

    @classmethod
    def knowing(cls, targets: Targets, seeds: Sequence[int]) -> Accounts:
        """Return accounts with exactly what the attacker knows."""
        cells = list(zip(targets.known_columns, targets.known_ratings, strict=True))
        return cls(targets.rows, cells, seeds)

    def clicking(self, lists: Rows, seeds: Sequence[int]) -> Accounts:
        """Return the same accounts after they clicked what was listed, (targets, n), in worlds with other seeds."""
        cells = []
        for (columns, values), listed in zip(self.cells, lists, strict=True):
            new = listed[listed >= 0]
            both = np.concatenate([columns, new])
            order = np.argsort(both, kind="stable")
            cells.append((both[order], np.concatenate([values, np.ones(len(new))])[order]))
        return Accounts(self.rows, cells, seeds)


class Shown(NamedTuple):
    """What the asking fakes were shown in one world."""

    lists: Rows
    """(targets, askers, n): columns, best first; `NO_ITEM` where a list ends."""
    chosen: Floats
    """(targets,): the share of the askers with the target among their neighbours; NaN if that is not known."""
    alone: Floats
    """(targets,): the share of the askers with no real neighbour but the target; NaN if that is not known."""


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

    def __init__(self, ratings: Ratings, model: NeighbourCF, n_fakes: int, *, threads: int | None = None) -> None:
        check_similarity(model.mechanism, model.similarity)
        self.mechanism, self.similarity = model.mechanism, model.similarity
        self.over_raters = model.over == "raters"
        self.n_fakes, self.threads = n_fakes, model.threads if threads is None else threads
        self.ratings = ratings
        self.profiles = Profiles.of(ratings.csr)
        self.n_rows = ratings.shape[0]
        self.reach = self.mechanism.reach(self.n_rows + n_fakes - 1)
        self.reach_without = self.mechanism.reach(self.n_rows + n_fakes - 2)

    @property
    def asking(self) -> int:
        """In how many threads questions may be asked; one that is fitted is asked by one."""
        return thread_count(self.threads)

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

    def ask(self, targets: Targets, seeds: Sequence[int], n_askers: int, helper_rating: float | None = None) -> Asked:
        """Return what the first `n_askers` fakes are told about the hidden items of each target, by its own seed.

        With a `helper_rating`, every fake but the first also gives it to the one hidden item of its target.
        """
        keys, told = keys_of(seeds), []
        for lists in self.lists(targets, helper_rating):
            neighbours, weights = self.choose(lists, keys, n_askers)
            answers = self._answers(targets, neighbours, weights, helper_rating)
            told.append((neighbours, answers))
        (neighbours, with_target), (_, without_target) = told
        among = (neighbours == targets.rows[:, np.newaxis, np.newaxis]).any(axis=2)
        return Asked(with_target, without_target, among.mean(axis=1))

    def lists(self, targets: Targets, helper_rating: float | None = None) -> tuple[Lists, Lists]:
        """Return the candidate lists of the asking fakes, in the world with each target and without."""
        askers, helpers = fake_profiles(self.profiles, targets, helper_rating)
        first, second = self.lists_of(askers, helpers, targets.rows, (True, False))
        return first, second

    def lists_of(self, askers: Profiles, helpers: Profiles, rows: Integers, present: Sequence[bool]) -> list[Lists]:
        """Return the candidate lists of some askers in worlds where the target, in `rows`, is `present` or not."""
        engine = RowsAgainstAll(self.profiles, self.similarity)
        n_nearest = min(self.n_rows, self.reach + 1)
        new, runs = equal_runs(askers)
        near, similarities = engine.nearest(askers, new, n_nearest, themselves=False, threads=self.threads)
        nearest = near[runs], similarities[runs]
        alike = fake_similarities(askers, helpers, self.similarity)
        nobody = np.full(len(rows), -1, dtype=np.int64)
        worlds = []
        for there in present:
            removed, reach = (nobody, self.reach) if there else (rows, self.reach_without)
            merged = np.empty((len(rows), reach), dtype=np.int32), np.empty((len(rows), reach))
            insert_fakes(*nearest, alike, self.n_fakes - 1, removed, *merged)
            bounds = self._bounds(merged[0], askers, helpers, removed)
            worlds.append(Lists(*merged, removed, bounds))
        return worlds

    def choose(self, lists: Lists, keys: Words, n_askers: int) -> tuple[Rows, Floats]:
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

    def _bounds(self, rows: Rows, askers: Profiles, helpers: Profiles, removed: Integers) -> Floats | None:
        """Return RS of each asker, or of each pair, or None."""
        if self.sensitivity is None:
            return None
        fellows = helpers if self.n_fakes > 1 else None
        if self.sensitivity.options.scope == "target":
            return self.sensitivity.of_askers(askers, fellows, removed)
        alike = None if fellows is None else self.sensitivity.of_helpers(askers, fellows)
        return self.sensitivity.of_pairs(askers, rows.astype(np.int64), alike)

    def _with_noise(self, weights: Floats, positions: Integers, lists: Lists, keys: Words, numbers: Rows) -> Floats:
        """Return the weights with the mechanism's noise, where it adds any."""
        scale = None if lists.bounds is None else self.mechanism.noise_scale(lists.bounds)
        if scale is None:
            return weights
        wide = np.broadcast_to(np.asarray(scale).reshape(len(keys), -1), lists.similarities.shape)
        scales = np.take_along_axis(wide, positions, axis=1).reshape(weights.shape)
        noise = np.empty(weights.shape)
        noise_for_fakes(AttackedData(keys, lists.removed, self.n_rows), numbers, scales, noise)
        return weights + (noise + 0.0)

    def _answers(self, targets: Targets, neighbours: Rows, weights: Floats, helper_rating: float | None) -> Floats:
        """Return the predictions of the hidden cells, (askers, hidden)."""
        n_targets, n_askers, k = neighbours.shape
        if helper_rating is not None:
            # One asks, the others help.
            rated, answers = as_csr(self.ratings.csr), np.empty((1, n_targets))
            asked, over = (neighbours[:, 0], weights[:, 0]), self.over_raters
            predict_beside_helpers(targets.columns, helper_rating, *asked, rated, over, answers[0])
            return answers
        # Fakes rated none of the hidden items: an empty row stands in for each of them.
        near = np.where(neighbours == FAKE, np.int32(self.n_rows), neighbours)
        groups = Neighbourhoods(near.reshape(-1, k), weights.reshape(-1, k), self.over_raters)
        rows = targets.owners * n_askers + np.arange(n_askers)[:, np.newaxis]
        columns = np.tile(targets.columns, n_askers)
        answers = groups.predict(self._rated, rows.ravel(), columns, threads=self.threads)
        return answers.reshape(n_askers, -1)

    def shown(self, accounts: Accounts, n_askers: int, n: int, present: Sequence[bool]) -> list[Shown]:
        """Return what the first `n_askers` fakes are shown where the target is `present`, and where it is not."""
        columns, values = zip(*accounts.cells, strict=True)
        held = self.profiles.lay_out(columns, values)
        keys = keys_of(accounts.seeds)
        seen = sparse.csr_array(held.rows[np.repeat(np.arange(len(keys)), n_askers)])
        votes, allowed = UserVotes(self.ratings.csr), np.ones(seen.shape[1], dtype=np.bool_)
        found = []
        for lists in self.lists_of(held, held, accounts.rows, present):
            neighbours, weights = self.choose(lists, keys, n_askers)
            target = neighbours == accounts.rows[:, np.newaxis, np.newaxis]
            others = (neighbours != FAKE) & ~target
            there = target.any(axis=2)
            near = neighbours.reshape(seen.shape[0], -1), weights.reshape(seen.shape[0], -1)
            listed = votes.rank(near, seen, allowed, n, self.threads).columns
            free = ((0, 0), (0, n - listed.shape[1]))  # a list of more places than there are items
            ranked = np.pad(listed, free, constant_values=NO_ITEM).reshape(len(keys), n_askers, n)
            alone = (there & ~others.any(axis=2)).mean(axis=1)
            found.append(Shown(ranked, there.mean(axis=1), alone))
        return found

    @cached_property
    def _rated(self) -> sparse.csr_array:
        """The real ratings, and one row with none."""
        csr = self.ratings.csr
        indptr = np.append(csr.indptr, csr.indptr[-1])
        indptr.flags.writeable = False
        shape = (csr.shape[0] + 1, csr.shape[1])
        return sparse.csr_array((csr.data, csr.indices, indptr), shape=shape, copy=False)
