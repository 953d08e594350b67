"""What all private models share: one release in `fit`, then each user's own ratings on their side.

The released quantities satisfy differential privacy; a user's predictions are a function of them and of the user's own
ratings. So all others see only what is private in that user's data (joint differential privacy), whatever is asked and
however often.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from os import PathLike
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.data.ids import Ids
from goodfence.data.matrix import move_columns
from goodfence.data.ratings import Ratings, positions_among
from goodfence.errors import ModelFileError, SettingError, require
from goodfence.models.persistence import Arrays, write_model
from goodfence.models.recommender import FittedRecommender, IdsLike, Traits, require_feedback
from goodfence.privacy.accounting import Account, AllFits, FitRecord, Release, total_mu
from goodfence.privacy.guarantee import Guarantee, Unit
from goodfence.privacy.noise import MOST_MU, SIGMA, Noise, Publisher, SeededNoise, SystemNoise
from goodfence.privacy.updates import Lasting
from goodfence.rng import RNG, Streams
from goodfence.settings import Fraction, Positive, checked

FromRatings: TypeAlias = Literal["from ratings"]
FROM_RATINGS: FromRatings = "from ratings"
"""Declares public which items somebody rated."""
NO_ITEMS = (
    "the list of items must be chosen for a private model, because one that is taken from the ratings shows what was "
    "rated; give catalogue=ids from a public source, or load the ratings with items=ids (--items FILE), or declare "
    "what was rated public with items='from ratings' (--items from-ratings)"
)
SEEDED = "The noise came from a seed, so whoever knows the seed can take it away; fit with rng=None."
_FEW = 10_000
"""Below a sensitivity of so many integers rounding leaves a part of a budget unused."""
_REASON = (
    "Statistics {} with integer Gaussian noise, and a user's own {} are used for their own {} only "
    "(joint differential privacy)."
)
_USED = {"explicit": ("ratings", "predictions"), "implicit": ("events", "lists")}
"""What is used, and for what, by what the model learns from."""


class PrivateRecommender(FittedRecommender):
    """A recommender that releases noisy statistics once, and answers from them and the asking user's own data."""

    _saved: ClassVar[tuple[str, ...]] = ("epsilon", "delta", "unit", "items")
    label: ClassVar[str]
    units: ClassVar[tuple[Unit, ...]] = ("rating", "user")
    """What can be protected."""
    model_: Any
    """What was made of the releases."""

    @checked
    def __init__(
        self,
        *,
        epsilon: Positive,
        delta: Fraction = 1e-5,
        unit: Unit = "rating",
        catalogue: IdsLike | None = None,
        items: FromRatings | None = None,
        rng: RNG = None,
        lasting: Lasting | None = None,
    ) -> None:
        require(unit in self.units, "unit", " or ".join(map(repr, self.units)), unit)
        one = catalogue is None or items is None
        require(one, "items", "left out where a catalogue is given", items)
        self.epsilon, self.delta, self.unit = epsilon, delta, unit
        self.catalogue, self.items, self.rng, self.lasting = catalogue, items, rng, lasting

    def __repr__(self) -> str:
        settings = f"epsilon={self.epsilon:g}, delta={self.delta:g}, unit={self.unit!r}"
        return f"{type(self).__name__}({settings})"

    @property
    def traits(self) -> Traits:
        """What attack and audit must know: no user's ratings are used alone, and a seed would void the guarantee."""
        return Traits(
            family=f"{self.label}, per {self.unit}",
            settings=f"ε={self.epsilon:g}",
            title=repr(self),
            n_neighbours=0,
            fresh_answers=False,
            released=True,
        )

    @abstractmethod
    def _learn(self, profiles: Any, mu: float, publisher: Publisher) -> Any:
        """Spend mu on releases through the publisher, and make the model from them (post-processing)."""

    @abstractmethod
    def _distance(self, n_items: int) -> float:
        """Bound the `Account.distance` of any releases that `_learn` may make."""

    def _useful(self, mu: float) -> float:
        """Return what is spent of the mu that is allowed: all of it, or less where more would gain nothing."""
        return mu

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Release what the model needs, once. To fit again is to spend again.

        The scale of the ratings must be declared. It is public, as is the list of items: the `catalogue`, or that of
        the ratings, where it was declared there or is by `items="from ratings"`.
        """
        laid = self.laid_out(ratings)
        return self.fit_profiles(self.profiles_of(laid), laid)

    def fit_profiles(self, profiles: Any, laid: Ratings) -> Self:
        """Release what the model needs of these profiles, wherever they are; `laid` is what it keeps of the ratings."""
        require(profiles.n_items >= 1, "ratings", "of at least one item", profiles.n_items)
        allowed = total_mu(self.epsilon, self.delta, self._distance(profiles.n_items))
        require(allowed <= MOST_MU, "epsilon", f"smaller (its mu at most {MOST_MU})", self.epsilon)
        noise = self._noise()
        publisher = Publisher(noise, unit=self.unit)
        before = getattr(self, "_spent", AllFits(self.unit))
        require(self.unit == before.unit, "unit", f"{before.unit!r}, as before, or the model a new one", self.unit)
        distance = self._distance(profiles.n_items)
        self._spent = before.plus(self._useful(allowed), distance, private=noise.private)  # one that fails has, too
        model = self._learn(profiles, self._useful(allowed), publisher)
        record = FitRecord(
            unit=self.unit,
            epsilon=self.epsilon,
            delta=self.delta,
            account=publisher.account,
            private=self._spent.private,
            catalogue_given=self.catalogue is not None,
            n_fits=self._spent.n_fits,
            mu=self._spent.mu,
            distance=self._spent.distance,
        )
        return self.restore(laid, model, record)

    def _noise(self) -> Noise:
        return SystemNoise() if self.rng is None else SeededNoise(Streams(self.rng))

    def laid_out(self, ratings: Ratings) -> Ratings:
        """Return the ratings as they are fitted: on the `catalogue`, or as they are where that was chosen."""
        require_feedback(ratings, self.learns_from, type(self).__name__)
        if self.catalogue is not None:
            return on_catalogue(ratings, Ids.of(self.catalogue, "items"))
        if self.items is None and not ratings.items_declared:
            raise SettingError(NO_ITEMS)
        return ratings

    @abstractmethod
    def profiles_of(self, ratings: Ratings) -> Any:
        """Return what each user contributes to releases, of ratings that are laid out."""

    def restore(self, ratings: Ratings, model: Any, record: FitRecord) -> Self:
        """Take over what another fit released, with the record of that fit."""
        self.ratings_, self.model_, self.record_ = ratings, model, record
        self._spent = AllFits(record.unit, record.n_fits, record.mu, record.distance, record.private)
        return self

    @property
    def account_(self) -> Account:
        """What the last fit released, and at what privacy cost."""
        return self.record_.account

    def guarantee(self) -> Guarantee:
        """Return what all fits of this model guarantee together, on the same data; before `fit`, what is asked."""
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
            reason=f"{_REASON.format(*self._how_released())} {self._conditions()}",
        )

    def _how_released(self) -> tuple[str, str, str]:
        return ("are released in updates" if self.lasting else "were released once", *_USED[self.learns_from])

    def _conditions(self) -> str:
        """Return on what the guarantee rests, and what it does not cover."""
        record: FitRecord | None = getattr(self, "record_", None)
        given = self.catalogue is not None if record is None else record.catalogue_given
        rated = self.items is not None if record is None else not record.catalogue_given
        used = _USED[self.learns_from][0]
        items = f"the list of items in the {used}" if rated else "the list of items"
        items = "the given catalogue" if given else items
        n_fits = 1 if record is None else record.n_fits
        again = "Each fit spends this again" if n_fits == 1 else f"This is what {n_fits} fits on the same data spend"
        public = f"The scale and {items} are" if used == "ratings" else f"T{items[1:]} is"
        group = " Several events of one user cost mu times the root of their number." if self.unit == "event" else ""
        return f"{public} public.{group} {again}."

    @checked
    def save(self, path: str | PathLike[str], *, ratings: bool = True) -> None:
        """Write the fitted model to the file `path`; a seed is not written, only that there was one.

        With `ratings=False` it holds what was released and what is public (settings, scale, the list of items), and may
        be given to anybody; no titles, since those that are known are of items that somebody rated. The model then
        answers profiles and knows no user.
        """
        self._require_fitted()
        kept = self.ratings_ if ratings else public_part(self.ratings_)
        write_model(path, *self.packed(kept))

    def _stated(self) -> dict[str, Any]:
        record = dataclasses.asdict(self.record_)
        return {
            "arguments": {**self.settings(), **self._recorded(self.record_)},
            "releases": list(record.pop("account")["releases"]),
            "fit": record,
            "seeded": not self.record_.private,
        }

    @classmethod
    @abstractmethod
    def _unpacked(cls, arrays: Arrays, ratings: Ratings) -> Any:
        """Return `model_` of the arrays that `_arrays` returned; what no fit can have written raises."""

    def _revive(self, ratings: Ratings, settings: dict[str, Any], arrays: Arrays) -> None:
        """Take over what else was saved."""

    @classmethod
    def _restored(cls, ratings: Ratings, settings: dict[str, Any], arrays: Arrays) -> Self:
        require_feedback(ratings, cls.learns_from, cls.__name__)
        model = cls(**settings["arguments"])
        releases = [Release(**stated) for stated in settings["releases"]]
        require(all(each.sigma == SIGMA for each in releases), "sigma", f"{SIGMA}", "another")
        record = FitRecord(account=Account(tuple(releases)), **settings["fit"])
        if record.catalogue_given:
            model.catalogue = ratings.items
        model._revive(ratings, settings, arrays)
        released = cls._unpacked(arrays, ratings)
        agree = settings["seeded"] is (not record.private)
        if not agree or not model._agrees(record, settings["arguments"], ratings.shape[1]):
            raise ModelFileError("the model's statements about its fit do not agree; refused")
        return model.restore(ratings, released, record)

    def _agrees(self, record: FitRecord, arguments: dict[str, Any], n_items: int) -> bool:
        """Return whether the record is that of a fit with these arguments: the same terms, releases of their cost."""
        same = all(arguments[name] == value for name, value in self._recorded(record).items())
        mu = self._spends(record, n_items)
        spent, few = record.account.mu, mu * SIGMA < _FEW
        of_unit = all(each.unit == self.unit == record.unit for each in record.account.releases)
        return same and of_unit and (0.9 * mu <= spent or few) and spent <= mu * (1 + 1e-6)

    def _spends(self, record: FitRecord, n_items: int) -> float:
        """Return the mu that a fit with this record spends."""
        return self._useful(total_mu(record.epsilon, record.delta, self._distance(n_items)))

    def _recorded(self, record: FitRecord) -> dict[str, Any]:
        """Return the arguments that the record of a fit holds too; attributes may have been changed since."""
        held: dict[str, Any] = {name: getattr(record, name) for name in ("epsilon", "delta", "unit")}
        held["items"] = None if record.catalogue_given else FROM_RATINGS
        return {name: held[name] for name in self._saved if name in held}


def on_catalogue(ratings: Ratings, catalogue: Ids) -> Ratings:
    """Return the ratings with the catalogue's items as columns, in its order; no other item is used.

    That ratings of other items are left out is not told, because it would tell that somebody gave one. One item that is
    no number makes text of all ids in a file; so ids of different kinds are compared as they are spelled.
    """
    positions = positions_among(Ids.of_sorted(ratings.items, "items"), catalogue)  # all different
    matrix = move_columns(ratings.csr, positions, len(catalogue))
    titles = {
        catalogue.values[at]: ratings.titles[item]
        for item, at in zip(ratings.items.tolist(), positions.tolist(), strict=True)
        if at >= 0 and item in ratings.titles
    }
    how: dict[str, Any] = {"feedback": ratings.feedback, "liked_from": ratings.liked_from}
    return Ratings(matrix, ratings.users, catalogue, ratings.scale, titles, **how)


def public_part(ratings: Ratings) -> Ratings:
    """Return ratings of the same items on the same scale, given by nobody, without titles."""
    # Nothing else: the kind of the users' ids is that of the users, and titles are known of what was rated.
    empty, nobody = sparse.csr_array((0, ratings.shape[1])), np.empty(0, dtype=np.int64)
    how: dict[str, Any] = {"feedback": ratings.feedback, "liked_from": ratings.liked_from}
    return Ratings(empty, nobody, ratings.items, ratings.scale, **how)
