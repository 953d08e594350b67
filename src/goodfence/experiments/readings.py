"""The readings of the paper that matter, side by side: whether another one would have changed the conclusion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from goodfence.data.ratings import Ratings
from goodfence.engines.progress import Advance
from goodfence.experiments.claims.counted import Counted, against_others
from goodfence.experiments.claims.verdict import judged
from goodfence.experiments.definition import PRIVATE, Definition, definition
from goodfence.experiments.estimates import Estimate, Sums
from goodfence.experiments.points import Experiment
from goodfence.experiments.reading import DEFAULT, Reading
from goodfence.experiments.tables import sums_of

READINGS: Mapping[str, Reading] = {
    "default": DEFAULT,
    "`cosine_corated`": Reading(similarity="cosine_corated"),
    "RS as derived": Reading(rs="derived"),
    "PNCF truncated (Zhu et al.)": Reading(pncf="truncated"),
    "divide by all neighbours": Reading(over="neighbours"),
    "all four at once": Reading(
        similarity="cosine_corated", rs="derived", pncf="truncated", over="neighbours"
    ),
}
"""The default, each other reading alone, and all together."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Compared:
    """The four methods under one reading, on one data set, at one setting of each protocol."""

    name: str
    free: Sums
    """Without an attack, user-based."""
    attack: Sums
    beta: float
    """Of the setting without an attack."""
    beta_attack: float
    best: tuple[str, str]
    """Whether PPNS has the lowest error of the three, without an attack and under attack."""

    def error(self, series: str) -> Estimate:
        """Return the error without an attack."""
        return self.free.estimate("mae", series, self.beta)

    def attacked(self, metric: str, series: str) -> Estimate:
        """Return a number under attack."""
        return self.attack.estimate(metric, series, self.beta_attack)


def compare_readings(
    ratings: Ratings, *, n_seeds: int, n_targets: int, rng: int, advance: Advance
) -> Iterator[Compared]:
    """Hand out the methods under each reading, on the same targets."""
    for name, reading in READINGS.items():
        yield compare(ratings, name, reading, n_seeds, n_targets, rng)
        advance(1)


def compare(
    ratings: Ratings, name: str, reading: Reading, n_seeds: int, n_targets: int, rng: int
) -> Compared:
    """Return the methods under one reading, at the largest beta of `user-movielens` and beta = 7 under attack."""
    free = _at("user-movielens", 4)
    attack = _at("attack-beta", 7)
    sums = {}
    for each in (free, attack):
        experiment = Experiment(
            definition=each,
            ratings=ratings,
            n_seeds=n_seeds,
            n_targets=n_targets,
            rng=rng,
            reading=reading,
        )
        sums[each.id] = sums_of(each, [(x, seed, t) for x, seed, t, _ in experiment.points()])
    best = tuple(_best(Counted(each, sums[each.id], ratings.scale)) for each in (free, attack))
    return Compared(
        name=name,
        free=sums[free.id],
        attack=sums[attack.id],
        beta=free.values[0],
        beta_attack=attack.values[0],
        best=(best[0], best[1]),
    )


def _at(name: str, beta: int) -> Definition:
    return replace(definition(name), values=(beta,))


def _best(figure: Counted) -> str:
    """Return whether PPNS has the lowest error of the private methods, on common cells, at 1%."""
    outcomes = [one.outcome for one in judged(against_others({figure.definition.id: figure}))]
    if all(outcome == "as claimed" for outcome in outcomes):
        return "yes"
    beaten = [
        other
        for other, outcome in zip(PRIVATE[:-1], outcomes, strict=True)
        if outcome != "as claimed"
    ]
    return f"no ({', '.join(beaten)})"
