"""Who breaks which recommender of lists: attackers side by side."""

from __future__ import annotations

from typing import Any

import goodfence as gf
from benchmarks.list_attack import LEAST, LIKED, SEED, K, likes
from benchmarks.results import write_table
from goodfence.attack.scoring import Estimate

DATA, M, N_TARGETS, BETA = "ml-100k", 8, 400, 7
MECHANISMS: dict[str, Any] = {
    "kNN": gf.KNN(k=K),
    "PPNS": gf.PPNS(k=K, beta=BETA),
    "nPNS, whole list": gf.NPNS(k=K),
    "nPNS within 7": gf.NPNS(k=K, within=BETA),
    "PNCF within 7": gf.PNCF(k=K, within=BETA),
}
ATTACKERS = {
    "k fakes, one asks": gf.ListAttack(known=M),
    "k fakes, all ask": gf.ListAttack(known=M, ask="all"),
    "k fakes, two pages are read": gf.ListAttack(known=M, pages=2),
    "k fakes click what was listed, and one asks again": gf.ListAttack(known=M, adaptive=True),
    "one fake": gf.ListAttack(known=M, fakes=1),
    "beta k fakes, all ask": gf.ListAttack(known=M, fakes=BETA * K, ask="all"),
    "k fakes, the rarest known": gf.ListAttack(known=M, choose="rarest"),
    "k fakes, the most popular known": gf.ListAttack(known=M, choose="most_popular"),
}


def shown(found: Estimate) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def attackers(events: gf.Ratings) -> None:
    """Measure each attacker on each mechanism."""
    rows = []
    for name, attack in ATTACKERS.items():
        reports = [attack.run(events, one, targets=N_TARGETS, rng=SEED, threads=1) for one in MECHANISMS.values()]
        rows.append([name, *(shown(report.estimates["advantage"]) for report in reports)])
    write_table(
        "list_attackers",
        "Attackers of recommended lists",
        ["attacker", *MECHANISMS],
        rows,
        data=f"{DATA}, likes of {LIKED} or more, people and items with at least {LEAST}",
        known=M,
        targets=N_TARGETS,
        k=K,
        shown="advantage, 95% interval over people",
        seed=SEED,
    )


def main() -> None:
    attackers(likes(DATA))


if __name__ == "__main__":
    main()
