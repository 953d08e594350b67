"""Pages to look at: a small audit and a small frontier, with ids that nobody could overlook."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodfence as gf
from goodfence.auditing.frontier import frontier
from goodfence.report.pages import AuditPage, FrontierPage, audit_page
from tests.support.made_up import make_ratings

WAYS = (
    gf.KNN(k=10),
    gf.PPNS(k=10, beta=5),
    gf.papers.McSherryMironov(epsilon=1.0, items="from ratings"),
    gf.PrivateMeans(epsilon=1.0, items="from ratings"),
)


@pytest.fixture(scope="session")
def ratings() -> gf.Ratings:
    return make_ratings()


@pytest.fixture(scope="session")
def page(ratings: gf.Ratings) -> AuditPage:
    """An audit of kNN beside a refuted, a claimed and a proved guarantee."""
    report = gf.audit(ratings, gf.KNN(k=10), targets=160, trials=0, rng=7, progress=False)
    return audit_page(report, compared=WAYS, others=12, data="films.csv", progress=False)


@pytest.fixture(scope="session")
def comparison(ratings: gf.Ratings) -> FrontierPage:
    """The frontier of the same ways."""
    found = frontier(ratings, WAYS, known=4, targets=12, rng=7, progress=False)
    return FrontierPage(
        found=found,
        guarantees=[way.guarantee() for way in WAYS],
        ratings=ratings,
        data="films.csv",
        command="goodfence frontier films.csv --seed 7",
    )


@pytest.fixture(scope="session")
def files(page: AuditPage, comparison: FrontierPage, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both pages on disk."""
    folder = tmp_path_factory.mktemp("pages")
    page.save(folder / "audit.html")
    comparison.save(folder / "frontier.html")
    return {name: folder / f"{name}.html" for name in ("audit", "frontier")}
