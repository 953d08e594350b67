"""How large RS is on ml-100k: of films, of users, and of fakes with few ratings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import goodfence as gf
from benchmarks.results import write_table
from goodfence.selection.sensitivity import ItemPeaks, item_peaks, profile_sensitivity, sensitivities

DATA, K, RHO, SEED = "ml-100k", 50, 0.5, 7
FAKES = (1, 2, 3, 8)
AS_COMPUTED = gf.Sensitivity(clamp=False)

Floats = npt.NDArray[np.float64]


def of_fakes(ratings: gf.Ratings, peaks: ItemPeaks, n_rated: int, chance: np.random.Generator) -> Floats:
    """Return RS before the clamp of K fakes with some of each user's ratings; infinite where N' = 0 for a pair."""
    csr = ratings.csr
    found = []
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        cells = start + chance.choice(stop - start, n_rated, replace=False)
        profile = csr.indices[cells], csr.data[cells]
        one = profile_sensitivity(peaks, *profile, n_copies=K)
        found.append(np.inf if n_rated == 1 else one)  # without its only rating a fake has no length
    return np.array(found)


def facts(ratings: gf.Ratings) -> list[list[str]]:
    """Return what the pages on PPNS and PNCF say of RS, each with its value."""
    users = sensitivities(ratings.csr, AS_COMPUTED)
    films = sensitivities(ratings.transposed.csr)
    raters = np.diff(ratings.transposed.csr.indptr)
    n_candidates = len(users) - 1
    wide = 4 * K * users * np.log(K * (n_candidates - K) / RHO)  # lambda's second bound, at epsilon 1
    rows = [
        ["films: RS is 1", f"{100 * (films >= 1).mean():.1f} %"],
        ["films: one rater", f"{(raters == 1).sum():,}"],
        ["users: smallest RS", f"{users.min():.2f}"],
        ["users: median RS", f"{np.median(users):.2f}"],
        ["users: largest RS", f"{users.max():.2f}"],
        ["users: smallest bound of lambda, times epsilon", f"{wide.min():.0f}"],
        ["users: largest bound of lambda, times epsilon", f"{wide.max():.0f}"],
    ]
    peaks, chance = item_peaks(ratings.csr, AS_COMPUTED), np.random.default_rng(SEED)
    for n_rated in FAKES:
        found = of_fakes(ratings, peaks, n_rated, chance)
        of = f"fakes, {n_rated} rated"
        rows.append([f"{of}: RS above 1", f"{100 * (found > 1).mean():.0f} %"])
        rows.append([f"{of}: median RS", f"{np.median(found):.2f}".replace("inf", "infinite")])
    return rows


def main() -> None:
    rows = facts(gf.load(DATA))
    settings = {"data": DATA, "k": K, "rho": RHO, "seed": SEED}
    title = "RS of users, films and fakes"
    write_table(
        "sensitivity_facts",
        title,
        ["RS", "found"],
        rows,
        **settings,
        RS="as printed, of users and fakes before the clamp",
    )


if __name__ == "__main__":
    main()
