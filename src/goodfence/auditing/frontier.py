"""`frontier`: what every way of recommending gives away, against how wrong it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from goodfence.attack.attack import Attack
from goodfence.attack.knn_attack import CoverAttack, KNNAttack
from goodfence.attack.report import AttackReport
from goodfence.attack.saving import ratings_checksum
from goodfence.attack.scoring import Estimate
from goodfence.auditing.compared import Compared, default_list
from goodfence.auditing.frontier_point import FrontierPoint, measure, strongest
from goodfence.auditing.pace import find_pace
from goodfence.data.ratings import Ratings
from goodfence.data.splits import holdout
from goodfence.engines.progress import bar
from goodfence.errors import DataError, require
from goodfence.rng import RNG, Streams, seed_of

if TYPE_CHECKING:
    import altair
    import pyarrow as pa

GUESSING = 0.02
"""An advantage of at most this is called no better than guessing, unless another bound is given."""


LEAST = 10
"""So many users are attacked however long it takes."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Frontier:
    """Ways of recommending side by side: error, leak, and promise. It holds no id and no rating."""

    points: tuple[FrontierPoint, ...]
    """One for each mechanism or model with its settings, in the order given."""
    guess: Estimate
    """What guessing the mean of each item recovers of the hidden ratings: no attack is needed for that."""
    settings: dict[str, Any]
    """Attacks, targets, split, seed, data checksum: the manifest."""

    def __repr__(self) -> str:
        head = f"Frontier({len(self.points)} ways, guessing recovers {self.guess.value:.3f})"
        return "\n".join([head, *(f"  {point}" for point in self.points)])

    @property
    def known(self) -> int | None:
        """How many ratings the attackers knew, if all knew as many."""
        known = set(self.settings.get("known", ()))
        return int(known.pop()) if len(known) == 1 else None

    def table(self) -> pa.Table:
        """Return one line for each way, as an arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist([point.row() for point in self.points])

    def recommended(
        self, max_mae: float | None = None, *, bound: float = GUESSING
    ) -> FrontierPoint | None:
        """Return the way with the least error among those no better than guessing; None if there is none.

        Parameters
        ----------
        max_mae
            No more error than this.
        bound
            A way is no better than guessing if its advantage's interval includes 0 and does not reach beyond
            twice this bound, or if the whole interval is at most the bound.
        """
        require(0 <= bound <= 1, "bound", "between 0 and 1", bound)
        able = [
            point
            for point in self.points
            if point.no_better_than_guessing(bound) and (max_mae is None or point.mae <= max_mae)
        ]
        return min(able, key=lambda point: point.mae) if able else None

    def chart(self) -> altair.LayerChart:
        """Return the picture: error to the right, what was found out upwards, and the promise as the mark."""
        from goodfence.auditing.frontier_chart import frontier_chart

        return frontier_chart(self)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write table (parquet), manifest (JSON) and chart (HTML, SVG, PNG) to `folder`, whole or not at all."""
        from goodfence.auditing.frontier_saving import save_frontier

        save_frontier(self, folder)


def frontier(
    ratings: Ratings,
    compared: Sequence[Compared] | None = None,
    *,
    known: int = 16,
    attacks: Sequence[Attack] | None = None,
    targets: int = 100,
    seconds: float | None = None,
    fraction: float = 0.2,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Frontier:
    """Attack each way of recommending, and measure its error on ratings it has not seen.

    Parameters
    ----------
    ratings
        Who rated what how.
    compared
        Mechanisms and recommenders; None for kNN, nPNS, PNCF and PPNS over a few settings, and `PrivateCF` over
        epsilon, for both units.
    known
        How many of her ratings the attacker knows, unless `attacks` are given.
    attacks
        Each way is attacked by all of these that apply to it, and the one with the largest advantage counts. None for
        one fake asking, all fakes asking, and as many fakes as the mechanism looks at, all asking.
    targets
        How many users are attacked: the same for every way. A model that is no mechanism is fitted twice for each.
    seconds
        About how long one way may take: where it would take longer, fewer users are attacked, at least ten; None
        for as long as it takes.
    fraction
        The part of the ratings that is held out to measure the error.
    rng
        A seed for split, targets and mechanisms. Private models take fresh noise, so they never repeat.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> ways = [gf.KNN(k=20), gf.PPNS(k=20, beta=3), gf.PrivateCF(epsilon=4.0, unit="rating")]
    >>> found = frontier(films, ways, known=8, targets=5, rng=7)
    >>> [point.promise for point in found.points]
    ['none', 'refuted', 'proved']
    """
    ways = default_list(ratings.shape[0]) if compared is None else list(compared)
    if not ways:
        raise DataError("compared must name at least one mechanism or recommender")
    chosen = default_attacks(known) if attacks is None else tuple(attacks)
    require(len(chosen) > 0, "attacks", "at least one", len(chosen))
    streams = Streams(rng)
    split = holdout(ratings, fraction=fraction, rng=streams.at(0))
    seed = streams.key(1)
    points = []
    with bar("frontier", len(ways), show=progress) as advance:
        for way in ways:
            n_targets = targets
            if seconds is not None:
                n_targets = _affordable(ratings, way, chosen, targets, seed, seconds)
            points.append(measure(ratings, split, way, chosen, n_targets, seed, threads))
            advance(1)
    return Frontier(
        points=tuple(points),
        # The targets, and what is known of them, are the same for all; some may be attacked by fewer of them.
        guess=max(points, key=lambda point: point.n_targets).guess,
        settings={
            "attacks": [repr(attack) for attack in chosen],
            "known": [attack.known for attack in chosen],
            "targets": targets,
            "seconds": seconds,
            "held_out": fraction,
            "seed": seed_of(rng),
            "ratings": ratings_checksum(ratings),
            "shape": list(ratings.shape),
        },
    )


def _affordable(
    ratings: Ratings,
    way: Compared,
    attacks: Sequence[Attack],
    targets: int,
    seed: int,
    seconds: float,
) -> int:
    def trial(n: int) -> AttackReport:
        return strongest(ratings, way, attacks, n, seed)

    found = find_pace(trial, min(targets, ratings.shape[0]), longest=seconds).n_targets
    return min(max(found, LEAST), targets)


def default_attacks(known: int) -> tuple[Attack, ...]:
    """Return one fake asking, all asking, and as many as the mechanism looks at, all asking."""
    return (
        KNNAttack(known=known),
        KNNAttack(known=known, ask="all"),
        CoverAttack(known=known),
    )
