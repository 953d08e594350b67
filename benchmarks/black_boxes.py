"""Black boxes of our own: small recommenders that differ in one thing that hinders the usual attack.

Each has `train(ratings)`, which returns what is asked: `predict(users, items)` or `recommend(user, n)`. Nothing is
computed before somebody asks, so a fit takes a few milliseconds and an attacker can afford hundreds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

import goodfence as gf
from goodfence.arrays import Floats, Integers, row_numbers

_NEAR = 1e-12


class Matrix:
    """The user-item matrix, with the sums that similarities are made of."""

    def __init__(self, ratings: gf.Ratings) -> None:
        self.ratings = ratings
        self.values = sparse.csr_array(ratings.csr, dtype=np.float64)
        parts = self.values.indices, self.values.indptr
        self.held = sparse.csr_array((np.ones(self.values.nnz), *parts), shape=self.values.shape)
        self.squares = sparse.csr_array((self.values.data**2, *parts), shape=self.values.shape)
        self.lengths = np.diff(self.values.indptr)
        self.counts = np.bincount(self.values.indices, minlength=self.n_items)
        self.norms = np.sqrt(np.bincount(self.owners, self.squares.data, minlength=self.values.shape[0]))
        self.user_means = self.values.sum(axis=1) / np.maximum(self.lengths, 1)
        sums = np.bincount(self.values.indices, self.values.data, minlength=self.n_items)
        self.overall = float(self.values.data.mean())
        self.item_means = np.where(self.counts > 0, sums / np.maximum(self.counts, 1), self.overall)

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return int(self.values.shape[1])

    @property
    def owners(self) -> Integers:
        """(cells,): the row of each stored cell."""
        return row_numbers(self.values.indptr)

    def row(self, row: int) -> tuple[Integers, Floats]:
        """Return the columns and ratings of one user."""
        cells = slice(self.values.indptr[row], self.values.indptr[row + 1])
        return self.values.indices[cells], self.values.data[cells]

    def laid_out(self, row: int) -> tuple[Floats, Floats]:
        """Return the ratings of one user over all items, and which items are rated."""
        columns, values = self.row(row)
        dense, held = np.zeros((2, self.n_items))
        dense[columns], held[columns] = values, 1.0
        return dense, held

    def common(self, row: int) -> Floats:
        """Return how many items each user has in common with one."""
        return np.asarray(self.held @ self.laid_out(row)[1])


def summed(places: Integers, values: Floats, n: int) -> Floats:
    """Return the sum of the values at each of n places."""
    return np.bincount(places, values, minlength=n).astype(np.float64)


def cosine(matrix: Matrix, row: int) -> Floats:
    """Return the cosine of one user's ratings with everybody's."""
    products = matrix.values @ matrix.laid_out(row)[0]
    return np.asarray(products / np.maximum(matrix.norms * matrix.norms[row], _NEAR))


def jaccard(matrix: Matrix, row: int) -> Floats:
    """Return the share of the items of two users that both have."""
    both = matrix.common(row)
    return np.asarray(both / np.maximum(matrix.lengths + matrix.lengths[row] - both, 1))


def _common_sums(matrix: Matrix, row: int) -> tuple[Floats, Floats, Floats]:
    """Return the sums of squares and of products over common items, each less the product of the means."""
    dense, held = matrix.laid_out(row)
    n = np.maximum(matrix.held @ held, 1)
    theirs, own = matrix.values @ held, matrix.held @ dense
    return (
        np.asarray(matrix.squares @ held - theirs**2 / n),
        np.asarray(matrix.held @ dense**2 - own**2 / n),
        np.asarray(matrix.values @ dense - theirs * own / n),
    )


def pearson(matrix: Matrix, row: int) -> Floats:
    """Return the correlation over common items; 0 where there are fewer than two."""
    theirs, own, both = _common_sums(matrix, row)
    spread = np.sqrt(np.maximum(theirs, 0) * np.maximum(own, 0))
    found = np.where(spread > 1e-6, both / np.maximum(spread, 1e-6), 0.0)
    return np.asarray(np.round(found, 9))


def msd(matrix: Matrix, row: int) -> Floats:
    """Return 1 / (mean squared difference + 1) over common items, as Surprise does by default."""
    dense, held = matrix.laid_out(row)
    n = np.asarray(matrix.held @ held)
    differences = matrix.squares @ held - 2 * (matrix.values @ dense) + matrix.held @ dense**2
    return np.where(n > 0, 1 / (differences / np.maximum(n, 1) + 1), 0.0)


def centred_cosine(matrix: Matrix, row: int) -> Floats:
    """Return the cosine of one user's ratings with everybody's, each less the mean of whose it is."""
    means, own = matrix.user_means, matrix.laid_out(row)
    centred = own[0] - means[row] * own[1]
    products = matrix.values @ centred - means * (matrix.held @ centred)
    lengths = np.sqrt(np.maximum(matrix.norms**2 - matrix.lengths * means**2, 0.0))
    spread = lengths * lengths[row]
    return np.where(spread > 1e-9, products / np.maximum(spread, 1e-9), 0.0).round(12)


def significant(matrix: Matrix, row: int) -> Floats:
    """Return the cosine, less where users have fewer than ten items in common."""
    return np.asarray(cosine(matrix, row) * np.minimum(matrix.common(row), 10) / 10)


def supported(matrix: Matrix, row: int) -> Floats:
    """Return the cosine of users with three items in common, 0 for the others."""
    return np.where(matrix.common(row) >= 3, cosine(matrix, row), 0.0)


def pearson_significant(matrix: Matrix, row: int) -> Floats:
    """Return the correlation, less where users have fewer than fifty items in common."""
    return np.asarray(pearson(matrix, row) * np.minimum(matrix.common(row), 50) / 50)


_ALL = (cosine, centred_cosine, jaccard, pearson, msd, significant, supported, pearson_significant)
SIMILARITIES = {one.__name__: one for one in _ALL}


class Predictor:
    """What a box has learnt; asked for pairs of users and items, it answers each user once."""

    def __init__(self, box: RatingBox, ratings: gf.Ratings) -> None:
        self.box, self.matrix = box, Matrix(ratings)
        self._answers: dict[int, Floats] = {}

    def predict(self, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> Floats:
        """Return one prediction for each pair of user and item."""
        ratings = self.matrix.ratings
        rows, columns = ratings.rows(users), ratings.columns(items)
        for row in np.unique(rows).tolist():
            if row not in self._answers:
                self._answers[row] = self.box.answers(self.matrix, row)
        found = np.empty(len(rows))
        for row in np.unique(rows).tolist():
            found[rows == row] = self._answers[row][columns[rows == row]]
        return found


class RatingBox:
    """A recommender of ratings: `answers` tells one user what is predicted for every item, NaN for nothing."""

    def train(self, ratings: gf.Ratings) -> Any:
        """Return what is asked, after learning from these ratings."""
        return Predictor(self, ratings)

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        raise NotImplementedError


class ItemMean(RatingBox):
    """The mean of the item, for everybody: a control."""

    def answers(self, matrix: Matrix, row: int) -> Floats:  # noqa: ARG002 - everybody
        """Return what one user is predicted for every item."""
        return matrix.item_means


@dataclass(frozen=True, kw_only=True)
class UserKNN(RatingBox):
    """The mean rating of the k most similar users, weighted by similarity."""

    k: int = 20
    similarity: str = "cosine"
    centred: bool = False
    """Whether the neighbours' ratings are counted from their means, and added to the asker's."""

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        return self.mean(matrix, row, *self.neighbours(matrix, row))

    def similarities(self, matrix: Matrix, row: int) -> Floats:
        """Return how similar everybody is to one user."""
        found = np.array(SIMILARITIES[self.similarity](matrix, row))
        found[row] = 0.0
        return found

    def neighbours(self, matrix: Matrix, row: int) -> tuple[Integers, Floats]:
        """Return the rows of the neighbours, the most similar first, and their similarities."""
        similarities = self.similarities(matrix, row)
        near = np.argsort(-similarities, kind="stable")[: self.k]
        near = near[similarities[near] > 0]
        return near, similarities[near]

    def sums(self, matrix: Matrix, near: Integers, weights: Floats) -> tuple[Floats, Floats]:
        """Return the weighted sum of the neighbours' ratings of each item, and the weights of its raters."""
        rows = matrix.values[near]
        every = np.repeat(weights, np.diff(rows.indptr))
        given = rows.data
        if self.centred:
            given = given - np.repeat(matrix.user_means[near], np.diff(rows.indptr))
        return summed(rows.indices, every * given, matrix.n_items), summed(rows.indices, every, matrix.n_items)

    def mean(self, matrix: Matrix, row: int, near: Integers, weights: Floats) -> Floats:
        """Return the weighted mean of the neighbours' ratings."""
        total, weight = self.sums(matrix, near, weights)
        own = matrix.user_means[row] if self.centred else 0.0
        return np.where(weight > 0, own + total / np.where(weight > 0, weight, 1.0), np.nan)


