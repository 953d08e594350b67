"""What was found, in words for people who are no engineers: attackers, findings, and guarantees."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from goodfence.report.vocabulary import interval as interval
from goodfence.report.vocabulary import measured as measured
from goodfence.report.vocabulary import of_100 as of_100
from goodfence.report.vocabulary import words_of as words_of

if TYPE_CHECKING:
    from goodfence.attack.report import LeakReport, Tried
    from goodfence.auditing.frontier import Frontier, FrontierPoint
    from goodfence.auditing.survey import Group
    from goodfence.privacy.guarantee import Guarantee

_KNOWS = {"random": "{m}", "rarest": "the {m} rarest", "most_popular": "the {m} most popular"}
_WHICH = {"random": "drawn by chance", "rarest": "the rarest", "most_popular": "the most popular"}
_HYPHEN = re.compile(r"\d{4}-\d{2}-\d{2}|(?<=\d)-(?=\d)")


def who_attacks(report: LeakReport) -> str:
    """Return who attacked: what is known, how many accounts are opened, what they do."""
    stated = report.settings["settings"]
    m, choose = stated["known"], stated["choose"]
    known = _KNOWS[choose].format(m=m) if isinstance(choose, str) else f"{m} named ones"
    return (
        f"someone who knows {known} of a person's {words_of(report).held} and opens {accounts(report.n_fakes)}: "
        f"{report.attacker.describe(report.n_fakes)}"
    )


def accounts(n_fakes: int) -> str:
    """Return a number of accounts.

    Examples
    --------
    >>> accounts(1), accounts(1200)
    ('1 account', '1,200 accounts')
    """
    return f"{n_fakes:,} {'account' if n_fakes == 1 else 'accounts'}"


def verdict(report: LeakReport, name: str) -> str:
    """Return what was found about the recommender called `name`, for the reader who must decide."""
    found, words = report.estimates, words_of(report)
    n_tried = len(report.tried) or 1
    by = "the attacker tried" if n_tried == 1 else f"the {n_tried} attackers tried"
    heads = {
        True: f"{name} leaks.",
        False: f"{name} is no better for an attacker than guessing, by {by}.",
        None: f"{name}: not settled by {by}; more people attacked would narrow the intervals.",
    }
    return (
        f"{heads[report.leaks]} {of_100(found['fully_recovered'].value)} of 100 people are fully recovered, "
        f"{of_100(found['fully_recovered_without'].value)} without their own data; of 100 {words.unit} "
        f"{of_100(found['advantage'].value)} ({interval(found['advantage'])}) {words.because}."
    )


def scope(report: LeakReport, neighbourhood: str = "") -> str:
    """Return when, about whom, by whom: the date, who was attacked, and whose neighbours."""
    told = f"{report.date}. Attacked: {attacked(report, report.ratings.shape[0])}."
    if report.ratings.liked_from is not None:
        told += f" Events: {liked(report.ratings.liked_from)}."
    return f"{told} Neighbourhood: {neighbourhood}." if neighbourhood else told


def liked(least: float) -> str:
    """Return which ratings became events.

    Examples
    --------
    >>> liked(4.0)
    'ratings of 4 or more; the others are left out'
    """
    return f"ratings of {least:g} or more; the others are left out"


def assumed(report: LeakReport) -> str:
    """Return what the attacker must be able to do."""
    stated, words = report.settings["settings"], words_of(report)
    which = _WHICH[stated["choose"]] if isinstance(stated["choose"], str) else "of named items"
    return (
        f"{stated['known']} {words.held} of each person are known ({which}), without an error; accounts can be opened; "
        f"the recommender is fitted with them, and {words.shows}."
    )


def verdict_line(report: LeakReport, name: str, neighbourhood: str) -> str:
    """Return verdict, scope and assumptions as one text: what a program keeps of a finding."""
    return f"{verdict(report, name)} {scope(report, neighbourhood)} Assumed: {assumed(report)}"


def people(report: LeakReport) -> str:
    """Return of how many people everything is recovered, and what the worst-off tenth loses."""
    fully, without = (
        report.estimates[name] for name in ("fully_recovered", "fully_recovered_without")
    )
    return (
        f"{of_100(fully.value)} of 100 people are fully recovered (95%: {interval(fully)}), {of_100(without.value)} "
        f"without their own data (95%: {interval(without)}): {fully_means(report)}. {worst_off(report)}"
    )


def fully_means(report: LeakReport) -> str:
    """Return what of a person must be recovered to call them fully recovered."""
    return words_of(report).fully_means(report)


def worst_off(report: LeakReport) -> str:
    """Return what the worst-off tenth loses."""
    worst = report.estimates["worst_tenth_loss"]
    return (
        f"The worst-off tenth loses {of_100(worst.value)} of 100 {words_of(report).lost} (95%: {interval(worst)}): "
        "what is recovered of it, less what is recovered of the worst-off tenth without their data."
    )


def recovered(report: LeakReport) -> str:
    """Return what is recovered of all hidden ratings in both worlds, and by guessing."""
    return words_of(report).recovered(report)


def advantage(report: LeakReport) -> str:
    """Return the difference of both worlds."""
    gained = report.estimates["advantage"]
    return f"{of_100(gained.value)} of 100 (95%: {interval(gained)}): what the target's data gives away."


def beside(report: LeakReport) -> str:
    """Return further figures, shortly: near misses, the gain in error, what is sure, and the answers alone."""
    return words_of(report).beside(report)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRow:
    """Attackers who do the same with several numbers of accounts, and the strongest of them."""

    what: str
    n_fakes: int
    others: tuple[int, ...]
    """The other numbers of accounts that were tried."""
    advantage: str
    fully_recovered: str
    chosen: bool

    @property
    def accounts(self) -> str:
        """How many accounts the strongest opened, and the others."""
        also = ", ".join(f"{n:,}" for n in self.others)
        return f"{self.n_fakes:,} (also {also})" if also else f"{self.n_fakes:,}"


def tried_rows(report: LeakReport) -> list[TriedRow]:
    """Return who was tried, one line for those who differ in the number of accounts only, the strongest first."""
    kinds: dict[str, list[Tried]] = {}
    for one in report.tried:
        kinds.setdefault(one.what, []).append(one)
    rows = []
    for what, members in kinds.items():
        best = max(
            members, key=lambda one: (one.strongest, -1.0 if one.failed else one.advantage.value)
        )
        rows.append(
            TriedRow(
                what=what,
                n_fakes=best.n_fakes,
                others=tuple(sorted({one.n_fakes for one in members} - {best.n_fakes, 0})),
                advantage="failed" if best.failed else measured(best.advantage),
                fully_recovered="" if best.failed else measured(best.fully_recovered),
                chosen=best.strongest,
            )
        )
    return sorted(rows, key=lambda row: not row.chosen)


def not_tried(report: LeakReport) -> str:
    """Return which attacks were not tried, and why."""
    return "; ".join(f"{one.attack} ({one.reason})" for one in report.not_tried) + "."


def above(report: LeakReport, limit: float, names: Sequence[str]) -> str:
    """Return what is above a limit of 100, with its figures; `names` as `LeakReport.above` gives them."""
    found = report.estimates
    words = {
        "advantage": f"of 100 {words_of(report).unit} {{value}} are given away",
        "fully_recovered": "of 100 people {value} are fully recovered",
    }
    told = " and ".join(words[name].format(value=measured(found[name])) for name in names)
    return f"above the limit of {limit:g}: {told}"


def attacked(report: LeakReport, n_users: int) -> str:
    """Return how many were attacked, of how many, why not all, and on whom the attacker was chosen."""
    from goodfence.auditing.audit import rounded  # not before: help is fast

    n_all = report.n_targets + report.n_choosing
    words = words_of(report)
    few = f"{report.n_left_out:,} with too few {words.held}" if report.n_left_out else ""
    if report.n_left_out + n_all == n_users:
        told = f"everybody but {few}" if few else f"everybody: {n_all:,} people"
    else:
        told = f"{n_all:,} of about {rounded(n_users):,} people, drawn by chance"
    if report.n_choosing:
        told += f"; the strongest attacker was chosen on {report.n_choosing:,}, all figures are about the other "
        told += f"{report.n_targets:,}"
    return f"{told}; {report.n_hidden:,} {words.hidden}"


def recommendation(
    found: Frontier, name: str | None, best: FrontierPoint | None, bound: str = ""
) -> str:
    """Return which of several recommenders to take, and why; `bound` says what else it must be."""
    if best is None or name is None:
        return (
            f"None of these stops the attackers tried{bound}. More people attacked would narrow the intervals; other "
            "settings may do better."
        )
    words = words_of(found)
    gained = f"they gain {measured(best.advantage)} of 100 {words.unit}"
    if best.no_better_than_guessing():
        why = f"{gained}, no better than guessing"
    else:
        why = f"{gained}, {found.cut(best):.0f} times less than where most is given away, and the guarantee is proved"
    return f"{name}: {words.least_loss} among those that stop the attackers tried{bound}; {why}."


def dashed(text: str) -> str:
    """Return the text with a dash, not a hyphen, between numbers, but for dates.

    Examples
    --------
    >>> dashed("92 (89-94) on 2026-11-17")
    '92 (89–94) on 2026-11-17'
    """
    return _HYPHEN.sub(lambda found: "–" if found[0] == "-" else found[0], text)


def group_name(group: Group, held: str = "ratings") -> str:
    """Return how many ratings the members of a group have, in round numbers.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from goodfence.attack.scoring import Estimate
    >>> from goodfence.auditing.survey import Group
    >>> one = Estimate(1.0, 1.0, 1.0)
    >>> found = dict.fromkeys(("recovery", "recovery_without", "advantage", "guess"), one)
    >>> group = Group(least=20, below=50, n_users=12, n_hidden=90, **found)
    >>> group_name(group), group_name(replace(group, below=None)), group_name(replace(group, least=1))
    ('20–49 ratings', '20 or more ratings', 'fewer than 50 ratings')
    """
    if group.least <= 1:
        if group.below is None:
            return f"any number of {held}"
        return f"only 1 {held[:-1]}" if group.below == 2 else f"fewer than {group.below:,} {held}"
    if group.below is None:
        return f"{group.least:,} or more {held}"
    return f"{group.least:,}–{group.below - 1:,} {held}"


_TITLES = {
    "proved": "Promised, and proved",
    "claimed": "Promised by a paper; not proved here",
    "refuted": "Promised by a paper; it does not hold",
    "none": "Nothing is promised",
}
_ABOUT = {
    "rating": "one rating of a person",
    "event": "one event of a person",
    "user": "everything a person rated",
}
_ONE = {"rating": "one rating", "event": "one event", "user": "one person"}
_DOUBTS = {
    "rating": "that rating was given",
    "event": "that event took place",
    "user": "that person is in the data",
}
_OPEN = (
    "Whoever opens accounts may recover whatever the answers give away. The figures above say how much the attackers "
    "tried did; nothing says that another cannot recover more."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A guarantee in words for somebody who has never heard of epsilon, and who makes it."""

    status: str
    title: str
    names: str
    words: str
    reasons: tuple[str, ...]
    """Why, once for each reason; with the names where there are several."""
    terms: str
    """The guarantee as specialists state it; empty where there is none."""


