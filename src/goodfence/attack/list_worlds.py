"""Recommended lists in the two worlds of each target: by candidate lists where these decide, or by refits.

As with predicted ratings, `NeighbourListWorlds` needs no fit: the fakes' candidate lists say who their neighbours are,
and what these have in common is ranked by the kernel that ranks it in `recommend`. The lists equal those of
`RefitListWorlds` (append the fakes, fit with the same seed, ask) to the last item. In both, fakes are rows that hold
what the attacker gave them, and what an account holds is never listed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from goodfence.arrays import Csr, Floats, Integers, Rows, Words
from goodfence.attack.targets import Targets
from goodfence.attack.worlds import FakeCells, Lists, NeighbourWorlds, RefitWorlds, theirs
from goodfence.data.ratings import Ratings
from goodfence.errors import BlackBoxProblem, DataError, SettingError
from goodfence.kernels.attack import FAKE
from goodfence.kernels.lists import NO_ITEM, rank_by_neighbours
from goodfence.neighbours.similarity import Similarity
from goodfence.parallel import ranges, run
from goodfence.rng import Streams
from goodfence.selection.mechanism import takes_all

ListWorlds: TypeAlias = "NeighbourListWorlds | RefitListWorlds"
_PIECE = 32


@dataclass(frozen=True, eq=False, repr=False)
class Accounts:
    """What the fakes of some targets hold: the same for all fakes of one target."""

    rows: Integers
    """(targets,): the targets' rows."""
    cells: Sequence[FakeCells]
    """For each target the columns, ascending, and their values."""
    draw_seeds: Callable[[], list[int]]
    """Returns the seed of each target's worlds; not called where nothing is drawn."""

    def __repr__(self) -> str:
        return f"Accounts({len(self.rows):,} targets)"

    @cached_property
    def seeds(self) -> list[int]:
        """(targets,): the seed of each target's worlds."""
        return self.draw_seeds()

    @classmethod
    def knowing(cls, targets: Targets, draw_seeds: Callable[[], list[int]]) -> Accounts:
        """Return accounts with exactly what the attacker knows."""
        cells = list(zip(targets.known_columns, targets.known_ratings, strict=True))
        return cls(targets.rows, cells, draw_seeds)

    def clicking(self, lists: Rows, draw_seeds: Callable[[], list[int]]) -> Accounts:
        """Return the same accounts after they clicked what was listed, (targets, n), in worlds with other seeds."""
        cells = []
        for (columns, values), listed in zip(self.cells, lists, strict=True):
            new = listed[listed >= 0]
            both = np.concatenate([columns, new])
            order = np.argsort(both, kind="stable")
            cells.append((both[order], np.concatenate([values, np.ones(len(new))])[order]))
        return Accounts(self.rows, cells, draw_seeds)


class Shown(NamedTuple):
    """What the asking fakes were shown in one world."""

    lists: Rows
    """(targets, askers, n): columns, best first; `NO_ITEM` where a list ends."""
    chosen: Floats
    """(targets,): the share of the askers with the target among their neighbours; NaN if that is not known."""
    alone: Floats
    """(targets,): the share of the askers with no real neighbour but the target; NaN if that is not known."""


class NeighbourListWorlds(NeighbourWorlds):
    """Worlds of a user-based `NeighbourCF` on events, which need not be fitted."""

    def shown(
        self, accounts: Accounts, n_askers: int, n: int, present: Sequence[bool]
    ) -> list[Shown]:
        """Return what the first `n_askers` fakes are shown where the target is `present`, and where it is not."""
        columns, values = zip(*accounts.cells, strict=True)
        held = self.profiles.lay_out(columns, values)
        seen = Csr(held.rows.indptr, held.rows.indices, held.rows.data)
        found = []
        for lists in self.lists_of(held, held, accounts.rows, present):
            neighbours, weights = self.choose(lists, self._keys(accounts, lists), n_askers)
            target = neighbours == accounts.rows[:, np.newaxis, np.newaxis]
            others = (neighbours != FAKE) & ~target
            there = target.any(axis=2)
            found.append(
                Shown(
                    self._ranked(neighbours, weights, seen, n),
                    there.mean(axis=1),
                    (there & ~others.any(axis=2)).mean(axis=1),
                )
            )
        return found

    def _keys(self, accounts: Accounts, lists: Lists) -> Words:
        """Return the key of each target's random stream; any key where nothing is drawn."""
        pools = self.mechanism.pools(lists.similarities, lists.bounds)
        noisy = lists.bounds is not None and self.mechanism.noise_scale(lists.bounds) is not None
        if takes_all(pools) and not noisy:
            return np.zeros(len(accounts.rows), dtype=np.uint64)
        return np.array([Streams(seed).key() for seed in accounts.seeds], dtype=np.uint64)

    def _ranked(self, neighbours: Rows, weights: Floats, seen: Csr, n: int) -> Rows:
        """Return the n best items of each asker: fakes hold nothing that could be listed."""
        n_targets, n_askers, _ = neighbours.shape
        csr = self.ratings.csr
        rated = Csr(csr.indptr, csr.indices, csr.data)
        allowed = np.ones(csr.shape[1], dtype=np.bool_)
        lists = np.empty((n_askers, n_targets, n), dtype=np.int32)

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            own = Csr(seen.starts[first : last + 1], seen.columns, seen.values)
            scores = np.empty((last - first, n))
            for asker in range(n_askers):
                near, weight = neighbours[first:last, asker], weights[first:last, asker]
                listed = lists[asker, first:last]
                rank_by_neighbours(
                    np.ascontiguousarray(near),
                    np.ascontiguousarray(weight),
                    rated,
                    own,
                    allowed,
                    listed,
                    scores,
                )

        run(work, ranges(n_targets, _PIECE), threads=self.threads)
        return np.ascontiguousarray(lists.swapaxes(0, 1))


