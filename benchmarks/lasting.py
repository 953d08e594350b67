"""Models that are updated, beside one fit at the end, refits with a split budget, and a model that is never updated.

80/20 hold-out; the training part arrives in batches: by time, by users (everybody comes once), or at random (everybody
in every batch). On the clock, 52 weekly batches are learnt from in 14 updates, at weeks 1, 2, ... and then whenever the
elapsed time has grown by a quarter, and 24 updates (ten years) are promised. What is measured is the error of the item
model on everybody's held-out ratings, with everybody's training ratings as profiles. "One fit" has the whole budget at
the end, half steps too, and is not private for life; "refit" has the budget that makes all refits as private as one
life; "never" is one fit of the first batch. What is measured is kept; `--only` measures a part.

    ./scripts/bench lasting --only "ml-100k" --seeds 3
    ./scripts/bench lasting --cost netflix-tenth     # time and memory of an update beside those of a whole fit
    ./scripts/bench lasting --sequences 100000       # the search for sequences that move more than is claimed
    ./scripts/bench lasting --lives 20000            # whole lives, audited by their likelihood ratio
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import goodfence as gf
from benchmarks.accuracy import delta_of
from benchmarks.data import CACHE
from benchmarks.lists import FEWEST, LIKES
from benchmarks.private_attack import fingerprint
from benchmarks.results import write_table
from documents.tables import measured as table
from goodfence.arrays import row_numbers
from goodfence.auditing.lower_bound import lower_bound
from goodfence.data.files import atomic_write
from goodfence.data.matrix import cells_inside
from goodfence.data.splits import core
from goodfence.privacy.accounting import gaussian_epsilon, total_mu
from tests.support import lives

WEEKS, PROMISED = 52, 24
ARMS = ("one fit", "refit", "never", "updated")
UNITS = {"cf rating": 1.0, "cf user": 4.0, "lists event": 1.0}


@dataclass(frozen=True, slots=True)
class Case:
    """One data set, arriving in one way, and what an updated model must reach beside one fit, in per cent."""

    data: str
    model: str
    arrival: str
    batches: int
    must: float
    goal: float
    pairs: str = "batch"
    wait: int = 0

    @property
    def name(self) -> str:
        """Return what it is called in the table."""
        clock = " on the clock" if self.batches == WEEKS else ""
        more = f", {self.pairs}" if self.pairs != "batch" else f", wait {self.wait}" if self.wait else ""
        return f"{self.data} {self.arrival} {self.batches}{clock}{more}, {self.model} {UNITS[self.model]:g}"

    @property
    def updates(self) -> int:
        """Return how many updates are promised."""
        return PROMISED if self.batches == WEEKS else self.batches


CASES = (
    Case("ml-100k", "cf rating", "time", 12, 2.2, 1.5),
    Case("ml-1m", "cf rating", "users", 12, 2.3, 1.7),
    Case("ml-1m", "cf rating", "users", WEEKS, 2.8, 2.0),
    Case("ml-1m", "cf rating", "random", 12, math.nan, math.nan),
    Case("ml-1m", "cf rating", "random", 12, math.nan, math.nan, "history"),
    Case("movietweetings", "cf rating", "time", 12, math.nan, math.nan),
    Case("netflix-tenth", "cf rating", "users", 12, 1.6, 1.2),
    Case("netflix-tenth", "cf rating", "random", 12, 2.6, 2.0, "history"),
    Case("ml-1m", "lists event", "users", 12, 86, 90),
    Case("ml-1m", "lists event", "users", WEEKS, 83, 88),
    Case("ml-100k", "lists event", "time", 12, 80, 86),
    Case("ml-1m", "lists event", "random", 12, math.nan, math.nan),
    Case("ml-1m", "lists event", "random", 12, 76, 82, "history"),
    Case("ml-1m", "cf user", "users", 12, 1.8, 1.2),
    Case("ml-1m", "cf user", "users", WEEKS, 2.5, 1.8),
    Case("ml-100k", "cf user", "time", 12, 2.4, 1.8, wait=1),
)
HEAD = ["case", "one fit", "refit", "never", "updated", "beside one fit", "must", "met", "goal", "reached"]
HEAD += ["from t=2 as good as refits", "seeds"]


def clock(weeks: int) -> list[int]:
    """Return in which weeks there is an update: when the elapsed time has grown by a quarter."""
    found = [1]
    while (after := max(found[-1] + 1, math.ceil(1.25 * found[-1]))) <= weeks:
        found.append(after)
    return found


def split_of(case: Case, seed: int) -> tuple[gf.Ratings, gf.Ratings]:
    ratings = gf.load(case.data)
    if case.model.startswith("lists"):
        ratings = core(ratings.likes(LIKES.get(case.data, 4)), per_user=FEWEST, per_item=FEWEST)
    return gf.holdout(ratings, fraction=0.2, rng=seed)


def arrivals(case: Case, train: gf.Ratings, seed: int) -> tuple[Any, list[int]]:
    """Return in which batch each training rating arrives, from 0, and how many have come by each update."""
    rng, csr = np.random.default_rng(seed), train.csr
    if case.arrival == "time":
        when = np.empty(csr.nnz, dtype=np.int64)
        when[np.argsort(train.times, kind="stable")] = np.arange(csr.nnz) * case.batches // csr.nnz
    elif case.arrival == "users":
        when = rng.integers(case.batches, size=csr.shape[0])[row_numbers(csr.indptr)]
    else:
        when = rng.integers(case.batches, size=csr.nnz)
    return when, clock(WEEKS) if case.batches == WEEKS else list(range(1, case.batches + 1))


def part(ratings: gf.Ratings, inside: Any) -> gf.Ratings:
    cells = cells_inside(ratings.csr, inside)
    there = np.flatnonzero(np.diff(cells.indptr))
    return ratings.replaced(cells[there], users=ratings.users[there])


def recommender(case: Case, items: Any, epsilon: float, lasting: gf.Lasting | None = None) -> Any:
    _, unit = case.model.split()
    how: Any = {"epsilon": epsilon, "delta": delta_of(case.data), "unit": unit, "catalogue": items, "lasting": lasting}
    return gf.PrivateTopN(**how) if case.model.startswith("lists") else gf.PrivateCF(**how)


def error(model: Any, train: gf.Ratings, test: gf.Ratings) -> float:
    """Return the error of the item model (NDCG@10 of lists) with everybody's training ratings as profiles."""
    model.restore(model.laid_out(train), model.model_, model.record_)
    scores = gf.evaluate(model, test)
    return float(scores.ndcg if test.feedback == "implicit" else scores.mae)


