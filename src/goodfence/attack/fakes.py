"""The accounts that an attacker opens: copies of what is known of a target, padded, told apart, helped, controlled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from goodfence.arrays import Flags, Floats, Integers
from goodfence.data.ratings import Ratings
from goodfence.settings import Count, at_least, checked

FakeCells: TypeAlias = "tuple[Any, Any]"
"""The columns, ascending, and ratings of one account."""
HelpWith: TypeAlias = Literal["none", "all", "each", "some"]
Copied: TypeAlias = Literal["all", "one", "two", "opposed", "agreeing", "levels"]
Distinct: TypeAlias = Literal["no", "low", "high"]
_IN_WORDS = {
    "all": "the known ratings",
    "one": "one known rating each",
    "two": "two known ratings each",
    "opposed": "one known item each, rated at an end of the scale, and a rare one at the other end",
    "agreeing": "one known rating each, and a rare item at the other side of the scale",
    "levels": "one known item each, one account for each rating",
}
_HELD_BACK = 2
_LEAST_KNOWN = 4
_MOST_PAIRS, _MOST_LEVELS = 40, 21
_MOST = 5_000


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How the accounts of one target look.

    Every account copies the known ratings. The other settings answer what recommenders do against or without copies.
    """

    fakes: Count
    """How many accounts there are, the asking ones among them."""
    askers: Count = 1
    """How many of them ask."""
    padding: Annotated[int, at_least(0, most=_MOST)] = 0
    """How many rare items each account also rates, low: for recommenders that ignore short profiles."""
    distinct: Distinct = "no"
    """Whether each account rates one more rare item of its own, low or high: for recommenders that count equal profiles
    once, or leave out those that are much alike."""
    calibrated: bool = False
    """Whether the accounts leave out two known ratings and ask about them: answers whose truth is known."""
    contrary: Annotated[int, at_least(0, most=_MOST)] = 0
    """How many popular items each account rates against their mean, so that few real users are similar to it."""
    copied: Copied = "all"
    """What each account copies: `all` known ratings, or `one` each, or `two`. Where few users rated the same one or two
    items as the target, the target needs no crowd to be the nearest. All of these accounts ask. Beside one known item
    an account may hold a rare one, so that its mean is the middle of the scale: it rates the known item as the target
    does (`agreeing`), or at the end of the scale to which the target tends (`opposed`). With `levels` each known item
    has one account for each rating, and a helper that shows how many others there are."""
    helping: HelpWith = "none"
    """Whether all accounts but the asking one rate what is asked about, and then rate it otherwise. Where neighbours
    are chosen among the raters of an item they take the places of everybody but the target, and the two answers are
    two equations for the rest. They rate `all` items, or `each` item has helpers of its own, who rate nothing else.
    With `some`, only `lifters` of a crowd rate what is asked about: for recommenders that need several raters."""
    lifted: Annotated[int, at_least(0, most=_MOST)] = 0
    """For lists that show some items only: how many items are lifted into them at a time, until all were. Accounts with
    `one` known item each ask beside `lifters` that hold all of these and the lifted items, and are compared with
    controls; others ask beside `lifters` that make the lifted items popular."""
    lifters: Annotated[int, at_least(0, most=_MOST)] = 0
    """How many accounts hold the lifted items, or rate what is asked about."""

    def describe(self) -> str:
        """Return in words what the accounts hold, without naming an item."""
        held = [f"hold {_IN_WORDS[self.copied]}"]
        if self.calibrated:
            held[0] += " but two, about which they ask"
        if self.padding:
            held.append(f"{self.padding} rare items")
        if self.contrary:
            held.append(f"{self.contrary} popular items rated against their mean")
        if self.distinct != "no":
            held.append(f"one rare item each, rated {self.distinct}")
        text = " and ".join([", ".join(held[:-1]), held[-1]]) if len(held) > 1 else held[0]
        if self.lifted:
            text += f"; {self.lifters} others lift {self.lifted} items at a time"
        helped = {"none": "", "all": "; all but one rate every item, twice", "each": "; others rate each item, twice"}
        helped["some"] = f"; {self.lifters} of them rate every item, twice"
        return text + helped[self.helping]


