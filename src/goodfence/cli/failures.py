"""How a command fails: one sentence, a code that says whose fault it is, nothing private."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from goodfence.errors import GoodfenceError

DATA = 3
BUG = 70
INTERRUPTED = 130


@contextmanager
def failing_plainly(*, as_json: bool) -> Iterator[None]:
    """Run a command's body; turn what it raises into a sentence and an exit code."""
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        raise failed("GF130", "interrupted", INTERRUPTED, as_json=as_json) from None
    except MemoryError:
        sentence = "the data must fit in memory, and does not"
        raise failed("GF205", sentence, DATA, as_json=as_json) from None
    except GoodfenceError as problem:
        raise failed(problem.code, str(problem), problem.exit_code, as_json=as_json) from None
    except Exception as fault:  # its message may quote somebody's rating, so only its type is told
        raise failed("GF999", _place(fault), BUG, as_json=as_json) from None


def failed(code: str, sentence: str, exit_code: int, *, as_json: bool) -> typer.Exit:
    """Print one sentence on stderr, and return the exit that goes with it."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in sentence)
    if as_json:
        import json

        shown = json.dumps({"error": {"code": code, "message": shown}})
    else:
        shown = f"{typer.style('error', fg='red')} {code}: {shown}"
    typer.echo(shown, err=True)
    return typer.Exit(exit_code)


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
    return (
        f"this is a fault of goodfence ({type(fault).__name__} at {place}); "
        "please report this line, it holds nothing of your data"
    )
