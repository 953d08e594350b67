"""`goodfence audit FILE`: what a recommender on these ratings gives away, about everybody."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from goodfence.cli.attack import Extent, as_json, print_finding
from goodfence.cli.command import command, flag
from goodfence.cli.options import Attacker, Method, Running, Source, command_line
from goodfence.cli.output import HTML, JSON, check_out, is_page, out_option, print_paragraphs
from goodfence.errors import SettingError
from goodfence.report.wording import duration

if TYPE_CHECKING:
    from goodfence.auditing.audit import AuditReport
    from goodfence.data.ratings import Feedback, Ratings
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What is really deployed, instead of a recommender by its name."""

    panel: ClassVar[str] = "What is deployed"
    model: Path | None = flag("FILE", "A model that goodfence saved: its settings are audited.")
    url: str | None = flag(
        "ADDRESS",
        "A recommender behind an address, by goodfence's protocol of /fit and /predict (of events /recommend), or as "
        "--mapping says.",
    )
    mapping: Path | None = flag(
        "FILE",
        "TOML that says how the service at --url opens accounts, and where a list is in its answer; of events.",
    )

    def configured(self, method: Method, running: Running, feedback: Feedback) -> Configured:
        """Return what is audited: what is deployed, or the method where nothing is said of that."""
        given = [name for name in ("model", "url") if getattr(self, name) is not None]
        if self.mapping is not None and self.url is None:
            raise SettingError("url must be given with mapping: the address of the service")
        if not given:
            return method.configured(running)
        if len(given) > 1 or method != Method():
            raise SettingError(
                f"{given[0]} must stand alone: what is deployed has its own settings, no other recommender is named"
            )
        from goodfence.models.configuration import Configured
        from goodfence.models.recommender import guarantee_of

        recommender, label = self._opened(feedback)
        settings = {"mechanism": label}
        guarantee = guarantee_of(recommender)
        return Configured(
            label=label, settings=settings, recommender=recommender, guarantee=guarantee
        )

    def _opened(self, feedback: Feedback) -> tuple[Any, str]:
        """Return the recommender, and what it is called."""
        from goodfence.models.configuration import traits_of

        if self.model is not None:
            from goodfence.models.persistence import load_model

            loaded = load_model(self.model)
            traits = traits_of(loaded)
            return loaded, f"{traits.family} {traits.settings}".strip()
        if self.mapping is not None:
            from goodfence.adapters.deployed import Deployed

            deployed = Deployed(str(self.url), self.mapping)
            return deployed, f"the service at {deployed.endpoint.shown}"
        from goodfence.adapters.black_box import BlackBox
        from goodfence.adapters.http import Endpoint

        endpoint = Endpoint(url=str(self.url))
        asks: Any = "users" if feedback == "explicit" else "lists"
        return BlackBox(endpoint, asks=asks), f"the service at {endpoint.shown}"


@command("What a recommender on your ratings gives away.")
def audit(
    source: Source,
    method: Method,
    served: Served,
    attacker: Attacker,
    extent: AuditExtent,
    running: Running,
    out: Annotated[Path | None, out_option(JSON, HTML)] = None,
) -> None:
    """Measure what a recommender gives away about its users (exit code 1: above --fail-above)."""
    check_out(out, JSON, HTML)
    if is_page(out):
        running = running.repeatable()  # a page says how it is made
    chosen = served.configured(method, running, source.kind)
    plan = attacker.attack(chosen, source.kind)
    ratings = source.read(running)
    running.say(f"attacking {chosen.label}")
    from goodfence.auditing.audit import LONGEST
    from goodfence.auditing.audit import audit as run

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
        line = command_line(
            "audit", source, method, served, attacker, extent, seed=running.seed, out=page
        )
        _write_page(page, report, chosen, attacker.known, running, Path(source.file).name, line)

    running.tell(told, show, out, write)
    getattr(chosen.recommender, "close", lambda: None)()  # accounts that were opened
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
    from goodfence.auditing.survey import survey
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
    from goodfence.auditing.audit import affordable_targets

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
            f"note: all would take about {duration(pace.seconds)}, so {pace.n_targets:,} of {n_users:,} users are "
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
