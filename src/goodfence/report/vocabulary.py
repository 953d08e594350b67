"""The words of a finding: what is recovered of ratings, and what is listed of events, in the same sentences.

`words_of` names them for a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goodfence.attack.report import LeakReport
    from goodfence.attack.scoring import Estimate
    from goodfence.auditing.frontier import Frontier, FrontierPoint

_SMALL = 0.0995  # what is shown as less than ten of a hundred needs a digit more


def of_100(share: float) -> str:
    """Return a share as a number of a hundred, with one digit more where it is small.

    Examples
    --------
    >>> of_100(0.917), of_100(0.0081), of_100(0.0)
    ('92', '0.8', '0')
    """
    if share != share:
        return "?"
    return f"{share:.1%}"[:-1] if 0 < abs(share) < _SMALL else f"{share:.0%}"[:-1]


def interval(estimate: Estimate) -> str:
    """Return the 95% interval of a share, in numbers of a hundred.

    Examples
    --------
    >>> from goodfence.attack.scoring import Estimate
    >>> interval(Estimate(0.917, 0.891, 0.9425))
    '89-94'
    >>> interval(Estimate(-0.009, -0.054, 0.035))
    '-5.4 to 3.5'
    """
    if estimate.low != estimate.low:
        return "not known"
    between = " to " if estimate.low < 0 else "-"
    return f"{of_100(estimate.low)}{between}{of_100(estimate.high)}"


def measured(estimate: Estimate) -> str:
    """Return a share of a hundred with its interval, as in "92 (89-94)"."""
    return f"{of_100(estimate.value)} ({interval(estimate)})"


def _of_ten(estimate: Estimate) -> str:
    """Return a share as a number of ten with its interval, as in "9.4 (95%: 9.2-9.6)"."""
    value, low, high = (10 * part for part in estimate)
    told = "?" if value != value else f"{value:.1f}"
    return f"{told} (95%: {low:.1f}-{high:.1f})" if low == low else told


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What is said of an attack on predicted ratings."""

    held: str = "ratings"
    """What a person has, and the attacker knows some of."""
    hidden: str = "hidden ratings"
    """What the attacker does not know."""
    unit: str = "hidden ratings"
    """Of what the shares are."""
    found: str = "are recovered"
    """What happens to it."""
    because: str = "are recovered only because of that data"
    """What happens to the advantage."""
    given_away: str = "hidden ratings given away"
    """The advantage, as an axis."""
    known: str = "ratings of the target that are known"
    """What the attacker knows, as an axis."""
    shows: str = "shows predicted ratings"
    """What the recommender must do for the attack."""
    gave: str = "gave"
    """What people did with what they have."""
    lost: str = "ratings"
    """What the worst-off lose."""
    measure: str = "recovery"
    """What is found, in a word."""
    loss: str = "error"
    """What is to be small of a recommender."""
    loss_axis: str = "mean absolute error (left is better)"
    """The same, as an axis."""
    least_loss: str = "the least error"
    """What is recommended has it."""
    held_out: str = "The error is on held-out ratings."
    """On what that is measured."""
    against: str = "What recommenders give away, against how wrong they are"
    """The title of a frontier."""
    gained: str = "recovered with the target in the data, less recovered without"
    """What the advantage is."""
    had: str = "recovered"
    """What is shown in both worlds, in a word."""

    share_axis: str = "hidden ratings recovered"
    """What is found, as an axis."""
    short: str = "recovered"
    """What is found, as a heading."""
    column: str = "error"
    """How good the answers are, as a heading."""
    covered: str = "answers"
    """What `coverage` is of, as a heading."""
    limit: str = "max_mae"
    """What bounds how good the answers must be."""
    lists: bool = False
    """Whether these are lists."""

    def limit_of(self, max_loss: float | None) -> float | None:
        """Return that bound, from the most that may be lost."""
        return max_loss

    def bound(self, max_loss: float | None) -> str:
        """Return the same in words."""
        return "" if max_loss is None else f" at an error of at most {max_loss:g}"

    def cost(self, best: FrontierPoint, audited: FrontierPoint, name: str) -> str:
        """Return what the recommended one costs beside the audited one."""
        change = best.mae - audited.mae
        less = "less" if change < 0 else "more"
        return f"Its error is {best.mae:.2f}, {abs(change):.2f} {less} than that of {name}."

    def quality(self, point: FrontierPoint) -> str:
        """Return how good the answers of a recommender are."""
        return f"MAE {point.mae:.3f}"

    def told_loss(self, point: FrontierPoint) -> str:
        """Return the same in a sentence."""
        return f"error {point.mae:.3f}"

    def fully_means(self, report: LeakReport) -> str:
        """Return what of a person must be found to call them fully recovered."""
        most = report.settings["settings"].get("items")
        if most is None:
            return "every hidden rating, exactly"
        return f"every one of up to {most} hidden ratings asked for, exactly"

    def recovered(self, report: LeakReport) -> str:
        """Return what is found in both worlds, and by guessing."""
        told, without, guess = report.found, report.found_without, report.guessed
        return (
            f"{of_100(told.value)} of 100 hidden ratings are recovered (95%: {interval(told)}), "
            f"{of_100(without.value)} without the target's data (95%: {interval(without)}). "
            f"Guessing, with no account, recovers {of_100(guess.value)} (95%: {interval(guess)})."
        )

    def beside(self, report: LeakReport) -> str:
        """Return further figures, shortly: near misses, the gain in error, what is sure, and the answers alone."""
        found = report.estimates
        near, near_without = found["within_one_step"], found["within_one_step_without"]
        sure, right = found["confident_coverage"], found["confident_precision"]
        raw, raw_without = found["raw_recovery"], found["raw_recovery_without"]
        known = f"Known to be right {of_100(sure.value)}"
        if right.value == right.value:
            known += f", of which {of_100(right.value)} of 100 are"
        return (
            f"Of 100: wrong by one step at most {of_100(near.value)} ({of_100(near_without.value)} without). {known}. "
            f"By the answers alone {of_100(raw.value)} ({of_100(raw_without.value)} without). "
            f"Mean error {found['mae_gain'].value:.2f} less than by guessing ({found['mae_gain_without'].value:.2f} "
            "without)."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfLists(Vocabulary):
    """What is said of an attack on recommended lists."""

    held: str = "items"
    hidden: str = "hidden items"
    unit: str = "listed items"
    found: str = "are the target's own"
    because: str = "are a person's own only because of that data"
    given_away: str = "listed items given away"
    known: str = "items of the target that are known"
    shows: str = "shows lists"
    gave: str = "have"
    lost: str = "listed items"
    measure: str = "precision"
    loss: str = "1 - NDCG@10"
    loss_axis: str = "1 - NDCG@10 (left is better)"
    least_loss: str = "the best lists"
    held_out: str = "NDCG@10 is on held-out events."
    against: str = "What recommended lists give away, against how good they are"
    gained: str = (
        "listed items that are the target's own, less the same without the target in the data"
    )
    had: str = "of the listed items the target's own"

    share_axis: str = "listed items that are the target's own"
    short: str = "the target's own"
    column: str = "NDCG@10"
    covered: str = "items listed"
    limit: str = "min_ndcg"
    lists: bool = True

    def limit_of(self, max_loss: float | None) -> float | None:
        return None if max_loss is None else 1.0 - max_loss

    def bound(self, max_loss: float | None) -> str:
        return "" if max_loss is None else f" at an NDCG@10 of at least {1.0 - max_loss:g}"

    def cost(self, best: FrontierPoint, audited: FrontierPoint, name: str) -> str:
        return f"Its NDCG@10 is {best.ndcg:.3f}; that of {name} is {audited.ndcg:.3f}."

    def quality(self, point: FrontierPoint) -> str:
        return f"NDCG@10 {point.ndcg:.3f}"

    def told_loss(self, point: FrontierPoint) -> str:
        return self.quality(point)

    def fully_means(self, report: LeakReport) -> str:  # noqa: ARG002 - protocol
        return "every listed item is their own, or all of their hidden items are listed"

    def recovered(self, report: LeakReport) -> str:
        return (
            f"Of ten items that are shown, {_of_ten(report.found)} are the target's own, "
            f"{_of_ten(report.found_without)} without the target's data. Of the ten most popular, with no account, "
            f"{_of_ten(report.guessed)} are."
        )

    def beside(self, report: LeakReport) -> str:
        found = report.estimates
        names = ("recall", "recall_without", "raw_precision", "raw_precision_without", "listed")
        recall, recall_without, raw, raw_without, listed = (of_100(found[n].value) for n in names)
        return (
            f"Of 100 hidden items {recall} are listed ({recall_without} without). Of 100 places in the lists {listed} "
            f"were taken; of 100 items there, before guessing, {raw} are the target's own ({raw_without} without)."
        )


RATINGS, LISTS = Vocabulary(), _OfLists()


def words_of(found: LeakReport | Frontier | FrontierPoint) -> Vocabulary:
    """Return the words for a result: those of ratings, or those of lists."""
    return RATINGS if found.feedback == "explicit" else LISTS
