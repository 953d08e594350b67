"""What commands print, as documents show it.

Every fenced block that begins with `$ goodfence` shows what that command prints on stdout; `| head -10` shows its first
ten lines. The word after the fence says how it is compared:

* `console`: exactly;
* `text`: private models draw fresh noise, so their lines are compared without numbers, and the line that
  chooses by these is not compared;
* `output`: not at all, because it takes minutes or differs between machines.

Documents show one fixed date, so that no output is stale on the next day.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

from typer.testing import CliRunner

import goodfence as gf
from goodfence.cli import app
from goodfence.cli.output import BUG

EXACT, NOISY, LOOSE = "console", "text", "output"
_PLACES = {
    str(Path(gf.__path__[0]).parent): "/opt/venv/lib/site-packages",
    sys.prefix: "/opt/venv",
    str(Path.home()): "/home/ann",
}
_CACHES = ("XDG_CACHE_HOME", "LOCALAPPDATA")
_LIKED = 8
"""The least rating of the films that `clicks.csv` says were chosen."""
_BLOCK = re.compile(
    r"^```(console|text|output)\n\$ goodfence ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?((-| to )-?\d+(\.\d+)?)?")  # or an interval
_DATE, _SHOWN_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b"), "2026-11-18"
_HEAD = re.compile(r" \| head -(\d+)$")
_CHOICE = re.compile(r"^  Choice .*\n(?: {12}.*\n)*", re.MULTILINE)


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the arguments and the output of every command that a document shows."""
    for match in _BLOCK.finditer(text):
        yield match[1], match[2], match[3]


@cache
def printed(arguments: str) -> str:
    """Return what the command prints on stdout, as a document shows it; each is run once."""
    head = _HEAD.search(arguments)
    command = arguments.removesuffix(head[0]) if head else arguments
    result = CliRunner().invoke(app, shlex.split(command.replace("\\\n", " ")))
    assert result.exit_code != BUG, f"{arguments}: {result.stderr}"
    shown = _DATE.sub(_SHOWN_DATE, result.stdout or result.stderr).lstrip("\n")
    cached = os.environ.get(_CACHES[0], "no such place")
    for place, name in {cached: "/home/ann/.cache", **_PLACES}.items():  # not the folders of one machine
        shown = shown.replace(place, name)
    return "".join(shown.splitlines(keepends=True)[: int(head[1])]) if head else shown


def agree(kind: str, shown: str, found: str) -> bool:
    """Return whether a document still shows what the command prints, as far as its kind asks."""
    if kind == EXACT:
        return shown == found
    return kind == LOOSE or _without_noise(shown) == _without_noise(found)


def _without_noise(text: str) -> list[str]:
    """Return the lines with single spaces, and those of private models without numbers."""
    lines = [" ".join(line.split()) for line in _CHOICE.sub("", text).splitlines()]
    return [_NUMBER.sub("#", line) if line.lower().startswith("private") else line for line in lines]


def written_again(text: str, kinds: tuple[str, ...]) -> str:
    """Return a document with the current output of its commands; what still agrees stays."""

    def again(match: re.Match[str]) -> str:
        if match[1] not in kinds:
            return match[0]
        found = printed(match[2])
        # Some data sets are not bundled: without them the page stays as it is.
        missing = match[1] == LOOSE and found.startswith("error ")
        if missing or (match[1] != LOOSE and agree(match[1], match[3], found)):
            return match[0]
        return f"```{match[1]}\n$ goodfence {match[2]}\n{found}```"

    return _BLOCK.sub(again, text)


@contextmanager
def reader_folder() -> Iterator[Path]:
    """Work in a folder with the files that the documented commands read, and no other data."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name, mock.patch.dict(os.environ):
        os.environ.pop("GOODFENCE_DATA", None)
        os.environ.update(dict.fromkeys(_CACHES, str(Path(name) / "cache")))
        prepare(Path(name))
        printed.cache_clear()  # what an earlier folder held is not here
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def prepare(folder: Path) -> None:
    """Write the files that the documented commands read."""
    films = gf.load("movietweetings")
    csr = films.csr.tocoo()
    lines = ["userId,movieId,rating"]
    cells = zip(csr.row.tolist(), csr.col.tolist(), csr.data.tolist(), strict=True)
    lines += [f"{films.users[row]},{films.items[column]},{value:g}" for row, column, value in cells]
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")
    likes = films.likes(_LIKED)
    csr = likes.csr.tocoo()
    events = zip(likes.users[csr.row].tolist(), likes.items[csr.col].tolist(), strict=True)
    clicks = ["customer,product", *(f"{user},{item}" for user, item in events)]
    (folder / "clicks.csv").write_text("\n".join(clicks) + "\n")
