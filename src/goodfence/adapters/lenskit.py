"""LensKit: our recommenders as its scorers, its pipelines as recommenders to attack, and its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.extras import base_class, library
from goodfence.adapters.flat import flatten
from goodfence.adapters.known import among, predict_known
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.engines.local.candidates import Axis
from goodfence.errors import NotFittedError
from goodfence.models.fallback import Fallback
from goodfence.models.neighbour_cf import NeighbourCF, Over
from goodfence.models.recommender import Ids
from goodfence.selection.settings import mechanism_of, settings_of

Floats: TypeAlias = npt.NDArray[np.float64]

_Component: Any = base_class("lenskit.pipeline", "Component")
_Trainable: Any = base_class("lenskit.training", "Trainable")


@dataclass
class NeighbourScorerConfig:
    """The settings of `NeighbourScorer`, such that LensKit can write them to a file and read them again."""

    mechanism: Any
    """Who becomes a neighbour: `KNN(k=20)` and the like, or its settings, {"mechanism": "KNN", "k": 20}."""
    axis: Axis = "user"
    """User-based, or item-based."""
    similarity: str = "cosine"
    """`cosine`, `cosine_corated` or `pearson`."""
    over: Over = "raters"
    """Divide by the similarities of the neighbours who rated the item, or of all of them."""
    fallback: Fallback | None = None
    """What to score where no neighbour rated the item: nothing, or a mean."""

    def __post_init__(self) -> None:
        given = self.mechanism
        settings = given if isinstance(given, dict) else settings_of(given)
        self.mechanism = settings_of(mechanism_of(settings))

    def recommender(self, rng: Any) -> NeighbourCF:
        """Return the recommender with these settings."""
        return NeighbourCF(
            mechanism_of(self.mechanism),
            axis=self.axis,
            similarity=self.similarity,
            over=self.over,
            fallback=self.fallback,
            rng=rng,
        )


class NeighbourScorer(_Component, _Trainable):  # type: ignore[misc]  # of a library that may be missing
    """`NeighbourCF` as a LensKit scorer: `topn_pipeline(NeighbourScorer(mechanism=gf.KNN(k=20)))`.

    The seed is LensKit's (`TrainingOptions.rng`). People of the training data get the neighbours drawn in
    training; somebody else is scored by her history, if it has ratings. Where there is nothing to say the score
    is NaN.
    """

    config: NeighbourScorerConfig

    def train(self, data: Any, options: Any = None) -> None:
        """Learn from a LensKit data set with ratings."""
        if hasattr(self, "recommender_") and options is not None and not options.retrain:
            return
        rng = None if options is None or options.rng is None else options.random_generator()
        self.ratings_ = read_dataset(data)
        self.recommender_ = self.config.recommender(rng).fit(self.ratings_)

    def __call__(self, query: Any, items: Any) -> Any:
        """Return the items with scores."""
        if not hasattr(self, "recommender_"):
            raise NotFittedError("the scorer must be trained before it is asked")
        data = library("lenskit.data")
        scores = self._scores(data.RecQuery.create(query), items.ids())
        return data.ItemList(items, scores=scores)

    def _scores(self, query: Any, items: npt.NDArray[Any]) -> Floats:
        """Return what the person of the query would rate the items; a stranger is known by her history alone."""
        inside = among(np.array([query.user_id], dtype=object), self.ratings_.users)[0]
        if inside:
            users = np.array([query.user_id] * len(items), dtype=self.ratings_.users.dtype)
            return predict_known(self.recommender_, self.ratings_, users, items)
        profile = self._profile(query.history_items)
        scores = np.full(len(items), np.nan)
        known = among(items, self.ratings_.items)
        if profile and known.any():
            scores[known] = self.recommender_.answer(profile, items[known].tolist())
        return scores

    def _profile(self, history: Any) -> dict[Any, float]:
        """Return the ratings of a history, of items that the training data has."""
        values = None if history is None else history.field("rating")
        if values is None:
            return {}
        ids = history.ids()
        known = among(ids, self.ratings_.items)
        return dict(zip(ids[known].tolist(), values[known].tolist(), strict=True))


def as_recommender(pipeline: Any) -> BlackBox:
    """Return a LensKit pipeline that predicts ratings as a recommender that can be attacked.

    A clone of it is trained in each world, with the target's seed. Each user's history is looked up by the pipeline,
    so it must have been built by `topn_pipeline(..., predicts_ratings=True)`, `predict_pipeline` or the like.
    """
    lenskit = library("lenskit")
    training = library("lenskit.training")

    def train(ratings: Ratings, rng: int | None = None) -> Any:
        model = pipeline.clone()
        model.train(_dataset(ratings), training.TrainingOptions(rng=rng))
        return lambda users, items: _predictions(lenskit, model, users, items)

    return BlackBox(train)


def read_dataset(dataset: Any, *, scale: Scale | tuple[float, ...] | None = None) -> Ratings:
    """Return the ratings of a LensKit `Dataset`, with the caller's own ids.

    Parameters
    ----------
    dataset
        With a `rating` for each of its default interactions.
    scale
        What ratings can be given; None observes it.
    """
    table = dataset.interactions().arrow(attributes=["rating"], ids=True)
    return Ratings.from_frame(table, user="user_id", item="item_id", rating="rating", scale=scale)


def _dataset(ratings: Ratings) -> Any:
    users, items, values = flatten(ratings)
    columns = {"user_id": users, "item_id": items, "rating": values}
    frame = library("pandas").DataFrame(columns)
    return library("lenskit.data").from_interactions_df(frame)


def _predictions(lenskit: Any, model: Any, users: Ids, items: Ids) -> Floats:
    """Return predictions pair by pair, asking the pipeline once for each user."""
    askers, wanted = np.asarray(users), np.asarray(items)
    predictions = np.full(len(askers), np.nan)
    for user in dict.fromkeys(askers.tolist()):
        places = np.flatnonzero(askers == user)
        scored = lenskit.predict(model, user, wanted[places].tolist())
        predictions[places] = scored.scores()
    return predictions
