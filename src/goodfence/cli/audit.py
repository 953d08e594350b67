"""`goodfence audit FILE`: how much user data a recommender leaks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.attack import DEFAULT_KNOWN, DEFAULT_TARGETS
from goodfence.cli.attackers import AttackLine, print_membership, print_related_items
from goodfence.cli.command import command, flag, panel
from goodfence.cli.options import Method, Running, Source, command_line
from goodfence.cli.output import (
    FOLDER,
    FOUND,
    HTML,
    JSON,
    check_out,
    is_page,
    out_option,
    print_paragraphs,
    print_table,
)
from goodfence.errors import ColumnProblem, SettingError, require
from goodfence.report import wording

if TYPE_CHECKING:
    from goodfence.attack.attack import Attack
    from goodfence.attack.report import LeakReport
    from goodfence.auditing.audit import AuditReport
    from goodfence.data.ratings import Feedback, Ratings
    from goodfence.models.method import Configured
    from goodfence.report.pages import AuditPage

_ALL = "all"


@panel("Attack")
class Attacker:
    """Who attacks, how many users, and which leak is too much."""

    attack: str | None = flag("'NAME KEY=VALUE ...'", "As in 'knn fakes=50'; see `explain attack`.", shown="strongest")
    known: int | None = flag("N", "Known ratings of each target.", shown="8")
    targets: str | None = flag("N|all", "Users to attack.", shown="all, 30 if each needs fits")
    trials: int = flag("N", "Also test the guarantee with N fits, 30 or more.", default=0)
    fail_above: float | None = flag("PERCENT", "Exit with 1 if the leak is larger.")

    def __post_init__(self) -> None:
        possible = self.fail_above is None or 0 <= self.fail_above <= 100
        require(possible, "fail_above", "between 0 and 100", self.fail_above)
        number = self.targets or _ALL
        counted = number.isascii() and number.isdecimal() and int(number) >= 1
        require(counted or number == _ALL, "targets", "a positive integer or 'all'", self.targets)

    def n_targets(self, n_users: int, default: int | None = None) -> Any:
        """Return how many users to attack."""
        if self.targets is None:
            return default
        return n_users if self.targets == _ALL else int(self.targets)

    def exit_if_above(self, report: LeakReport, running: Running) -> None:
        """Exit with 1 if the attacker gained more ratings or users than `--fail-above` allows."""
        names = [] if self.fail_above is None else report.above(self.fail_above / 100)
        if self.fail_above is not None and names:
            running.say(f"--fail-above: {wording.above(report, self.fail_above, names)}")
            raise typer.Exit(FOUND)


@panel("Recommender")
class Audited(Method):
    """The recommender: a line of text, a saved model or a service."""

    model: Path | None = flag("FILE", "A saved model: its settings are audited.")
    url: str | None = flag("ADDRESS", "A running service with /fit and /predict or /recommend.")
    mapping: Path | None = flag("FILE", "TOML file that maps the API of --url.", hidden=True)

    def opened(self, running: Running, feedback: Feedback) -> Configured:
        """Return the recommender that is audited."""
        given = [name for name in ("model", "url") if getattr(self, name) is not None]
        if self.mapping is not None and self.url is None:
            raise SettingError("url is required with mapping: the address of the service")
        if not given:
            return self.configured(running)
        if len(given) > 1 or self.method != Method().method:
            raise SettingError(f"{given[0]} must stand alone: give one of method, model and url")
        from goodfence.adapters.black_box import BlackBox
        from goodfence.adapters.deployed import Deployed
        from goodfence.adapters.http import Endpoint
        from goodfence.auditing.frontier import name_of
        from goodfence.models.method import Configured
        from goodfence.models.persistence import load_model
        from goodfence.models.recommender import guarantee_of

        found: Any = None
        if self.model is not None:
            found = load_model(self.model)
            label = name_of(found)
        elif self.mapping is not None:
            found = Deployed(str(self.url), self.mapping)
            label = f"the service at {found.endpoint.shown}"
        else:
            endpoint = Endpoint(url=str(self.url))
            found = BlackBox(endpoint, asks="users" if feedback == "explicit" else "lists")
            label = f"the service at {endpoint.shown}"
        settings = {"mechanism": label}
        return Configured(recommender=found, guarantee=guarantee_of(found), label=label, settings=settings)


@command("Measure how much user data a recommender leaks.")
def audit_command(
    source: Source,
    audited: Audited,
    attacker: Attacker,
    running: Running,
    out: Annotated[Path | None, out_option(HTML, JSON, FOLDER)] = None,
) -> None:
    """Measure how much user data a recommender leaks to fake accounts."""
    line = None
    if attacker.attack is not None:
        line = AttackLine.parse(attacker.attack, attacker.known, source.kind)
    if line is not None and line.apart:
        check_out(out, JSON)
        running.tell(*_audit_apart(source, audited, attacker, line, running), out)
        return
    check_out(out, JSON, HTML, FOLDER)
    if is_page(out):
        running = running.repeatable()  # the page shows the command that repeats it
    chosen = audited.opened(running, source.kind)
    attack = None if line is None else line.made(chosen.recommender, source.kind)
    ratings = source.load(running)
    running.say(f"attacking {chosen.label}")
    report = _audited(ratings, chosen, attack, attacker, running)

    def page() -> AuditPage:
        from goodfence.auditing.survey import survey
        from goodfence.report.pages import AuditPage

        running.say("comparing other attackers and other recommenders")
        shown = command_line("audit", source, audited, attacker, seed=running.seed, out=out)
        named = {"data": Path(source.file).name, "label": chosen.label, "command": shown}
        return AuditPage(survey=survey(report, progress=running.progress), **named)

    told = {**finding_as_json(report.leakage, chosen), "tested": report.tested()}
    running.tell(told, lambda: _print_finding(report, chosen), out, page, report.leakage)
    getattr(chosen.recommender, "close", lambda: None)()  # accounts that the audit opened
    attacker.exit_if_above(report.leakage, running)


def _audited(
    ratings: Ratings, chosen: Configured, attack: Attack | None, attacker: Attacker, running: Running
) -> AuditReport:
    """Audit as many users as are asked for, or as the size of the data allows."""
    from goodfence.attack.attack import Subject
    from goodfence.auditing.audit import affordable_targets, audit

    n_users = ratings.shape[0]
    n_targets = attacker.n_targets(n_users)
    if n_targets is None:
        n_targets = affordable_targets(Subject(ratings, chosen.recommender))
        if n_targets < n_users:
            some = f"{n_targets:,} of {n_users:,} users, drawn at random"
            running.say(f"note: this audit attacks {some} (--targets all attacks everybody)")
    known = DEFAULT_KNOWN if attacker.known is None else attacker.known
    how: dict[str, Any] = {"known": known, "attack": attack, "trials": attacker.trials}
    return audit(ratings, chosen.recommender, targets=n_targets, **how, **running.how)


def _print_finding(found: AuditReport, chosen: Configured) -> None:
    """Print the verdict and its scope, then users, ratings, attackers, guarantee and tests of it."""
    from goodfence.auditing.audit import neighbourhood

    report = found.leakage
    lines = [
        ("Verdict", wording.verdict(report, chosen.label)),
        ("Scope", wording.scope(report, neighbourhood(chosen.recommender))),
        ("Assumed", wording.assumed(report)),
        ("", ""),
        ("People", wording.people(report)),
        (wording.words_of(report).held.capitalize(), wording.recovered(report)),
        ("Advantage", wording.advantage(report)),
        ("Beside", wording.beside(report)),
        ("", ""),
    ]
    print_paragraphs(lines)
    if report.tried:
        rows = [
            [f"{'>' if row.chosen else ' '} {row.what}", row.accounts, row.advantage]
            for row in wording.tried_rows(report)
        ]
        title = f"  attackers tried on {report.n_choosing:,} others (> chosen)"
        print_table([title, "accounts", "advantage %"], rows)
        typer.echo()
    else:
        print_paragraphs([("Attacker", f"{wording.who_attacks(report)}.")])
    stated = f"{wording.guarantee_cell(chosen.guarantee)}. {chosen.guarantee.reason}"
    lines = [("Not tried", wording.not_tried(report)), ("Guarantee", stated)]
    if found.exhibit is not None:
        lines.append(("Evidence", str(found.exhibit)))
    if found.bound is not None:
        lines.append(("Trials", f"{found.summary} {found.bound}; {found.pair}."))
    elif found.guarantee.status == "proved":
        lines.append(("", "This audit did not test it: --trials 1000 does."))
    print_paragraphs(lines)


def finding_as_json(report: LeakReport, chosen: Configured) -> dict[str, Any]:
    """Return the whole report without ids, the verdict with its scope first."""
    from goodfence.auditing.audit import neighbourhood

    near = neighbourhood(chosen.recommender)
    line = wording.verdict_line(report, chosen.label, near)
    return _reported(report, chosen, report.ratings, verdict_line=line, neighbourhood=near)


def _reported(found: Any, chosen: Configured, ratings: Ratings, **first: str) -> dict[str, Any]:
    """Return a report between the attacked recommender and its guarantee, `first` before everything else."""
    from goodfence import __version__
    from goodfence.report.serialize import describe

    told = found.to_dict()
    return {
        "goodfence": __version__,
        **first,
        "recommender": {"label": chosen.label, **chosen.settings},
        "attack": told.pop("settings"),
        "data": describe(ratings),
        **told,
        "guarantee": chosen.guarantee.to_dict(),
    }


def _audit_apart(
    source: Source, audited: Audited, attacker: Attacker, line: AttackLine, running: Running
) -> tuple[dict[str, Any], Callable[[], None]]:
    """Infer membership, or watch lists of related items; return the result, and how to print it."""
    for name in ("fail_above", "trials"):
        if getattr(attacker, name):
            raise SettingError(f"{name} must be left out with --attack {line.name}")
    if line.name == "membership":
        chosen = audited.opened(running, source.kind)
        attack = line.made(chosen.recommender, source.kind)
        ratings = source.load(running)
        running.say(f"attacking {chosen.label}")
        targets = attacker.n_targets(ratings.shape[0], DEFAULT_TARGETS)
        how = {"threads": running.threads, **running.how}
        found = attack.run(ratings, chosen.recommender, targets=targets, **how)
        told = _reported(found, chosen, ratings)
        return told, lambda: print_membership(found, chosen.label)
    if audited != Audited():
        raise SettingError("method must be left out with --attack related-items: it replays a log")
    attack = line.made(None, source.kind)
    ratings = source.load(running)
    if ratings.times is None:
        raise ColumnProblem("related-items needs times; name their column with --read time=COLUMN")
    from goodfence import __version__
    from goodfence.attack.related_items import DEFAULT_TARGETS as WATCHED

    targets = attacker.n_targets(ratings.shape[0], WATCHED)
    found = attack.run(ratings, targets=targets, rng=running.seed, progress=running.progress)
    told = found.to_dict(line.precision)
    stated = {"goodfence": __version__, "attack": told.pop("settings"), **told}
    return stated, lambda: print_related_items(found, line.precision)
