"""What the published systems share: answers user by user, from a profile; a saved model; a user's own random stream."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import AnyIntegers, Floats
from goodfence.data.ratings import Ratings
from goodfence.errors import ModelFileError, require
from goodfence.models.method import as_recommender, traits_of
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.persistence import Arrays, refusing
from goodfence.models.private.base import SEEDED
from goodfence.models.recommender import FittedRecommender, Traits, by_user, require_feedback, row_of, unfitted_copy
from goodfence.privacy.guarantee import Guarantee, Unit
from goodfence.registry import find_kind
from goodfence.rng import RNG, Streams
from goodfence.selection.knn import KNN
from goodfence.settings import checked

Items: TypeAlias = AnyIntegers
"""Items by column number."""
_NOT_SAVED = ("recommender", "rng")
MOST_ITEMS = 8_000
"""More items than this, and two arrays of items x items would take more than a gigabyte."""


class NoGuarantee:
    """A published system without a guarantee."""

    reason: ClassVar[str]
    """Why there is none."""

    def guarantee(self) -> Guarantee:
        """Return that there is none, and why."""
        return Guarantee(status="none", reason=self.reason)


class PublishedRecommender(NoGuarantee, FittedRecommender):
    """A dataclass of settings that answers a user from their profile and from what `_learn` made of all ratings."""

    name: ClassVar[str]
    label: ClassVar[str]
    rng: RNG = None

    @property
    def traits(self) -> Traits:
        """What attack and audit must know: it is fitted in each world, and asked there."""
        words = self._words()
        plain = Traits(family=self.label, settings=words, title=repr(self), fresh_answers=False)
        return replace(plain, **self._own_traits)

    _own_traits: ClassVar[Mapping[str, Any]] = {}
    """In which traits it differs from most."""

    def _words(self) -> str:
        """Return the settings that tell it from others of its kind."""
        return ", ".join(f"{name}={value}" for name, value in self.settings().items())

    @abstractmethod
    def _learn(self, streams: Streams) -> None:
        """Make what answers need of `ratings_`; chance only through the streams."""

    @abstractmethod
    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        """Return predictions for somebody with these ratings; `row` is theirs, -1 where they are not in the data."""

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as they are saved."""
        declared = [one.name for one in fields(cast("Any", self)) if one.init]
        return {name: getattr(self, name) for name in declared if name not in _NOT_SAVED}

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Learn from the ratings; every random choice is fixed here."""
        return self._take(ratings, Streams(self.rng).key())

    def _take(self, ratings: Ratings, key: int) -> Self:
        require_feedback(ratings, "explicit", type(self).__name__)
        self.ratings_, self.key_, self.seeded_ = ratings, key, self.rng is not None
        self._learn(Streams(key))
        return self

    @property
    def seeded(self) -> bool:
        """Whether what was fitted (before `fit`: what will be) rests on a seed, so that nothing is guaranteed."""
        return getattr(self, "seeded_", self.rng is not None)

    def _claimed(self, unit: Unit, epsilon: float, delta: float, reason: str) -> Guarantee:
        """Return a guarantee that a paper claims; none where a seed is known."""
        if self.seeded:
            return Guarantee(status="none", reason=SEEDED)
        stated: dict[str, Any] = {"unit": unit, "adjacency": "add/remove", "epsilon": epsilon, "delta": delta}
        return Guarantee(status="claimed", **stated, reason=reason)

    def predict_cells(self, rows: Any, columns: Any) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""
        self._require_fitted()
        rows, columns = self.ratings_.cells(rows, columns)
        found = np.empty(len(rows))
        for user, part in by_user(rows):
            found[part] = self._answer(*row_of(self.ratings_.csr, user), columns[part], user)
        return found

    @property
    def _ranked_by_prediction(self) -> bool:
        return True

    def _fold_in(self, columns: AnyIntegers, values: Floats, wanted: AnyIntegers) -> Floats:
        return self._answer(columns, values, wanted, -1)

    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        return self._unseen_scores(columns, values, -1)

    def _row_list_scores(self, row: int) -> Floats:
        return self._unseen_scores(*row_of(self.ratings_.csr, row), row)

    def _unseen_scores(self, columns: AnyIntegers, values: Floats, row: int) -> Floats:
        """Return the predictions of what is not in the profile; of the rest nothing is asked, as answers may be few."""
        scores = np.full(self.ratings_.shape[1], np.nan)
        unseen = np.isnan(scores)
        unseen[columns] = False
        wanted = np.flatnonzero(unseen)
        scores[wanted] = self._answer(columns, values, wanted, row)
        return scores

    def _stated(self) -> dict[str, Any]:
        return {"arguments": self.settings(), "key": self.key_, "seeded": self.seeded}

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays but for the ratings; seed and guarantee are stated twice."""
        seeded = np.array([self.seeded], dtype=np.uint8)
        return {**self._state(), "seeded": seeded, "guaranteed": self._bounds()}

    def _bounds(self) -> Floats:
        """Return epsilon and delta of the guarantee; -1 where there is none."""
        stated = self.guarantee()
        return np.array([-1.0 if one is None else one for one in (stated.epsilon, stated.delta)])

    def _check_guarantee(self, arrays: Arrays) -> None:
        """Refuse a saved model that states another guarantee than that of its fit."""
        if arrays["guaranteed"].tolist() != self._bounds().tolist():
            raise ModelFileError("the model states another guarantee than its fit had; refused")

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what cannot be learnt again from the ratings and the key, for the saved model."""
        return {}

    def _restore_state(self, arrays: Arrays) -> None:
        """Take over what `_state` returned, before anything is learnt again."""

    @classmethod
    def _restored(cls, ratings: Ratings, settings: dict[str, Any], arrays: Arrays) -> Self:
        key = _checked_key(settings, arrays)
        model = cls(**settings["arguments"])
        model.ratings_ = ratings
        model._restore_state(arrays)
        model._take(ratings, key)
        model.seeded_ = settings["seeded"]
        model._check_guarantee(arrays)
        return model


def _checked_key(settings: dict[str, Any], arrays: Arrays) -> int:
    """Return the key of a saved model's chance, and refuse what `save` cannot have written."""
    key, seeded = settings["key"], settings["seeded"]
    if type(key) is not int or not 0 <= key < 1 << 64:
        raise ModelFileError("the key of the model must be a 64-bit integer")
    if type(seeded) is not bool or arrays["seeded"].tolist() != [int(seeded)]:
        raise ModelFileError("the model's statements about its seed do not agree; refused")
    return key


