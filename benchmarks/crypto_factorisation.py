"""ALS on secret shares (MPyC, three parties): equal to the clear within fixed point, and what it costs.

Run by ./scripts/crypto-test, in an environment with the extra `crypto`, as benchmarks.crypto_factorisation -M3.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from mpyc.runtime import mpc
from scipy import sparse

from benchmarks.results import write_table
from goodfence.papers.published.encrypted import solve_rows

USERS, ITEMS, RANK, SWEEPS, PENALTY = 6, 5, 2, 2, 0.1
WITHIN = 1e-3


def example() -> tuple[np.ndarray, np.ndarray]:
    """Return ratings (0 for none), and where there are any: a small matrix that is always the same."""
    drawn = np.random.default_rng(7)
    rated = drawn.random((USERS, ITEMS)) < 0.7
    rated[:, 0] = rated[0] = True
    return np.where(rated, drawn.integers(1, 6, (USERS, ITEMS)), 0).astype(float), rated


def start() -> np.ndarray:
    """Return the factors of the items to begin with: they depend on nothing secret."""
    return np.column_stack([np.full(ITEMS, 1.0), 0.3 * np.sin(2.4 * np.arange(1, ITEMS + 1))])


def in_the_clear(ratings: np.ndarray, rated: np.ndarray) -> np.ndarray:
    rows = sparse.csr_array((ratings[rated], np.nonzero(rated)), ratings.shape)
    columns, items = sparse.csr_array(rows.T.tocsr()), start()
    for _ in range(SWEEPS):
        items = solve_rows(columns, solve_rows(rows, items, PENALTY), PENALTY)
    return items


def solved(ratings: list[list[Any]], rated: list[list[Any]], factors: list[list[Any]]) -> list[list[Any]]:
    """Return the factors of each row on shares: nobody learns who rated what, or how."""
    found = []
    for own, has in zip(ratings, rated, strict=True):
        first, second = (mpc.schur_prod(has, [one[at] for one in factors]) for at in (0, 1))
        plain = [[one[at] for one in factors] for at in (0, 1)]
        ridge = PENALTY * mpc.sum(has)
        a, c = mpc.in_prod(first, plain[0]) + ridge, mpc.in_prod(second, plain[1]) + ridge
        b = mpc.in_prod(first, plain[1])
        p, q = mpc.in_prod(own, plain[0]), mpc.in_prod(own, plain[1])
        det = a * c - b * b
        found.append([(c * p - b * q) / det, (a * q - b * p) / det])
    return found


async def main() -> None:
    number = mpc.SecFxp(64, 32)
    await mpc.start()
    ratings, rated = example()
    # Each cell is shared by the first party; in the published system users share their own.
    shared = [mpc.input([number(float(v)) for v in row], senders=0) for row in ratings]
    has = [mpc.input([number(float(v)) for v in row], senders=0) for row in rated]
    items: Any = [[number(float(v)) for v in row] for row in start()]
    began = time.process_time()
    turned = [list(column) for column in zip(*shared, strict=True)]
    has_turned = [list(column) for column in zip(*has, strict=True)]
    for _ in range(SWEEPS):
        users = solved(shared, has, items)
        items = solved(turned, has_turned, users)
    opened = np.array([[float(v) for v in await mpc.output(row)] for row in items])
    seconds = time.process_time() - began
    parties, own = len(mpc.parties), mpc.pid
    await mpc.shutdown()
    far = float(np.abs(opened - in_the_clear(ratings, rated)).max())
    if far > WITHIN:
        raise SystemExit("the factors on shares are not those in the clear")
    if own == 0:
        cells = 2 * SWEEPS * USERS * ITEMS
        whole = seconds / cells * 2 * 10 * 100_000 * (10 / RANK) ** 2
        write_table(
            "crypto_factorisation",
            "Matrix factorisation on secret shares",
            ["what", "found"],
            [
                ["parties", str(parties)],
                ["matrix", f"{USERS} x {ITEMS}, {int(rated.sum())} ratings, rank {RANK}, {SWEEPS} sweeps"],
                ["largest difference from the clear", f"{far:.1e}"],
                ["processor time of a party", f"{seconds:.1f} s"],
                [
                    "100,000 ratings, rank 10, 10 sweeps, were the positions public",
                    f"{whole / 3600:.0f} hours (computed from the time of a cell)",
                ],
            ],
            command="./scripts/crypto-test",
        )


if __name__ == "__main__":
    mpc.run(main())
