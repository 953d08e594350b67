"""Tests beside other libraries: they run where `scripts/adapters-test` put these, and are skipped by name elsewhere."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import goodfence as gf
from tests import conftest

ADAPTERS = "adapters"
REASON = "run ./scripts/adapters-test, which makes an environment with the libraries"


def pytest_configure(config: pytest.Config) -> None:
    for mark in ("adapters(module): needs another library, by its module", "slow: of LensKit", "eval: of LensKit"):
        config.addinivalue_line("markers", mark)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        modules = [name for mark in item.iter_markers(ADAPTERS) for name in mark.args]
        if any(find_spec(name) is None for name in modules):
            item.user_properties.append((conftest._GROUP, ADAPTERS))
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Any:
    """The library that the test is marked with."""
    mark = request.node.get_closest_marker(ADAPTERS)
    assert mark is not None, "only for tests marked adapters"
    return import_module(mark.args[0])


@pytest.fixture(scope="session")
def films() -> gf.Ratings:
    """Real ratings, few enough for libraries that look at everybody one by one.

    Without ratings of 0: to implicit these are nothing, and Surprise divides by their length.
    """
    whole = gf.load("movietweetings")
    csr = whole.csr[:250].copy()
    csr.eliminate_zeros()
    return _without_rare(gf.Ratings(csr, whole.users[:250], whole.items, whole.scale), 3)


@pytest.fixture(scope="session")
def split(films: gf.Ratings) -> tuple[gf.Ratings, gf.Ratings]:
    """The same ratings, a fifth of them held out, of items that have others: elsewhere the rest are unknown."""
    kept, held_out = gf.holdout(films, fraction=0.2, rng=7)
    rated = np.flatnonzero(_counts(kept))
    parts = [gf.Ratings(part.csr[:, rated], part.users, part.items[rated], part.scale) for part in (kept, held_out)]
    return parts[0], parts[1]


def _without_rare(ratings: gf.Ratings, least: int) -> gf.Ratings:
    often = np.flatnonzero(_counts(ratings) >= least)
    return gf.Ratings(ratings.csr[:, often], ratings.users, ratings.items[often], ratings.scale)


def _counts(ratings: gf.Ratings) -> npt.NDArray[np.int64]:
    return np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
