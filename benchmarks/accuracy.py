"""The error of the private models beside unprotected neighbourhoods, on the same splits.

80/20 hold-out, three seeds (of the split: the noise is never seeded), predictions not rounded, clipped to the scale.
What is measured is kept, so that the table can be made in parts; `--only-neighbours` measures `NeighbourCF.accurate()`
alone, beside what LensKit's item-kNN was measured to reach. Its settings were chosen on movietweetings and on
validation parts of the training parts, never on what is held out here.
delta is 1e-5, 1e-6 for netflix-tenth. The constants of the private models were chosen on parts of the training parts.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

import goodfence as gf
from benchmarks.data import CACHE, known_only, write_csv
from benchmarks.peers import run_worker
from benchmarks.private_attack import fingerprint
from benchmarks.results import FOLDER, write_table
from documents.tables import rows_of
from goodfence.arrays import row_numbers
from goodfence.data.files import atomic_write
from goodfence.data.splits import sample_targets
from goodfence.evaluation import evaluate
from goodfence.models.private.cf import PrivateCF, PrivateMeans
from goodfence.papers.mcsherry_mironov import McSherryMironov

DATA = ("ml-100k", "ml-1m", "douban-movie", "netflix-tenth")
ELSEWHERE = ("goodbooks", "movietweetings", "movietweetings-full", "half stars")
"""Other data, most of them on other scales: is `auto` as good as `means` there too?"""
HALF_STARS: dict[str, Any] = {"users": 5000, "items": 2500, "ratings": 500_000, "scale": (0.5, 5, 0.5), "rng": 7}
"""Made-up ratings, because none of the real sets has half stars."""
MUST = {
    ("ml-100k", "rating"): (0.731, 0.727),
    ("ml-100k", "user"): (0.746, 0.741),
    ("ml-1m", "rating"): (0.687, 0.679),
    ("ml-1m", "user"): (0.698, 0.693),
    ("douban-movie", "rating"): (0.546, 0.545),
    ("douban-movie", "user"): (0.557, 0.556),
    ("netflix-tenth", "rating"): (0.658, 0.652),
    ("netflix-tenth", "user"): (0.669, 0.665),
}
"""What `PrivateCF` must reach, and the goal: about 2% (rating) and 4% (user) above LensKit's item-kNN."""
WORSE = 0.002
"""By how much `auto` may be worse than `means`."""
AUTO, MEANS = "PrivateCF auto", "PrivateCF means"
SQUARES = "the same fit, users by least squares"
"""`PrivateCF auto` without Huber's loss: what of its error is not a matter of means and medians."""
OURS = ("PrivateCF", "PrivateMeans")
ACCURATE = "NeighbourCF.accurate(), unprotected"
LENSKIT = {"ml-100k": 0.7127, "ml-1m": 0.6660, "douban-movie": 0.5343, "netflix-tenth": 0.6390}
"""The error of LensKit's item-kNN, k=20, as this benchmark measured it; see results/accuracy.md."""
MORE = 0.001
"""By how much `NeighbourCF.accurate()` may be worse than LensKit's item-kNN."""
EPSILON = {"rating": 1.0, "user": 4.0}
KNN_USERS = 4000
"""The unprotected kNN is asked about the held-out ratings of at most this many users."""
HEAD = ["data", "model", "unit, epsilon", "MAE", "s.e.", "RMSE", "must", "met", "goal", "reached"]
HEAD += ["auto - means", f"at most {WORSE:g}", "plan", "epsilon spent", "slowest fit, s"]

Key: TypeAlias = tuple[str, str]
Cell: TypeAlias = dict[str, Any]


def delta_of(name: str) -> float:
    return 1e-6 if name == "netflix-tenth" else 1e-5


def ratings_of(name: str) -> gf.Ratings:
    return gf.synthetic(**HALF_STARS) if name == "half stars" else gf.load(name)


