"""Black boxes that show lists: `recommend(user, n)`, learnt from events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

import goodfence as gf
from benchmarks.black_boxes import Matrix, UserKNN
from goodfence.arrays import Floats, Integers


class Shelf:
    """What a box has learnt; asked for lists, it shows what scores more than 0 and is not the user's."""

    def __init__(self, box: ListBox, events: gf.Ratings) -> None:
        self.box, self.matrix = box, Matrix(events)
        self.learnt: Any = None

    def recommend(self, user: Any, n: int) -> npt.NDArray[Any]:
        """Return the ids of the best n items, best first."""
        if self.learnt is None:
            self.learnt = self.box.learn(self.matrix)
        row = int(self.matrix.ratings.rows([user])[0])
        scores = np.array(self.box.scores(self.matrix, self.learnt, row))
        scores[self.matrix.row(row)[0]] = -np.inf
        order = np.argsort(-scores, kind="stable")
        order = order[scores[order] > 0]
        return np.asarray(self.matrix.ratings.items[self.box.shown(self.matrix, order, n)[:n]])


class ListBox:
    """A recommender of lists."""

    def train(self, events: gf.Ratings) -> Any:
        """Return what is asked, after learning from these events."""
        return Shelf(self, events)

    def learn(self, matrix: Matrix) -> Any:
        """Return what all lists need, computed when the first one is asked for."""

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:
        """Return the score of every item for one user; nothing is listed that has none."""
        raise NotImplementedError

    def shown(self, matrix: Matrix, order: Integers, n: int) -> Integers:  # noqa: ARG002 - for others
        """Return what is shown of the columns in the order of their scores."""
        return order


class Popular(ListBox):
    """What most have, for everybody: a control."""

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:  # noqa: ARG002 - everybody
        """As in `ListBox`."""
        return matrix.counts.astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class UserLists(ListBox):
    """What the k most similar users have."""

    k: int = 20

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:  # noqa: ARG002 - nothing is learnt
        """As in `ListBox`."""
        knn = UserKNN(k=self.k)
        return knn.sums(matrix, *knn.neighbours(matrix, row))[1]


@dataclass(frozen=True, kw_only=True)
class ColdLists(UserLists):
    """What most have, for users with too few items."""

    least: int = 30

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:
        """As in `ListBox`."""
        cold = matrix.lengths[row] < self.least
        return matrix.counts.astype(np.float64) if cold else super().scores(matrix, learnt, row)


@dataclass(frozen=True, kw_only=True)
class Novel(UserLists):
    """Rare items before popular ones, and never more than ten."""

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:
        """As in `ListBox`."""
        return np.asarray(super().scores(matrix, learnt, row) / np.sqrt(np.maximum(matrix.counts, 1)))

    def shown(self, matrix: Matrix, order: Integers, n: int) -> Integers:  # noqa: ARG002 - ten at most
        """As in `ListBox`."""
        return order[:10]


@dataclass(frozen=True, kw_only=True)
class Pool(UserLists):
    """Of these only the most popular items."""

    most: int = 200

    def shown(self, matrix: Matrix, order: Integers, n: int) -> Integers:  # noqa: ARG002 - all of them
        """As in `ListBox`."""
        pool = np.argsort(-matrix.counts, kind="stable")[: self.most]
        return order[np.isin(order, pool)]


@dataclass(frozen=True, kw_only=True)
class Diverse(UserLists):
    """Of these no two that are alike: less similar than `most`."""

    most: float = 0.2

    def shown(self, matrix: Matrix, order: Integers, n: int) -> Integers:
        """As in `ListBox`."""
        similarities = item_cosines(matrix, order[: 20 * n])[:, order[: 20 * n]]
        kept: list[int] = []
        for place, row in enumerate(similarities):
            if not (row[kept] > self.most).any():
                kept.append(place)
        return order[kept]


@dataclass(frozen=True, kw_only=True)
class TopTen(UserLists):
    """Mixed with popularity, and never more than ten."""

    share: float = 0.5

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:
        """As in `ListBox`."""
        scores = super().scores(matrix, learnt, row)
        return np.asarray(scores / max(scores.max(), 1e-9) + self.share * matrix.counts / matrix.counts.max())

    def shown(self, matrix: Matrix, order: Integers, n: int) -> Integers:  # noqa: ARG002 - ten at most
        """As in `ListBox`."""
        return order[:10]


def item_cosines(matrix: Matrix, columns: Integers) -> Floats:
    """Return the cosine of some items with all, (some, items); 0 of each with itself."""
    held = matrix.held.tocsc()
    products = (held[:, columns].T @ held).toarray()
    norms = np.sqrt(np.maximum(matrix.counts, 1))
    found = products / np.outer(norms[columns], norms)
    found[np.arange(len(columns)), columns] = 0.0
    return np.asarray(found)


