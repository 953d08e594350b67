"""The documents of the command line, made from what the commands print.

`python -m tests.cli.documented` writes docs/errors.md and what is compared of docs/cli.md again, which takes seconds;
with `--all` also what is not compared, which takes a minute or two. In docs/cli.md every
fenced block that begins with `$ goodfence` shows what that command prints on stdout. Blocks marked console are
compared; blocks marked text hold what differs from run to run or from machine to machine.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import goodfence as gf
from goodfence.cli import app
from goodfence.cli.explain import explanations
from goodfence.cli.failures import BUG

DOCS = Path(__file__).parents[2] / "docs"
COMPARED, SHOWN = "console", "text"
_PLACES = {
    str(Path(gf.__path__[0]).parent): "/opt/venv/lib/site-packages",
    sys.prefix: "/opt/venv",
    str(Path.home()): "/home/ann",
}
_ABOUT_ERRORS = """\
Every error has a code; `goodfence explain GF203` prints the same as this page. In Python each is a class of
`goodfence.errors`, and its `code` says which. No message holds a rating or somebody's id."""
_BLOCK = re.compile(r"^```(console|text)\n\$ goodfence (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the arguments and the output of every command that a document shows."""
    for match in _BLOCK.finditer(text):
        yield match[1], match[2], match[3]


def printed(arguments: str) -> str:
    """Return what the command prints on stdout, as a document shows it."""
    result = CliRunner().invoke(app, shlex.split(arguments))
    assert result.exit_code != BUG, f"{arguments}: {result.stderr}"
    shown = result.stdout if result.stdout else result.stderr
    for place, name in _PLACES.items():  # a document is no place for the folders of one machine
        shown = shown.replace(place, name)
    return shown.lstrip("\n")


def prepare(folder: Path) -> None:
    """Put the files into `folder` that the documented commands read."""
    films = gf.load("movietweetings")
    csr = films.csr.tocoo()
    lines = ["userId,movieId,rating"]
    cells = zip(csr.row.tolist(), csr.col.tolist(), csr.data.tolist(), strict=True)
    lines += [f"{films.users[row]},{films.items[column]},{value:g}" for row, column, value in cells]
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")


def error_index(errors: dict[str, Any]) -> str:
    """Return the text of docs/errors.md."""
    parts = ["# Errors", _ABOUT_ERRORS]
    for code, text in errors.items():
        advice = "\n".join(f"* {one}" for one in text["do"])
        parts.append(f"## {code}: {text['title']}\n\n{text['means']}\n\n{advice}")
        parts.append(f"Exit code {text['exit']}.")
    return "\n\n".join(parts) + "\n"


def main(kinds: tuple[str, ...]) -> None:
    """Write both documents again, of the second these kinds of blocks."""
    (DOCS / "errors.md").write_text(error_index(explanations("errors")))
    document = DOCS / "cli.md"
    text = document.read_text()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        os.chdir(folder)

        def again(match: re.Match[str]) -> str:
            if match[1] not in kinds:
                return match[0]
            return f"```{match[1]}\n$ goodfence {match[2]}\n{printed(match[2])}```"

        text = _BLOCK.sub(again, text)
    document.write_text(text)


if __name__ == "__main__":
    main((COMPARED, SHOWN) if "--all" in sys.argv else (COMPARED,))
