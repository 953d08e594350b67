"""`goodfence ledger status | verify | anchor | restore | export PLACE --anchor FILE`: look after a privacy ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goodfence.cli.command import argument, command, command_group, flag, panel
from goodfence.cli.options import Output
from goodfence.cli.output import FOUND, JSON, check_out, out_option, print_json, print_paragraphs, print_table
from goodfence.errors import SettingError, require

if TYPE_CHECKING:
    from goodfence.ledger.book import Book


@panel("Ledger")
class Place:
    """Which ledger."""

    place: str = argument("PLACE", "The ledger's file, or a postgresql:// URL.")
    anchor: Path | None = flag("FILE", "The ledger's anchor (required).")
    folder: Path | None = flag("FOLDER", "Key and artefacts.", shown="PLACE.files")

    def book(self) -> Book:
        """Return the ledger, opened; nothing in it changes."""
        from goodfence.ledger.book import Book

        if self.anchor is None:
            raise SettingError("--anchor is required: the file by which an older copy of the ledger is recognised")
        book = Book(self.place, self.anchor, self.folder)
        book.open(new=False)
        return book


@panel("Ledger")
class AtDelta(Place):
    """Which ledger, and at which delta."""

    delta: float = flag("X", "The delta at which an epsilon is stated.", default=1e-5)

    def __post_init__(self) -> None:
        require(0 < self.delta < 1, "delta", "strictly between 0 and 1", self.delta)


@panel("Ledger")
class Restored(Place):
    """Which ledger, and from what."""

    from_anchor: bool = flag(None, "Charge every account what only the anchor has.", "--from-anchor", default=False)


@panel("Ledger")
class PublicPart(AtDelta):
    """Which ledger, and in which format."""

    format: str = flag("json|dp-event|registry", "The whole chain, or what one record pays.", default="json")


@command("Show caps, releases, burns, head and anchor.")
def status_command(wanted: AtDelta, output: Output) -> None:
    """Show what a ledger has released, at what cost, and whether its anchor has followed."""
    from goodfence.ledger.export import status

    book = wanted.book()
    book.require_unrolled()
    result = status(book, wanted.delta)

    def show() -> None:
        anchored = result["anchored"]["seq"] if result["anchored"] else "none"
        lines = [
            ("Ledger", result["ledger_id"]),
            ("Head", f"entry {result['head']['seq']}, anchored up to {anchored}"),
            *(
                ("Cap", f"{one['cost']} ticks per {one['unit']}, epsilon {one['epsilon']:.4g}")
                for one in result["caps"]
            ),
            *(("Raised", f"to {one['cap_cost']} ticks: {one['reason']}") for one in result["raised"]),
            *(("Restored", f"entries {one['lost'][0]} to {one['lost'][1]}") for one in result["restored"]),
        ]
        print_paragraphs(lines)
        rows = [[one["clock"], one["key"], str(one["cost"]), one["end"]] for one in result["releases"]]
        print_table(["clock", "key", "ticks", "end"], rows)

    output.tell(result, show)


@command("Check chain, sums, caps, anchor and artefacts; exit code 1 on a fault.")
def verify_command(wanted: Place, output: Output) -> None:
    """Check a ledger from its first entry on."""
    output.say("checking every entry")
    from goodfence.ledger.verify import verify

    faults = verify(wanted.book())
    lines = [("Fault", fault) for fault in faults] or [("Whole", "chain, sums, caps, anchor and artefacts agree")]
    output.tell({"faults": faults}, lines)
    if faults:
        raise typer.Exit(FOUND)


@command("Write what the ledger has beyond its anchor to the anchor.")
def anchor_command(wanted: Place, output: Output) -> None:
    """Bring the anchor up to the head, or begin a new one where none is."""
    book = wanted.book()
    if book.anchor.last() is not None:
        book.require_unrolled()
    book.follow()
    head = book.head()
    output.tell({"seq": head.seq, "hash": head.hash.hex()}, [("Anchored", f"entry {head.seq}, {head.hash.hex()}")])


@command("Charge every account what was lost, after an older copy of the ledger was put back.")
def restore_command(wanted: Restored, output: Output) -> None:
    """Enter the charges that only the anchor has: every account pays their sum, at most up to its cap."""
    if not wanted.from_anchor:
        raise SettingError("--from-anchor is required: it says from what the ledger is restored")
    n_lines = wanted.book().restore_from_anchor()
    output.tell({"lines": n_lines}, [("Restored", f"{n_lines} lines of the anchor")])


@command("Export the public part of a ledger.", name="export")
def export_ledger(wanted: PublicPart, output: Output, out: Annotated[Path | None, out_option(JSON)] = None) -> None:
    """Print public fields as JSON: all entries, or what one record pays; no number of people is in it."""
    check_out(out, JSON)
    from goodfence.ledger.export import FORMATS
    from goodfence.settings import one_of

    book = wanted.book()
    book.require_unrolled()
    result = FORMATS[one_of(wanted.format, "format", FORMATS)](book, wanted.delta)
    output.tell(result, lambda: print_json(result), out)


_ABOUT = "Show, check, restore or export a privacy ledger."
app = command_group("ledger", _ABOUT, status_command, verify_command, anchor_command, restore_command, export_ledger)
