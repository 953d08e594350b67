"""Work cut in pieces and done by several threads; kernels release the interpreter lock."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from goodfence.settings import integer

Piece = TypeVar("Piece")

MOST_THREADS = 1024
_LOOK_UP = 0.2
THREADS: ContextVar[int | None] = ContextVar("threads", default=None)
"""How many threads to use where nobody asks for a number; None for as many as this process may run on."""
_BARS: list[Any] = []  # the display of all bars that are shown now


def thread_count(threads: int | None) -> int:
    """Return how many threads to use: as asked, or as many as this process may run on."""
    asked = THREADS.get() if threads is None else threads
    if asked is None:
        available = getattr(os, "sched_getaffinity", None)
        return len(available(0)) if available else os.cpu_count() or 1
    return integer(asked, "threads", least=1, most=MOST_THREADS)


def run(
    work: Callable[[Piece], None],
    pieces: Iterable[Piece],
    *,
    threads: int | None = None,
    advance: Advance | None = None,
) -> None:
    """Do `work` on every piece. An interrupt or an error waits for the pieces handed out: keep them under a second."""
    waiting = iter(pieces)
    n_threads = thread_count(threads)
    if n_threads == 1:  # in this very thread, which may itself be one of several
        for piece in waiting:
            work(piece)
            if advance is not None:
                advance(1)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        # One more piece for each thread waits, so that none is idle until this thread hands out the next.
        under_way = {pool.submit(work, piece) for piece in islice(waiting, 2 * n_threads)}
        while under_way:
            # A bounded wait lets the main thread see Ctrl-C on every platform.
            done, under_way = wait(under_way, timeout=_LOOK_UP, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
                if advance is not None:
                    advance(1)
                for piece in waiting:
                    under_way.add(pool.submit(work, piece))
                    break


def run_pairs(
    work: Callable[[int, int], None], n_blocks: int, *, threads: int | None = None, advance: Advance | None = None
) -> None:
    """Do `work(a, b)` for all blocks a <= b, so that no two under way at a time share a block."""
    waiting = [(a, a + gap) for gap in range(n_blocks) for a in range(n_blocks - gap)]
    n_threads = thread_count(threads)
    under_way: dict[Future[None], tuple[int, int]] = {}
    with ThreadPoolExecutor(n_threads) as pool:
        while waiting or under_way:
            while len(under_way) < n_threads:
                busy = {block for pair in under_way.values() for block in pair}
                pair = next((one for one in waiting if busy.isdisjoint(one)), None)
                if pair is None:
                    break
                waiting.remove(pair)
                under_way[pool.submit(work, *pair)] = pair
            done, _ = wait(under_way, timeout=_LOOK_UP, return_when=FIRST_COMPLETED)
            for future in done:
                del under_way[future]
                future.result()
                if advance is not None:
                    advance(1)


def ranges(n: int, size: int) -> list[tuple[int, int]]:
    """Cut 0..n in ranges of at most `size`."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


Advance: TypeAlias = Callable[[int], None]  # tells that n steps more are done


def shown(show: bool | None) -> bool:
    """Return whether there is a bar: None is for a terminal only."""
    return sys.stderr.isatty() if show is None else show


@contextmanager
def bar(what: str, steps: int, *, show: bool | None = None) -> Iterator[Advance]:
    """Show a bar for `steps` steps of `what`, and hand out the function that advances it."""
    if not shown(show):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(compact=True))
    with ExitStack() as stack:
        if not _BARS:
            _BARS.append(stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True)))
            stack.callback(_BARS.clear)
        progress = _BARS[0]  # a bar within another has a line below it
        task = progress.add_task(what, total=steps)
        stack.callback(progress.remove_task, task)
        yield lambda done: progress.advance(task, done)
