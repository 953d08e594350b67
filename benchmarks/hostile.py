"""Files and settings with bad intentions, each with its right outcome: odd files, bombs, flipped bits, settings."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.results import write_table
from tests.support import bad_settings, flipped_bits, odd_events, odd_files

N_FILES, N_FLIPPED = 3000, 20_000
LONGEST = 20.0
"""Seconds that a file may take."""
MOST = 1.5
"""How many times the stated limit reading may take in memory."""
SETTINGS = """
import sys
from tests.support.bad_settings import cases, tried, values
given = values()
for one, argument, at in cases():
    if one.name in sys.argv[1:]:
        wrong = tried(one, argument, given[at]).replace(chr(10), " ")
        sys.stdout.write(f"{one.name}\\t{argument}\\t{at}\\t{wrong}" + chr(10))
        sys.stdout.flush()
"""
TOGETHER = 12
"""Callables that one process tries."""


def files(n: int = N_FILES) -> list[list[str]]:
    """Return how many odd files of each kind came to what they must."""
    tried, wrong, slow = Counter[str](), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(n):
            odd = odd_events.odd_events(seed) if seed % 4 == 3 else odd_files.odd_file(seed)
            kind = odd.kind.partition(":")[0]
            start = time.monotonic()
            problem = odd_files.outcome(odd, Path(folder))
            tried[kind] += 1
            slow[kind] += time.monotonic() - start > LONGEST
            if problem:
                wrong[f"{kind}: {'misread' if problem == 'misread' else 'other'}"] += 1
                sys.stderr.write(f"file {seed} ({odd.kind}): {problem}\n")
    rows = [
        [kind, f"{count:,}", str(wrong[f"{kind}: misread"]), str(wrong[f"{kind}: other"]), str(slow[kind])]
        for kind, count in sorted(tried.items())
    ]
    total = [f"{sum(tried.values()):,}", *(str(sum(int(row[at]) for row in rows)) for at in (2, 3, 4))]
    return [*rows, ["all", *total]]


def bombs() -> list[list[str]]:
    """Return what became of each bomb, the memory it took over the limit, and the seconds of processor."""
    rows = []
    limit = odd_files.LIMIT
    with tempfile.TemporaryDirectory() as folder:
        for bomb in odd_files.bombs():
            path = Path(folder, bomb.name)
            bomb.make(path)
            size = f"{path.stat().st_size / 2**20:.1f}"
            command = [sys.executable, "-c", odd_files.MEASURED, str(path), str(limit)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            path.unlink()
            if done.returncode:
                rows.append([bomb.name, size, f"ended with {done.returncode}", "", ""])
                continue
            told, more, seconds = json.loads(done.stdout)
            rows.append([bomb.name, size, told, f"{more * 2**20 / limit:.2f}", f"{seconds:.1f}"])
    return rows


def bits(n: int = N_FLIPPED) -> list[list[str]]:
    """Return what became of files with bits flipped."""
    told = Counter[str]()
    for number, outcome in flipped_bits.outcomes(0, n):
        told[outcome] += 1
        if outcome not in ("read", "refused"):
            sys.stderr.write(f"bits {number}: {outcome}\n")
    ended = sum(count for outcome, count in told.items() if outcome.startswith("ended"))
    raw = sum(count for outcome, count in told.items() if outcome.startswith("raw"))
    counts = (n, told["refused"], told["read"], raw, ended)
    return [[f"{count:,}" for count in counts]]


def settings() -> list[list[str]]:
    """Return how many settings of each public callable, and of each method, came to what they must."""
    names = [one.name for one in (*bad_settings.callables(), *bad_settings.methods())]
    rows, total = [], Counter[str]()
    for first in range(0, len(names), TOGETHER):
        some = names[first : first + TOGETHER]
        done = subprocess.run([sys.executable, "-c", SETTINGS, *some], capture_output=True, text=True, check=False)
        lines = [line.split("\t", 3) for line in done.stdout.splitlines()]
        last = lines[-1][0] if lines else some[0]
        for name in some:
            own = [words[3] for words in lines if words[0] == name]
            found = Counter(wrong.split(" ", 1)[0].rstrip(":") for wrong in own if wrong)
            counts = {"tried": len(own), "taken": found["taken"], "raw": found["raw"]}
            counts["refused"] = found["refused"]
            counts["ended"] = int(done.returncode != 0 and name == last)
            total.update(counts)
            rows.append([name, *(f"{count:,}" for count in counts.values())])
        for words in lines:
            if words[3]:
                sys.stderr.write(f"{' '.join(words)}\n")
    return [*rows, ["all", *(f"{total[name]:,}" for name in ("tried", "taken", "raw", "refused", "ended"))]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    for part in parser.parse_args().only:
        TABLES[part]()


def write_files() -> None:
    head = ["layout", "files", "misread", "wrongly read or refused, or a raw error", f"over {LONGEST:g} s"]
    write_table("hostile_files", "Odd and hostile files", head, files(), command="hostile")


def write_bombs() -> None:
    head = ["file", "MiB", "came to", "memory over the limit", "processor, s"]
    limit = f"{odd_files.LIMIT // 2**20} MiB"
    write_table("hostile_bombs", "Files that inflate", head, bombs(), command="hostile", limit=limit)


def write_bits() -> None:
    head = ["files", "refused", "read", "raw errors", "processes ended"]
    write_table("hostile_bits", "Bits flipped", head, bits(), command="hostile")


def write_settings() -> None:
    head = ["callable", "settings", "wrongly taken", "raw errors", "wrongly refused", "processes ended"]
    write_table("hostile_settings", "Settings", head, settings(), command="hostile")


TABLES = {"files": write_files, "bombs": write_bombs, "bits": write_bits, "settings": write_settings}


if __name__ == "__main__":
    main()
