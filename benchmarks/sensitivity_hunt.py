"""How far neighbouring data that two searches found move each private release, over what is claimed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

from benchmarks.results import write_table
from tests.support import published_theorem
from tests.support.event_sensitivity import RELEASES, co_occurrence
from tests.support.event_sensitivity import UNITS as EVENT_UNITS
from tests.support.sensitivity_hunt import (
    DIRECTIONS,
    LARGE,
    LONGEST,
    SMALL,
    USUAL,
    half_step,
    hunt,
    overlap,
    projected,
    quantities,
)
from tests.support.sensitivity_search import MU, searches, without_the_user_bias

BUDGETS = (SMALL, USUAL, LARGE)
SEED = 11
UNITS = ("rating", "user")
HALVES = ("half step, items", "half step, scores")
CLAMPS, PRIORS = (0.1, 0.25, 0.5, 1.0, 2.0), (1, 20)

Key = tuple[str, str]


def first() -> dict[Key, float]:
    """Return the largest ratio that the first search found, by what is released and the unit."""
    found: dict[Key, float] = {}
    for search in searches():
        key = (search.released, search.unit)
        found[key] = max(found.get(key, 0.0), search.ratio())
        print(search.name, flush=True)
    return found


def second(mu: float) -> Iterator[tuple[Key, float]]:
    """Yield the largest ratio that the second search found at this budget."""
    for name, (totals, bound, unit, _) in quantities(mu).items():
        yield (name.removesuffix(f", {unit}"), unit), hunt(totals, bound, unit, seed=SEED)
    along = max(projected(kind, mu, SEED) for kind in DIRECTIONS)
    yield ("projected covariance", "rating"), along
    for unit in UNITS:
        yield ("overlap", unit), overlap(unit, mu)
    for part, name in enumerate(HALVES):
        yield (name, "user"), max(half_step(part, n_factors, mu) for n_factors in LONGEST)
    print(f"mu {mu:g}", flush=True)


def ratios() -> None:
    """Run both searches and write their table; a ratio is cut, not rounded, so that only 1 is 1."""
    begun = first()
    hunted = [dict(second(mu)) for mu in BUDGETS]
    rows = [[*key, *(_cut(found) for found in (begun[key], *(each[key] for each in hunted)))] for key in begun]
    small = ["item sums, bound without the user bias", "rating", _cut(without_the_user_bias())]
    rows.append([*small, *[""] * len(BUDGETS)])
    head = ["released", "unit", f"first search, mu {MU:g}"]
    head += [f"second search, mu {mu:.5f}".rstrip("0").rstrip(".") for mu in BUDGETS]
    title = "The largest distance found, over the bound"
    write_table("sensitivity_hunt", title, head, rows, seeds="fixed")


def theorem() -> None:
    """Try the constant of McSherry and Mironov's Theorem 5, and write the table."""
    rows = []
    for clamp in CLAMPS:
        for prior in PRIORS:
            found = published_theorem.search(clamp, prior)
            proved = published_theorem.bound(clamp, prior)
            rows.append(
                [
                    f"{clamp:g}",
                    str(prior),
                    f"{found.covariance:.2f}",
                    str(found.n_ratings),
                    f"{found.together:.2f}",
                    f"{math.ceil(proved * 100) / 100:.2f}",
                ]
            )
    head = ["clamp B", "user prior", "covariance, found", "with ratings", "and weights, together"]
    head.append("covariance, proved")
    title = "One rating more, over the constant of Theorem 5"
    write_table(
        "published_theorem",
        title,
        head,
        rows,
        command="sensitivity_hunt",
        ratings=f"1 to {published_theorem.MOST}",
        distances="-4 to 4",
    )


def of_events() -> None:
    """Search for violations of every release of PrivateTopN, and write the table."""
    rows = [
        [name, unit, *(_cut(search(unit, mu, seed=SEED)) for mu in BUDGETS)]
        for name, search in RELEASES.items()
        for unit in EVENT_UNITS
    ]
    careless = _cut(co_occurrence("event", USUAL, seed=SEED, of="user"))
    rows.append(["co-occurrence, with the factor of one user", "event", "", careless, ""])
    head = ["released", "unit", *(f"mu {mu:.5f}".rstrip("0").rstrip(".") for mu in BUDGETS)]
    title = "The largest distance found, over the bound: lists from events"
    command = "sensitivity_hunt --only-events"
    write_table("sensitivity_events", title, head, rows, command=command, seeds="fixed")


def _cut(ratio: float) -> str:
    cut = math.floor if ratio <= 1 else math.ceil  # what is above 1 is shown above 1
    return f"{cut(ratio * 10_000) / 10_000:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only-events", action="store_true", help="the releases of PrivateTopN")
    only_events = parser.parse_args().only_events
    of_events()
    if not only_events:
        theorem()
        ratios()


if __name__ == "__main__":
    main()
