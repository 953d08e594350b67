"""The attack on the private models, kNN and PPNS: all targets of ml-100k, fresh noise in every world."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import product
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.results import write_table
from documents.tables import measured
from goodfence.arrays import Flags
from goodfence.attack.attack import RatingAttack, Subject
from goodfence.attack.knn_attack import Helpers
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Answers, Estimate, Tally, informed
from goodfence.attack.targets import Targets, find_targets
from goodfence.data.files import atomic_write
from goodfence.rng import Streams

ADAPTIVE_ITEMS = 5
"""For how many hidden items of each target the adaptive attackers ask."""
DATA, K, BETA, SEED = "ml-100k", 50, 7, 7
MUST, PARTS = 0.02, 16
PRIVATE: dict[str, Any] = {
    "PrivateCF, rating, epsilon 1": gf.PrivateCF(epsilon=1.0, unit="rating", items="from ratings"),
    "PrivateCF, user, epsilon 4": gf.PrivateCF(epsilon=4.0, unit="user", items="from ratings"),
    "PrivateMeans, rating, epsilon 1": gf.PrivateMeans(epsilon=1.0, unit="rating", items="from ratings"),
    "PrivateMeans, user, epsilon 4": gf.PrivateMeans(epsilon=4.0, unit="user", items="from ratings"),
}
OPEN = {"kNN, k 50": gf.KNN(k=K), "PPNS, k 50, beta 7, epsilon 1": gf.PPNS(k=K, beta=BETA)}
ONCE, AGAIN = "8 known, one asks", "8 known, one asks after each of 5 refits"
PLAIN: dict[str, RatingAttack] = {f"{m} known, one asks": gf.KNNAttack(known=m, fakes=K) for m in (8, 16, 32)}
ADAPTIVE: dict[str, RatingAttack] = {
    f"8 known, adaptive{', centred' * centred}{', equal helpers' * (helpers == 'equal')}": (
        gf.AdaptiveAttack(known=8, fakes=K, items=ADAPTIVE_ITEMS, centred=centred, helpers=helpers)
    )
    for centred, helpers in product((False, True), get_args(Helpers))
}
"""They ask the same questions, and take other equations for what the helpers did."""
STRONGER: dict[str, RatingAttack] = {
    "the 8 rarest known, one asks": gf.KNNAttack(known=8, choose="rarest", fakes=K),
    "8 known, 350 fakes, all ask": gf.KNNAttack(known=8, fakes=BETA * K, ask="all"),
    AGAIN: gf.KNNAttack(known=8, fakes=K, rounds=5),
    **ADAPTIVE,
}
EVERYBODY: dict[str, RatingAttack] = {**PLAIN, **STRONGER}
HEAD = [
    "attacker",
    "attacked",
    "targets",
    "recovery",
    "without target",
    "guess",
    "advantage",
    "must",
    "raw advantage",
    "code",
]


def one_part(attackers: dict[Path, RatingAttack], attacked: Any, targets: list[Any]) -> None:
    """Attack some targets, and keep what was concluded about each; attackers share what they ask alike."""
    subject = Subject(gf.load(DATA), attacked, threads=1)
    for path, attack in attackers.items():
        keep_answers(path, subject, attack, targets)


def keep_answers(path: Path, subject: Subject, attack: RatingAttack, targets: list[Any]) -> None:
    """Attack some targets, and keep what the attacker concludes."""
    asked_for = targets_of(subject.ratings, attack, targets)
    worlds = subject.worlds(attack.n_fakes(subject.recommender, subject.ratings.shape[0]))
    answers = attack.answers(worlds, asked_for, Streams(SEED), progress=False)
    with atomic_write(path) as file:
        np.savez(file, targets=np.array(targets), **answers._asdict())


def targets_of(ratings: gf.Ratings, attack: RatingAttack, ids: list[Any]) -> Targets:
    """Return who is attacked, and for what."""
    streams = Streams(SEED)
    found, _ = find_targets(ratings, ids, attack.known, attack.choose, streams)
    return attack._asked_for(found, streams)


def counted(ratings: gf.Ratings, attack: RatingAttack, paths: list[Path], those: Flags | None = None) -> AttackReport:
    """Return the report of all targets of some parts, or of `those`; what is believed is chosen on half of them."""
    parts = [dict(np.load(path)) for path in paths]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    ids = joined.pop("targets")
    if those is not None:
        cells = those[targets_of(ratings, attack, ids.tolist()).owners]
        joined = {name: each[those if len(each) == len(those) else cells] for name, each in joined.items()}
        ids = ids[those]
    asked_for = targets_of(ratings, attack, ids.tolist())
    answers = Answers(**joined)
    told, _ = informed(answers, asked_for, ratings, Streams(SEED))
    return AttackReport(
        attack="",
        n_fakes=K,
        hidden=np.diff(asked_for.starts).astype(np.float64),
        chosen=answers.chosen,
        rows=asked_for.rows,
        ratings=ratings,
        with_target=Tally.of(answers.with_target, asked_for, ratings),
        without_target=Tally.of(answers.without_target, asked_for, ratings),
        informed=told,
    )


def line(attacker: str, attacked: str, report: AttackReport, code: str) -> list[str]:
    found = report.estimates
    gained = found["advantage"]
    return [
        attacker,
        attacked,
        f"{report.n_targets}",
        f"{found['recovery'].value:.3f}",
        f"{found['recovery_without'].value:.3f}",
        f"{report.guess:.3f}",
        shown(gained),
        verdict(gained) if attacked in PRIVATE else "",
        shown(found["raw_advantage"]),
        code,
    ]


def shown(gained: Estimate) -> str:
    return f"{gained.value:+.4f} ({gained.low:+.4f} to {gained.high:+.4f})"


def verdict(gained: Estimate) -> str:
    """Return whether the must is met, by the whole interval where that can be said."""
    if gained.high <= MUST:
        return "met"
    if gained.low > MUST:
        return "missed"
    return "met, not by all of the interval" if gained.value <= MUST else "cannot tell"


def eligible(ratings: gf.Ratings, known: int, n: int | None) -> list[Any]:
    users: list[Any] = ratings.users[np.diff(ratings.csr.indptr) > known].tolist()
    order = Streams(SEED).order(len(users), known)
    return [users[place] for place in order[: n or len(users)]]


class Question(NamedTuple):
    """Who attacks whom, of how many targets; attackers of one question ask alike, and share the fits."""

    attackers: dict[str, RatingAttack]
    attacked: str
    model: Any
    n: int | None

    @property
    def known(self) -> int:
        """How many ratings they know."""
        return next(iter(self.attackers.values())).known


def questions(n_private: int | None, n_open: int | None) -> list[Question]:
    """Return who attacks whom, the private models first; the first of the refits is what one question is told."""
    together = {name: EVERYBODY[name] for name in (ONCE, AGAIN)}
    others = {**ADAPTIVE, **together}
    alone = [{name: attack} for name, attack in EVERYBODY.items() if name not in others]
    groups = [ADAPTIVE, together, *alone]
    return [
        Question(group, attacked, model, n_open if attacked in OPEN else n_private)
        for models in (PRIVATE, OPEN)
        for group in groups
        for attacked, model in models.items()
    ]


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


def attack_all(asked: list[Question], options: argparse.Namespace) -> None:
    """Do the parts that are not there yet, the first part of every question first: all rows grow alike."""
    ratings, began = gf.load(DATA), time.monotonic()
    waiting = []
    for question in asked:
        everybody = eligible(ratings, question.known, question.n)
        for part in range(PARTS):
            paths = {
                part_files(options.keep, (name, question.attacked))[part]: attack
                for name, attack in question.attackers.items()
            }
            missing = {path: attack for path, attack in paths.items() if not path.is_file()}
            targets = everybody[part::PARTS]
            if targets and missing:
                waiting.append((part, missing, question.model, targets))
    waiting.sort(key=itemgetter(0))
    # One thread a process, of which there are as many as cores. It must be said before they load NumPy.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        under_way: set[Future[None]] = set()
        for place, (_, *work) in enumerate(waiting):
            if time.monotonic() - began > 60 * options.minutes:
                break
            under_way.add(pool.submit(one_part, *work))
            if len(under_way) > options.processes:
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
            print(f"{time.monotonic() - began:6.0f} s, part {place + 1} of {len(waiting)}", flush=True)
        for future in under_way:
            future.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=None, help="fewer than all")
    parser.add_argument("--open", type=int, default=200, help="targets of kNN and PPNS")
    parser.add_argument("--only", default="", help="attack what has this in its name")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished parts")
    parser.add_argument("--note", default=None, help="words about the code, instead of its digest")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin nothing after this")
    options = parser.parse_args()
    code = fingerprint()
    if options.keep is None:
        options.keep = CACHE / "private_attack" / code
    asked = questions(options.targets, options.open)
    attack_all([one for one in asked if options.only in one.attacked], options)
    ratings = gf.load(DATA)
    before = {tuple(row.values())[:2]: list(row.values()) for row in measured("private_attack")}
    rows = []
    for attacker, name in product(EVERYBODY, {**OPEN, **PRIVATE}):
        paths = [path for path in part_files(options.keep, (attacker, name)) if path.is_file()]
        if paths:
            report = counted(ratings, EVERYBODY[attacker], paths)
            rows.append(line(attacker, name, report, options.note or code))
        elif (attacker, name) in before:  # of other code, and it says so
            rows.append(before[attacker, name])
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
        adaptive=f"asks for {ADAPTIVE_ITEMS} ratings of each target, by chance",
        must=f"an advantage of at most {MUST} for the private models",
    )


if __name__ == "__main__":
    main()