def cards_of(names: Sequence[str], guarantees: Sequence[Guarantee]) -> list[Card]:
    """Return one card for all who guarantee the same, proved ones first."""
    makers: dict[tuple[object, ...], list[tuple[str, Guarantee]]] = {}
    for name, one in zip(names, guarantees, strict=True):
        same = (one.status, one.unit, one.adjacency, one.epsilon, one.delta)
        makers.setdefault(same, []).append((name, one))
    cards = [_card(made_by) for made_by in makers.values()]
    return sorted(cards, key=lambda card: list(_TITLES).index(card.status))


def _card(made_by: Sequence[tuple[str, Guarantee]]) -> Card:
    one = made_by[0][1]
    reasons: dict[str, list[str]] = {}
    for name, each in made_by:
        reasons.setdefault(each.reason, []).append(name)
    several = len(reasons) > 1
    none = one.status == "none"
    return Card(
        status=one.status,
        title=_TITLES[one.status],
        names=" · ".join(name for name, _ in made_by),
        words=_OPEN if none else in_words(one),
        reasons=tuple(
            f"{', '.join(names)}: {why}" if several else why for why, names in reasons.items()
        ),
        terms=""
        if none
        else f"epsilon = {one.epsilon:.3g}, delta = {one.delta:g}, for one {one.unit} ({one.adjacency})",
    )


