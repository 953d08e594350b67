"""A frontier of which everything is known by construction."""

from __future__ import annotations

from typing import Any

from goodfence.attack.scoring import Estimate
from goodfence.auditing.frontier import Frontier, FrontierPoint


def point(family: str, label: str, mae: float, advantage: tuple[float, float, float], **other: Any) -> FrontierPoint:
    recovered = 0.37 + advantage[0]
    plain: dict[str, Any] = {
        "status": "none",
        "guarantee": "none: for a test",
        "coverage": 1.0,
        "recovery": Estimate(recovered, recovered - 0.05, recovered + 0.05),
        "recovery_without": Estimate(0.37, 0.32, 0.42),
        "guess": Estimate(0.38, 0.36, 0.40),
        "attack": "KNNAttack(known=8)",
        "n_targets": 50,
        "verdict": "none found" if advantage[0] < 0.02 else "leaks",
        "detectable": 0.04,
    }
    return FrontierPoint(family=family, label=label, mae=mae, advantage=Estimate(*advantage), **{**plain, **other})


def known_frontier() -> Frontier:
    """Return points of which one is best for each question."""
    points = (
        point("kNN", "k=50", 0.70, (0.5, 0.4, 0.6)),
        point("kNN", "k=100", 0.69, (0.5, 0.4, 0.6)),
        point("PPNS", "k=50, β=7", 0.701, (0.45, 0.4, 0.5), status="refuted"),
        point("PrivateCF, per rating", "ε=1", 0.73, (0.005, -0.005, 0.015), status="proved"),
        point("PrivateCF, per rating", "ε=4", 0.72, (0.03, 0.01, 0.05), status="proved"),
        point("PrivateCF, per user", "ε=4", 0.75, (0.01, -0.01, 0.03), status="proved"),
        point("uncertain", "", 0.60, (0.1, -0.2, 0.4), verdict="cannot tell"),
    )
    return Frontier(points=points, guess=points[0].guess, settings={"shape": [943, 1682], "known": [8]})