def split_epsilon(case: Case, parts: int) -> float:
    """Return the epsilon of each of so many refits that are together as private as one life."""
    delta = delta_of(case.data)
    return gaussian_epsilon(total_mu(UNITS[case.model], delta, 0.0) / math.sqrt(parts), delta)


def measure(case: Case, arm: str, seed: int) -> list[float]:
    """Return the errors of one arm after each of `looks`, the last at the end."""
    train, test = split_of(case, seed)
    when, ends = arrivals(case, train, seed)
    epsilon, last, items = UNITS[case.model], len(ends), train.items
    if arm == "one fit":
        return [error(recommender(case, items, epsilon).fit(train), train, test)]
    if arm == "never":
        return [error(recommender(case, items, epsilon).fit(part(train, when < ends[0])), train, test)]
    if arm == "refit":
        each = split_epsilon(case, case.updates)
        fits = [recommender(case, items, each).fit(part(train, when < ends[t - 1])) for t in looks(last)]
        return [error(model, train, test) for model in fits]
    lasting: Any = gf.Lasting(updates=case.updates, pairs=case.pairs, wait=case.wait)  # type: ignore[arg-type]
    model, found = recommender(case, items, epsilon, lasting), []
    for t, (first, end) in enumerate(pairwise([0, *ends]), start=1):
        batch = part(train, (when >= first) & (when < end))
        model.fit(batch) if t == 1 else model.update(batch)
        if t in looks(last):
            kept = model.ratings_
            found.append(error(model, train, test))
            model.restore(kept, model.model_, model.record_)
    return found


