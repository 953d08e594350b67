"""Findings in words: attackers, leaks and guarantees, for ratings and for lists in the same sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from goodfence.attack.report import LeakReport, Tried
    from goodfence.attack.scoring import Estimate
    from goodfence.auditing.frontier import Frontier, FrontierPoint
    from goodfence.auditing.survey import Group
    from goodfence.privacy.guarantee import Guarantee

_NEARLY, _LEAST_SHOWN = 0.995, 0.0005
_SMALL = 0.0995  # what is shown as less than ten percent needs a digit more
_KNOWS = {"random": "{m}", "rarest": "the {m} rarest", "most_popular": "the {m} most popular"}
_WHICH = {"random": "drawn at random", "rarest": "the rarest", "most_popular": "the most popular"}
_HYPHEN = re.compile(r"\d{4}-\d{2}-\d{2}|(?<=\d)-(?=\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The words for an attack on predicted ratings; `LISTS` has those for one on recommended lists."""

    lists: bool = False
    held: str = "ratings"  # what a user has
    hidden: str = "hidden ratings"  # what the attacker does not know
    unit: str = "hidden ratings"  # what shares are of
    found: str = "recovered"  # what happens to the share that the attacker finds
    given_away: str = "hidden ratings given away"  # the advantage, as an axis
    known: str = "known ratings of the target"  # an axis
    shows: str = "shows predicted ratings"  # what the recommender does
    gave: str = "gave"  # what users did with what they have
    measure: str = "recovery"  # the share that the attacker finds, in a word
    share_axis: str = "hidden ratings recovered"  # the same as an axis
    short: str = "recovered"  # the same as a heading
    loss: str = "mean absolute error"  # what should be small
    least_loss: str = "the smallest error"
    held_out: str = "The error is measured on held-out ratings."
    against: str = "Leak and error of each recommender"  # the title of a frontier
    gained: str = "recovery with the target in the data minus recovery without"
    column: str = "error"  # the quality of the answers, as a heading
    covered: str = "answers"  # what `coverage` is of, as a heading
    limit: str = "max_mae"  # the setting that bounds the quality


RATINGS = Vocabulary()
LISTS = Vocabulary(
    lists=True,
    held="items",
    hidden="hidden items",
    unit="listed items",
    found="the target's own",
    given_away="listed items given away",
    known="known items of the target",
    shows="shows lists",
    gave="have",
    measure="precision",
    share_axis="listed items that are the target's own",
    short="the target's own",
    loss="1 - NDCG@10",
    least_loss="the best lists",
    held_out="NDCG@10 is measured on held-out events.",
    against="Leak and quality of each recommender's lists",
    gained="listed items that are the target's own, minus the same without the target in the data",
    column="NDCG@10",
    covered="items listed",
    limit="min_ndcg",
)


def words_of(found: LeakReport | Frontier | FrontierPoint) -> Vocabulary:
    """Return the words for a result: those of ratings, or those of lists."""
    return RATINGS if found.feedback == "explicit" else LISTS


def of_100(share: float) -> str:
    """Return a share in percent, without the sign and with one digit more where it is small."""
    if share != share:
        return "?"
    if _NEARLY <= share < 1:  # never all of what is not all
        return f"{math.floor(1000 * share) / 10:.1f}"
    if 0 < abs(share) < _LEAST_SHOWN:
        return "<0.1" if share > 0 else "0"
    return f"{share:.1%}"[:-1] if 0 < abs(share) < _SMALL else f"{share:.0%}"[:-1]


def interval(estimate: Estimate) -> str:
    """Return the 95% interval of a share, in percent."""
    if estimate.low != estimate.low:
        return "not known"
    between = " to " if estimate.low < 0 else "-"
    return f"{of_100(estimate.low)}{between}{of_100(estimate.high)}"


def measured(estimate: Estimate) -> str:
    """Return a share in percent with its interval, as in "92 (89-94)"."""
    return f"{of_100(estimate.value)} ({interval(estimate)})"


def _percent(estimate: Estimate) -> str:
    """Return the same for a sentence, as in "92% (95%: 89-94)"."""
    return f"{of_100(estimate.value)}% (95%: {interval(estimate)})"


def _of_ten(estimate: Estimate) -> str:
    value, low, high = (10 * part for part in estimate)
    told = "?" if value != value else f"{value:.1f}"
    return f"{told} (95%: {low:.1f}-{high:.1f})" if low == low else told


def dashed(text: str) -> str:
    """Return the text with a dash, not a hyphen, between numbers, except in dates."""
    return _HYPHEN.sub(lambda found: "–" if found[0] == "-" else found[0], text)


