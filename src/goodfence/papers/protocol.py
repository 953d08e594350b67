"""Algorithm 1 of the paper, its protocol (MAE over all ratings of some targets), and its metrics alpha and beta."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats, Integers, row_numbers
from goodfence.attack.targets import Wanted
from goodfence.data.ratings import Id, Ratings
from goodfence.data.splits import sample_targets
from goodfence.evaluation import Scores
from goodfence.neighbours.candidate_lists import Axis, RowsAgainstAll, compared_rows, rows_along
from goodfence.neighbours.draw import Draws
from goodfence.neighbours.predict import Neighbourhoods, Over
from goodfence.neighbours.similarity import Similarity
from goodfence.rng import RNG, Streams
from goodfence.selection.inclusion import InclusionMethod, list_metrics
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import checked

# The streams of `paper_protocol` below one seed.
TARGETS, CHOICES = range(2)


class Prediction(NamedTuple):
    """What Algorithm 1 returns. Who the neighbours are is for the operator's eyes only."""

    rating: float
    """The predicted rating; NaN where no neighbour rated the item."""
    neighbours: npt.NDArray[Any]
    """(k,): the ids of the chosen neighbours, nearest first; item-based they are items."""
    similarities: Floats
    """(k,): how similar each of them is."""

    def __repr__(self) -> str:
        return f"Prediction({len(self.neighbours)} neighbours)"


@checked
def algorithm_1(
    ratings: Ratings,
    mechanism: Mechanism,
    user: Id,
    item: Id,
    *,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    over: Over = "raters",
    rng: RNG = None,
) -> Prediction:
    """Choose the neighbours of one user by any mechanism, and predict one rating [PRED].

    The draw is that of `NeighbourCF(mechanism, rng=rng).fit(ratings)` with the same seed. Called again without a seed
    it draws again, which reveals more each time: to serve answers, fit a model once.

    Parameters
    ----------
    ratings, mechanism, axis, similarity, over, rng
        As in `NeighbourCF`.
    user, item
        Whose rating of what is predicted, by their own ids.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> found = gf.papers.algorithm_1(films, gf.PPNS(k=50, beta=7), films.users[0], films.items[0], rng=7)
    >>> found
    Prediction(50 neighbours)
    """
    measure, rows = Similarity.of(similarity), rows_along(ratings, axis)
    row, column = ratings.row(user), int(ratings.columns([item])[0])
    draws = Draws(compared_rows(ratings, axis, measure), mechanism, measure, Streams(rng).key())
    asker = row if axis == "user" else column
    chosen = draws.choose(np.array([asker]), threads=1, progress=False)
    near = Neighbourhoods(chosen.neighbours, chosen.weights, over == "raters")
    other = column if axis == "user" else row
    told = near.predict(rows.csr, np.zeros(1, dtype=np.int64), np.array([other]), threads=1)
    return Prediction(float(told[0]), rows.users[chosen.neighbours[0]], chosen.similarities[0])


@checked
def paper_protocol(
    ratings: Ratings,
    mechanism: Mechanism,
    *,
    axis: Axis = "user",
    targets: Wanted = 200,
    similarity: Similarity | str = "cosine",
    over: Over = "raters",
    rng: RNG = None,
) -> Scores:
    """Return the paper's scores: all ratings of some targets, predicted with those ratings in place.

    Parameters
    ----------
    ratings, mechanism
        As in `NeighbourCF`.
    axis : {"user", "item"}, default "user"
        Targets are users, or items.
    targets : int or sequence of ids, default 200
        How many to draw at random (all, if there are no more), or their ids.
    similarity, over, rng
        As in `NeighbourCF`.

    Notes
    -----
    This is not an honest estimate of error on unseen ratings: each target's ratings helped to find the
    neighbours that predict them. `evaluate` with `holdout` is.

    Examples
    --------
    >>> import goodfence as gf
    >>> gf.papers.paper_protocol(gf.load("movietweetings"), gf.KNN(k=30), targets=100, rng=7).n > 100
    True
    """
    rows, streams, measure = rows_along(ratings, axis), Streams(rng), Similarity.of(similarity)
    askers = _askers(rows, targets, streams)
    draws = Draws(compared_rows(ratings, axis, measure), mechanism, measure, streams.key(CHOICES))
    chosen = draws.choose(askers)
    csr = rows.csr[askers]
    positions = row_numbers(csr.indptr)
    near = Neighbourhoods(chosen.neighbours, chosen.weights, over == "raters")
    predictions = near.predict(rows.csr, positions, csr.indices)
    return Scores.of(predictions, csr.data)


def _askers(rows: Ratings, targets: Wanted, streams: Streams) -> Integers:
    if isinstance(targets, int | np.integer):
        targets = sample_targets(rows, int(targets), rng=streams.at(TARGETS))
    return rows.rows(targets)


class PaperMetrics(NamedTuple):
    """The paper's two metrics of a method, means over targets."""

    alpha: float
    """Accuracy: the expected sum of the k neighbours' similarities [ACCURACY]."""
    largest: float
    """The sum over the k nearest, which no method exceeds."""
    beta: float
    """Security, in the paper's sense: across how many of the nearest partitions of k neighbours are drawn."""
    n: int
    """The number of targets."""


@checked
def paper_metrics(
    ratings: Ratings,
    mechanism: Mechanism,
    *,
    axis: Axis = "user",
    targets: Wanted = 200,
    similarity: Similarity | str = "cosine",
    method: InclusionMethod = "exact",
    rng: RNG = None,
) -> PaperMetrics:
    """Return alpha and beta of any mechanism on the candidate lists of some targets.

    Parameters
    ----------
    ratings, mechanism, axis, targets, similarity, rng
        As in `paper_protocol`.
    method : {"exact", "manly"}, default "exact"
        As in `alpha`.
    """
    rows, streams, measure = rows_along(ratings, axis), Streams(rng), Similarity.of(similarity)
    askers = _askers(rows, targets, streams)
    profiles = compared_rows(ratings, axis, measure)
    draws = Draws(profiles, mechanism, measure, streams.key(CHOICES))
    reach = mechanism.reach(profiles.n_rows - 1)
    lists = RowsAgainstAll(profiles, measure).nearest(profiles, askers, reach, themselves=True)
    bounds = draws.row_bounds(askers)
    if bounds is not None and bounds.ndim == 2:
        bounds = np.take_along_axis(bounds, lists[0].astype(np.int64), axis=1)
    found = [
        list_metrics(mechanism, listed, None if bounds is None else bounds[row], method=method)
        for row, listed in enumerate(lists[1])
    ]
    alphas, betas = (float(np.mean(part)) for part in zip(*found, strict=True))
    largest = float(lists[1][:, : mechanism.k].sum(axis=1).mean())
    return PaperMetrics(alphas, largest, betas, len(askers))
