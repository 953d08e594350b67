"""`frontier`: what every recommender gives away, against how wrong it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from goodfence.arrays import row_numbers
from goodfence.attack import DEFAULT_KNOWN, FRONTIER_TARGETS, GUESSING
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.list_attack import LISTED
from goodfence.attack.report import LeakReport, NotTried, Tried, Verdict, as_plain
from goodfence.attack.scoring import UNKNOWN, Estimate
from goodfence.attack.strongest import applied, strongest
from goodfence.auditing.audit import rounded
from goodfence.data.columns import Feedback
from goodfence.data.ratings import Ratings
from goodfence.data.splits import holdout
from goodfence.errors import DataError, require
from goodfence.evaluation import Scores, evaluate
from goodfence.markup import html_table
from goodfence.models.method import default_recommenders, traits_of
from goodfence.models.recommender import Recommender, fit_received, guarantee_of, unfitted_copy
from goodfence.parallel import bar
from goodfence.rng import RNG, Streams, seed_of
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import checked

Compared: TypeAlias = Mechanism | Recommender

CUT = 5.0  # a proved recommender that leaks so many times less than the leakiest one is worth recommending
QUALITY: dict[Feedback, str] = {"explicit": "MAE", "implicit": "NDCG@10"}
"""The measure of how good recommendations are."""
_HELD_OUT = 0.2
_SAME = ("fully_recovered", "fully_recovered_without", "advantage", "raw_advantage", "worst_tenth_loss")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A mechanism or model with its settings, and what was measured of it."""

    family: str
    """Which one, without settings."""
    label: str
    """The settings that tell it from others of its family."""
    status: str
    """The status of its guarantee: proved, claimed, refuted or none."""
    guarantee: str
    """The guarantee in words."""
    mae: float
    """Mean absolute error on ratings held out, predictions clipped to the scale; NaN for lists."""
    coverage: float
    """The share of these that got a prediction; of lists the share of the items that are on somebody's."""
    ndcg: float = np.nan
    """NDCG@10 of lists on events held out; NaN for ratings."""
    feedback: Feedback = "explicit"
    """Whether these are ratings or events."""
    recovery: Estimate
    """The share that the informed attacker found: recovery of hidden ratings, precision of lists."""
    recovery_without: Estimate
    """The same where the target is not in the data."""
    advantage: Estimate
    """The difference: what the target's data gave away."""
    guess: Estimate
    """What guessing alone recovered."""
    raw_recovery: Estimate = UNKNOWN
    """The share that the answers alone recovered."""
    raw_recovery_without: Estimate = UNKNOWN
    raw_advantage: Estimate = UNKNOWN
    fully_recovered: Estimate = UNKNOWN
    """The share of the users of whom every hidden rating that was asked for was recovered."""
    fully_recovered_without: Estimate = UNKNOWN
    worst_tenth_loss: Estimate = UNKNOWN
    """What the tenth of the users loses of whom most is recovered."""
    verdict: Verdict = "cannot tell"
    """Whether it leaks, as in `LeakReport.finding`."""
    detectable: float = np.nan
    """An advantage of this or more would have been seen with 95% power."""
    attack: str
    """The strongest attack of those tried, on other targets than these."""
    n_targets: int
    """How many users it attacked."""
    tried: tuple[Tried, ...] = ()
    """All attackers who were tried."""
    not_tried: tuple[NotTried, ...] = ()
    """Attacks of which this says nothing, and why."""

    def __str__(self) -> str:
        return (
            f"{self.name:<30} {self.status:<8} {QUALITY[self.feedback]} {self.quality:.3f}  "
            f"recovery {self.recovery.value:.3f}  advantage {self.advantage.value:+.3f} "
            f"({self.advantage.low:+.3f} to {self.advantage.high:+.3f})"
        )

    @property
    def name(self) -> str:
        """Family and settings."""
        return f"{self.family} {self.label}".strip()

    @property
    def quality(self) -> float:
        """The mean absolute error for ratings, NDCG@10 for lists."""
        return self.mae if self.feedback == "explicit" else self.ndcg

    @property
    def loss(self) -> float:
        """The mean absolute error, or 1 - NDCG@10: lower is better."""
        return self.mae if self.feedback == "explicit" else 1.0 - self.ndcg

    def no_better_than_guessing(self, bound: float = GUESSING) -> bool:
        """Return whether no leak was found, and the attackers tried gain at most `bound` or cannot be told from 0."""
        low, high = self.advantage.low, self.advantage.high
        return self.verdict == "none found" and (high <= bound or low <= 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the line of the table as plain values: each estimate with the ends of its interval."""
        quality = "mae" if self.feedback == "explicit" else "ndcg"
        plain = ("family", "label", "status", "guarantee", quality, "coverage", "feedback")
        line: dict[str, Any] = {name: getattr(self, name) for name in plain}
        estimates = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, found in estimates.items():
            if isinstance(found, Estimate):
                line |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        line |= {"verdict": self.verdict, "detectable": self.detectable}
        return {**line, "attack": self.attack, "n_targets": self.n_targets}


def _measured(subject: Subject, split: tuple[Ratings, Ratings], report: LeakReport, seed: RNG) -> FrontierPoint:
    """Return one point: fitted on the first part of the split, asked for the second, attacked on all ratings."""
    quality = _held_out(subject.recommender, split, seed)
    guarantee, found, raw = guarantee_of(subject.recommender), report.estimates, f"raw_{report.measure}"
    same: dict[str, Any] = {**quality, **{name: found[name] for name in _SAME}}
    return FrontierPoint(
        family=subject.traits.family,
        label=subject.traits.settings,
        status=guarantee.status,
        guarantee=str(guarantee),
        feedback=report.feedback,
        recovery=report.found,
        recovery_without=report.found_without,
        guess=report.guessed,
        raw_recovery=found[raw],
        raw_recovery_without=found[f"{raw}_without"],
        **same,
        verdict=report.finding.verdict,
        detectable=report.detectable,
        attack=report.attack,
        n_targets=report.n_targets,
        tried=report.tried,
        not_tried=report.not_tried,
    )


def _held_out(recommender: Any, split: tuple[Ratings, Ratings], seed: RNG) -> dict[str, float]:
    """Return the quality of the answers on the second part of a recommender fitted on the first."""
    train, test = split
    if callable(getattr(recommender, "perturbed", None)):
        train = recommender.perturbed(train, seed)  # users send noisy ratings
    fitted = fit_received(unfitted_copy(recommender, seed), train)
    quality = {"mae": np.nan, "coverage": np.nan, "ndcg": np.nan}
    if test.feedback == "explicit":
        rows = row_numbers(test.csr.indptr)
        told = np.asarray(fitted.predict(test.users[rows], test.items[test.csr.indices]))
        scores = Scores.of(np.clip(told, test.scale.lowest, test.scale.highest), test.csr.data)
        quality |= {"mae": scores.mae, "coverage": scores.coverage}
    elif callable(getattr(fitted, "recommend", None)):  # otherwise it knows no users
        listed = evaluate(fitted, test, n=LISTED)
        found = {"coverage": listed.catalogue_coverage, "ndcg": listed.ndcg}
        quality |= {name: value for name, value in found.items() if value is not None}
    return quality


def name_of(compared: object) -> str:
    """Return family and settings."""
    traits = traits_of(compared)
    return f"{traits.family} {traits.settings}".strip()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Frontier:
    """Recommenders side by side: error, leak, and guarantee. It holds no id and no rating."""

    points: tuple[FrontierPoint, ...]
    """One for each mechanism or model with its settings, in the order given."""
    guess: Estimate
    """What guessing recovers of the hidden ratings, from what everybody else rated: no attack is needed for that."""
    settings: dict[str, Any]
    """Attacks, targets, split, seed: the manifest. `reference`, if it is there, is a line of the chart: its `name` and
    its `mae`."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    """When it was made."""

    def _repr_html_(self) -> str:
        best = self.recommended()
        rows = [
            (
                point.name,
                point.fully_recovered,
                point.advantage,
                "not known" if np.isnan(point.quality) else f"{point.quality:.3f}",
                "not known" if np.isnan(point.coverage) else f"{point.coverage:.0%}",
                point.status,
                "recommended" if point is best else "",
            )
            for point in self.points
        ]
        head = ["recommender", "fully recovered", "advantage", QUALITY[self.feedback], "coverage"]
        return html_table([*head, "guarantee", ""], rows, title=f"Frontier, {self.date}")

    def __repr__(self) -> str:
        found = "recovers" if self.feedback == "explicit" else "hits"
        head = f"Frontier({len(self.points)} recommenders, guessing {found} {self.guess.value:.3f})"
        return "\n".join([head, *(f"  {point}" for point in self.points)])

    @property
    def feedback(self) -> Feedback:
        """Whether ratings were predicted, or lists shown."""
        return self.points[0].feedback

    @property
    def known(self) -> int | None:
        """How many ratings the attackers knew, if all knew as many."""
        known = set(self.settings.get("known", ()))
        return int(known.pop()) if len(known) == 1 else None

    def table(self) -> pa.Table:
        """Return one line for each recommender, as an arrow table."""
        return pa.Table.from_pylist([point.to_dict() for point in self.points])

    def to_dict(self, max_loss: float | None = None) -> dict[str, Any]:
        """Return the points, the position of the recommended one, and the settings, as plain values."""
        best = self.best_within(max_loss)
        return {
            "date": self.date,
            "points": [
                {
                    **point.to_dict(),
                    "cut": self.cut(point),
                    "tried": [as_plain(one) for one in point.tried],
                    "not_tried": [one._asdict() for one in point.not_tried],
                }
                for point in self.points
            ],
            "guess": self.guess._asdict(),
            "recommended": None if best is None else self.points.index(best),
            "settings": dict(self.settings),
        }

    def recommended(
        self, max_mae: float | None = None, *, min_ndcg: float | None = None, bound: float = GUESSING
    ) -> FrontierPoint | None:
        """Return the recommender with the smallest error, or the best lists, of those that stop the attacks tried.

        Such a recommender is no better for an attacker than guessing (`FrontierPoint.no_better_than_guessing`), or its
        guarantee is proved and its leak is at least five times smaller than the largest. `max_mae` is the largest
        acceptable error, `min_ndcg` the smallest acceptable NDCG@10 of lists. None if no recommender qualifies.
        """
        if self.feedback == "explicit":
            require(min_ndcg is None, "min_ndcg", "None for ratings", min_ndcg)
            return self.best_within(max_mae, bound=bound)
        require(max_mae is None, "max_mae", "None for lists", max_mae)
        return self.best_within(None if min_ndcg is None else 1.0 - min_ndcg, bound=bound)

    def best_within(self, max_loss: float | None, *, bound: float = GUESSING) -> FrontierPoint | None:
        """Return the same where the `loss` of a point may be at most `max_loss`."""
        require(0 <= bound <= 1, "bound", "between 0 and 1", bound)
        able = [
            one
            for one in self.points
            # Of the factor at least the worse end of the interval must be sure.
            if (one.status == "proved" and one.advantage.high * CUT <= self._largest)
            or one.no_better_than_guessing(bound)
        ]
        within = [one for one in able if max_loss is None or one.loss <= max_loss]
        return min(within, key=lambda one: one.loss, default=None)

    def cut(self, point: FrontierPoint) -> float:
        """Return by which factor a recommender surely leaks less than the leakiest one, by the end of its interval."""
        largest, most = self._largest, point.advantage.high
        return max(largest / most, 1.0) if largest > 0 and most > 0 else 1.0

    @property
    def _largest(self) -> float:
        return max((one.advantage.value for one in self.points), default=0.0)


@checked
def frontier(
    ratings: Ratings,
    compared: Sequence[Compared] | None = None,
    *,
    known: int = DEFAULT_KNOWN,
    attacks: Sequence[Attack] | None = None,
    targets: int = FRONTIER_TARGETS,
    rng: RNG = None,
    progress: bool | None = None,
) -> Frontier:
    """Attack each recommender, and measure its error on held-out ratings, or its lists on held-out events.

    Parameters
    ----------
    ratings, progress
        As in `KNNAttack.run`.
    compared
        Mechanisms and recommenders; None for kNN, nPNS, PNCF, PPNS and `PrivateCF`, each with several settings (for
        events also item-based kNN, `EASE`, `Popularity` and `PrivateTopN`).
    known, attacks
        As in `audit`. Of several `attacks` those that apply to a recommender attack it.
    targets
        How many users to attack, the same for all recommenders.
    rng
        A seed for everything, the noise of private models too: what is compared are experiments.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> listed = [gf.KNN(k=20), gf.PPNS(k=20, beta=3), gf.PrivateCF(epsilon=4.0, unit="rating")]
    >>> found = frontier(films, listed, targets=6, rng=7)
    >>> [point.status for point in found.points]
    ['none', 'refuted', 'proved']
    """
    good = attacks is None or (len(attacks) > 0 and all(isinstance(one, Attack) for one in attacks))
    require(good, "attacks", "at least one attack", type(attacks))
    if compared is None:
        compared = default_recommenders("full", ratings.shape[0], ratings.feedback)
    how = Comparison(known, attacks, targets, targets)
    return compare(ratings, compared, how, rng=rng, progress=progress)


class Comparison(NamedTuple):
    """Who attacks the compared recommenders, and how many users."""

    known: int
    attacks: Sequence[Attack] | None
    targets: int
    refitted: int  # how many users where every target needs fits


def compare(
    ratings: Ratings,
    compared: Sequence[Compared],
    how: Comparison,
    *,
    reports: Sequence[LeakReport] = (),
    rng: RNG = None,
    progress: bool | None = None,
) -> Frontier:
    """Return the frontier; `reports` are on the first ones of `compared`, which are not attacked again."""
    if not compared:
        raise DataError("compared must name at least one mechanism or recommender")
    streams, points = Streams(rng), []
    split, seed = holdout(ratings, fraction=_HELD_OUT, rng=streams.at(0)), streams.key(1)
    with bar("frontier", len(compared), show=progress) as advance:
        for one, report in zip_longest(compared, reports[: len(compared)]):
            subject = Subject(ratings, one)
            found = _attacked(subject, how, seed) if report is None else report
            points.append(_measured(subject, split, found, seed))
            advance(1)
    given = how.attacks
    known = [how.known] if given is None else [one.known for one in given]
    stated: dict[str, Any] = {"attacks": None if given is None else [repr(one) for one in given], "known": known}
    stated |= {"targets": how.targets, "held_out": _HELD_OUT, "seed": seed_of(rng)}
    stated["shape"] = [rounded(n) for n in ratings.shape]
    if ratings.liked_from is not None:
        stated["liked_from"] = ratings.liked_from
    # The targets and the known ratings are the same for all; some recommenders are attacked on fewer of them.
    guess = max(points, key=lambda point: point.n_targets).guess
    return Frontier(points=tuple(points), guess=guess, settings=stated)


def _attacked(subject: Subject, how: Comparison, seed: RNG) -> LeakReport:
    """Return what the strongest attacker finds."""
    able = None
    if how.attacks is not None:
        able = [one for attack in how.attacks if (one := applied(attack, subject)) is not None]
        if not able:
            raise DataError("attacks must include one that applies to everything compared")
    targets = how.refitted if subject.traits.needs_refits else how.targets
    return strongest(subject, able, known=how.known, targets=targets, rng=seed, progress=False)
