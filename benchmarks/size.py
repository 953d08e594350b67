"""The error of the private models against the number of people: parts of netflix-tenth, and a rule fitted to them.

Parts are of users drawn by chance, with the items that they rated; 80/20 hold-out. The whole of netflix-tenth, and the
other data sets on which the rule is tried, are as the benchmark `accuracy` measured them.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import goodfence as gf
from benchmarks.accuracy import accurate, delta_of, ratings_of
from benchmarks.data import CACHE
from benchmarks.peers import ROOT
from benchmarks.private_attack import fingerprint
from benchmarks.results import write_table
from documents.tables import measured
from goodfence.data.files import atomic_write
from goodfence.privacy.accounting import total_mu
from goodfence.privacy.guarantee import Unit

DATA = "netflix-tenth"
USERS = (500, 1_500, 5_000, 15_000)
BUDGETS: dict[Unit, tuple[float, ...]] = {"rating": (1.0, 4.0), "user": (1.0, 4.0, 16.0)}
LARGE = 10_000
"""Of larger parts only the budgets of the chart are measured."""
CHARTED: dict[Unit, float] = {"rating": 1.0, "user": 4.0}
MODELS = {"PrivateCF": gf.PrivateCF, "PrivateMeans": gf.PrivateMeans}
UNPROTECTED = "unprotected"
OWN_MEAN = 0.2
"""The error of everybody's own mean, a share of the scale: what costs no privacy, because nothing is shared."""
LEAST = 0.12
"""No floor is lower, a share of the scale: no model of any kind was better on any data here."""
TABLED = {"PrivateCF": "PrivateCF auto", "PrivateMeans": "PrivateMeans"}
LENGTH = 4.0
"""The length of the scale of netflix-tenth."""
ELSEWHERE = ("ml-100k", "ml-1m", "douban-movie", "goodbooks", "movietweetings", "half stars")
DELTA_ELSEWHERE = 1e-5

Point = dict[str, Any]


def part_of(ratings: gf.Ratings, users: int) -> gf.Ratings:
    """Return the ratings of so many users, drawn by chance, on the items that they rated."""
    rows = np.sort(np.random.default_rng(users).permutation(ratings.shape[0])[:users])
    csr = ratings.csr[rows]
    rated = np.flatnonzero(np.bincount(csr.indices, minlength=csr.shape[1]))
    return gf.Ratings(csr[:, rated], ratings.users[rows], ratings.items[rated], ratings.scale)


def measure(ratings: gf.Ratings, users: int, keep: Path) -> list[Point]:
    """Return the errors of all models on one part: kept ones, or new ones, which are kept."""
    path = keep / f"{users}.json"
    if path.is_file():
        return list(json.loads(path.read_text()))
    part = part_of(ratings, users)
    train, test = gf.holdout(part, fraction=0.2, rng=0)
    size = {"users": users, "items": part.shape[1], "ratings": part.n_ratings}
    points = [{**size, "model": UNPROTECTED, "error": accurate(train, test)["error"]}]
    for unit, budgets in BUDGETS.items():
        for epsilon in budgets if users < LARGE else (CHARTED[unit],):
            for model, make in MODELS.items():
                budget: Any = {"epsilon": epsilon, "delta": delta_of(DATA), "unit": unit}
                error = gf.evaluate(make(**budget, items="from ratings").fit(train), test).mae
                points.append({**size, "model": model, "unit": unit, "epsilon": epsilon, "error": error})
                print(points[-1], flush=True)
    with atomic_write(path) as file:
        file.write(json.dumps(points).encode())
    return points


def tabled(name: str, keep: Path) -> list[Point]:
    """Return the errors on a whole data set, as the table of errors has them, the unprotected one last."""
    ratings = ratings_of(name)
    size = {"users": ratings.shape[0], "items": ratings.shape[1], "ratings": ratings.n_ratings}
    rows = {(row["model"], row["unit, epsilon"]): row["MAE"] for row in measured("accuracy") if row["data"] == name}
    points = [
        {
            **size,
            "model": model,
            "unit": unit,
            "epsilon": epsilon,
            "error": float(rows[TABLED[model], f"{unit} {epsilon:g}"]),
        }
        for unit, epsilon in CHARTED.items()
        for model in MODELS
    ]
    return [*points, {**size, "model": UNPROTECTED, "error": unprotected_error(name, keep)}]


def unprotected_error(name: str, keep: Path) -> float:
    """Return the error of `NeighbourCF.accurate()`: as it was measured beside LensKit's, or on one split, kept."""
    for row in measured("accuracy_neighbours"):
        if row["data"] == name:
            return float(row["NeighbourCF.accurate(), MAE"])
    path = keep / f"unprotected-{name.replace(' ', '-')}.json"
    if not path.is_file():
        found = accurate(*gf.holdout(ratings_of(name), fraction=0.2, rng=0))["error"]
        with atomic_write(path) as file:
            file.write(json.dumps(found).encode())
    return float(json.loads(path.read_text()))


