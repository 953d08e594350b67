"""Where the small advantage over the private models comes from: rare items, and the target's own rating."""

from __future__ import annotations

import argparse
import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

import goodfence as gf
from benchmarks.results import write_table
from goodfence.arrays import row_numbers
from goodfence.attack.scoring import is_recovered, ratio
from goodfence.attack.targets import Targets, find_targets, with_fakes, world_seed
from goodfence.rng import Streams

DATA, KNOWN, FAKES, SEED = "ml-100k", 8, 50, 8
LEFT_OUT = 5
"""One in this many of the hidden ratings is left out of the third world."""
MODELS: dict[str, Any] = {
    "PrivateCF, rating, epsilon 1": gf.PrivateCF(epsilon=1.0, unit="rating", items="from ratings"),
    "PrivateMeans, rating, epsilon 1": gf.PrivateMeans(epsilon=1.0, unit="rating", items="from ratings"),
}
EDGES = (1, 21, 51, 101, 201)
"""Where groups of items begin, by how many users rated them."""

Booleans = npt.NDArray[np.bool_]


class Found(NamedTuple):
    """One entry for each hidden rating."""

    owners: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    left_out: Booleans
    read: Booleans
    read_otherwise: Booleans
    """With the target, but for the ratings that are left out."""
    read_without: Booleans
    """Without the target."""


def without_cells(ratings: gf.Ratings, row: int, columns: npt.NDArray[np.int64]) -> gf.Ratings:
    """Return the ratings without those of some items by one user."""
    csr = ratings.csr
    rows = row_numbers(csr.indptr)
    kept = (rows != row) | ~np.isin(csr.indices, columns)
    cells = csr.data[kept], (rows[kept], csr.indices[kept])
    return ratings.replaced(sparse.csr_array(cells, shape=csr.shape))


def is_read(model: Any, ratings: gf.Ratings, removed: int | None, target: Targets, seed: int) -> Booleans:
    """Return which hidden ratings a fake reads off a model that is fitted to these ratings and the fakes."""
    known = [target.known_columns[0]] * FAKES, [target.known_ratings[0]] * FAKES
    world, ids = with_fakes(ratings, removed, *known)
    made = copy.copy(model)
    made.rng = seed  # the same noise in all worlds: the mean is the same, its spread is not
    items = ratings.items[target.columns]
    answers = made.fit(world).predict(np.repeat(ids[:1], len(items)), items)
    return is_recovered(answers, target, ratings)


def attack_all(model: Any, ratings: gf.Ratings, targets: Targets, own_seed: int) -> Found:
    """Ask about every target in three worlds: with the target, with part of their ratings, without the target."""
    chance = np.random.default_rng(own_seed)
    parts = []
    for place in range(len(targets)):
        target = targets.part(place, place + 1)
        row, n_hidden = int(target.rows[0]), len(target.columns)
        left_out = chance.permutation(n_hidden) % LEFT_OUT == 0
        less = without_cells(ratings, row, target.columns[left_out])
        seed = world_seed(Streams(own_seed), row)
        worlds = ((ratings, None), (less, None), (ratings, row))
        read = [is_read(model, world, removed, target, seed) for world, removed in worlds]
        parts.append((np.full(n_hidden, place), target.columns, left_out, *read))
    return Found(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def gained(found: Found, read: Booleans, among: Booleans) -> str:
    """Return how many more of some hidden ratings are read than without the target, with its interval."""
    more = read.astype(np.float64) - found.read_without
    owners, n_targets = found.owners[among], int(found.owners.max()) + 1
    sums = np.bincount(owners, weights=more[among], minlength=n_targets).astype(np.float64)
    counts = np.bincount(owners, minlength=n_targets).astype(np.float64)
    one = ratio(sums[counts > 0], counts[counts > 0], lowest=-1.0, highest=1.0)
    return f"{one.value:+.4f} ({one.low:+.4f} to {one.high:+.4f})"


def rows_of(name: str, found: Found, ratings: gf.Ratings) -> list[list[str]]:
    raters = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])[found.columns]
    groups = {"all": raters > 0}
    for first, after in zip(EDGES, [*EDGES[1:], None], strict=True):
        title = f"{first} or more" if after is None else f"{first} to {after - 1}"
        groups[title] = (raters >= first) & (raters < (after or np.inf))
    more = found.read.astype(np.float64) - found.read_without
    rows = []
    for title, among in groups.items():
        shares = [f"{among.mean():.2f}", f"{more[among].sum() / more.sum():.2f}"]
        rows.append([name, title, *shares, gained(found, found.read, among)])
    otherwise = gained(found, found.read_otherwise, found.left_out)
    return [*rows, [name, "all, the target's left out", "", "", otherwise]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=300)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    ratings = gf.load(DATA)
    targets, _ = find_targets(ratings, options.targets, KNOWN, "random", Streams(options.seed))
    table: list[list[str]] = []
    for name, model in MODELS.items():
        table += rows_of(name, attack_all(model, ratings, targets, options.seed), ratings)
    head = ["attacked", "users who rated the item", "of the hidden ratings", "of the advantage", "advantage"]
    write_table(
        "advantage",
        __doc__,
        head,
        table,
        data=DATA,
        known=KNOWN,
        fakes=FAKES,
        targets=len(targets),
        seed=options.seed,
        noise="seeded, the same in all worlds of a target",
    )


if __name__ == "__main__":
    main()
