"""What happens when the command line is not understood: one sentence, with what was probably meant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from goodfence.cli.failures import failed
from goodfence.errors import did_you_mean

USAGE = 2
_UsageError: Any = typer.BadParameter.__mro__[1]  # the root of them, whichever parser is beneath
_HELP = "NoArgsIsHelpError"


class Commands(TyperGroup):
    """A group of commands that answers a mistyped one as every other error is answered."""

    def make_context(self, info_name: Any, args: Any, *rest: Any, **extra: Any) -> Any:
        """Parse the options that stand before the command."""
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
