"""A small service, trained once for all tests of this folder, and a copy of it for each file; in either database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import Cluster
from tests.support.service_shop import Shop, fill, opened


def _trained(folder: Path, **how: Any) -> Path:
    with opened(folder, **how) as shop:
        fill(shop)
        told = shop.told("POST", "/v1/models?wait=120", "operator", json={})
        assert told["job"]["state"] == "done", told
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a service that was filled and trained, and is not running."""
    return _trained(tmp_path_factory.mktemp("shop") / "shop")


@pytest.fixture(scope="session")
def trained_in_postgres(postgres: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of such a service whose data and ledger are in the database `trained`."""
    url = postgres.made("trained")
    return _trained(tmp_path_factory.mktemp("shop") / "shop", data=url, ledger=url)


@pytest.fixture(scope="module")
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Return a trained service of this file's own, in SQLite unless the test asks for `postgres`."""
    folder, how = tmp_path_factory.mktemp("copy") / "shop", dict[str, Any]()
    if getattr(request, "param", "sqlite") == "sqlite":
        shutil.copytree(request.getfixturevalue("trained"), folder)
    else:
        shutil.copytree(request.getfixturevalue("trained_in_postgres"), folder)
        url = request.getfixturevalue("postgres").made(folder.parent.name, copied_from="trained")
        how = {"data": url, "ledger": url}
    with opened(folder, self_service=True, **how) as shop:
        yield shop