def accounts(n_fakes: int) -> str:
    """Return a number of accounts."""
    return f"{n_fakes:,} {'account' if n_fakes == 1 else 'accounts'}"


def liked(least: float) -> str:
    """Return which ratings became events."""
    return f"ratings of {least:g} or more; lower ratings are ignored"


def who_attacks(report: LeakReport) -> str:
    """Return the attacker: the known ratings, the number of accounts and their behaviour."""
    stated = report.settings["settings"]
    m, choose = stated["known"], stated["choose"]
    known = _KNOWS[choose].format(m=m) if isinstance(choose, str) else f"{m} named"
    return (
        f"an attacker who knows {known} {words_of(report).held} of a user and opens {accounts(report.n_fakes)}: "
        f"{report.attacker.describe(report.n_fakes)}"
    )


def verdict(report: LeakReport, name: str) -> str:
    """Return the finding about the recommender called `name`, for the reader who must decide."""
    found, words, finding = report.estimates, words_of(report), report.finding
    n_tried = len(report.tried) or 1
    none = "the attack tried found no leak" if n_tried == 1 else f"none of the {n_tried} attacks tried found a leak"
    heads = {
        "leaks": f"{name} leaks.",
        "none found": f"{name}: {none}. {would_have_seen(report)}",
        "cannot tell": f"{name}: cannot tell, because {finding.reason}.",
    }
    gained = found["advantage"]
    cut = f"Incomplete: {report.cut}. " if report.cut else ""
    fully = of_100(found["fully_recovered"].value)
    return (
        f"{cut}{heads[finding.verdict]} The attacker fully recovers {fully}% of the users, "
        f"{of_100(found['fully_recovered_without'].value)}% without their own data. {of_100(gained.value)}% "
        f"({interval(gained)}) of the {words.unit} are {words.found} only because of the target's data."
    )


def would_have_seen(report: LeakReport) -> str:
    """Return what the audit would have seen, and what became of planted victims."""
    told = f"An advantage of {of_100(report.detectable)}% or more would have been seen with 95% power"
    if report.probe is None:
        return f"{told}."
    return f"{told}; of planted victims {of_100(report.probe.planted)}% is recovered beyond guessing."


def attacked(report: LeakReport, n_users: int) -> str:
    """Return how many users were attacked, of how many, why not all, and on whom the attacker was selected."""
    from goodfence.auditing.audit import rounded  # not before: help is fast

    n_all, words = report.n_targets, words_of(report)
    few = f"{report.n_left_out:,} with too few {words.held}" if report.n_left_out else ""
    if report.n_left_out + n_all == n_users:
        told = f"all users except {few}" if few else f"all {n_all:,} users"
    else:
        told = f"{n_all:,} of about {rounded(n_users):,} users, drawn at random"
    if report.n_few:
        told += f"; of {report.n_few:,} with no more than {report.known} {words.held} half are known"
    if report.tried:
        told += (
            f"; {len(report.tried)} attackers were compared on {report.n_choosing:,}, and each user is judged by the "
        )
        told += "strongest on others"
    return f"{told}; {report.n_hidden:,} {words.hidden}"


def scope(report: LeakReport, neighbourhood: str = "") -> str:
    """Return the date, the attacked users, and whose neighbours were attacked."""
    told = f"{report.date}. Attacked: {attacked(report, report.ratings.shape[0])}."
    if report.ratings.liked_from is not None:
        told += f" Events: {liked(report.ratings.liked_from)}."
    return f"{told} Neighbourhood: {neighbourhood}." if neighbourhood else told


def assumed(report: LeakReport) -> str:
    """Return what the attacker must be able to do."""
    choose = report.settings["settings"]["choose"]
    which = _WHICH[choose] if isinstance(choose, str) else "of named items"
    return assumptions(words_of(report), report.known, f" ({which})")


def assumptions(words: Vocabulary, known: int | None, which: str = "") -> str:
    """Return what an attacker must be able to do who knows this many ratings or items of each target."""
    return (
        f"The attacker knows {known or 'some'} {words.held} of each target{which} without error and can open accounts. "
        f"The recommender is fitted with these accounts and {words.shows}."
    )


def verdict_line(report: LeakReport, name: str, neighbourhood: str) -> str:
    """Return verdict, scope and assumptions as one text, for JSON."""
    return f"{verdict(report, name)} {scope(report, neighbourhood)} Assumed: {assumed(report)}"


def people(report: LeakReport) -> str:
    """Return the share of users who are fully recovered, and the loss of the most exposed ones."""
    found = report.estimates
    fully, without = (_percent(found[f"fully_recovered{end}"]) for end in ("", "_without"))
    return (
        f"{fully} of the users are fully recovered, {without} without their own data: "
        f"{fully_means(report)}. {worst_off(report)}"
    )


