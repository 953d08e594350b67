"""Whether the privacy ledger stands power cuts, failing calls, kills, races and old copies, and how fast it is."""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from benchmarks.results import FOLDER, write_table
from documents.tables import rows_of
from goodfence.ledger.costs import Cap, Charge
from goodfence.ledger.verify import verify
from tests.support.ledger_faults import POINTS, WAYS, failing_calls, kills, power_cuts, put_back, race
from tests.support.ledgers import LedgerMachine, PostgresStore, Store, sqlite_store
from tests.support.planted_faults import FAULTS, caught
from tests.support.postgres import Cluster, cluster, programs

SEED = 7
ARTEFACT = 5_118_400 * 8
"""The bytes of the largest release: the covariance of 3,200 items."""
Work: TypeAlias = Callable[[], tuple[str, str]]
Stores: TypeAlias = Callable[[], AbstractContextManager[Store]]


def main() -> None:
    counts = {
        "cuts": 5_000,
        "steps": 100_000,
        "kills": 2_000,
        "races": 200,
        "copies": 500,
        "accounts": 1_000_000,
        "entries": 1_000_000,
    }
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, count in counts.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--postgres-share", type=float, default=1.0, help="the part of steps, kills and races there")
    parser.add_argument("--only", default="", help="rows with this in their name; others stay")
    asked = parser.parse_args()
    with ExitStack() as stack:
        databases: dict[str, Stores] = {"SQLite": sqlite_store}
        if programs() is not None:
            databases["PostgreSQL"] = on_postgres(stack.enter_context(cluster()))
        parts = dict(trials(asked, databases))
        for name, work in parts.items():
            if asked.only in name:
                record(name, work, list(parts))


def trials(asked: argparse.Namespace, databases: dict[str, Stores]) -> Iterator[tuple[str, Work]]:
    """Yield what is tried, by its name."""
    yield "planted faults", lambda: of(sum(map(caught, FAULTS)), len(FAULTS), "caught")
    yield "power cuts, SQLite", lambda: (f"{sum(power_cuts(rng(), asked.cuts).values()):,}", "0 charges lost")
    yield "I/O errors, every call, SQLite", io_errors
    for name, stores in databases.items():
        share = 1.0 if name == "SQLite" else asked.postgres_share
        yield f"steps beside the model, {name}", partial(model, stores, int(asked.steps * share))
        yield f"kills, {name}", partial(killed, stores, int(asked.kills * share))
        yield f"races of 8 processes, {name}", partial(raced, stores, int(asked.races * share))
        yield f"old copies, {name}", partial(copies, stores, int(asked.copies * share))
        for n_accounts in (10_000, asked.accounts):
            yield f"{n_accounts:,} accounts charged at once, {name}", partial(charged, name, stores, n_accounts)
    yield "entries verified, with anchor, SQLite", partial(verified, asked.entries)
    yield "releases of a fit of 3,200 items, 82 MB, SQLite", artefacts


def record(name: str, work: Work, order: list[str]) -> None:
    """Measure one row, and write it among those that were measured before."""
    began = time.perf_counter()
    n, found = work()
    table = FOLDER / "ledger.md"
    before = rows_of(table.read_text(encoding="utf-8")) if table.exists() else ()
    kept = {row["what"]: list(row.values()) for row in before}
    kept[name] = [name, n, found, f"{time.perf_counter() - began:.0f}"]
    write_table(
        "ledger",
        "The privacy ledger under faults",
        ["what", "n", "found", "seconds"],
        [kept[one] for one in order if one in kept],
        SQLite=sqlite3.sqlite_version,
        seed=SEED,
        files="in memory, but SQLite on disk where a time is found; other work shared the two cores",
    )


def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def of(n: int, total: int, verb: str) -> tuple[str, str]:
    return f"{total:,}", f"{n:,} {verb}"


def on_postgres(running: Cluster) -> Stores:
    @contextmanager
    def store() -> Iterator[Store]:
        made = PostgresStore(Path(tempfile.mkdtemp()), running.url())
        try:
            yield made
        finally:
            made.remove()

    return store


