"""A small service, trained once for all tests of this folder, and a copy of it for each file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.service_shop import Shop, fill, opened


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a service that was filled and trained, and is not running."""
    folder = tmp_path_factory.mktemp("shop") / "shop"
    with opened(folder) as shop:
        fill(shop)
        told = shop.told("POST", "/v1/models?wait=120", "operator", json={})
        assert told["job"]["state"] == "done", told
    return folder


@pytest.fixture(scope="module")
def shop(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Return a trained service of this file's own."""
    folder = tmp_path_factory.mktemp("copy") / "shop"
    shutil.copytree(trained, folder)
    with opened(folder, self_service=True) as shop:
        yield shop
