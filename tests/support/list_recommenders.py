"""Events full of ties, and recommenders of lists to attack: the obvious twins of ours, and strangers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

import goodfence as gf
from goodfence.models.recommender import Recommendations
from tests.support import reference


def make_events(seed: int, n_users: int = 24, n_items: int = 18, density: float = 0.5) -> gf.Ratings:
    """Return events with users who are copies of each other: ties everywhere."""
    generator = np.random.default_rng(seed)
    held = generator.random((n_users, n_items)) < density
    held[:, 0] = True
    held[n_users // 2 : n_users // 2 + 6] = held[:6]
    users = [f"user {row}" for row in range(n_users)]
    csr = sparse.csr_array(held.astype(np.float64))
    return gf.Ratings(csr, users, [f"item {column:02}" for column in range(n_items)], feedback="implicit")


def profiles_of(events: gf.Ratings) -> list[dict[int, float]]:
    """Return what each user has, by column."""
    csr = events.csr
    return [
        dict(zip(csr.indices[a:b].tolist(), csr.data[a:b].tolist(), strict=True))
        for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)
    ]


class NaiveLists:
    """The neighbours of `NeighbourCF`, and lists by a dictionary of sums; ids alone are returned."""

    def __init__(self, mechanism: Any, similarity: str = "cosine", rng: Any = None) -> None:
        self.mechanism, self.similarity, self.rng = mechanism, similarity, rng

    def fit(self, events: gf.Ratings) -> Self:
        model = gf.NeighbourCF(self.mechanism, similarity=self.similarity, rng=self.rng, threads=1)
        self.model_, self.events_ = model.fit(events), events
        self.held_ = profiles_of(events)
        return self

    def recommend(self, user: Any, n: int) -> Any:
        row = self.events_.row(user)
        near = self.model_.neighbours_[row].tolist(), self.model_.weights_[row].tolist()
        every = range(self.events_.shape[1])
        scores = reference.votes(*near, self.held_, len(every))
        columns = [one for one, _ in reference.best_list(scores, list(self.held_[row]), every, n)]
        return [self.events_.items[column] for column in columns]


class MostPopular:
    """Ignores who asks: what most have, asked with a profile, and returned with scores."""

    profiles_only = True

    def fit(self, events: gf.Ratings) -> Self:
        self.events_ = events
        self.counts_ = np.diff(events.transposed.csr.indptr).astype(np.float64)
        return self

    def recommend(self, profile: Any, n: int) -> Any:
        counts = self.counts_.copy()
        counts[self.events_.columns(list(profile))] = -1.0
        best = np.argsort(-counts, kind="stable")[:n]
        return Recommendations(self.events_.items[best], counts[best])


class Tells:
    """Lists what one user has: the worst recommender there can be for that user."""

    def __init__(self, user: Any) -> None:
        self.user = user

    def fit(self, events: gf.Ratings) -> Self:
        self.events_ = events
        return self

    def recommend(self, user: Any, n: int) -> Any:
        events = self.events_
        if self.user not in events.users.tolist():
            return []
        held = profiles_of(events)
        own = set(held[events.row(user)])
        told = [column for column in held[events.row(self.user)] if column not in own][:n]
        return tuple(events.items[told]), np.ones(len(told))
