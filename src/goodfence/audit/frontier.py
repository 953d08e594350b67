"""`frontier`: what every recommender gives away, against how wrong it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from os import PathLike
from typing import TYPE_CHECKING, Any

from goodfence.attack import DEFAULT_KNOWN, FRONTIER_TARGETS, GUESSING
from goodfence.attack.attack import Attack
from goodfence.attack.report import AttackReport, as_plain
from goodfence.attack.scoring import Estimate
from goodfence.attack.strongest import strongest
from goodfence.attack.subject import Subject
from goodfence.audit.frontier_point import (
    Compared,
    FrontierPoint,
    TargetDraw,
    attackers_of,
    default_list,
    measure,
)
from goodfence.audit.time_budget import find_pace
from goodfence.data.ratings import Ratings
from goodfence.data.splits import holdout
from goodfence.errors import DataError, require
from goodfence.models.neighbour_cf import as_recommender
from goodfence.neighbours.threads import bar
from goodfence.report.charts import as_altair, chart_files
from goodfence.report.frontier_chart import frontier_spec
from goodfence.report.serialize import about, save_result
from goodfence.rng import RNG, Streams, seed_of
from goodfence.settings import checked, positive

if TYPE_CHECKING:
    import altair
    import pyarrow as pa

_TABLE = "frontier.parquet"
CUT = 5.0
"""A proved recommender that leaks so many times less than the leakiest one is worth recommending."""


LEAST = 10
"""So many users are attacked however long it takes."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Frontier:
    """Recommenders side by side: error, leak, and guarantee. It holds no id and no rating."""

    points: tuple[FrontierPoint, ...]
    """One for each mechanism or model with its settings, in the order given."""
    guess: Estimate
    """What guessing recovers of the hidden ratings, from what everybody else rated: no attack is needed for that."""
    settings: dict[str, Any]
    """Attacks, targets, split, seed: the manifest. `reference`, if it is there, is a line of the chart: its `name` and
    its `mae`."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    """When it was made."""

    def _repr_html_(self) -> str:
        from goodfence.report.notebook import frontier_html

        return frontier_html(self)

    def __repr__(self) -> str:
        head = (
            f"Frontier({len(self.points)} recommenders, guessing recovers {self.guess.value:.3f})"
        )
        return "\n".join([head, *(f"  {point}" for point in self.points)])

    @property
    def known(self) -> int | None:
        """How many ratings the attackers knew, if all knew as many."""
        known = set(self.settings.get("known", ()))
        return int(known.pop()) if len(known) == 1 else None

    def table(self) -> pa.Table:
        """Return one line for each recommender, as an arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist([point.to_dict() for point in self.points])

    def to_dict(self, max_mae: float | None = None) -> dict[str, Any]:
        """Return the points, the position of the recommended one, and the settings, as plain values."""
        best = self.recommended(max_mae)
        return {
            "date": self.date,
            "points": [
                {
                    **point.to_dict(),
                    "cut": self.cut(point),
                    "tried": [as_plain(one) for one in point.tried],
                }
                for point in self.points
            ],
            "guess": self.guess._asdict(),
            "recommended": None if best is None else self.points.index(best),
            "settings": dict(self.settings),
        }

    def recommended(
        self, max_mae: float | None = None, *, bound: float = GUESSING
    ) -> FrontierPoint | None:
        """Return the recommender with the least error of those that stop the attackers who were tried, if any does.

        That is one that is no better than guessing (`FrontierPoint.no_better_than_guessing`), or whose guarantee is
        proved and which cuts the largest leak of all by a factor of at least five: an interval that reaches a little
        above a bound does not make it as good as none.

        Parameters
        ----------
        max_mae
            No more error than this.
        bound
            What counts as no better than guessing: an advantage whose interval includes 0 and does not reach beyond
            twice this bound, or whose whole interval is at most the bound.
        """
        require(0 <= bound <= 1, "bound", "between 0 and 1", bound)
        able = [
            point
            for point in self.points
            if self._stops(point, bound) and (max_mae is None or point.mae <= max_mae)
        ]
        return min(able, key=lambda point: point.mae) if able else None

    def cut(self, point: FrontierPoint) -> float:
        """Return by which factor a recommender leaks less than the leakiest one; infinity for no leak."""
        largest = max((one.advantage.value for one in self.points), default=0.0)
        if not largest > 0:
            return 1.0
        return largest / point.advantage.value if point.advantage.value > 0 else float("inf")

    def _stops(self, point: FrontierPoint, bound: float) -> bool:
        if point.no_better_than_guessing(bound):
            return True
        # Of the factor at least the worse end of the interval must be sure.
        largest = max((one.advantage.value for one in self.points), default=0.0)
        return point.status == "proved" and point.advantage.high * CUT <= largest

    def chart(self) -> altair.LayerChart:
        """Return the picture: error to the right, what was found out upwards, and the guarantee as the mark."""
        return as_altair(frontier_spec(self))

    def save(self, folder: str | PathLike[str]) -> None:
        """Write table (parquet), manifest (JSON) and chart (HTML, SVG, PNG) to `folder`, in one atomic step.

        A frontier that is there is replaced; anything else is an error.
        """
        manifest = {
            "kind": "Frontier",
            "date": self.date,
            "guess": list(self.guess),
            **self.settings,
        }
        files = chart_files(frontier_spec(self))
        save_result(folder, "frontier", manifest, (_TABLE, self.table()), files)


