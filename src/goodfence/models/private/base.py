"""What all private models share: one release in `fit`, then each person's own ratings on her side.

The released quantities satisfy differential privacy; a person's predictions are a function of them and of her own
ratings. So everybody except her sees only what is private in her data (joint differential privacy), whatever is asked
and however often.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from typing import Any, Self

import numpy as np

from goodfence.data.ids import Ids as CheckedIds
from goodfence.data.ratings import Id, Ratings
from goodfence.errors import NotFittedError, ValueProblem, require
from goodfence.models.private.catalogue import on_catalogue
from goodfence.models.private.local_ridge import ItemModel
from goodfence.models.private.people import People, Unit
from goodfence.models.recommender import Floats, Ids, Profile, Recommendations, best
from goodfence.privacy.accounting import Account, total_mu
from goodfence.privacy.fit_record import FitRecord
from goodfence.privacy.fixed_point import Publisher, centred, uncentred
from goodfence.privacy.guarantee import Guarantee
from goodfence.privacy.noise import MOST_MU, Noise, SystemNoise
from goodfence.privacy.seeded_noise import SeededNoise
from goodfence.rng import RNG, Streams

SEEDED = (
    "The noise came from a seed, so whoever knows the seed can take it away; fit with rng=None."
)
_REASON = (
    "Statistics were released once with integer Gaussian noise, and a person's own ratings are used for her own "
    "predictions only (joint differential privacy)."
)


class PrivateRecommender(ABC):
    """A recommender that releases noisy statistics once. Subclasses say which, in `_learn`."""

    def __init__(
        self, *, epsilon: float, delta: float, unit: Unit, catalogue: Ids | None, rng: RNG
    ) -> None:
        require(0 < epsilon < np.inf, "epsilon", "positive and finite", epsilon)
        require(0 < delta < 1, "delta", "between 0 and 1", delta)
        require(unit in ("rating", "user"), "unit", "'rating' or 'user'", unit)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self.unit: Unit = unit
        self.catalogue = catalogue
        self.rng = rng

    def __repr__(self) -> str:
        settings = f"epsilon={self.epsilon:g}, delta={self.delta:g}, unit={self.unit!r}"
        return f"{type(self).__name__}({settings})"

    @abstractmethod
    def _learn(self, people: People, mu: float, publisher: Publisher) -> ItemModel:
        """Spend mu on releases through the publisher, and make the item model from them."""

    @abstractmethod
    def _distance(self, n_items: int) -> float:
        """Bound the `Account.distance` of any releases that `_learn` may make."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as they are saved."""

    def fit(self, ratings: Ratings) -> Self:
        """Release what the model needs, once. To fit again is to spend again.

        The declared scale and the list of items are public inputs: the `catalogue`, or where that is None the items
        of the ratings.
        """
        laid = self.laid_out(ratings)
        people = People.of(laid)
        require(people.n_items >= 1, "ratings", "of at least one item", people.n_items)
        mu = total_mu(self.epsilon, self.delta, self._distance(people.n_items))
        require(mu <= MOST_MU, "epsilon", f"smaller (its mu at most {MOST_MU})", self.epsilon)
        publisher = Publisher(self._noise())
        model = self._learn(people, mu, publisher)
        record = FitRecord(
            unit=self.unit,
            epsilon=self.epsilon,
            delta=self.delta,
            account=publisher.account,
            private=publisher.noise.private,
            catalogue_given=self.catalogue is not None,
            n_fits=1 + (self.record_.n_fits if hasattr(self, "record_") else 0),
        )
        return self.restore(laid, model, record)

    def laid_out(self, ratings: Ratings) -> Ratings:
        """Return the ratings as they are fitted: on the `catalogue` where there is one, else as they are."""
        if self.catalogue is None:
            return ratings
        return on_catalogue(ratings, CheckedIds.of(self.catalogue, "items"))

    def restore(self, ratings: Ratings, model: ItemModel, record: FitRecord) -> Self:
        """Take over what another fit released, on the terms of that fit."""
        self.ratings_ = ratings
        self.model_ = model
        self.record_ = record
        self._values = centred(ratings.csr.data, ratings.scale)
        return self

    @property
    def account_(self) -> Account:
        """What the last fit released, and at what price."""
        return self.record_.account

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Return the predicted rating of users[j] for items[j]."""
        self._require_fitted()
        require(len(users) == len(items), "items", "as many as users", len(items))
        return self.predict_cells(self.ratings_.rows(users), self.ratings_.columns(items))

    def predict_cells(self, rows: Any, columns: Any) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""
        self._require_fitted()
        csr = self.ratings_.csr
        found = self.model_.predict_cells(csr.indptr, csr.indices, self._values, rows, columns)
        return uncentred(found, self.ratings_.scale)

    def recommend(self, user: Id, n: int = 10) -> Recommendations:
        """Return at most n items the user has not rated, best first."""
        self._require_fitted()
        csr = self.ratings_.csr
        row = int(self.ratings_.rows([user])[0])
        part = slice(csr.indptr[row], csr.indptr[row + 1])
        every = np.arange(csr.shape[1])
        scores = self.model_.predict_person(csr.indices[part], self._values[part], every)
        unseen = np.ones(csr.shape[1], dtype=np.bool_)
        unseen[csr.indices[part]] = False
        order = best(self.ratings_.items, scores, unseen, n)  # ranked before clipping makes ties
        return Recommendations(order.items, uncentred(order.scores, self.ratings_.scale))

    def answer(self, profile: Profile, items: Ids) -> Floats:
        """Return predictions for somebody who is not in the data, from her ratings {item: rating}."""
        self._require_fitted()
        wanted = self.ratings_.columns(items)
        columns = self.ratings_.columns(list(profile))
        given = np.fromiter(profile.values(), dtype=np.float64, count=len(profile))
        if not self.ratings_.scale.holds(given).all():
            raise ValueProblem(
                "every rating of the profile must be on the scale; at least one is not"
            )
        values = centred(given, self.ratings_.scale)
        found = self.model_.predict_person(columns, values, wanted)
        return uncentred(found, self.ratings_.scale)

    def guarantee(self) -> Guarantee:
        """Return what the last fit promised (before `fit`: what is asked now).

        It is about that fit alone, and about the ratings as they were given to it.
        """
        record: FitRecord | None = getattr(self, "record_", None)
        if not (self.rng is None if record is None else record.private):
            return Guarantee(status="none", reason=SEEDED)
        asked = self if record is None else record
        return Guarantee(
            status="proved",
            unit=asked.unit,
            adjacency="add/remove",
            epsilon=self.epsilon if record is None else record.stated_epsilon,
            delta=asked.delta,
            reason=f"{_REASON} {self._terms()}",
        )

    def _terms(self) -> str:
        """Return on what the promise rests, and what it does not cover."""
        record: FitRecord | None = getattr(self, "record_", None)
        given = self.catalogue is not None if record is None else record.catalogue_given
        items = "the given catalogue" if given else "the list of items in the ratings"
        n_fits = 1 if record is None else record.n_fits
        which = "" if n_fits == 1 else f", and this was fit {n_fits}"
        return f"The scale and {items} are public. Each fit spends this again{which}."

    def save(self, path: str | PathLike[str], *, ratings: bool = True) -> None:
        """Write the fitted model to the folder `path`.

        Parameters
        ----------
        path
            The folder.
        ratings
            Whether the ratings go with it. Without them nothing but what was released is written, which may be given
            to anybody; the model then answers newcomers (`answer`) and knows no user.
        """
        from goodfence.models.private.saved import save

        self._require_fitted()
        save(self, path, ratings=ratings)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the fitted model that was saved in the folder `path`."""
        from goodfence.models.loading import load_as

        return load_as(cls, path)

    def _noise(self) -> Noise:
        return SystemNoise() if self.rng is None else SeededNoise(Streams(self.rng))

    def _require_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError("the model must be fitted before it is asked; call fit(ratings)")