def looks(last: int) -> list[int]:
    """Return after how many updates it is looked."""
    return sorted({t for t in (2, 4, 8) if t < last} | {last})


def kept(case: Case, arm: str, seed: int, keep: Path) -> list[float]:
    own = case.name if arm == "updated" else case.name.replace(", history", "")
    path = keep / f"{own}, {arm}, {seed}.json".replace(" ", "-")
    if not path.is_file():
        start = time.perf_counter()
        found = measure(case, arm, seed)
        print(
            case.name, arm, seed, [f"{each:.4f}" for each in found], f"{time.perf_counter() - start:.0f} s", flush=True
        )
        with atomic_write(path) as file:
            file.write(json.dumps(found).encode())
    return list(json.loads(path.read_text()))


def row(case: Case, seeds: list[int], keep: Path, arms: list[str]) -> list[str]:
    """Return the line of one case: means over seeds."""
    found = {arm: np.mean([kept(case, arm, seed, keep) for seed in seeds], axis=0) for arm in arms}
    ends = [f"{found[arm][-1]:.4f}" if arm in found else "" for arm in ARMS]
    lists = case.model.startswith("lists")
    beside = verdicts = [""]
    if {"one fit", "updated"} <= {*arms}:
        share = 100 * found["updated"][-1] / found["one fit"][-1]
        value = share if lists else share - 100
        beside = [f"{value:.1f}%" if lists else f"{value:+.1f}%"]
        good = [value >= limit if lists else value <= limit for limit in (case.must, case.goal)]
        verdicts = [
            cell
            for limit, met in zip((case.must, case.goal), good, strict=True)
            for cell in ((f"{limit:g}%", "yes" if met else "NO") if not math.isnan(limit) else ("", ""))
        ]
    else:
        verdicts = [""] * 4
    never_worse = ""
    if {"refit", "updated"} <= {*arms}:
        ahead = found["updated"] - found["refit"]
        never_worse = "yes" if ((ahead >= 0) if lists else (ahead <= 0)).all() else "NO"
    return [case.name, *ends, *beside, *verdicts, never_worse, str(len(seeds))]


def cost(name: str) -> None:
    """Measure the time and the peak memory of the last of 12 updates, and of one fit of everything."""
    fresh, rows = multiprocessing.get_context("spawn"), []
    for what in ("one fit", "updates"):
        with ProcessPoolExecutor(1, mp_context=fresh) as pool:
            seconds, gigabytes = pool.submit(cost_of, name, what).result()
        rows.append(
            [name, what, f"{seconds[-1]:.1f}", f"{max(seconds):.1f}", f"{sum(seconds):.0f}", f"{gigabytes:.2f}"]
        )
    head = ["data", "what", "last, s", "slowest, s", "all, s", "peak memory, GiB"]
    write_table("lasting_cost", "Time and memory of updates", head, rows, command="lasting", batches="12, by users")


