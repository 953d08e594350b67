"""The attack on recommended lists: kNN, PPNS, EASE and popularity beside PrivateTopN, and how fast it is.

Finished parts are kept, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.private_attack import fingerprint
from benchmarks.results import write_table
from documents.tables import measured
from goodfence.attack.attack import Subject
from goodfence.attack.list_attack import Claims
from goodfence.attack.report import ListAttackReport, ListHits
from goodfence.attack.scoring import Estimate
from goodfence.attack.targets import find_targets
from goodfence.data.files import atomic_write
from goodfence.data.splits import core
from goodfence.rng import Streams

SEED, K, LIKED, LEAST, N = 7, 50, 4, 5, 10
MUST = 0.02
KNOWN = (8, 16, 32)
PART = 50
PEOPLE = {"ml-100k": 10_000, "ml-1m": 1_000}
"""How many people are attacked, if there are as many."""
DRAWS = {"ml-100k": 3, "ml-1m": 1}
"""How often each is attacked where there is noise; each person counts by the mean."""
NOISE = "of a seed, the same in both worlds of a target; on ml-100k each person by the mean of 3 draws"


MODELS: dict[str, Any] = {
    "kNN k=50": gf.KNN(k=K),
    "PPNS k=50 beta=7": gf.PPNS(k=K, beta=7),
    "PrivateTopN, event, epsilon 1": gf.PrivateTopN(epsilon=1.0, items="from ratings"),
    "PrivateTopN, user, epsilon 4": gf.PrivateTopN(epsilon=4.0, unit="user", items="from ratings"),
    "item-based kNN k=50": gf.NeighbourCF(gf.KNN(k=K), axis="item", threads=1),
    "EASE": gf.EASE(),
    "popularity": gf.Popularity(),
}
FEWER = {"item-based kNN k=50": 100, "EASE": 100, "popularity": 200}
"""Of what promises nothing, and is fitted in each world, fewer people."""
HEAD = [
    "data",
    "recommender",
    "m",
    "people",
    "precision",
    "without",
    "popularity",
    "advantage (95%)",
    "raw advantage (95%)",
]
HEAD += ["fully recovered", "fully without", "target alone", "at most .02", "targets a second", "code"]


class Question(NamedTuple):
    """One line of the table."""

    data: str
    name: str
    known: int

    @property
    def key(self) -> tuple[str, ...]:
        """What tells the line from others."""
        return self.data, self.name, str(self.known)

    @property
    def stem(self) -> str:
        """How files that are kept begin."""
        return "-".join(self.key).replace(" ", "-").replace(",", "").replace("=", "")

    @property
    def n(self) -> int:
        """How many people are attacked."""
        return min(PEOPLE[self.data], FEWER.get(self.name, PEOPLE[self.data]))


def likes(data: str) -> gf.Ratings:
    """Return who liked what, people and items with at least five."""
    return core(gf.load(data).likes(LIKED), per_user=LEAST, per_item=LEAST)


def attacked(question: Question, events: gf.Ratings, folder: Path, until: float, most: int) -> Any:
    """Return the report about the parts that are there, doing more while there is time, and the targets a second."""
    attack = gf.ListAttack(known=question.known, n=N, fakes=K)
    model = MODELS[question.name]
    subject = Subject(events, model, threads=1)
    fast = not subject.traits.needs_refits
    found, _ = find_targets(events, min(question.n, most), question.known, "random", Streams(SEED))
    if fast:  # compiled before it is timed
        attack.answers(subject.worlds(K), found.part(0, 2), Streams(SEED))
    n_draws = DRAWS[question.data] if isinstance(model, gf.PrivateTopN) else 1
    size = len(found) if fast else PART
    done: list[list[dict[str, Any]]] = [[] for _ in range(n_draws)]
    for first in range(0, len(found), size):
        some = found.part(first, min(first + size, len(found)))
        paths = [folder / f"{question.stem}-{first}-{draw}.npz" for draw in range(n_draws)]
        if time.monotonic() > until and not all(path.is_file() for path in paths):
            break
        for draw, path in enumerate(paths):
            if not path.is_file():
                keep_claims(path, attack, events, model, some, Streams(SEED + draw))
            done[draw].append(dict(np.load(path)))
    n_done = min(size * len(done[0]), len(found))
    if not n_done:
        return None
    people = found.part(0, n_done)
    reports = [judged(attack, people, parts, events) for parts in done]
    seconds = sum(float(part["spent"]) for parts in done for part in parts)
    return mean_of(reports), n_draws * n_done / seconds


def keep_claims(path: Path, attack: gf.ListAttack, events: gf.Ratings, model: Any, some: Any, streams: Streams) -> None:
    """Attack some people, and keep what is claimed of them in both worlds."""
    start = time.perf_counter()
    claims = attack.answers(Subject(events, model, threads=1).worlds(K), some, streams)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        np.savez(file, spent=time.perf_counter() - start, **claims._asdict())


def judged(attack: gf.ListAttack, people: Any, parts: list[dict[str, Any]], events: gf.Ratings) -> ListAttackReport:
    """Return the report about these people from the parts that were kept."""
    claims = Claims(*(np.concatenate([part[name] for part in parts]) for name in Claims._fields))
    return attack.judged(claims, people, events, Streams(SEED))


def mean_of(reports: list[ListAttackReport]) -> ListAttackReport:
    """Return one report of the same people from several, each person by the mean over these."""
    names = ("with_target", "without_target", "informed", "informed_without")
    means: dict[str, Any] = {}
    for name in names:
        every = [getattr(report, name) for report in reports]
        listed = np.mean([one.listed for one in every], axis=0)
        means[name] = ListHits(listed, np.mean([one.hits for one in every], axis=0))
    return replace(reports[0], **means)


def _interval(found: Estimate) -> str:
    return f"{found.value:.4f} ({found.low:.4f} to {found.high:.4f})"


def line(question: Question, report: ListAttackReport, pace: float, code: str) -> list[str]:
    """Return a line of the table."""
    told = report.estimates
    names = ("precision", "precision_without", "popularity")
    gained, raw = told["advantage"], told["raw_advantage"]
    worst = max(gained, raw, key=lambda one: one.high)
    return [
        *question.key[:2],
        question.key[2],
        f"{report.n_targets:,}",
        *(f"{told[name].value:.3f}" for name in names),
        *(_interval(one) for one in (gained, raw)),
        f"{told['fully_recovered'].value:.3f}",
        f"{told['fully_recovered_without'].value:.3f}",
        "" if np.isnan(report.target_alone) else f"{report.target_alone:.3f}",
        "yes" if worst.high <= MUST else "no" if worst.low > MUST else "not settled",
        f"{pace:,.0f}" if pace >= 10 else f"{pace:.1f}",
        code,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="only the data of this name")
    parser.add_argument("--only", default="", help="attack what has this in its name")
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished parts")
    parser.add_argument("--people", type=int, default=10_000, help="attack so many at most")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin nothing after this")
    options = parser.parse_args()
    code = fingerprint("models", "privacy", "kernels", "selection", "neighbours")
    folder = options.keep or CACHE / "list_attack" / code
    until = time.monotonic() + 60 * options.minutes
    before = {tuple(row.values())[:3]: list(row.values()) for row in measured("list_attack")}
    rows = []
    for data in PEOPLE:
        events = likes(data) if options.data in data else None
        for name in MODELS:
            for known in KNOWN:
                question = Question(data, name, known)
                wanted = events is not None and options.only in name
                done = (
                    attacked(question, events, folder, until, options.people) if wanted and events is not None else None
                )
                if done is not None:
                    rows.append(line(question, done[0], done[1], code))
                    print(*rows[-1], flush=True)
                elif question.key in before:
                    rows.append(before[question.key])
    write_table(
        "list_attack",
        "The attack on recommended lists",
        HEAD,
        rows,
        likes=f"ratings of {LIKED} or more, people and items with at least {LEAST}",
        lists=f"of {N} items, one fake of {K} asks",
        delta="1e-5",
        noise=NOISE,
        seed=f"{SEED} for targets and what is known of them",
        must=f"an advantage of at most {MUST} for PrivateTopN, and a raw one, by their whole intervals",
        pace="one thread; of what is not neighbour-based with two fits a target",
    )


if __name__ == "__main__":
    main()
