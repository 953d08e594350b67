"""`--scale LOW HIGH [STEP]`: an option of two or three numbers."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_MOST = 3


class CommandWithScale(TyperCommand):
    """A command whose `--scale` takes two or three numbers.

    The parser beneath knows fixed counts only.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with the numbers after `--scale` joined to one."""
        parsed: list[str] = super().parse_args(ctx, join_scale(args))
        return parsed


def join_scale(arguments: list[str]) -> list[str]:
    """Return the arguments with the numbers after `--scale` joined by commas.

    Examples
    --------
    >>> join_scale(["--scale", "0.5", "5", "0.5", "ratings.csv"])
    ['--scale=0.5,5,0.5', 'ratings.csv']
    """
    if "--scale" not in arguments:
        return arguments
    place = arguments.index("--scale") + 1
    numbers: list[str] = []
    for argument in arguments[place : place + _MOST]:
        if not _NUMBER.fullmatch(argument):
            break
        numbers.append(argument)
    if not numbers:
        return arguments
    rest = arguments[place + len(numbers) :]
    return [*arguments[: place - 1], f"--scale={','.join(numbers)}", *rest]


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
