"""What the report adds to the figures: other readings, other data, held-out ratings, and fakes that all ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goodfence.data.ratings import Ratings
from goodfence.engines.progress import Advance, bar
from goodfence.experiments.attacked import Attacked
from goodfence.experiments.definition import BUNDLED, definition
from goodfence.experiments.estimates import Sums
from goodfence.experiments.hold_out import hold_out
from goodfence.experiments.reading import DEFAULT
from goodfence.experiments.readings import READINGS, Compared, compare, compare_readings
from goodfence.experiments.sources import Sources

DATA_SETS = ("ml-100k", "ml-1m", "douban-movie", BUNDLED)
_KNOWN, _BETA = 8, 7


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Extras:
    """What the report adds to the figures."""

    readings: tuple[Compared, ...]
    data_sets: Mapping[str, Compared]
    held_out: Mapping[str, Sums]
    asking: Mapping[str, tuple[float, float, float, float]]
    """For each series: recovery and advantage when one fake asks, and when all do."""
    facts: Mapping[str, int]
    """The fewest and the most ratings of a film and of a user."""


def gather(
    sources: Sources,
    main: str,
    *,
    n_seeds: int,
    n_targets: int,
    rng: int,
    progress: bool | None = None,
) -> Extras:
    """Run everything that the report adds; `main` names the data of the MovieLens figures."""
    ratings = sources.ratings(main)
    assert ratings is not None, "the figures were drawn from them"  # noqa: S101 - types
    others = {name: sources.ratings(name) for name in dict.fromkeys((main, *DATA_SETS))}
    there = {name: found for name, found in others.items() if found is not None}
    size = {"n_seeds": n_seeds, "n_targets": n_targets, "rng": rng}
    with bar("readings and data", len(READINGS) + 2 * len(there) + 4, show=progress) as advance:
        readings = tuple(compare_readings(ratings, **size, advance=advance))
        data_sets, held_out = {}, {}
        for name, each in there.items():
            data_sets[name] = compare(each, name, DEFAULT, **size)
            advance(1)
            held_out[name] = hold_out(each, **size)
            advance(1)
        asking = _asking(ratings, n_targets, rng, advance)
    return Extras(
        readings=readings,
        data_sets=data_sets,
        held_out=held_out,
        asking=asking,
        facts=_facts(ratings),
    )


def _asking(
    ratings: Ratings, n_targets: int, rng: int, advance: Advance
) -> dict[str, tuple[float, float, float, float]]:
    figure, seed = definition("attack-beta"), [rng, 0]
    world = Attacked(ratings, DEFAULT)
    targets = world.targets(world.sample(n_targets, seed, _KNOWN), _KNOWN, seed)
    cells = world.cells(targets, np.arange(ratings.shape[0]))
    found = {}
    for series in figure.series:
        shares: list[float] = []
        for everybody in (False, True):
            mechanism = figure.mechanism(series, _BETA)
            told = world.answers(mechanism, targets, seed, everybody_asks=everybody)
            with_her, without = (
                cells.recovered(answers).sum() / len(cells.ratings)
                for answers in (told.with_target, told.without_target)
            )
            shares += [float(with_her), float(with_her - without)]
        found[series] = (shares[0], shares[1], shares[2], shares[3])
        advance(1)
    return found


def _facts(ratings: Ratings) -> dict[str, int]:
    by_item = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
    by_user = np.diff(ratings.csr.indptr)
    return {
        "film_least": int(by_item.min()),
        "film_most": int(by_item.max()),
        "user_least": int(by_user.min()),
        "user_most": int(by_user.max()),
        "films_outside": int(((by_item < 20) | (by_item > 250)).sum()),
        "films": ratings.shape[1],
    }
