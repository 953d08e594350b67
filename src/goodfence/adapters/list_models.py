"""Models of implicit, and pipelines of LensKit and models of RecTools that recommend lists, as recommenders to attack.

Each learns from events in both worlds, and is asked for the list of a user; of none more is known than that.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.libraries import flatten, library
from goodfence.data.ratings import Ratings

_SEEDS = 2**32


def of_implicit(model: Any) -> BlackBox:
    """Return a model of implicit (`AlternatingLeastSquares`, `CosineRecommender`, ...) as one that can be attacked.

    A copy is fitted in each world, with the target's seed where it has a `random_state`.
    """
    library("implicit")

    def train(events: Ratings, rng: int | None = None) -> Any:
        own = copy.deepcopy(model)
        if rng is not None and hasattr(own, "random_state"):
            own.random_state = rng % _SEEDS
        csr = events.csr
        cells = (csr.data.astype(np.float32), csr.indices.copy(), csr.indptr.copy())  # it writes
        matrix = sparse.csr_matrix(cells, shape=csr.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how it converts its own matrices
            own.fit(matrix, show_progress=False)

        def recommend(user: Any, n: int) -> Any:
            row = events.row(user)
            columns, scores = own.recommend(row, matrix[row], N=n, filter_already_liked_items=True)
            listed = (columns >= 0) & np.isfinite(scores) & (scores > np.finfo(np.float32).min)
            return events.items[columns[listed]]

        return recommend

    return BlackBox(train, asks="lists")


def of_lenskit(pipeline: Any) -> BlackBox:
    """Return a LensKit pipeline that recommends (`topn_pipeline`) as one that can be attacked.

    A clone of it is trained in each world, with the target's seed.
    """
    lenskit, training = library("lenskit"), library("lenskit.training")

    def train(events: Ratings, rng: int | None = None) -> Any:
        users, items, _ = flatten(events)
        frame = library("pandas").DataFrame({"user_id": users, "item_id": items})
        model = pipeline.clone()
        data = library("lenskit.data").from_interactions_df(frame)
        model.train(data, training.TrainingOptions(rng=rng))
        return lambda user, n: lenskit.recommend(model, user, n).ids()

    return BlackBox(train, asks="lists")


def of_rectools(model: Any) -> BlackBox:
    """Return a model of RecTools (`EASEModel`, `ImplicitItemKNNWrapperModel`, ...) as one that can be attacked."""
    datasets, pandas = library("rectools.dataset"), library("pandas")

    def train(events: Ratings) -> Any:
        users, items, values = flatten(events)
        times = np.zeros(len(users), dtype="datetime64[ns]")
        columns = {"user_id": users, "item_id": items, "weight": values, "datetime": times}
        dataset = datasets.Dataset.construct(pandas.DataFrame(columns))
        own = copy.deepcopy(model).fit(dataset)

        def recommend(user: Any, n: int) -> Any:
            told = own.recommend(users=[user], dataset=dataset, k=n, filter_viewed=True)
            return told.sort_values("rank")["item_id"].to_numpy()

        return recommend

    return BlackBox(train, asks="lists")