class AccountPlan(NamedTuple):
    """The accounts against one target, or against planted ones, and what some of them ask."""

    row: int
    """The target's row; -1 where the target is planted."""
    accounts: Sequence[FakeCells]
    """What each account holds."""
    n_asking: int
    """The first ones ask."""
    columns: Integers
    """(items,): what each of these asks about."""
    planted: Sequence[FakeCells] = ()
    """Accounts of the attacker's own that stand for the target: in the world with it only."""

    def __repr__(self) -> str:
        return f"AccountPlan({len(self.accounts)} accounts, {len(self.columns)} items)"


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What everybody may know of the items: how popular each is, and how it is rated."""

    ratings: Ratings

    def __repr__(self) -> str:
        return f"Catalogue({self.ratings.shape[1]:,} items)"

    @cached_property
    def counts(self) -> Integers:
        """(items,): how many rated each."""
        return np.bincount(self.ratings.csr.indices, minlength=self.ratings.shape[1])

    @cached_property
    def means(self) -> Floats:
        """(items,): the mean rating of each."""
        csr = self.ratings.csr
        sums = np.bincount(csr.indices, weights=csr.data, minlength=csr.shape[1])
        return np.asarray(sums / np.maximum(self.counts, 1))

    @cached_property
    def popular(self) -> Integers:
        """(items,): the most popular first."""
        return np.argsort(-self.counts, kind="stable")

    @cached_property
    def rare(self) -> Integers:
        """The items that two or more rated, the rarest first."""
        order = self.popular[::-1]
        return order[self.counts[order] > 1]

    @property
    def low(self) -> float:
        """The lowest rating that is not 0: what counts least in a profile."""
        scale = self.ratings.scale
        if self.ratings.feedback == "implicit":
            return 1.0
        step = (scale.highest - scale.lowest) / 4 if scale.step is None else scale.step
        return float(scale.lowest if scale.lowest > 0 else scale.lowest + step)

    @property
    def levels(self) -> Floats:
        """All ratings of the scale, ascending; none where it has no steps, or too many."""
        scale = self.ratings.scale
        n = 0 if scale.step is None else round((scale.highest - scale.lowest) / scale.step) + 1
        return np.asarray(scale.lowest + np.arange(n if n <= _MOST_LEVELS else 0) * (scale.step or 1.0))

    def without(self, order: Integers, columns: Integers, n: int) -> Integers:
        """Return the first `n` items of an order that are not among these."""
        first = order[: n + len(columns)]
        return first[~np.isin(first, columns)][:n]

    @cached_property
    def disputed(self) -> Integers:
        """(items,): popular items first, by turns one that is rated well and one that is not."""
        better = self.means[self.popular] > np.median(self.means[self.counts > 0])
        well, badly = self.popular[better], self.popular[~better]
        n = min(len(well), len(badly))
        return np.concatenate([np.stack([well[:n], badly[:n]], axis=1).ravel(), well[n:], badly[n:]])

    def against_mean(self, columns: Integers) -> Floats:
        """Return the lowest rating for items that are rated well, and the highest for the others."""
        scale = self.ratings.scale
        better = self.means[columns] > np.median(self.means[self.counts > 0])
        return np.where(better, float(scale.lowest), float(scale.highest))


def merged(*parts: tuple[Any, Any]) -> FakeCells:
    """Return one profile of several parts, which share no item."""
    columns = np.concatenate([np.asarray(one, dtype=np.int64) for one, _ in parts])
    ratings = np.concatenate([np.asarray(one, dtype=np.float64) for _, one in parts])
    order = np.argsort(columns)
    return columns[order], ratings[order]


def held_back(design: Design, n_known: int) -> int:
    """Return how many known ratings the accounts do not copy, to ask about them: answers whose truth is known."""
    n = max(_HELD_BACK, n_known // 5) if design.helping in ("all", "each") else _HELD_BACK * design.calibrated
    return n if n_known >= _LEAST_KNOWN else 0


def n_turns(design: Design) -> int:
    """Return how often the accounts of a design are fitted: once, or with different helpers."""
    return 3 if design.copied == "levels" else 1 if design.helping == "none" else 2


def plans_of(
    design: Design,
    known: FakeCells,
    columns: Integers,
    catalogue: Catalogue,
    row: int,
    planted: Sequence[FakeCells] = (),
    place: int = 0,
) -> list[AccountPlan]:
    """Return the plans against one target whose known columns and ratings are these, at a `place` among several.

    There are several where fillers would hide an item: what half of the accounts rate themselves the other half asks
    about. With helpers each plan is two, one after the other.
    """
    if design.copied == "levels":
        plans = _levels(known, columns, catalogue)
    elif design.copied != "all":
        plans = [_small(design, known, columns, catalogue)]
    else:
        back = held_back(design, len(known[0]))
        copied = known[0][: len(known[0]) - back], known[1][: len(known[0]) - back]
        asked = np.concatenate([columns, known[0][len(known[0]) - back :]]).astype(np.int64)
        fillers = catalogue.without(catalogue.disputed, known[0], 2 * design.contrary)
        first = np.arange(len(fillers)) % 4 < 2  # both halves rate some items low and some high
        parts = (fillers[first], fillers[~first]) if design.contrary else (fillers,)
        plans = [plan for part in parts for plan in _family(design, copied, part, asked, catalogue, place)]
    return [plan._replace(row=row, planted=planted) for plan in plans]


def _small(design: Design, known: FakeCells, columns: Integers, catalogue: Catalogue) -> AccountPlan:
    """Return accounts that copy one or two known ratings each; they ask about the other known ones, too."""
    n = len(known[0])
    groups: list[tuple[int, ...]] = [(at,) for at in range(n)]
    if design.copied == "two" and n > 1:
        counts = catalogue.counts[known[0]]
        # Two ratings that differ tell more than two that do not, and rare items more than popular ones.
        order = sorted(
            combinations(range(n), 2),
            key=lambda pair: (known[1][pair[0]] == known[1][pair[1]], counts[pair[0]] * counts[pair[1]]),
        )
        groups = list(order[:_MOST_PAIRS])
    padding = catalogue.without(catalogue.rare, known[0], design.padding)
    pads = padding, np.full(len(padding), catalogue.low)
    accounts = [merged((known[0][list(one)], known[1][list(one)]), pads) for one in groups]
    if design.copied in ("opposed", "agreeing"):
        accounts = [merged(one, pads) for one in _two_ended(known, padding, design.copied == "agreeing", catalogue)]
    return AccountPlan(-1, accounts, len(accounts), np.concatenate([columns, known[0]]).astype(np.int64))


def _two_ended(known: FakeCells, padding: Integers, agreeing: bool, catalogue: Catalogue) -> list[FakeCells]:
    """Return accounts with one known item and one rare item each, whose mean is the middle of the scale."""
    scale, used = catalogue.ratings.scale, np.concatenate([known[0], padding])
    rare = catalogue.without(catalogue.rare, used, len(known[0]))
    ends = np.where(known[1] >= known[1].mean(), float(scale.highest), float(scale.lowest))
    own = known[1] if agreeing else ends
    other = scale.lowest + scale.highest - own
    return [merged((known[0][[at]], own[[at]]), (rare[[at]], other[[at]])) for at in range(len(rare))]


def _levels(known: FakeCells, columns: Integers, catalogue: Catalogue) -> list[AccountPlan]:
    """Return three plans: without helpers, with helpers of every other known item, and with those of the rest.

    A helper rates what is asked for, and the known items that have no helper beside it: those say how the target rates.
    """
    asked = np.concatenate([columns, known[0]]).astype(np.int64)
    levels = catalogue.levels
    accounts = [(known[0][[at]], levels[[level]]) for at in range(len(known[0])) for level in range(len(levels))]
    plans = [AccountPlan(-1, accounts, len(accounts), asked)]
    for turn in (0, 1):
        helped = np.concatenate([columns, known[0][1 - turn :: 2]])
        rated = helped, np.full(len(helped), float(levels[0]))
        helpers = [merged((known[0][[at]], known[1][[at]]), rated) for at in range(turn, len(known[0]), 2)]
        plans.append(AccountPlan(-1, [*accounts, *helpers], len(accounts), asked))
    return plans


def _family(
    design: Design, copied: FakeCells, fillers: Integers, asked: Integers, catalogue: Catalogue, place: int
) -> list[AccountPlan]:
    held = np.concatenate([copied[0], fillers])
    n_own = 0 if design.distinct == "no" else design.fakes
    # Accounts of several targets in one fit would be each other's neighbours if their padding were the same.
    order = np.roll(catalogue.rare, -place * design.padding)
    rare = catalogue.without(order, held, design.padding + n_own)
    padding, own = rare[: design.padding], rare[design.padding :]
    low = catalogue.low
    base = merged(copied, (fillers, catalogue.against_mean(fillers)), (padding, np.full(len(padding), low)))
    alone = [base] * design.fakes
    if len(own):
        alone = told_apart(base, own, design, catalogue)
    if design.helping == "none":
        return [AccountPlan(-1, alone, design.askers, asked)]
    plans = []
    for turn in (0, 1):
        helpers = helpers_of(base, asked, turn, design, catalogue)
        n = 1 if design.helping == "some" else design.fakes - 1
        beside = alone[1:] if design.helping == "some" else []
        plans.append(AccountPlan(-1, [base, *beside, *helpers * n], 1, asked))
    return plans


def helper_rating(columns: Integers, turn: int, design: Design, ratings: Ratings) -> Floats:
    """Return what helpers rate each item in the first or second turn.

    Helpers of all items rate low or high, by turns, so that their mean stays; neither is so far from the middle that
    an answer would be clipped. Those of one item rate it lowest and then a step higher, which moves them least.
    """
    scale = ratings.scale
    if design.helping == "all":
        quarter = (scale.highest - scale.lowest) / 4
        low, high = scale.round(np.array([scale.lowest + quarter, scale.highest - quarter])).tolist()
        rated: Floats = np.where((columns + turn) % 2 == 0, low, high)
        return rated
    step = (scale.highest - scale.lowest) / 4 if scale.step is None else scale.step
    return np.full(len(columns), scale.lowest + turn * step)


def helpers_of(base: FakeCells, asked: Integers, turn: int, design: Design, catalogue: Catalogue) -> list[FakeCells]:
    """Return one helper of all items, or one of each item that is asked about, in the order of these."""
    if design.helping == "all":
        every = np.arange(catalogue.ratings.shape[1])
        rest = every[~np.isin(every, base[0])]
        return [merged(base, (rest, helper_rating(rest, turn, design, catalogue.ratings)))]
    free = np.unique(asked[~np.isin(asked, base[0])])
    if design.helping == "some":
        return [merged(base, (free, helper_rating(free, turn, design, catalogue.ratings)))] * design.lifters
    rated = helper_rating(free, turn, design, catalogue.ratings)
    return [merged(base, (free[[at]], rated[[at]])) for at in range(len(free))]


def told_apart(base: FakeCells, own: Integers, design: Design, catalogue: Catalogue) -> list[FakeCells]:
    """Return the accounts of a design, each with a rare item of its own."""
    rated = np.full(1, catalogue.low if design.distinct == "low" else float(catalogue.ratings.scale.highest))
    return [merged(base, (own[[at % len(own)]], rated)) for at in range(design.fakes)]


def controls(design: Design, columns: Integers, catalogue: Catalogue) -> AccountPlan:
    """Return accounts like those of a target that copy nobody: what they are told is what everybody is told."""
    length = 8 + design.padding
    rare = catalogue.rare[: length + design.fakes]
    base = merged((rare[:length], np.full(len(rare[:length]), catalogue.low)))
    accounts = [base] * design.fakes
    if design.distinct != "no" and len(rare) > length:
        accounts = told_apart(base, rare[length:], design, catalogue)
    return AccountPlan(-1, accounts, 1, columns)


def hides(plan: AccountPlan) -> Flags:
    """Return which of the asked items the asking account rated itself: its answer says nothing."""
    return np.isin(plan.columns, plan.accounts[0][0])
