"""RecTools: our recommenders as its models, and its models as recommenders to attack."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import pyarrow as pa

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.libraries import base_class, flatten, library
from goodfence.data.ratings import Ratings
from goodfence.data.scale import ScaleLike
from goodfence.neighbours.lists import best_of, no_lists
from goodfence.registry import made_of, settings_of

_ModelBase: Any = base_class("rectools.models.base", "ModelBase")
_ModelConfig: Any = base_class("rectools.models.base", "ModelConfig")


class RecommenderModelConfig(_ModelConfig):  # type: ignore[misc]  # of a library that may be missing
    """The settings of `RecommenderModel`, as plain values."""

    recommender: dict[str, Any]
    scale: tuple[float, ...] | None = None


class RecommenderModel(_ModelBase):  # type: ignore[misc]
    """Any of our recommenders with lists as a RecTools model: it runs in `cross_validate` and is saved and configured.

    Parameters
    ----------
    recommender
        `PrivateTopN`, `PrivateCF` and the like. A copy is fitted.
    scale
        What ratings (RecTools calls them weights) can be given; private recommenders of ratings need it. One of events
        takes each interaction for one event.
    """

    config_class = RecommenderModelConfig

    def __init__(self, recommender: Any, *, scale: ScaleLike | None = None, verbose: int = 0) -> None:
        super().__init__(verbose=verbose)
        self.recommender = recommender
        self.scale = scale

    def _get_config(self) -> Any:
        stated = {**settings_of(self.recommender), "catalogue": getattr(self.recommender, "catalogue", None)}
        kept = {name: value for name, value in stated.items() if value is not None}
        return self.config_class(cls=type(self), recommender=kept, scale=self.scale, verbose=self.verbose)

    @classmethod
    def _from_config(cls, config: Any) -> Self:
        return cls(made_of(config.recommender), scale=config.scale, verbose=config.verbose)

    def _fit(self, dataset: Any) -> None:
        events = self.recommender.learns_from == "implicit"
        raw = dataset.get_raw_interactions()
        names = ["user_id", "item_id", *([] if events else ["weight"])]
        table = pa.table({name: pa.array(raw[name]) for name in names})
        how: dict[str, Any] = {"feedback": "implicit"} if events else {"rating": "weight", "scale": self.scale}
        self.recommender_ = copy.copy(self.recommender).fit(Ratings.from_frame(table, **how))

    def _recommend_u2i(self, user_ids: Any, dataset: Any, k: int, filter_viewed: bool, sorted_item_ids: Any) -> Any:
        fitted = self.recommender_
        ratings, allowed = fitted.ratings_, None
        if sorted_item_ids is not None:
            allowed = dataset.item_id_map.convert_to_external(sorted_item_ids)
        rows = ratings.rows(dataset.user_id_map.convert_to_external(user_ids))
        if filter_viewed:
            ranked = fitted.recommend_many(ratings.users[rows], k, allowed=allowed)
        else:
            ranked = no_lists(len(rows), k, ratings.shape[1])
            may, nobody = fitted._allowed(allowed), np.empty(0, dtype=np.int64)
            for place, row in enumerate(rows.tolist()):
                found = best_of(fitted._row_list_scores(row), nobody, may, k)
                ranked.columns[place, : len(found.columns)] = found.columns
                ranked.scores[place, : len(found.columns)] = found.scores
        at, rank = np.nonzero(ranked.columns >= 0)
        items = dataset.item_id_map.convert_to_internal(ratings.items[ranked.columns[at, rank]])
        return np.asarray(user_ids)[at], items, ranked.scores[at, rank]


def from_rectools(model: Any) -> BlackBox:
    """Return a model of RecTools (`EASEModel`, `ImplicitItemKNNWrapperModel`, ...) that can be attacked."""
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
