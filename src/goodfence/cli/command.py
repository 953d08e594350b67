"""Declare commands: groups of options become flags, help has panels, errors are one sentence."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from goodfence.cli.output import failed, failing_plainly
from goodfence.errors import did_you_mean

USAGE = 2
_INFO = "option"
_UsageError: Any = typer.BadParameter.__mro__[1]  # the root of them, whichever parser is beneath
_HELP = "NoArgsIsHelpError"
_HELP_ALL = "--help-all"
_FIRST_COLUMN = 30
_LAST = "Running Output"
"""The last panels, in this order."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_MOST = 3
_WORDS_AS_DEFAULT = re.compile(r"\[default: \((.*)\)\]")


Group = TypeVar("Group")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def panel(heading: str) -> Callable[[type[Group]], type[Group]]:
    """Declare a group of options: a frozen dataclass whose fields are flags, under one heading of the help."""

    def declare(kind: Any) -> Any:
        kind.panel = heading
        return dataclass(frozen=True, kw_only=True)(kind)

    return declare


def flag(
    metavar: str | None,
    text: str,
    *names: str,
    default: Any = None,
    shown: str | None = None,
    hidden: bool = False,
) -> Any:
    """Return the field of a group that declares an option; `metavar` is None for a switch.

    `names` are the flags, if not the field's name; `shown` is the default in words, where None leaves the choice to
    the library; only `--help-all` shows a `hidden` option.
    """
    shows: Any = shown or (metavar is not None)
    option = typer.Option(*names, metavar=metavar, help=text, show_default=shows, hidden=hidden)
    return field(default=default, metadata={_INFO: option})


def argument(metavar: str, text: str, *, default: Any = MISSING) -> Any:
    """Return the field of a group that declares a positional argument, required unless it has a default."""
    return field(default=default, metadata={_INFO: typer.Argument(metavar=metavar, help=text)})


def command(summary: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command whose parameters are groups of options (dataclasses with a `panel`) and plain options.

    One group has the field `json`, which also decides how an error is printed. `register` adds the command to an
    application. `summary` is its line in the list of commands.
    """

    def declare(body: Callable[..., None]) -> Callable[..., None]:
        groups = get_type_hints(body, include_extras=True)
        groups.pop("return", None)

        def run(**given: Any) -> None:
            with failing_plainly(as_json=given["json"]):
                body(**{name: _gathered(kind, name, given) for name, kind in groups.items()})

        parameters = [one for name, kind in groups.items() for one in _spread(kind, name, body)]
        # The parser needs parameters without a default first.
        parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
        stated: Any = run
        stated.__signature__ = inspect.Signature(parameters)
        stated.summary = summary
        run.__name__, run.__doc__ = body.__name__, body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return declare


def register(app: typer.Typer, *declared: Any) -> None:
    """Add commands to an application; `audit_command` is called `audit`."""
    for one in declared:
        name = one.__name__.removesuffix("_command")
        app.command(name, cls=Command, short_help=one.summary)(one)


def command_group(name: str, summary: str, *declared: Any) -> typer.Typer:
    """Return a command that has these commands below it."""
    group = typer.Typer(
        name=name, cls=Commands, help=summary, no_args_is_help=True, rich_markup_mode=None
    )
    register(group, *declared)
    return group


def _spread(kind: Any, name: str, body: Callable[..., None]) -> Iterator[inspect.Parameter]:
    if not is_dataclass(kind):
        default = inspect.signature(body).parameters[name].default
        yield _parameter(name, default, kind, "Output")
        return
    hints = get_type_hints(kind, include_extras=True)
    group: Any = kind
    annotate: Any = Annotated
    for one in fields(kind):
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        annotated: Any = annotate[hints[one.name], one.metadata[_INFO]]
        # A field of a base class belongs to the panel of that class.
        bases: Any = group.__mro__
        declaring = next(base for base in bases if one.name in inspect.get_annotations(base))
        yield _parameter(one.name, default, annotated, declaring.panel)


def _parameter(name: str, default: Any, kind: Any, panel: str) -> inspect.Parameter:
    (info,) = kind.__metadata__
    info.rich_help_panel = info.rich_help_panel or panel
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _gathered(kind: Any, name: str, given: dict[str, Any]) -> Any:
    if not is_dataclass(kind):
        return given[name]
    group: Any = kind
    return group(**{one.name: given[one.name] for one in fields(kind)})


class Command(TyperCommand):
    """A command with panels in its help; `--help-all` shows hidden options, `--scale` takes two or three numbers."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after joining the numbers of `--scale`: the parser only knows fixed counts."""
        if _HELP_ALL in args:
            for one in self.params:
                one.hidden = False  # type: ignore[attr-defined]
            typer.echo(ctx.get_help())
            ctx.exit()
        parsed: list[str] = super().parse_args(ctx, join_scale(args))
        return parsed

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line: a required argument by its bare name."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options panel by panel, as plain text: rich would take longer than everything else."""
        hides = any(getattr(one, "hidden", False) for one in self.params)
        panels: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx)
            if record is None:
                continue
            flag = record[0].partition(" <")[0]  # the help states the type of an argument
            text = _WORDS_AS_DEFAULT.sub(r"[default: \1]", record[1])
            panel = getattr(one, "rich_help_panel", None) or "Output"
            if flag == "--help" and hides:
                flag, text = f"--help, {_HELP_ALL}", "Show these options, or all options."
            panels.setdefault(panel, []).append((flag, text))
        widest = max(len(flag) for rows in panels.values() for flag, _ in rows)
        width = min(widest, _FIRST_COLUMN)
        for panel in sorted(panels, key=_LAST.find):
            with formatter.section(panel):
                formatter.write_dl([(flag.ljust(width), text) for flag, text in panels[panel]])