def models(name: str) -> dict[Key, Callable[[], Any]]:
    """Return how each private model is made, by its name and unit."""
    delta = delta_of(name)
    made: dict[Key, Callable[[], Any]] = {}
    for unit, epsilon in EPSILON.items():
        budget: Any = {"epsilon": epsilon, "delta": delta, "unit": unit}
        made[AUTO, unit] = lambda budget=budget: PrivateCF(**budget, items="from ratings")
        made[MEANS, unit] = lambda budget=budget: PrivateCF(**budget, plan="means", items="from ratings")
        made["PrivateMeans", unit] = lambda budget=budget: PrivateMeans(**budget, items="from ratings")
    made["McSherryMironov", "rating"] = lambda: McSherryMironov(epsilon=1.0, delta=delta, items="from ratings")
    return made


def measure(model: Any, train: gf.Ratings, test: gf.Ratings) -> Cell:
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    scores = evaluate(model, test)
    return {
        "error": scores.mae,
        "rmse": scores.rmse,
        "seconds": seconds,
        "spent": model.guarantee().epsilon,
        "plan": _plan(getattr(model, "stages_", None)),
    }


def by_squares(model: PrivateCF, test: gf.Ratings) -> Cell:
    """Return the errors of a fitted model whose users' regressions count every error squared."""
    model.model_ = replace(model.model_, cut=math.inf)
    scores = evaluate(model, test)
    return {"error": scores.mae, "rmse": scores.rmse}


def _plan(stages: Any) -> str:
    if stages is None:
        return ""
    parts = [f"covariance of {stages.n_chosen:,}"] if stages.covariance else []
    parts += [f"{len(stages.half_steps)} half steps"] if stages.half_steps else []
    return ", ".join(parts) or "means"


def unprotected(train: gf.Ratings, test: gf.Ratings) -> float:
    """Return the error of the paper's kNN, k = 100, over the cells that it predicts."""
    few = sample_targets(test, KNN_USERS, rng=0)
    rows = np.sort(test.rows(few))
    kept = np.isin(row_numbers(test.csr.indptr), rows)
    csr = test.csr.tocoo()
    users, items = test.users[csr.coords[0][kept]], test.items[csr.coords[1][kept]]
    predictions = gf.NeighbourCF(gf.KNN(k=100)).fit(train).predict(users, items)
    return float(np.nanmean(np.abs(predictions - csr.data[kept])))


def asked_of_all(train: gf.Ratings, test: gf.Ratings) -> gf.Ratings:
    """Return the held-out ratings that LensKit is asked about, and we beside it: of some users, and of known items."""
    asked = np.isin(test.users, sample_targets(test, KNN_USERS, rng=0))
    rows = row_numbers(test.csr.indptr)
    kept = asked[rows]
    cells = (test.csr.data[kept], (rows[kept], test.csr.indices[kept]))
    return known_only(train, test.replaced(sparse.csr_array(cells, shape=test.shape)))


def accurate(train: gf.Ratings, test: gf.Ratings) -> Cell:
    """Return the error of `NeighbourCF.accurate()` on the ratings that LensKit is asked about, clipped likewise."""
    part = asked_of_all(train, test)
    start = time.perf_counter()
    model = gf.NeighbourCF.accurate(progress=False).fit(train)
    seconds = time.perf_counter() - start
    rows = row_numbers(part.csr.indptr)
    found = model.predict_cells(rows, part.csr.indices)
    errors = np.abs(np.clip(found, test.scale.lowest, test.scale.highest) - part.csr.data)
    return {"error": float(errors.mean()), "seconds": seconds}


