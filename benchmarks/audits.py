"""Audits of the private models: every release 1e5 times on its worst pair, whole fits, and broken twins."""

from __future__ import annotations

import argparse
import os
import re
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.private_attack import fingerprint
from benchmarks.release_audit import ReleaseAudit, audit_release
from benchmarks.results import write_table
from documents.tables import measured
from goodfence.arrays import Floats, Integers
from goodfence.auditing.dp_audit import Stage, Transcripts
from goodfence.auditing.lower_bound import lower_bound
from goodfence.auditing.pairs import extreme_pairs, worst_pair
from goodfence.data.files import atomic_write
from goodfence.data.scale import Scale
from goodfence.models.private.co_occurrence import EventProfiles, release_lists
from goodfence.privacy.noise import SIGMA, Publisher, SystemNoise

SCALE, DELTA, TRIALS = Scale(1, 5), 1e-5, 100_000
BLOCK = 20
WIDEST = 150
"""Pairs that differ in more integers than this are not released 1e5 times: it would take too long."""


class OnlyReleased(gf.PrivateTopN):
    """`PrivateTopN` without what is computed of its releases, which takes most of the time of a small fit."""

    def _learn(self, profiles: EventProfiles, mu: float, publisher: Publisher) -> Any:
        return release_lists(profiles, self.unit, mu, publisher)


FITS: dict[str, Any] = {
    "PrivateMeans, rating, epsilon 1": gf.PrivateMeans(epsilon=1.0, items="from ratings"),
    "PrivateMeans, user, epsilon 4": gf.PrivateMeans(epsilon=4.0, unit="user", items="from ratings"),
    "PrivateCF auto, rating, epsilon 1": gf.PrivateCF(epsilon=1.0, items="from ratings"),
    "PrivateCF auto, user, epsilon 4": gf.PrivateCF(epsilon=4.0, unit="user", items="from ratings"),
    "PrivateCF covariance, rating, epsilon 1": gf.PrivateCF(epsilon=1.0, plan="covariance", items="from ratings"),
    "PrivateCF covariance, user, epsilon 4": gf.PrivateCF(
        epsilon=4.0, unit="user", plan="covariance", items="from ratings"
    ),
    "PrivateCF half step, user, epsilon 4": gf.PrivateCF(
        epsilon=4.0, unit="user", plan="half_step", items="from ratings"
    ),
    "PrivateTopN, event, epsilon 1": OnlyReleased(epsilon=1.0, items="from ratings"),
    "PrivateTopN, user, epsilon 4": OnlyReleased(epsilon=4.0, unit="user", items="from ratings"),
}
HEAD = ["audited", "trials", "pair uses", "mu, at least", "mu, claimed", "epsilon, at least"]
HEAD += ["epsilon, claimed", "verdict"]


class WeakNoise:
    """Noise that is a given part of what it should be: what a broken twin draws."""

    private = True

    def __init__(self, part: float) -> None:
        self.part = part

    def draw(self, n: int) -> Integers:
        """Return n draws that are too small."""
        return np.rint(self.part * SystemNoise().draw(n)).astype(np.int64)


def release_lines(name: str, model: Any, trials: int) -> list[list[str]]:
    """Audit each kind of release of one model on the pair, among extremes, that moves it most."""
    best: dict[str, Stage] = {}
    for pair in extreme_pairs(model.unit, SCALE if model.learns_from == "explicit" else None):
        for stage in Transcripts(model, pair.without, pair.with_it).stages():
            narrow = np.count_nonzero(stage.apart) <= WIDEST
            known = best.get(stage.release.name)
            if narrow and (known is None or stage.ratio > known.ratio):
                best[stage.release.name] = stage
    lines = []
    for what, stage in best.items():
        sensitivity = stage.release.sensitivity
        found = audit_release(f"{name}: {what}", stage.own, stage.other, sensitivity, trials=trials, delta=DELTA)
        lines.append(line(found, trials))
    return lines


def line(found: ReleaseAudit, trials: int) -> list[str]:
    return [
        found.name,
        f"{trials:,}",
        f"{found.moved:.3f}",
        f"{found.bound.mu:.4f}",
        f"{found.claimed_mu:.4f}",
        f"{found.bound.epsilon:.3f}",
        f"{found.claimed_epsilon:.3f}",
        "BROKEN" if found.broken else "not broken",
    ]


