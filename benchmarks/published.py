"""Which published ideas stop fake accounts, at what error: every system of docs/published.md, measured alike."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import goodfence as gf
from benchmarks.results import FOLDER, write_table
from benchmarks.sent_worlds import SentOnce
from goodfence.arrays import row_numbers
from goodfence.attack.attack import Attack, Subject
from goodfence.data.splits import holdout
from goodfence.evaluation import Scores
from goodfence.models.method import traits_of
from goodfence.models.recommender import guarantee_of, unfitted_copy
from goodfence.rng import Streams

SEED, KNOWN, FAKES = 7, 16, 50
HEAD = [
    *("idea", "guarantee", "attacker", "MAE", "coverage", "answers recover", "without target"),
    *("raw advantage", "recovery", "advantage", "certain", "certain and right", "targets"),
]
KEPT = (
    *("recovery", "recovery_without", "advantage", "guess", "fully_recovered", "mae"),
    *("confident_coverage", "confident_precision"),
    *("raw_recovery", "raw_recovery_without", "raw_advantage"),
)
"""Which estimates are written down."""
ITEMS: Any = "from ratings"


class Line(NamedTuple):
    """One recommender, who attacks it, and how many people of each data set."""

    idea: str
    make: Callable[[], Any]
    attackers: tuple[str, ...] = ("one asks",)
    people: int = 100
    larger: int = 0
    """How many people of ml-1m; 0 where it is not measured there."""
    pairs: int = 0
    """How many people the attack on pairs, which finds most where much was rated."""


def knn() -> gf.NeighbourCF:
    return gf.NeighbourCF(gf.KNN(k=50))


def noisy(epsilon: float) -> Callable[[], Any]:
    return lambda: gf.papers.NoisyAnswers(knn(), epsilon=epsilon)


def sent(by: Any) -> Callable[[], Any]:
    return lambda: gf.papers.Perturbed(knn(), by=by)


def partitions(allocation: str | None) -> Callable[[], Any]:
    return lambda: gf.NeighbourCF(gf.PPNS(k=50, beta=7, allocation=allocation))


def genders() -> dict[int, bool]:
    """Return who of ml-100k is a man, from the file beside the ratings."""
    people = Path(os.environ["GOODFENCE_DATA"]) / "ml-100k" / "u.user"
    lines = people.read_text(encoding="latin-1").splitlines()
    fields = (line.split("|") for line in lines)
    return {int(field[0]): field[2] == "M" for field in fields}


def blurred(extra: float, strategy: Any) -> Callable[[], Any]:
    return lambda: gf.papers.Perturbed(knn(), by=gf.papers.BlurMe(attribute=genders(), extra=extra, strategy=strategy))


BOTH, ADAPTED, PAIRS = ("one asks", "all ask"), ("one asks", "adaptive"), ("one asks", "pairs")
COVER = ("one asks", "cover")
RPT = gf.papers.RandomisedPerturbation
LINES = (
    Line("kNN, k=50 (reference)", knn, larger=100),
    Line("Laplace on each answer, ε=1", noisy(1.0), BOTH),
    Line("Laplace on each answer, ε=4", noisy(4.0), BOTH, larger=10),
    Line("Laplace on each answer, ε=10", noisy(10.0), BOTH),
    Line("randomised response, ε=1", sent(gf.papers.RandomisedResponse(epsilon=1.0)), larger=100),
    Line("randomised response, ε=2", sent(gf.papers.RandomisedResponse(epsilon=2.0)), larger=100),
    Line("randomised response, ε=4", sent(gf.papers.RandomisedResponse(epsilon=4.0)), larger=100),
    Line("Laplace on the ratings, ε=4", sent(gf.papers.LocalLaplace(epsilon=4.0)), larger=100),
    Line("z-scores without noise", sent(RPT(sigma_max=0.0, beta_max=0.0)), larger=100),
    Line("randomised perturbation, σ=1", sent(RPT(sigma_max=1.0, beta_max=0.0)), larger=100),
    Line("randomised perturbation, σ=2", sent(RPT(sigma_max=2.0, beta_max=0.0)), larger=100),
    Line("randomised perturbation, σ=3", sent(RPT(sigma_max=3.0, beta_max=0.0)), larger=100),
    Line("randomised perturbation, σ=2, β=25", sent(RPT()), larger=100),
    Line("NeNDS by column, sets of 5", sent(gf.papers.NeNDS()), larger=100),
    Line("NeNDS by column, sets of 20", sent(gf.papers.NeNDS(size=20)), larger=100),
    Line("NeNDS within a person, sets of 3", sent(gf.papers.NeNDS(within="person")), larger=100),
    Line("BlurMe, 1 % sampled", blurred(0.01, "sampled")),
    Line("BlurMe, 10 % greedy", blurred(0.1, "greedy")),
    Line("item swapping, p=0.3", sent(gf.papers.ItemSwap(p=0.3)), larger=100),
    Line("item swapping, p=0.5", sent(gf.papers.ItemSwap()), larger=100),
    Line("item swapping, p=0.8", sent(gf.papers.ItemSwap(p=0.8)), larger=100),
    Line("threshold neighbours, δ=0.2", lambda: gf.papers.ThresholdNeighbours(threshold=0.2), larger=30),
    Line("threshold neighbours, δ=0.3", gf.papers.ThresholdNeighbours, larger=30),
    Line("Slope One", gf.papers.SlopeOne, PAIRS, people=30, pairs=100),
    Line("Slope One, U(-2, 2) on each pair", lambda: gf.papers.SlopeOne(noise=2.0), PAIRS, 20, pairs=6),
    Line("matrix factorisation, rank 10", gf.papers.MatrixFactorisation, people=30, larger=10),
    Line("ReuseKNN", gf.papers.ReuseKNN, ADAPTED, people=30, larger=10),
    Line("ReuseKNN, Expect", lambda: gf.papers.ReuseKNN(variant="expect"), people=30),
    Line("ReuseKNN, Gain", lambda: gf.papers.ReuseKNN(variant="gain"), people=30),
    Line("PPNS, the paper's allocation", partitions(None), COVER, larger=100),
    Line("PPNS, halving", partitions("halving"), COVER, larger=100),
    Line("PPNS, linear", partitions("linear"), COVER, larger=100),
    Line("PPNS, equal", partitions("equal"), COVER, larger=100),
    Line(
        "McSherry-Mironov as published, per rating, ε=1", lambda: gf.papers.McSherryMironovKNN(epsilon=1.0), people=20
    ),
    Line(
        "McSherry-Mironov, Gaussian, per rating, ε=1",
        lambda: gf.papers.McSherryMironov(epsilon=1.0, items=ITEMS),
        people=10,
    ),
    Line("DP-ALS, per user, ε=4", lambda: gf.papers.DPALS(epsilon=4.0, items=ITEMS), people=30, larger=5),
    Line("Ind-KNN, per user, ε=4", lambda: gf.papers.IndKNN(questions=20_000), larger=10),
    Line("PrivateCF, per rating, ε=1", lambda: gf.PrivateCF(epsilon=1.0, items=ITEMS), people=30, larger=10),
    Line("PrivateCF, per user, ε=4", lambda: gf.PrivateCF(epsilon=4.0, unit="user", items=ITEMS), people=30, larger=10),
)


def attack(name: str, model: Any) -> Attack:
    """Return the attacker of this name."""
    k = traits_of(model).n_neighbours or FAKES
    if name == "adaptive":
        return gf.AdaptiveAttack(known=KNOWN, items=5, fakes=k, centred=False)
    if name == "pairs":
        return gf.papers.PairAttack(known=KNOWN)
    if name == "cover":
        return gf.CoverAttack(known=KNOWN)
    if name == "all ask":
        return gf.KNNAttack(known=KNOWN, fakes=FAKES, ask="all", combine="mean")
    return gf.KNNAttack(known=KNOWN, fakes=FAKES)


def error(model: Any, ratings: gf.Ratings) -> dict[str, Any]:
    """Return the error on the held-out fifth, as the frontier measures it."""
    streams = Streams(SEED)
    split = holdout(ratings, fraction=0.2, rng=streams.at(0))
    train, test = split
    fresh = traits_of(model).fresh_noise
    fitted = unfitted_copy(model, None if fresh else streams.key(1)).fit(train)
    rows = row_numbers(test.csr.indptr)
    told = fitted.predict(test.users[rows], test.items[test.csr.indices])
    scores = Scores.of(np.clip(told, test.scale.lowest, test.scale.highest), test.csr.data)
    return {"mae": scores.mae, "coverage": scores.coverage, "status": guarantee_of(model).status}


def leak(model: Any, name: str, ratings: gf.Ratings, people: int) -> dict[str, Any]:
    """Return what one attacker finds; users who send noise send it once."""
    seed = Streams(SEED).key(1)
    once = isinstance(model, gf.papers.Perturbed)
    subject = SentOnce(ratings, model, Streams(SEED).key(2)) if once else Subject(ratings, model)
    report = attack(name, model).run_on(subject, targets=people, rng=seed, progress=False)
    return {"estimates": {key: list(report.estimates[key]) for key in KEPT}, "targets": report.n_targets}


def cells(path: Path) -> dict[str, Any]:
    """Return what was measured before."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def measure(data: str, path: Path, only: str, most: int) -> None:
    """Measure what is missing, cell by cell; each is written when it is done."""
    ratings = gf.load(data)
    for line in LINES:
        people = line.people if data == "ml-100k" else line.larger
        if not people or not line.idea.startswith(only):
            continue
        jobs: dict[str, Callable[[Any], Any]] = {"error": lambda model: error(model, ratings)}
        for name in line.attackers:
            few = min(line.pairs if name == "pairs" else people, most)
            jobs[name] = lambda model, name=name, few=few: leak(model, name, ratings, few)  # type: ignore[misc]
        for name, job in jobs.items():
            key = f"{line.idea} | {name}"
            if key in cells(path):
                continue
            began = time.process_time()
            found = {**job(line.make()), "seconds": round(time.process_time() - began, 1)}
            done = {**cells(path), key: found}
            path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(key, found["seconds"], "s of processor", flush=True)


