"""What practice leaks: LensKit, Surprise and goodfence's own kNN with their default settings, attacked from outside.

The libraries are in an environment of their own, which this makes if need be (`./scripts/adapters-test --set-up`).
Every cell of the table is kept when it is done, and grows: run again, and more targets are attacked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.private_attack import counted, fingerprint, keep_answers
from benchmarks.results import write_table
from goodfence.adapters import lenskit, surprise
from goodfence.adapters.libraries import library
from goodfence.attack.attack import Attack, Subject, settings_of
from goodfence.attack.knn_attack import AdaptiveAttack, CoverAttack, KNNAttack
from goodfence.attack.strongest import usual_attackers
from goodfence.data.files import atomic_write
from goodfence.errors import BlackBoxProblem
from goodfence.report.wording import strategy
from goodfence.rng import Streams

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-adapters" / "bin" / "python"
SEED, KNOWN, SETS = 7, (16, 8), ("ml-100k", "ml-1m")
CHOOSING, BATCH, MOST = 4, 8, 48
"""How many targets the attacker is chosen on, how many more are attacked at once, and how many of these are enough."""
THREADED = ("OPENBLAS", "OMP", "MKL", "NUMBA", "RAYON", "LK")
KINDS: dict[str, type[Attack]] = {
    kind.__name__: kind for kind in (KNNAttack, CoverAttack, AdaptiveAttack)
}
HEAD = ["data", "known", "recommender", "its defaults", "targets", "ratings", "recovery"]
HEAD += [
    "without target",
    "advantage",
    "fully recovered",
    "without target, too",
    "strongest attacker",
    "seconds",
]


class Library(NamedTuple):
    """A recommender as its library makes it when nothing is said."""

    settings: str
    """What its defaults are."""
    made: Callable[[], Any]
    fakes: int | None
    """How many fakes attack: its default k, which everybody can read; None to leave it to the audit."""
    large: bool
    """Whether ml-1m is tried: a fit takes seconds."""


def _lenskit(module: str, name: str) -> Any:
    scorer = getattr(library(f"lenskit.{module}"), name)()
    return lenskit.as_recommender(library("lenskit.pipeline").predict_pipeline(scorer))


def _surprise(name: str, **settings: Any) -> Any:
    return surprise.as_recommender(getattr(library("surprise"), name)(**settings))


QUIET = {"verbose": False}
LIBRARIES: dict[str, Library] = {
    "LensKit UserKNNScorer": Library(
        "20 of the item's raters, centred cosine",
        lambda: _lenskit("knn", "UserKNNScorer"),
        20,
        True,
    ),
    "Surprise KNNWithMeans": Library(
        "40 of the item's raters, MSD", lambda: _surprise("KNNWithMeans", **QUIET), 40, False
    ),
    "Surprise KNNBasic": Library(
        "40 of the item's raters, MSD", lambda: _surprise("KNNBasic", **QUIET), 40, False
    ),
    "LensKit ItemKNNScorer": Library(
        "20 of the user's items, centred cosine",
        lambda: _lenskit("knn", "ItemKNNScorer"),
        20,
        False,
    ),
    "Surprise KNNBaseline": Library(
        "40 of the item's raters, MSD", lambda: _surprise("KNNBaseline", **QUIET), 40, False
    ),
    "Surprise SlopeOne": Library("has none", lambda: _surprise("SlopeOne"), 50, False),
    "Surprise SVD": Library("100 factors, 20 epochs", lambda: _surprise("SVD"), 50, False),
    "LensKit BiasedMFScorer": Library(
        "50 factors, 10 epochs of ALS", lambda: _lenskit("als", "BiasedMFScorer"), 50, False
    ),
    "goodfence KNN, among raters": Library(
        "k=20 of the item's raters, centred cosine",
        lambda: gf.NeighbourCF(
            gf.KNN(k=20), similarity="centred_cosine", center="user_mean", among="raters"
        ),
        None,
        True,
    ),
    "goodfence KNN, as in the paper": Library(
        "k=50 of all users, cosine", lambda: gf.KNN(k=50), None, True
    ),
}


class Cell(NamedTuple):
    """One row of the table: who is attacked, on what."""

    data: str
    known: int
    name: str

    def folder(self, keep: Path) -> Path:
        """Return where its parts are kept."""
        words = f"{self.data} {self.known} {self.name}".lower().replace(",", "")
        return keep / words.replace(" ", "-")


def cells() -> Iterator[Cell]:
    """Yield all of them, the small data first."""
    for data, known, name in product(SETS, KNOWN, LIBRARIES):
        if data == SETS[0] or LIBRARIES[name].large:
            yield Cell(data, known, name)


def eligible(ratings: gf.Ratings) -> list[Any]:
    """Return whom to attack, by chance: the same users, however much is known of them."""
    users: list[Any] = ratings.users[np.diff(ratings.csr.indptr) > max(KNOWN)].tolist()
    return [users[place] for place in Streams(SEED).order(len(users), 0)]


def attackers(subject: Subject, known: int, fakes: int | None) -> Sequence[Attack]:
    """Return who tries: the audit's usual attackers, and of these, where k is known, those who make k fakes."""
    usual = usual_attackers(subject, known=known)
    if fakes is None:
        return usual
    return [
        one if one.fakes == 1 else replace(one, fakes=fakes)
        for one in usual
        if one.fakes in (1, 10)
    ]