class Commands(TyperGroup):
    """A group of commands that reports a mistyped command like every other error."""

    def make_context(self, info_name: Any, args: Any, *rest: Any, **extra: Any) -> Any:
        """Parse the options before the command."""
        with _told_plainly(as_json="--json" in args):
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        given = [*getattr(ctx, "_protected_args", ()), *ctx.args]
        with _told_plainly(as_json="--json" in given):
            return super().invoke(ctx)


@contextmanager
def _told_plainly(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except _UsageError as problem:
        if type(problem).__name__ == _HELP:  # no argument at all: the help is the answer
            raise
        raise failed("GF100", _sentence(problem), USAGE, as_json=as_json) from None


def _sentence(problem: Any) -> str:
    """Return what was wrong; a mistyped option with the one that was probably meant."""
    where = problem.ctx.command_path if problem.ctx is not None else "goodfence"
    option = getattr(problem, "option_name", None)
    if option is not None and hasattr(problem, "possibilities"):
        said = f"there is no option {option}"
        near = did_you_mean(option, problem.possibilities or ())
    else:
        said, near = problem.format_message().rstrip("."), ""
        said = said.replace(". Did you mean", "; did you mean")
    told = f"{said[:1].lower()}{said[1:]}{near}"
    return f"{told} See {where} --help" if told.endswith("?") else f"{told}; see {where} --help"


def join_scale(arguments: list[str]) -> list[str]:
    """Return the arguments with the numbers after `--scale` joined by commas.

    Examples
    --------
    >>> join_scale(["--scale", "0.5", "5", "0.5", "ratings.csv"])
    ['--scale=0.5,5,0.5', 'ratings.csv']
    """
    if "--scale" not in arguments:
        return arguments
    first = arguments.index("--scale") + 1
    numbers: list[str] = []
    for argument in arguments[first : first + _MOST]:
        if not _NUMBER.fullmatch(argument):
            break
        numbers.append(argument)
    if not numbers:
        return arguments
    rest = arguments[first + len(numbers) :]
    return [*arguments[: first - 1], f"--scale={','.join(numbers)}", *rest]


def parse_scale(text: str | None) -> tuple[float, ...] | None:
    """Return the numbers of "LOW,HIGH" or "LOW,HIGH,STEP".

    Examples
    --------
    >>> parse_scale("1,5")
    (1.0, 5.0)
    """
    from goodfence.errors import require

    if text is None:
        return None
    parts = text.replace(",", " ").split()
    good = len(parts) in (2, _MOST) and all(map(_NUMBER.fullmatch, parts))
    require(good, "scale", "LOW HIGH or LOW HIGH STEP, as in --scale 1 5", text)
    return tuple(float(part) for part in parts)
