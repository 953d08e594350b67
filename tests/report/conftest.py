"""Pages to look at: a small audit and a small frontier, with ids that nobody could overlook."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.auditing.frontier import frontier
from goodfence.report.audit_page import AuditPage, audit_page
from goodfence.report.frontier_page import FrontierPage

WAYS = (
    gf.KNN(k=10),
    gf.PPNS(k=10, beta=5),
    gf.McSherryMironov(epsilon=1.0),
    gf.PrivateMeans(epsilon=1.0),
)


def make_ratings(n_users: int = 80, n_items: int = 50, *, declared: bool = True) -> gf.Ratings:
    """Return ratings of people and items whose ids are secrets."""
    rng = np.random.default_rng(7)
    rated = rng.random((n_users, n_items)) < np.linspace(0.1, 0.9, n_users)[:, np.newaxis]
    rated[:, :20] |= np.arange(20) < 12
    matrix = sparse.csr_array(
        rated * rng.integers(1, 6, size=(n_users, n_items)).astype(np.float64)
    )
    users = [f"secret-person-{number}" for number in range(n_users)]
    items = [f"secret-item-{number}" for number in range(n_items)]
    return gf.Ratings(matrix, users, items, scale=(1, 5) if declared else None)


@pytest.fixture(scope="session")
def ratings() -> gf.Ratings:
    return make_ratings()


@pytest.fixture(scope="session")
def page(ratings: gf.Ratings) -> AuditPage:
    """An audit of kNN beside a refuted, a claimed and a proved promise."""
    return audit_page(
        ratings, gf.KNN(k=10), compared=WAYS, others=12, data="films.csv", rng=7, progress=False
    )


@pytest.fixture(scope="session")
def comparison(ratings: gf.Ratings) -> FrontierPage:
    """The frontier of the same ways."""
    found = frontier(ratings, WAYS, known=4, targets=12, rng=7, progress=False)
    return FrontierPage(
        found=found,
        promises=[way.guarantee() for way in WAYS],
        ratings=ratings,
        data="films.csv",
        command="goodfence frontier films.csv --seed 7",
    )


@pytest.fixture(scope="session")
def files(
    page: AuditPage, comparison: FrontierPage, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Both pages on disk."""
    folder = tmp_path_factory.mktemp("pages")
    page.save(folder / "audit.html")
    comparison.save(folder / "frontier.html")
    return {name: folder / f"{name}.html" for name in ("audit", "frontier")}