def indicators(csr: sparse.csr_array) -> sparse.csr_array:
    """Return the same matrix with a one for each rating."""
    return sparse.csr_array((np.ones(csr.nnz), csr.indices, csr.indptr), csr.shape)


def dense_profile(columns: AnyIntegers, values: Floats, n_items: int) -> Floats:
    """Return a profile as a row of all items, 0 where nothing was rated."""
    profile = np.zeros(n_items)
    profile[columns] = values
    return profile


def person(user: Any) -> int:
    """Return the number of a user's own random stream: it follows from their id, not from their row."""
    digest = blake2b(str(user).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def require_few_items(ratings: Ratings, what: str) -> None:
    """Refuse more items than arrays of items x items can hold."""
    n_items, most = ratings.shape[1], f"of at most {MOST_ITEMS:,} items for {what}"
    require(n_items <= MOST_ITEMS, "ratings", most, n_items)


def middle(ratings: Ratings) -> float:
    """Return the middle of the scale."""
    return (ratings.scale.lowest + ratings.scale.highest) / 2


@dataclass(eq=False, kw_only=True, repr=False)
class Wrapper(PublishedRecommender):
    """Another recommender, of which a copy is fitted; `_told` says what becomes of its predictions."""

    wraps: ClassVar[bool] = True
    """As an option, k and the settings of `NeighbourCF` are those of the recommender inside."""

    recommender: Any = field(default=None, kw_only=False)
    rng: RNG = None

    def __post_init__(self) -> None:
        inside = self.recommender
        self.recommender = NeighbourCF(KNN(k=50)) if inside is None else as_recommender(inside)

    def __repr__(self) -> str:
        own = "".join(f", {name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({self.recommender!r}{own})"

    def _traits(self, settings: str, *, fresh_answers: bool | None) -> Traits:
        kept = ("similarity", "n_neighbours", "among", "center")
        inside = traits_of(self.recommender)
        return Traits(
            family=self.label,
            settings=settings,
            title=repr(self),
            fresh_answers=fresh_answers,
            **{name: getattr(inside, name) for name in kept},
        )

    def _learn(self, streams: Streams) -> None:
        self.inner_ = unfitted_copy(self.recommender, streams.key(1)).fit(self.ratings_)

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        items = self.ratings_.items[wanted]
        if row >= 0:
            told = self.inner_.predict(np.repeat(self.ratings_.users[row], len(items)), items)
        else:
            rated = self.ratings_.items[columns].tolist()
            told = self.inner_.predict(dict(zip(rated, values.tolist(), strict=True)), items)
        return self._told(np.asarray(told, dtype=np.float64), columns, values, wanted, row)

    @abstractmethod
    def _told(self, told: Floats, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        """Return what becomes of the predictions for one user; the rest as in `_answer`."""

    def packed(self, ratings: Ratings | None = None) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return the kind, the settings and the arrays of the saved model, the fitted recommender's inside."""
        self._require_fitted()
        kind, settings, arrays = self.inner_.packed(ratings)
        stated = {**self._stated(), "inside": {"kind": kind, "settings": settings}}
        return type(self).__name__, stated, {**arrays, **self._arrays()}

    @classmethod
    def from_saved(cls, settings: dict[str, Any], arrays: Arrays) -> Self:
        """Return the fitted model of a manifest's settings and its arrays."""
        with refusing("the model's settings are not sound; save the model again"):
            inside, key = find_kind(settings["inside"]["kind"]), _checked_key(settings, arrays)
            if inside is None or issubclass(inside, Wrapper):
                raise ModelFileError("the model holds another of a kind that is not known")
            fitted: Any = inside.from_saved(settings["inside"]["settings"], arrays)
            model = cls._made_of(copy.copy(fitted), settings["arguments"])
            model.inner_, model.key_, model.ratings_ = fitted, key, fitted.ratings_
            model.seeded_ = settings["seeded"]
            model._restore_state(arrays)
            model._check_guarantee(arrays)
        return model

    @classmethod
    def _made_of(cls, recommender: Any, arguments: dict[str, Any]) -> Self:
        return cls(recommender, **arguments)
