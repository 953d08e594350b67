"""`goodfence audit FILE`: what a recommender on these ratings gives away, about everybody."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from goodfence.cli.attack import Extent, as_json, print_finding
from goodfence.cli.command import command, flag
from goodfence.cli.options import Attacker, Method, Running, Source, command_line
from goodfence.cli.output import HTML, JSON, check_out, is_page, out_option, print_paragraphs
from goodfence.report.wording import about

if TYPE_CHECKING:
    from goodfence.audit.audit import AuditReport
    from goodfence.data.ratings import Ratings
    from goodfence.models.configuration import Configured


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditExtent(Extent):
    """How much is audited, and what is too much."""

    panel: ClassVar[str] = "Audit"
    targets: str | None = flag(
        "N|all",
        "How many users to attack, drawn by chance, or all.",
        shown="all, or as many as a minute allows",
    )
    trials: int = flag(
        "N",
        "Also test the guarantee with N fits on each of two neighbouring data sets: 0, or 30 or more.",
        default=0,
    )


@command("What a recommender on your ratings gives away.")
def audit(
    source: Source,
    method: Method,
    attacker: Attacker,
    extent: AuditExtent,
    running: Running,
    out: Annotated[Path | None, out_option(JSON, HTML)] = None,
) -> None:
    """Measure what a recommender gives away about its users (exit code 1: above --fail-above)."""
    check_out(out, JSON, HTML)
    if is_page(out):
        running = running.repeatable()  # a page says how it is made
    chosen = method.configured(running)
    plan = attacker.attack(chosen, source.kind)
    ratings = source.read(running)
    running.say(f"attacking {chosen.label}")
    from goodfence.audit.audit import LONGEST
    from goodfence.audit.audit import audit as run

    n_targets = extent.n_targets(ratings.shape[0]) or _affordable(
        chosen, ratings, attacker, running
    )
    report = run(
        ratings,
        chosen.recommender,
        known=attacker.known,
        attack=plan,
        targets=n_targets,
        seconds=LONGEST if extent.targets is None else None,
        trials=extent.trials,
        rng=running.seed,
        threads=running.threads,
        progress=running.progress,
    )
    leakage = report.leakage
    told = {**as_json(leakage, chosen), "tested": report.tested()}

    def show() -> None:
        print_finding(leakage, chosen)
        print_paragraphs(_tests(report))

    def write(page: Path) -> None:
        line = command_line("audit", source, method, attacker, extent, seed=running.seed, out=page)
        _write_page(page, report, chosen, attacker.known, running, Path(source.file).name, line)

    running.tell(told, show, out, write)
    extent.exit_if_above(leakage, running)


def _write_page(
    page: Path,
    report: AuditReport,
    chosen: Configured,
    known: int,
    running: Running,
    data: str,
    line: str,
) -> None:
    """Survey other attackers and other recommenders around the audit, and write the page that shows them."""
    from goodfence.audit.survey import survey
    from goodfence.report.pages import AuditPage

    running.say("looking around: other attackers, and what would stop them")
    around = survey(
        report,
        chosen.recommender,
        known=known,
        rng=running.seed,
        threads=running.threads,
        progress=running.progress,
    )
    AuditPage(survey=around, label=chosen.label, data=data, command=line).save(page)


def _affordable(chosen: Configured, ratings: Ratings, attacker: Attacker, running: Running) -> int:
    """Return how many users are attacked within a minute; say so where these are not all."""
    from goodfence.audit.audit import affordable_targets

    pace = affordable_targets(
        ratings,
        chosen.recommender,
        attacker.attack(chosen, ratings.feedback),
        known=attacker.known,
        rng=running.seed,
        threads=running.threads,
    )
    n_users = ratings.shape[0]
    if pace.n_targets < n_users:
        running.say(
            f"note: all would take about {about(pace.seconds)}, so {pace.n_targets:,} of {n_users:,} users are "
            "attacked, drawn by chance; --targets all attacks everybody"
        )
    return pace.n_targets


def _tests(report: AuditReport) -> list[tuple[str, str]]:
    """Return what was tried against the guarantee, and what came of it."""
    lines = []
    if report.exhibit is not None:
        lines.append(("Evidence", str(report.exhibit)))
    if report.bound is not None:
        lines.append(("Trials", f"{report.summary} {report.bound}; {report.pair}."))
    elif report.guarantee.status == "proved":
        lines.append(("", "This audit did not test it: --trials 1000 does."))
    return lines