def x_of(point: Point, delta: float) -> float:
    """Return ratings an item, times mu; for the unit user over the root of the ratings of a user."""
    unit, each = point.get("unit"), point["ratings"] / point["items"]
    if unit is None:
        return float(each)
    noise = math.sqrt(point["ratings"] / point["users"]) if unit == "user" else 1.0
    return float(each * total_mu(point["epsilon"], delta, 0.0) / noise)


def fitted(points: list[Point]) -> tuple[float, float, float]:
    """Return floor, slope and power of the errors, as shares of the scale, by least squares of their logarithms."""
    x = np.array([x_of(point, delta_of(DATA)) for point in points])
    share = np.array([point["error"] for point in points]) / LENGTH

    def off(values: Any) -> Any:
        floor, slope, power = np.exp(values)
        return np.log(floor + slope * x**-power) - np.log(share)

    least = np.log([LEAST, 1e-3, 1e-3])
    found = least_squares(off, np.log([0.9 * share.min(), 0.05, 0.5]), bounds=(least, 1.0))
    floor, slope, power = np.exp(found.x)
    return float(floor), float(slope), float(power)


def write_points(points: list[Point]) -> None:
    rows = [
        [
            f"{point['users']:,}",
            f"{point['items']:,}",
            f"{point['ratings']:,}",
            point["model"],
            f"{point['unit']} {point['epsilon']:g}" if "unit" in point else "",
            f"{point['error']:.4f}",
        ]
        for point in points
    ]
    head = ["users", "items", "ratings", "model", "unit, epsilon", "MAE"]
    title = "The error of the private models against the number of people"
    write_table(
        "size",
        title,
        head,
        rows,
        data=f"{DATA}, parts by users drawn by chance",
        splits="80/20, one; the whole as in the table of errors",
        unprotected="NeighbourCF.accurate(), on the held-out ratings of at most 4,000 users",
    )


def write_rule(points: list[Point]) -> dict[tuple[str, str], tuple[float, float, float]]:
    kinds = dict.fromkeys((point["model"], point.get("unit", "")) for point in points)
    laws = {kind: fitted([p for p in points if (p["model"], p.get("unit", "")) == kind]) for kind in kinds}
    rows = [[*kind, *(f"{value:.4f}" for value in law)] for kind, law in laws.items()]
    head = ["model", "unit", "floor", "slope", "power"]
    title = "The rule of what error to expect: floor + slope x^-power, a share of the scale"
    write_table("size_rule", title, head, rows, command="size", fitted_to=f"parts of {DATA}")
    return laws


def write_trial(laws: dict[tuple[str, str], tuple[float, float, float]], keep: Path) -> None:
    """Write how much more error than unprotected is expected and was measured, elsewhere, and the difference."""

    def expected(point: Point) -> float:
        floor, slope, power = laws[point["model"], point.get("unit", "")]
        return min(OWN_MEAN, floor + slope * x_of(point, DELTA_ELSEWHERE) ** -power)

    rows = []
    for name in ELSEWHERE:
        *private, plain = tabled(name, keep)
        for point in private:
            more = max(expected(point) / expected(plain), 1.0) - 1
            found = point["error"] / plain["error"] - 1
            budget = f"{point['unit']} {point['epsilon']:g}"
            off = f"{100 * (more - found):+.0f}"
            rows.append([name, point["model"], budget, f"{more:+.0%}", f"{found:+.0%}", off])
    head = ["data", "model", "unit, epsilon", "more error, expected", "measured", "points off"]
    title = "The rule on data to which it was not fitted"
    beside = "NeighbourCF.accurate(), beside which the error is"
    settings: Any = {"fitted_to": f"parts of {DATA}", "unprotected": beside}
    write_table("size_trial", title, head, rows, command="size", **settings)


def chart(points: list[Point]) -> None:
    import altair as alt
    import pyarrow as pa

    lines = {
        (point["users"], point["error"], _named(point))
        for point in points
        if "unit" not in point or point["epsilon"] == CHARTED[point["unit"]]
    }
    table = pa.Table.from_pylist(
        [{"users": users, "MAE": error, "model": name} for users, error, name in sorted(lines)]
    )
    x = alt.X("users:Q", title="people").scale(type="log")
    y = alt.Y("MAE:Q", title="mean absolute error, stars").scale(zero=False)
    title = "What privacy costs falls with the number of people (netflix-tenth)"
    picture = (
        alt.Chart(table, title=title, width=560, height=340)
        .mark_line(point=True)
        .encode(x=x, y=y, color=alt.Color("model:N", title=None).legend(labelLimit=320))
    )
    picture.save(ROOT / "docs" / "size.png", scale_factor=2)


def _named(point: Point) -> str:
    if "unit" not in point:
        return "unprotected: NeighbourCF.accurate()"
    return f"{point['model']}, one {point['unit']}, epsilon {point['epsilon']:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", nargs="*", type=int, default=USERS)
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished parts")
    asked = parser.parse_args()
    keep = asked.keep or CACHE / "size" / fingerprint("models", "privacy", "kernels")
    keep.mkdir(parents=True, exist_ok=True)
    ratings = gf.load(DATA)
    points = [point for users in asked.users for point in measure(ratings, users, keep)]
    points += tabled(DATA, keep)
    write_points(points)
    write_trial(write_rule(points), keep)
    chart(points)


if __name__ == "__main__":
    main()
