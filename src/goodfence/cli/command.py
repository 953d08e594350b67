"""Declare commands: groups of options become flags, and help has panels."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from itertools import takewhile
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from goodfence.cli.output import failing_plainly
from goodfence.errors import require

_INFO = "option"
_HELP_ALL = "--help-all"
_FIRST_COLUMN = 30
_LAST = "Running Output"  # the last panels, in this order
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_MOST = 3
_WORDS_AS_DEFAULT = re.compile(r"\[default: \((.*)\)\]")


Group = TypeVar("Group")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def panel(heading: str) -> Callable[[type[Group]], type[Group]]:
    """Declare a group of options: a frozen dataclass whose fields are flags, under one heading of the help."""

    def declare(kind: Any) -> Any:
        for name in inspect.get_annotations(kind):
            kind.__dict__[name].metadata[_INFO].rich_help_panel = heading
        return dataclass(frozen=True, kw_only=True)(kind)

    return declare


def flag(
    metavar: str | None, text: str, *names: str, default: Any = None, shown: str | None = None, hidden: bool = False
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


def command(summary: str, *, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command whose parameters are groups of options (see `panel`) and plain options.

    `add_commands` adds it to an application, by its `name` or the function's; `summary` is its line in the list.
    """

    def declare(body: Callable[..., None]) -> Callable[..., None]:
        groups = get_type_hints(body, include_extras=True)
        groups.pop("return", None)

        def run(**given: Any) -> None:
            made = {}
            for name, kind in groups.items():
                own = [one.name for one in fields(kind)] if is_dataclass(kind) else []
                made[name] = kind(**{key: given[key] for key in own}) if own else given[name]
            body(**made)

        parameters = [one for name, kind in groups.items() for one in _spread(kind, name, body)]
        # The parser needs parameters without a default first.
        parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
        stated: Any = run
        stated.__signature__ = inspect.Signature(parameters)
        stated.summary = summary
        run.__name__, run.__doc__ = name or body.__name__, body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return declare


def _spread(kind: Any, name: str, body: Callable[..., None]) -> Iterator[inspect.Parameter]:
    """Yield the parameter of an option, or one for each option of a group."""
    only = inspect.Parameter.KEYWORD_ONLY
    if not is_dataclass(kind):
        default = inspect.signature(body).parameters[name].default
        yield inspect.Parameter(name, only, default=default, annotation=kind)
        return
    hints = get_type_hints(kind, include_extras=True)
    annotate: Any = Annotated
    for one in fields(kind):
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        annotation = annotate[hints[one.name], one.metadata[_INFO]]
        yield inspect.Parameter(one.name, only, default=default, annotation=annotation)


def add_commands(app: typer.Typer, *declared: Any) -> None:
    """Add commands to an application; `audit_command` is called `audit`."""
    for one in declared:
        name = one.__name__.removesuffix("_command")
        app.command(name, cls=Command, short_help=one.summary)(one)


def command_group(name: str, summary: str, *declared: Any) -> typer.Typer:
    """Return a command that has these commands below it."""
    group = typer.Typer(name=name, cls=Commands, help=summary, no_args_is_help=True, rich_markup_mode=None)
    add_commands(group, *declared)
    return group


class Command(TyperCommand):
    """A command with panels in its help; `--help-all` shows hidden options, `--scale` takes two or three numbers."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after joining the numbers of `--scale`: the parser only knows fixed counts."""
        if _HELP_ALL in args:
            for one in self.params:
                one.hidden = False  # type: ignore[attr-defined]
            typer.echo(ctx.get_help())
            ctx.exit()
        reads = any("--read" in one.opts for one in self.params)
        return super().parse_args(ctx, join_scale(spell_out_where(args) if reads else args))

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
        for panel in sorted(panels, key=_LAST.find):
            with formatter.section(panel):
                rows = [(flag.ljust(_FIRST_COLUMN), text) for flag, text in panels[panel]]
                formatter.write_dl(rows)


class Commands(TyperGroup):
    """A group of commands that reports a mistyped command like every other error."""

    def make_context(self, info_name: Any, args: Any, *rest: Any, **extra: Any) -> Any:
        """Parse the options before the command."""
        with failing_plainly(as_json="--json" in args):
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        given = [*getattr(ctx, "_protected_args", ()), *ctx.args]
        with failing_plainly(as_json="--json" in given):
            return super().invoke(ctx)


def spell_out_where(arguments: list[str]) -> list[str]:
    """Return the arguments with `--where COLUMN=VALUE` written as `--read where=COLUMN=VALUE`."""
    found, rest = [], iter(arguments)
    for one in rest:
        name, equals, value = one.partition("=")
        if name == "--where" and (equals or (value := next(rest, ""))):
            one = f"--read={shlex.quote(f'where={value}')}"
        found.append(one)
    return found


def join_scale(arguments: list[str]) -> list[str]:
    """Return the arguments with the numbers after `--scale` joined by commas."""
    if "--scale" not in arguments:
        return arguments
    first = arguments.index("--scale") + 1
    numbers = list(takewhile(_NUMBER.fullmatch, arguments[first : first + _MOST]))
    if not numbers:
        return arguments
    rest = arguments[first + len(numbers) :]
    return [*arguments[: first - 1], f"--scale={','.join(numbers)}", *rest]


def parse_scale(text: str | None) -> tuple[float, ...] | None:
    """Return the numbers of "LOW,HIGH" or "LOW,HIGH,STEP"."""
    if text is None:
        return None
    parts = text.replace(",", " ").split()
    good = len(parts) in (2, _MOST) and all(map(_NUMBER.fullmatch, parts))
    require(good, "scale", "LOW HIGH or LOW HIGH STEP, as in --scale 1 5", text)
    return tuple(float(part) for part in parts)
