"""How well a recommender predicts and lists: `evaluate`, on what was held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from goodfence.arrays import Flags, Floats, Integers, row_numbers
from goodfence.data.ids import Ids
from goodfence.data.ratings import Ratings, positions_among
from goodfence.errors import require
from goodfence.markup import html_table
from goodfence.settings import checked, integer

_USUAL_LENGTH = 10  # of lists of events
_LIST_FIGURES = ["ndcg", "recall", "precision", "hit_rate", "mrr", "map", "catalogue_coverage", "mean_popularity"]


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How far predictions are from ratings, over the rated cells only, pooled [MAE]; and how good the lists are.

    Figures of lists are means over the users of whom something was held out, except `catalogue_coverage`. Whatever was
    held out of a user counts as relevant, and all of it alike.
    """

    mae: float
    """Mean absolute error over the cells that got a prediction; NaN if none did, and for events."""
    rmse: float
    """Root of the mean squared error over the same cells."""
    coverage: float
    """The share of the cells that got a prediction; NaN for events."""
    n: int
    """The number of cells."""
    top: int | None = None
    """The length of the recommended lists that all figures below speak of."""
    ndcg: float | None = None
    """Normalised discounted cumulative gain."""
    recall: float | None = None
    """The share of a user's held-out items that are in the list."""
    precision: float | None = None
    """The share of the list's places that hold a held-out item."""
    hit_rate: float | None = None
    """The share of the users whose list holds at least one."""
    mrr: float | None = None
    """One over the rank of the first held-out item; 0 where there is none."""
    map: float | None = None
    """Average precision: the precision at the rank of each held-out item, over the number of them."""
    catalogue_coverage: float | None = None
    """The share of all items that are in somebody's list."""
    mean_popularity: float | None = None
    """The share of the users fitted to who have the listed items."""
    intervals: Mapping[str, tuple[float, float]] | None = None
    """Of each of these means the interval over users at 95%, by Student's t."""

    def _repr_html_(self) -> str:
        told = {name: value for name, value in asdict(self).items() if name != "intervals"}
        rows = [(name, f"{value:.4g}") for name, value in told.items() if value is not None]
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
            mae=float(errors.mean()) if n_made else np.nan,
            rmse=float(np.sqrt((errors**2).mean())) if n_made else np.nan,
            coverage=n_made / len(ratings) if len(ratings) else np.nan,
            n=len(ratings),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values."""
        return asdict(self)

    def __repr__(self) -> str:
        errors = f"mae={self.mae:.4g}, rmse={self.rmse:.4g}, coverage={self.coverage:.4g}, "
        text = f"Scores({'' if np.isnan(self.coverage) else errors}n={self.n}"
        if self.top is not None:
            text += f", ndcg@{self.top}={self.ndcg:.4g}, recall@{self.top}={self.recall:.4g}"
        return text + ")"


@checked
def evaluate(model: Any, test: Ratings, *, n: int | None = None) -> Scores:
    """Return how well a fitted model predicts ratings it has not seen, and how good its lists are.

    Parameters
    ----------
    model : recommender
        Any fitted recommender.
    test : Ratings
        The held-out ratings or events, with the ids the model was fitted with.
    n : int, optional
        Also compare lists of this length with the held-out items: NDCG, recall, precision, hit rate, MRR, MAP, how
        much of the catalogue is listed, and how popular it is. None for no lists, and of events for lists of 10.

    Examples
    --------
    >>> import goodfence as gf
    >>> train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=7)
    >>> scores = gf.evaluate(gf.NeighbourCF(gf.KNN(k=30)).fit(train), test)
    >>> scores.mae < 2
    True
    >>> gf.evaluate(gf.Popularity().fit(train.likes(8)), test.likes(8), n=10).hit_rate > 0.1
    True
    """
    able = any(callable(getattr(model, name, None)) for name in ("predict", "recommend"))
    require(able, "model", "a fitted recommender", type(model))
    csr = test.csr
    fitted: Ratings | None = getattr(model, "ratings_", None)
    events = "implicit" in (test.feedback, "explicit" if fitted is None else fitted.feedback)
    if events:
        scores = Scores(mae=np.nan, rmse=np.nan, coverage=np.nan, n=csr.nnz)
    else:
        rows = row_numbers(csr.indptr)
        predictions = np.asarray(model.predict(test.users[rows], test.items[csr.indices]))
        scores = Scores.of(predictions, csr.data)
    if n is None and not events:
        return scores
    most = max(1, test.shape[1])
    length = min(_USUAL_LENGTH, most) if n is None else integer(n, "n", least=1, most=most)
    rows = np.flatnonzero(np.diff(csr.indptr))
    listed = _listed(model, test, rows, length)
    return replace(scores, top=length, **list_figures(listed, test, rows, fitted))


def _listed(model: Any, test: Ratings, rows: Integers, n: int) -> Integers:
    """Return the lists of these users of `test`, by its columns: -1 for no item, -2 for one that is not in `test`."""
    found = np.full((len(rows), n), -1, dtype=np.int64)
    if callable(getattr(model, "recommend_many", None)):
        lists = model.recommend_many(test.users[rows], n)
        known = Ids.of_sorted(lists.catalogue, "items"), Ids.of_sorted(test.items, "items")
        places = np.append(np.where((at := positions_among(*known)) < 0, -2, at), -1)
        found[:, : lists.columns.shape[1]] = places[lists.columns]
        return found
    place = {item: at for at, item in enumerate(test.items.tolist())}
    for row, user in enumerate(test.users[rows]):
        items = np.asarray(model.recommend(user, n).items).tolist()[:n]
        found[row, : len(items)] = [place.get(item, -2) for item in items]
    return found


def list_figures(listed: Integers, test: Ratings, rows: Integers, fitted: Ratings | None = None) -> dict[str, Any]:
    """Return the figures of lists, as `Scores` names them, with their intervals.

    `listed` is (users, n) columns of `test`, best first, below 0 for none; `rows` are the users' rows in `test`. What
    the model was `fitted` to says how popular an item is.
    """
    n, csr = listed.shape[1], test.csr
    if not len(rows):
        return dict.fromkeys(_LIST_FIGURES, float(np.nan))
    hits = _hits(listed, test, rows)
    held_out = np.diff(csr.indptr)[rows]
    ranks = np.arange(1, n + 1)
    gains = 1.0 / np.log2(ranks + 1)
    ideal = np.cumsum(gains)[np.minimum(held_out, n) - 1]
    precisions, n_hits = np.cumsum(hits, axis=1) / ranks, np.asarray(hits.sum(axis=1))
    by_user: dict[str, Floats] = {
        "ndcg": hits @ gains / ideal,
        "recall": n_hits / held_out,
        "precision": n_hits / n,
        "hit_rate": np.asarray(n_hits > 0, dtype=np.float64),
        "mrr": np.where(n_hits > 0, 1.0 / (hits.argmax(axis=1) + 1), 0.0),
        "map": (hits * precisions).sum(axis=1) / held_out,
    }
    if fitted is not None:
        by_user["mean_popularity"] = _popularity(listed, test, fitted)
    means = {name: float(np.nanmean(each)) for name, each in by_user.items()}
    distinct = np.unique(listed[listed >= 0])
    means["catalogue_coverage"] = len(distinct) / test.shape[1]
    return {**means, "intervals": {name: _interval(each) for name, each in by_user.items()}}


def _hits(listed: Integers, test: Ratings, rows: Integers) -> Flags:
    """Return which of the listed items were held out of the very user."""
    csr, n_items = test.csr, test.shape[1]
    held_out = row_numbers(csr.indptr) * n_items + csr.indices  # ascending
    asked = np.where(listed >= 0, rows[:, np.newaxis] * n_items + listed, -1)
    places = np.minimum(np.searchsorted(held_out, asked), len(held_out) - 1)
    found: Flags = held_out[places] == asked
    return found


def _popularity(listed: Integers, test: Ratings, fitted: Ratings) -> Floats:
    """Return for each list the mean share of users who have its items; NaN of an empty list."""
    counts = np.bincount(fitted.csr.indices, minlength=fitted.shape[1]) / max(fitted.shape[0], 1)
    known = Ids.of_sorted(test.items, "items"), Ids.of_sorted(fitted.items, "items")
    places = positions_among(*known)
    shares = np.append(np.where(places < 0, 0.0, counts[places]), 0.0)
    full = listed >= 0
    totals = np.where(full, shares[listed], 0.0).sum(axis=1)
    lengths = full.sum(axis=1)
    return np.where(lengths > 0, totals / np.maximum(lengths, 1), np.nan)


def _interval(values: Floats) -> tuple[float, float]:
    """Return the 95% interval of a mean over users, within 0 and 1."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return 0.0, 1.0
    reach = stats.t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    low, high = np.clip([known.mean() - reach, known.mean() + reach], 0.0, 1.0)
    return float(low), float(high)
