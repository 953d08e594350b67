"""`assert_leak_below`: an audit as a test, so that a team learns of a leak from its CI."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from goodfence.attack.attack import mechanism_in
from goodfence.attack.knn_attack import Ask, KNNAttack
from goodfence.attack.refit_worlds import Attackable
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Estimate
from goodfence.attack.targets import Wanted
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism

Judged: TypeAlias = Literal["value", "high"]
FAKES = 50
"""How many accounts are opened against a recommender that has no k."""


def assert_leak_below(
    recommender: Mechanism | Attackable,
    ratings: Ratings,
    limit: float,
    *,
    known: int = 8,
    fakes: int | None = None,
    ask: Ask = "one",
    targets: Wanted = 200,
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
        The attacker, as in `KNNAttack`. `fakes` None opens k accounts, or 50 where there is no k.
    targets
        How many people to attack, or their ids.
    judged
        `value` compares the estimate with the limit; `high` the upper end of its 95% interval, which fails
        where too few people were attacked to be sure.
    rng
        The seed. It is fixed unless given, so that a test says the same tomorrow.
    threads
        How many threads to use; None for as many as there are cores.

    Returns
    -------
    The report of the attack.

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
    opened = FAKES if fakes is None and mechanism_in(recommender) is None else fakes
    attack = KNNAttack(known=known, fakes=opened, ask=ask)
    report = attack.run(
        ratings, recommender, targets=targets, rng=rng, threads=threads, progress=False
    )
    found = report.estimates["recovery"]
    # Where there is no interval (one target) nothing is sure, and `high` fails.
    if not 100 * (found.value if judged == "value" else found.high) <= limit:
        raise AssertionError(_complaint(report, known, limit, judged))
    return report


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
