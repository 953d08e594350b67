"""Who can tell from recommended lists that somebody is in the data, beside what a guarantee allows."""

from __future__ import annotations

from typing import Any

import goodfence as gf
from benchmarks.list_attack import LEAST, LIKED, SEED, K, likes
from benchmarks.list_attackers import BETA, DATA, N_TARGETS, shown
from benchmarks.results import write_table

MEMBERS: dict[str, Any] = {
    "kNN": gf.KNN(k=K),
    "PPNS": gf.PPNS(k=K, beta=BETA),
    "nPNS within 7": gf.NPNS(k=K, within=BETA),
    "PrivateTopN, event, epsilon 1": gf.PrivateTopN(epsilon=1.0, items="from ratings"),
    "PrivateTopN, user, epsilon 4": gf.PrivateTopN(epsilon=4.0, unit="user", items="from ratings"),
    "popularity": gf.Popularity(),
}
MEMBER_KNOWN, LEFT_OUT = 16, 6
FITTED = 100
"""Of what is fitted in each world so many people are attacked."""


def main() -> None:
    events = likes(DATA)
    rows = []
    for name, attacked in MEMBERS.items():
        attack = gf.MembershipAttack(known=MEMBER_KNOWN, left_out=LEFT_OUT, fakes=K)
        n_targets = FITTED if hasattr(attacked, "fit") else N_TARGETS
        found = attack.run(events, attacked, targets=n_targets, rng=SEED, threads=1)
        one, five = found.points
        bounds = ["" if point.bound is None else f"{point.bound:.3f}" for point in (one, five)]
        rates = [shown(one.true_positives), bounds[0], shown(five.true_positives), bounds[1]]
        rows.append([name, f"{found.n_targets}", shown(found.auc), *rates])
    head = ["recommender", "people", "AUC", "true positives at 1%", "bound"]
    write_table(
        "list_membership",
        "Membership through recommended lists",
        [*head, "true positives at 5%", "bound at 5%"],
        rows,
        data=f"{DATA}, likes of {LIKED} or more, people and items with at least {LEAST}",
        known=MEMBER_KNOWN,
        left_out=LEFT_OUT,
        fakes=f"{K}; 1 for each question where no user alone weighs",
        half="of the people sets the thresholds",
        seed=SEED,
    )


if __name__ == "__main__":
    main()
