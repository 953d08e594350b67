"""Membership: is the target in the data? The attacker leaves out what they know, and sees whether it comes back.

Of the m ratings that the attacker knows of a target some are left out, one at a time: fake profiles with the other
m - 1 ask for it. With a_j the answer to the left-out rating r_j, in steps of the scale, the score of a target is

    S = - sum over the left-out j of min(|a_j - r_j|, 1),    where no answer counts as 1.

On events the fakes are shown lists, and the score counts on which of them the left-out item is, and how high:

    S = sum over the left-out j of 1 - p_j / n,    with p_j its place, from 0, on a list of n, and n where it is not.

A high score says two things at once: the target is in the data, *and* the attack works on them. So the score also
tells the attacker which of the hidden ratings that the same fakes recover can be believed, and published.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import optimize, stats

from goodfence.arrays import Flags, Floats, Integers, Rows
from goodfence.attack import DEFAULT_TARGETS
from goodfence.attack.attack import Attack, Choose, Subject, Worlds, named_items, seeds
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.list_attack import LISTED, LONGEST, ListAttack
from goodfence.attack.refits import listed_columns
from goodfence.attack.report import LeakReport, as_plain
from goodfence.attack.scoring import CONFIDENCE, Estimate, first_half, frequency, share
from goodfence.attack.targets import Targets, Wanted, find_targets, with_fakes, world_seed
from goodfence.attack.worlds import Accounts
from goodfence.data.columns import Feedback
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import DataError, SettingError, require
from goodfence.models.recommender import Recommender, guarantee_of, unfitted_copy
from goodfence.parallel import bar, ranges
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG, Streams, fresh_seed, seed_of
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import Count, at_least, checked

Fits: TypeAlias = Literal["each", "one"]

DEFAULT_LEFT_OUT = 6
"""How many of the known ratings are left out, one at a time."""
FALSE_POSITIVE_RATES = (0.01, 0.05)
"""The false positive rates at which true positives are reported."""
LEFT_OUT = 16
"""A stream below the seed of an attack, beside those of `targets`."""
_SAME = 9  # decimals: scores that differ by rounding only are equal


class OperatingPoint(NamedTuple):
    """What the attacker gets who accepts so many false positives."""

    rate: float
    """The false positive rate that the threshold aims at."""
    threshold: float
    """Who scores above it is taken for a member; from one half of the targets."""
    true_positives: Estimate
    """The share of the other half, in the data, that scores above it."""
    false_positives: Estimate
    """The share of the other half, not in the data, that scores above it."""
    bound: float | None
    """The largest true positive rate that the proved guarantee allows at `rate`; None where it says nothing."""
    published: Estimate
    """The share of the hidden ratings of the other half that are published, and right."""
    precision: Estimate
    """The share of what is published that is right: hidden ratings, with an answer, of targets above the threshold."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MembershipReport:
    """How well members are told from others, and what the attacker would publish. It holds no rating and no id."""

    attack: str
    """The attack, with its settings."""
    attacked: str
    """The mechanism with its settings, or the name of the recommender."""
    n_fakes: int
    """How many fakes ask each question."""
    n_fits: int
    """How many fits of the recommender one score rests on."""
    scores: Floats
    """(targets,): the scores in the world with each target."""
    scores_without: Floats
    """(targets,): the scores in the world without."""
    measured: Flags
    """(targets,): the half on which rates are measured; the other half sets the thresholds."""
    recovery: LeakReport
    """What the same fakes, with all that is known, recover of what is hidden."""
    guarantee: Guarantee
    """What the recommender guarantees."""
    seed: Any
    """The seed of the experiment."""
    settings: dict[str, Any]
    """The attack's settings, as plain values."""

    @property
    def n_targets(self) -> int:
        """How many users were attacked."""
        return len(self.scores)

    @property
    def auc(self) -> Estimate:
        """The probability that a member scores above a user who is not in the data; 0.5 is chance."""
        return auc(self.scores, self.scores_without)

    @property
    def points(self) -> tuple[OperatingPoint, ...]:
        """True positives, and what would be published, at 1% and at 5% false positives."""
        return tuple(self.at(rate) for rate in FALSE_POSITIVE_RATES)

    def at(self, rate: float) -> OperatingPoint:
        """Return what the attacker gets who accepts false positives at this `rate`."""
        threshold = threshold_at(self.scores_without[~self.measured], rate)
        accepted = self.scores[self.measured] > threshold
        wrongly = self.scores_without[self.measured] > threshold
        hidden, answered, right, *_ = (part[self.measured] for part in self.recovery.counts)
        return OperatingPoint(
            rate=rate,
            threshold=threshold,
            true_positives=frequency(accepted.astype(np.float64)),
            false_positives=frequency(wrongly.astype(np.float64)),
            bound=self.bound(rate),
            published=share(right * accepted, hidden),
            precision=share(right * accepted, answered * accepted),
        )

    @property
    def precision_of_all(self) -> Estimate:
        """The share of all answers about hidden ratings that is right: the precision of publishing everything."""
        counted = self.recovery.counts
        return share(counted.right, counted.answered)

    def bound(self, rate: float) -> float | None:
        """Return the largest true positive rate that the guarantee allows; None where it says nothing."""
        stated = self.guarantee
        if stated.epsilon is None or stated.delta is None or self._no_bound is not None:
            return None
        return true_positive_bound(self.n_fits * stated.epsilon, min(1.0, self.n_fits * stated.delta), rate)

    @property
    def _no_bound(self) -> str | None:
        """Why the guarantee does not bound the true positive rate; None where it does."""
        stated = self.guarantee
        if stated.status != "proved":
            return "No guarantee is proved, so nothing bounds the true positive rate."
        if stated.unit != "user":
            return f"The guarantee is for one {stated.unit}: epsilon times all that a user gave bounds nothing."
        if stated.adjacency != "add/remove":
            return "The guarantee is for a replaced user, not for one who is added or removed."
        return None

    @property
    def bound_in_words(self) -> str:
        """What the guarantee says about membership, in a sentence."""
        if self._no_bound is not None:
            return self._no_bound
        fits = "one fit" if self.n_fits == 1 else f"{self.n_fits} fits, which add up"
        bounds = ", ".join(f"{p.bound:.3f} at {p.rate:.0%}" for p in self.points)
        return f"The guarantee bounds the true positive rate of any attacker who sees {fits}: {bounds}."

    def __repr__(self) -> str:
        head = f"MembershipReport({self.attack} on {self.attacked}: {self.n_targets:,} targets, AUC {self.auc})"
        lines = [
            f"  at {p.rate:.0%} false positives: true positives {p.true_positives}, "
            f"published {p.published}, precision {p.precision}"
            for p in self.points
        ]
        return "\n".join([head, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return settings and figures as plain values, without ids."""
        return {
            "settings": self.settings,
            "seed": self.seed,
            "fakes": self.n_fakes,
            "fits": self.n_fits,
            "targets": self.n_targets,
            "left_out_users": self.recovery.n_left_out,
            "auc": self.auc._asdict(),
            "points": [as_plain(point) for point in self.points],
            "precision_of_all": self.precision_of_all._asdict(),
            "bound": self.bound_in_words,
        }


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipAttack:
    """Fakes with all but one of the known ratings ask for that one, and so for each that is left out.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> found = gf.MembershipAttack(known=8, left_out=3).run(films, gf.KNN(k=20), targets=40, rng=7)
    >>> found.auc.low > 0.5
    True
    """

    known: Annotated[int, at_least(2)]
    """m: how many of the target's ratings the attacker knows."""
    left_out: Count = DEFAULT_LEFT_OUT
    """How many of these are left out, one at a time; drawn by chance."""
    choose: Annotated[Choose, named_items] = "random"
    """Which ratings are known, as in `KNNAttack`."""
    fakes: int | None = None
    """How many fake profiles ask each question; None for the k of the attacked mechanism."""
    fits: Fits | None = None
    """`each` question in a fit of its own, or all in `one`, with one fake for each; None: `one` where no user alone
    weighs (private models), `each` elsewhere, because the fakes of other questions would crowd the target out."""
    n: Annotated[int, at_least(1, most=LONGEST)] = 5 * LISTED
    """On events: how many items of each list are read."""

    def __post_init__(self) -> None:
        require(self.left_out <= self.known, "left_out", "at most known", self.left_out)
        self._plain("explicit")  # which checks `choose` and `fakes`

    def _plain(self, feedback: Feedback) -> Attack:
        """Return the attack on what is hidden, with all that is known."""
        knowing: dict[str, Any] = {"known": self.known, "choose": self.choose, "fakes": self.fakes}
        return KNNAttack(**knowing) if feedback == "explicit" else ListAttack(**knowing)

    @checked
    def run(
        self,
        ratings: Ratings,
        attacked: Mechanism | Recommender,
        *,
        targets: Wanted = DEFAULT_TARGETS,
        rng: RNG = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> MembershipReport:
        """Score some users, each in two worlds: with their data and without.

        Parameters
        ----------
        ratings, attacked, rng, threads, progress
            As in `KNNAttack.run`, with the same targets and knowledge. What must be refitted is, once for each
            left-out rating and world unless `fits` is `one`.
        targets : int or sequence of ids, default 200
            How many users, or whom; at least 4. One half of them sets the thresholds.
        """
        seed = fresh_seed() if rng is None else rng
        if isinstance(rng, np.random.Generator):  # the same streams each time it is used
            seed = [int(word) for word in rng.bit_generator.random_raw(4)]
        subject, streams = Subject(ratings, attacked, threads=threads), Streams(seed)
        found, _ = find_targets(ratings, targets, self.known, self.choose, streams)
        if len(found) < 4:
            raise DataError("there must be at least 4 targets: half of them set the thresholds")
        questions = left_out_questions(found, self.left_out, streams)
        plain = self._plain(ratings.feedback)
        n_fakes, n_fits = plain.n_fakes(subject.recommender, ratings.shape[0]), self.left_out
        if self._resolved(subject) == "one":
            n_fakes, n_fits = 1, 1
            asked = _in_one_fit(subject, questions, self.left_out, self.n, streams)
        else:  # turn 0 is that of the hidden ratings
            turns = 1 + np.arange(len(questions)) % self.left_out
            asked = _in_a_fit_each(subject.worlds(n_fakes), questions, turns, self.n, streams)
        parts = np.empty((2, len(questions)))
        with bar("membership", len(questions), show=progress) as advance:
            for some, told in asked:
                parts[:, some] = told
                advance(some.stop - some.start)
        scores = [one.reshape(len(found), -1).sum(axis=1) for one in parts]
        return MembershipReport(
            attack=repr(self),
            attacked=subject.traits.title,
            n_fakes=n_fakes,
            n_fits=n_fits,
            scores=scores[0].round(_SAME),
            scores_without=scores[1].round(_SAME),
            measured=~first_half(len(found), streams),
            recovery=plain.run_on(subject, targets=targets, rng=seed, progress=progress),
            guarantee=guarantee_of(attacked),
            seed=seed_of(rng),
            settings=self._stated(),
        )

    def _resolved(self, subject: Subject) -> Fits:
        """Return how many fits the questions about a target need."""
        asked = "predict" if subject.ratings.feedback == "explicit" else "recommend"
        able = [callable(getattr(subject.recommender, name, None)) for name in (asked, "perturbed")]
        if self.fits == "one" and able != [True, False]:
            raise SettingError(
                f"fits must be 'each': the recommender cannot {asked} for its users, or they send noisy ratings"
            )
        alone = able == [True, False] and subject.traits.n_neighbours == 0
        return self.fits or ("one" if alone else "each")

    def _stated(self) -> dict[str, Any]:
        stated = {"name": type(self).__name__, **dataclasses.asdict(self)}
        return stated if isinstance(self.choose, str) else {**stated, "choose": "named items"}


def left_out_questions(targets: Targets, n: int, streams: Streams) -> Targets:
    """Return `n` questions for each target: one known rating is hidden, the other m - 1 are known."""
    m = targets.known_columns.shape[1]
    places = [np.sort(streams.order(m, LEFT_OUT, row)[:n]) for row in targets.rows.tolist()]
    kept = np.arange(m) != np.concatenate(places)[:, np.newaxis]
    owners = np.repeat(np.arange(len(targets)), n)
    columns, values = targets.known_columns[owners], targets.known_ratings[owners]
    others = columns[kept].reshape(-1, m - 1), values[kept].reshape(-1, m - 1)
    starts = np.arange(len(owners) + 1)
    return Targets(targets.rows[owners], *others, starts, columns[~kept], values[~kept])


def _in_a_fit_each(
    worlds: Worlds, questions: Targets, turns: Integers, n_listed: int, streams: Streams
) -> Iterator[tuple[slice, list[Floats]]]:
    """Yield which questions, and their scores with and without the target; every question has its own worlds."""
    for first, last in ranges(len(questions), worlds.at_once(1)):
        asked = questions.part(first, last)
        fresh = seeds(asked, streams, turns[first:last])
        if worlds.ratings.feedback == "implicit":
            shown = worlds.shown(Accounts.knowing(asked, fresh), 1, n_listed, (True, False))
            parts = [list_scores(world.lists[:, 0], asked.columns) for world in shown]
        else:
            told = worlds.ask(asked, fresh, 1)
            both = told.with_target[0], told.without_target[0]
            parts = [scores_of(one, asked, worlds.ratings.scale) for one in both]
        yield slice(first, last), parts


def _in_one_fit(
    subject: Subject, questions: Targets, n: int, n_listed: int, streams: Streams
) -> Iterator[tuple[slice, list[Floats]]]:
    """Yield the same where all `n` questions about a target share a fit: fake j knows all but rating j."""
    ratings = subject.ratings
    for first, last in ranges(len(questions), n):
        asked, parts = questions.part(first, last), []
        row = int(asked.rows[0])
        seed = None if subject.traits.fresh_noise else world_seed(streams, row, 1)
        for removed in (None, row):
            accounts = list(asked.known_columns), list(asked.known_ratings)
            world, ids = with_fakes(ratings, removed, *accounts)
            fitted = unfitted_copy(subject.recommender, seed).fit(world)
            if ratings.feedback == "implicit":
                lists = [
                    listed_columns(fitted.recommend(one, n_listed), ratings, held, n_listed)
                    for one, held in zip(ids, asked.known_columns, strict=True)
                ]
                parts.append(list_scores(np.stack(lists), asked.columns))
            else:
                told = np.asarray(fitted.predict(ids, ratings.items[asked.columns]))
                parts.append(scores_of(told, asked, ratings.scale))
        yield slice(first, last), parts


def list_scores(lists: Rows, left_out: Integers) -> Floats:
    """Return the part of each question in the score: how high the left-out item is on its list, 1 at the top."""
    there = lists == left_out[:, np.newaxis]
    places = np.where(there.any(axis=1), there.argmax(axis=1), lists.shape[1])
    return np.asarray(1.0 - places / lists.shape[1])


def scores_of(answers: Floats, questions: Targets, scale: Scale) -> Floats:
    """Return the part of each question in the score: minus its error in steps, at most one; no answer is one wrong."""
    step = (scale.highest - scale.lowest) / 4 if scale.step is None else scale.step
    errors = np.abs(answers - questions.ratings) / (step or 1.0)
    return -np.where(np.isnan(errors), 1.0, np.minimum(errors, 1.0))


def threshold_at(scores: Floats, rate: float) -> float:
    """Return the lowest of the scores that at most this share of them exceeds."""
    require(0 <= rate < 1, "rate", "at least 0 and below 1", rate)
    return float(np.sort(scores)[::-1][math.floor(rate * len(scores) + 1e-9)])


def auc(members: Floats, others: Floats) -> Estimate:
    """Return how often a member scores above another user, ties half, with Newcombe's score interval.

    The interval (2006, method 5) solves `|A - theta| = z sqrt(V(theta))`, with Hanley and McNeil's variance V. It takes
    the two sets of scores as independent, and so is too wide where the same users are in both.
    """
    n, m = len(members), len(others)
    ranks = stats.rankdata(np.concatenate([members, others]))[:n]
    value = float((ranks.sum() - n * (n + 1) / 2) / (n * m))
    z, pairs = float(stats.norm.ppf(0.5 + CONFIDENCE / 2)), (n + m) / 2 - 1

    def gap(theta: float) -> float:
        spread = 1 + pairs * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        variance = theta * (1 - theta) * spread / (n * m)
        return abs(value - theta) - z * math.sqrt(max(variance, 0.0))

    ends = [end if value == end else optimize.brentq(gap, end, value + (end - value) * 1e-9) for end in (0.0, 1.0)]
    return Estimate(value, *map(float, ends))


def true_positive_bound(epsilon: float, delta: float, rate: float) -> float:
    """Return the largest true positive rate at a false positive `rate` under (epsilon, delta)-differential privacy.

    TPR <= min(e^epsilon FPR + delta, 1 - e^-epsilon (1 - delta - FPR)).
    """
    grown = math.exp(min(epsilon, 700.0)) * rate + delta
    return min(1.0, grown, 1.0 - math.exp(-epsilon) * (1.0 - delta - rate))
