"""The model that answers: arrays of one released model, and what is computed from them and one profile."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from goodfence.arrays import AnyIntegers, Flags, Floats, Integers
from goodfence.data.scale import Scale
from goodfence.errors import ModelFileError
from goodfence.kernels.lists import NO_ITEM
from goodfence.kernels.private import rank_profile
from goodfence.models.persistence import load_model
from goodfence.models.private.item_model import NOISE, PrivatePredictor
from goodfence.models.private.top_n import PrivateTopN
from goodfence.models.recommender import FittedRecommender
from goodfence.neighbours.lists import Ranked, best_of
from goodfence.privacy.fixed_point import centred, uncentred
from goodfence.privacy.guarantee import Guarantee
from goodfence.service.records import NO_PROFILE, Records, StoredProfile

_SPREAD = math.sqrt(NOISE)


class Answering(Protocol):
    """What a model can be asked, by numbers of its items."""

    scale: Scale | None
    """Of ratings, which can be given; None for events."""

    def own(self, columns: Integers, values: Floats) -> Any:
        """Return a profile as this model takes it."""
        ...

    def rank(self, own: Any, allowed: Flags, n: int) -> Ranked:
        """Return the best allowed items that are not in the profile."""
        ...

    def predict(self, own: Any, wanted: AnyIntegers) -> Floats:
        """Return a prediction for each wanted item."""
        ...

    def related(self, column: int) -> Floats | None:
        """Return how much each item goes with one, None if that was not released."""
        ...


class RatingAnswers:
    """Answers of a private model of ratings: a function of what was released and of the profile alone."""

    def __init__(self, model: Any) -> None:
        self.scale: Scale | None = model.ratings_.scale
        self._model, self._similarities = model.model_, model._similarities
        self._known, counts = self._model.known, self._model.counts
        counts = np.ones(len(self._known.bias)) if counts is None else counts
        self._popularity = counts, np.argsort(-counts, kind="stable")

    def own(self, columns: Integers, values: Floats) -> tuple[Integers, Floats]:
        """Return columns, and values as the model measures them."""
        return columns, centred(values, self._scale)

    def rank(self, own: tuple[Integers, Floats], allowed: Flags, n: int) -> Ranked:
        """Return the best allowed items that are not in the profile."""
        columns, found = np.empty(n, dtype=np.int32), np.empty(n)
        rank_profile(own, self._known, self._popularity, _SPREAD, allowed, columns, found)
        return Ranked(columns, uncentred(found, self._scale))

    def predict(self, own: tuple[Integers, Floats], wanted: AnyIntegers) -> Floats:
        """Return a prediction for each wanted item."""
        return uncentred(self._model.predict_user(*own, wanted), self._scale)

    def related(self, column: int) -> Floats | None:
        """Return how similar each item is to one, by what was released."""
        return cast("Floats | None", self._similarities(column))

    @property
    def _scale(self) -> Scale:
        assert self.scale is not None  # noqa: S101 - ratings have one
        return self.scale


class ListAnswers:
    """Answers of a private model of events."""

    scale: Scale | None = None

    def __init__(self, model: PrivateTopN) -> None:
        self._model, self._similarities = model.model_, model._similarities

    def own(self, columns: Integers, values: Floats) -> sparse.csr_array:  # noqa: ARG002 - events
        """Return the profile as a matrix of one row."""
        cells = (np.ones(len(columns)), columns, np.array([0, len(columns)], dtype=np.int32))
        return sparse.csr_array(cells, shape=(1, len(self._model.popularity)))

    def rank(self, own: sparse.csr_array, allowed: Flags, n: int) -> Ranked:
        """Return the best allowed items that are not in the profile."""
        found = self._model.rank(own, allowed, n)
        return Ranked(found.columns[0], found.scores[0])

    def predict(self, own: sparse.csr_array, wanted: AnyIntegers) -> Floats:
        """Return the score of each wanted item."""
        return np.asarray(self._model.scores(own)[0][wanted], dtype=np.float64)

    def related(self, column: int) -> Floats | None:
        """Return how similar each item is to one, by what was released."""
        return self._similarities(column)


class UnprovedAnswers:
    """Answers of any other model, served with --allow-unproved: it knows the users it was trained on."""

    def __init__(self, model: FittedRecommender) -> None:
        self._model, ratings = model, model.ratings_
        self.scale: Scale | None = ratings.scale if ratings.feedback == "explicit" else None
        self.users = {user: row for row, user in enumerate(ratings.users.tolist())}
        self._items = ratings.items

    def own(self, columns: Integers, values: Floats) -> dict[Any, float]:
        """Return values by item."""
        return dict(zip(self._items[columns].tolist(), values.tolist(), strict=True))

    def rank(self, own: dict[Any, float], allowed: Flags, n: int) -> Ranked:
        """Return the list of an out-of-sample user."""
        return self._ranked(self._model.recommend(own, n, allowed=self._items[allowed].tolist()))

    def predict(self, own: dict[Any, float], wanted: AnyIntegers) -> Floats:
        """Return predictions for an out-of-sample user."""
        return self._model.predict(own, self._items[wanted])

    def rank_user(self, user: str, allowed: Flags, n: int) -> Ranked:
        """Return the list of a user of the training data."""
        return self._ranked(self._model.recommend(user, n, allowed=self._items[allowed].tolist()))

    def predict_user(self, user: str, wanted: AnyIntegers) -> Floats:
        """Return predictions for a user of the training data."""
        rows = np.full(len(wanted), self.users[user])
        return self._model.predict_cells(rows, np.asarray(wanted, dtype=np.int64))

    def related(self, column: int) -> None:
        """Return nothing: the similarities of such a model are those of users' own data."""

    def _ranked(self, found: Any) -> Ranked:
        columns = self._model.ratings_.columns(found.items).astype(np.int32)
        return Ranked(columns, found.scores)