@dataclass(frozen=True, kw_only=True)
class ColdStart(UserKNN):
    """The item mean for users with too few ratings."""

    least: int = 20

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        if matrix.lengths[row] < self.least:
            return matrix.item_means
        return super().answers(matrix, row)


@dataclass(frozen=True, kw_only=True)
class Mixed(UserKNN):
    """The kNN answer and the item mean, mixed by one constant."""

    share: float = 0.7

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        told = super().answers(matrix, row)
        mixed = self.share * told + (1 - self.share) * matrix.item_means
        return np.where(np.isnan(told), matrix.item_means, mixed)


@dataclass(frozen=True, kw_only=True)
class Shrunk(UserKNN):
    """The kNN answer, nearer to the item mean the less similar the neighbours are."""

    constant: float = 1.0

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        total, weight = self.sums(matrix, *self.neighbours(matrix, row))
        return np.asarray((total + self.constant * matrix.item_means) / (weight + self.constant))


@dataclass(frozen=True, kw_only=True)
class Supported(UserKNN):
    """No answer where fewer neighbours rated the item."""

    least: int = 2

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        near = matrix.held[self.neighbours(matrix, row)[0]]
        return np.where(near.sum(axis=0) >= self.least, super().answers(matrix, row), np.nan)


@dataclass(frozen=True, kw_only=True)
class Everything(Shrunk):
    """A cold start, shrinkage, and answers rounded to integers."""

    least: int = 15

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        told = matrix.item_means if matrix.lengths[row] < self.least else super().answers(matrix, row)
        return np.asarray(np.round(told))


