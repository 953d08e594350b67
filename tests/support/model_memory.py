"""How much memory a loaded and asked model takes, over the limit that it was loaded with: the largest that passes it.

Run as a program, `python -m tests.support.model_memory FILE LIMIT`, it loads and asks, and prints bytes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import goodfence as gf
from goodfence.data.ratings import Ratings
from goodfence.errors import ModelFileError
from goodfence.models.persistence import load_model
from goodfence.models.private.item_model import ItemModel
from goodfence.neighbours.draw import Chosen
from tests.support.hostile_models import ask


def _private(items: Any, n_users: int = 0, per_user: int = 0) -> Any:
    columns = np.tile(np.arange(per_user), n_users)
    starts = np.arange(n_users + 1) * per_user
    csr = sparse.csr_array((np.full(len(columns), 3.0), columns, starts), shape=(n_users, len(items)))
    ratings = Ratings(csr, np.arange(n_users), items, scale=(1, 5))
    few = Ratings(sparse.csr_array((1, 2)), [1], [1, 2], scale=(1, 5))
    fitted = gf.PrivateMeans(epsilon=1.0, items="from ratings").fit(few)
    each = np.ones(len(items))  # a fit of so many items would take minutes, and as much memory
    return fitted.restore(ratings, ItemModel(each, each[:, None], each, each), fitted.record_)


def _neighbours(n_users: int, k: int, per_user: int, axis: Any) -> Any:
    n_items = 4 * per_user
    columns = (np.arange(n_users)[:, None] % 3 + 4 * np.arange(per_user)).ravel()
    starts = np.arange(n_users + 1) * per_user
    csr = sparse.csr_array((np.full(len(columns), 3.0), columns, starts), shape=(n_users, n_items))
    ratings = Ratings(csr, np.arange(n_users), np.arange(n_items), scale=(1, 5))
    n_rows = n_users if axis == "user" else n_items
    shape = (n_rows, k)
    chosen = Chosen(np.zeros(shape, dtype=np.int32), np.full(shape, 0.5), np.full(shape, 0.5))
    return gf.NeighbourCF(gf.KNN(k=k), axis=axis, fallback="item_mean").restore(ratings, 1, chosen)


KINDS: dict[str, Callable[[int], Any]] = {
    "many items, numbered": lambda n: _private(np.arange(n * 8000)),
    "many items, short text": lambda n: _private([f"{i:x}" for i in range(n * 8000)]),
    "items of long text": lambda n: _private([f"{i}" + "é" * 400 for i in range(n * 400)]),
    "many ratings, private": lambda n: _private(np.arange(1000), n_users=n * 50, per_user=500),
    "many ratings, by users": lambda n: _neighbours(n * 50, 5, 500, "user"),
    "many ratings, by items": lambda n: _neighbours(n * 50, 5, 500, "item"),
    "many neighbours": lambda n: _neighbours(n * 50, 400, 10, "user"),
}
"""Models that are made of one thing mostly, of a size that grows with a number."""


def passes(path: Path, limit: int) -> bool:
    """Return whether a model is within the limit."""
    try:
        load_model(path, max_bytes=limit)
    except ModelFileError:
        return False
    return True


def largest(kind: str, path: Path, limit: int) -> None:
    """Save the largest model of a kind, to some per cent, that is within the limit."""
    low, high = 1, 2
    make = KINDS[kind]
    while True:
        make(high).save(path)
        if not passes(path, limit):
            break
        low, high = high, 2 * high
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        make(middle).save(path)
        low, high = (middle, high) if passes(path, limit) else (low, middle)
    make(low).save(path)


def peak_share(path: Path, limit: int) -> float:
    """Return the memory that loading and asking takes in a process of its own, over the limit."""
    command = [sys.executable, "-m", "tests.support.model_memory", str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) / limit


def _peak() -> int:
    """Return the most memory that this process has held since it was last forgotten."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def _forget() -> None:
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    import tempfile

    place, limit = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:  # what libraries and compiled code take is not the model's
        for index, model in enumerate((_private(np.arange(50), 5, 10), _neighbours(30, 3, 10, "user"))):
            model.save(Path(name) / str(index))
            ask(load_model(Path(name) / str(index)))
    _forget()
    before = _peak()
    ask(load_model(place, max_bytes=int(limit)))
    print(_peak() - before)  # noqa: T201
