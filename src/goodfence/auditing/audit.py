"""`audit`: what a recommender gives away on these ratings, and whether an attempt breaks its guarantee."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias

import goodfence
from goodfence.attack import DEFAULT_KNOWN
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.report import LeakReport
from goodfence.attack.strongest import PRECISION, Effort, strongest
from goodfence.attack.targets import Wanted
from goodfence.auditing.lower_bound import LowerBound
from goodfence.auditing.pairs import Runs, Trials, dense_pair, plain_runs, private_runs, runs_on
from goodfence.data.columns import Feedback
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.markup import html_table
from goodfence.models.method import traits_of
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.recommender import Recommender, guarantee_of
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG
from goodfence.selection.counterexample import Counterexample, settings_counterexample
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import between, checked

Tested: TypeAlias = Literal["refuted", "broken", "not broken", "no guarantee"]

MOST_TRIALS = 10**7  # more refits than anybody waits for


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """An output that one data set can give and its neighbour cannot, with exact probabilities."""

    event: str
    """What is seen, in words."""
    with_it: float
    """Its probability in the data set with the rating in question."""
    without: float
    """Its probability in the data set without it."""
    n_candidates: int
    """How many candidates the asker of these data sets has."""
    unit: str = "rating"
    """In what the two data sets differ: one rating, or one event."""

    def __str__(self) -> str:
        return (
            f"{self.event}: probability {self.with_it:.4g} with one {self.unit}, {self.without:.4g} without it "
            f"({self.n_candidates} candidates; exact)"
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AuditReport:
    """What an audit found. It holds no id and no rating, and is still a function of the data without noise.

    An audit can break a guarantee; it cannot give one. `not broken` says that this attempt failed, and how hard it was.
    """

    audited: str
    """The mechanism or the recommender, with its settings."""
    recommender: Any
    """The recommender itself, not fitted; never saved."""
    guarantee: Guarantee
    """What it guarantees."""
    leakage: LeakReport
    """What the strongest attacker who was tried learnt on the given ratings; `.advantage`, `.fully_recovered`."""
    neighbourhood: str
    """Whose neighbours were attacked, in words."""
    bound: LowerBound | None
    """What repeated runs on two neighbouring data sets prove; None where none were made."""
    claimed_mu: float | None
    """The Gaussian shift that the releases claim, where they are such; beside `bound.mu`."""
    moved: float | None
    """How much of that shift the two data sets make use of: near 1 is a hard test, above 1 a violation."""
    exhibit: Exhibit | None
    """The counterexample to a mechanism; None where there is none."""
    pair: str
    """The two data sets of the runs, in words."""

    @property
    def verdict(self) -> Tested:
        """`refuted` by a counterexample, `broken` by the runs, `not broken` by them, or `no guarantee` to break."""
        stated, bound = self.guarantee.epsilon, self.bound
        if stated is None:
            return "no guarantee"
        if self._impossible:
            return "refuted"
        exceeded = self.moved is not None and self.moved > 1
        if bound is not None:
            exceeded |= bound.epsilon > stated
            exceeded |= self.claimed_mu is not None and bound.mu > self.claimed_mu
        return "broken" if exceeded else "not broken"

    @property
    def _impossible(self) -> bool:
        return self.exhibit is not None and self.exhibit.without == 0 < self.exhibit.with_it

    @property
    def _one(self) -> str:
        return "rating" if self.exhibit is None else self.exhibit.unit

    @property
    def summary(self) -> str:
        """The verdict as a sentence."""
        stated, shown = self.guarantee.epsilon, 0.0 if self.bound is None else self.bound.epsilon
        if stated is None:
            least = f"runs show epsilon of {shown:.3f} at least"
            if self._impossible:
                least = f"no epsilon can hold, as an output is possible with one {self._one} and impossible without"
            return f"no guarantee: {least}."
        if self.verdict == "refuted":
            return (
                f"refuted: an output is possible with one {self._one} and impossible without it, so the stated "
                f"epsilon={stated:g} does not hold, and no other does."
            )
        if self.verdict == "broken" and shown <= stated:
            return f"broken: what is released is farther apart than epsilon={stated:.3f} allows."
        relation = "above" if self.verdict == "broken" else "below"
        return (
            f"{self.verdict}: runs show epsilon of {shown:.3f} at least, {relation} the "
            f"{self.guarantee.status} {stated:.3f}."
        )

    def _lines(self) -> list[tuple[str, str]]:
        leakage = self.leakage
        found = leakage.estimates
        lines = [
            ("verdict", self.summary),
            ("guarantee", str(self.guarantee)),
            ("advantage", f"{found['advantage']}   over {leakage.n_targets:,} targets"),
            (leakage.measure, f"{leakage.found}   guessing: {leakage.guessed.value:.4f}"),
            ("users", f"{found['fully_recovered']}   fully recovered"),
        ]
        if self.exhibit is not None:
            lines.append(("example", str(self.exhibit)))
        if self.bound is not None:
            lines.append(("runs", f"{self.bound}; {self.pair}"))
            if self.claimed_mu is not None and self.moved is not None:
                shift = f"mu at least {self.bound.mu:.4f}, claimed {self.claimed_mu:.4f}"
                lines.append(("shift", f"{shift}; the pair uses {self.moved:.1%} of it"))
        return lines

    def __repr__(self) -> str:
        lines = (f"  {name:<11} {text}" for name, text in self._lines())
        return "\n".join([f"AuditReport({self.audited})", *lines])

    def _repr_html_(self) -> str:
        return html_table(["", self.audited], self._lines(), title="Audit")

    def tested(self) -> dict[str, Any]:
        """Return what became of the guarantee, as plain values: verdict, counterexample and runs."""
        return {
            "verdict": self.verdict,
            "summary": self.summary,
            "exhibit": None if self.exhibit is None else asdict(self.exhibit),
            "bound": None if self.bound is None else asdict(self.bound),
            "claimed_mu": self.claimed_mu,
            "moved": self.moved,
            "pair": self.pair,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values: no ids, no ratings."""
        return {
            "goodfence": goodfence.__version__,
            "kind": "AuditReport",
            "audited": self.audited,
            **self.tested(),
            "guarantee": self.guarantee.to_dict(),
            "leakage": self.leakage.to_dict(),
            "neighbourhood": self.neighbourhood,
        }


