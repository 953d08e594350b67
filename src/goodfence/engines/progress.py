"""Progress of long work: a bar with the time left, on standard error, only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Advance: TypeAlias = Callable[[int], None]
"""Tells that so many steps more are done."""


def shown(show: bool | None) -> bool:
    """Return whether there is a bar: None is for a terminal only."""
    return sys.stderr.isatty() if show is None else show


@contextmanager
def bar(what: str, steps: int, *, show: bool | None = None) -> Iterator[Advance]:
    """Show a bar for `steps` steps of `what`, and hand out the function that advances it.

    `show=None` shows it on a terminal only, and only once the work has gone on for a moment.
    """
    if not shown(show):
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=steps)
        yield lambda done: progress.advance(task, done)


def _nothing(_: int) -> None:
    return