@dataclass(frozen=True, kw_only=True)
class ItemLists(ListBox):
    """What is similar to the user's items, each with its K most similar ones, as in implicit."""

    k: int | None = 20

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:  # noqa: ARG002 - nothing is learnt
        """As in `ListBox`."""
        similarities = item_cosines(matrix, matrix.row(row)[0])
        if self.k is not None:
            least = -np.partition(-similarities, self.k - 1, axis=1)[:, self.k - 1 : self.k]
            similarities = np.where(similarities >= least, similarities, 0.0)
        return np.asarray(similarities.sum(axis=0))


@dataclass(frozen=True, kw_only=True)
class Because(ItemLists):
    """Because you watched: what is similar to one of the user's items, the first in the catalogue."""

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:  # noqa: ARG002 - nothing is learnt
        """As in `ListBox`."""
        return np.asarray(item_cosines(matrix, matrix.row(row)[0][:1]).sum(axis=0))

    def shown(self, matrix: Matrix, order: Integers, n: int) -> Integers:  # noqa: ARG002 - K at most
        """As in `ListBox`."""
        return order[: self.k]


@dataclass(frozen=True, kw_only=True)
class Ease(ListBox):
    """A linear model of items on items in closed form (Steck, 2019)."""

    penalty: float = 100.0

    def learn(self, matrix: Matrix) -> Floats:
        """As in `ListBox`."""
        gram = (matrix.held.T @ matrix.held).toarray()
        inverse = np.linalg.inv(gram + self.penalty * np.eye(len(gram)))
        weights = -inverse / np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        return np.asarray(weights)

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:
        """As in `ListBox`; all items are listed."""
        scores = learnt[matrix.row(row)[0]].sum(axis=0)
        return np.asarray(scores - scores.min() + 1.0)


@dataclass(frozen=True, kw_only=True)
class ImplicitALS(ListBox):
    """Matrix factorisation of events by alternating least squares (Hu, Koren and Volinsky, 2008)."""

    factors: int = 16
    sweeps: int = 6
    penalty: float = 1.0
    confidence: float = 10.0

    def learn(self, matrix: Matrix) -> tuple[Floats, Floats]:
        """As in `ListBox`."""
        held, generator = matrix.held, np.random.default_rng(7)
        right = generator.normal(scale=0.1, size=(matrix.n_items, self.factors))
        for _ in range(self.sweeps):
            left = self._half(held, right)
            right = self._half(sparse.csr_array(held.T), left)
        return self._half(held, right), right

    def _half(self, held: sparse.csr_array, factors: Floats) -> Floats:
        n, f = held.shape[0], factors.shape[1]
        outer = (factors[:, :, np.newaxis] * factors[:, np.newaxis, :]).reshape(len(factors), -1)
        systems = factors.T @ factors + self.penalty * np.eye(f)
        systems = systems + self.confidence * np.asarray(held @ outer).reshape(n, f, f)
        wanted = (1 + self.confidence) * np.asarray(held @ factors)
        return np.asarray(np.linalg.solve(systems, wanted[:, :, np.newaxis])[:, :, 0])

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:  # noqa: ARG002 - all is learnt
        """As in `ListBox`; all items are listed."""
        scores = learnt[1] @ learnt[0][row]
        return np.asarray(scores - scores.min() + 1.0)


@dataclass(frozen=True, kw_only=True)
class BPR(ListBox):
    """Bayesian personalised ranking (Rendle et al., 2009), by stochastic gradient descent in batches."""

    factors: int = 16
    epochs: int = 15
    rate: float = 0.1
    penalty: float = 0.01
    batch: int = 500

    def learn(self, matrix: Matrix) -> tuple[Floats, Floats, Floats]:
        """As in `ListBox`."""
        generator, owners, n = np.random.default_rng(7), matrix.owners, matrix.n_items
        left = generator.normal(scale=0.1, size=(len(matrix.lengths), self.factors))
        right = generator.normal(scale=0.1, size=(n, self.factors))
        biases = np.zeros(n)
        for _ in range(self.epochs * matrix.values.nnz // self.batch):
            cells = generator.integers(matrix.values.nnz, size=self.batch)
            users, liked = owners[cells], matrix.values.indices[cells]
            others = generator.integers(n, size=self.batch)
            apart = (left[users] * (right[liked] - right[others])).sum(axis=1) + biases[liked] - biases[others]
            push = (self.rate / (1 + np.exp(apart)))[:, np.newaxis]
            step = push * (right[liked] - right[others]) - self.rate * self.penalty * left[users]
            move = push * left[users]
            np.add.at(left, users, step)
            np.add.at(right, liked, move - self.rate * self.penalty * right[liked])
            np.add.at(right, others, -move - self.rate * self.penalty * right[others])
            np.add.at(biases, liked, push[:, 0] - self.rate * self.penalty * biases[liked])
            np.add.at(biases, others, -push[:, 0] - self.rate * self.penalty * biases[others])
        return left, right, biases

    def scores(self, matrix: Matrix, learnt: Any, row: int) -> Floats:  # noqa: ARG002 - all is learnt
        """As in `ListBox`; all items are listed."""
        left, right, biases = learnt
        scores = right @ left[row] + biases
        return np.asarray(scores - scores.min() + 1.0)
