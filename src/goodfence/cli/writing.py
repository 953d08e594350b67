"""Where a result is written to: JSON for programs, HTML for people."""

from __future__ import annotations

from pathlib import Path

from goodfence.errors import FileProblem, SettingError

JSON, HTML = ".json", ".html"


def check_out(out: Path | None, *, folder: bool = False) -> None:
    """Raise unless something can be written there; asked before anything long begins.

    Parameters
    ----------
    folder
        Whether a name without an ending may stand for a folder.
    """
    if out is None:
        return
    ending = out.suffix.lower()
    endings = " or ".join((JSON, HTML))
    if ending not in (JSON, HTML) and not (folder and not ending):
        rule = f"a folder or end in {endings}" if folder else f"end in {endings}"
        verb = "be " if folder else ""
        raise SettingError(f"out must {verb}{rule}, got {ending or 'no ending'}")
    if ending and not out.parent.is_dir():
        raise FileProblem("out must be in a folder that is there")


def is_page(out: Path | None) -> bool:
    """Return whether a page is wanted.

    Examples
    --------
    >>> is_page(Path("audit.html")), is_page(Path("audit.json")), is_page(None)
    (True, False, False)
    """
    return out is not None and out.suffix.lower() == HTML


def write_whole(out: Path, text: str) -> None:
    """Write a file whole or not at all."""
    from goodfence.data.whole import written_whole

    try:
        with written_whole(out) as file:
            file.write(text.encode())
    except OSError:
        raise FileProblem("out must be a file that can be written") from None
