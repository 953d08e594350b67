"""The attack on the private models, kNN and PPNS: all targets of ml-100k, fresh noise in every world."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import re
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.results import write_table
from goodfence.attack.attack import Attack
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Estimate, Informed, Tally
from goodfence.data.files import atomic_write
from goodfence.rng import Streams

DATA, K, BETA, SEED = "ml-100k", 50, 7, 7
MUST, PARTS = 0.02, 16
TALLIES = ("with_target", "without_target", "guessed", "sure", "sure_without")
FIELDS = [field.name for field in dataclasses.fields(Tally)]
PRIVATE: dict[str, Any] = {
    "PrivateCF, rating, epsilon 1": gf.PrivateCF(epsilon=1.0, unit="rating", items="from ratings"),
    "PrivateCF, user, epsilon 4": gf.PrivateCF(epsilon=4.0, unit="user", items="from ratings"),
    "PrivateMeans, rating, epsilon 1": gf.PrivateMeans(
        epsilon=1.0, unit="rating", items="from ratings"
    ),
    "PrivateMeans, user, epsilon 4": gf.PrivateMeans(
        epsilon=4.0, unit="user", items="from ratings"
    ),
}
OPEN = {"kNN, k 50": gf.KNN(k=K), "PPNS, k 50, beta 7, epsilon 1": gf.PPNS(k=K, beta=BETA)}
PLAIN: dict[str, Attack] = {
    f"{m} known, one asks": gf.KNNAttack(known=m, fakes=K) for m in (8, 16, 32)
}
STRONGER: dict[str, Attack] = {
    "the 8 rarest known, one asks": gf.KNNAttack(known=8, choose="rarest", fakes=K),
    "8 known, 350 fakes, all ask": gf.KNNAttack(known=8, fakes=BETA * K, ask="all"),
    "8 known, one asks after each of 5 refits": gf.KNNAttack(known=8, fakes=K, rounds=5),
    "8 known, adaptive, 3 items a target": gf.AdaptiveAttack(known=8, fakes=K, items=3),
}
HEAD = [
    "attacker",
    "attacked",
    "targets",
    "recovery",
    "without target",
    "guess",
    "advantage",
    "must",
]


def one_part(attack: Attack, attacked: Any, targets: list[Any], path: Path) -> None:
    """Attack some targets, and keep what was counted of each in a file."""
    ratings = gf.load(DATA)
    report = attack.run(ratings, attacked, targets=targets, rng=SEED)
    tallies = {f"informed {name}": getattr(report.informed, name) for name in TALLIES}
    tallies |= {name: getattr(report, name) for name in TALLIES[:2]}
    counted = {
        f"{name} {field}": getattr(tally, field)
        for name, tally in tallies.items()
        for field in FIELDS
    }
    with atomic_write(path) as file:
        np.savez(file, chosen=report.chosen, **counted)


def counted_so_far(paths: list[Path]) -> AttackReport | None:
    """Return the report of all targets whose parts are there."""
    parts = [dict(np.load(path)) for path in paths if path.is_file()]
    if not parts:
        return None

    def joined(name: str) -> Any:
        return np.concatenate([part[name] for part in parts])

    def tally(name: str) -> Tally:
        return Tally(*(joined(f"{name} {field}") for field in FIELDS))

    return AttackReport(
        attack="",
        attacked="",
        n_left_out=0,
        n_fakes=K,
        chosen=joined("chosen"),
        rows=np.empty(0, dtype=np.int64),
        ratings=None,  # type: ignore[arg-type] # only the numbers are wanted
        with_target=tally("with_target"),
        without_target=tally("without_target"),
        informed=Informed(**{name: tally(f"informed {name}") for name in TALLIES}, rules={}),
    )


def line(attacker: str, attacked: str, report: AttackReport) -> list[str]:
    found = report.estimates
    gained = found["advantage"]
    return [
        attacker,
        attacked,
        f"{report.n_targets}",
        f"{found['recovery'].value:.3f}",
        f"{found['recovery_without'].value:.3f}",
        f"{report.guess:.3f}",
        f"{gained.value:+.4f} ({gained.low:+.4f} to {gained.high:+.4f})",
        verdict(gained) if attacked in PRIVATE else "",
    ]


def verdict(gained: Estimate) -> str:
    """Return whether the must is met, by the whole interval where that can be said."""
    if gained.high <= MUST:
        return "met"
    if gained.low > MUST:
        return "missed"
    return "met, not by all of the interval" if gained.value <= MUST else "cannot tell"


def eligible(ratings: gf.Ratings, attack: Attack, n: int | None) -> list[Any]:
    users: list[Any] = ratings.users[np.diff(ratings.csr.indptr) > attack.known].tolist()
    order = Streams(SEED).order(len(users), attack.known)
    return [users[place] for place in order[: n or len(users)]]


def questions(n_all: int | None, n_stronger: int) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return who attacks whom with how many targets."""
    asked: dict[tuple[str, str], tuple[Any, ...]] = {}
    for attacker, attack in {**PLAIN, **STRONGER}.items():
        for name, model in {**OPEN, **PRIVATE}.items():
            if attacker in PLAIN:
                asked[attacker, name] = attack, model, n_all
            elif not name.startswith("PrivateMeans"):
                asked[attacker, name] = attack, model, n_stronger
    return asked


