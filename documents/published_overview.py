"""The short table of docs/published.md: each published idea by its family, its error, and the strongest attacker."""

from __future__ import annotations

from documents.tables import UNMEASURED, Row, as_table, measured

MATTERS = 0.05
"""An idea stops an attacker whose advantage is below this with all of its interval, and does not if it is above."""
FAMILIES: dict[str, tuple[str, ...]] = {
    "nothing": ("kNN",),
    "noise on each answer": ("Laplace on each answer",),
    "users change what they send": (
        *("randomised response", "Laplace on the ratings", "z-scores", "randomised perturbation"),
        *("NeNDS", "BlurMe", "item swapping"),
    ),
    "neighbours drawn by chance, or protected": ("PPNS", "ReuseKNN"),
    "the same, computed under encryption": ("threshold neighbours", "matrix factorisation"),
    "differences of items, with and without noise": ("Slope One",),
    "noisy answers, and a budget for each user": ("Ind-KNN",),
    "noisy statistics, released once": ("McSherry-Mironov", "DP-ALS", "PrivateCF"),
}
"""What an idea changes, and the beginnings of the names of its rows."""
HEAD = ["what is changed", "idea", "guarantee", "MAE", "advantage", "by", "people", "stops them?"]


def interval(row: Row) -> tuple[float, float, float]:
    """Return the advantage of a row, and both ends of its interval.

    >>> interval({"advantage": "+0.058 (+0.001 to +0.114)"})
    (0.058, 0.001, 0.114)
    """
    value, low, _, high = row["advantage"].replace("(", "").replace(")", "").split()
    return float(value), float(low), float(high)


def stops(row: Row) -> str:
    """Return whether the interval lies below what matters (yes), above it (no), or holds it (open)."""
    _, low, high = interval(row)
    if high <= MATTERS:
        return "yes"
    return "**no**" if low > MATTERS else "open"


def overview(data: str) -> str:
    """Return one row for each idea that was measured, with its strongest attacker, family by family."""
    rows = measured(f"published-{data}")
    if not rows:
        return UNMEASURED
    found = []
    for family, names in FAMILIES.items():
        ideas = dict.fromkeys(row["idea"] for row in rows if row["idea"].startswith(names))
        for place, idea in enumerate(ideas):
            own = [row for row in rows if row["idea"] == idea]
            worst = max(own, key=interval)
            cells = [worst[name] for name in ("guarantee", "MAE", "advantage", "attacker")]
            first = "" if place else family
            found.append([first, idea, *cells, worst["targets"], stops(worst)])
    left = len({row["idea"] for row in rows} - {row[1] for row in found})
    assert not left, f"{left} ideas of the table belong to no family"
    return as_table(HEAD, found)
