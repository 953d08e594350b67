"""Write again what the documents show, or compare it."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

from documents import architecture, commands, markers
from documents.errors_page import error_index
from documents.reproduction import write_report
from documents.sources import SOURCES
from documents.tables import ROOT

ERRORS = ROOT / "docs" / "errors.md"


def documents() -> list[Path]:
    """Return every document that can show something."""
    return sorted([ROOT / "README.md", architecture.PICTURE, *(ROOT / "docs").rglob("*.md")])


def written_again(path: Path, kinds: tuple[str, ...]) -> tuple[str, str]:
    """Return the text of a document, and what it would be if it were written now."""
    shown = path.read_text(encoding="utf-8")
    if path == architecture.PICTURE:
        return shown, architecture.drawn_again()
    if path == ERRORS:
        return shown, error_index()
    try:
        numbers = markers.written_again(shown, SOURCES)
    except LookupError as problem:
        raise LookupError(f"{path.relative_to(ROOT)}: {problem}") from problem
    return shown, commands.written_again(numbers, kinds)


def stale(paths: list[Path], kinds: tuple[str, ...]) -> Iterator[tuple[Path, str, str]]:
    """Yield every document that is not what it would be now, with both texts."""
    with commands.reader_folder():
        for path in paths:
            shown, now = written_again(path, kinds)
            if shown != now:
                yield path, shown, now


def difference(name: str, shown: str, now: str) -> str:
    """Return the lines that differ, as `diff` prints them."""
    lines = (shown.splitlines(), now.splitlines())
    found = difflib.unified_diff(*lines, f"{name}, shown", f"{name}, now", n=0, lineterm="")
    return "\n".join(found) + "\n"


def main(arguments: list[str]) -> int:
    """Return 0, or 1 where a document shows what its source does not give."""
    parser = argparse.ArgumentParser(prog="scripts/documented", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where one is stale")
    parser.add_argument("--numbers", action="store_true", help="run no commands: seconds")
    parser.add_argument("--all", action="store_true", help="also commands that are not compared")
    parser.add_argument(
        "--reproduction",
        action="store_true",
        help="first run the paper's evaluation and write REPRODUCTION.md with its charts: minutes",
    )
    asked = parser.parse_args(arguments)
    if asked.reproduction:
        write_report()
    kinds = () if asked.numbers else (commands.EXACT, commands.NOISY)
    found = 0
    for path, shown, now in stale(documents(), (*kinds, commands.LOOSE) if asked.all else kinds):
        found += 1
        if not asked.check:
            path.write_text(now, encoding="utf-8")
            continue
        sys.stdout.write(difference(str(path.relative_to(ROOT)), shown, now))
    if asked.check and found:
        sys.stdout.write(f"{found} stale; ./scripts/documented writes them again\n")
    return 1 if asked.check and found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
