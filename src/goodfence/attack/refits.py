"""The two worlds of each target for any recommender: append the fake accounts, fit a copy, ask."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from goodfence.arrays import Floats, Integers, Rows
from goodfence.attack.fakes import AccountPlan, Catalogue, FakeCells
from goodfence.attack.targets import Asked, Targets, helper_cells, with_fakes
from goodfence.attack.worlds import Accounts, Shown
from goodfence.data.ratings import Ratings
from goodfence.errors import BlackBoxProblem, DataError, GoodfenceError, SettingError
from goodfence.kernels.lists import NO_ITEM
from goodfence.models.method import traits_of
from goodfence.models.recommender import Recommendations, fit_received, unfitted_copy
from goodfence.neighbours.similarity import Similarity

_TOGETHER = 100
"""At most one in so many users is removed at a time, where several targets share a fit."""
_ACCOUNTS = 200
"""So many fake accounts may share a fit on data of any size."""


class Ranking(NamedTuple):
    """What one account is shown, by item: arrays of shape (items,)."""

    ranks: Floats
    """The position from 1; NaN for what is not listed."""
    scores: Floats
    """The score; NaN where none is shown."""


class RefitWorlds:
    """Worlds of a recommender, of which a copy is fitted in each.

    A copy with an `rng` gets the seed of the target in it, the same in both worlds: also a private one, because a copy
    under attack is an experiment and protects nobody. Asked is `predict`, or `recommend` for events, as an account in
    the data; one that has `profiles_only` is asked with the profile: then the asking fake is not in the data, and the
    others are. Where users send noisy ratings (a method `perturbed`), all real users do, with the same
    noise in both worlds, and the fakes do not: whoever attacks does not volunteer. What was asked once is remembered.
    """

    one_by_one, asking = True, 1

    def __init__(
        self,
        ratings: Ratings,
        recommender: Any,
        n_fakes: int,
        *,
        similarity: Similarity,
        memory: dict[Any, Any] | None = None,
    ) -> None:
        self.ratings, self.recommender, self.n_fakes = ratings, recommender, n_fakes
        self.memory: dict[Any, Any] = {} if memory is None else memory
        """What attackers share: answers, and `wait` (in seconds) and `refits` until the recommender has learnt."""
        self.similarity, self.traits = similarity, traits_of(recommender)
        method = "recommend" if ratings.feedback == "implicit" else "predict"
        if not callable(getattr(recommender, method, None)):
            raise SettingError(f"the attacked recommender must have {method}")
        self.asks_inside = not getattr(recommender, "profiles_only", False)
        self._asked: dict[tuple[object, ...], Asked] = {}
        self._shown: dict[tuple[object, ...], tuple[Rows, Floats, Floats]] = {}
        self._together: bool | None = None

    @cached_property
    def catalogue(self) -> Catalogue:
        """What everybody may know of the items."""
        return Catalogue(self.ratings)

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

    def _groups(self, targets: Targets, seeds: Sequence[int], helper_rating: float | None) -> list[tuple[int, int]]:
        """Return which entries share a fit: questions about one target whose helpers do not disturb each other."""
        n = len(targets)
        alone = [(position, position + 1) for position in range(n)]
        about_one = n > 1 and bool((targets.rows == targets.rows[0]).all())
        raters = self.traits.mechanism is None or self.traits.among == "raters"  # as far as that is known
        if helper_rating is None or not about_one or not raters:
            return alone
        if self.traits.released:
            return [(0, n)]
        if self._together is None:
            self._together = self.undisturbed(targets, seeds, helper_rating)
        return [(0, n)] if self._together else alone

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
        fitted, ids = self._fitted(sent, inside, removed, seed)
        asking = [self._profile(cells) for cells in accounts[:n_asking]]
        return fitted, ids[:n_asking] if self.asks_inside else asking

    def _fitted(
        self, sent: Ratings, inside: Sequence[FakeCells], removed: int | Integers | None, seed: int
    ) -> tuple[Any, Any]:
        """Return the recommender fitted beside these accounts, once it has learnt, and the ids of the accounts."""
        world, ids = with_fakes(sent, removed, [cells for cells, _ in inside], [values for _, values in inside])
        copied = unfitted_copy(self.recommender, seed)
        with theirs("fit"):
            for _ in range(1 + self.memory.get("refits", 0)):
                fitted = fit_received(copied, world)
        time.sleep(self.memory.get("wait", 0.0))
        return fitted, ids

    def together(self, n_accounts: int) -> int:
        """Return how many targets with so many accounts each share a fit: few enough to leave the data as they are."""
        n_users = self.ratings.shape[0]
        return max(1, min(n_users // _TOGETHER, max(_ACCOUNTS, n_users // 2) // max(n_accounts, 1)))

    def told_in(self, plans: Sequence[AccountPlan], seed: int, there: bool) -> list[Floats]:
        """Return what the askers of each plan are told, (askers, items), in one fit with all targets or without."""
        return self.told_by(self.fitted_beside(plans, seed, there), plans)

    def told_by(self, beside: tuple[Any, list[Any]], plans: Sequence[AccountPlan]) -> list[Floats]:
        """Return what the askers of each plan are told by a recommender that is fitted already."""
        fitted, whom = beside
        if not self.asks_inside:
            return [self._told(fitted, each, plan.columns) for each, plan in zip(whom, plans, strict=True)]
        users = np.concatenate([np.repeat(each, len(plan.columns)) for each, plan in zip(whom, plans, strict=True)])
        items = [np.tile(self.ratings.items[plan.columns], plan.n_asking) for plan in plans]
        with theirs("predict"):
            answers = np.asarray(fitted.predict(users, np.concatenate(items)), dtype=np.float64)
        parts = np.split(answers, np.cumsum([len(one) for one in items])[:-1])
        return [part.reshape(plan.n_asking, -1) for part, plan in zip(parts, plans, strict=True)]

    def ranked_by(self, beside: tuple[Any, list[Any]], plans: Sequence[AccountPlan], n: int) -> list[list[Ranking]]:
        """Return what each asker of each plan is shown: the same for lists of `n` items."""
        (fitted, whom), found = beside, []
        for each, plan in zip(whom, plans, strict=True):
            held = [np.asarray(cells) for cells, _ in plan.accounts]
            found.append([self._ranked(fitted, one, held[at], n) for at, one in enumerate(each)])
        return found

    def _ranked(self, fitted: Any, whom: Any, held: Integers, n: int) -> Ranking:
        with theirs("recommend"):
            answer = fitted.recommend(whom, n)
        listed = listed_columns(answer, self.ratings, held, n)
        ranks, scores = np.full((2, self.ratings.shape[1]), np.nan)
        inside = listed[listed >= 0]
        ranks[inside] = np.arange(1, len(inside) + 1)
        shown = shown_scores(answer)
        if shown is not None:
            columns = self.ratings.columns(list(_ids_of(answer))[: len(shown)])
            scores[columns] = shown[: len(columns)]
        return Ranking(ranks, scores)

    def fitted_beside(self, plans: Sequence[AccountPlan], seed: int, there: bool) -> tuple[Any, list[Any]]:
        """Return the recommender fitted with the accounts of all plans, and as whom those of each plan ask."""
        inside: list[FakeCells] = []
        starts = []
        for plan in plans:
            starts.append(len(inside))
            inside += plan.accounts if self.asks_inside else plan.accounts[plan.n_asking :]
        if there:
            inside += [cells for plan in plans for cells in plan.planted]
        rows = np.unique([plan.row for plan in plans if plan.row >= 0]).astype(np.int64)
        removed = None if there or len(rows) == 0 else rows
        fitted, ids = self._fitted(self._sent(seed), inside, removed, seed)
        if self.asks_inside:
            return fitted, [ids[at : at + plan.n_asking] for at, plan in zip(starts, plans, strict=True)]
        return fitted, [[self._profile(cells) for cells in plan.accounts[: plan.n_asking]] for plan in plans]

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
        with theirs("predict"):
            told = [fitted.predict(profile, items) for profile in whom]
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
        with theirs("recommend"):
            answer = fitted.recommend(whom, n)
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
    items = _ids_of(answer)
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


def _ids_of(answer: Any) -> Any:
    """Return the ids of an answer: ids, or (ids, scores)."""
    items = answer.items if isinstance(getattr(answer, "items", None), np.ndarray) else answer
    return items[0] if isinstance(items, tuple) and len(items) == 2 and np.ndim(items[0]) == 1 else items


def shown_scores(answer: Any) -> Floats | None:
    """Return the scores of an answer that is (ids, scores); None where it has none that are numbers."""
    if isinstance(answer, Recommendations):
        return answer.scores
    if not (isinstance(answer, tuple) and len(answer) == 2 and np.ndim(answer[0]) == 1 == np.ndim(answer[1])):
        return None
    try:
        return np.asarray(answer[1], dtype=np.float64)
    except (TypeError, ValueError):
        return None
