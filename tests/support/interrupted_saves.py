"""Saving a model, interrupted: killed at any moment, two writers at once, a full disk, a folder that is read-only.

Whatever happens, there is a whole model at the path, one of those that were saved. Processes are forked, so run it as a
program: `python -m tests.support.interrupted_saves N SEED`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import goodfence as gf
from goodfence.errors import GoodfenceError

RATINGS = gf.synthetic(users=80, items=40, ratings=1200, rng=2)
NOBODY = 65534


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


def full_disk(path: Path, saved: list[Any], rng: np.random.Generator) -> bool:
    """Save where files cannot grow beyond some bytes, fewer than either model has."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = int(rng.integers(0, 15_000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return refused(path, saved, limit)


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
    "full disk": (full_disk, 0.1),
    "read-only folder": (read_only, 0.1),
}
"""What is done, and its share of all tries."""


def run(n: int, seed: int) -> dict[str, list[int]]:
    """Return, by what was done, how often, and how often there was a whole model afterwards."""
    rng, saved, found = np.random.default_rng(seed), models(), {}
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        path = Path(name) / "model.gf"
        for model in saved:
            model.save(path)
        for kind, (interrupt, share) in KINDS.items():
            times = max(1, round(n * share))
            found[kind] = [times, sum(interrupt(path, saved, rng) for _ in range(times))]
        saved[0].save(path)
        left = [entry.name for entry in Path(name).iterdir()]
        found["nothing left beside the model"] = [1, int(left == ["model.gf"])]
    return found


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))  # noqa: T201