def choose(subject: Subject, known: int, fakes: int | None, targets: list[Any]) -> dict[str, Any]:
    """Let all attackers try on a few targets, and return the strongest, beside how all of them did."""
    gained: dict[Attack, float] = {}
    for attack in attackers(subject, known, fakes):
        try:
            report = attack.run_on(subject, targets=targets, rng=SEED, progress=False)
        except BlackBoxProblem:  # what it fails at does not leak
            continue
        gained[attack] = float(np.mean(report.table()["advantage"].to_numpy()))
    best = max(gained, key=lambda attack: gained[attack])
    tried = {repr(attack): round(each, 4) for attack, each in gained.items()}
    return {"attack": settings_of(best), "tried": tried}


def attack_of(settings: dict[str, Any]) -> Attack:
    """Return an attack from its settings."""
    rest = {name: value for name, value in settings.items() if name != "name"}
    return KINDS[settings["name"]](**rest)


def measure(cell: Cell, folder: Path, ratings: gf.Ratings) -> None:
    """Choose the attacker of one cell, if that was not done, and attack a batch of others; keep both."""
    began, everybody = time.process_time(), eligible(ratings)
    subject = Subject(ratings, LIBRARIES[cell.name].made(), threads=1)
    about = folder / "chosen.json"
    if not about.is_file():
        found = choose(subject, cell.known, LIBRARIES[cell.name].fakes, everybody[:CHOOSING])
        write_json(about, {**found, "seconds": time.process_time() - began})
        began = time.process_time()
    found = json.loads(about.read_text())
    first = CHOOSING + BATCH * len(list(folder.glob("*.npz")))
    path = folder / f"{first}.npz"
    keep_answers(path, subject, attack_of(found["attack"]), everybody[first : first + BATCH])
    found["seconds"] += time.process_time() - began
    write_json(about, found)


def write_json(path: Path, what: dict[str, Any]) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(what, indent=1).encode())


def line(cell: Cell, folder: Path, ratings: gf.Ratings) -> list[str] | None:
    """Return what was measured so far, if anything was."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        return None
    kept = json.loads((folder / "chosen.json").read_text())
    attack = attack_of(kept["attack"])
    report = counted(ratings, attack, paths)
    found, n_fakes = report.estimates, attack.fakes or attack.n_fakes(made(cell), ratings.shape[0])
    gained = found["advantage"]
    return [
        cell.data,
        f"{cell.known}",
        cell.name,
        LIBRARIES[cell.name].settings,
        f"{report.n_targets}",
        f"{report.n_hidden:,}",
        f"{found['recovery'].value:.3f}",
        f"{found['recovery_without'].value:.3f}",
        f"{gained.value:+.3f} ({gained.low:+.3f} to {gained.high:+.3f})",
        f"{int(report.fully.sum())}",
        f"{int(report.fully_without.sum())}",
        f"{n_fakes} fake{'s' * (n_fakes > 1)}, {strategy(settings_of(attack), n_fakes)}",
        f"{kept['seconds']:.0f}",
    ]


def made(cell: Cell) -> Any:
    """Return the recommender of a cell."""
    return LIBRARIES[cell.name].made()


def measure_all(keep: Path, began: float, options: argparse.Namespace) -> None:
    """Go over all cells again and again, a batch each, until the time is over or enough was attacked."""
    wanted = [cell for cell in cells() if options.only in f"{cell.data} {cell.known} {cell.name}"]
    for batch, cell in product(range(MOST // BATCH), wanted):
        folder = cell.folder(keep)
        if time.monotonic() - began > 60 * options.minutes:
            return
        if len(list(folder.glob("*.npz"))) > batch:
            continue
        measure(cell, folder, gf.load(cell.data))
        print(f"{time.monotonic() - began:6.0f} s", batch, *cell, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished parts")
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--minutes", type=float, default=50, help="begin nothing after this")
    options, code = parser.parse_args(), fingerprint("attack", "adapters", "neighbours")
    if find_spec("lenskit") is None:  # not in this environment
        subprocess.run(["./scripts/adapters-test", "--set-up"], cwd=ROOT, check=True)
        again = [PYTHON, "-m", "benchmarks.libraries", *sys.argv[1:]]
        limits = {f"{name}_NUM_THREADS": "1" for name in THREADED}
        sys.exit(
            subprocess.run(again, cwd=ROOT, env={**os.environ, **limits}, check=False).returncode
        )
    keep = options.keep or CACHE / "libraries" / code
    measure_all(keep, time.monotonic(), options)
    sets = {name: gf.load(name) for name in SETS}
    rows = [line(cell, cell.folder(keep), sets[cell.data]) for cell in cells()]
    write_table(
        "libraries",
        "What practice leaks",
        HEAD,
        [row for row in rows if row is not None],
        versions=f"LensKit {version('lenskit')}, Surprise {version('scikit-surprise')}",
        fakes="the library's default k (50 where it has none), or one; the usual ones for goodfence's own",
        chosen=f"on {CHOOSING} other targets",
        seed=f"{SEED}, for targets, what is known of them, and the fits",
        seconds="of one processor",
        code=code,
    )


if __name__ == "__main__":
    main()
