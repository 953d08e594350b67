"""`goodfence audit FILE`: how much user data a recommender leaks."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.attack import DEFAULT_KNOWN, DEFAULT_TARGETS, DEFAULT_TARGETS_REFITTED
from goodfence.cli.attackers import PRINTED, AttackLine, print_related_items, write_risk
from goodfence.cli.command import command, flag, panel
from goodfence.cli.options import Method, Running, Source, command_line
from goodfence.cli.output import (
    FOLDER,
    FOUND,
    HTML,
    JSON,
    PARQUET,
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
    targets: str | None = flag("N|all|0.03", "Users to attack, or half the width of the interval.", shown="0.03")
    trials: int = flag("N", "Also test the guarantee with N fits, 30 or more.", default=0)
    fail_above: str | None = flag("PERCENT", "Exit with 1 if the leak is larger or unclear ('10 undecided=pass').")
    max_time: float | None = flag("SECONDS", "Stop after so long; the result then depends on the machine.", hidden=True)
    risk: Path | None = flag("FILE.parquet", "Also write the risk of each user: personal data.")

    def __post_init__(self) -> None:
        self._limit()
        check_out(self.risk, PARQUET, name="risk")
        number = self.targets or _ALL
        counted = number.isascii() and number.isdecimal() and int(number) >= 1
        valid = counted or number == _ALL or self.precision is not None
        require(valid, "targets", "a positive integer, 'all', or a half-width such as 0.03", self.targets)
        require(self.max_time is None or self.max_time > 0, "max_time", "above 0", self.max_time)

    @property
    def precision(self) -> float | None:
        """Half of the width of the interval, where `--targets` asks for that."""
        try:
            asked = float(self.targets or "")
        except ValueError:
            return None
        return asked if 0.001 <= asked < 1 else None

    def _limit(self) -> tuple[float | None, bool]:
        """Return the largest acceptable leak in percent, and whether an undecided audit passes."""
        if self.fail_above is None:
            return None, True
        number, _, rest = self.fail_above.partition(" ")
        try:
            limit = float(number)
        except ValueError:
            limit = -1.0
        rule = "a number from 0 to 100, or such as '10 undecided=pass'"
        require(0 <= limit <= 100 and rest in ("", "undecided=pass"), "fail_above", rule, self.fail_above)
        return limit, bool(rest)

    def n_targets(self, n_users: int, default: int | None = None) -> Any:
        """Return how many users to attack."""
        if self.targets is None or self.precision is not None:
            return default
        return n_users if self.targets == _ALL else int(self.targets)

    def exit_if_above(self, report: LeakReport, running: Running) -> None:
        """Exit with 1 if the attacker gained more than `--fail-above` allows, or if that is unclear."""
        limit, passes = self._limit()
        if limit is None:
            return
        names = report.above(limit / 100)
        if names:
            running.say(f"--fail-above: {wording.above(report, limit, names)}")
        elif not passes and report.finding.verdict == "cannot tell":
            running.say(f"--fail-above: cannot tell, because {report.finding.reason}")
        else:
            return
        raise typer.Exit(FOUND)


@panel("Recommender")
class Audited(Method):
    """The recommender: a line of text, a saved model or a service."""

    model: Path | None = flag("FILE", "A saved model: its settings are audited.")
    url: str | None = flag("ADDRESS", "A running service with /fit and /predict or /recommend.")
    mapping: Path | None = flag("FILE|NAME", "TOML file that maps the API of --url, or goodfence, gorse.", hidden=True)
    header: list[str] | None = flag("NAME=ENV", "HTTP header of --url; its value is in variable ENV.", hidden=True)

    def opened(self, running: Running, feedback: Feedback) -> Configured:
        """Return the recommender that is audited."""
        given = [name for name in ("model", "url") if getattr(self, name) is not None]
        for name in ("mapping", "header"):
            if getattr(self, name) and self.url is None:
                raise SettingError(f"url is required with {name}: the address of the service")
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
        else:
            endpoint = Endpoint(url=str(self.url), headers=self.headers())
            if self.mapping is not None:
                found = Deployed(endpoint, self.mapping, progress=running.progress)
            else:
                found = BlackBox(endpoint, asks="users" if feedback == "explicit" else "lists")
            label = f"the service at {endpoint.shown}"
        settings = {"mechanism": label}
        return Configured(recommender=found, guarantee=guarantee_of(found), label=label, settings=settings)

    def headers(self) -> dict[str, str]:
        """Return the headers, with their values from the environment: a command line is no place for a secret."""
        pairs = [one.partition("=") for one in self.header or ()]
        # An error repeats nothing: somebody may have typed the secret itself.
        if any(not (name and variable) for name, _, variable in pairs):
            raise SettingError("header must be NAME=ENV, where the environment variable ENV holds the value")
        if not all(os.environ.get(variable) for _, _, variable in pairs):
            raise SettingError("header names an environment variable that is not set; set it to the header's value")
        return {name: os.environ[variable] for name, _, variable in pairs}


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
    with _closing(chosen.recommender):
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
        write_risk(attacker.risk, report.leakage, running)
    attacker.exit_if_above(report.leakage, running)


def _closing(recommender: Any) -> AbstractContextManager[Any]:
    """Return what closes the accounts that an audit opened, after an error or an interrupt too."""
    return recommender if isinstance(recommender, AbstractContextManager) else nullcontext()


def _audited(
    ratings: Ratings, chosen: Configured, attack: Attack | None, attacker: Attacker, running: Running
) -> AuditReport:
    """Audit as many users as are asked for, or as the precision calls for."""
    from goodfence.attack.strongest import PRECISION
    from goodfence.auditing.audit import audit

    known = DEFAULT_KNOWN if attacker.known is None else attacker.known
    how: dict[str, Any] = {"known": known, "attack": attack, "trials": attacker.trials}
    how |= {"precision": attacker.precision or PRECISION, "max_seconds": attacker.max_time}
    targets = attacker.n_targets(ratings.shape[0])
    return audit(ratings, chosen.recommender, targets=targets, **how, **running.how)


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
        title = f"  attackers tried on {report.n_choosing:,} users (> strongest)"
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
    """Run an attack that has a report of its own; return the result, and how to print it."""
    for name in ("fail_above", "trials", "risk"):
        if getattr(attacker, name):
            raise SettingError(f"{name} must be left out with --attack {line.name}")
    if line.name in PRINTED:
        chosen = audited.opened(running, source.kind)
        attack = line.made(chosen.recommender, source.kind)
        ratings = source.load(running)
        running.say(f"attacking {chosen.label}")
        usual = DEFAULT_TARGETS_REFITTED if line.name == "refits" else DEFAULT_TARGETS
        targets = attacker.n_targets(ratings.shape[0], usual)
        how = {"threads": running.threads, **running.how}
        with _closing(chosen.recommender):
            found = attack.run(ratings, chosen.recommender, targets=targets, **how)
        told = _reported(found, chosen, ratings)
        return told, lambda: PRINTED[line.name](found, chosen.label)
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
