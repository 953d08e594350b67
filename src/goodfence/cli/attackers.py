"""The attackers of `goodfence audit --attack 'NAME SETTING=VALUE ...'`, and what those with their own report print."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from goodfence.attack import DEFAULT_FAKES, DEFAULT_KNOWN
from goodfence.cli.output import print_paragraphs, print_table
from goodfence.errors import SettingError, did_you_mean, require
from goodfence.report.wording import liked, measured, of_100, words_of

if TYPE_CHECKING:
    from goodfence.attack.attributes import AttributeReport
    from goodfence.attack.changes import ChangesReport
    from goodfence.attack.membership import MembershipReport, OperatingPoint
    from goodfence.attack.related_items import RelatedItemsReport
    from goodfence.attack.report import LeakReport
    from goodfence.cli.options import Running
    from goodfence.data.ratings import Feedback

_HOMES = {
    "knn": "attack.knn_attack.KNNAttack",
    "cover": "attack.knn_attack.CoverAttack",
    "adaptive": "attack.knn_attack.AdaptiveAttack",
    "pair": "papers.pair_attack.PairAttack",
    "list": "attack.list_attack.ListAttack",
    "membership": "attack.membership.MembershipAttack",
    "attribute": "attack.attributes.AttributeAttack",
    "refits": "attack.changes.ChangesAttack",
    "related-items": "attack.related_items.RelatedItemsAttack",
}
"""The class of each attack, imported when it is named."""
_ON_EVENTS = ("list", "cover", "adaptive", "membership", "related-items")
_ON_RATINGS = tuple(name for name in _HOMES if name != "list")
_LABELS = ("file", "column", "user")  # where the classes of users are, for the attack on attributes
_OWNER_ONLY = 0o600
_ADVICE = 0.1  # the advice on related items keeps the share of right guesses below this
_ANY_NUMBER = 2**31  # more users than any mechanism looks at, to count the fakes that cover its candidates


class AttackLine(NamedTuple):
    """What `--attack` says: a name of `_HOMES`, and settings of its class."""

    name: str
    settings: dict[str, Any]

    @classmethod
    def parse(cls, text: str, known: int | None, feedback: Feedback = "explicit") -> AttackLine:
        """Return the attack of a line of text; `known` is the setting of that name, unless the line has one."""
        from goodfence.models.method import pairs

        first, *parts = text.split() or [""]
        name = first.casefold().replace("_", "-").removesuffix("attack")
        name = name if name != "relateditems" else "related-items"
        events = feedback == "implicit"
        usual = _ON_EVENTS if events else _ON_RATINGS
        what = f"one of {', '.join(usual)} for {'events' if events else 'ratings'}"
        require(name in usual, "attack", what, first, did_you_mean(name, usual))
        settings: dict[str, Any] = dict(pairs(parts))
        if known is not None or name != "related-items":
            settings.setdefault("known", DEFAULT_KNOWN if known is None else known)
        line = cls(name, settings)
        allowed = line._allowed(events=events)
        for key in settings.keys() - allowed:
            raise SettingError(f"the attack {name} has no setting {key!r}{did_you_mean(key, allowed)}")
        if name == "attribute" and not {"file", "column"} <= settings.keys():
            raise SettingError("the attack attribute needs file=FILE column=NAME: a class for each user")
        return line

    def _allowed(self, *, events: bool) -> set[str]:
        """Return the settings that the attack has on a line of text."""
        of = _kind("list") if events and not self.apart else _kind(self.name)
        allowed = {*inspect.signature(of).parameters}
        allowed |= {"related-items": {"precision"}, "attribute": {*_LABELS}}.get(self.name, set())
        gone = {"adaptive": {"adaptive"}, "cover": {"adaptive"}, "attribute": {"labels"}}.get(self.name, set())
        return allowed - gone - ({"n"} if self.name == "membership" and not events else set())

    @property
    def apart(self) -> bool:
        """Whether the attack has a report of its own, and not one of recovered ratings."""
        return self.name in (*PRINTED, "related-items")

    def made(self, recommender: Any, feedback: Feedback) -> Any:
        """Return the attack on this recommender."""
        from goodfence.models.method import traits_of

        settings = dict(self.settings)
        if self.name == "related-items":
            settings.pop("precision", None)
            if "every" in settings:
                parts = str(settings["every"]).split(",")
                good = all(part.isascii() and part.isdecimal() for part in parts)
                require(good, "every", "integers, as in every=1,20,100", settings["every"])
                settings["every"] = tuple(int(part) for part in parts)
            return _kind(self.name)(**settings)
        if self.name == "attribute":
            from goodfence.data.load import read_labels

            where = {key: str(settings.pop(key)) for key in _LABELS if key in settings}
            settings["labels"] = read_labels(**where)
        if feedback == "implicit" and not self.apart:
            if self.name == "adaptive":
                settings["adaptive"] = True
            elif self.name == "cover":
                fakes = _kind("cover")(known=1).n_fakes(recommender, _ANY_NUMBER)
                settings = {"ask": "all", "fakes": fakes, **settings}
            return _kind("list")(**settings)
        if self.name != "pair" and not traits_of(recommender).n_neighbours:
            settings.setdefault("fakes", DEFAULT_FAKES)
        return _kind(self.name)(**settings)

    @property
    def precision(self) -> float:
        """Below which share of right guesses the advice on related items stays."""
        return float(self.settings.get("precision", _ADVICE))


def _kind(name: str) -> Any:
    module, _, kind = _HOMES[name].rpartition(".")
    return getattr(import_module(f"goodfence.{module}"), kind)


def print_membership(found: MembershipReport, label: str) -> None:
    """Print how well the attacker tells members from others, and what they could publish."""
    told, auc, words = found.settings, found.auc, words_of(found.recovery)
    least = found.recovery.ratings.liked_from
    answers = "listed items" if words.lists else "answers about hidden ratings"
    between = f"{auc.value:.3f} (95%: {auc.low:.3f}-{auc.high:.3f})"
    known = f"{told['known']} {words.held} of each known, {told['left_out']} left out"
    shadows = f"; likelihood ratios from {told['shadows']} shadow fits" if told["score"] == "lira" else ""
    lines = [
        ("Method", label),
        ("AUC", f"{between}: probability that a member scores above others; 0.5 is chance"),
        ("ROC", "; ".join(f"TPR at FPR {rate:.1%}: {_low_rate(found, rate)}" for rate in found.low_rates)),
        *((f"At {point.rate:.0%}", _point(point, words.hidden)) for point in found.points),
        ("All", f"{of_100(found.precision_of_all.value)}% of all {answers} are right."),
        ("Attacked", f"{found.n_targets:,} users; {known}{shadows}"),
        *([] if least is None else [("Events", liked(least))]),
        ("Guarantee", found.bound_in_words),
    ]
    print_paragraphs(lines)


def _low_rate(found: MembershipReport, rate: float) -> str:
    rated = found.low_rates[rate]
    return f"{measured(rated)}%" if rated.value == rated.value else found.in_words(rate)


def _point(point: OperatingPoint, hidden: str) -> str:
    rates = (
        f"The attacker recognises {measured(point.true_positives)}% of members and mistakes "
        f"{measured(point.false_positives)}% of others for members"
    )
    if point.precision.value != point.precision.value:  # nobody is above the threshold
        return f"{rates}. The attacker would publish nothing."
    return (
        f"{rates}. Publishing what these members' answers say reveals {measured(point.published)}% of {hidden}; "
        f"{measured(point.precision)}% of what is published is right."
    )


def print_attribute(found: AttributeReport, label: str) -> None:
    """Print how well the attacker predicts the class of a user."""
    shares = {name: f"{measured(one)}%" for name, one in found.estimates.items()}
    told, guess = found.settings["settings"], f"{shares['majority']} by always guessing the most frequent class"
    balanced = f"{shares['balanced_accuracy']} with, {shares['balanced_accuracy_without']} without"
    known = f"{told['known']} ratings of each known"
    lines = [
        ("Method", label),
        ("Accuracy", f"{shares['accuracy']} with the target's data, {shares['accuracy_without']} without, {guess}"),
        ("Advantage", f"{shares['advantage']} of users, predicted only because of their own data"),
        ("Balanced", f"{balanced}: mean of classes"),
        ("Advantage", f"{shares['balanced_advantage']} of the mean class"),
        ("Attacked", f"{found.n_targets:,} users; {known}, {told['items']} items asked for"),
    ]
    print_paragraphs(lines)


def print_changes(found: ChangesReport, label: str) -> None:
    """Print what the attacker finds in the difference between two refits."""
    shares, told = {name: f"{measured(one)}%" for name, one in found.estimates.items()}, found.settings["settings"]
    alarms = f"something is claimed about {shares['false_alarms']} of users who added nothing"
    recovered = f"{shares['recovery']} of new ratings are recovered, {shares['recovery_without']} without"
    claimed = found.counts[0, 0].any()
    lines = [
        ("Method", label),
        ("Found", f"{shares['found']} of new ratings, {shares['found_without']} if the target had added nothing"),
        ("Advantage", f"{shares['advantage']} of new ratings, found only because the target added them"),
        ("Precision", f"{shares['precision']} of claims are new" if claimed else "nothing is claimed"),
        ("Ratings", f"{recovered}; {alarms}"),
        ("Attacked", f"{found.n_targets:,} users; {told['known']} ratings of each known, {told['new']} new"),
    ]
    print_paragraphs(lines)


PRINTED: dict[str, Callable[[Any, str], None]] = {
    "membership": print_membership,
    "attribute": print_attribute,
    "refits": print_changes,
}
"""How the attacks on a recommender are printed that have a report of their own."""


def print_related_items(found: RelatedItemsReport, precision: float) -> None:
    """Print what the lists leak at each refresh interval, and how long to wait."""
    head = ["refreshed every", "found %", "precision %", "without target %", "false alarms %"]
    rows = []
    for one in found.refreshes:
        shares = (one.found, one.precision, one.precision_without, one.false_alarms)
        cells = ("none" if share.value != share.value else measured(share) for share in shares)
        rows.append([f"{one.every:,}", *cells])
    print_table(head, rows)
    after = found.refresh_after(precision)
    long = "no interval tried is long enough"
    advice = long if after is None else f"refresh after at least {after:,} ratings"
    level = f"to keep the precision that the target's data adds below {of_100(precision)}%"
    watched = f"{found.n_targets:,} users; {found.settings['known']} items of each known"
    print_paragraphs([("Watched", watched), ("Advice", f"{advice} {level}")])


def write_risk(path: Path | None, report: LeakReport, running: Running) -> None:
    """Write the risk of each attacked user to a file that only its owner can read; say that it is personal data."""
    if path is None:
        return
    from goodfence.data.files import write_table

    if path.exists():
        path.chmod(_OWNER_ONLY)  # a file that is replaced keeps its permissions
    write_table(path, report.risk(), mode=_OWNER_ONLY)
    about = f"{report.n_targets:,} of {report.ratings.shape[0]:,} users"
    running.say(f"warning: {path} holds ids and risks of {about}. These are personal data; keep them safe")
