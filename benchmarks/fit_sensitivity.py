"""How far neighbouring data move a whole private fit, over the mu that is claimed, on three scales."""

from __future__ import annotations

from typing import Any

import goodfence as gf
from benchmarks.results import write_table
from goodfence.auditing.dp_audit import Transcripts
from goodfence.auditing.pairs import N_ITEMS, N_OTHERS, extreme_pairs
from goodfence.data.scale import Scale

SCALES = {"1 to 5": Scale(1, 5), "half stars": Scale(0.5, 5, 0.5), "0 to 10": Scale(0, 10)}
EPSILONS = (1.0, 30.0)
FITS: dict[str, tuple[Any, dict[str, str]]] = {
    "PrivateMeans, rating": (gf.PrivateMeans, {"unit": "rating"}),
    "PrivateMeans, user": (gf.PrivateMeans, {"unit": "user"}),
    "PrivateCF auto, rating": (gf.PrivateCF, {"unit": "rating"}),
    "PrivateCF auto, user": (gf.PrivateCF, {"unit": "user"}),
    "PrivateCF covariance, rating": (gf.PrivateCF, {"unit": "rating", "plan": "covariance"}),
    "PrivateCF covariance, user": (gf.PrivateCF, {"unit": "user", "plan": "covariance"}),
    "PrivateCF half step, user": (gf.PrivateCF, {"unit": "user", "plan": "half_step"}),
}


def largest(model: Any, scale: Scale) -> tuple[float, float]:
    """Return how far the worst of the extreme pairs moves a fit, over its mu, and any release over its sensitivity."""
    moved, single = 0.0, 0.0
    for pair in extreme_pairs(model.unit, scale):
        fits = Transcripts(model, pair.without, pair.with_it)
        moved = max(moved, fits.moved() / fits.mu)
        single = max(single, fits.largest_ratio)
    return moved, single


def main() -> None:
    rows = []
    for name, (kind, settings) in FITS.items():
        for epsilon in EPSILONS:
            model = kind(epsilon=epsilon, **settings)
            found = [largest(model, scale) for scale in SCALES.values()]
            moved = [f"{each:.3f}" for each, _ in found]
            row = [name, f"{epsilon:g}", *moved, f"{max(single for _, single in found):.4f}"]
            rows.append(row)
            print(*row, sep="  ", flush=True)
    write_table(
        "fit_sensitivity",
        "Whole fits: the largest distance found, over the mu that is claimed",
        ["fitted", "epsilon", *SCALES, "any one release, over its own"],
        rows,
        delta=1e-5,
        users=N_OTHERS + 1,
        items=N_ITEMS,
        pairs="at the ends of the scale",
        noise="from the operating system",
    )


if __name__ == "__main__":
    main()