def peers(train: gf.Ratings, test: gf.Ratings) -> dict[str, float]:
    """Return the errors of LensKit's item-kNN and matrix factorisation on the same split, unprotected."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("train.csv", "test.csv")]
        write_csv(train, files[0])
        write_csv(asked_of_all(train, test), files[1])
        ends = (str(test.scale.lowest), str(test.scale.highest))
        words = (str(files[0]), str(files[1]), *ends)
        line = run_worker("lenskit", "accuracy_worker.py", *words, threads=2, timeout=1500)
    return json.loads(line) if line else {}


def measured(name: str, seed: int, keep: Path, which: str) -> dict[Key, Cell]:
    """Return what every model gave on one split: kept results, or new ones, which are kept.

    `which` is "all", "private", "ours" (those private models that are no re-implementation) or "neighbours".
    """
    path = keep / f"{name.replace(' ', '-')}-{seed}.json"
    found: dict[Key, Cell] = {}
    if path.is_file():
        found = {tuple(line.pop("key")): line for line in json.loads(path.read_text())}
    train, test = gf.holdout(ratings_of(name), fraction=0.2, rng=seed)

    def kept(key: Key, cell: Cell) -> None:
        found[key] = cell
        print(name, seed, *key, f"{cell['error']:.4f}", flush=True)
        lines = [{"key": each, **values} for each, values in found.items()]
        with atomic_write(path) as file:
            file.write(json.dumps(lines).encode())

    if which in ("all", "neighbours") and name in DATA and (ACCURATE, "") not in found:
        kept((ACCURATE, ""), accurate(train, test))
    if which == "all" and name in DATA and not any("LensKit" in model for model, _ in found):
        kept(("paper's kNN, k=100, unprotected", ""), {"error": unprotected(train, test)})
        for peer, error in peers(train, test).items():
            kept((f"{peer}, unprotected", ""), {"error": error})
    for key, make in models(name).items() if which != "neighbours" else ():
        if key in found or (which == "ours" and not key[0].startswith(OURS)):
            continue
        model = make()
        kept(key, measure(model, train, test))
        if key[0] == AUTO:
            kept((SQUARES, key[1]), by_squares(model, test))
    return found


def compare_neighbours(name: str, seeds: int, keep: Path) -> list[str]:
    """Return the row of `NeighbourCF.accurate()` on one data set."""
    cells = [measured(name, seed, keep, "neighbours")[ACCURATE, ""] for seed in range(seeds)]
    error, deviation = spread([cell["error"] for cell in cells])
    limit = LENSKIT[name] + MORE
    judged = [f"{error:.4f}", f"{deviation:.4f}", f"{limit:.4f}", says(error <= limit)]
    return [name, f"{LENSKIT[name]:.4f}", *judged]


def compare(name: str, seeds: int, keep: Path, which: str) -> list[list[str]]:
    splits = [measured(name, seed, keep, which) for seed in range(seeds)]
    order = [(model, unit) for model, unit in models(name) for model in _with_squares(model)]
    keys = sorted(splits[0], key=lambda key: (key[1] != "", order.index(key) if key[1] else 0))
    return [row(name, key, splits) for key in keys]


def _with_squares(model: str) -> tuple[str, ...]:
    return (model, SQUARES) if model == AUTO else (model,)


def taken_over(rows: list[list[str]]) -> list[list[str]]:
    """Return these rows of our models, and those of all others as the present table has them, set by set."""
    present = [list(row.values()) for row in rows_of((FOLDER / "accuracy.md").read_text())]
    names = list(dict.fromkeys(row[0] for row in [*present, *rows]))
    merged = []
    for name in names:
        new = [row for row in rows if row[0] == name]
        old = [_widened(row) for row in present if row[0] == name]
        others = [row for row in old if not new or not row[1].startswith((*OURS, SQUARES))]
        unprotected = [row for row in others if not row[2]]
        merged += unprotected + new + [row for row in others if row[2]]
    return merged


def _widened(row: list[str]) -> list[str]:
    """Return a row of a table that had no column RMSE yet with an empty one."""
    return row if len(row) == len(HEAD) else [*row[:5], "", *row[5:]]


def row(name: str, key: Key, splits: list[dict[Key, Cell]]) -> list[str]:
    model, unit = key
    cells = [split[key] for split in splits if key in split]
    error, deviation = spread([cell["error"] for cell in cells])
    seconds = [cell["seconds"] for cell in cells if "seconds" in cell]
    squares = [cell["rmse"] for cell in cells if "rmse" in cell]
    wanted = MUST.get((name, unit)) if model == AUTO else None
    judged = [""] * 4
    if wanted:
        judged = [text for level in wanted for text in (f"{level:.3f}", says(error <= level))]
    return [
        name,
        model,
        f"{unit} {EPSILON[unit]:g}" if unit else "",
        f"{error:.4f}",
        f"{deviation:.4f}",
        f"{np.mean(squares):.4f}" if squares else "",
        *judged,
        *(compared(unit, splits) if model == AUTO else ["", ""]),
        cells[-1].get("plan", ""),
        f"{cells[-1]['spent']:.4f}" if "spent" in cells[-1] else "",
        f"{max(seconds):.1f}" if seconds else "",
    ]


def compared(unit: str, splits: list[dict[Key, Cell]]) -> list[str]:
    """Return by how much `auto` is worse than `means` on the same splits, and whether that is little enough.

    Where `auto` took the plan `means` it is the same distribution, and they differ by their noise only.
    """
    if all(split[AUTO, unit]["plan"] == split[MEANS, unit]["plan"] for split in splits):
        return ["same plan", says(True)]
    more, deviation = spread([s[AUTO, unit]["error"] - s[MEANS, unit]["error"] for s in splits])
    return [f"{more:+.4f} (s.e. {deviation:.4f})", says(more <= WORSE)]


def spread(values: list[float]) -> tuple[float, float]:
    """Return the mean and its standard error, which one value does not have."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return float(np.mean(values)), deviation / math.sqrt(len(values))


