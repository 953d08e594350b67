"""The two worlds of each target for any recommender: append the fake accounts, fit a copy, ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from goodfence.arrays import Floats, Integers, Rows
from goodfence.attack.targets import Asked, Targets, helper_cells, with_fakes
from goodfence.attack.worlds import Accounts, FakeCells, Shown
from goodfence.data.ratings import Ratings
from goodfence.errors import BlackBoxProblem, DataError, GoodfenceError, SettingError
from goodfence.kernels.lists import NO_ITEM
from goodfence.models.method import traits_of
from goodfence.models.recommender import fit_received, unfitted_copy
from goodfence.neighbours.similarity import Similarity


class RefitWorlds:
    """Worlds of a recommender, of which a copy is fitted in each.

    A copy with an `rng` gets the seed of the target in it, the same in both worlds, unless its guarantee is lost with
    a seed. Asked is `predict`, or `recommend` for events, as an account in the data; one that has only `answer` or
    `answer_list` is asked with the profile: then the asking fake is not in the data, and the others are.
    Where users send noisy ratings (a method `perturbed`), all real users do, with the same noise in both worlds, and
    the fakes do not: whoever attacks does not volunteer. What was asked once is remembered.
    """

    one_by_one = True

    def __init__(self, ratings: Ratings, recommender: Any, n_fakes: int, *, similarity: Similarity) -> None:
        self.ratings, self.recommender, self.n_fakes = ratings, recommender, n_fakes
        self.similarity, self.traits = similarity, traits_of(recommender)
        events = ratings.feedback == "implicit"
        methods = ("recommend", "answer_list") if events else ("predict", "answer")
        able = [name for name in methods if callable(getattr(recommender, name, None))]
        if not able:
            raise SettingError(f"the attacked recommender must have {' or '.join(methods)}")
        self.method, self.asks_inside = able[0], able[0] == methods[0]
        self._asked: dict[tuple[object, ...], Asked] = {}
        self._shown: dict[tuple[object, ...], tuple[Rows, Floats, Floats]] = {}
        self._together: bool | None = None

    def at_once(self, n_askers: int) -> int:  # noqa: ARG002 - protocol
        """Return 1: each target has its own worlds."""
        return 1

    def ask(self, targets: Targets, seeds: Sequence[int], n_askers: int, helper_rating: float | None = None) -> Asked:
        """Return what the first `n_askers` fakes are told, as in `NeighbourWorlds.ask`."""
        parts = []
        for first, last in self._groups(targets, seeds, helper_rating):
            part = targets.part(first, last)
            parts.append(self._remembered(part, seeds[first], n_askers, helper_rating))
        return Asked.joined(parts)

    def answers_to(self, accounts: list[FakeCells], columns: Integers, seed: int) -> Floats:
        """Return what each account is told beside all real users, the first one twice: (accounts + 1, items)."""
        fitted, whom = self._world(self._sent(seed), accounts, len(accounts), None, seed)
        return np.stack([self._told(fitted, [one], columns)[0] for one in (whom[0], *whom)])

    def told(
        self,
        accounts: list[FakeCells],
        columns: Integers,
        seed: int,
        *,
        removed: int | None = None,
        silent: Sequence[FakeCells] = (),
    ) -> Floats:
        """Return what each account is told beside all real users but one, and beside accounts that do not ask."""
        every, n = [*accounts, *silent], len(accounts)
        return self._told(*self._world(self._sent(seed), every, n, removed, seed), columns)

    def _groups(self, targets: Targets, seeds: Sequence[int], helper_rating: float | None) -> list[tuple[int, int]]:
        """Return which entries share a fit: questions about one target whose helpers do not disturb each other."""
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

    def undisturbed(self, targets: Targets, seeds: Sequence[int], helper_rating: float) -> bool | None:
        """Return whether the answers are the same with the helpers of all questions in the data; None if none came."""
        parts = [
            self._remembered(targets.part(place, place + 1), seed, 1, helper_rating) for place, seed in enumerate(seeds)
        ]
        alone = Asked.joined(parts)
        if np.isnan(alone.with_target).all():
            return None
        beside = self._remembered(targets, seeds[0], 1, helper_rating)
        return all(
            np.allclose(getattr(alone, world), getattr(beside, world), equal_nan=True)
            for world in ("with_target", "without_target")
        )

    def _remembered(self, part: Targets, seed: int, n_askers: int, helper_rating: float | None) -> Asked:
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
        row, n_asking = int(part.rows[0]), n_askers if self.asks_inside else 1
        for removed in (None, row):
            fitted, whom = self._world(sent, accounts, n_asking, removed, seed)
            whom = whom if self.asks_inside else whom * n_askers
            told.append(self._told(fitted, whom, part.columns))
            if removed is None:
                chosen = float(self._near(fitted, row, n_askers)[0].mean())
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

    def _world(
        self, sent: Ratings, accounts: list[FakeCells], n_asking: int, removed: int | None, seed: int
    ) -> tuple[Any, Any]:
        """Return the recommender fitted in one world, and as whom its first accounts ask: by id, or by profile."""
        inside = accounts if self.asks_inside else accounts[n_asking:]
        world, ids = with_fakes(sent, removed, [cells for cells, _ in inside], [values for _, values in inside])
        copied = unfitted_copy(self.recommender, None if self.traits.fresh_noise else seed)
        with theirs("fit"):
            fitted = fit_received(copied, world)
        asking = [self._profile(cells) for cells in accounts[:n_asking]]
        return fitted, ids[:n_asking] if self.asks_inside else asking

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

    def shown(self, accounts: Accounts, n_askers: int, n: int, present: Sequence[bool]) -> list[Shown]:
        """Return what the first `n_askers` fakes are shown where the target is `present`, and where it is not."""
        found = []
        for there in present:
            parts = [self._of_one(place, accounts, n_askers, n, there) for place in range(len(accounts.rows))]
            found.append(Shown(*(np.concatenate(part) for part in zip(*parts, strict=True))))
        return found

    def _of_one(self, place: int, accounts: Accounts, n_askers: int, n: int, there: bool) -> Shown:
        """Return what the fakes of one target are shown, asking only if not as many did before."""
        row, cells, seed = int(accounts.rows[place]), accounts.cells[place], accounts.seeds[place]
        key = row, seed, n, there, *(np.asarray(one).tobytes() for one in cells)
        if key not in self._shown or len(self._shown[key][0]) < n_askers:
            fakes, n_asking = [cells] * self.n_fakes, n_askers if self.asks_inside else 1
            removed = None if there else row
            fitted, whom = self._world(self._sent(seed), fakes, n_asking, removed, seed)
            whom = whom if self.asks_inside else whom * n_askers
            listed = [self._listed(fitted, one, cells[0], n) for one in whom]
            self._shown[key] = np.stack(listed), *self._near(fitted, row, n_askers)
        lists, *near = self._shown[key]
        chosen, alone = (one[:n_askers].mean(keepdims=True) for one in near)
        return Shown(lists[np.newaxis, :n_askers], chosen, alone)

    def _listed(self, fitted: Any, whom: Any, held: Integers, n: int) -> Rows:
        """Return the columns that one account is shown, (n,)."""
        with theirs(self.method):
            answer = getattr(fitted, self.method)(whom, n)
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


@contextmanager
def theirs(what: str) -> Iterator[None]:
    """Re-raise exceptions of the attacked recommender as `BlackBoxProblem`."""
    try:
        yield
    except GoodfenceError:
        raise
    except Exception as error:
        raise BlackBoxProblem(
            f"the recommender that is attacked failed in {what} with its own {type(error).__name__}: "
            "that is no fault of the attack; see the error above for its cause"
        ) from error


def listed_columns(answer: Any, ratings: Ratings, held: Integers, n: int) -> Rows:
    """Return a list as columns, (n,): `answer` is ids, or (ids, scores), best first.

    What the account holds itself, and what is listed twice, tells nothing and is left out.
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
