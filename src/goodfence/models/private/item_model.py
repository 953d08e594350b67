"""What is made of the releases about ratings: with a user's own ratings the items' features give their predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from goodfence.arrays import AnyIntegers, Csr, Flags, Floats
from goodfence.data.ratings import Ratings
from goodfence.errors import ModelFileError
from goodfence.kernels.private import ItemFeatures, predict_rows, solve_user
from goodfence.models.persistence import Arrays
from goodfence.models.private.lasting import LastingRecommender
from goodfence.models.recommender import rated_rows
from goodfence.neighbours.lists import Ranked, rank_in_blocks
from goodfence.parallel import ranges, run
from goodfence.privacy.accounting import FitRecord
from goodfence.privacy.fixed_point import UserProfiles, centred, require_declared, uncentred

NOISE = 0.85
"""The variance of a rating that no feature explains, on the scale 1..5: a public constant."""
USER_BIAS_PENALTY = 2.0
"""The same, divided by the variance of user biases."""
ROBUST = 1.345 * math.sqrt(NOISE)
"""Huber's 1.345 standard deviations of it: errors beyond count by their size. Ratings have a long lower tail, and the
error that is reported is a mean of sizes, not of squares."""
FARTHEST = 10.0
"""No bias or factor of an item is farther from 0: a public constant, far beyond what is found in practice."""
MOST_COUNT = 1e12
"""No item counts more in lists: a public constant, far beyond all users there are."""
MOST_FEATURES = 1024
"""A user's regression has a matrix of this many rows and columns at most: 8 MiB."""
SHORT = 0.03
"""Factors of a squared length near this say little of an item, for similarities: a public constant."""
_CHUNK = 64
_ARRAYS = {"effects": "bias", "features": "features", "weights": "weights", "counts": "counts"}
"""What is saved of an `ItemModel`: the names in the file, and its own."""


@dataclass(frozen=True, slots=True)
class ItemBiases:
    """What was estimated of the items, over ratings on the scale 1..5 measured from its centre."""

    biases: Floats
    variances: Floats
    """How unsure each bias is."""
    counts: Floats
    """How often each item was rated."""

    @property
    def shares(self) -> Floats:
        """Each item's share of all ratings."""
        return self.counts / max(float(self.counts.sum()), 1e-12)

    def mean(self, values: Floats) -> float:
        """Return the mean of the items' values over all ratings."""
        return float(self.counts @ values / max(float(self.counts.sum()), 1e-12))


@dataclass(frozen=True, slots=True)
class ItemModel:
    """All that is known of the items, made from released quantities only: it may be given to anybody."""

    bias: Floats
    """Each item's bias, measured from the centre of the scale 1..5."""
    features: Floats
    """Each item's features: first 1, whose coefficient is the user bias, then the item's factors."""
    weights: Floats
    """How much a rating of the item says about a user: less where the item bias is unsure."""
    counts: Floats | None = None
    """About how often each item was rated, for lists; None where nobody asks for one."""
    cut: float = math.inf
    """Where errors begin to count by their size alone in a user's regression; `ROBUST`, or never."""

    @classmethod
    def of(cls, items: ItemBiases, factors: Floats, counts: Floats | None = None) -> ItemModel:
        """Return the model of items with these biases and factors; `counts` are other ones than theirs, for lists."""
        # All numbers are finite and within public bounds: users' own numbers are computed with them.
        ones = np.ones((len(items.biases), 1))
        features = np.ascontiguousarray(np.concatenate([ones, bounded(factors)], axis=1))
        unsure = np.maximum(np.nan_to_num(items.variances), 0.0)
        weights = NOISE / (NOISE + unsure)
        listed = np.clip(np.nan_to_num(items.counts if counts is None else counts), 0.0, MOST_COUNT)
        return cls(bounded(items.biases), features, weights, np.asarray(listed, dtype=np.float64))

    @property
    def known(self) -> ItemFeatures:
        """The arrays as kernels take them, with the ridge's penalties: of the user bias, and of every factor."""
        penalties = np.full(self.features.shape[1], NOISE)
        penalties[0] = USER_BIAS_PENALTY
        return ItemFeatures(self.bias, self.features, self.weights, penalties, self.cut)

    def predict_user(self, columns: AnyIntegers, values: Floats, wanted: AnyIntegers) -> Floats:
        """Return predictions of the wanted items for a user with these ratings."""
        coefficients = solve_user(columns, values, self.known)
        return np.asarray(self.bias[wanted] + self.features[wanted] @ coefficients)

    def list_scores(self, profiles: Csr, rows: AnyIntegers) -> Floats:
        """Return what ranks each item in the lists of users, (users, items)."""
        # How often an item was rated, times the root of the probability of a rating above the centre of the scale: the
        # geometric mean of how many are expected to rate it, and to rate it and like it.
        n_users, n_items = len(rows), len(self.bias)
        ends, every = np.arange(n_users + 1) * n_items, np.tile(np.arange(n_items), n_users)
        found = np.empty(len(every))
        predict_rows(np.asarray(rows), ends, every, profiles, self.known, found)
        liked = np.sqrt(ndtr(found / math.sqrt(NOISE))).reshape(n_users, n_items)
        return np.asarray(liked if self.counts is None else self.counts * liked)

    def predict_cells(self, profiles: Csr, rows: AnyIntegers, columns: AnyIntegers) -> Floats:
        """Return predictions of columns[j] for the user in rows[j]; each user's regression is solved once."""
        order = np.argsort(rows, kind="stable")
        users, starts = np.unique(rows[order], return_index=True)
        ends = np.append(starts, len(rows))
        sorted_columns = np.asarray(columns)[order]
        known, found = self.known, np.empty(len(rows))

        def work(chunk: tuple[int, int]) -> None:
            first, last = chunk
            asked = users[first:last], ends[first : last + 1], sorted_columns
            predict_rows(*asked, profiles, known, found)

        run(work, ranges(len(users), _CHUNK))
        out = np.empty(len(rows))
        out[order] = found
        return out


