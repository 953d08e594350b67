"""Fuzzing, guided by coverage, of the readers and of the model loader: what reaches new lines is changed further."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.results import write_table
from tests.support import fuzzing

BATCH = 120.0
"""Seconds of processor that a process lives: a fresh one has fresh memory."""
MOST_SEEDS = 300 * 2**10
"""Bytes of the seeds that are kept with the tests."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of processor time, in all")
    parser.add_argument("--seed", type=int, default=18)
    default = Path(tempfile.gettempdir()) / "goodfence-fuzz"
    parser.add_argument("--folder", type=Path, default=default, help="where work is kept")
    parser.add_argument("--keep", action="store_true", help="keep the seeds with the tests")
    asked = parser.parse_args()
    corpus, found = asked.folder / "corpus", asked.folder / "found"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    for path in fuzzing.SEEDS.glob("*.*"):
        shutil.copy(path, corpus)
    for ending, content in fuzzing.first_seeds():
        fuzzing.write(corpus, ending, content)
    state = asked.folder / "state.json"
    total = Counter(json.loads(state.read_text("utf-8")) if state.exists() else {})
    while total["seconds"] < 60 * asked.minutes - 5:
        left = min(BATCH, 60 * asked.minutes - total["seconds"])
        total.update(batch(corpus, found, asked.seed + total["processes"], left))
        state.write_text(json.dumps(total), encoding="utf-8")
        sys.stderr.write(f"{dict(total)}, {len(list(corpus.iterdir()))} seeds\n")
    report(total, corpus, found, asked.seed)
    if asked.keep:
        keep(corpus)


def batch(corpus: Path, found: Path, number: int, seconds: float) -> dict[str, float]:
    """Fuzz in a process of its own, and return what it did; one that ends by a signal is something wrong."""
    before = _spent()
    arguments = [str(corpus), str(found), str(number), str(seconds)]
    command = [sys.executable, "-m", "tests.support.fuzzing", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    told: dict[str, float] = {"tried": 0, "kept": 0}
    if done.returncode:
        late = done.returncode == -signal.SIGPROF
        what = f"over {fuzzing.LONGEST} s" if late else f"ended with {done.returncode}"
        ending, content = (found / "current").read_bytes().split(b"\n", 1)
        fuzzing.report(found, what, ending.decode(), content)
    else:
        told = json.loads(done.stdout)
    return {"processes": 1, "tried": told["tried"], "kept": told["kept"], "seconds": _spent() - before}


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(total: Counter[str], corpus: Path, found: Path, seed: int) -> None:
    """Write the table."""
    wrong = Counter[str]()
    for kind in found.iterdir():
        if kind.is_dir():
            wrong[_class(kind.name)] += len(list(kind.iterdir()))
    classes = ("signals", "raw errors", "ids in messages", "over the memory limit", "over 20 s")
    head = ["processor, min", "inputs", "seeds", *classes]
    row = [
        f"{total['seconds'] / 60:.0f}",
        f"{total['tried']:,}",
        str(len(list(corpus.iterdir()))),
        *(str(wrong[one]) for one in classes),
    ]
    title = "Fuzzing of the readers and the model loader"
    limit = f"{fuzzing.LIMIT // 2**20} MiB within a factor of {fuzzing.FACTOR:g}"
    write_table("fuzz", title, head, [row], seed=seed, memory=limit)


def _class(name: str) -> str:
    if name.startswith("ended"):
        return "signals"
    if name.startswith("over"):
        return "over 20 s"
    if name.endswith("MiB"):
        return "over the memory limit"
    return "ids in messages" if name.startswith("an-id") else "raw errors"


def keep(corpus: Path) -> None:
    """Keep the smallest seeds with the tests that together execute what all of them execute."""
    fuzzing.SEEDS.mkdir(exist_ok=True)
    for path in fuzzing.SEEDS.glob("*.*"):
        path.unlink()
    lines, spent = fuzzing.Lines(), 0
    for path in sorted(corpus.iterdir(), key=lambda path: (path.stat().st_size, path.name)):
        with tempfile.TemporaryDirectory() as folder:
            tried = Path(shutil.copy(path, Path(folder, f"a{fuzzing.ending_of(path)}")))
            with lines:
                fuzzing.judged(tried)
        if lines.new and spent + path.stat().st_size <= MOST_SEEDS:
            spent += path.stat().st_size
            shutil.copy(path, fuzzing.SEEDS)


if __name__ == "__main__":
    main()
