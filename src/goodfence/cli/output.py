"""How results are printed: labels and lines for people, JSON for programs, notes on stderr."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import typer

from goodfence import errors
from goodfence.errors import FileProblem, GoodfenceError, SettingError

_WIDTH = 9
_HARD = "\N{NO-BREAK SPACE}"
LINE = 100  # how long a printed line may be
FOUND, USAGE, DATA, BUG, INTERRUPTED = 1, 2, 3, 70, 130  # exit codes
JSON, HTML, FOLDER, MODEL = ".json", ".html", "", ".gf"
"""What `--out` can be, by its ending; a folder has none that is known."""
CSV, PARQUET = ".csv", ".parquet"
_WRITTEN = {
    HTML: "name.html for a page",
    JSON: "name.json for the result",
    CSV: "name.csv for a table of text",
    PARQUET: "name.parquet for a table",
    FOLDER: "a folder for table and manifest",
    MODEL: "name.gf for the model",
}
_PROBE = bytes(2**16)
_UsageError: Any = typer.BadParameter.__mro__[1]  # the root of them, whichever parser is beneath


def printable(text: str) -> str:
    r"""Return `text` with a question mark for what would move the cursor or change colours."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def print_lines(lines: Sequence[tuple[str, str]]) -> None:
    """Print pairs of a label and what it labels."""
    for label, text in lines:
        name = typer.style(label, bold=True) if label else ""
        space = " " * max(1, _WIDTH + 1 - len(label))
        typer.echo(f"  {name}{space}{printable(text.replace(_HARD, ' '))}".rstrip())


def print_paragraphs(lines: Sequence[tuple[str, str]]) -> None:
    """Print pairs of a label and a text that may need several lines."""
    import textwrap

    for label, text in lines:
        # An interval stays on one line.
        joined = printable(text).replace("(95%: ", f"(95%:{_HARD}")
        first, *others = textwrap.wrap(joined, LINE - _WIDTH - 3, break_on_hyphens=False) or [""]
        print_lines([(label, first), *(("", other) for other in others)])


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under names, each column as wide as it needs; nothing where there are no rows."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for at, row in enumerate([names, *rows]):
        padded = (printable(cell).ljust(width) for cell, width in zip(row, widths, strict=True))
        line = f"  {'  '.join(padded)}".rstrip()
        typer.echo(line if at else typer.style(line, bold=True))


def print_json(result: Mapping[str, object]) -> None:
    """Print one JSON object."""
    from goodfence.report.serialize import to_json

    typer.echo(to_json(result, ascii_only=True))


def print_notes(notes: Sequence[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        typer.echo(f"note: {printable(note)}", err=True)


def out_option(*endings: str, of: str = "") -> Any:
    """Return the option `-o, --out` of a command that writes these; `of` says what a folder holds."""
    kinds = {**_WRITTEN, FOLDER: of or _WRITTEN[FOLDER]}
    text = ", ".join(kinds[ending] for ending in endings)
    about = f"Write {text}; replaces an older result."
    return typer.Option("--out", "-o", metavar="PATH", rich_help_panel="Output", help=about)


def check_out(out: Path | None, *endings: str, name: str = "out") -> None:
    """Raise unless `out`, called `name`, can be written as one of these; tried before anything long begins."""
    if out is None:
        return
    ending = out.suffix.lower()
    files = [one for one in endings if one]
    if ending in files or MODEL in endings:  # a model may have any name
        from goodfence.data.files import destination

        _check_writable(destination(out, name).parent, name)
        return
    if FOLDER not in endings or (files and ending):
        verb = "be a folder or end" if FOLDER in endings else "end"
        raise SettingError(f"{name} must {verb} in {' or '.join(files)}, got {ending or 'no ending'}")
    if out.exists() and not (out / "manifest.json").is_file():
        raise FileProblem("out must be a new folder or one that goodfence wrote")
    _check_writable(next(one for one in (out.parent, *out.parent.parents) if one.exists()))


def _check_writable(folder: Path, name: str = "out") -> None:
    if not folder.is_dir():
        raise FileProblem(f"the folder of {name} does not exist; create it first")
    try:
        with TemporaryFile(dir=folder, prefix=".goodfence-") as probe:
            probe.write(_PROBE)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as problem:
        raise FileProblem(_unwritten(problem, name)) from None


def _unwritten(problem: OSError, name: str = "out") -> str:
    """Return why a result could not be written, in the system's words and without the path."""
    reason = (problem.strerror or type(problem).__name__).strip()
    return f"{name} could not be written: {reason[:1].lower()}{reason[1:]}"


def _noted(sentence: str, problem: BaseException) -> str:
    """Return the sentence followed by the notes of an exception, such as accounts that could not be closed."""
    return "; ".join([sentence, *getattr(problem, "__notes__", ())])


def is_page(out: Path | None) -> bool:
    """Return whether `--out` names a page."""
    return out is not None and out.suffix.lower() == HTML


@contextmanager
def failing_plainly(*, as_json: bool) -> Iterator[None]:
    """Parse or run a command; turn an exception into a sentence and an exit code."""
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except KeyboardInterrupt as problem:
        told = "GF130", _noted("interrupted", problem), INTERRUPTED
    except MemoryError:
        told = "GF205", "the data do not fit in memory", DATA
    except GoodfenceError as problem:
        told = problem.code, _noted(str(problem), problem), problem.exit_code
    except _UsageError as problem:
        if type(problem).__name__ == "NoArgsIsHelpError":  # the help is the answer
            raise
        told = "GF100", _usage(problem), USAGE
    except OSError as problem:  # readers have their own sentences: this is a disk that refuses
        told = FileProblem.code, _unwritten(problem), DATA
    except Exception as fault:  # its message may quote a rating, so only its type is printed
        told = "GF999", _place(fault), BUG
    else:
        return
    code, sentence, exit_code = told
    shown = printable(sentence)
    if as_json:
        from goodfence.report.serialize import to_json

        shown = to_json({"error": {"code": code, "message": shown}}, ascii_only=True, indent=None)
    else:
        shown = f"{typer.style('error', fg='red')} {code}: {shown}"
    typer.echo(shown, err=True)
    raise typer.Exit(exit_code)


def _usage(problem: Any) -> str:
    """Return what was wrong with the command line; a mistyped option with the likely one."""
    where = problem.ctx.command_path if problem.ctx is not None else "goodfence"
    option = getattr(problem, "option_name", None)
    if option is not None and hasattr(problem, "possibilities"):
        near = errors.did_you_mean(option, problem.possibilities or ())
        told = f"there is no option {option}{near}"
    else:
        said = problem.format_message().rstrip(".").replace(". Did you mean", "; did you mean")
        said = said.partition(", unable to parse")[0].replace("Input should be", "it must be")
        told = f"{said[:1].lower()}{said[1:]}"
    return f"{told}{' See' if told.endswith('?') else '; see'} {where} --help"


def _place(fault: Exception) -> str:
    """Return the type of the fault and the last line of goodfence that it passed, and no more."""
    import traceback

    package = Path(__file__).parents[1]
    places = [
        f"{Path(frame.filename).relative_to(package.parent).as_posix()}:{frame.lineno}"
        for frame in traceback.extract_tb(fault.__traceback__)
        if Path(frame.filename).is_relative_to(package)
    ]
    place = places[-1] if places else "an unknown place"
    kind = type(fault).__name__
    return f"this is a fault of goodfence ({kind} at {place}); please report this line; it has none of your data"
