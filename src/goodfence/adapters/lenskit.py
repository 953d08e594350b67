"""LensKit: our recommenders as its scorers, its pipelines as recommenders to attack, and its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.libraries import among, base_class, flatten, library, predict_known
from goodfence.arrays import Floats
from goodfence.data.columns import Feedback
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
    """The settings of `NeighbourScorer`, as plain values that LensKit can write to a file and read again.

    All but `mechanism` are as in `NeighbourCF`.
    """

    mechanism: Any
    """Who becomes a neighbour: `KNN(k=20)` and the like, or its settings, {"mechanism": "KNN", "k": 20}."""
    axis: Axis = "user"
    similarity: str = "cosine"
    center: Center | None = None
    among: Among = "all"
    shrinkage: float | None = None
    min_common: int | None = None
    min_neighbours: int = 1
    over: Over = "raters"
    fallback: Fallback | None = None

    def __post_init__(self) -> None:
        given = self.mechanism
        settings = given if isinstance(given, dict) else settings_of(given)
        self.mechanism = settings_of(made_of(settings))

    def recommender(self, rng: Any) -> NeighbourCF:
        """Return the recommender with these settings."""
        settings = dict(vars(self))
        return NeighbourCF(made_of(settings.pop("mechanism")), **settings, rng=rng)


@dataclass
class PrivateScorerConfig:
    """The settings of `PrivateScorer`, as plain values."""

    model: Any
    """`PrivateCF(epsilon=1.0, ...)` and the like, or its settings, {"mechanism": "PrivateCF", "epsilon": 1.0, ...}."""
    scale: tuple[float, ...] | None = None
    """What ratings can be given, (lowest, highest) or (lowest, highest, step); a model of events needs none."""

    def __post_init__(self) -> None:
        if not isinstance(self.model, dict):
            public = getattr(self.model, "catalogue", None)
            listed = {} if public is None else {"catalogue": np.asarray(public).tolist()}
            self.model = {**settings_of(self.model), **listed}
        made_of(self.model)

    def recommender(self, rng: Any) -> Any:
        """Return the model with these settings."""
        return made_of({**self.model, "rng": rng})


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
        recommender = self.config.recommender(rng)
        scale = getattr(self.config, "scale", None)
        ratings = ratings_from_lenskit(data, scale=scale, feedback=recommender.learns_from)
        self.recommender_ = recommender.fit(ratings)

    def __call__(self, query: Any, items: Any) -> Any:
        """Return the items with scores."""
        if not hasattr(self, "recommender_"):
            raise NotFittedError("the scorer must be trained before it is asked")
        data = library("lenskit.data")
        return data.ItemList(items, scores=self._scores(data.RecQuery.create(query), items.ids()))

    def _scores(self, query: Any, items: npt.NDArray[Any]) -> Floats:
        """Return the scores for a user of the training data, or else by the history alone."""
        trained = self.recommender_.ratings_
        if among(np.array([query.user_id], dtype=object), trained.users)[0]:
            users = np.array([query.user_id] * len(items), dtype=trained.users.dtype)
            return predict_known(self.recommender_, trained, users, items)
        scores = np.full(len(items), np.nan)
        history = query.history_items
        values = None if history is None else history.field("rating")
        if history is not None and trained.feedback == "implicit":
            values = np.ones(len(history))
        known = among(items, trained.items)
        if values is not None and known.any():
            ids = history.ids()
            rated = among(ids, trained.items)
            profile = dict(zip(ids[rated].tolist(), values[rated].tolist(), strict=True))
            if profile:
                scores[known] = self.recommender_.predict(profile, items[known].tolist())
        return scores


class PrivateScorer(NeighbourScorer):
    """A private model as a LensKit scorer: `topn_pipeline(PrivateScorer(model=gf.PrivateTopN(epsilon=1.0, ...)))`.

    Training charges the model's budget each time. With a seed of LensKit (`TrainingOptions.rng`) the model has no
    guarantee; without one the noise is the operating system's.
    """

    config: PrivateScorerConfig  # type: ignore[assignment]


def from_lenskit(pipeline: Any, *, asks: Literal["users", "lists"] = "users") -> BlackBox:
    """Return a LensKit pipeline as a recommender that can be attacked.

    A clone of it is trained in each world, with the target's seed. For "users" the pipeline predicts ratings
    (`predict_pipeline`, `topn_pipeline(..., predicts_ratings=True)`); for "lists" it recommends (`topn_pipeline`).
    """
    lenskit, data = library("lenskit"), library("lenskit.data")
    training, pandas = library("lenskit.training"), library("pandas")

    def train(ratings: Ratings, rng: int | None = None) -> Any:
        users, items, values = flatten(ratings)
        columns = {"user_id": users, "item_id": items}
        frame = pandas.DataFrame(columns if asks == "lists" else {**columns, "rating": values})
        model = pipeline.clone()
        model.train(data.from_interactions_df(frame), training.TrainingOptions(rng=rng))
        if asks == "lists":
            return lambda user, n: lenskit.recommend(model, user, n).ids()

        def predict(users: IdsLike, items: IdsLike) -> Floats:
            askers, wanted = np.asarray(users), np.asarray(items)
            predictions = np.full(len(askers), np.nan)
            for user in dict.fromkeys(askers.tolist()):  # the pipeline is asked once for each user
                places = np.flatnonzero(askers == user)
                predictions[places] = lenskit.predict(model, user, wanted[places].tolist()).scores()
            return predictions

        return predict

    return BlackBox(train, asks=asks)


def ratings_from_lenskit(dataset: Any, *, scale: ScaleLike | None = None, feedback: Feedback = "explicit") -> Ratings:
    """Return the ratings of a LensKit `Dataset`, with the caller's own ids; or its interactions as events.

    Each of its default interactions needs a `rating`. `scale` says what ratings can be given; None observes it.
    """
    if feedback == "implicit":
        events = dataset.interactions().arrow(attributes=[], ids=True).select(["user_id", "item_id"])
        return Ratings.from_frame(events, feedback="implicit")
    table = dataset.interactions().arrow(attributes=["rating"], ids=True)
    return Ratings.from_frame(table, user="user_id", item="item_id", rating="rating", scale=scale)
