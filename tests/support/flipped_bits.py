"""Files of ratings with some bits flipped, read in processes of their own: whatever the harm, Python lives on.

python -m tests.support.flipped_bits FIRST LAST     read the files of these numbers, one line for each
"""

from __future__ import annotations

import gzip
import io
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import goodfence as gf
from goodfence.data.frame import ReadOptions
from goodfence.data.problems import count_problems
from goodfence.errors import DataError, GoodfenceWarning

N_ROWS = 40


@cache
def originals() -> dict[str, bytes]:
    """Return good files: parquet of several kinds, text, and gzip."""
    numbers = np.arange(N_ROWS)
    plain: dict[str, Any] = {"userId": numbers, "movieId": numbers % 7, "rating": numbers % 5 + 0.5}
    texts = {**plain, "userId": [f"u{at}" for at in numbers]}
    lines = "userId,movieId,rating\n" + "".join(f"u{at},{at % 7},{at % 5}\n" for at in numbers)
    files = {
        "integers.parquet": _written(plain),
        "text.parquet": _written(texts),
        "groups.parquet": _written(texts, row_group_size=7, compression="zstd"),
        "pages.parquet": _written(texts, data_page_version="2.0", use_dictionary=False, write_page_index=True),
        "delta.parquet": _written(texts, use_dictionary=False, column_encoding={"userId": "DELTA_BYTE_ARRAY"}),
        "a.csv": lines.encode(),
        "a.dat": lines.replace(",", "::").split("\n", 1)[1].encode(),
    }
    return {**files, "a.csv.gz": gzip.compress(files["a.csv"])}


def _written(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def flipped(number: int) -> tuple[str, bytes]:
    """Return the name and the content of the file of a number: one to eight bits are not what they were."""
    chance = random.Random(number)
    name = chance.choice(sorted(originals()))
    content = bytearray(originals()[name])
    for _ in range(chance.choice([1, 1, 1, 2, 8])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return name, bytes(content)


def read(number: int, folder: Path) -> str:
    """Return what became of the file of a number: read, refused, or the raw error."""
    name, content = flipped(number)
    path = folder / name
    path.write_bytes(content)
    told = "read"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)
        for attempt in (lambda: gf.load(path), lambda: count_problems(path, ReadOptions())):
            try:
                attempt()
            except DataError:
                told = "refused"
            except Exception as problem:
                return f"raw {type(problem).__name__}"
    return told


def outcomes(first: int, last: int) -> Iterator[tuple[int, str]]:
    """Yield the number of each file and what became of it; a process that ends is told as its signal."""
    while first < last:
        command = [sys.executable, "-m", "tests.support.flipped_bits", str(first), str(last)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = [line.split(" ", 1) for line in done.stdout.splitlines()]
        for number, told in found:
            yield int(number), told
        first += len(found)
        if first < last:  # it ended while it read this one
            yield first, f"ended with {done.returncode}"
            first += 1


def main() -> None:
    """Read the files of the numbers that the command line names."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(int(sys.argv[1]), int(sys.argv[2])):
            sys.stdout.write(f"{number} {read(number, Path(folder))}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
