"""Attackers who know how `PrivateTopN` holds accounts of one kind back, and whose asking account is of another kind."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import goodfence as gf
from benchmarks.list_attack import LEAST, LIKED, MODELS, SEED, K, N, SameNoise, likes
from benchmarks.results import write_table
from goodfence.arrays import Integers
from goodfence.attack.scoring import difference
from goodfence.attack.targets import find_targets, with_fakes
from goodfence.models.recommender import unfitted_copy
from goodfence.rng import Streams

DATA, KNOWN = "ml-100k", 16
Holds = Callable[[Integers, Integers, np.random.Generator], Integers]
HEAD = ["recommender", "attacker", "people", "precision", "without", "raw advantage (95%)"]


class Evasion(NamedTuple):
    """What the fakes hold and what the account that asks holds, of the known items and the most popular ones."""

    fakes: Holds
    asker: Holds
    n_fakes: int = K


def known(items: Integers, _popular: Integers, _chance: np.random.Generator) -> Integers:
    return items


def half(items: Integers, _popular: Integers, _chance: np.random.Generator) -> Integers:
    return items[::2]


def one(items: Integers, _popular: Integers, _chance: np.random.Generator) -> Integers:
    return items[:1]


def and_popular(items: Integers, popular: Integers, _chance: np.random.Generator) -> Integers:
    return np.union1d(items, popular[:20])


def and_random(items: Integers, popular: Integers, chance: np.random.Generator) -> Integers:
    return np.union1d(items, chance.choice(popular[:300], 20, replace=False))


EVASIONS = {
    "all hold the known items": Evasion(known, known),
    "one account holds the known items": Evasion(known, known, n_fakes=1),
    "the asker holds half of them": Evasion(known, half),
    "the asker holds one of them": Evasion(known, one),
    "the asker holds the 20 most popular items, too": Evasion(known, and_popular),
    "the asker holds 20 items of the 300 most popular, too": Evasion(known, and_random),
    "the fakes hold 20 items of the 300 most popular, too": Evasion(and_random, known),
}


def hits(model: Any, events: gf.Ratings, held: list[Integers], asks: Integers, row: int) -> float:
    """Return the share of hidden items among the first that are listed and that no account holds."""
    csr = events.csr
    own = csr.indices[csr.indptr[row] : csr.indptr[row + 1]]
    known_to_all = np.union1d(asks, held[0])
    hidden = np.setdiff1d(own, known_to_all)
    allowed = events.items[np.setdiff1d(np.arange(csr.shape[1]), known_to_all)]
    listed = model.answer_list(events.items[asks].tolist(), N, allowed=allowed)
    found = np.isin(events.columns(listed.items), hidden).sum()
    return float(found) / max(min(N, len(hidden)), 1)


def gained(events: gf.Ratings, model: Any, how: Evasion, n: int) -> list[str]:
    """Return what one kind of attacker gains: people, precision with the target and without, and the difference."""
    found, _ = find_targets(events, n, KNOWN, "random", Streams(SEED))
    popular = np.argsort(-np.bincount(events.csr.indices, minlength=events.shape[1]))
    both = []
    for place, row in enumerate(found.rows.tolist()):
        chance = np.random.default_rng([SEED, place])
        items = np.asarray(found.known_columns[place])
        held = [how.fakes(items, popular, chance)] * how.n_fakes
        asks = how.asker(items, popular, chance)
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
    rows = [
        [name, who, *gained(events, model, how, asked.targets)]
        for name, model in MODELS.items()
        if isinstance(model, SameNoise)
        for who, how in EVASIONS.items()
    ]
    write_table(
        "list_evasion",
        "Attackers of private lists whose asking account is unlike the others",
        HEAD,
        rows,
        data=f"{DATA}, likes of {LIKED} or more, people and items with at least {LEAST}",
        known=KNOWN,
        lists=f"the first {N} items that no account holds, of {K} accounts",
        noise="of a seed, the same in both worlds of a target",
        seed=SEED,
    )


if __name__ == "__main__":
    main()