def says(true: bool) -> str:
    return "yes" if true else "NO"


def write_neighbours(names: list[str], seeds: int, keep: Path) -> None:
    head = ["data", "LensKit item-kNN, MAE", "NeighbourCF.accurate(), MAE", "s.e.", "must", "met"]
    write_table(
        "accuracy_neighbours",
        "The error of the neighbourhood for accuracy",
        head,
        [compare_neighbours(name, seeds, keep) for name in names],
        command="accuracy --only-neighbours",
        splits=f"80/20, {seeds} seeds",
        asked=f"the held-out ratings of at most {KNN_USERS:,} users, on items of the training part",
        predictions="not rounded, clipped to the scale",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=[*DATA, *ELSEWHERE])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--without-peers", action="store_true", help="the private models only")
    parser.add_argument("--ours", action="store_true", help="PrivateCF and PrivateMeans only; other rows stay")
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished splits")
    parser.add_argument("--only-neighbours", action="store_true", help="NeighbourCF.accurate() only")
    asked = parser.parse_args()
    keep = asked.keep or CACHE / "accuracy" / fingerprint("models", "privacy", "kernels")
    keep.mkdir(parents=True, exist_ok=True)
    if asked.only_neighbours:
        write_neighbours([name for name in asked.data if name in DATA], asked.seeds, keep)
        return
    rows = []
    which = "ours" if asked.ours else "private" if asked.without_peers else "all"
    for name in asked.data:
        rows += compare(name, asked.seeds, keep, which)
    kept: Any = {"rows_of_other_models": "as measured before"} if asked.ours else {}
    write_table(
        "accuracy",
        "The error of private models",
        HEAD,
        taken_over(rows) if asked.ours else rows,
        **kept,
        splits=f"80/20, {asked.seeds} seeds",
        predictions="not rounded, clipped to the scale",
        delta="1e-5 (1e-6 for netflix-tenth)",
        noise="from the operating system",
        half_stars=f"made up, {HALF_STARS['users']:,} users, {HALF_STARS['ratings']:,} ratings",
    )


if __name__ == "__main__":
    main()