@checked
def audit(
    ratings: Ratings,
    audited: Mechanism | Recommender,
    *,
    known: int = DEFAULT_KNOWN,
    attack: Attack | None = None,
    targets: Wanted | None = None,
    precision: Annotated[float, between(0.001, 1)] = PRECISION,
    max_seconds: float | None = None,
    trials: int | Trials = 1000,
    rng: RNG = None,
    progress: bool | None = None,
) -> AuditReport:
    """Measure the leak on these ratings or events, and try to break the guarantee on made-up data.

    Parameters
    ----------
    ratings, audited, progress
        As in `KNNAttack.run`. Copies are fitted, with seeds below `rng`; the noise of private models too, as a copy
        under attack protects nobody. The guarantee shown is that of the model without a seed.
    known, attack
        How many ratings of each target the usual attackers know (`usual_attackers`); or one attack instead of them.
        Each user is judged by the attacker that is strongest on others.
    targets, precision, max_seconds
        How many users to attack, or their ids; None for as many as make half of the interval of the advantage at most
        `precision` wide, as far as the data allow. A report that was cut after `max_seconds` says so first.
    trials
        How often to fit on each of two neighbouring data sets, or 0; `Trials` also sets the confidence of the bound. A
        true guarantee is called broken with probability at most 2 (1 - confidence).
    rng
        A seed for everything; None draws one. The same seed gives the same figures on any machine.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = audit(films, gf.PPNS(k=20, beta=3), targets=50, trials=60, rng=7)
    >>> report.verdict, report.exhibit.without
    ('refuted', 0.0)
    """
    repeated, seed = _checked_trials(trials), secrets.randbelow(2**32) if rng is None else rng
    subject = Subject(ratings, audited)
    model = subject.recommender
    how: dict[str, Any] = {"effort": Effort(precision, max_seconds), "rng": seed, "progress": progress}
    leakage = strongest(subject, None if attack is None else (attack,), known=known, targets=targets, **how)
    exhibit, runs = _tested(model, ratings, repeated, seed, progress)
    return AuditReport(
        audited=traits_of(model).title,
        recommender=model,
        guarantee=guarantee_of(model),
        leakage=leakage,
        neighbourhood=neighbourhood(model),
        exhibit=exhibit,
        **runs._asdict(),
    )


