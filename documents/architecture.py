"""The picture of docs/architecture.md: the layers of pyproject.toml, and where the walks of the page pass them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from documents.tables import ROOT

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = PAGE.with_suffix(".svg")
SOURCE = ROOT / "src" / "goodfence"
_STEP = re.compile(r"^(\d+)\. (.*(?:\n {3,}.*)*)", re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)?")

_ROW, _TOP, _LEFT, _LINES, _APART, _WIDTH = 44, 72, 16, 486, 106, 1010
_COLOURS = ("#b8420f", "#0b66a8", "#0a7d5a", "#7a3e9d", "#8a6d00")
_FONT = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"'


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a walk: the files that it names, each with the names that are passed there."""

    number: int
    named: tuple[tuple[str, str], ...]
    """(file, name) each; the name is empty where only the file is named."""

    @property
    def layers(self) -> list[str]:
        """The layers that the step passes: the folders or files of `src/goodfence/` that its files belong to."""
        return list(dict.fromkeys(file.split("/")[0].removesuffix(".py") for file, _ in self.named))


def layers() -> list[list[str]]:
    """Return the layers from the top down, as pyproject.toml states them; `__main__` is the command line's."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    found = [[name.strip(" ()") for name in row.split("|")] for row in contract["layers"]]
    return [row for row in found if row != ["__main__"]]


def said(text: str) -> list[tuple[list[str], str]]:
    """Return the rows of the page's table of layers: the names, and what is in it."""
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", text, re.MULTILINE)
    return [(_SPAN.findall(names), about) for names, about in rows]


def walks(text: str) -> dict[str, list[Step]]:
    """Return the steps of each walk, by its heading."""
    found = {}
    for part in text.split("\n### ")[1:]:
        heading, _, body = part.partition("\n")
        steps = [Step(int(step[1]), tuple(_named(step[2]))) for step in _STEP.finditer(body)]
        found[heading.strip("`")] = steps
    return found


def _named(text: str) -> Iterator[tuple[str, str]]:
    """Yield the files and names of a step: a name belongs to the file before it, or to the one after "of"."""
    file, spans = "", list(_SPAN.finditer(text))
    for position, span in enumerate(spans):
        if span[1].endswith(".py"):
            file = span[1]
            yield file, ""
        elif _NAME.fullmatch(span[1]):
            following = spans[position + 1] if position + 1 < len(spans) else None
            borrowed = following is not None and text[span.end() : following.start()].strip() == "of"
            yield (following[1] if borrowed and following else file), span[1]


@cache
def defined(file: str) -> frozenset[str]:
    """Return the functions, classes and methods of a file; none where it does not exist."""
    path = SOURCE / file
    if not path.is_file():
        return frozenset()
    kinds = (ast.FunctionDef, ast.ClassDef)
    top = [one for one in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(one, kinds)]
    inner = [
        f"{one.name}.{method.name}"
        for one in top
        if isinstance(one, ast.ClassDef)
        for method in one.body
        if isinstance(method, kinds)
    ]
    return frozenset([*(one.name for one in top), *inner])


def missing(steps: list[Step]) -> list[str]:
    """Return what the steps name that is not in the source."""
    return [
        f"{file} {name}".strip()
        for step in steps
        for file, name in step.named
        if not ((SOURCE / file).is_file() and (not name or name in defined(file)))
    ]


def picture(text: str) -> str:
    """Return the picture of the page as SVG."""
    rows = said(text)
    places = {name: row for row, (names, _) in enumerate(rows) for name in names}
    height = _TOP + _ROW * len(rows) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" {_FONT}>',
        "<title>The layers of goodfence, and five walks through them</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(_LEFT, 30, "imports only go down; numbers are the steps of the walks", 13, fill="#555555"),
        *(_band(row, names, about) for row, (names, about) in enumerate(rows)),
    ]
    for number, (heading, steps) in enumerate(walks(text).items()):
        parts += _line(number, heading, steps, places)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _band(row: int, names: list[str], about: str) -> str:
    y = _TOP + row * _ROW
    shade = "#f3f1ec" if row % 2 else "#faf9f6"
    band = f'<rect x="8" y="{y}" width="{_WIDTH - 16}" height="{_ROW}" fill="{shade}"/>'
    name = _text(_LEFT, y + 19, ", ".join(names), 16, weight="bold")
    return f"{band}{name}{_text(_LEFT, y + 36, about.replace('`', ''), 13, fill='#444444')}"


def _line(number: int, heading: str, steps: list[Step], places: dict[str, int]) -> Iterator[str]:
    """Yield one walk: its heading, a line from its first layer to its deepest, and a stop at each layer it passes."""
    x, colour = _LINES + 46 + number * _APART, _COLOURS[number]
    stops: dict[int, list[int]] = {}
    for step in steps:
        for layer in step.layers:
            stops.setdefault(places[layer], []).append(step.number)
    first, last = (_TOP + at(stops) * _ROW + _ROW // 2 for at in (min, max))
    for line, words in enumerate(_shortened(heading)):
        yield _text(x, 30 + 18 * line, words, 13, weight="bold", fill=colour, anchor="middle")
    yield f'<line x1="{x}" y1="{first}" x2="{x}" y2="{last}" stroke="{colour}" stroke-width="4"/>'
    for row, numbers in sorted(stops.items()):
        y = _TOP + row * _ROW + _ROW // 2
        yield f'<circle cx="{x}" cy="{y}" r="7" fill="#ffffff" stroke="{colour}" stroke-width="4"/>'
        yield _text(x + 13, y + 4, ", ".join(_runs(numbers)), 12, fill="#222222")


def _shortened(heading: str) -> tuple[str, ...]:
    """Return a walk's heading in two short lines: the command, or the class and its methods."""
    if heading.startswith("goodfence"):
        words = heading.split()
        engine = words[words.index("--engine") + 1] if "--engine" in words else ""
        return ("goodfence", f"{words[1]}, {engine}" if engine else words[1])
    return (heading.split("(")[0], ", ".join(re.findall(r"\.([a-z]+)\(", heading)))


def _runs(numbers: list[int]) -> Iterator[str]:
    """Yield numbers in short: 1, 2, 3, 7 is 1-3 and 7."""
    start = numbers[0]
    for one, following in zip(numbers, [*numbers[1:], None], strict=True):
        if following != one + 1:
            yield f"{start}" if start == one else f"{start}-{one}"
            start = following or one


def _text(
    x: int, y: int, words: str, size: int, weight: str = "normal", fill: str = "#111111", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )


def drawn_again(path: Path = PAGE) -> str:
    """Return the picture as the page and pyproject.toml have it now."""
    return picture(path.read_text(encoding="utf-8"))