@dataclass(frozen=True, kw_only=True)
class Finished(UserKNN):
    """The kNN answer, rounded to a multiple of `step` or clipped to some part of the scale."""

    step: float = 0.0
    lowest: float = -np.inf
    highest: float = np.inf

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        told = super().answers(matrix, row)
        if self.step:
            told = np.floor(told / self.step + 0.5) * self.step
        return np.clip(told, self.lowest, self.highest)


@dataclass(frozen=True, kw_only=True)
class Moved(UserKNN):
    """The kNN answer times a factor, an offset, and a part of the asker's own mean."""

    factor: float = 0.5
    offset: float = 0.0
    own: float = 0.0

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        told = self.factor * super().answers(matrix, row)
        return np.asarray(told + self.offset + self.own * matrix.user_means[row])


@dataclass(frozen=True, kw_only=True)
class Noisy(UserKNN):
    """The kNN answer and Gaussian noise, always the same for one user and item."""

    deviation: float = 1.0

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        generator = np.random.default_rng([7, int(matrix.ratings.users[row])])
        noise = generator.normal(scale=self.deviation, size=matrix.n_items)
        return super().answers(matrix, row) + noise


@dataclass(frozen=True, kw_only=True)
class OnceEach(UserKNN):
    """Of identical profiles only the first is a neighbour: a filter of bots."""

    def similarities(self, matrix: Matrix, row: int) -> Floats:
        """Return how similar everybody is to one user."""
        found = super().similarities(matrix, row)
        seen = {self._profile(matrix, row)}
        for other in np.flatnonzero(found > 0).tolist():
            profile = self._profile(matrix, other)
            if profile in seen:
                found[other] = 0.0
            seen.add(profile)
        return found

    def _profile(self, matrix: Matrix, row: int) -> bytes:
        columns, values = matrix.row(row)
        return columns.tobytes() + values.tobytes()