def rows(data: str, path: Path) -> list[list[str]]:
    """Return the table of what is measured."""
    done, found = cells(path), []
    for line in LINES:
        told = done.get(f"{line.idea} | error")
        for name in line.attackers:
            got = done.get(f"{line.idea} | {name}")
            if told is None or got is None or (data != "ml-100k" and not line.larger):
                continue
            e = got["estimates"]
            gained = e["advantage"]
            sure = [f"{e[key][0]:.3f}" for key in ("confident_coverage", "confident_precision")]
            found.append(
                [
                    *(line.idea, told["status"], name),
                    *(f"{told[key]:.3f}" for key in ("mae", "coverage")),
                    *(f"{e[key][0]:.3f}" for key in ("raw_recovery", "raw_recovery_without")),
                    *(f"{e['raw_advantage'][0]:+.3f}", f"{e['recovery'][0]:.3f}"),
                    f"{gained[0]:+.3f} ({gained[1]:+.3f} to {gained[2]:+.3f})",
                    *("-" if one == "nan" else one for one in sure),
                    str(got["targets"]),
                ]
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="ml-100k", choices=("ml-100k", "ml-1m"))
    parser.add_argument("--only", default="", help="measure the ideas whose name begins so")
    parser.add_argument("--people", type=int, default=10**6, help="attack at most so many")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    options = parser.parse_args()
    path = FOLDER / f"published-{options.data}.json"
    if not options.table:
        measure(options.data, path, options.only, options.people)
    write_table(
        f"published-{options.data}",
        f"Published ideas against fake accounts, {options.data}",
        HEAD,
        rows(options.data, path),
        command="published",
        known=KNOWN,
        fakes=f"{FAKES}, or k",
        seed=SEED,
    )


if __name__ == "__main__":
    main()