def _checked_trials(trials: int | Trials) -> Trials:
    repeated = trials if isinstance(trials, Trials) else Trials(trials)
    holds = repeated.n == 0 or 30 <= repeated.n <= MOST_TRIALS
    require(holds, "trials", f"0, or from 30 to {MOST_TRIALS:,}", repeated.n)
    require(0 < repeated.confidence < 1, "confidence", "between 0 and 1", repeated.confidence)
    return repeated


def neighbourhood(model: Any) -> str:
    """Return whose neighbours were attacked: kNN of another library is not the paper's kNN."""
    traits = traits_of(model)
    if traits.mechanism is not None and traits.similarity is not None:
        among = getattr(model, "among", "all")
        whom = "the raters of each item" if among == "raters" else "all users"
        name = f"goodfence {traits.family} {traits.settings}"
        return f"{name}: neighbours of each user among {whom}, by {traits.similarity.name}"
    if traits.n_neighbours == 0:
        return "none: no answer rests on a few users alone"
    return f"unknown: {traits.title} is seen from outside only"


def _tested(
    model: Any, ratings: Ratings, trials: Trials, rng: RNG, progress: bool | None
) -> tuple[Exhibit | None, Runs]:
    """Try to break the guarantee: by the releases of a private model, by a counterexample, or by answers alone."""
    if isinstance(model, PrivateRecommender):
        return None, private_runs(model, ratings.scale, trials, rng, progress)
    if isinstance(model, NeighbourCF):
        return _counterexample(model, ratings.feedback, trials)
    if ratings.feedback == "implicit":
        return None, Runs(pair="none: no pair of data sets is made up for lists of a stranger")
    return None, plain_runs(model, ratings.shape[0], trials)


def _counterexample(model: NeighbourCF, feedback: Feedback, trials: Trials) -> tuple[Exhibit | None, Runs]:
    """Return a counterexample where the distribution is known, and what runs on its data sets prove."""
    example = counterexample_against(model, feedback)
    if example is None:
        return None, Runs(pair="none: no counterexample is computed for these settings")
    with_it, without = example.probabilities()
    exhibit = Exhibit(
        event=example.event,
        with_it=with_it,
        without=without,
        n_candidates=len(example.ratings) - 1,
        unit="rating" if feedback == "explicit" else "event",
    )
    if not trials.n or feedback == "implicit":  # of lists the exact probabilities say all
        return exhibit, Runs(pair="{} made-up users, {} items".format(*example.ratings.shape))
    pair = dense_pair(example.ratings, example.ratings_without)
    return exhibit, runs_on(model, pair, trials)


def counterexample_against(model: NeighbourCF, feedback: Feedback = "explicit") -> Counterexample | None:
    """Return the counterexample against a model, where the distribution it is computed by is the model's."""
    plain = model.similarity.is_plain_cosine and not model.traits.needs_refits
    return settings_counterexample(model.mechanism, feedback) if plain else None


def rounded(count: int) -> int:
    """Return a count rounded to two digits, so that one user or rating more rarely shows."""
    unit: int = 10 ** max(len(str(count)) - 2, 0)
    return (count + unit // 2) // unit * unit