def cost_of(name: str, what: str) -> tuple[list[float], float, float]:
    case = next(each for each in CASES if each.data == name and each.arrival == "users")
    train, test = split_of(case, 1)
    (when, ends), seconds = arrivals(case, train, 1), []
    lasting = None if what == "one fit" else gf.Lasting(updates=case.updates)
    model = recommender(case, train.items, UNITS[case.model], lasting)
    for t, (first, end) in enumerate(pairwise([0, ends[-1]] if lasting is None else [0, *ends])):
        batch = part(train, (when >= first) & (when < end))
        start = time.perf_counter()
        model.fit(batch) if t == 0 else model.update(batch)
        seconds.append(time.perf_counter() - start)
        print(what, t + 1, f"{seconds[-1]:.1f} s", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return seconds, peak, error(model, train, test)


def sequences(n: int) -> None:
    """Search n lives of every kind and length for one that moves more than is claimed."""
    rows, lengths = [], (1, 3, 6, 12)
    kinds = list(lives.models(1))
    for kind in kinds:
        share = n // (len(kinds) * len(lengths)) + 1
        found = [max(lives.distances(kind, share, seed=11, updates=length)) for length in lengths]
        rows.append([kind, f"{share * len(lengths):,}", *(f"{math.floor(1e4 * each) / 1e4:.4f}" for each in found)])
        print(*rows[-1], flush=True)
    head = ["model, unit", "lives", *(f"{length} updates" for length in lengths)]
    title = "The farthest that one record moved all releases of a life, over what is claimed"
    write_table("lasting_sensitivity", title, head, rows, command="lasting --sequences")


def audit(n: int) -> None:
    """Tell n whole lives without one event from n with it, by their likelihood ratio."""
    rows = []
    for updates in (1, 4, 12, 32):
        for noise in (1.0, 0.5):
            scores, claimed = lives.audited(n, seed=updates, updates=updates, noise=noise)
            bound = lower_bound(*scores, delta=1e-5)
            word = "BROKEN" if bound.mu > claimed else "not broken"
            what = "as released" if noise == 1 else "a twin with half the noise"
            rows.append([str(updates), what, f"{claimed:.3f}", f"{bound.mu:.3f}", word])
    head = ["updates", "noise", "claimed mu", "mu at least", "claim"]
    write_table("lasting_audit", "Audit of whole lives", head, rows, command="lasting --lives", lives=f"{n:,} of each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--arms", nargs="*", default=list(ARMS), choices=ARMS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=None, help="folder of what was measured")
    parser.add_argument(
        "--table", action="store_true", help="write the table of what was measured, and measure nothing"
    )
    parser.add_argument("--cost", default=None, help="a data set")
    parser.add_argument("--sequences", type=int, default=0)
    parser.add_argument("--lives", type=int, default=0)
    asked = parser.parse_args()
    if asked.sequences:
        sequences(asked.sequences)
    if asked.lives:
        audit(asked.lives)
    if asked.sequences or asked.lives:
        return
    if asked.cost:
        cost(asked.cost)
        return
    keep = asked.keep or CACHE / "lasting" / fingerprint("models", "privacy", "kernels")
    keep.mkdir(parents=True, exist_ok=True)
    seeds = list(range(1, asked.seeds + 1))
    chosen = [case for case in CASES if asked.only in case.name]
    if asked.table:
        chosen, rows = [*chosen], []
        for case in chosen:
            arms = [arm for arm in ARMS if measured(case, arm, seeds, keep)]
            rows += [row(case, seeds, keep, arms)] if "updated" in arms else []
    else:
        rows = [row(case, seeds, keep, asked.arms) for case in chosen]
    about = "Updated private models: error (NDCG@10 of lists) beside one fit, refits and no updates"
    settings: dict[str, object] = {
        "splits": "80/20",
        "delta": "1e-5 (1e-6 for netflix-tenth)",
        "older": "rows that were not measured again are of earlier dates and versions",
    }
    before = [list(each.values()) for each in table("lasting")]  # what was not measured now is as it was
    every = {each[0]: each for each in [*before, *rows]}
    ordered = [every[case.name] for case in CASES if case.name in every]
    write_table("lasting", about, HEAD, ordered, noise="from the operating system", **settings)


def measured(case: Case, arm: str, seeds: list[int], keep: Path) -> bool:
    own = case.name if arm == "updated" else case.name.replace(", history", "")
    return all((keep / f"{own}, {arm}, {seed}.json".replace(" ", "-")).is_file() for seed in seeds)


if __name__ == "__main__":
    main()
