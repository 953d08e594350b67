"""What an attack found, in words: who attacked, what he read, what guessing gives, how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodfence.attack.report import AttackReport
    from goodfence.attack.scoring import Estimate
    from goodfence.privacy.guarantee import Guarantee

_KNOWS = {"random": "{m}", "rarest": "the {m} rarest", "most_popular": "the {m} most popular"}
_TAKES = {"mode": "most frequent answer", "mean": "mean"}
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


def attacker(report: AttackReport) -> str:
    """Return who attacked: what he knows, how many accounts he opens, what they do."""
    stated: dict[str, Any] = dict(report.settings["settings"])
    m = stated["known"]
    choose = stated["choose"]
    known = _KNOWS[choose].format(m=m) if isinstance(choose, str) else f"{m} named ones"
    accounts = "account" if report.n_fakes == 1 else "accounts"
    text = (
        f"Someone who knows {known} of a person's ratings and opens {report.n_fakes:,} {accounts}"
    )
    if stated["name"] == "AdaptiveAttack":
        return f"{text} that also rate the item in question"
    if stated["ask"] == "all":
        text += ", all of which ask,"
    if stated["rounds"] > 1:
        text += f" again after each of {stated['rounds']} refits,"
    return text


def finding(report: AttackReport) -> str:
    """Return what was read by whom, and what guessing gives."""
    return f"{read_by(report)} {guessed(report)}"


def read_by(report: AttackReport) -> str:
    """Return what was read by whom."""
    read = report.estimates["recovery"]
    return f"{attacker(report)} reads {of_100(read.value)} of 100 of her other ratings exactly (95%: {interval(read)})."


def guessed(report: AttackReport) -> str:
    """Return what guessing gives."""
    guess = report.estimates["guess"]
    return f"Someone who never saw her data guesses {of_100(guess.value)} of 100 (95%: {interval(guess)})."


def because(report: AttackReport) -> str:
    """Return how much of that is there only because she is in the data."""
    gained, without = report.estimates["advantage"], report.estimates["recovery_without"]
    return (
        f"Without her in the data the same accounts read {of_100(without.value)} of 100 (95%: {interval(without)}); "
        f"the difference, {of_100(gained.value)} of 100 (95%: {interval(gained)}), is what her data gives away."
    )


def whole(read_whole: Estimate) -> str:
    """Return how many people were read completely."""
    return f"{of_100(read_whole.value)} of 100 people are read completely (95%: {interval(read_whole)})."


def attacked(report: AttackReport, n_users: int) -> str:
    """Return how many were attacked, of how many, and why not all."""
    left_out = f"{report.n_left_out:,} people have too few ratings" if report.n_left_out else ""
    if report.n_targets + report.n_left_out == n_users:
        some = (
            "everybody"
            if not left_out
            else f"everybody but {report.n_left_out:,} with too few ratings"
        )
        return f"{some}: {report.n_targets:,} people, {report.n_hidden:,} hidden ratings"
    told = f"{report.n_targets:,} of {n_users:,} people, drawn by chance; {report.n_hidden:,} hidden ratings"
    return f"{told} ({left_out})" if left_out else told


def promise(guarantee: Guarantee) -> str:
    """Return a promise in a few words, for a line of a table."""
    if guarantee.status == "none":
        return "none"
    unit = {"rating": "one rating", "user": "one person"}[guarantee.unit or "rating"]
    stated = f"{unit}, eps={guarantee.epsilon:.3g}"
    if guarantee.status == "proved":
        return f"proved: {stated}, any number of fakes"
    if guarantee.status == "refuted":
        return f"refuted (witness): {stated}"
    return f"{guarantee.status}: {stated}"


def about(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> about(42.0), about(200.0), about(9000.0)
    ('42 seconds', '3.3 minutes', '2.5 hours')
    """
    for size, unit in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.0f} seconds"


def strategy(report: AttackReport) -> str:
    """Return what one attacker does, shortly, for a line among others who know as much."""
    stated: dict[str, Any] = dict(report.settings["settings"])
    n_fakes = report.n_fakes
    accounts = "one account" if n_fakes == 1 else f"{n_fakes:,} accounts"
    if stated["name"] == "AdaptiveAttack":
        return f"{accounts}, which also rate the item in question"
    if stated["choose"] in ("rarest", "most_popular"):
        kind = stated["choose"].replace("_", " ")
        return f"{accounts}; he knows the {kind} items she rated"
    text = accounts
    if n_fakes > 1 and stated["ask"] == "one":
        text += ", one asks"
    elif n_fakes > 1:
        text += f", all ask and he takes the {_TAKES[stated['combine']]}"
    return text if stated["rounds"] == 1 else f"{text}, after each of {stated['rounds']} refits"


def dashed(text: str) -> str:
    """Return the text with a dash, not a hyphen, between numbers.

    Examples
    --------
    >>> dashed("92 (89-94)")
    '92 (89–94)'
    """
    import re

    return re.sub(r"(?<=\d)-(?=\d)", "–", text)