class _Told(NamedTuple):
    """What each asker of one target was shown, and whether the target was near."""

    lists: Rows
    """(askers, n)."""
    chosen: Floats
    """(askers,)."""
    alone: Floats
    """(askers,)."""


class RefitListWorlds(RefitWorlds):
    """Worlds of any recommender of lists, of which a copy is fitted in each; see `RefitWorlds`.

    Asked is `recommend(user, n)`, as an account in the data; one that has only `answer_list(profile, n)` is asked with
    the profile, and the asking fake is not in the data.
    """

    def __init__(
        self, ratings: Ratings, recommender: Any, n_fakes: int, *, similarity: Similarity
    ) -> None:
        super().__init__(ratings, recommender, n_fakes, similarity=similarity)
        able = [callable(getattr(recommender, name, None)) for name in ("recommend", "answer_list")]
        if not any(able):
            raise SettingError(
                "what is attacked through its lists must have recommend(user, n) or answer_list(profile, n), got "
                f"{type(recommender).__name__}"
            )
        self.asks_inside = able[0]
        self._lists_told: dict[tuple[object, ...], _Told] = {}

    def shown(
        self, accounts: Accounts, n_askers: int, n: int, present: Sequence[bool]
    ) -> list[Shown]:
        """Return what the first `n_askers` fakes are shown where the target is `present`, and where it is not."""
        found = []
        for there in present:
            parts = [
                self._of_one(place, accounts, n_askers, n, there)
                for place in range(len(accounts.rows))
            ]
            found.append(Shown(*(np.concatenate(part) for part in zip(*parts, strict=True))))
        return found

    def _of_one(self, place: int, accounts: Accounts, n_askers: int, n: int, there: bool) -> Shown:
        """Return what the fakes of one target are shown, asking only if not as many did before."""
        row, cells, seed = int(accounts.rows[place]), accounts.cells[place], accounts.seeds[place]
        key = row, seed, n, there, *(np.asarray(one).tobytes() for one in cells)
        if key not in self._lists_told or len(self._lists_told[key].lists) < n_askers:
            inside = self.n_fakes if self.asks_inside else self.n_fakes - 1
            removed = None if there else row
            fitted, ids = self._fitted(self._sent(seed), [cells] * inside, removed, seed)
            whom = ids[:n_askers] if self.asks_inside else [self._profile(cells)] * n_askers
            listed = [self._listed(fitted, one, cells[0], n) for one in whom]
            self._lists_told[key] = _Told(np.stack(listed), *self._near(fitted, row, n_askers))
        told = self._lists_told[key]
        chosen, alone = (one[:n_askers].mean(keepdims=True) for one in (told.chosen, told.alone))
        return Shown(told.lists[np.newaxis, :n_askers], chosen, alone)

    def _listed(self, fitted: Any, whom: Any, held: Integers, n: int) -> Rows:
        """Return the columns that one account is shown, (n,)."""
        method = "recommend" if self.asks_inside else "answer_list"
        with theirs(method):
            answer = getattr(fitted, method)(whom, n)
        return listed_columns(answer, self.ratings, held, n)

    def _near(self, fitted: Any, row: int, n_askers: int) -> tuple[Floats, Floats]:
        """Return of each asker whether the target is a neighbour, and the only real one; NaN if not known."""
        near = getattr(fitted, "neighbours_", None)
        fixed = self.traits.mechanism is not None and self.traits.among == "all"
        if not fixed or not self.asks_inside or near is None:
            unknown = np.full(n_askers, np.nan)
            return unknown, unknown
        first = self.ratings.shape[0]
        own = near[first : first + n_askers]
        there = (own == row).any(axis=1)
        others = ((own < first) & (own != row)).any(axis=1)
        return there.astype(np.float64), (there & ~others).astype(np.float64)


def listed_columns(answer: Any, ratings: Ratings, held: Integers, n: int) -> Rows:
    """Return a list as columns, (n,): `answer` is ids, or (ids, scores), best first.

    What the account holds itself, and what is listed twice, tells nothing and is left out.

    Examples
    --------
    >>> from scipy import sparse
    >>> events = Ratings(sparse.csr_array(np.eye(3)), [1, 2, 3], ["a", "b", "c"], feedback="implicit")
    >>> listed_columns(["c", "a", "c"], events, np.array([0]), 2)
    array([ 2, -1], dtype=int32)
    """
    items = answer.items if isinstance(getattr(answer, "items", None), np.ndarray) else answer
    if isinstance(items, tuple) and len(items) == 2 and np.ndim(items[0]) == 1:
        items = items[0]
    if isinstance(items, str | bytes | dict) or np.ndim(items) != 1:
        raise BlackBoxProblem("a list must be item ids, best first, or ids and scores; it is not")
    try:
        columns = ratings.columns(list(items)[:n])
    except DataError:
        raise BlackBoxProblem("a list must hold ids of items in the data, and one is not") from None
    _, first = np.unique(columns, return_index=True)
    new = columns[np.sort(first)]
    new = new[~np.isin(new, held)]
    lists = np.full(n, NO_ITEM, dtype=np.int32)
    lists[: len(new)] = new
    return lists