def answering(model: FittedRecommender) -> Answering:
    """Return how a model is asked."""
    if isinstance(model, PrivateTopN):
        return ListAnswers(model)
    if isinstance(model, PrivatePredictor):
        return RatingAnswers(model)
    return UnprovedAnswers(model)


@dataclass(eq=False, kw_only=True)
class ServedModel:
    """The active model: swapped as a whole, so that a request in flight finishes on the one it began with."""

    id: str
    method: str
    guarantee: Guarantee
    sha256: str
    answers: Answering
    items: list[str]
    """The ids of its items, by column."""
    records: Records
    _version: int = field(default=-1, repr=False)

    @classmethod
    def load(cls, row: tuple[Any, ...], folder: Path, records: Records) -> ServedModel:
        """Return the model of a row (id, method, file, sha256, guarantee), whose file must be what was recorded."""
        from goodfence.service.learning import sha256_of

        name, method, file, sha256, guarantee = row
        if sha256_of(folder / file) != sha256:
            raise ModelFileError("the file of the model is not the one that was recorded; train again")
        model = load_model(folder / file)
        items = [str(item) for item in model.ratings_.items.tolist()]
        told = {"id": name, "method": method, "sha256": sha256, "guarantee": Guarantee(**json.loads(guarantee))}
        made = cls(**told, answers=answering(model), items=items, records=records)
        made.popular(1, made.allowed)  # so that what answers is compiled before the first question
        return made

    @cached_property
    def fragments(self) -> list[bytes]:
        """The beginning of each item's entry in an answer, made once."""
        return [b'{"item":' + json.dumps(item).encode() + b',"score":' for item in self.items]

    @property
    def column_of(self) -> Integers:
        """The column of each row of the catalogue, -1 for items that the model does not know."""
        self._laid_out()
        return self._columns

    @property
    def allowed(self) -> Flags:
        """Which items may be listed: those in the catalogue that are not hidden."""
        self._laid_out()
        return self._allowed

    def allow(self, label: str | None, exclude: list[str]) -> Flags:
        """Return which items may be listed of those with a label, without some."""
        if label is None and not exclude:
            return self.allowed
        found = self.allowed.copy()
        if label is not None:
            with_label = np.zeros(len(found), dtype=np.bool_)
            rows = np.array(sorted(self.records.labelled.get(label, ())), dtype=np.int64)
            columns = self.column_of[rows]
            with_label[columns[columns >= 0]] = True
            found &= with_label
        known = [self.records.item_rows[item] for item in exclude if item in self.records.item_rows]
        columns = self.column_of[np.array(known, dtype=np.int64)]
        found[columns[columns >= 0]] = False
        return found

    def own(self, profile: StoredProfile) -> Any:
        """Return a profile as the model takes it, by its columns, ascending; kept for as long as the profile is."""
        columns_of = self.column_of
        found = self._own.get(profile)
        if found is None:
            columns = columns_of[profile.items]
            known = columns >= 0
            order = np.argsort(columns[known], kind="stable")
            found = self._own[profile] = self.answers.own(columns[known][order], profile.values[known][order])
        return found

    def rank(self, profile: StoredProfile, uid: str | None, allowed: Flags, n: int) -> Ranked:
        """Return the best items for a profile; an unproved model knows its users by their random ids."""
        found = self.answers
        if isinstance(found, UnprovedAnswers) and uid in found.users:
            ranked = found.rank_user(str(uid), allowed, n)
        else:
            ranked = found.rank(self.own(profile), allowed, n)
        listed = ranked.columns != NO_ITEM
        return Ranked(ranked.columns[listed], ranked.scores[listed])

    def predict(self, profile: StoredProfile, uid: str | None, items: list[str]) -> list[float | None]:
        """Return a prediction for each item, None where there is none."""
        rows = [self.records.item_rows.get(item, 0) for item in items]
        columns = self.column_of[np.array(rows, dtype=np.int64)]
        known, found = columns >= 0, np.full(len(items), np.nan)
        if isinstance(self.answers, UnprovedAnswers) and uid in self.answers.users:
            found[known] = self.answers.predict_user(str(uid), columns[known])
        elif known.any():
            found[known] = self.answers.predict(self.own(profile), columns[known])
        return [None if value != value else value for value in found.tolist()]

    def related(self, item: str, n: int) -> Ranked:
        """Return the items that go with one, by what was released."""
        row = self.records.item_rows.get(item, 0)
        column = int(self.column_of[row])
        if column < 0 or (found := self.answers.related(column)) is None:
            return Ranked(np.empty(0, dtype=np.int32), np.empty(0))
        return best_of(found, np.array([column]), self.allowed, n)

    def popular(self, n: int, allowed: Flags) -> Ranked:
        """Return what the model lists to an empty profile."""
        return self.rank(NO_PROFILE, None, allowed, n)

    def _laid_out(self) -> None:
        if self._version == self.records.items_version:
            return
        rows = self.records.item_rows
        columns = np.full(max(rows.values(), default=0) + 1, -1, dtype=np.int64)
        allowed = np.zeros(len(self.items), dtype=np.bool_)
        for column, item in enumerate(self.items):
            row = rows.get(item)
            if row is not None:
                columns[row] = column
                allowed[column] = row not in self.records.hidden
        self._columns, self._allowed, self._version = columns, allowed, self.records.items_version
        self._own = WeakKeyDictionary[StoredProfile, Any]()
