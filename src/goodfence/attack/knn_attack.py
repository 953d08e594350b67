"""The kNN attack of Calandrino et al., as the paper uses it, and its stronger forms by setting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from goodfence.arrays import Flags, Floats
from goodfence.attack.attack import Attack, RatingAttack, Subject, Worlds, seeds
from goodfence.attack.scoring import ON_GRID, Answers, is_rating
from goodfence.attack.targets import Asked, Targets, fake_profiles, fake_similarities
from goodfence.data.scale import Scale
from goodfence.errors import SettingError, require
from goodfence.models.method import traits_of
from goodfence.neighbours.similarity import Profiles
from goodfence.parallel import ranges, run
from goodfence.rng import Streams
from goodfence.settings import Count, at_least, checked

Ask: TypeAlias = Literal["one", "all"]


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class KNNAttack(RatingAttack):
    """k fake profiles with exactly the m known ratings; the first of them asks for everything else.

    Then the k - 1 other fakes and the target are the k nearest of the one who asks, and what is predicted for an
    item that only the target rated is the target's rating.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = gf.KNNAttack(known=8).run(films, gf.KNN(k=20), targets=50, rng=7)
    >>> report.recovery > report.guess
    True
    """

    ask: Ask = "one"
    """Only the first fake asks, or every fake does and the attacker combines what they are told."""
    combine: Combine = "mode"
    """How several answers become one: the most frequent of the rounded answers, or their mean."""
    rounds: Annotated[int, at_least(1, most=10_000)] = 1
    """How often the fakes ask, each time after a refit with fresh randomness."""

    def describe(self, n_fakes: int = 2) -> str:
        """As in `Attack`.

        Examples
        --------
        >>> KNNAttack(known=8, ask="all", combine="mean").describe()
        'all ask; the mean answer counts'
        """
        counted = {"mode": "the most frequent answer", "mean": "the mean answer"}[self.combine]
        alone = n_fakes == 1 or self.ask == "one"
        text = "one asks" if alone else f"all ask; {counted} counts"
        return text if self.rounds == 1 else f"{text}; repeated for {self.rounds} refits"

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Answers:
        turns = [
            worlds.ask(targets, seeds(targets, streams, turn), self._n_askers(worlds)) for turn in range(self.rounds)
        ]
        scale, chosen = worlds.ratings.scale, np.mean([asked.chosen for asked in turns], axis=0)
        told = [
            np.concatenate([getattr(asked, world) for asked in turns]) for world in ("with_target", "without_target")
        ]
        with_target, without = (combined(one, self.combine, scale) for one in told)
        return Answers(with_target, without, chosen, *(agreed(one, scale) for one in told))


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class CoverAttack(KNNAttack):
    """As many fakes as the mechanism looks at candidates (beta * k), all asking: no real user but the target is near.

    What the paper's beta is about: to be sure that the target is the only real neighbour, the attacker needs
    beta * k fakes. For mechanisms that look at a bounded part of the list: `KNN`, `PPNS`, `NPNS(within=)`.
    """

    ask: Ask = "all"
    """Every fake asks: each has its own chance to have the target among its neighbours."""

    def n_fakes(self, attacked: object, n_users: int) -> int:
        """Return how many candidates the mechanism looks at, unless `fakes` says otherwise."""
        mechanism = traits_of(attacked).mechanism
        if self.fakes is not None or mechanism is None:
            return Attack.n_fakes(self, attacked, n_users)
        looked_at = mechanism.reach(n_users - 1)
        if mechanism.reach(n_users) != looked_at:
            raise SettingError(
                "fakes must be given: the mechanism looks at the whole list, which no number of fakes covers"
            )
        return looked_at


Combine: TypeAlias = Literal["mode", "mean"]


def combined(answers: Floats, how: Combine, scale: Scale) -> Floats:
    """Return one answer for each hidden rating from `answers`, (askers, hidden), NaN where no fake got one."""
    if len(answers) == 1:
        return np.asarray(answers[0])
    if how == "mode":
        return _mode(scale.round(answers))
    made = ~np.isnan(answers)
    sums = np.where(made, answers, 0.0).sum(axis=0)
    counts = made.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def agreed(answers: Floats, scale: Scale) -> Flags:
    """Return where all answers, (askers, hidden), are the same rating: one neighbour rated the item, or all agree."""
    made = ~np.isnan(answers)
    highest = np.where(made, answers, -np.inf).max(axis=0)
    lowest = np.where(made, answers, np.inf).min(axis=0)
    same: Flags = made.any(axis=0) & (np.abs(highest - lowest) <= ON_GRID * (scale.step or 0.0))
    return same & is_rating(np.where(same, lowest, np.nan), scale)


def _mode(answers: Floats) -> Floats:
    """Return the most frequent value of each column, the lowest among equally frequent ones."""
    ordered = np.sort(answers, axis=0)  # NaN last
    best = np.full(answers.shape[1], np.nan)
    longest = np.zeros(answers.shape[1], dtype=np.int64)
    length = np.zeros(answers.shape[1], dtype=np.int64)
    for rank in range(len(ordered)):
        same = ordered[rank] == ordered[rank - 1] if rank else np.zeros(len(best), dtype=np.bool_)
        length = np.where(same, length + 1, 1)
        longer = (length > longest) & ~np.isnan(ordered[rank])
        best = np.where(longer, ordered[rank], best)
        longest = np.where(longer, length, longest)
    return best


_NO_SHARE = 1e-5
"""A target that counts less than this part of the helpers has no share in the answer."""
_SAME = 1e-6
_LEAST_ALIKE = 3

Helpers: TypeAlias = Literal["measured", "equal"]


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveAttack(RatingAttack):
    """All fakes but the one who asks also rate the hidden item, and what they did is subtracted from the answer.

    So any rule of minimum support is met, and where neighbours are chosen among the raters of an item, these fakes take
    the places of everybody but the target. Each hidden item is asked about twice; docs/attacks.md has the equations.
    The solution is right whenever a fixed share of the helpers is chosen both times, and the other neighbours who rated
    the item agree with the target. Of the target's mean the attacker knows that of the known ratings.
    """

    items: Count | None = 10
    """How many hidden items of each target are asked for, drawn by chance; None for all. Each may need its own fits."""
    centred: bool | None = None
    """Whether users' means are taken away; None to find out: does a profile moved by a constant move the answers?"""
    helpers: Helpers = "measured"
    """How similar helpers are to the one who asks: as the recommender's similarity, or the cosine over all ratings,
    `measured` it, or all `equal`ly, as where only items that both rated count."""

    def __post_init__(self) -> None:
        Attack.__post_init__(self)  # `super()` does not know the class that `slots=True` makes
        enough = self.fakes is None or self.fakes >= 2
        require(enough, "fakes", "at least 2: one asks and the others help", self.fakes)

    def describe(self, n_fakes: int = 2) -> str:  # noqa: ARG002 - one asks, however many help
        """As in `Attack`."""
        text = "one asks; the others rate the hidden item"
        if self.centred:
            text += "; user means are subtracted"
        return f"{text}; equal weights" if self.helpers == "equal" else text

    def _fitting(self, subject: Subject) -> Self:
        return self if self.centred is not None else replace(self, centred=subject.centred)

    def _asked_for(self, targets: Targets, streams: Streams) -> Targets:
        return targets if self.items is None else targets.sampled(self.items, streams)

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Answers:
        if worlds.n_fakes < 2:
            raise SettingError("fakes must be at least 2: one asks and the others help")
        scale, questions = worlds.ratings.scale, targets.one_by_one()
        told, helping = [], []
        for turn, rating in enumerate(helper_ratings(scale)):
            # What the fakes rate changes with every question, so each needs a fit, and a fit draws afresh.
            fresh = seeds(questions, streams, 2 * questions.columns + turn)
            told.append(self._asked(worlds, questions, fresh, rating))
            helping.append(self._helping(worlds, questions, rating))
        first, second = told
        means = questions.known_ratings.mean(axis=1) if self.centred else np.zeros(len(questions))
        values, sure = [], []
        for world in ("with_target", "without_target"):
            answers = [getattr(asked, world)[0] - means for asked in (first, second)]
            values.append(means + solve(helping, *answers))
            sure.append(self._sure(values[-1], targets, scale))
        near = np.bincount(targets.owners, weights=(first.chosen + second.chosen) / 2)
        with_target, without = (np.clip(one, scale.lowest, scale.highest) for one in values)
        return Answers(with_target, without, near / np.diff(targets.starts), *sure)

    def _asked(self, worlds: Worlds, questions: Targets, fresh: list[int], rating: float) -> Asked:
        """Return what the one who asks is told beside helpers who give this rating."""
        parts: dict[int, Asked] = {}

        def work(piece: tuple[int, int]) -> None:
            parts[piece[0]] = worlds.ask(questions.part(*piece), fresh[slice(*piece)], 1, rating)

        at_once = len(questions) if worlds.one_by_one else worlds.at_once(1)
        run(work, ranges(len(questions), at_once), threads=worlds.asking)
        return Asked.joined([parts[first] for first in sorted(parts)])

    def _helping(self, worlds: Worlds, questions: Targets, rating: float) -> Helping:
        """Return what the helpers of each question weigh and rate."""
        if not self.centred:
            rated = np.full(len(questions), rating)
            weight = np.ones(len(questions))
            if self.helpers == "measured":
                profiles = fake_profiles(Profiles.of(worlds.ratings.csr), questions, rating)
                weight = fake_similarities(*profiles, worlds.similarity)
            return Helping((worlds.n_fakes - 1) * weight, rated)
        known, m = questions.known_ratings, questions.known_ratings.shape[1]
        own, means = known.mean(axis=1), (known.sum(axis=1) + rating) / (m + 1)
        rated = rating - means
        if self.helpers == "equal":
            return Helping(np.full(len(questions), worlds.n_fakes - 1.0), rated)
        # The cosine of the two profiles, each less its mean: the asker's sums to zero, whatever the helpers' mean is.
        length = np.sqrt(((known - own[:, np.newaxis]) ** 2).sum(axis=1))
        helper = np.sqrt(((known - means[:, np.newaxis]) ** 2).sum(axis=1) + rated**2)
        return Helping((worlds.n_fakes - 1) * length / np.maximum(helper, _SAME), rated)

    def _sure(self, values: Floats, targets: Targets, scale: Scale) -> Flags:
        """Return which values are ratings; less a mean that is not quite known, those of one target that agree."""
        if not self.centred or scale.step is None:
            return is_rating(values, scale)
        inside = (values > scale.lowest - scale.step) & (values < scale.highest + scale.step)
        turns = np.where(inside, np.exp(2j * np.pi * (values - scale.lowest) / scale.step), 0)
        owners, n = targets.owners, len(targets)
        sums = np.bincount(owners, turns.real, n) + 1j * np.bincount(owners, turns.imag, n)
        counts = np.bincount(owners, inside, n)
        middle = sums / np.maximum(np.abs(sums), _SAME)
        enough = (counts >= _LEAST_ALIKE) & (np.abs(sums) > (1 - ON_GRID) * counts)
        near = np.abs(turns - middle[owners]) < 2 * np.pi * ON_GRID
        alike: Flags = inside & enough[owners] & near
        return alike


class Helping(NamedTuple):
    """What the helpers of each question weigh together, H, and what they rated, d; (questions,) each."""

    weights: Floats
    ratings: Floats


def helper_ratings(scale: Scale) -> tuple[float, float]:
    """Return the two ratings that helpers give, which move them least: the lowest of the scale, and the next."""
    require(scale.lowest < scale.highest, "scale", "of at least two values", str(scale))
    step = (scale.highest - scale.lowest) / 4 if scale.step is None else scale.step
    return float(scale.lowest), float(scale.lowest + step)


def solve(helping: list[Helping], first: Floats, second: Floats) -> Floats:
    """Return the target's rating from two answers, x and x', and their helpers; NaN where they hold nothing of it."""
    low, high = helping
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = low.weights * (low.ratings - first)
        similarity = (missing - high.weights * (high.ratings - second)) / (first - second)
        rating = first - missing / similarity
    told = (np.abs(similarity) > _NO_SHARE * low.weights) & (np.abs(first - second) > _SAME)
    return np.where(told & np.isfinite(rating), rating, np.nan)
