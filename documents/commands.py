"""What commands print, as documents show it.

Every fenced block that begins with `$ goodfence` shows what that command prints on stdout. The word after the fence
says how it is compared:

* `console`: exactly, but for the date of the run;
* `text`: fresh noise enters it, so that the lines of the private models are compared without their numbers, and what is
  chosen by these is not compared;
* `output`: not at all. It takes minutes, or is another one on every machine.
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
    r"^```(console|text|output)\n\$ goodfence ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?((-| to )-?\d+(\.\d+)?)?")  # or an interval
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_CHOICE = re.compile(r"^  Choice .*\n(?: {12}.*\n)*", re.MULTILINE)


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the arguments and the output of every command that a document shows."""
    for match in _BLOCK.finditer(text):
        yield match[1], match[2], match[3]


@cache
def printed(arguments: str) -> str:
    """Return what the command prints on stdout, as a document shows it; each is run once."""
    result = CliRunner().invoke(app, shlex.split(arguments.replace("\\\n", " ")))
    assert result.exit_code != BUG, f"{arguments}: {result.stderr}"
    shown = result.stdout if result.stdout else result.stderr
    cache = os.environ.get(_CACHES[0], "no such place")
    for place, name in {
        cache: "/home/ann/.cache",
        **_PLACES,
    }.items():  # a document is no place for the folders of one machine
        shown = shown.replace(place, name)
    return shown.lstrip("\n")


def agree(kind: str, shown: str, found: str) -> bool:
    """Return whether a document still shows what the command prints, as far as its kind asks."""
    shown, found = (_DATE.sub("DATE", text) for text in (shown, found))
    if kind == EXACT:
        return shown == found
    return kind == LOOSE or _without_noise(shown) == _without_noise(found)


def _without_noise(text: str) -> list[str]:
    """Return the lines with single spaces (columns move with the numbers), those of private models without numbers."""
    lines = [" ".join(line.split()) for line in _CHOICE.sub("", text).splitlines()]
    return [
        _NUMBER.sub("#", line) if line.lower().startswith("private") else line for line in lines
    ]


def written_again(text: str, kinds: tuple[str, ...]) -> str:
    """Return a document with the output of its commands as it is now; what still agrees stays as it is."""

    def again(match: re.Match[str]) -> str:
        if match[1] not in kinds:
            return match[0]
        found = printed(match[2])
        # Where the data are not here, which do not come with goodfence, the page stays as it is.
        missing = match[1] == LOOSE and found.startswith("error ")
        if missing or (match[1] != LOOSE and agree(match[1], match[3], found)):
            return match[0]
        return f"```{match[1]}\n$ goodfence {match[2]}\n{found}```"

    return _BLOCK.sub(again, text)


@contextmanager
def reader_folder() -> Iterator[Path]:
    """Be in a folder with the files that the documented commands read, as a reader without other data would."""
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
    """Put the files into `folder` that the documented commands read."""
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
