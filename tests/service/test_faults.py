"""Short forms of what `./scripts/bench serve` counts: holes, odd requests, kills, canaries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.service_faults import KEYS, canaries_in, faults_after, holes, kill, killed, may, odd_requests, served
from goodfence.service.state import ServiceSettings
from tests.support.service_shop import Shop, fill, opened

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gorse_too(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Return a service that also answers Gorse's paths."""
    with opened(tmp_path_factory.mktemp("shop") / "shop", self_service=True, compat="gorse") as shop:
        fill(shop)
        yield shop


def test_no_route_answers_an_identity_without_the_right(gorse_too: Shop) -> None:
    n, found = holes(gorse_too)
    assert not found
    assert n == sum(not may(one, key) for one in served(gorse_too) for key in KEYS)
    assert n > 300


def test_odd_requests_make_no_fault(gorse_too: Shop) -> None:
    statuses, wrong = odd_requests(gorse_too, 1500)
    assert not wrong
    assert statuses["2xx"] > 50


def test_kills_leave_nothing_half_done(tmp_path: Path) -> None:
    counts, wrong = kill(tmp_path, 4)
    assert not wrong
    assert set(counts.values()) == {1}


def test_a_fault_after_a_kill_would_be_seen(tmp_path: Path) -> None:
    with opened(tmp_path / "shop") as shop:
        fill(shop)
    killed("import", tmp_path / "shop", 0.3, "both")
    assert not faults_after("import", tmp_path / "shop", 1)
    (tmp_path / "shop" / "models").mkdir()
    (tmp_path / "shop" / "models" / "unpaid.gf").write_bytes(b"a model")
    assert faults_after("import", tmp_path / "shop", 1) == ["a file was released unpaid"]


def test_no_canary_is_told_to_anybody_else(tmp_path: Path) -> None:
    with opened(tmp_path / "shop", ServiceSettings(scale=(1.0, 5.0, 0.0625)), self_service=True) as shop:
        fill(shop)
        lines, texts, wrong = canaries_in(shop, 500)
    assert not wrong
    assert lines >= 500
    assert texts > 30
