"""What practice leaks: LensKit, Surprise and goodfence's own kNN with their default settings, attacked from outside.

The libraries are in an environment of their own, which this makes if need be (`./scripts/adapters-test --set-up`).
All attackers attack all targets, and the targets are two halves: what the strongest attacker of one half gets of the
other half is shown, and the other way round. So every target is shown, and nobody is chosen for having been lucky.
What has no neighbours takes many seconds to fit: of it only who was strongest on ml-100k attacks ml-1m. Every batch of
targets is kept when it is done: run again, and what is missing is attacked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.library_defaults import LIBRARIES, Library
from benchmarks.private_attack import counted, fingerprint, keep_answers
from benchmarks.results import write_table
from goodfence.arrays import Flags
from goodfence.attack.attack import RatingAttack, Subject
from goodfence.attack.knn_attack import AdaptiveAttack, CoverAttack, KNNAttack
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Estimate, Tally, difference, first_half, share
from goodfence.attack.strongest import usual_attackers
from goodfence.data.files import atomic_write
from goodfence.errors import BlackBoxProblem
from goodfence.rng import Streams

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-adapters" / "bin" / "python"
SEED, KNOWN, SETS, BATCH = 7, (16, 8), ("ml-100k", "ml-1m"), 6
TARGETS = {"ml-100k": 24, "ml-1m": 12}
"""How many users are attacked, both halves together, where `--targets` says nothing else."""
AUDITED, AUDIT_TARGETS, AUDIT_MUST, AUDIT_SECONDS = "LensKit UserKNNScorer", 20, 0.45, 120
THREADED = ("OPENBLAS", "OMP", "MKL", "NUMBA", "RAYON", "LK")
KINDS: dict[str, type[RatingAttack]] = {kind.__name__: kind for kind in (KNNAttack, CoverAttack, AdaptiveAttack)}
HEAD = [
    *("data", "known", "recommender", "its defaults", "targets", "ratings", "recovery"),
    *("without target", "advantage", "fully recovered", "without target, too"),
    *("attackers tried", "strongest attacker", "seconds"),
]
AUDIT_HEAD = [
    *("data", "recommender", "targets to choose", "targets", "attackers tried", "recovery"),
    *("without target", "advantage", "fully recovered", "strongest attacker", "must", "seconds"),
]


class Cell(NamedTuple):
    """One row of the table: who is attacked, on what."""

    data: str
    known: int
    name: str

    def folder(self, keep: Path) -> Path:
        """Return where its parts are kept."""
        words = f"{self.data} {self.known} {self.name}".lower().replace(",", "")
        return keep / words.replace(" ", "-")

    @property
    def elsewhere(self) -> Cell | None:
        """Where the attacker is chosen, if not here."""
        here = LIBRARIES[self.name].neighbours or self.data == SETS[0]
        return None if here else self._replace(data=SETS[0])


def cells() -> Iterator[Cell]:
    """Yield all of them, the small data first."""
    return (Cell(*each) for each in product(SETS, KNOWN, LIBRARIES))


def eligible(ratings: gf.Ratings) -> list[Any]:
    """Return whom to attack, by chance: the same users, however much is known of them."""
    users: list[Any] = ratings.users[np.diff(ratings.csr.indptr) > max(KNOWN)].tolist()
    return [users[place] for place in Streams(SEED).order(len(users), 0)]


def usual(subject: Subject, known: int, attacked: Library) -> Sequence[RatingAttack]:
    """Return who tries: the audit's usual attackers, and of these, where k is known, those who make k fakes.

    Adaptive attackers solve the equations of neighbourhoods, so what has none is left to the plain ones.
    """
    everybody = [one for one in usual_attackers(subject, known=known) if isinstance(one, RatingAttack)]
    if attacked.fakes is None:
        return everybody
    return [
        one if one.fakes == 1 else replace(one, fakes=attacked.fakes)
        for one in everybody
        if one.fakes in (1, 10) and (attacked.neighbours or not isinstance(one, AdaptiveAttack))
    ]


def attack_of(settings: dict[str, Any]) -> RatingAttack:
    """Return an attack from its settings."""
    rest = {name: value for name, value in settings.items() if name != "name"}
    return KINDS[settings["name"]](**rest)


def attackers_of(cell: Cell, keep: Path, subject: Subject | None = None) -> list[RatingAttack]:
    """Return who attacks: as kept, or as the recommender calls for, or who was strongest elsewhere."""
    path = cell.folder(keep) / "attackers.json"
    if not path.is_file():
        if subject is None:
            return []
        chosen: Sequence[RatingAttack]
        if cell.elsewhere is None:
            chosen = usual(subject, cell.known, LIBRARIES[cell.name])
        else:
            chosen = list(dict.fromkeys(Measured(cell.elsewhere, keep).strongest))
        write_json(path, [one.stated() for one in chosen])
    return [attack_of(settings) for settings in json.loads(path.read_text())]


def measure(cell: Cell, keep: Path, ratings: gf.Ratings, first: int) -> None:
    """Attack a batch of targets by all attackers, who share what they ask alike; keep what each concludes."""
    began, folder = time.process_time(), cell.folder(keep)
    subject = Subject(ratings, LIBRARIES[cell.name].made(), threads=1)
    targets = eligible(ratings)[first : first + BATCH]
    for number, attack in enumerate(attackers_of(cell, keep, subject)):
        path = folder / f"{first:04d}-{number}.npz"
        try:
            keep_answers(path, subject, attack, targets)
        except BlackBoxProblem as problem:  # what it fails at does not leak
            write_json(path.with_suffix(".failed.json"), str(problem))
    write_json(folder / f"{first:04d}.json", time.process_time() - began)


def write_json(path: Path, what: Any) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(what, indent=1).encode())


class Measured:
    """What is kept of one cell: every attacker on the same targets, in two halves."""

    def __init__(self, cell: Cell, keep: Path) -> None:
        folder = cell.folder(keep)
        batches = sorted(folder.glob("????.json"))
        self.ratings, self.chosen_here = gf.load(cell.data), cell.elsewhere is None
        self.seconds = sum(float(json.loads(path.read_text())) for path in batches)
        self.n_tried = len(attackers_of(cell, keep))
        paths = {
            attack: [folder / f"{path.stem}-{number}.npz" for path in batches]
            for number, attack in enumerate(attackers_of(cell, keep))
        }
        self.paths = {attack: each for attack, each in paths.items() if all(one.is_file() for one in each)}
        self.n_targets = BATCH * len(batches)
        self.first: Flags = first_half(self.n_targets, Streams(SEED))

    @property
    def strongest(self) -> tuple[RatingAttack, RatingAttack]:
        """Who gains most on the first half, and who on the other: the mean over targets of what each loses."""
        halves = (self.first, ~self.first)
        gains = [{attack: self._gain(attack, half) for attack in self.paths} for half in halves]
        return max(gains[0], key=gains[0].__getitem__), max(gains[1], key=gains[1].__getitem__)

    def _gain(self, attack: RatingAttack, half: Flags) -> float:
        """Return what an attacker gains on one half, of which alone it also follows what they believe."""
        found = counted(self.ratings, attack, self.paths[attack], half).informed
        inside, outside = found.with_target, found.without_target
        return float(((inside.recovered - outside.recovered) / inside.hidden).mean())

    def shown(self) -> tuple[list[RatingAttack], AttackReport]:
        """Return the attackers and what is shown of each target: what the strongest of the *other* half gets.

        What is believed of the answers of one half is chosen on the other half, too (`scoring.informed`).
        """
        if not self.chosen_here:
            attack = next(iter(self.paths))
            return [attack], counted(self.ratings, attack, self.paths[attack])
        of_first, of_second = self.strongest
        about_first, about_second = (counted(self.ratings, one, self.paths[one]) for one in (of_second, of_first))
        both = list(dict.fromkeys((of_first, of_second)))
        return both, joined(about_first, about_second, self.first)


def joined(one: AttackReport, other: AttackReport, first: Flags) -> AttackReport:
    """Return a report with `one` of the first targets and the `other` of the rest."""

    def tally(inside: Tally, outside: Tally) -> Tally:
        parts = ((getattr(inside, each.name), getattr(outside, each.name)) for each in fields(Tally))
        return Tally(*(np.where(first, *pair) for pair in parts))

    names = ("with_target", "without_target", "guessed", "sure", "sure_without")
    both = one.informed, other.informed
    told: dict[str, Any] = {name: tally(*(getattr(each, name) for each in both)) for name in names}
    return replace(
        one,
        with_target=tally(one.with_target, other.with_target),
        without_target=tally(one.without_target, other.without_target),
        informed=replace(one.informed, **told),
    )


def per_person(report: AttackReport) -> dict[str, Estimate]:
    """Return recovery, recovery without the target, and advantage, in which each target counts alike."""
    inside, outside = report.informed.with_target, report.informed.without_target
    with_target, without = inside.recovered / inside.hidden, outside.recovered / inside.hidden
    each = np.ones(len(with_target))
    return {
        "recovery": share(with_target, each),
        "recovery_without": share(without, each),
        "advantage": difference(with_target, without, each),
    }


def in_words(attack: RatingAttack, n_fakes: int) -> str:
    return f"{n_fakes} fake{'s' * (n_fakes > 1)}, {attack.describe(n_fakes)}"


def line(cell: Cell, keep: Path) -> list[str] | None:
    """Return what was measured so far, if anything was."""
    measured = Measured(cell, keep)
    if not measured.n_targets:
        return None
    attackers, report = measured.shown()
    found, made = per_person(report), LIBRARIES[cell.name].made()
    words = [in_words(one, one.n_fakes(made, report.ratings.shape[0])) for one in attackers]
    tried = f"{measured.n_tried}" if measured.chosen_here else f"{measured.n_tried}, of {SETS[0]}"
    return [
        *(cell.data, f"{cell.known}", cell.name, LIBRARIES[cell.name].settings),
        f"{report.n_targets}",
        f"{report.n_hidden:,}",
        f"{found['recovery'].value:.3f}",
        f"{found['recovery_without'].value:.3f}",
        signed(found["advantage"]),
        f"{int(report.fully.sum())}",
        f"{int(report.fully_without.sum())}",
        tried,
        " / ".join(words),
        f"{measured.seconds:.0f}",
    ]


def signed(gained: Estimate) -> str:
    return f"{gained.value:+.3f} ({gained.low:+.3f} to {gained.high:+.3f})"


def measure_all(keep: Path, began: float, options: argparse.Namespace) -> None:
    """Attack what is missing, a batch after the other, until the time is over."""
    for cell in cells():
        if options.only not in f"{cell.data} {cell.known} {cell.name}":
            continue
        for first in range(0, options.targets or TARGETS[cell.data], BATCH):
            if time.monotonic() - began > 60 * options.minutes:
                return
            if not (cell.folder(keep) / f"{first:04d}.json").is_file():
                measure(cell, keep, gf.load(cell.data), first)
                print(f"{time.monotonic() - began:6.0f} s", first, *cell, flush=True)


def audit_line(data: str) -> list[str]:
    """Return what a plain `audit` finds, which does not know the library nor its k, and how long it takes."""
    ratings, made, began = gf.load(data), LIBRARIES[AUDITED].made(), time.process_time()
    audited = gf.audit(ratings, made, known=max(KNOWN), targets=AUDIT_TARGETS, trials=0, rng=SEED, progress=False)
    report = audited.leakage
    seconds, found = time.process_time() - began, report.estimates
    met = found["advantage"].value >= AUDIT_MUST and seconds < AUDIT_SECONDS
    return [
        *(data, AUDITED, f"{report.n_choosing}", f"{report.n_targets}", f"{len(report.tried)}"),
        f"{found['recovery'].value:.3f}",
        f"{found['recovery_without'].value:.3f}",
        signed(found["advantage"]),
        f"{int(report.fully.sum())}",
        in_words(report.attacker, report.n_fakes),
        "met" if met else "missed",
        f"{seconds:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished parts")
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--targets", type=int, default=None, help="of each row, if not the usual")
    parser.add_argument("--minutes", type=float, default=50, help="begin nothing after this")
    parser.add_argument("--audit", action="store_true", help="only the plain audit")
    options, code = parser.parse_args(), fingerprint("attack", "adapters", "neighbours")
    if find_spec("lenskit") is None:  # not in this environment
        subprocess.run(["./scripts/adapters-test", "--set-up"], cwd=ROOT, check=True)
        again = [str(PYTHON), "-m", "benchmarks.libraries", *sys.argv[1:]]
        limits = {f"{name}_NUM_THREADS": "1" for name in THREADED}
        sys.exit(subprocess.run(again, cwd=ROOT, env={**os.environ, **limits}, check=False).returncode)
    versions = f"LensKit {version('lenskit')}, Surprise {version('scikit-surprise')}"
    if options.audit:
        write_table(
            "libraries_audit",
            "What a plain audit finds",
            AUDIT_HEAD,
            [audit_line(data) for data in SETS if options.only in data],
            command="libraries --audit",
            versions=versions,
            known=max(KNOWN),
            seed=SEED,
            must=f"an advantage of at least {AUDIT_MUST} in under {AUDIT_SECONDS} s",
            seconds="of one processor",
            code=code,
        )
        return
    keep = options.keep or CACHE / "libraries" / code
    measure_all(keep, time.monotonic(), options)
    rows = [line(cell, keep) for cell in cells()]
    write_table(
        "libraries",
        "What practice leaks",
        HEAD,
        [row for row in rows if row is not None],
        versions=versions,
        fakes="the library's default k (50 where it has none), or one; the usual ones for goodfence's own",
        strongest="chosen on each half of the targets and shown on the other; both, where they differ",
        seed=f"{SEED}, for targets, what is known of them, and the fits",
        seconds="of one processor, all attackers",
        code=code,
    )


if __name__ == "__main__":
    main()
