"""`goodfence attack FILE`: what fake profiles recover of some users' ratings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from goodfence.attack import DEFAULT_TARGETS
from goodfence.cli.command import command, flag
from goodfence.cli.options import Attacker, Method, Running, Source
from goodfence.cli.output import (
    FOLDER,
    FOUND,
    JSON,
    check_out,
    out_option,
    print_paragraphs,
    print_table,
)
from goodfence.errors import require
from goodfence.report.wording import (
    above,
    advantage,
    assumed,
    beside,
    guarantee_cell,
    not_tried,
    people,
    recovered,
    scope,
    tried_rows,
    verdict,
    verdict_line,
    who_attacks,
    words_of,
)

if TYPE_CHECKING:
    from goodfence.attack.membership import MembershipReport
    from goodfence.attack.report import LeakReport
    from goodfence.data.ratings import Ratings
    from goodfence.models.configuration import Configured

_ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How many are attacked, and what is too much."""

    panel: ClassVar[str] = "Attacker"
    targets: str | None = flag(
        "N|all", "How many users to attack, drawn by chance, or all.", default=str(DEFAULT_TARGETS)
    )
    fail_above: float | None = flag(
        "N",
        "Exit with 1 where the advantage, or the share of users fully recovered, is above N of 100.",
        panel="Output",
    )

    def __post_init__(self) -> None:
        possible = self.fail_above is None or 0 <= self.fail_above <= 100
        require(possible, "fail_above", "between 0 and 100", self.fail_above)
        number = self.targets or _ALL
        counted = number.isascii() and number.isdecimal() and int(number) >= 1
        require(counted or number == _ALL, "targets", "a positive integer or 'all'", self.targets)

    def n_targets(self, n_users: int) -> int | None:
        """Return how many users are attacked; None if it is not said.

        Examples
        --------
        >>> Extent(targets="all").n_targets(943), Extent(targets="20").n_targets(943)
        (943, 20)
        """
        if self.targets is None:
            return None
        return n_users if self.targets == _ALL else int(self.targets)

    def exit_if_above(self, report: LeakReport, running: Running) -> None:
        """Exit with 1 where the attack gained more than `--fail-above` allows, of ratings or of users."""
        if self.fail_above is None:
            return
        names = report.above(self.fail_above / 100)
        if names:
            running.say(f"--fail-above: {above(report, self.fail_above, names)}")
            raise typer.Exit(FOUND)


@command("The attack, with every setting of the attacker.")
def attack(
    source: Source,
    method: Method,
    attacker: Attacker,
    extent: Extent,
    running: Running,
    out: Annotated[Path | None, out_option(JSON, FOLDER)] = None,
) -> None:
    """Attack a recommender with fake profiles (exit code 1: above --fail-above)."""
    check_out(out, JSON, FOLDER)
    chosen = method.configured(running)
    plan = attacker.attack(chosen, source.kind)
    ratings = source.read(running)
    running.say(f"attacking {chosen.label}")
    from goodfence.attack.attack import Subject
    from goodfence.auditing.audit import leak

    report = leak(
        Subject(ratings, chosen.recommender, threads=running.threads),
        known=attacker.known,
        attack=plan,
        targets=extent.n_targets(ratings.shape[0]) or DEFAULT_TARGETS,
        rng=running.seed,
        progress=running.progress,
    )
    from goodfence.report.pages import save_result

    told = as_json(report, chosen)
    running.tell(
        told, lambda: print_finding(report, chosen), out, lambda path: save_result(report, path)
    )
    extent.exit_if_above(report, running)


def print_finding(report: LeakReport, chosen: Configured) -> None:
    """Print the verdict and its scope, then per person, per rating, who was tried, and what is guaranteed."""
    from goodfence.auditing.audit import neighbourhood

    near = neighbourhood(chosen.recommender)
    print_paragraphs(
        [
            ("Verdict", verdict(report, chosen.label)),
            ("Scope", scope(report, near)),
            ("Assumed", assumed(report)),
        ]
    )
    typer.echo()
    print_paragraphs(
        [
            ("People", people(report)),
            (words_of(report).held.capitalize(), recovered(report)),
            ("Advantage", advantage(report)),
            ("Beside", beside(report)),
        ]
    )
    typer.echo()
    if report.tried:
        rows = [
            [f"{'>' if row.chosen else ' '} {row.what}", row.accounts, row.advantage]
            for row in tried_rows(report)
        ]
        title = f"  attackers tried on {report.n_choosing:,} others (> chosen)"
        print_table([title, "accounts", "advantage %"], rows)
        typer.echo()
    else:
        print_paragraphs([("Attacker", f"{who_attacks(report)}.")])
    stated = f"{guarantee_cell(chosen.guarantee)}. {chosen.guarantee.reason}"
    print_paragraphs([("Not tried", not_tried(report)), ("Guarantee", stated)])


def as_json(report: LeakReport, chosen: Configured) -> dict[str, Any]:
    """Return everything that a report says, without ids; the verdict with its scope first."""
    from goodfence.auditing.audit import neighbourhood

    told, near = reported(report, chosen, report.ratings), neighbourhood(chosen.recommender)
    return {
        "goodfence": told["goodfence"],
        "verdict_line": verdict_line(report, chosen.label, near),
        "neighbourhood": near,
        **told,
    }


def reported(
    found: LeakReport | MembershipReport, chosen: Configured, ratings: Ratings
) -> dict[str, Any]:
    """Return a report between what was attacked and what that guarantees."""
    from goodfence import __version__
    from goodfence.report.serialize import describe

    told = found.to_dict()
    return {
        "goodfence": __version__,
        "recommender": {"label": chosen.label, **chosen.settings},
        "attack": told.pop("settings"),
        "data": describe(ratings),
        **told,
        "guarantee": chosen.guarantee.to_dict(),
    }
