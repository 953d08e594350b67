"""LensKit: our recommenders as its scorers, its pipelines as recommenders to attack, and its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.libraries import among, base_class, flatten, library, predict_known
from goodfence.arrays import Floats
from goodfence.data.ratings import Ratings
from goodfence.data.scale import ScaleLike
from goodfence.errors import NotFittedError
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.recommender import Among, Center, Fallback, IdsLike
from goodfence.neighbours.candidate_lists import Axis
from goodfence.neighbours.predict import Over
from goodfence.registry import made_of, settings_of

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
    """A name that `Similarity` has."""
    center: Center | None = None
    """What the neighbours' ratings are compared with: nothing, a mean, or the biases."""
    among: Among = "all"
    """Choose neighbours once among all, or for each item among those who rated it."""
    shrinkage: float | None = None
    """By how much similarities over few co-rated items are shrunk; None as the similarity says."""
    min_common: int | None = None
    """With fewer co-rated items the similarity is 0; None as the similarity says."""
    min_neighbours: int = 1
    """With fewer neighbours who rated the item there is no score."""
    over: Over = "raters"
    """Divide by the similarities of the neighbours who rated the item, or of all of them."""
    fallback: Fallback | None = None
    """What to score where too few neighbours rated the item: nothing, a mean, or the biases."""

    def __post_init__(self) -> None:
        given = self.mechanism
        settings = given if isinstance(given, dict) else settings_of(given)
        self.mechanism = settings_of(made_of(settings))

    def recommender(self, rng: Any) -> NeighbourCF:
        """Return the recommender with these settings."""
        return NeighbourCF(
            made_of(self.mechanism),
            axis=self.axis,
            similarity=self.similarity,
            center=self.center,
            among=self.among,
            shrinkage=self.shrinkage,
            min_common=self.min_common,
            min_neighbours=self.min_neighbours,
            over=self.over,
            fallback=self.fallback,
            rng=rng,
        )


class NeighbourScorer(_Component, _Trainable):  # type: ignore[misc]  # of a library that may be missing
    """`NeighbourCF` as a LensKit scorer: `topn_pipeline(NeighbourScorer(mechanism=gf.KNN(k=20)))`.

    The seed is LensKit's (`TrainingOptions.rng`). Users of the training data get the neighbours drawn in training; an
    out-of-sample user is scored by their history, if it has ratings. Where there is nothing to say the score is NaN.
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
        """Return the scores of the items for the user of the query; one out of sample is known by history alone."""
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


def read_dataset(dataset: Any, *, scale: ScaleLike | None = None) -> Ratings:
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


def _predictions(lenskit: Any, model: Any, users: IdsLike, items: IdsLike) -> Floats:
    """Return predictions pair by pair, asking the pipeline once for each user."""
    askers, wanted = np.asarray(users), np.asarray(items)
    predictions = np.full(len(askers), np.nan)
    for user in dict.fromkeys(askers.tolist()):
        places = np.flatnonzero(askers == user)
        scored = lenskit.predict(model, user, wanted[places].tolist())
        predictions[places] = scored.scores()
    return predictions
