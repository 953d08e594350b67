"""What a ledger must stand: power cuts, failing calls, kills, races. A check that fails raises AssertionError."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from goodfence.errors import CapExceeded, GoodfenceError, LedgerProblem, RolledBack
from goodfence.ledger import anchor, journal
from goodfence.ledger.book import Book
from goodfence.ledger.costs import Cap, Charge
from goodfence.ledger.database import Database
from goodfence.ledger.ledger import Ledger
from goodfence.ledger.verify import verify
from goodfence.privacy.noise import SystemNoise
from tests.support.ledgers import Store
from tests.support.power_cuts import LOSSES, Disk, PowerCut, running_on

CAP = Cap(10**6, 10**6)
COST = 1000
REQUEST = b"these data"
TOTALS = np.arange(300, dtype=np.int64)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)


class Trial:
    """A store with one account and one release; `act` makes the next one, and `check` looks at what is left."""

    def __init__(self, store: Store, scenario: str = "release") -> None:
        self.store, self.scenario, self.n_drawn = store, scenario, 0
        self.drawn: list[bytes] = []
        self.done: bytes | None = None
        if scenario != "make":
            with store.open() as ledger:
                ledger.open_accounts("rating", ["first"], CAP)
                self.first = self.ask(ledger, "first")
        if scenario == "settle":
            with store.open() as ledger, patch.object(ledger, "_settle"), suppress(ZeroDivisionError):
                ledger.release(
                    "next", request=REQUEST, charges=self.paid(ledger), draw=lambda: b"%d" % (1 // 0), facts={}
                )
            self.n_drawn = 1

    def paid(self, ledger: Ledger) -> list[Charge]:
        return [Charge(ledger.account("rating", "first"), COST, 1)]

    def ask(self, ledger: Ledger, key: str) -> bytes:
        return ledger.release(key, request=REQUEST, charges=self.paid(ledger), draw=self.draw, facts={"name": key})

    def draw(self) -> bytes:
        self.n_drawn += 1
        self.drawn.append((TOTALS + SystemNoise().draw(TOTALS.size)).tobytes())
        return self.drawn[-1]

    def act(self) -> None:
        with self.store.open() as ledger:
            if self.scenario in ("make", "open"):
                ledger.open_accounts("rating", ["first", "second"], CAP)
            if self.scenario in ("make", "release", "settle"):
                self.done = self.ask(ledger, "next")

    def check(self, store: Store) -> None:
        """Look at the ledger in another store that has what survived."""
        text = store.anchor.read_bytes() if store.anchor.exists() else b""
        anchored = [line for line in text.splitlines(keepends=True) if line.endswith(b"\n") and b" charge " in line]
        assert len(anchored) >= self.n_drawn, "noise was drawn before its charge was anchored"
        with store.open() as ledger:
            assert verify(ledger.book) == []
            charged = ledger.book.entries("kind = 'charge'")
            known = {entry.release_id.hex() for entry in charged if entry.release_id}
            artefacts = {path.name for path in store.folder.iterdir() if len(path.name) == 32}
            assert artefacts <= known, "an artefact has no charge"
            assert len(charged) >= self.n_drawn, "noise was drawn that is not charged"
            if self.n_drawn:
                assert ledger.spent(ledger.account("rating", "first")).cost == len(charged) * COST
            if self.done is not None:
                assert ledger.released("next", request=REQUEST) == self.done, "what was returned is lost"
            if self.scenario != "make":
                assert ledger.released("first", request=REQUEST) == self.first
            n_charges = len(charged)
            ledger.open_accounts("rating", ["first", "second"], CAP)
            before = len(self.drawn)
            again = self.ask(ledger, "next")
            assert again in self.drawn
            assert len({*self.drawn}) == len(self.drawn), "noise was drawn twice alike"
            paid = len(ledger.book.entries("kind = 'charge'")) - n_charges
            assert paid == len(self.drawn) - before, "a draw was not paid"
            assert verify(ledger.book) == []


@contextmanager
def folder() -> Iterator[Path]:
    memory = Path("/dev/shm")  # noqa: S108
    made = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


SCENARIOS = ("make", "open", "release", "settle")


def begun(scenario: str, root: Path) -> Trial:
    return Trial(Store(root), scenario)


def calls_of(scenario: str) -> int:
    """Return how many calls the disk gets."""
    with folder() as root:
        trial = begun(scenario, root)
        disk = Disk(root)
        with running_on(disk):
            trial.act()
        return len(disk.calls)


def power_cuts(rng: np.random.Generator, n: int, scenarios: tuple[str, ...] = SCENARIOS) -> Counter[str]:
    """Cut the power n times, before every call in turn, and look at what is left."""
    found: Counter[str] = Counter()
    places = [(scenario, at) for scenario in scenarios for at in range(1, calls_of(scenario) + 2)]
    for number in range(n):
        scenario, at = places[number % len(places)]
        loss = LOSSES[rng.integers(len(LOSSES))] if number >= len(places) else "drop"
        with folder() as root, folder() as left:
            trial = begun(scenario, root)
            disk = Disk(root)
            disk.cut = at
            with running_on(disk), suppress(PowerCut, GoodfenceError):
                trial.act()
            disk.off = True
            disk.survive(left, loss, rng)
            trial.check(Store(left))
            found[scenario] += 1
    return found


def failing_calls(every: int = 1, scenarios: tuple[str, ...] = SCENARIOS) -> Counter[str]:
    """Let the n-th call fail, for every n and error; the ledger must say so plainly and go on afterwards."""
    found: Counter[str] = Counter()
    for scenario in scenarios:
        for at in range(1, calls_of(scenario) + 1, every):
            for error in ERRORS:
                with folder() as root:
                    trial = begun(scenario, root)
                    disk = Disk(root)
                    disk.failing = (at, error)
                    with running_on(disk):
                        try:
                            trial.act()
                        except LedgerProblem:
                            found["refused"] += 1
                        else:
                            found["done"] += 1
                    trial.check(trial.store)
    return found


POINTS = (
    "batch closed",
    "sums made",
    "transaction open",
    "entry in",
    "rows in",
    "committed",
    "anchor written",
    "anchor synced",
    "noise drawn",
    "temp written",
    "temp synced",
    "renamed",
    "folder synced",
    "end committed",
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def dying_at(point: str, stage: int) -> Iterator[Callable[[str, int], None]]:
    """Kill this process at a point of a stage of the toy fit; yield what the fit calls at its own points."""
    now: Counter[str] = Counter()

    def reached(name: str, at: int | None = None) -> None:
        now[name] += 1
        if name == point and (now[name] if at is None else at) == stage:
            die()

    def after(owner: Any, attribute: str, name: Callable[..., str | None]) -> Any:
        true = getattr(owner, attribute)

        def run(*arguments: Any, **named: Any) -> Any:
            result = true(*arguments, **named)
            which = name(*arguments)
            if which:
                reached(which)
            return result

        return patch.object(owner, attribute, run)

    def statement(_: Any, text: str, *__: Any) -> str | None:
        if text.startswith("BEGIN"):
            return "transaction open"
        if text.startswith("COMMIT"):
            return "committed" if now["rows in"] > now["committed"] else "end committed"
        return None

    with (
        after(Database, "rows", statement),
        after(Book, "append", lambda _, kind, *__: "entry in" if kind == "charge" else None),
        after(Book, "book", lambda *_: "rows in"),
        patch.object(anchor, "os", _Os({"pwrite": "anchor written", "fsync": "anchor synced"}, reached)),
        patch.object(
            journal, "os", _Os({"write": "temp written", "fsync": "temp synced", "rename": "renamed"}, reached)
        ),
        after(journal, "sync_folder", lambda *_: "folder synced"),
    ):
        yield reached


class _Os:
    """The module `os`, which tells when some functions have returned."""

    def __init__(self, names: dict[str, str], reached: Callable[[str], None]) -> None:
        self._names, self._reached = names, reached

    def __getattr__(self, name: str) -> Any:
        true = getattr(os, name)
        if name not in self._names:
            return true

        def run(*arguments: Any, **named: Any) -> Any:
            result = true(*arguments, **named)
            self._reached(self._names[name])
            return result

        return run


STAGES = 3


def toy_fit(store: Store, log: Path, reached: Callable[[str, int], None]) -> bytes:
    """Release three stages, each asking for what depends on the ones before; the log has a line for each draw."""
    result = b""
    with store.open() as ledger:
        [account] = ledger.open_accounts("rating", ["batch"], CAP)
        for stage in range(1, STAGES + 1):
            reached("batch closed", stage)
            reached("sums made", stage)

            def draw(stage: int = stage) -> bytes:
                noise = SystemNoise().draw(4).tobytes()
                with log.open("ab") as lines:
                    lines.write(b"%d %s\n" % (stage, noise.hex().encode()))
                reached("noise drawn", stage)
                return noise

            result += ledger.release(
                f"fit/{stage}", request=b"%d" % stage + result, charges=[Charge(account, COST, 1)], draw=draw, facts={}
            )
    return result


def in_child(work: Callable[[], None], seconds: float | None = None) -> int:
    """Run work in a forked process; kill it after some seconds; return its status."""
    child = os.fork()
    if child == 0:
        code = 3
        with suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def kills(store: Store, rng: np.random.Generator, point: str | None) -> int:
    """Kill a toy fit at a point, or at random; finish it, killed now and then again; return the number of kills.

    No draw may be without its charge, and at most the stage in flight is paid twice for each kill.
    """
    log = store.root / "draws.log"
    n_killed = 0
    stage = int(rng.integers(1, STAGES + 1))

    def named() -> None:
        with dying_at(point or "", stage) as reached:
            toy_fit(store, log, reached)

    def plain() -> None:
        toy_fit(store, log, lambda *_: None)

    status = in_child(named) if point else in_child(plain, float(rng.uniform(0, 0.03)))
    n_killed += os.WIFSIGNALED(status)
    finished = toy_fit(store, log, lambda *_: None)
    assert toy_fit(store, log, lambda *_: None) == finished, "a finished fit is not repeated"
    with store.open() as ledger:
        assert verify(ledger.book) == []
        charges = Counter(str(entry.idem).partition("#")[0] for entry in ledger.book.entries("kind = 'charge'"))
        draws = Counter(f"fit/{int(line.split()[0])}" for line in log.read_bytes().splitlines())
        assert all(charges[key] >= n for key, n in draws.items()), "a draw without a charge"
        assert sum(charges.values()) <= STAGES + n_killed, "more was paid twice than was in flight"
        assert len({*log.read_bytes().splitlines()}) == sum(draws.values()), "noise was drawn twice alike"
        parts = [ledger.released(f"fit/{at}", request=b"%d" % at + finished[: 32 * (at - 1)]) for at in (1, 2, 3)]
        assert b"".join(part or b"" for part in parts) == finished, "the resumed fit is another"
    return n_killed


def race(store: Store, n_processes: int = 8, n_granted: int = 20) -> None:
    """Let processes ask for releases until the cap is reached: exactly so many are granted as it allows."""
    with store.open() as ledger:
        [account] = ledger.open_accounts("rating", ["batch"], Cap(n_granted * COST + COST // 2, 10**6))
    history = store.root / "history"

    def work(name: int) -> None:
        number = 0
        with store.open() as ledger:
            while True:
                number += 1
                try:
                    ledger.release(
                        f"{name}/{number}", request=b"", charges=[Charge(account, COST, 1)], draw=lambda: b"x", facts={}
                    )
                except CapExceeded:
                    return
                with history.open("ab") as lines:
                    fcntl.flock(lines, fcntl.LOCK_EX)
                    lines.write(b"granted\n")

    children = []
    for name in range(n_processes):
        child = os.fork()
        if child == 0:
            code = 3
            with suppress(BaseException):
                work(name)
                code = 0
            os._exit(code)
        children.append(child)
    ends = [os.waitpid(child, 0)[1] for child in children]
    assert ends == [0] * n_processes, "a process ended otherwise than at the cap"
    with store.open() as ledger:
        assert verify(ledger.book) == []
        assert len(history.read_bytes().splitlines()) == n_granted
        assert ledger.spent(account).cost == n_granted * COST
        assert len(ledger.book.entries("kind = 'release'")) == n_granted


WAYS = ("old ledger", "old data", "both", "fork", "anchor of another ledger")


def put_back(store: Store, rng: np.random.Generator, way: str) -> bool:
    """Put an older copy of something back; return whether that is noticed before anything can be released."""
    with store.open() as ledger:
        for number in range(int(rng.integers(1, 4))):
            [account] = ledger.open_accounts("rating", [f"batch {number}"], CAP)
            ledger.release(f"{number}", request=b"", charges=[Charge(account, COST, 1)], draw=bytes, facts={})
        state, known, old, old_anchor = ledger.state(), [account], store.backup(), store.anchor.read_bytes()
        for number in range(4, 4 + int(rng.integers(1, 4))):
            [account] = ledger.open_accounts("rating", [f"batch {number}"], CAP)
            ledger.release(f"{number}", request=b"", charges=[Charge(account, COST, 1)], draw=bytes, facts={})
        newest, anchored = ledger.state(), store.anchor.read_bytes()
        if way == "old data":
            return _refused(lambda: ledger.require_state(state, known))
    if way == "anchor of another ledger":
        with folder() as other:
            second = Store(other)
            second.open().close()
            store.anchor.write_bytes(second.anchor.read_bytes())
        return _refused(store.open)
    store.put_back(old)
    if way == "fork":
        store.anchor.write_bytes(old_anchor)
        with store.open() as ledger:
            [account] = ledger.open_accounts("rating", ["batch 4"], CAP)
            ledger.release("4", request=b"", charges=[Charge(account, COST, 1)], draw=bytes, facts={})
            refused = _refused(lambda: ledger.require_state(newest, known))
            store.anchor.write_bytes(anchored)
            asked = [Charge(account, COST, 1)]
            return refused and _refused(lambda: ledger.release("5", request=b"", charges=asked, draw=bytes, facts={}))
    return _refused(store.open)


def _refused(asked: Callable[[], object]) -> bool:
    try:
        asked()
    except RolledBack:
        return True
    return False
