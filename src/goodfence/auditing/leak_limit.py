"""`assert_leak_below`: an audit as a test, so that a team learns of a leak from its CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from goodfence.attack.attack import mechanism_in
from goodfence.attack.knn_attack import Ask, KNNAttack
from goodfence.attack.refit_worlds import Attackable
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Estimate
from goodfence.attack.targets import Wanted
from goodfence.auditing.audit import FAKES_TRIED, leak
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism

Judged: TypeAlias = Literal["value", "high"]


def assert_leak_below(
    recommender: Mechanism | Attackable,
    ratings: Ratings,
    limit: float,
    *,
    known: int = 8,
    fakes: int | Sequence[int] | None = None,
    ask: Ask = "one",
    targets: Wanted | None = None,
    judged: Judged = "value",
    rng: RNG = 0,
    threads: int | None = None,
) -> AttackReport:
    """Attack a recommender, and fail if more than `limit` of 100 hidden ratings are read exactly.

    Parameters
    ----------
    recommender
        A selection mechanism, any recommender, or a `BlackBox`.
    ratings
        The ratings it learns from.
    limit
        How many of 100 hidden ratings may be read: to how many the prediction rounds.
    known, fakes, ask
        The attacker, as in `KNNAttack`. Several numbers of `fakes` are several attackers, of whom none may read
        more than the limit. None opens k accounts; where there is no k, as in a `BlackBox`, 10, 20 and 50.
    targets
        How many people to attack, or their ids; None for 200, or 30 where every one needs two fits.
    judged
        `value` compares the estimate with the limit; `high` the upper end of its 95% interval, which fails
        where too few people were attacked to be sure.
    rng
        The seed, fixed unless given, so that a test says the same tomorrow. Only private recommenders draw fresh
        noise each time, as they do in earnest.
    threads
        How many threads to use; None for as many as there are cores.

    Returns
    -------
    The report of the attack that read most.

    Raises
    ------
    AssertionError
        Who read how much, with its interval and what guessing reads; nobody's id.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = assert_leak_below(gf.NPNS(k=20), films, 50, targets=50)
    >>> assert_leak_below(gf.KNN(k=20), films, 10, targets=50)
    Traceback (most recent call last):
    ...
    AssertionError: Someone who knows 8 of a person's ratings and opens 20 accounts reads ... of 100 ...
    """
    require(0 <= limit <= 100, "limit", "between 0 and 100", limit)
    require(judged in get_args(Judged), "judged", "'value' or 'high'", judged)
    reports = [
        leak(
            ratings,
            recommender,
            attack=KNNAttack(known=known, fakes=opened, ask=ask),
            targets=targets,
            rng=rng,
            threads=threads,
            progress=False,
        )
        for opened in _opened(recommender, fakes)
    ]
    over = [report for report in reports if not _is_below(report, limit, judged)]
    worst = max(over or reports, key=lambda report: report.recovery)
    if over:
        raise AssertionError(_complaint(worst, known, limit, judged))
    return worst


def _opened(recommender: object, fakes: int | Sequence[int] | None) -> Sequence[int | None]:
    """Return how many accounts each attacker opens; None for as many as the mechanism has neighbours."""
    if isinstance(fakes, Sequence):
        require(len(fakes) > 0, "fakes", "at least one number", fakes)
        return fakes
    if fakes is None and mechanism_in(recommender) is None:
        return FAKES_TRIED
    return (fakes,)


def _is_below(report: AttackReport, limit: float, judged: Judged) -> bool:
    """Return whether so little was read; where there is no interval (one target) `high` cannot tell, and says no."""
    found = report.estimates["recovery"]
    return bool(100 * (found.value if judged == "value" else found.high) <= limit)


def _complaint(report: AttackReport, known: int, limit: float, judged: Judged) -> str:
    found, guess = report.estimates["recovery"], report.estimates["guess"]
    more = (
        f"more than the limit of {limit:g}"
        if judged == "value"
        else f"not surely within the limit of {limit:g}"
    )
    accounts = "account" if report.n_fakes == 1 else "accounts"
    return (
        f"Someone who knows {known} of a person's ratings and opens {report.n_fakes} {accounts} reads "
        f"{_of_100(found)} of her other ratings exactly, {more}. Someone who never saw her data guesses "
        f"{_of_100(guess)}. ({report.n_targets:,} people attacked, {report.attacked}.)"
    )


def _of_100(estimate: Estimate) -> str:
    value, low, high = (100 * part for part in estimate)
    return f"{value:.1f} of 100 (95%: {low:.1f}-{high:.1f})"