def io_errors() -> tuple[str, str]:
    found = failing_calls()
    return f"{sum(found.values()):,}", f"{found['refused']:,} told, {found['done']:,} without effect"


def model(stores: Stores, n_steps: int) -> tuple[str, str]:
    class Machine(LedgerMachine):
        n_steps = 0

    Machine.stores = staticmethod(stores)
    while n_steps > Machine.n_steps:
        n_left = max(10, (n_steps - Machine.n_steps) // 40)
        how = settings(max_examples=n_left, stateful_step_count=50, deadline=None, derandomize=False, database=None)
        run_state_machine_as_test(Machine, settings=how)
    return f"{Machine.n_steps:,}", "0 differences"


def killed(stores: Stores, n_kills: int) -> tuple[str, str]:
    """Kill fits at every point in turn, and at random, until there are so many kills."""
    chance, found, at = rng(), 0, 0
    points = (*POINTS, *[None] * 4)
    while found < n_kills:
        with stores() as store:
            found += kills(store, chance, points[at % len(points)])
        at += 1
    return f"{found:,}", "0 draws unpaid"


def raced(stores: Stores, n_rounds: int) -> tuple[str, str]:
    for _ in range(n_rounds):
        with stores() as store:
            race(store)
    return f"{n_rounds:,}", "exactly the cap"


def copies(stores: Stores, n: int) -> tuple[str, str]:
    chance, found = rng(), 0
    for at in range(n):
        with stores() as store:
            found += put_back(store, chance, WAYS[at % len(WAYS)])
    return of(found, n, "refused")


@contextmanager
def on_disk(name: str, stores: Stores) -> Iterator[Store]:
    """Yield a store whose files are on a disk: its time is the finding."""
    if name != "SQLite":
        with stores() as store:
            yield store
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        yield Store(Path(folder))


def charged(name: str, stores: Stores, n_accounts: int) -> tuple[str, str]:
    with on_disk(name, stores) as store, store.open() as ledger:
        began = time.perf_counter()
        accounts = ledger.open_accounts("user", (f"{at}" for at in range(n_accounts)), Cap(100, 100))
        opened = time.perf_counter()
        charges = [Charge(account, 10, 1) for account in accounts]
        ledger.release("fit", request=b"", charges=charges, draw=bytes, facts={})
        done = time.perf_counter()
    return f"{n_accounts:,}", f"opened in {opened - began:.2f} s, charged in {done - opened:.2f} s"


def verified(n_entries: int) -> tuple[str, str]:
    """Verify a chain of charges and burns; a real one is made of entries, so many at once in a transaction."""
    with on_disk("SQLite", sqlite_store) as store, store.open() as ledger:
        [account] = ledger.open_accounts("rating", ["batch"], Cap(1 << 40, 1 << 40))
        with ledger.book.writing():
            for at in range((n_entries - 2) // 2):
                fields = {"idem": f"{at}#1", "request": bytes(32), "release_id": at.to_bytes(16, "big")}
                ledger.book.charge("charge", [(account, 1000, 1)], facts={"name": "item sums"}, **fields)
                ledger.book.append("burn", release_id=fields["release_id"], facts={})
        began = time.perf_counter()
        faults = verify(ledger.book)
        seconds = time.perf_counter() - began
    return f"{n_entries:,}", f"{len(faults)} faults in {seconds:.1f} s"


def artefacts() -> tuple[str, str]:
    """Time what the ledger adds to a fit that releases item sums, a covariance and an overlap of 3,200 items."""
    with on_disk("SQLite", sqlite_store) as store, store.open() as ledger:
        [account] = ledger.open_accounts("rating", ["batch"], Cap(100, 100))
        contents = [os.urandom(size) for size in (3200 * 16, ARTEFACT, ARTEFACT)]
        began = time.perf_counter()
        for at, content in enumerate(contents):
            charges = [Charge(account, 10, 1)]
            ledger.release(f"fit/{at}", request=b"", charges=charges, draw=partial(bytes, content), facts={})
        seconds = time.perf_counter() - began
    return "3", f"{seconds:.2f} s"


if __name__ == "__main__":
    main()
