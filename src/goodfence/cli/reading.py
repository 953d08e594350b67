"""How a command gets its ratings: by a name of the catalogue or by a path, with a word on stderr first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import typer

from goodfence.cli.items import read_items
from goodfence.cli.options import Running, Source
from goodfence.cli.printing import collected_notes, print_notes, printable
from goodfence.cli.scale import parse_scale

if TYPE_CHECKING:
    from goodfence.data.ratings import Ratings
    from goodfence.data.triplets import Duplicates


def say(text: str, running: Running) -> None:
    """Tell on stderr what is going on, before the slow imports: nobody waits for a second in the dark."""
    if not running.quiet:
        typer.echo(printable(text), err=True)


def read(source: Source, running: Running) -> Ratings:
    """Return the ratings of a file or of a data set that has a name."""
    scale = parse_scale(source.scale)
    say(f"reading {source.file}", running)
    with collected_notes() as notes:
        listed = None if source.items is None else read_items(source.items, _limit(source))
        ratings = _load(source, scale)
        if listed is not None:
            ratings = listed.under(ratings)
    if not running.quiet:
        print_notes(notes)
    return ratings


def fresh_seed() -> int:
    """Return a seed for whoever gave none and wants to repeat the result."""
    import secrets

    return secrets.randbelow(2**32)


def _limit(source: Source) -> int:
    from goodfence.data.limits import DEFAULT_MAX_BYTES

    return DEFAULT_MAX_BYTES if source.max_bytes is None else source.max_bytes


def _load(source: Source, scale: tuple[float, ...] | None) -> Ratings:
    from goodfence.data.catalogue import load
    from goodfence.data.readers import read_ratings

    given: dict[str, Any] = {
        "user": source.user,
        "item": source.item,
        "rating": source.rating,
        "scale": scale,
        "max_bytes": _limit(source),
    }
    duplicates = cast("Duplicates | None", source.duplicates)
    if source.separator is None:
        return load(source.file, duplicates=duplicates, **given)
    separator = "\t" if source.separator in ("\\t", "tab") else source.separator
    return read_ratings(source.file, duplicates=duplicates or "error", separator=separator, **given)