@dataclass(frozen=True, kw_only=True)
class Dissimilar(UserKNN):
    """No neighbour is nearly identical to the asker, or to a nearer neighbour."""

    most: float = 0.95

    def neighbours(self, matrix: Matrix, row: int) -> tuple[Integers, Floats]:
        """Return the neighbours of one user and their similarities."""
        similarities = self.similarities(matrix, row)
        order = np.argsort(-similarities, kind="stable")[: 40 * self.k]
        order = order[(similarities[order] > 0) & (similarities[order] <= self.most)]
        rows = matrix.values[order]
        alike = (rows @ rows.T).toarray() / np.outer(matrix.norms[order], matrix.norms[order]) > self.most
        kept: list[int] = []
        for place in range(len(order)):
            if len(kept) < self.k and not alike[place, kept].any():
                kept.append(place)
        near = order[kept]
        return near, similarities[near]


@dataclass(frozen=True, kw_only=True)
class AmongRaters(UserKNN):
    """For each item the k most similar of its raters, as in Surprise; the overall mean where there is none."""

    k: int = 40
    similarity: str = "msd"

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        similarities, owners = self.similarities(matrix, row), matrix.owners
        cells = np.flatnonzero(similarities[owners] > 0)
        columns, weights = matrix.values.indices[cells], similarities[owners[cells]]
        order = np.lexsort((-weights, columns))
        cells, columns, weights = cells[order], columns[order], weights[order]
        starts = np.searchsorted(columns, columns)
        chosen = np.arange(len(columns)) - starts < self.k
        cells, columns, weights = cells[chosen], columns[chosen], weights[chosen]
        given = matrix.values.data[cells] - (matrix.user_means[owners[cells]] if self.centred else 0.0)
        total, weight = (summed(columns, one, matrix.n_items) for one in (weights * given, weights))
        found = total / np.where(weight > 0, weight, 1.0)
        own = matrix.user_means[row]
        if self.centred:
            return np.asarray(own + found)
        return np.where(weight > 0, found, matrix.overall)


@dataclass(frozen=True, kw_only=True)
class ItemKNN(RatingBox):
    """The mean of the user's own ratings of the k most similar items, weighted by the items' cosine."""

    k: int = 20

    def answers(self, matrix: Matrix, row: int) -> Floats:
        """Return what one user is predicted for every item."""
        own, given = matrix.row(row)
        columns = matrix.values.tocsc()
        norms = np.sqrt(columns.power(2).sum(axis=0))
        products = (columns.T @ columns[:, own]).toarray()
        similarities = products / np.maximum(np.outer(norms, norms[own]), _NEAR)
        similarities[own, np.arange(len(own))] = 0.0
        if len(own) > self.k:
            least = -np.partition(-similarities, self.k - 1, axis=1)[:, self.k - 1 : self.k]
            similarities = np.where(similarities >= least, similarities, 0.0)
        weight = similarities.sum(axis=1)
        return np.where(weight > 0, similarities @ given / np.where(weight > 0, weight, 1.0), np.nan)


@dataclass(frozen=True, kw_only=True)
class Factors(RatingBox):
    """Matrix factorisation by alternating least squares of what is left of the item and user means."""

    factors: int = 10
    sweeps: int = 5
    penalty: float = 5.0

    def train(self, ratings: gf.Ratings) -> Any:
        """Return what is asked, after learning from these ratings."""
        return FactorPredictor(self, ratings)


