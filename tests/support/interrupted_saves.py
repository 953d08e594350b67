"""Saving a model, interrupted: killed at any moment, two writers at once, a full disk, a folder that is read-only.

Whatever happens, there is a whole model at the path, one of those that were saved. Processes are forked, so run it as a
program: `python -m tests.support.interrupted_saves N SEED`. With `mount` behind it the full disk is a small file system
of its own, where one can be mounted; else the system refuses files above a size.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import goodfence as gf
from goodfence.errors import GoodfenceError

RATINGS = gf.synthetic(users=80, items=40, ratings=1200, rng=2)
NOBODY = 65534
DISK = 2**18
ROOM = 12_000
"""Bytes that are left where a disk is full, at most: fewer than either model takes."""


def models() -> list[Any]:
    """Return two fitted models that can be told apart, and are of different sizes."""
    private = gf.PrivateMeans(epsilon=1.0, items="from ratings")
    return [gf.NeighbourCF(gf.KNN(k=30)).fit(RATINGS), private.fit(RATINGS)]


def is_whole(path: Path, saved: list[Any]) -> bool:
    """Return whether the model at the path is one of the saved ones, to the last prediction."""
    try:
        found: Any = gf.load_model(path)
    except GoodfenceError:
        return False
    users, items = RATINGS.users[:10], RATINGS.items[:10]
    twin = next(model for model in saved if type(model) is type(found))
    same = np.array_equal(found.predict(users, items), twin.predict(users, items), equal_nan=True)
    return bool(same and found.guarantee() == twin.guarantee())


def forked(work: Callable[[], None]) -> int:
    """Start a process that does the work, and return its number."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    return child


def saving(path: Path, saved: list[Any], first: int) -> None:
    """Save one model after the other, without an end."""
    while True:
        saved[first % len(saved)].save(path)
        first += 1


def killed(path: Path, saved: list[Any], rng: np.random.Generator) -> bool:
    """Kill a process that saves, at any moment."""
    child = forked(lambda: saving(path, saved, int(rng.integers(2))))
    time.sleep(float(rng.uniform(0.0, 0.04)))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return is_whole(path, saved)


def two_writers(path: Path, saved: list[Any], rng: np.random.Generator) -> bool:
    """Load while two processes save, then kill both."""
    children = [forked(lambda first=first: saving(path, saved, first)) for first in (0, 1)]  # type: ignore[misc]
    until = time.monotonic() + float(rng.uniform(0.0, 0.1))
    whole = is_whole(path, saved)
    while time.monotonic() < until:
        whole = whole and is_whole(path, saved)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return whole and is_whole(path, saved)


def refused(path: Path, saved: list[Any], limit: Callable[[], None]) -> bool:
    """Save under a limit that makes it fail: one sentence, and what was there stays."""

    def work() -> None:
        limit()
        try:
            for model in saved:
                model.save(path)
        except gf.GoodfenceError:
            return
        raise AssertionError

    _, status = os.waitpid(forked(work), 0)
    return os.waitstatus_to_exitcode(status) == 0 and is_whole(path, saved)


def no_large_files(path: Path, saved: list[Any], rng: np.random.Generator) -> bool:
    """Save where files cannot grow beyond some bytes."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = int(rng.integers(0, ROOM))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return refused(path, saved, limit)


def full_disk(path: Path, saved: list[Any], rng: np.random.Generator) -> bool:
    """Save on a small file system that something else fills, but for some bytes."""
    saved[int(rng.integers(2))].save(path)
    filler = path.with_name("filler")
    free = os.statvfs(path.parent)
    room = int(rng.integers(0, ROOM))
    try:
        filler.write_bytes(bytes(free.f_bavail * free.f_frsize - room))
        return refused(path, saved, lambda: None)
    finally:
        filler.unlink()


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[bool]:
    """Mount a small file system in memory at the folder; whether that was possible."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", os.fspath(folder)]
    try:
        possible = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        possible = False
    try:
        yield possible
    finally:
        if possible:
            command = ["umount", os.fspath(folder)]
            subprocess.run(command, check=True)
        folder.rmdir()


def read_only(path: Path, saved: list[Any], _: np.random.Generator) -> bool:
    """Save where nothing may be written."""
    path.parent.chmod(0o555)

    def limit() -> None:
        if os.geteuid() == 0:  # whom no permission stops
            os.setegid(NOBODY)
            os.seteuid(NOBODY)

    try:
        return refused(path, saved, limit)
    finally:
        path.parent.chmod(0o755)


KINDS: dict[str, tuple[Callable[..., bool], float]] = {
    "killed while saving": (killed, 0.7),
    "two writers, a reader, and killed": (two_writers, 0.1),
    "full disk, as a limit on the size of files": (no_large_files, 0.1),
    "full disk, a file system of its own": (full_disk, 0.1),
    "read-only folder": (read_only, 0.1),
}
"""What is done, and its share of all tries."""


def run(n: int, seed: int, *, mount: bool) -> dict[str, list[int]]:
    """Return, by what was done, how often, and how often there was a whole model afterwards."""
    rng, saved, found = np.random.default_rng(seed), models(), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with mounted(folder / "disk") if mount else contextlib.nullcontext(False) as possible:
            left_out = no_large_files if possible else full_disk
            for kind, (interrupt, share) in KINDS.items():
                if interrupt is left_out:
                    continue
                path = folder / ("disk" if interrupt is full_disk else "") / "model.gf"
                for model in saved:
                    model.save(path)
                times = max(1, round(n * share))
                found[kind] = [times, sum(interrupt(path, saved, rng) for _ in range(times))]
        for entry in folder.iterdir():  # what killed writers left is swept once it is old
            os.utime(entry, (0, 0))
        saved[0].save(folder / "model.gf")
        left = [entry.name for entry in folder.iterdir()]
        found["nothing left beside the model"] = [1, int(left == ["model.gf"])]
    return found


if __name__ == "__main__":
    mount = sys.argv[3:] == ["mount"]
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]), mount=mount)))  # noqa: T201
