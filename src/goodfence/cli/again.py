"""The command that would make a result again, for its report: no folder of whoever ran it is in it."""

from __future__ import annotations

import shlex
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any


def command_line(name: str, *groups: Any, **others: Any) -> str:
    """Return the command with every option that was given; files by their names, without folders.

    Parameters
    ----------
    groups
        Groups of options, such as `Source`; a field without a default is an argument by position.
    others
        Further options. None is not given.

    Examples
    --------
    >>> from goodfence.cli.options import Source
    >>> command_line("audit", Source(file="/home/ann/my ratings.csv", scale="0,10"), seed=7, out=Path("x/audit.html"))
    "goodfence audit 'my ratings.csv' --scale 0 10 --seed 7 --out audit.html"
    """
    words = ["goodfence", name]
    for group in groups:
        for one in fields(group):
            value = getattr(group, one.name)
            if one.default is MISSING:
                words.append(shlex.quote(Path(str(value)).name))
            elif value is not None and value != one.default:
                words += _option(one.name, value)
    for key, value in others.items():
        words += [] if value is None else _option(key, value)
    return " ".join(words)


def _option(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, Path):
        return [flag, shlex.quote(value.name)]
    if isinstance(value, list | tuple):
        return [word for one in value for word in _option(name, one)]
    if name == "scale":
        return [flag, *str(value).replace(",", " ").split()]
    return [flag, shlex.quote(str(value))]