class FactorPredictor(Predictor):
    """Factors are learnt when somebody asks for the first time."""

    box: Any

    def __init__(self, box: Factors, ratings: gf.Ratings) -> None:
        super().__init__(box, ratings)
        self.box = box
        self._learnt: tuple[Floats, Floats, Floats] | None = None

    def predict(self, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> Floats:
        """Return one prediction for each pair of user and item."""
        ratings = self.matrix.ratings
        if self._learnt is None:
            self._learnt = self._learn()
        biases, left, right = self._learnt
        rows, columns = ratings.rows(users), ratings.columns(items)
        inner = (left[rows] * right[columns]).sum(axis=1)
        return np.asarray(self.matrix.item_means[columns] + biases[rows] + inner)

    def _learn(self) -> tuple[Floats, Floats, Floats]:
        matrix, owners = self.matrix, self.matrix.owners
        rest = matrix.values.data - matrix.item_means[matrix.values.indices]
        biases = np.bincount(owners, rest, minlength=len(matrix.lengths)) / (matrix.lengths + 5.0)
        parts = rest - biases[owners], matrix.values.indices, matrix.values.indptr
        rows = sparse.csr_array(parts, shape=matrix.values.shape)
        columns = rows.T.tocsr()
        generator = np.random.default_rng(7)
        right = generator.normal(scale=0.1, size=(matrix.n_items, self.box.factors))
        for _ in range(self.box.sweeps):
            left = least_squares(rows, right, self.box.penalty)
            right = least_squares(columns, left, self.box.penalty)
        return biases, left, right


def least_squares(rows: sparse.csr_array, factors: Floats, penalty: float) -> Floats:
    """Return the factors of each row that fit its cells best, by ridge regression on the columns' factors."""
    n, f = rows.shape[0], factors.shape[1]
    held = sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    outer = (factors[:, :, np.newaxis] * factors[:, np.newaxis, :]).reshape(len(factors), -1)
    systems = np.asarray(held @ outer).reshape(n, f, f) + penalty * np.eye(f)
    return np.asarray(np.linalg.solve(systems, np.asarray(rows @ factors)[:, :, np.newaxis])[:, :, 0])


@dataclass
class Delayed:
    """A kNN that answers from its previous fit until `seconds` after the latest."""

    seconds: float = 0.02
    box: RatingBox = field(default_factory=UserKNN)
    latest: Any = None

    def train(self, ratings: gf.Ratings) -> Any:
        """Return what is asked, after learning from these ratings."""
        previous, self.latest = self.latest, self.box.train(ratings)
        return _Waiting(previous, self.latest, time.monotonic() + self.seconds)


class _Waiting:
    def __init__(self, previous: Any, latest: Any, ready: float) -> None:
        self.previous, self.latest, self.ready = previous, latest, ready

    def predict(self, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> Floats:
        """Return one prediction for each pair of user and item."""
        if time.monotonic() >= self.ready:
            return np.asarray(self.latest.predict(users, items))
        if self.previous is None:
            return np.full(len(np.asarray(users)), np.nan)
        ratings = self.previous.matrix.ratings
        known = np.isin(users, ratings.users)
        found = np.full(len(known), np.nan)
        if known.any():
            found[known] = self.previous.predict(np.asarray(users)[known], np.asarray(items)[known])
        return found


@dataclass
class Lagging:
    """A kNN that answers from the fit before the last `fits`: those who are new know nothing yet."""

    fits: int = 2
    box: RatingBox = field(default_factory=UserKNN)
    history: list[Any] = field(default_factory=list)

    def train(self, ratings: gf.Ratings) -> Any:
        """Return what is asked, after learning from these ratings."""
        self.history = [*self.history, self.box.train(ratings)][-self.fits - 1 :]
        return _Waiting(self.history[0], None, np.inf)