CODE = ("models", "privacy", "kernels", "selection", "attack", "neighbours")


def fingerprint(*names: str) -> str:
    """Return the first letters of the sha256 of the code that is measured: parts of other code are never mixed in."""
    package = Path(gf.__file__).parent
    files = sorted(file for name in names or CODE for file in (package / name).rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def part_files(folder: Path, key: tuple[str, str]) -> list[Path]:
    stem = "-".join(re.sub(r"[^a-z0-9]+", "-", words.lower()) for words in key)
    return [folder / f"{stem}-{part}.npz" for part in range(PARTS)]


def attack_all(asked: dict[tuple[str, str], tuple[Any, ...]], options: argparse.Namespace) -> None:
    """Do the parts that are not there yet: the plain attacks first, of these what is quick, then part by part."""
    ratings, began = gf.load(DATA), time.monotonic()
    waiting = []
    for part in range(PARTS):
        for key, (attack, model, n) in asked.items():
            targets = eligible(ratings, attack, n)[part::PARTS]
            path = part_files(options.keep, key)[part]
            if targets and not path.is_file():
                late = (key[0] in STRONGER, key[1] in PRIVATE, part)
                waiting.append((late, (attack, model, targets, path)))
    waiting.sort(key=lambda work: work[0])
    # One thread a process, of which there are as many as cores. It must be said before they load NumPy.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        under_way: set[Future[None]] = set()
        for place, (_, work) in enumerate(waiting):
            if time.monotonic() - began > 60 * options.minutes:
                break
            under_way.add(pool.submit(one_part, *work))
            if len(under_way) > options.processes:
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
            print(
                f"{time.monotonic() - began:6.0f} s, part {place + 1} of {len(waiting)}", flush=True
            )
        for future in under_way:
            future.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=None, help="fewer than all")
    parser.add_argument("--stronger", type=int, default=200, help="targets of the stronger attacks")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished parts")
    parser.add_argument("--note", default=None, help="words about the code, instead of its digest")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin nothing after this")
    options = parser.parse_args()
    code = fingerprint()
    if options.keep is None:
        options.keep = CACHE / "private_attack" / code
    asked = questions(options.targets, options.stronger)
    attack_all(asked, options)
    rows = []
    for attacker, name in asked:
        report = counted_so_far(part_files(options.keep, (attacker, name)))
        if report is not None:
            rows.append(line(attacker, name, report))
    write_table(
        "private_attack",
        "The attack on the private models, kNN and PPNS",
        HEAD,
        rows,
        data=DATA,
        fakes=f"{K} (beta k where said)",
        delta="1e-5",
        noise="from the operating system, fresh in every world",
        seed=f"{SEED} for targets and what is known of them",
        must=f"an advantage of at most {MUST} for the private models",
        code=options.note or code,
    )


if __name__ == "__main__":
    main()