def fully_means(report: LeakReport) -> str:
    """Return when a user counts as fully recovered."""
    if words_of(report).lists:
        return "every listed item is their own, or all of their hidden items are listed"
    most = report.settings["settings"].get("items")
    which = "every hidden rating" if most is None else f"every one of up to {most} hidden ratings"
    return f"{which} is recovered exactly"


def worst_off(report: LeakReport) -> str:
    """Return the loss of the tenth of the users of whom most is recovered."""
    worst, words = report.estimates["worst_tenth_loss"], words_of(report)
    more = "more listed items are their own" if words.lists else "more ratings are recovered"
    return f"Of the 10% of users who lose most, {_percent(worst)} {more} than without their data."


def recovered(report: LeakReport) -> str:
    """Return the share that is found in both worlds, and by guessing."""
    told, without, guess = report.found, report.found_without, report.guessed
    if words_of(report).lists:
        return (
            f"Of ten listed items {_of_ten(told)} are the target's own, {_of_ten(without)} without the target's data. "
            f"Of the ten most popular items {_of_ten(guess)} are, without any account."
        )
    return (
        f"The attacker recovers {_percent(told)} of the hidden ratings, {_percent(without)} without the target's data. "
        f"Guessing without an account recovers {_percent(guess)}."
    )


def advantage(report: LeakReport) -> str:
    """Return the difference of both worlds."""
    share = _percent(report.estimates["advantage"])
    return f"{share}: the share that the target's data gives away."


def beside(report: LeakReport) -> str:
    """Return further figures: near misses, certainty, the answers alone and the gain in error; of lists the recall."""
    found = {name: of_100(one.value) for name, one in report.estimates.items()}
    if words_of(report).lists:
        return (
            f"{found['recall']}% of the hidden items are listed ({found['recall_without']}% without the target's "
            f"data). The lists fill {found['listed']}% of their places; {found['raw_precision']}% of the items in them "
            f"are the target's own ({found['raw_precision_without']}% without), before guessing."
        )
    certain = f"The attacker is certain about {found['confident_coverage']}% of the ratings"
    if found["confident_precision"] != "?":
        certain += f" and right in {found['confident_precision']}% of those"
    gain, without = (round(report.estimates[name].value, 2) + 0.0 for name in ("mae_gain", "mae_gain_without"))
    return (
        f"{found['within_one_step']}% are at most one step off ({found['within_one_step_without']}% without the "
        f"target's data). {certain}. The answers alone recover {found['raw_recovery']}% "
        f"({found['raw_recovery_without']}% without). The mean error is {gain:.2f} smaller than by guessing "
        f"({without:.2f} without)."
    )


class TriedRow(NamedTuple):
    """Attackers who differ only in the number of accounts, and the strongest of them."""

    what: str
    accounts: str
    advantage: str
    fully_recovered: str
    chosen: bool


def tried_rows(report: LeakReport) -> list[TriedRow]:
    """Return the attackers tried, one row for those who differ only in the number of accounts, the strongest first."""
    kinds: dict[str, list[Tried]] = {}
    for one in report.tried:
        kinds.setdefault(one.what, []).append(one)
    rows = []
    for what, members in kinds.items():
        gains = [(one.strongest, -1.0 if one.failed else one.advantage.value) for one in members]
        best = members[gains.index(max(gains))]
        others = sorted({one.n_fakes for one in members} - {best.n_fakes, 0})
        also = f" (also {', '.join(f'{n:,}' for n in others)})" if others else ""
        gained, fully = measured(best.advantage), measured(best.fully_recovered)
        told = ("failed", "") if best.failed else (gained, fully)
        rows.append(TriedRow(what, f"{best.n_fakes:,}{also}", *told, chosen=best.strongest))
    return sorted(rows, key=lambda row: not row.chosen)


def not_tried(report: LeakReport) -> str:
    """Return which attacks were not tried, and why."""
    return "; ".join(f"{one.attack} ({one.reason})" for one in report.not_tried) + "."


def above(report: LeakReport, limit: float, names: Sequence[str]) -> str:
    """Return what is above a limit in percent; `names` as `LeakReport.above` gives them."""
    told = {
        "advantage": f"{{}} of the {words_of(report).unit} are given away",
        "fully_recovered": "{} of the users are fully recovered",
    }
    each = (told[name].format(_percent(report.estimates[name])) for name in names)
    return f"above the limit of {limit:g}%: {' and '.join(each)}"


