"""`goodfence membership FILE`: how well members of the data are told from others, by leaving known ratings out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from goodfence.attack import DEFAULT_FAKES, DEFAULT_KNOWN, DEFAULT_TARGETS
from goodfence.cli.attack import reported
from goodfence.cli.command import command, flag
from goodfence.cli.options import Method, Running, Source
from goodfence.cli.output import JSON, check_out, out_option, print_paragraphs
from goodfence.errors import SettingError
from goodfence.report.wording import liked, measured, of_100, words_of

if TYPE_CHECKING:
    from goodfence.attack.membership import MembershipReport, OperatingPoint
    from goodfence.models.configuration import Configured


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks about whom, with the names of `MembershipAttack`'s arguments."""

    panel: ClassVar[str] = "Attacker"
    known: int = flag(
        "N",
        "How many ratings (of events: items) of each target the attacker knows.",
        default=DEFAULT_KNOWN,
    )
    left_out: int = flag("N", "How many of these are left out, one at a time.", default=6)
    choose: str = flag("random|rarest|most_popular", "Which ratings are known.", default="random")
    fakes: int | None = flag(
        "N",
        "How many fake profiles ask each question, 1 or more.",
        shown=f"k, or {DEFAULT_FAKES} where the recommender has no k",
    )
    n: int | None = flag("N", "Of events: how many items of each list are read.", shown="50")
    targets: int = flag(
        "N",
        "How many users, drawn by chance; half of them set thresholds.",
        default=DEFAULT_TARGETS,
    )


@command("Whether users can be told to be in the data.")
def membership(
    source: Source,
    method: Method,
    asker: Asker,
    running: Running,
    out: Annotated[Path | None, out_option(JSON)] = None,
) -> None:
    """Measure membership inference: fakes with all but one of the known ratings ask for that one."""
    check_out(out, JSON)
    chosen = method.configured(running)
    from goodfence.attack.membership import MembershipAttack
    from goodfence.models.configuration import traits_of

    if asker.n is not None and source.kind == "explicit":
        raise SettingError("n must be left out for ratings: only events have lists")
    lists: dict[str, Any] = {} if asker.n is None else {"n": asker.n}
    has_k = bool(traits_of(chosen.recommender).n_neighbours)
    attack = MembershipAttack(
        known=asker.known,
        left_out=asker.left_out,
        choose=asker.choose,
        fakes=asker.fakes or (None if has_k else DEFAULT_FAKES),
        **lists,
    )
    ratings = source.read(running)
    running.say(f"attacking {chosen.label}")
    found = attack.run(
        ratings,
        chosen.recommender,
        targets=asker.targets,
        rng=running.seed,
        threads=running.threads,
        progress=running.progress,
    )
    running.tell(reported(found, chosen, ratings), lambda: _print(found, chosen), out)


def _print(found: MembershipReport, chosen: Configured) -> None:
    told, auc, words = found.settings, found.auc, words_of(found.recovery)
    least = found.recovery.ratings.liked_from
    answers = "listed items" if words.lists else "answers about hidden ratings"
    between = f"{auc.value:.3f} (95%: {auc.low:.3f}-{auc.high:.3f})"
    print_paragraphs(
        [
            ("Method", chosen.label),
            (
                "AUC",
                f"{between}. A member scores above a user who is not in the data this often; 0.5 is chance.",
            ),
            *((f"At {point.rate:.0%}", _point(point, words.hidden)) for point in found.points),
            (
                "All",
                f"Of all {answers} {of_100(found.precision_of_all.value)} of 100 are right.",
            ),
            (
                "Attacked",
                f"{found.n_targets:,} users; {told['known']} {words.held} of each known, {told['left_out']} left out",
            ),
            *([] if least is None else [("Events", liked(least))]),
            ("Guarantee", found.bound_in_words),
        ]
    )


def _point(point: OperatingPoint, hidden: str) -> str:
    members = f"{measured(point.true_positives)} of 100 members are recognised"
    others = f"{measured(point.false_positives)} of 100 others are taken for members"
    if point.precision.value != point.precision.value:  # nobody is above the threshold
        return f"{members}, {others}. Nothing would be published."
    return (
        f"{members}, {others}. Published would be {measured(point.published)} of 100 {hidden}; "
        f"{measured(point.precision)} of 100 of what is published would be right."
    )
