"""Who is in the data? Membership by leaving known ratings out, on ml-100k."""

from __future__ import annotations

import argparse
from typing import Any, Self

import numpy as np

import goodfence as gf
from benchmarks.results import write_table
from goodfence.attack.membership import MembershipReport
from goodfence.attack.scoring import Estimate

K, BETA, KNOWN, LEFT_OUT, SEED = 50, 7, 16, 6, 7


class ItemMeans:
    """Ignores who asks: the mean of each item."""

    def fit(self, ratings: gf.Ratings) -> Self:
        """Learn the means."""
        counts = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
        sums = np.bincount(ratings.csr.indices, ratings.csr.data, minlength=ratings.shape[1])
        self.ratings_ = ratings
        self.means_ = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return self

    def predict(self, users: Any, items: Any) -> Any:  # noqa: ARG002 - as every recommender
        """Return the mean of each item; NaN where nobody rated it."""
        return self.means_[self.ratings_.columns(items)]


ATTACKED: dict[str, Any] = {
    "kNN, k 50": gf.KNN(k=K),
    "PPNS, k 50, beta 7, epsilon 1": gf.PPNS(k=K, beta=BETA),
    "item means": ItemMeans(),
    "PrivateCF, rating, epsilon 1": gf.PrivateCF(epsilon=1.0, unit="rating"),
    "PrivateCF, user, epsilon 4": gf.PrivateCF(epsilon=4.0, unit="user"),
}
HEAD = [
    "recommender",
    "targets",
    "AUC",
    "TPR at 1%",
    "bound at 1%",
    "TPR at 5%",
    "bound at 5%",
    "FPR measured at 5%",
    "published at 5%",
    "precision",
    "precision of all",
]


def shown(one: Estimate) -> str:
    return "" if np.isnan(one.value) else f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def line(name: str, found: MembershipReport) -> list[str]:
    one, five = found.points
    bounds = ["none" if point.bound is None else f"{point.bound:.3f}" for point in (one, five)]
    return [
        name,
        f"{found.n_targets}",
        shown(found.auc),
        shown(one.true_positives),
        bounds[0],
        shown(five.true_positives),
        bounds[1],
        shown(five.false_positives),
        shown(five.published),
        shown(five.precision),
        shown(found.precision_of_all),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=400)
    parser.add_argument("--refitted", type=int, default=120, help="targets of the private models")
    options = parser.parse_args()
    ratings = gf.load("ml-100k")
    rows = []
    for name, attacked in ATTACKED.items():
        n_targets = options.refitted if name.startswith("Private") else options.targets
        attack = gf.MembershipAttack(known=KNOWN, left_out=LEFT_OUT, fakes=K)
        found = attack.run(ratings, attacked, targets=n_targets, rng=SEED)
        rows.append(line(name, found))
        print(*rows[-1], sep="  ", flush=True)
    write_table(
        "membership",
        "Who is in the data: membership by leaving known ratings out",
        HEAD,
        rows,
        data="ml-100k",
        known=KNOWN,
        left_out=LEFT_OUT,
        fakes=K,
        seed=f"{SEED} for targets and what is known of them; the private models' noise is fresh",
        thresholds="from one half of the targets, rates from the other",
        bound="on the TPR, from epsilon and delta of one fit, where the guarantee is for a user",
    )


if __name__ == "__main__":
    main()