def guarantee_cell(guarantee: Guarantee) -> str:
    """Return a guarantee in a few words of the field, for a line of a table."""
    if guarantee.status == "none":
        return "none"
    unit = _ONE[guarantee.unit or "rating"]
    status = {"refuted": "refuted (counterexample)"}.get(guarantee.status, guarantee.status)
    any_number = ", any number of fakes" if guarantee.status == "proved" else ""
    return f"{status}: {unit}, eps={guarantee.epsilon:.3g}{any_number}"


def guarantee_short(guarantee: Guarantee) -> str:
    """Return the status of a guarantee, what it is about and its epsilon, for a table.

    Examples
    --------
    >>> from goodfence.privacy.guarantee import Guarantee
    >>> guarantee_short(Guarantee(status="none", reason="So."))
    'none'
    """
    if guarantee.status == "none":
        return "none"
    return f"{guarantee.status}: {guarantee.unit}, eps={guarantee.epsilon:.3g}"


def briefly(guarantee: Guarantee) -> str:
    """Return in a few words what there is of a guarantee.

    Examples
    --------
    >>> from goodfence.privacy.guarantee import Guarantee
    >>> briefly(Guarantee(status="none", reason="So."))
    'none'
    """
    about = _ABOUT[guarantee.unit or "user"]
    return {
        "none": "none",
        "refuted": f"a paper makes one about {about}; it does not hold",
        "claimed": f"a paper makes one about {about}; it is not proved here",
        "proved": f"proved, about {about}",
    }[guarantee.status]


