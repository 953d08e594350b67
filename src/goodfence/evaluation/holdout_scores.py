"""`evaluate`: the honest protocol. A model that never saw the held-out ratings predicts them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.evaluation.scores import Scores
from goodfence.models.recommender import Recommender

Floats = npt.NDArray[np.float64]


def evaluate(model: Recommender, test: Ratings, *, top: int | None = None) -> Scores:
    """Return how well a fitted model predicts ratings it has not seen.

    Parameters
    ----------
    model
        Any fitted recommender.
    test
        The held-out ratings, with the ids the model was fitted with.
    top
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
    if top is None:
        return Scores.of(predictions, csr.data)
    require(top >= 1, "top", "at least 1", top)
    ndcg, recall = _list_scores(model, test, top)
    return Scores.of(predictions, csr.data, top=top, ndcg=ndcg, recall=recall)


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
