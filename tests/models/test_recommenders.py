"""The contract of recommenders, for those that are tested at length elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import goodfence as gf
from tests.support.contracts import RecommenderContract

RATINGS = gf.synthetic(users=60, items=40, ratings=900, rng=3)
EVENTS = gf.synthetic(users=60, items=40, ratings=700, rng=3, feedback="implicit")
PUBLIC: dict[str, Any] = {"items": "from ratings", "rng": 3}
OF_RATINGS: dict[str, Callable[[], Any]] = {
    "users": lambda: gf.NeighbourCF(gf.PPNS(k=5, beta=2), center="user_mean", fallback="bias", rng=3),
    "users among raters": lambda: gf.NeighbourCF(gf.KNN(k=5), among="raters", rng=3),
    "items": lambda: gf.NeighbourCF(gf.KNN(k=5), axis="item", rng=3),
    "accurate": lambda: gf.NeighbourCF.accurate(gf.KNN(k=5), rng=3),
    "PrivateMeans": lambda: gf.PrivateMeans(epsilon=2.0, **PUBLIC),
    "PrivateCF": lambda: gf.PrivateCF(epsilon=20.0, plan="covariance", **PUBLIC),
    "PrivateCF, user": lambda: gf.PrivateCF(epsilon=20.0, unit="user", plan="half_step", **PUBLIC),
    "McSherryMironov": lambda: gf.papers.McSherryMironov(epsilon=8.0, **PUBLIC),
}
OF_EVENTS: dict[str, Callable[[], Any]] = {
    "items among raters": lambda: gf.NeighbourCF(gf.KNN(k=5), axis="item", among="raters", rng=3),
    "PrivateTopN": lambda: gf.PrivateTopN(epsilon=20.0, **PUBLIC),
    "PrivateTopN, user": lambda: gf.PrivateTopN(epsilon=20.0, unit="user", **PUBLIC),
}


@pytest.mark.parametrize("name", [*OF_RATINGS, *OF_EVENTS])
class TestRecommender(RecommenderContract):
    @pytest.fixture(autouse=True)
    def _which(self, name: str) -> None:
        self.made = {**OF_RATINGS, **OF_EVENTS}[name]  # type: ignore[method-assign]
        self.ratings = RATINGS if name in OF_RATINGS else EVENTS  # type: ignore[misc]
        self.from_profiles = not name.startswith("users")