def in_words(guarantee: Guarantee) -> str:
    """Return a guarantee without its Greek letters.

    Examples
    --------
    >>> from goodfence.privacy.guarantee import Guarantee
    >>> stated = Guarantee(status="proved", unit="user", adjacency="add/remove", epsilon=1, delta=0, reason="So.")
    >>> in_words(stated).split(". ")[1]
    'Whoever guesses whether that person is in the data, at even odds before, is right at most 73% of the time.'
    """
    one = _ABOUT[guarantee.unit or "user"]
    doubt = _DOUBTS[guarantee.unit or "user"]
    # No test of two equally likely neighbours is right more often than (e^epsilon + delta)/(e^epsilon + 1).
    unaided = 1.0 / (1.0 + math.exp(-(guarantee.epsilon or 0.0)))
    right = unaided + (guarantee.delta or 0.0) * (1 - unaided)
    stated = (
        f"However many accounts are opened and whatever they ask, what they are told is nearly as likely with {one} "
        f"in the data as without. Whoever guesses whether {doubt}, at even odds before, is right at most "
        f"{right:.0%} of the time."
    )
    if guarantee.status == "proved":
        return stated
    truth = "Nobody checked that here." if guarantee.status == "claimed" else "That is not so."
    return f"The paper says: {stated[0].lower()}{stated[1:]} {truth}"
