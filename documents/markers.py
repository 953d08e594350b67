"""Markers around what a document shows of a source.

A block is between `<!-- shown: peers -->` and `<!-- /shown -->`, each on a line of its own; a number inside a
sentence is between the same two words on one line. What follows the name, up to the end of the marker, are the
source's own words, separated by semicolons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Sources = Mapping[str, Callable[..., str]]
_SHOWN = re.compile(r"(<!-- shown: ([\w-]+)(?: ([^\n>]+))? -->)(.*?)(<!-- /shown -->)", re.DOTALL)
_FIRST = re.compile(r"^\s*<!-- shown: [^\n]*<!-- /shown -->", re.MULTILINE)
_MARKER = re.compile(r"<!-- /?shown")


class UnknownSource(LookupError):
    """A document shows something that no source is known for, or a marker without its partner."""


def written_again(text: str, sources: Sources) -> str:
    """Return a document with everything between markers as its source gives it now."""
    marked = len(_SHOWN.findall(text))
    if len(_MARKER.findall(text)) != 2 * marked:
        raise UnknownSource("a marker has no partner, or does not read `<!-- shown: name -->`")

    if _FIRST.search(text):
        raise UnknownSource("a number between markers must not begin a line: Markdown ends a paragraph there")

    def again(match: re.Match[str]) -> str:
        opening, name, words, _, closing = match.groups()
        if name not in sources:
            raise UnknownSource(f"no source is called {name}; there are {', '.join(sources)}")
        value = sources[name](*(word.strip() for word in words.split(";")) if words else ())
        between = f"\n\n{value}\n\n" if "\n" in match[4] else value
        return f"{opening}{between}{closing}"

    return _SHOWN.sub(again, text)
