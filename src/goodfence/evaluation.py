"""How well a recommender predicts: `evaluate`, on ratings held out, and `paper_protocol`, on ratings left in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats
from goodfence.data.ratings import Id, Ratings
from goodfence.data.splits import sample_targets
from goodfence.errors import require
from goodfence.markup import html_table
from goodfence.models.recommender import Recommender
from goodfence.neighbours.candidate_lists import Axis, RowsAgainstAll, compared, rows_of
from goodfence.neighbours.draw import Draws
from goodfence.neighbours.predict import Neighbourhoods, Over
from goodfence.neighbours.similarity import Similarity
from goodfence.rng import RNG, Streams
from goodfence.selection.inclusion import InclusionMethod, list_metrics
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import checked, integer

# The streams of `paper_protocol` below one seed.
TARGETS, CHOICES = range(2)


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How far predictions are from ratings, over the rated cells only, pooled [MAE].

    Examples
    --------
    >>> Scores.of(np.array([3.0, np.nan, 5.0]), np.array([4.0, 2.0, 5.0]))
    Scores(mae=0.5, rmse=0.7071, coverage=0.6667, n=3)
    """

    mae: float
    """Mean absolute error over the cells that got a prediction; NaN if none did."""
    rmse: float
    """Root of the mean squared error over the same cells."""
    coverage: float
    """The share of the cells that got a prediction."""
    n: int
    """The number of cells."""
    top: int | None = None
    """The length of the recommended lists that `ndcg` and `recall` speak of."""
    ndcg: float | None = None
    """Normalised discounted cumulative gain of the recommended lists; mean over users."""
    recall: float | None = None
    """The share of a user's held-out items that are in the recommended list; mean over users."""

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:.4g}") for name, value in asdict(self).items() if value is not None]
        return html_table(["figure", "value"], rows, title="Scores")

    @classmethod
    @checked
    def of(cls, predictions: Floats, ratings: Floats) -> Scores:
        """Return the scores of predictions, NaN for none, against the ratings that they predict."""
        predicted, rated = np.asarray(predictions), np.asarray(ratings)
        same = predicted.ndim == 1 and predicted.shape == rated.shape
        require(same, "predictions", "a list of as many numbers as ratings", predicted.shape)
        made = ~np.isnan(predicted)
        errors = np.abs(predicted[made] - rated[made])
        n_made = int(made.sum())
        return cls(
            mae=float(errors.mean()) if n_made else float(np.nan),
            rmse=float(np.sqrt((errors**2).mean())) if n_made else float(np.nan),
            coverage=n_made / len(ratings) if len(ratings) else float(np.nan),
            n=len(ratings),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values."""
        return asdict(self)

    def __repr__(self) -> str:
        text = f"Scores(mae={self.mae:.4g}, rmse={self.rmse:.4g}, coverage={self.coverage:.4g}, n={self.n}"
        if self.top is not None:
            text += f", ndcg@{self.top}={self.ndcg:.4g}, recall@{self.top}={self.recall:.4g}"
        return text + ")"


@checked
def evaluate(model: Recommender, test: Ratings, *, top: int | None = None) -> Scores:
    """Return how well a fitted model predicts ratings it has not seen.

    Parameters
    ----------
    model : Recommender
        Any fitted recommender.
    test : Ratings
        The held-out ratings, with the ids the model was fitted with.
    top : int, optional
        Also compare the recommended lists of this length with the held-out items: NDCG and recall.

    Examples
    --------
    >>> import goodfence as gf
    >>> train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=7)
    >>> scores = gf.evaluate(gf.NeighbourCF(gf.KNN(k=30)).fit(train), test)
    >>> scores.mae < 2
    True
    """
    csr = test.csr
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    predictions = np.asarray(model.predict(test.users[rows], test.items[csr.indices]))
    scores = Scores.of(predictions, csr.data)
    if top is None:
        return scores
    top = integer(top, "top", least=1, most=max(1, test.shape[1]))
    ndcg, recall = _list_scores(model, test, top)
    return replace(scores, top=top, ndcg=ndcg, recall=recall)


def _list_scores(model: Recommender, test: Ratings, top: int) -> tuple[float, float]:
    """Return NDCG and recall of the recommended lists, each a mean over the users with held-out items."""
    gains = 1.0 / np.log2(np.arange(2, top + 2))
    csr = test.csr
    ndcg, recall = [], []
    for row in np.flatnonzero(np.diff(csr.indptr)):
        held_out = csr.indices[csr.indptr[row] : csr.indptr[row + 1]]
        listed = test.columns(model.recommend(test.users[row], top).items)
        hits = np.isin(listed, held_out)
        ndcg.append(gains[: len(hits)][hits].sum() / gains[: len(held_out)].sum())
        recall.append(hits.sum() / len(held_out))
    if not ndcg:
        return float(np.nan), float(np.nan)
    return float(np.mean(ndcg)), float(np.mean(recall))


@checked
def paper_protocol(
    ratings: Ratings,
    mechanism: Mechanism,
    *,
    axis: Axis = "user",
    targets: int | Sequence[Id] | npt.NDArray[Any] = 200,
    similarity: Similarity | str = "cosine",
    over: Over = "raters",
    rng: RNG = None,
    threads: int | None = None,
) -> Scores:
    """Return the paper's scores: all ratings of some targets, predicted with those ratings in place.

    Parameters
    ----------
    ratings : Ratings
        Who rated what how.
    mechanism : Mechanism
        Who becomes a neighbour.
    axis : {"user", "item"}, default "user"
        Targets are users, or items.
    targets : int or sequence of ids, default 200
        How many to draw at random (all, if there are no more), or their ids.
    similarity, over, rng, threads
        As in `NeighbourCF`.

    Notes
    -----
    This is not an honest estimate of error on unseen ratings: each target's ratings helped to find the
    neighbours that predict them. `evaluate` with `holdout` is.

    Examples
    --------
    >>> import goodfence as gf
    >>> gf.paper_protocol(gf.load("movietweetings"), gf.KNN(k=30), targets=100, rng=7).n > 100
    True
    """
    require(over in ("raters", "neighbours"), "over", "'raters' or 'neighbours'", over)
    streams = Streams(rng)
    rows = rows_of(ratings, axis)
    if isinstance(targets, int | np.integer):
        targets = sample_targets(rows, int(targets), rng=streams.at(TARGETS))
    askers = rows.rows(targets)
    measure = Similarity.of(similarity)
    draws = Draws(compared(ratings, axis, measure), mechanism, measure, streams.key(CHOICES))
    chosen = draws.choose(askers, threads=threads)
    csr = rows.csr[askers]
    positions = np.repeat(np.arange(len(askers)), np.diff(csr.indptr))
    near = Neighbourhoods(chosen.neighbours, chosen.weights, over == "raters")
    predictions = near.predict(rows.csr, positions, csr.indices, threads=threads)
    return Scores.of(predictions, csr.data)


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
    targets: int | Sequence[Id] | npt.NDArray[Any] = 200,
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

    Examples
    --------
    >>> import goodfence as gf
    >>> found = paper_metrics(gf.load("movietweetings"), gf.PPNS(k=20, beta=3), targets=20, rng=7)
    >>> found.beta, found.alpha < found.largest
    (3.0, True)
    """
    rows, streams, measure = rows_of(ratings, axis), Streams(rng), Similarity.of(similarity)
    if isinstance(targets, int | np.integer):
        targets = sample_targets(rows, int(targets), rng=streams.at(TARGETS))
    askers = rows.rows(targets)
    profiles = compared(ratings, axis, measure)
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
