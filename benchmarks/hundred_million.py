"""A hundred million ratings on one machine: 480,189 users, 17,770 films, 100,480,507 ratings; time and peak memory.

Made up at the size and with the skew of the Netflix Prize, block by block, or the real file (`--file`). Every part
runs in a process of its own, which reads the file first; its seconds are without the reading, its memory is with it.

    ./scripts/bench hundred_million                 # all parts
    ./scripts/bench hundred_million load films      # some of them; what was measured before stays in the table
    ./scripts/bench hundred_million --share 0.1     # a tenth of the users and ratings
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.results import write_table
from documents.tables import measured as table
from goodfence.arrays import row_numbers
from goodfence.data.frame import ReadOptions

USERS, FILMS, RATINGS = 480_189, 17_770, 100_480_507
BLOCK = 1 << 20
"""Ratings of a row group: the file is written one at a time."""
MOST_BYTES = 8 << 30
"""The columns of the file, inflated, are larger than what is read unasked."""
MOST_GIB = 12.0
MUST = {"load": 40.0, "films": 60.0, "users": 900.0, "PrivateCF": 240.0, "PrivateTopN": 180.0}
"""Seconds."""
HEAD = ["what", "users", "ratings", "seconds", "must", "met", "peak memory, GiB", "at most 12 GiB", "found"]


def made(share: float) -> Path:
    """Return the made-up file; write it if it is not there."""
    path = CACHE / f"hundred-million-{share:g}.parquet"
    if not path.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            pool.submit(write, path, share).result()
    return path


def write(path: Path, share: float) -> None:
    ratings = gf.synthetic(users=int(USERS * share), items=FILMS, ratings=int(RATINGS * share), rng=7)
    csr, partial = ratings.csr, path.with_suffix(".partial")
    schema = pa.schema([("user", pa.int32()), ("item", pa.int32()), ("rating", pa.int8())])
    rows = row_numbers(csr.indptr)
    with parquet.ParquetWriter(partial, schema) as file:
        for first in range(0, csr.nnz, BLOCK):
            some = slice(first, first + BLOCK)
            cells = ratings.users[rows[some]], ratings.items[csr.indices[some]], csr.data[some]
            file.write_table(
                pa.table(
                    [pa.array(each).cast(kind.type) for each, kind in zip(cells, schema, strict=True)], schema=schema
                )
            )
    partial.rename(path)


def films(ratings: gf.Ratings) -> str:
    lists = gf.candidate_lists(ratings, n=100, axis="item")
    return f"{len(lists.indices):,} lists of 100"


def users(ratings: gf.Ratings) -> str:
    lists = gf.candidate_lists(ratings, n=100)
    return f"{len(lists.indices):,} lists of 100"


def ppns(ratings: gf.Ratings) -> str:
    model = gf.NeighbourCF(gf.PPNS(k=20, beta=5), rng=7).fit(ratings)
    return f"{len(model.neighbours_):,} users with 20 neighbours"


def private_cf(ratings: gf.Ratings) -> str:
    train, test = gf.holdout(ratings, fraction=0.01, rng=7)
    began = time.perf_counter()
    model = gf.PrivateCF(epsilon=1.0, delta=1e-6, items="from ratings").fit(train)
    seconds = time.perf_counter() - began
    return json.dumps({"seconds": seconds, "found": f"MAE {gf.evaluate(model, test).mae:.3f}"})


def private_lists(ratings: gf.Ratings) -> str:
    train, test = gf.holdout(ratings.likes(4), fraction=0.01, rng=7)
    began = time.perf_counter()
    model = gf.PrivateTopN(epsilon=1.0, delta=1e-6, items="from ratings").fit(train)
    seconds = time.perf_counter() - began
    return json.dumps({"seconds": seconds, "found": f"NDCG@10 {gf.evaluate(model, test).ndcg:.3f}"})


def evaluated(ratings: gf.Ratings) -> str:
    train, test = gf.holdout(ratings, fraction=0.2, rng=7)
    model = gf.PrivateMeans(epsilon=1.0, delta=1e-6, items="from ratings").fit(train)
    began = time.perf_counter()
    scores = gf.evaluate(model, test)
    return json.dumps(
        {"seconds": time.perf_counter() - began, "found": f"{scores.n:,} predictions, MAE {scores.mae:.3f}"}
    )


def attacked(ratings: gf.Ratings) -> str:
    report = gf.KNNAttack(known=8).run(ratings, gf.KNN(k=20), targets=1_000, rng=7)
    return f"{report.n_targets:,} targets, advantage {report.advantage:.3f}"


PARTS: dict[str, Callable[[gf.Ratings], str]] = {
    "load": lambda ratings: f"{ratings.n_ratings:,} ratings",
    "films": films,
    "users": users,
    "PPNS": ppns,
    "PrivateCF": private_cf,
    "PrivateTopN": private_lists,
    "evaluate": evaluated,
    "attack": attacked,
}
TITLES = {
    "load": "load a parquet",
    "films": "lists by films, n=100",
    "users": "lists by users, n=100",
    "PPNS": "fit PPNS, k=20, beta=5",
    "PrivateCF": "fit PrivateCF, rating, epsilon 1",
    "PrivateTopN": "fit PrivateTopN, event, epsilon 1, likes of 4 and more",
    "evaluate": "evaluate a fifth",
    "attack": "attack kNN, k=20, 1,000 targets",
}


def measure(part: str, path: Path) -> dict[str, Any]:
    """Measure one part in this process."""
    began = time.perf_counter()
    ratings = gf.load(path, scale=(1, 5, 1), read=ReadOptions(max_bytes=MOST_BYTES))
    if part != "load":
        began = time.perf_counter()
    found: dict[str, Any] = {"found": PARTS[part](ratings), "seconds": time.perf_counter() - began}
    if found["found"].startswith("{"):
        found |= json.loads(found["found"])
    shape = {"users": f"{ratings.shape[0]:,}", "ratings": f"{ratings.n_ratings:,}"}
    return {**shape, **found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def row(part: str, found: dict[str, Any]) -> list[str]:
    seconds, must = found["seconds"], MUST.get(part)
    judged = [f"{must:g}", "yes" if seconds <= must else "NO"] if must is not None else ["", ""]
    within = "yes" if found["peak"] <= MOST_GIB else "NO"
    words = [f"{seconds:.1f}", *judged, f"{found['peak']:.1f}", within, found["found"]]
    return [TITLES[part], found["users"], found["ratings"], *words]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless named")
    parser.add_argument("--share", type=float, default=1.0, help="of the users and ratings")
    parser.add_argument("--file", type=Path, default=None, help="a parquet of real ratings: user, item, rating")
    options = parser.parse_args()
    path = options.file or made(options.share)
    lines = {(line[0], line[2]): line for line in (list(each.values()) for each in table("hundred_million"))}
    for part in options.parts or PARTS:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            line = row(part, pool.submit(measure, part, path).result())
        print(*line, sep=" | ", flush=True)
        lines[line[0], line[2]] = line
        order = list(TITLES.values())
        rows = sorted(lines.values(), key=lambda each: (int(each[2].replace(",", "")), order.index(each[0])))
        write_table("hundred_million", "A hundred million ratings on one machine", HEAD, rows, threads=2)


if __name__ == "__main__":
    main()
