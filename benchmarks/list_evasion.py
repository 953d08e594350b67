"""Attackers of private lists whose asking account is unlike the others, and data whose items come in bundles."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import goodfence as gf
from benchmarks.list_attack import LEAST, LIKED, MODELS, SEED, K, N, likes
from benchmarks.results import write_table
from goodfence.arrays import Integers
from goodfence.attack.scoring import difference
from goodfence.attack.targets import find_targets, with_fakes
from goodfence.models.recommender import unfitted_copy
from goodfence.rng import Streams

DATA, KNOWN = "ml-100k", 16
TWINS = 0.8
"""In bundled data each item has a twin, which so many of those have who have the item."""
Holds = Callable[[Integers], Integers]
HEAD = ["recommender", "attacker", "people", "precision", "without", "raw advantage (95%)"]


class Evasion(NamedTuple):
    """What the fakes hold and what the account that asks holds, of the known items."""

    fakes: Holds
    asker: Holds
    n_fakes: int = K


def known(items: Integers) -> Integers:
    return items


def half(items: Integers) -> Integers:
    return items[::2]


EVASIONS = {
    "all hold the known items": Evasion(known, known),
    "one account holds the known items": Evasion(known, known, n_fakes=1),
    "the asker holds half of them": Evasion(known, half),
}


def bundled(events: gf.Ratings) -> gf.Ratings:
    """Return events with a twin of each item, as games have extras."""
    csr, n_items = events.csr, events.shape[1]
    rows = np.repeat(np.arange(events.shape[0]), np.diff(csr.indptr))
    taken = np.random.default_rng(SEED).random(len(rows)) < TWINS
    cells = np.append(rows, rows[taken]), np.append(csr.indices, csr.indices[taken] + n_items)
    both = sparse.csr_array((np.ones(len(cells[0])), cells), shape=(events.shape[0], 2 * n_items))
    return gf.Ratings(both, events.users, np.arange(2 * n_items), feedback="implicit")


def hits(model: Any, events: gf.Ratings, held: list[Integers], asks: Integers, row: int) -> float:
    """Return the share of hidden items among the first that are listed and that no account holds."""
    csr = events.csr
    own = csr.indices[csr.indptr[row] : csr.indptr[row + 1]]
    known_to_all = np.union1d(asks, held[0])
    hidden = np.setdiff1d(own, known_to_all)
    allowed = events.items[np.setdiff1d(np.arange(csr.shape[1]), known_to_all)]
    listed = model.recommend(events.items[asks].tolist(), N, allowed=allowed)
    found = np.isin(events.columns(listed.items), hidden).sum()
    return float(found) / max(min(N, len(hidden)), 1)


def gained(events: gf.Ratings, model: Any, how: Evasion, n: int) -> list[str]:
    """Return what one kind of attacker gains: people, precision with the target and without, and the difference."""
    found, _ = find_targets(events, n, KNOWN, "random", Streams(SEED))
    both = []
    for place, row in enumerate(found.rows.tolist()):
        items = np.asarray(found.known_columns[place])
        held = [how.fakes(items)] * how.n_fakes
        asks = how.asker(items)
        told = []
        for removed in (None, row):
            world, _ = with_fakes(events, removed, held, [np.ones(len(each)) for each in held])
            fitted = unfitted_copy(model, 1000 + place).fit(world)
            told.append(hits(fitted, events, held, asks, row))
        both.append(told)
    inside, outside = np.transpose(both)
    gain = difference(inside, outside, np.ones(len(both)))
    interval = f"{gain.value:+.4f} ({gain.low:+.4f} to {gain.high:+.4f})"
    return [f"{len(both)}", f"{inside.mean():.3f}", f"{outside.mean():.3f}", interval]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=400)
    asked, events = parser.parse_args(), likes(DATA)
    twins = bundled(events)
    rows = []
    for name, model in MODELS.items():
        if not isinstance(model, gf.PrivateTopN):
            continue
        for kind, data in (("", events), ("bundles: ", twins)):
            for who, how in EVASIONS.items():
                rows.append([name, f"{kind}{who}", *gained(data, model, how, asked.targets)])
                print(*rows[-1], flush=True)
    write_table(
        "list_evasion",
        "Attackers of private lists whose asking account is unlike the others",
        HEAD,
        rows,
        data=f"{DATA}, likes of {LIKED} or more, people and items with at least {LEAST}",
        known=KNOWN,
        bundles=f"each item has a twin, which {TWINS:.0%} of those have who have the item",
        lists=f"the first {N} items that no account holds, of {K} accounts",
        noise="of a seed, the same in both worlds of a target",
        seed=SEED,
    )


if __name__ == "__main__":
    main()