def bounded(values: Floats) -> Floats:
    """Return the values cut to plus and minus `FARTHEST`, 0 where they are not numbers."""
    return np.asarray(np.clip(np.nan_to_num(values), -FARTHEST, FARTHEST), dtype=np.float64)


class PrivatePredictor(LastingRecommender):
    """A private model of ratings: what was released is an `ItemModel`, and each user has a regression of their own."""

    model_: ItemModel
    _cut: ClassVar[float] = math.inf
    """The `cut` of the model."""

    def profiles_of(self, ratings: Ratings) -> UserProfiles:
        """Return what each user contributes to releases, of ratings that are laid out."""
        return UserProfiles.of(ratings)

    def restore(self, ratings: Ratings, model: ItemModel, record: FitRecord) -> Self:
        """Take over what another fit released, with the record of that fit."""
        csr = ratings.csr
        self._profiles = Csr(csr.indptr, csr.indices, centred(csr.data, ratings.scale))
        return super().restore(ratings, replace(model, cut=self._cut), record)

    def predict_cells(self, rows: Any, columns: Any) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""
        self._require_fitted()
        found = self.model_.predict_cells(self._profiles, *self.ratings_.cells(rows, columns))
        return uncentred(found, self.ratings_.scale)

    def _fold_in(self, columns: AnyIntegers, values: Floats, wanted: AnyIntegers) -> Floats:
        found = self.model_.predict_user(columns, centred(values, self.ratings_.scale), wanted)
        return uncentred(found, self.ratings_.scale)

    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        starts, own = np.array([0, len(columns)]), centred(values, self.ratings_.scale)
        profile = Csr(starts, np.asarray(columns, dtype=self._profiles.columns.dtype), own)
        scores: Floats = self.model_.list_scores(profile, np.zeros(1, dtype=np.int64))[0]
        return scores

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        of = partial(self.model_.list_scores, self._profiles)
        own = rated_rows(self.ratings_.csr, rows)
        return rank_in_blocks(lambda start, end: of(rows[start:end]), own, allowed, n)

    def _similarities(self, column: int) -> Floats | None:
        """Return the cosines between the items' factors, smaller where these are short."""
        factors = self.model_.features[:, 1:]
        lengths = np.sqrt((factors**2).sum(axis=1) + SHORT)
        return factors @ factors[column] / (lengths * lengths[column]) if factors.shape[1] else None

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: np.asarray(getattr(self.model_, of)) for name, of in _ARRAYS.items()}

    @classmethod
    def _unpacked(cls, arrays: Arrays, ratings: Ratings) -> ItemModel:
        require_declared(ratings.scale)
        bias, features, weights, counts = each = tuple(arrays[name] for name in _ARRAYS)
        n_items = len(ratings.items)
        # Not `>`: NaN fails these tests too. Weights below 0 could make a user's matrix singular.
        if not (
            bias.shape == weights.shape == counts.shape == (n_items,)
            and features.ndim == 2
            and len(features) == n_items
            and 1 <= features.shape[1] <= MOST_FEATURES
            and all(array.dtype == np.float64 for array in each)
            and all((np.abs(array) <= FARTHEST).all() for array in (bias, features))
            and ((weights >= 0) & (weights <= 1)).all()
            and ((counts >= 0) & (counts <= MOST_COUNT)).all()
            and (features[:, 0] == 1).all()
        ):
            raise ModelFileError(f"the model's arrays must be numbers of at most {FARTHEST:g}, one row an item")
        return ItemModel(bias, features, weights, counts)
