"""The groups of options that commands share: ratings, recommender, running, output.

A flag has the name of the Python argument (`rng` is `--seed`) and the same meaning in every command.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from goodfence.cli.command import argument, flag, panel, parse_scale
from goodfence.cli.output import JSON, is_page, print_json, print_notes, print_paragraphs, printable
from goodfence.errors import GoodfenceWarning, require

if TYPE_CHECKING:
    from goodfence.data.frame import ReadOptions
    from goodfence.data.load import ItemList
    from goodfence.data.ratings import Feedback, Ratings
    from goodfence.models.method import Configured

_FROM_RATINGS = "from-ratings"


@panel("Output")
class Output:
    """How a command prints."""

    json: bool = flag(None, "Print the result as one JSON object.", "--json", default=False)
    quiet: bool = flag(None, "Print only errors on stderr.", "--quiet", "-q", default=False)

    @property
    def progress(self) -> bool | None:
        """The argument `progress=`: no bar with `--quiet`, else a bar on a terminal."""
        return False if self.quiet else None

    def say(self, text: str) -> None:
        """Print what happens next on stderr; call it before the slow imports."""
        if not self.quiet:
            typer.echo(printable(text), err=True)

    def tell(
        self,
        result: Mapping[str, object],
        show: Callable[[], None] | Sequence[tuple[str, str]],
        out: Path | None = None,
        page: Callable[[], Any] | None = None,
        table: Any = None,
    ) -> None:
        """Print a result, as JSON or as `show` says; then write it to `out`: JSON, a `page`, or a folder of `table`."""
        if self.json:
            print_json(result)
        elif callable(show):
            show()
        else:
            print_paragraphs(show)
        if out is None:
            return
        from goodfence.report.pages import save_result
        from goodfence.report.serialize import write_json

        if page is None or out.suffix.lower() == JSON:
            write_json(out, result, name="out")
        elif is_page(out):
            page().save(out)
        else:
            save_result(table, out)
        if not self.json:
            print_paragraphs([("Saved", str(out))])

    @contextmanager
    def noting(self) -> Iterator[list[str]]:
        """Print the warnings of goodfence in the block as notes on stderr; the list has them afterwards."""
        notes: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", GoodfenceWarning)
            yield notes
        notes += [str(one.message) for one in caught if one.category is GoodfenceWarning]
        print_notes([] if self.quiet else notes)


@panel("Running")
class Running(Output):
    """How a long command runs, and prints."""

    seed: int | None = flag("N", "Repeat an experiment; a seeded model has no guarantee.")
    threads: int | None = flag("N", "Number of threads.", shown="all cores", hidden=True)

    def __post_init__(self) -> None:
        require(self.seed is None or self.seed >= 0, "seed", "an integer of at least 0", self.seed)

    @property
    def how(self) -> dict[str, Any]:
        """The arguments of every long call."""
        return {"rng": self.seed, "progress": self.progress}

    def repeatable(self) -> Running:
        """Return the same with a fresh seed if none is given."""
        from goodfence.rng import fresh_seed

        return self if self.seed is not None else replace(self, seed=fresh_seed())


@panel("Running")
class SeededRunning(Running):
    """The same for a command that is repeatable by default."""

    seed: int = flag("N", "Seed of the experiment.", default=7)


@panel("Ratings")
class Source:
    """Where the ratings are and how to read them, as in `gf.load`."""

    file: str = argument("FILE", "csv, JSON lines, parquet, - (stdin), or a data set's name.")
    user: str | None = flag("COLUMN", "Column of user ids: name, or number from 1.", shown="found")
    item: str | None = flag("COLUMN", "Column of item ids.")
    rating: str | None = flag("COLUMN", "Column of ratings.")
    scale: str | None = flag("LOW HIGH [STEP]", "Range of possible ratings.", shown="observed")
    feedback: str = flag("explicit|implicit", "Ratings, or events (clicks).", default="explicit")
    likes: float | None = flag("X", "Turn ratings of X or more into events.")
    read: list[str] | None = flag("'KEY=VALUE ...'", "As in 'decimal=,' or --where; `explain read`.")
    items: Path | None = flag("FILE|from-ratings", "Public list of all items, one id a line.", hidden=True)

    @property
    def kind(self) -> Feedback:
        """Whether the rows are ratings or events."""
        return "explicit" if self.feedback == "explicit" and self.likes is None else "implicit"

    def load(self, running: Running, *, on_items: bool = True) -> Ratings:
        """Return the ratings; `on_items` makes the items of `--items` their columns."""
        running.say(f"reading {self.file}")
        options = self.options()
        from goodfence.data.load import load

        with running.noting():
            listed = self.item_list() if on_items else None
            ratings = load(self.file, read=options)
            return ratings if listed is None else listed.applied_to(ratings)

    def options(self) -> ReadOptions:
        """Return how the file is read."""
        scale = parse_scale(self.scale)
        from goodfence.data.frame import ReadOptions

        given = {key: getattr(self, key) for key in ("user", "item", "rating", "likes")}
        given |= {"scale": scale, "feedback": None if self.feedback == "explicit" else self.feedback}
        return ReadOptions.parse(" ".join(self.read or ())).merged(**given)

    def item_list(self) -> ItemList | None:
        """Return the items of `--items`, if they are given."""
        from goodfence.data.load import read_item_list

        if self.items is None or str(self.items) == _FROM_RATINGS:
            return None
        return read_item_list(self.items, self.options().max_bytes)

    def public_items(self) -> dict[str, Any]:
        """Return the public items as a private model takes them: `catalogue`, `items`, or nothing."""
        from goodfence.models.private.base import FROM_RATINGS

        listed = self.item_list()
        if listed is not None:
            return {"catalogue": listed.alone()}
        return {} if self.items is None else {"items": FROM_RATINGS}


@panel("Recommender")
class Method:
    """The recommender, as one line of text."""

    method: str = flag("'NAME KEY=VALUE ...'", "As in 'ppns k=50 beta=7'; see `explain`.", default="knn")

    def configured(
        self, running: Running, *, rng: int | None = None, public: dict[str, Any] | None = None
    ) -> Configured:
        """Return the unfitted recommender; `public` as in `Source.public_items`.

        None is for an experiment: nobody receives its model, so the ratings may name the items.
        """
        from goodfence.models.method import parsed

        told = {"items": "from ratings"} if public is None else public
        how = {"threads": running.threads, "progress": running.progress}
        return parsed(self.method, rng=rng, **how, public=told)


def command_line(name: str, *groups: Any, **others: Any) -> str:
    """Return the command that repeats a result: all options of `groups` and `others`, files without their folders."""
    stated = [(one.name, getattr(group, one.name), one.default) for group in groups for one in fields(group)]
    stated += [(key, value, None) for key, value in others.items()]
    each = ((key, value if isinstance(value, list) else [value], default) for key, value, default in stated)
    words = [_as_typed(key, one, default) for key, values, default in each for one in values]
    return " ".join(["goodfence", name, *filter(None, words)])


def _as_typed(key: str, value: Any, default: Any) -> str:
    """Return an option as it is typed; nothing for its default, and a word alone for an argument."""
    if value is None or value is False or value == default:
        return ""
    if default is MISSING:
        return shlex.quote(Path(value).name)
    option = f"--{key.replace('_', '-')}"
    if value is True:
        return option
    text = value.name if isinstance(value, Path) else str(value)
    return f"{option} {text.replace(',', ' ') if key == 'scale' else shlex.quote(text)}"