@checked
def frontier(
    ratings: Ratings,
    compared: Sequence[Compared] | None = None,
    *,
    known: int = DEFAULT_KNOWN,
    attacks: Sequence[Attack] | None = None,
    reports: Sequence[AttackReport] = (),
    targets: int = FRONTIER_TARGETS,
    seconds: float | None = None,
    fraction: float = 0.2,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Frontier:
    """Attack each recommender, and measure its error on ratings it has not seen.

    Parameters
    ----------
    ratings, threads, progress
        As in `KNNAttack.run`.
    compared
        Mechanisms and recommenders; None for kNN, nPNS, PNCF, PPNS and `PrivateCF`, each over a few settings.
    known, attacks
        As in `audit`; of several `attacks` those count that apply.
    reports
        Reports on the first ones of `compared`, which are then not attacked again.
    targets, seconds
        How many users are attacked, the same for all; fewer, but ten, where one would take longer than about `seconds`.
    fraction, rng
        The part that is held out to measure the error; a seed for everything but the noise of private models.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> listed = [gf.KNN(k=20), gf.PPNS(k=20, beta=3), gf.PrivateCF(epsilon=4.0, unit="rating")]
    >>> found = frontier(films, listed, targets=6, rng=7)
    >>> [point.status for point in found.points]
    ['none', 'refuted', 'proved']
    """
    compared = default_list(ratings.shape[0]) if compared is None else compared
    methods = [as_recommender(one, threads=threads) for one in compared]
    if not methods:
        raise DataError("compared must name at least one mechanism or recommender")
    if seconds is not None:
        positive(seconds, "seconds")
    known_reports = all(isinstance(one, AttackReport) for one in reports)
    require(known_reports, "reports", "reports of attacks", type(reports))
    good = attacks is None or (len(attacks) > 0 and all(isinstance(one, Attack) for one in attacks))
    require(good, "attacks", "at least one attack", type(attacks))
    streams = Streams(rng)
    split = holdout(ratings, fraction=fraction, rng=streams.at(0))
    points = []
    seed = streams.key(1)
    with bar("frontier", len(methods), show=progress) as advance:
        for method, done in zip_longest(methods, reports[: len(methods)]):
            subject, report = Subject(ratings, method, threads=threads), done
            if report is None:
                attackers = attackers_of(subject, known, attacks)
                report = _attacked(subject, attackers, TargetDraw(targets, seed), seconds)
            points.append(measure(subject, split, report, seed))
            advance(1)
    settings = {
        **_stated(known, attacks),
        **{"targets": targets, "seconds": seconds, "held_out": fraction, "seed": seed_of(rng)},
        "shape": [about(n) for n in ratings.shape],
    }
    # The targets, and what is known of them, are the same for all; some may be attacked by fewer of them.
    guess = max(points, key=lambda point: point.n_targets).guess
    return Frontier(points=tuple(points), guess=guess, settings=settings)


def _stated(known: int, attacks: Sequence[Attack] | None) -> dict[str, Any]:
    """Return what is said of the attackers; None for the usual ones."""
    if attacks is None:
        return {"attacks": None, "known": [known]}
    return {"attacks": [repr(one) for one in attacks], "known": [one.known for one in attacks]}


def _attacked(
    subject: Subject, attackers: Sequence[Attack], running: TargetDraw, seconds: float | None
) -> AttackReport:
    """Return what the strongest attacker finds, on no more targets than the time allows, but at least `LEAST`."""

    def attack(one: Subject, n: int) -> AttackReport:
        return strongest(one, attackers, targets=n, rng=running.seed, progress=False)

    if seconds is None:
        return attack(subject, running.targets)

    def trial(n: int) -> AttackReport:
        return attack(Subject(subject.ratings, subject.recommender, threads=subject.threads), n)

    n_users = min(running.targets, subject.ratings.shape[0])
    found = find_pace(trial, n_users, longest=seconds).n_targets
    return attack(subject, min(max(found, LEAST), running.targets))
