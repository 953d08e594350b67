"""One PostgreSQL cluster for all tests of the ledger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.postgres import NOT_THERE, Cluster, cluster, programs


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    if programs() is None:
        pytest.skip(NOT_THERE)
    with cluster() as running:
        yield running
