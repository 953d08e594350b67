"""Membership: is the target in the data? The attacker leaves out what they know, and sees whether it comes back.

Of the m ratings that the attacker knows of a target some are left out, one at a time: fake profiles with the other
m - 1 ask for it. With a_j the answer to the left-out rating r_j, in steps of the scale, the score of a target is

    S = - sum over the left-out j of min(|a_j - r_j|, 1),    where no answer counts as 1.

A high score says two things at once: the target is in the data, *and* the attack works on them. So the score also
tells the attacker which of the hidden ratings that the same fakes recover can be believed, and published.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy import optimize, stats

from goodfence.arrays import Flags, Floats
from goodfence.attack import DEFAULT_TARGETS
from goodfence.attack.attack import Choose, Subject, Worlds, seeds
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.report import AttackReport, as_plain
from goodfence.attack.scoring import CONFIDENCE, Estimate, first_half, frequency, share
from goodfence.attack.targets import Asked, Targets, Wanted, find_targets, world_seed
from goodfence.attack.targets import attacked as with_fakes
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import DataError, SettingError, require
from goodfence.models.recommender import Attackable, guarantee_of, unfitted_copy
from goodfence.neighbours.threads import bar, ranges
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG, Streams, fresh_seed, seed_of
from goodfence.selection.mechanism import Mechanism, integer
from goodfence.settings import checked

Fits: TypeAlias = Literal["each", "one"]

DEFAULT_LEFT_OUT = 6
"""How many of the known ratings are left out, one at a time."""
FALSE_POSITIVE_RATES = (0.01, 0.05)
"""The false positive rates at which true positives are reported."""
_LEFT_OUT = 16  # a stream below the seed of an attack, beside those of `targets`
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
    recovery: AttackReport
    """What the same fakes, with all that is known, recover of the hidden ratings."""
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
        counted = self.recovery.with_target
        every = (counted.hidden, counted.predicted, counted.recovered)
        hidden, answered, right = (part[self.measured] for part in every)
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
        counted = self.recovery.with_target
        return share(counted.recovered, counted.predicted)

    def bound(self, rate: float) -> float | None:
        """Return the largest true positive rate that the guarantee allows; None where it says nothing."""
        stated = self.guarantee
        if stated.epsilon is None or stated.delta is None or self._no_bound is not None:
            return None
        return true_positive_bound(
            self.n_fits * stated.epsilon, min(1.0, self.n_fits * stated.delta), rate
        )

    @property
    def _no_bound(self) -> str | None:
        """Why the guarantee does not bound the true positive rate; None where it does."""
        stated = self.guarantee
        if stated.status != "proved":
            return "No guarantee is proved, so nothing bounds the true positive rate."
        if stated.unit == "rating":
            return (
                "The guarantee is for one rating. A user is as many ratings as they gave: epsilon, times that number, "
                "bounds nothing."
            )
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

    known: int
    """m: how many of the target's ratings the attacker knows."""
    left_out: int = DEFAULT_LEFT_OUT
    """How many of these are left out, one at a time; drawn by chance."""
    choose: Choose = "random"
    """Which ratings are known, as in `KNNAttack`."""
    fakes: int | None = None
    """How many fake profiles ask each question; None for the k of the attacked mechanism."""
    fits: Fits | None = None
    """`each` question in a fit of its own, or all in `one`, with one fake for each; None: `one` where no user alone
    weighs (private models), `each` elsewhere, because the fakes of other questions would crowd the target out."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", integer(self.known, "known", least=2))
        object.__setattr__(self, "left_out", integer(self.left_out, "left_out", least=1))
        require(self.left_out <= self.known, "left_out", "at most known", self.left_out)
        require(self.fits in (None, *get_args(Fits)), "fits", "'each', 'one' or None", self.fits)
        object.__setattr__(self, "choose", self._plain.choose)

    @property
    def _plain(self) -> KNNAttack:
        """The attack on the hidden ratings, with all that is known."""
        return KNNAttack(known=self.known, choose=self.choose, fakes=self.fakes)

    @checked
    def run(
        self,
        ratings: Ratings,
        attacked: Mechanism | Attackable,
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
        n_fakes, n_fits = self._plain.n_fakes(subject.recommender, ratings.shape[0]), self.left_out
        if self._resolved(subject) == "one":
            n_fakes, n_fits = 1, 1
            answers = _in_one_fit(subject, questions, self.left_out, streams)
        else:
            worlds = subject.worlds(n_fakes)
            answers = _in_a_fit_each(worlds, questions, self.left_out, streams, progress)
        scores = [
            scores_of(told, questions, ratings.scale).reshape(len(found), -1).sum(axis=1)
            for told in answers
        ]
        return MembershipReport(
            attack=repr(self),
            attacked=subject.traits.title,
            n_fakes=n_fakes,
            n_fits=n_fits,
            scores=scores[0].round(_SAME),
            scores_without=scores[1].round(_SAME),
            measured=~first_half(len(found), streams),
            recovery=self._plain.run_on(subject, targets=targets, rng=seed, progress=progress),
            guarantee=guarantee_of(attacked),
            seed=seed_of(rng),
            settings=self._stated(),
        )

    def _resolved(self, subject: Subject) -> Fits:
        """Return how many fits the questions about a target need."""
        able = [
            callable(getattr(subject.recommender, name, None)) for name in ("predict", "perturbed")
        ]
        if self.fits == "one" and able != [True, False]:
            raise SettingError(
                "fits must be 'each': the recommender cannot predict for its users, or they send noisy ratings"
            )
        alone = able == [True, False] and subject.traits.n_neighbours == 0
        return self.fits or ("one" if alone else "each")

    def _stated(self) -> dict[str, Any]:
        stated = {"name": type(self).__name__, **dataclasses.asdict(self)}
        return stated if isinstance(self.choose, str) else {**stated, "choose": "named items"}


def left_out_questions(targets: Targets, n: int, streams: Streams) -> Targets:
    """Return `n` questions for each target: one known rating is hidden, the other m - 1 are known."""
    m = targets.known_columns.shape[1]
    places = [np.sort(streams.order(m, _LEFT_OUT, row)[:n]) for row in targets.rows.tolist()]
    kept = np.arange(m) != np.concatenate(places)[:, np.newaxis]
    owners = np.repeat(np.arange(len(targets)), n)
    columns, values = targets.known_columns[owners], targets.known_ratings[owners]
    return Targets(
        targets.rows[owners],
        columns[kept].reshape(-1, m - 1),
        values[kept].reshape(-1, m - 1),
        np.arange(len(owners) + 1),
        columns[~kept],
        values[~kept],
    )


def _in_a_fit_each(
    worlds: Worlds, questions: Targets, n: int, streams: Streams, progress: bool | None
) -> tuple[Floats, Floats]:
    """Return the answers with and without the target, (questions,) each; every question has its own worlds."""
    # Round 0 is that of the hidden ratings.
    each = seeds(questions, streams, 1 + np.arange(len(questions)) % n)
    parts = []
    blocks = ranges(len(questions), worlds.at_once(1))
    with bar("membership", len(blocks), show=progress) as advance:
        for first, last in blocks:
            parts.append(worlds.ask(questions.part(first, last), each[first:last], 1))
            advance(1)
    told = Asked.joined(parts)
    return told.with_target[0], told.without_target[0]


def _in_one_fit(
    subject: Subject, questions: Targets, n: int, streams: Streams
) -> tuple[Floats, Floats]:
    """Return the same where all questions about a target are asked in one fit: fake j knows all but rating j."""
    ratings, fresh = subject.ratings, subject.traits.fresh_noise
    told = np.empty((2, len(questions)))
    for first, last in ranges(len(questions), n):
        asked = questions.part(first, last)
        row = int(asked.rows[0])
        for number, removed in enumerate((None, row)):
            world, ids = with_fakes(
                ratings, removed, list(asked.known_columns), list(asked.known_ratings)
            )
            seed = None if fresh else world_seed(streams, row, 1)
            fitted = unfitted_copy(subject.recommender, seed).fit(world)
            told[number, first:last] = fitted.predict(ids, ratings.items[asked.columns])
    return told[0], told[1]


def scores_of(answers: Floats, questions: Targets, scale: Scale) -> Floats:
    """Return the part of each question in the score: minus its error in steps, at most one; no answer is one wrong.

    Examples
    --------
    >>> asked = Targets(np.zeros(3), np.empty((3, 0)), np.empty((3, 0)), np.arange(4), np.arange(3), np.full(3, 4.0))
    >>> scores_of(np.array([4.25, 1.0, np.nan]), asked, Scale(1, 5))
    array([-0.25, -1.  , -1.  ])
    """
    step = (scale.highest - scale.lowest) / 4 if scale.step is None else scale.step
    errors = np.abs(answers - questions.ratings) / (step or 1.0)
    return -np.where(np.isnan(errors), 1.0, np.minimum(errors, 1.0))


def threshold_at(scores: Floats, rate: float) -> float:
    """Return the lowest of the scores that at most this share of them exceeds.

    Examples
    --------
    >>> threshold_at(np.array([-1.0, -2.0, -3.0, -4.0]), 0.25), threshold_at(np.array([-1.0, -1.0, -3.0]), 0.4)
    (-2.0, -1.0)
    """
    require(0 <= rate < 1, "rate", "at least 0 and below 1", rate)
    return float(np.sort(scores)[::-1][math.floor(rate * len(scores) + 1e-9)])


def auc(members: Floats, others: Floats) -> Estimate:
    """Return how often a member scores above another user, ties half, with Newcombe's score interval.

    The interval (Newcombe 2006, method 5) solves `|A - theta| = z sqrt(V(theta))` for theta, with V the variance
    that Hanley and McNeil give; it stays honest near 0 and 1. It takes the two sets of scores as independent, and so is
    too wide rather than too narrow where the same users are in both.

    Examples
    --------
    >>> auc(np.array([3.0, 2.0]), np.array([2.0, 1.0])).value
    0.875
    """
    n, m = len(members), len(others)
    ranks = stats.rankdata(np.concatenate([members, others]))[:n]
    value = float((ranks.sum() - n * (n + 1) / 2) / (n * m))
    z, pairs = float(stats.norm.ppf(0.5 + CONFIDENCE / 2)), (n + m) / 2 - 1

    def gap(theta: float) -> float:
        spread = 1 + pairs * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        variance = theta * (1 - theta) * spread / (n * m)
        return abs(value - theta) - z * math.sqrt(max(variance, 0.0))

    ends = [
        end if value == end else optimize.brentq(gap, end, value + (end - value) * 1e-9)
        for end in (0.0, 1.0)
    ]
    return Estimate(value, *map(float, ends))


def true_positive_bound(epsilon: float, delta: float, rate: float) -> float:
    """Return the largest true positive rate at a false positive `rate` under (epsilon, delta)-differential privacy.

    For every event E, P(E) <= e^epsilon P'(E) + delta, and the same for its complement with the worlds exchanged:
    TPR <= min(e^epsilon FPR + delta, 1 - e^-epsilon (1 - delta - FPR)).

    Examples
    --------
    >>> round(true_positive_bound(1.0, 0.0, 0.05), 3), true_positive_bound(0.0, 0.0, 0.05)
    (0.136, 0.05)
    """
    grown = math.exp(min(epsilon, 700.0)) * rate + delta
    return min(1.0, grown, 1.0 - math.exp(-epsilon) * (1.0 - delta - rate))
