"""`assert_leak_below`: an audit as a test, so that a team learns of a leak from its CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from goodfence.attack import DEFAULT_KNOWN
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.knn_attack import Ask, KNNAttack
from goodfence.attack.list_attack import ListAttack
from goodfence.attack.report import Judged, LeakReport
from goodfence.attack.scoring import Estimate
from goodfence.attack.strongest import applied, strongest, usual_attackers
from goodfence.attack.targets import Wanted
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.models.recommender import Recommender
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import checked, is_sequence, within


@checked
def assert_leak_below(
    recommender: Mechanism | Recommender,
    ratings: Ratings,
    limit: float,
    *,
    known: int = DEFAULT_KNOWN,
    fakes: int | Sequence[int] | None = None,
    ask: Ask | None = None,
    targets: Wanted | None = None,
    judged: Judged = "value",
    rng: RNG = 0,
    threads: int | None = None,
) -> LeakReport:
    """Attack a recommender, and fail if it gives away more than `limit` of 100.

    Judged are the advantage, of 100 hidden ratings (of events: of 100 listed items), and how many of 100 users are
    fully recovered, where these are more than without their data by more than chance. Returned is the report
    of the strongest attacker, as in `audit`.

    Parameters
    ----------
    recommender, ratings, threads
        As in `KNNAttack.run`.
    limit
        How many of 100 may be given away.
    known, fakes, ask
        What the attackers know; the accounts they open and which of them ask, as in `KNNAttack`. With neither, the
        usual attackers try, as in `audit`. Several numbers of `fakes` are several attackers.
    targets
        How many users to attack, or their ids; None for 200, or 30 where every one needs fits.
    judged
        `value` compares the estimates with the limit; `high` the upper ends of their 95% intervals, which fails
        where too few users were attacked to be sure.
    rng
        The seed, fixed unless given, so that a test says the same tomorrow; only private recommenders draw fresh noise.

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
    limit = within(limit, "limit", least=0, most=100)
    require(judged in get_args(Judged), "judged", "'value' or 'high'", judged)
    subject = Subject(ratings, recommender, threads=threads)
    attackers = _attackers(subject, known, fakes, ask)
    report = strongest(subject, attackers, targets=targets, rng=rng, progress=False)
    above = report.above(limit / 100, judged)
    if above:
        raise AssertionError(_complaint(report, above, known, limit, judged))
    return report


def _attackers(
    subject: Subject, known: int, fakes: int | Sequence[int] | None, ask: Ask | None
) -> Sequence[Attack]:
    """Return the attackers that are asked for, or the usual ones."""
    if fakes is None and ask is None:
        return usual_attackers(subject, known=known)
    opened: Any = fakes if is_sequence(fakes) else (fakes,)
    require(len(opened) > 0, "fakes", "at least one number", fakes)
    kind = KNNAttack if subject.ratings.feedback == "explicit" else ListAttack
    wanted = [kind(known=known, fakes=n, ask="one" if ask is None else ask) for n in opened]
    return [applied(attack, subject) or attack for attack in wanted]


def _complaint(
    report: LeakReport, above: Sequence[str], known: int, limit: float, judged: Judged
) -> str:
    found = report.estimates
    over = "above the limit" if judged == "value" else "not surely within the limit"
    names = " and ".join(name.replace("_", " ") for name in above)
    held = "ratings" if report.feedback == "explicit" else "items"
    accounts = "1 account" if report.n_fakes == 1 else f"{report.n_fakes} accounts"
    found_so = (
        f"{report.measure} {_percent(report.found)}, {_percent(report.found_without)} without"
    )
    return (
        f"{names} {over} of {limit:g}%. An attacker who knows {known} {held} of each target and opens {accounts} has "
        f"{found_so} the target's data and {_percent(report.guessed)} by guessing: advantage "
        f"{_percent(found['advantage'])}. Fully recovered: {_percent(found['fully_recovered'])} of the users. "
        f"({report.n_targets:,} users attacked, {report.attacked}.)"
    )


def _percent(estimate: Estimate) -> str:
    value, low, high = (100 * part for part in estimate)
    return f"{value:.1f}% (95%: {low:.1f} to {high:.1f})"
