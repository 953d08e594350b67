"""Membership: is the target in the data? The attacker leaves out what they know, and sees whether it comes back.

Of the m ratings that the attacker knows of a target some are left out, one at a time: fake profiles with the other
m - 1 ask for it. With a_j the answer to the left-out rating r_j, in steps of the scale, the score of a target is

    S = - sum over the left-out j of min(|a_j - r_j|, 1),    where no answer counts as 1.

On events the fakes are shown lists, and the score counts on which of them the left-out item is, and how high:

    S = sum over the left-out j of 1 - p_j / n,    with p_j its place, from 0, on a list of n, and n where it is not.

With `score="lira"` it is the likelihood ratio of Carlini et al. (2022) instead. The attacker splits the users at random
into two halves, `shadows` times, and asks the same questions of shadow fits on the target's half, with the target and
without. With s_j the part of question j in the sum above, and means and variances those of the shadow fits,

    S = sum over the left-out j of log N(s_j; mean_in, variance_in) - log N(s_j; mean_out, variance_out).

So a question counts as much as it tells. As in that paper, the attacker who trains shadow fits holds the target's whole
record and the data of other users: this attacker is stronger than one with fake accounts alone.

A high score says two things at once: the target is in the data, *and* the attack works on them. So the score also
tells the attacker which of the hidden ratings that the same fakes recover can be believed, and published.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from scipy import sparse

from goodfence.arrays import Flags, Floats, Integers, Rows
from goodfence.attack import DEFAULT_TARGETS
from goodfence.attack.attack import Attack, Choose, Subject, Worlds, named_items, seeds
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.list_attack import LISTED, LONGEST, ListAttack
from goodfence.attack.refits import listed_columns
from goodfence.attack.report import LeakReport, as_plain
from goodfence.attack.roc import auc, roc_table, threshold_at, true_positive_bound, true_positives_at
from goodfence.attack.scoring import Estimate, first_half, frequency, share
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
Score: TypeAlias = Literal["gap", "lira"]

DEFAULT_LEFT_OUT = 6
"""How many of the known ratings are left out, one at a time."""
FALSE_POSITIVE_RATES = (0.01, 0.05)
"""The false positive rates at which true positives are reported."""
ROC_RATES = (0.01, 0.001)
"""The false positive rates at which the ROC curve is read."""
LEFT_OUT, SHADOWS = 16, 17
"""Streams below the seed of an attack, beside those of `targets`."""
_SHARED = 4  # how many shadow fits the variance of all questions counts for, beside a question's own
_LEAST_SPREAD = 0.03  # steps: equal answers of a few shadow fits are no proof of equal answers always
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

    def roc(self) -> pa.Table:
        """Return the ROC curve over all targets: `false_positive_rate` and `true_positive_rate`, ascending."""
        return roc_table(self.scores, self.scores_without)

    @property
    def low_rates(self) -> dict[float, Estimate]:
        """The true positive rate of the ROC curve at 1% and at 0.1% false positives; unknown with too few targets."""
        return {rate: true_positives_at(self.scores, self.scores_without, rate) for rate in ROC_RATES}

    def in_words(self, rate: float) -> str:
        """Return the true positive rate at one of `low_rates`, or why there is none."""
        found = self.low_rates[rate]
        if found.value == found.value:
            return str(found)
        return f"cannot be measured with {self.n_targets:,} non-members ({round(1 / rate):,} or more are needed)"

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
        read = [f"  TPR at {rate:.1%} FPR: {self.in_words(rate)}" for rate in ROC_RATES]
        return "\n".join([head, *read, *lines])

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
            "true_positive_rates": [
                {"rate": rate, **found._asdict(), "in_words": self.in_words(rate)}
                for rate, found in self.low_rates.items()
            ],
            "roc": self.roc().to_pydict(),
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
    score: Score = "gap"
    """How the questions about a target are added up: by their errors, or by likelihood ratios from shadow fits."""
    shadows: Annotated[int, at_least(2)] = 16
    """For `lira`: how many shadow fits each question is asked of, with the target and as many without."""

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
        plain, once = self._plain(ratings.feedback), self._resolved(subject) == "one"
        n_fakes = 1 if once else plain.n_fakes(subject.recommender, ratings.shape[0])
        n_rounds = 1 + self.shadows * (self.score == "lira")
        with bar("membership", len(questions) * n_rounds, show=progress) as advance:
            parts = self._parts(subject, questions, streams, advance)
            if self.score == "lira":
                parts = likelihood_ratios(parts, self._shadow_parts(subject, questions, streams, advance))
        scores = [one.reshape(len(found), -1).sum(axis=1) for one in parts]
        return MembershipReport(
            attack=repr(self),
            attacked=subject.traits.title,
            n_fakes=n_fakes,
            n_fits=1 if once else self.left_out,
            scores=scores[0].round(_SAME),
            scores_without=scores[1].round(_SAME),
            measured=~first_half(len(found), streams),
            recovery=plain.run_on(subject, targets=targets, rng=seed, progress=progress),
            guarantee=guarantee_of(attacked),
            seed=seed_of(rng),
            settings=self._stated(),
        )

    def _parts(
        self, subject: Subject, questions: Targets, streams: Streams, advance: Callable[[int], object]
    ) -> Floats:
        """Return the part of each question in the score, (worlds, questions): with the target, and without."""
        if self._resolved(subject) == "one":
            asked = _in_one_fit(subject, questions, self.left_out, self.n, streams)
        else:  # turn 0 is that of the hidden ratings
            turns = 1 + np.arange(len(questions)) % self.left_out
            n_fakes = self._plain(subject.ratings.feedback).n_fakes(subject.recommender, subject.ratings.shape[0])
            asked = _in_a_fit_each(subject.worlds(n_fakes), questions, turns, self.n, streams)
        parts = np.empty((2, len(questions)))
        for some, told in asked:
            parts[:, some] = told
            advance(some.stop - some.start)
        return parts

    def _shadow_parts(
        self, subject: Subject, questions: Targets, streams: Streams, advance: Callable[[int], object]
    ) -> Floats:
        """Return the same in shadow fits, (shadows, worlds, questions): each on the random half with the target."""
        parts, ratings = np.empty((self.shadows, 2, len(questions))), subject.ratings
        for number in range(self.shadows):
            order = streams.order(ratings.shape[0], SHADOWS, number)
            for half in np.array_split(order, 2):
                rows = np.sort(half)
                inside = np.isin(questions.rows, rows)
                if not inside.any():
                    continue
                held = ratings.replaced(sparse.csr_array(ratings.csr[rows]), users=ratings.users[rows])
                asked = questions.some(np.flatnonzero(inside))
                asked = dataclasses.replace(asked, rows=np.searchsorted(rows, asked.rows))
                shadow = Subject(held, subject.recommender, threads=subject.threads)
                parts[number][:, inside] = self._parts(shadow, asked, Streams(streams.key(SHADOWS, number)), advance)
        return parts

    def _resolved(self, subject: Subject) -> Fits:
        """Return how many fits the questions about a target need."""
        asked = "predict" if subject.ratings.feedback == "explicit" else "recommend"
        attacked = subject.recommender
        answers = callable(getattr(attacked, asked, None)) and not getattr(attacked, "profiles_only", False)
        able = answers and not callable(getattr(attacked, "perturbed", None))
        if self.fits == "one" and not able:
            raise SettingError(
                f"fits must be 'each': the recommender cannot {asked} for its users, or they send noisy ratings"
            )
        return self.fits or ("one" if able and subject.traits.n_neighbours == 0 else "each")

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
        seed = world_seed(streams, row, 1)
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


def likelihood_ratios(parts: Floats, shadows: Floats) -> Floats:
    """Return log N(part; in) - log N(part; out) for each question and world, (worlds, questions).

    Mean and variance are those of `shadows`, (shadows, worlds, questions). A few fits tell little about a variance, so
    that each is averaged with the one of all questions in its world.
    """
    n = len(shadows)
    own = shadows.var(axis=0, ddof=1)
    variances = ((n - 1) * own + _SHARED * own.mean(axis=1, keepdims=True)) / (n - 1 + _SHARED) + _LEAST_SPREAD**2
    distances = (parts[:, np.newaxis] - shadows.mean(axis=0)) ** 2 / variances
    logs = -(np.log(variances) + distances) / 2  # (worlds, in or out, questions)
    return np.asarray(logs[:, 0] - logs[:, 1])


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