class Fits(NamedTuple):
    """How many whole fits are made of each model, and where their scores are kept."""

    seconds: float
    """Go on for so long,"""
    least: int
    """or until there are so many on each data set."""
    keep: Path

    def scores(self, name: str, fits: Transcripts) -> list[Floats]:
        """Fit on both data sets as often as is wanted, go on where an earlier run stopped, and return all scores."""
        path = self.keep / f"{re.sub('[^a-z0-9.]+', '-', name.lower())}.npz"
        scores = [np.empty(0), np.empty(0)]
        if path.is_file():
            with np.load(path) as kept:
                scores = [kept["without"], kept["with_it"]]
        began = time.monotonic()
        while time.monotonic() - began < self.seconds or len(scores[0]) < self.least:
            scores = [np.append(scores[which], fits.scores(which, BLOCK)) for which in (0, 1)]
            with atomic_write(path) as file:
                np.savez(file, without=scores[0], with_it=scores[1])
        return scores


def fit_lines(name: str, model: Any, wanted: Fits, part: float = 1.0) -> list[list[str]]:
    """Fit on the worst pair found, as often as is wanted, and score everything that was released."""
    pair, shift = worst_pair(model, SCALE, rng=7)
    noise = SystemNoise() if part == 1 else WeakNoise(part)
    fits = Transcripts(model, pair.without, pair.with_it, noise)
    fits.moved()  # where nothing is left to be done, what one fit spends is still to be seen
    scores = wanted.scores(name, fits)
    found = lower_bound(*scores, delta=DELTA)
    mu, epsilon = fits.account.mu, fits.account.epsilon(DELTA)
    broken = found.mu > mu or found.epsilon > epsilon or fits.largest_ratio > 1
    return [
        [
            name,
            f"{len(scores[0]):,} fits",
            f"{shift / mu:.3f}",
            f"{found.mu:.4f}",
            f"{mu:.4f}",
            f"{found.epsilon:.3f}",
            f"{epsilon:.3f}",
            "BROKEN" if broken else "not broken",
        ]
    ]


def twin_lines(trials: int, repeats: int) -> list[list[str]]:
    """Audit a release whose noise is too small, many times, and count how often it is found out."""
    lines = []
    for mu, words in ((0.268, "rating, epsilon 1"), (0.925, "user, epsilon 4")):
        moved = np.array([0]), np.array([round(mu * SIGMA)])
        for part in (1.0, 0.95, 0.9, 0.8, 0.5):
            found = [
                audit_release("twin", *moved, int(moved[1][0]), noise=WeakNoise(part), trials=trials)
                for _ in range(repeats)
            ]
            caught = sum(audit.broken for audit in found)
            by_epsilon = sum(audit.bound.epsilon > audit.claimed_epsilon for audit in found)
            first = line(found[0], trials)
            lines.append([f"sum, {words}, noise x {part:g}", *first[1:-1]])
            lines[-1].append(f"caught {caught} of {repeats} ({by_epsilon} by epsilon alone)")
    return lines


def beside_others(rows: list[list[str]]) -> list[list[str]]:
    """Return all rows of the table as it is, with these in the places of those of the same name."""
    new, old = {row[0]: row for row in rows}, [list(row.values()) for row in measured("audits")]
    names = {row[0] for row in old}
    return [new.get(row[0], row) for row in old] + [row for row in rows if row[0] not in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seconds", type=float, default=60, help="of fits for each model")
    parser.add_argument("--fits", type=int, default=0, help="at least, however long it takes")
    parser.add_argument("--only", default="", help="rows with this in their name; others stay")
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished fits")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options, code = parser.parse_args(), fingerprint()
    keep = options.keep or CACHE / "audits" / code
    wanted = Fits(options.seconds, options.fits, keep)
    twins = [f"{kind}, user, epsilon 4" for kind in ("PrivateMeans", "PrivateTopN")]
    work: list[tuple[str, Any]] = [("twins", (twin_lines, options.trials, options.repeats))]
    work += [
        (f"releases: {name}", (release_lines, name, model, options.trials))
        for name, model in FITS.items()
        if "auto" not in name
    ]
    work += [(f"whole fit: {name}", (fit_lines, f"whole fit: {name}", model, wanted)) for name, model in FITS.items()]
    for twin in twins:
        name = f"whole fit: {twin}, noise x 0.5"
        work.append((name, (fit_lines, name, FITS[twin], wanted, 0.5)))
    rows = []
    with ProcessPoolExecutor(options.processes) as pool:
        for future in [pool.submit(*call) for name, call in work if options.only in name]:
            for found in future.result():
                rows.append(found)
                print(*found, sep="  ", flush=True)
    if options.only:
        rows = beside_others(rows)
        code = f"{code} for rows with {options.only!r}, the others as they were"
    write_table(
        "audits",
        "Audits of the private models",
        HEAD,
        rows,
        delta=DELTA,
        confidence="95%, Clopper and Pearson",
        noise="from the operating system",
        code=code,
    )


if __name__ == "__main__":
    main()
