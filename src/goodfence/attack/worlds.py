"""The two worlds of each target, with the target's data and without: from candidate lists, or by refits.

`NeighbourWorlds` needs no fit: of a user-based `NeighbourCF` the fakes' own candidate lists decide what they are told.
A block of targets is asked about at once. Both worlds share the similarities to the real rows: in the world without the
target its row is skipped, and the rows behind move up by one. The answers equal those of `RefitWorlds` (append the
fakes, fit with the same seed, ask), which are for any recommender, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Csr, Floats, Integers, Rows
from goodfence.attack.targets import (
    Asked,
    FakeSensitivity,
    Targets,
    attacked,
    fake_profiles,
    fake_similarities,
    helper_cells,
)
from goodfence.data.ratings import Ratings
from goodfence.errors import BlackBoxProblem, DataError, GoodfenceError
from goodfence.kernels.attack import (
    FAKE,
    AttackedData,
    draw_for_fakes,
    insert_fakes,
    noise_for_fakes,
    predict_beside_helpers,
)
from goodfence.kernels.draw import PoolArrays
from goodfence.models.method import traits_of
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.recommender import fit_received, unfitted_copy
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.draw import check_similarity
from goodfence.neighbours.predict import Neighbourhoods
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.parallel import ranges, run
from goodfence.rng import Streams
from goodfence.selection.mechanism import Pool, pool_arrays, takes_all
from goodfence.selection.sensitivity import item_peaks

FakeCells: TypeAlias = "tuple[Any, Any]"
"""The columns and ratings of one account."""

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
            neighbours, weights = self.choose(lists, keys, n_askers)
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
        first, second = self.lists_of(askers, helpers, targets.rows, (True, False))
        return first, second

    def lists_of(
        self, askers: Profiles, helpers: Profiles, rows: Integers, present: Sequence[bool]
    ) -> list[Lists]:
        """Return the candidate lists of some askers in worlds where the target, in `rows`, is `present` or not."""
        engine = RowsAgainstAll(self.profiles, self.similarity)
        n_nearest = min(self.n_rows, self.reach + 1)
        every = np.arange(len(rows))
        nearest = engine.nearest(askers, every, n_nearest, themselves=False, threads=self.threads)
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

    def choose(
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


class RefitWorlds:
    """Worlds of a recommender, of which a copy is fitted in each.

    A copy with an `rng` gets the seed of the target in it, the same in both worlds, unless its guarantee is lost with
    a seed. One that cannot `predict` is asked by `answer`: then the asking fake is not in the data, and the others are.
    Where users send noisy ratings (a method `perturbed`), all real users do, with the same noise in both worlds, and
    the fakes do not: whoever attacks does not volunteer. What was asked once is remembered.
    """

    one_by_one = True

    def __init__(
        self, ratings: Ratings, recommender: Any, n_fakes: int, *, similarity: Similarity
    ) -> None:
        self.ratings, self.recommender, self.n_fakes = ratings, recommender, n_fakes
        self.similarity = similarity
        self.asks_inside = callable(getattr(recommender, "predict", None))
        self.traits = traits_of(recommender)
        self._asked: dict[tuple[object, ...], Asked] = {}
        self._together: bool | None = None

    def at_once(self, n_askers: int) -> int:  # noqa: ARG002 - protocol
        """Return 1: each target has its own worlds."""
        return 1

    def ask(
        self,
        targets: Targets,
        seeds: Sequence[int],
        n_askers: int,
        helper_rating: float | None = None,
    ) -> Asked:
        """Return what the first `n_askers` fakes are told, as in `NeighbourWorlds.ask`."""
        parts = []
        for first, last in self._groups(targets, seeds, helper_rating):
            part = targets.part(first, last)
            parts.append(self._remembered(part, seeds[first], n_askers, helper_rating))
        return Asked.joined(parts)

    def answers_to(self, accounts: list[FakeCells], columns: Integers, seed: int) -> Floats:
        """Return what each account is told beside all real users, the first one twice: (accounts + 1, items)."""
        asking = accounts if self.asks_inside else []
        fitted, ids = self._fitted(self._sent(seed), asking, None, seed)
        whom = ids if self.asks_inside else [self._profile(cells) for cells in accounts]
        whom = [whom[0], *whom]
        return np.stack([self._told(fitted, [one], columns)[0] for one in whom])

    def told(
        self,
        accounts: list[FakeCells],
        columns: Integers,
        seed: int,
        *,
        removed: int | None = None,
        silent: list[FakeCells],
    ) -> Floats:
        """Return what each account is told beside all real users but one, and beside accounts that do not ask."""
        inside = [*accounts, *silent] if self.asks_inside else silent
        fitted, ids = self._fitted(self._sent(seed), inside, removed, seed)
        whom = ids if self.asks_inside else [self._profile(cells) for cells in accounts]
        return self._told(fitted, whom[: len(accounts)], columns)

    def _groups(
        self, targets: Targets, seeds: Sequence[int], helper_rating: float | None
    ) -> list[tuple[int, int]]:
        """Return which entries share a fit: questions about one target whose helpers do not disturb each other.

        Where answers rest on a release, the attacker opens the helpers of all questions at once: one release is enough.
        """
        n = len(targets)
        alone = [(position, position + 1) for position in range(n)]
        about_one = n > 1 and bool((targets.rows == targets.rows[0]).all())
        if helper_rating is None or not about_one or not self.among_raters:
            return alone
        if self.traits.released:
            return [(0, n)]
        if self._together is None:
            self._together = self.undisturbed(targets, seeds, helper_rating)
        return [(0, n)] if self._together else alone

    @property
    def among_raters(self) -> bool:
        """Whether neighbours may be chosen among the raters of each item, as far as that is known."""
        return self.traits.mechanism is None or self.traits.among == "raters"

    def undisturbed(
        self, targets: Targets, seeds: Sequence[int], helper_rating: float
    ) -> bool | None:
        """Return whether the answers are the same with the helpers of all questions in the data; None if none came.

        They are where neighbours are chosen among the raters of an item: other items' helpers did not rate it.
        """
        parts = [
            self._remembered(targets.part(place, place + 1), seed, 1, helper_rating)
            for place, seed in enumerate(seeds)
        ]
        alone = Asked.joined(parts)
        if np.isnan(alone.with_target).all():
            return None
        beside = self._remembered(targets, seeds[0], 1, helper_rating)
        return all(
            np.allclose(getattr(alone, world), getattr(beside, world), equal_nan=True)
            for world in ("with_target", "without_target")
        )

    def _remembered(
        self, part: Targets, seed: int, n_askers: int, helper_rating: float | None
    ) -> Asked:
        """Return the answers about one target, or about the questions of one, asking only if nobody did before."""
        cells = part.rows, part.known_columns, part.columns
        key = seed, n_askers, helper_rating, *(array.tobytes() for array in cells)
        if key not in self._asked:
            self._asked[key] = self._ask(part, seed, n_askers, helper_rating)
        return self._asked[key]

    def _ask(self, part: Targets, seed: int, n_askers: int, helper_rating: float | None) -> Asked:
        """Return the answers in both worlds: append the accounts, fit, ask."""
        accounts = self._accounts(part, helper_rating)
        sent, told, chosen = self._sent(seed), [], float(np.nan)
        for removed in (None, int(part.rows[0])):
            inside = accounts if self.asks_inside else accounts[1:]
            fitted, ids = self._fitted(sent, inside, removed, seed)
            whom = ids if self.asks_inside else [self._profile(accounts[0])] * self.n_fakes
            told.append(self._told(fitted, whom[:n_askers], part.columns))
            if removed is None:
                chosen = self._chosen(fitted, int(part.rows[0]), n_askers)
        return Asked(told[0], told[1], np.full(len(part), chosen))

    def _accounts(self, part: Targets, helper_rating: float | None) -> list[FakeCells]:
        """Return the columns and ratings of each fake, the asking one first."""
        known = part.known_columns[0], part.known_ratings[0]
        if helper_rating is None:
            return [known] * self.n_fakes
        helpers = zip(*helper_cells(part, helper_rating), strict=True)
        return [known, *(cells for cells in helpers for _ in range(self.n_fakes - 1))]

    def _sent(self, seed: int) -> Ratings:
        """Return what real users send: their ratings, or what client-side noise makes of them."""
        if not callable(getattr(self.recommender, "perturbed", None)):
            return self.ratings
        with theirs("perturbed"):
            sent: Ratings = self.recommender.perturbed(self.ratings, seed)
        if sent.shape != self.ratings.shape:
            raise DataError("perturbed must return ratings of the same users and items")
        return sent

    def _fitted(
        self, sent: Ratings, accounts: list[FakeCells], removed: int | None, seed: int
    ) -> tuple[Any, Any]:
        """Return the recommender fitted in one world, and the ids of the accounts in it."""
        world, ids = attacked(
            sent, removed, [cells for cells, _ in accounts], [values for _, values in accounts]
        )
        copied = unfitted_copy(self.recommender, None if self.traits.fresh_noise else seed)
        with theirs("fit"):
            return fit_received(copied, world), ids

    def _profile(self, cells: FakeCells) -> dict[Any, Any]:
        columns, values = cells
        return dict(zip(self.ratings.items[columns].tolist(), values.tolist(), strict=True))

    def _told(self, fitted: Any, whom: Any, columns: Integers) -> Floats:
        """Return the answers, (askers, items)."""
        items = self.ratings.items[columns]
        if self.asks_inside:
            askers = np.repeat(whom, len(items))
            with theirs("predict"):
                answers = fitted.predict(askers, np.tile(items, len(whom)))
            return np.asarray(answers, dtype=np.float64).reshape(len(whom), -1)
        with theirs("answer"):
            told = [fitted.answer(profile, items) for profile in whom]
        return np.asarray(told, dtype=np.float64)

    def _chosen(self, fitted: Any, row: int, n_askers: int) -> float:
        """Return the share of the asking fakes whose neighbours the target is among; NaN if that is not known."""
        near = getattr(fitted, "neighbours_", None)
        fixed = self.traits.mechanism is not None and self.traits.among == "all"
        if not fixed or not self.asks_inside or near is None:
            return float(np.nan)
        first = self.ratings.shape[0]
        return float((near[first : first + n_askers] == row).any(axis=1).mean())


@contextmanager
def theirs(what: str) -> Iterator[None]:
    """Tell an error of the attacked recommender as its own."""
    try:
        yield
    except GoodfenceError:
        raise
    except Exception as error:
        raise BlackBoxProblem(
            f"the recommender that is attacked failed in {what} with its own {type(error).__name__}: "
            "that is no fault of the attack; see the error above for its cause"
        ) from error
