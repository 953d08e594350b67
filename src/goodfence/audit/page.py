"""`audit_page`: an audit and what stands around it, as one HTML file."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from goodfence.attack import DEFAULT_KNOWN
from goodfence.attack.attack import Attack
from goodfence.attack.targets import Wanted
from goodfence.audit.audit import audit
from goodfence.audit.frontier_point import Compared, name_of
from goodfence.audit.survey import TARGETS, survey
from goodfence.data.ratings import Ratings
from goodfence.models.neighbour_cf import as_recommender, traits_of
from goodfence.report.pages import AuditPage
from goodfence.rng import RNG
from goodfence.settings import checked


@checked
def audit_page(
    ratings: Ratings,
    audited: Compared,
    *,
    known: int = DEFAULT_KNOWN,
    attack: Attack | None = None,
    targets: Wanted | None = None,
    trials: int = 0,
    compared: Sequence[Compared] | None = None,
    others: int = TARGETS,
    data: str = "ratings",
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> AuditPage:
    """Audit a recommender, look around the audit, and return a page that says what was found.

    Parameters
    ----------
    ratings, audited, known, attack, trials, threads, progress
        As in `audit`.
    rng
        A seed for everything but the noise of private models; None draws one, and the page tells it.
    targets
        Who is attacked; None for everybody, or 30 where every target needs fits.
    compared
        What else could be used; None for kNN, PPNS, nPNS, PNCF and two private models.
    others
        How many people further attackers attack.
    data
        What the page calls the ratings.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> page = audit_page(films, gf.KNN(k=20), targets=40, compared=[], others=20, data="films", rng=7)
    >>> "What would stop it" in page.html
    True
    """
    recommender, traits = as_recommender(audited, threads=threads), traits_of(audited)
    everybody = None if traits.needs_refits else ratings.shape[0]
    wanted = everybody if targets is None else targets
    if rng is None:
        rng = secrets.randbelow(2**32)  # all attacks of the page have one seed, which it states
    running: dict[str, Any] = {"rng": rng, "threads": threads, "progress": progress}
    attackers: dict[str, Any] = {"known": known, "attack": attack}
    report = audit(ratings, recommender, targets=wanted, trials=trials, **attackers, **running)
    m = known if attack is None else attack.known
    around = survey(report, recommender, known=m, compared=compared, targets=others, **running)
    line = _python_line(report.audited, known, attack, targets, report.leakage.settings["seed"])
    return AuditPage(survey=around, label=name_of(audited), data=data, command=line)


def _python_line(
    audited: str, known: int, attack: Attack | None, targets: Wanted | None, seed: int | None
) -> str:
    """Return the call that makes the figures again; neither ids nor named items are in it."""
    plan = f"known={known}" if attack is None else f"attack={attack!r}"
    if attack is not None and not isinstance(attack.choose, str):
        plan = f"attack=known={attack.known}, named items"
    some = f", targets={targets}" if isinstance(targets, int) else ""
    return f"gf.audit_page(ratings, {audited}, {plan}{some}, rng={seed}).save('audit.html')"
