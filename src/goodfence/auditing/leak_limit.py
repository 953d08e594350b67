"""`assert_leak_below`: an audit as a test, so that a team learns of a leak from its CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

from goodfence.attack import DEFAULT_KNOWN
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.report import Judged, LeakReport
from goodfence.attack.scoring import Estimate
from goodfence.attack.strongest import applied, strongest
from goodfence.attack.targets import Wanted
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.models.recommender import Recommender
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import between, checked

Undecided: TypeAlias = Literal["fail", "pass"]
_ADVICE = 'Attack more users, or accept this with undecided="pass".'


@checked
def assert_leak_below(
    recommender: Mechanism | Recommender,
    ratings: Ratings,
    limit: Annotated[float, between(0, 100)],
    *,
    known: int = DEFAULT_KNOWN,
    attack: Attack | Sequence[Attack] | None = None,
    targets: Wanted | None = None,
    judged: Judged = "value",
    undecided: Undecided = "fail",
    rng: RNG = 0,
) -> LeakReport:
    """Attack a recommender, and fail if it gives away more than `limit` percent, or if that cannot be told.

    Two figures are compared with the limit: the advantage, and the share of fully recovered users if it is
    significantly larger than without their data. Returns the report of the strongest attacker, as in `audit`.

    Parameters
    ----------
    recommender, ratings
        As in `KNNAttack.run`.
    limit
        The largest acceptable leak, in percent.
    known, attack
        As in `audit`; several attacks are several attackers.
    targets
        How many users to attack, or their ids; as in `audit`. There is no verdict on fewer than 30.
    judged
        `value` compares the estimates with the limit. `high` compares the upper ends of their 95% intervals, and so
        fails if too few users were attacked to be sure.
    undecided
        What becomes of a test whose verdict is "cannot tell": it fails, unless this is "pass".
    rng
        The seed. It is fixed by default so that a test repeats.

    Raises
    ------
    AssertionError
        States the measured leak, its 95% interval and what guessing recovers; no id.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = assert_leak_below(gf.NPNS(k=20), films, 50, targets=50)
    >>> assert_leak_below(gf.KNN(k=20), films, 10, targets=50)
    Traceback (most recent call last):
    ...
    AssertionError: advantage ... above the limit of 10%. An attacker who knows 8 ratings ...
    """
    subject = Subject(ratings, recommender)
    report = strongest(subject, _given(attack, subject), known=known, targets=targets, rng=rng, progress=False)
    above = report.above(limit / 100, judged)
    unclear = undecided == "fail" and report.finding.verdict == "cannot tell"
    if above or unclear:
        raise AssertionError(_complaint(report, above, limit, judged))
    return report


def _given(attack: Attack | Sequence[Attack] | None, subject: Subject) -> list[Attack] | None:
    """Return the attackers that were given, as they apply to the recommender; None for the usual ones."""
    if attack is None:
        return None
    attackers: Any = (attack,) if isinstance(attack, Attack) else attack
    given = attackers and all(isinstance(one, Attack) for one in attackers)
    require(given, "attack", "an attack or several", attack)
    return [applied(one, subject) or one for one in attackers]


def _complaint(report: LeakReport, above: Sequence[str], limit: float, judged: Judged) -> str:
    if not above:
        return f"cannot tell whether the leak is below {limit:g}%: {report.finding.reason}. {_ADVICE}"
    found = report.estimates
    over = "above the limit" if judged == "value" else "not surely within the limit"
    names = " and ".join(name.replace("_", " ") for name in above)
    held = "ratings" if report.feedback == "explicit" else "items"
    accounts = "1 account" if report.n_fakes == 1 else f"{report.n_fakes} accounts"
    found_so = f"{report.measure} {_percent(report.found)}, {_percent(report.found_without)} without"
    return (
        f"{names} {over} of {limit:g}%. An attacker who knows {report.known} {held} of each target and opens "
        f"{accounts} has {found_so} the target's data and {_percent(report.guessed)} by guessing: advantage "
        f"{_percent(found['advantage'])}. Fully recovered: {_percent(found['fully_recovered'])} of the users. "
        f"({report.n_targets:,} users attacked, {report.attacked}.)"
    )


def _percent(estimate: Estimate) -> str:
    value, low, high = (100 * part for part in estimate)
    return f"{value:.1f}% (95%: {low:.1f} to {high:.1f})"