def recommendation(found: Frontier, name: str | None, best: FrontierPoint | None, max_loss: float | None = None) -> str:
    """Return which recommender to use, and why; `best` is the one within `max_loss`, and is called `name`."""
    words, bound = words_of(found), ""
    if max_loss is not None and words.lists:
        bound = f" with an NDCG@10 of at least {1.0 - max_loss:g}"
    elif max_loss is not None:
        bound = f" with an error of at most {max_loss:g}"
    if best is None or name is None:
        return (
            f"No recommender{bound} stops the attacks tried. Attack more users to narrow the intervals, or try other "
            "settings."
        )
    gained = f"the attacker gains {_percent(best.advantage)} of the {words.unit}"
    why = f"{gained}, and more than {of_100(best.detectable)}% would have been seen"
    if not best.no_better_than_guessing():
        why = f"{gained}, at least {found.cut(best):.0f} times less than from the leakiest, and the guarantee is proved"
    return f"{name} has {words.least_loss} of those{bound} that stop the attacks tried: {why}."


def group_name(group: Group, held: str = "ratings") -> str:
    """Return how many ratings the members of a group have, in round numbers."""
    if group.least <= 1:
        if group.below is None:
            return f"any number of {held}"
        return f"only 1 {held[:-1]}" if group.below == 2 else f"fewer than {group.below:,} {held}"
    if group.below is None:
        return f"{group.least:,} or more {held}"
    return f"{group.least:,}–{group.below - 1:,} {held}"


_TITLES = {
    "proved": "Proved guarantee",
    "claimed": "Claimed by a paper; not proved here",
    "refuted": "Claimed by a paper; refuted",
    "none": "No guarantee",
}
_ABOUT = {"rating": "one rating of a user", "event": "one event of a user", "user": "all data of a user"}
_OPEN = (
    "Fake accounts may recover whatever the answers reveal. The figures above show what the attacks tried recovered; "
    "another attack may recover more."
)


class Card(NamedTuple):
    """A guarantee for readers who do not know epsilon, and the recommenders that give it."""

    status: str
    title: str
    names: str
    words: str
    reasons: tuple[str, ...]  # with the names where there are several
    terms: str  # as specialists state it; empty where there is none


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
    terms = ""
    if one.status != "none":
        terms = f"epsilon = {one.epsilon:.3g}, delta = {one.delta:g}, for one {one.unit} ({one.adjacency})"
    return Card(
        status=one.status,
        title=_TITLES[one.status],
        names=" · ".join(name for name, _ in made_by),
        words=in_words(one) if terms else _OPEN,
        reasons=tuple(f"{', '.join(names)}: {why}" if len(reasons) > 1 else why for why, names in reasons.items()),
        terms=terms,
    )


def guarantee_cell(guarantee: Guarantee) -> str:
    """Return a guarantee in a few words of the field, for a line of text."""
    if guarantee.status == "none":
        return "none"
    status = {"refuted": "refuted (counterexample)"}.get(guarantee.status, guarantee.status)
    any_number = ", any number of fakes" if guarantee.status == "proved" else ""
    return f"{status}: one {guarantee.unit}, eps={guarantee.epsilon:.3g}{any_number}"


def guarantee_short(guarantee: Guarantee) -> str:
    """Return the status of a guarantee, its unit and its epsilon, for a table."""
    if guarantee.status == "none":
        return "none"
    return f"{guarantee.status}: {guarantee.unit}, eps={guarantee.epsilon:.3g}"


def briefly(guarantee: Guarantee) -> str:
    """Return a guarantee in a few words."""
    about = _ABOUT[guarantee.unit or "user"]
    return {
        "none": "none",
        "refuted": f"a paper claims one for {about}; it is refuted",
        "claimed": f"a paper claims one for {about}; it is not proved here",
        "proved": f"proved, for {about}",
    }[guarantee.status]


def in_words(guarantee: Guarantee) -> str:
    """Return a guarantee without its Greek letters."""
    one, there = _ABOUT[guarantee.unit or "user"], "it is"
    if guarantee.unit == "user":
        there = "they are"
    # No test of two equally likely neighbours is right more often than (e^epsilon + delta)/(e^epsilon + 1).
    unaided = 1.0 / (1.0 + math.exp(-(guarantee.epsilon or 0.0)))
    right = unaided + (guarantee.delta or 0.0) * (1 - unaided)
    stated = (
        f"However many accounts are opened and whatever they ask, the answers are nearly as likely with {one} in the "
        f"data as without. An attacker who guesses at even odds whether {there} there is right at most {right:.0%} of "
        "the time."
    )
    if guarantee.status == "proved":
        return stated
    truth = "This was not checked here." if guarantee.status == "claimed" else "This does not hold."
    return f"The paper states: {stated[0].lower()}{stated[1:]} {truth}"
