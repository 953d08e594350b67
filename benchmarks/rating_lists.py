"""Lists of the models for ratings: NDCG@10 with default settings, beside a list of bestsellers.

A fifth of the ratings is held out at random. Lists are compared with all that was held out, and with the likes among it
(a rating of 4 or more, 8 on movietweetings' scale of 10); bestsellers are what most people rated, and what most liked.
A list is not below the bestsellers where its NDCG is at least the lower end of their 95% interval over people.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import goodfence as gf
from benchmarks.results import write_table
from documents.tables import measured
from goodfence.evaluation import list_figures
from goodfence.neighbours.lists import rank_alike

DATA = ("movietweetings", "ml-100k", "ml-1m", "douban-movie", "goodbooks", "netflix-tenth")
LIKES = {"movietweetings": 8}
N = 10
HEAD = ["data", "recommender", "NDCG@10, ratings", "bestsellers", "not below"]
HEAD += ["NDCG@10, likes", "bestsellers, likes", "not below, likes"]


def recommenders() -> dict[str, Any]:
    private: dict[str, Any] = {"items": "from ratings"}
    return {
        "kNN, k=50": gf.NeighbourCF(gf.KNN(k=50), progress=False),
        "kNN, item-based, k=50": gf.NeighbourCF(gf.KNN(k=50), axis="item", progress=False),
        "PrivateMeans, ε=1": gf.PrivateMeans(epsilon=1.0, **private),
        "PrivateCF, ε=1": gf.PrivateCF(epsilon=1.0, **private),
        "PrivateMeans, per user, ε=4": gf.PrivateMeans(epsilon=4.0, unit="user", **private),
        "PrivateCF, per user, ε=4": gf.PrivateCF(epsilon=4.0, unit="user", **private),
    }


def rows(data: str, seed: int) -> Iterator[list[str]]:
    """Yield a row of the table for each recommender."""
    train, test = gf.holdout(gf.load(data), fraction=0.2, rng=seed)
    least = LIKES.get(data, 4)
    both = [test, test.likes(least)]
    sellers = [
        bestsellers(train, counted.csr, held_out)
        for counted, held_out in zip((train, train.likes(least)), both, strict=True)
    ]
    for name, model in recommenders().items():
        start = time.perf_counter()
        model.fit(train)
        cells = []
        for held_out, best in zip(both, sellers, strict=True):
            found, (low, high) = figures(model, held_out), best["intervals"]["ndcg"]
            shown = f"{best['ndcg']:.4f} ({low:.4f} to {high:.4f})"
            cells += [f"{found['ndcg']:.4f}", shown, "yes" if found["ndcg"] >= low else "no"]
        print(f"{data} {name}: {cells}, {time.perf_counter() - start:.0f} s", file=sys.stderr)
        yield [data, name, *cells]


def bestsellers(train: gf.Ratings, counted: Any, held_out: gf.Ratings) -> dict[str, Any]:
    """Return the figures of what most people rated, or liked, without what somebody rated themselves."""
    asked = np.flatnonzero(np.diff(held_out.csr.indptr))
    counts = np.bincount(counted.indices, minlength=train.shape[1]).astype(np.float64)
    every = np.ones(train.shape[1], dtype=np.bool_)
    lists = rank_alike(counts, train.csr[asked], every, N)
    return list_figures(lists.columns.astype(np.int64), held_out, asked)


def figures(model: Any, held_out: gf.Ratings) -> dict[str, Any]:
    asked = np.flatnonzero(np.diff(held_out.csr.indptr))
    lists = model.recommend_many(held_out.users[asked], N)
    return list_figures(lists.columns.astype(np.int64), held_out, asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--seed", type=int, default=2, help="of the split; 1 chose the score")
    options = parser.parse_args()
    title = (__doc__ or "").splitlines()[0]
    before = [list(row.values()) for row in measured("rating_lists")]
    table = {data: [row for row in before if row[0] == data] for data in DATA}
    for data in options.data:  # what is not measured now is as it was
        table[data] = list(rows(data, options.seed))
        lines = [row for of_data in table.values() for row in of_data]
        write_table("rating_lists", title, HEAD, lines, seed=options.seed)


if __name__ == "__main__":
    main()
