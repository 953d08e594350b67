"""An address that is taken, and a cap that cannot be, are refused before anything is made."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from goodfence.errors import SettingError
from goodfence.ledger.costs import MOST_COST
from goodfence.models.method import parsed
from goodfence.models.private.base import FROM_RATINGS
from goodfence.service.learning import cap_of
from goodfence.service.running import Listening, serve_until_stopped, settings_of_service
from goodfence.service.state import Service
from tests.support.running import run


@pytest.mark.parametrize("cap", ["10000", "inf", "nan", "0", "-1"])
def test_a_cap_that_no_ledger_counts_is_refused_before_anything_is_made(cap: str, tmp_path: Path) -> None:
    code, _, stderr = run("serve", tmp_path / "shop", "--cap", cap)
    assert code == 2
    assert "cap must be an epsilon above 0 and at most 2351" in " ".join(stderr.split())
    assert not (tmp_path / "shop").exists()


def test_the_largest_cap_is_one_that_a_ledger_counts() -> None:
    settings = settings_of_service({"cap": 2351})
    recommender = parsed(settings.method, public={"items": FROM_RATINGS}).recommender
    for n_items in (1, 2**24):
        assert cap_of(recommender, n_items, settings.cap).cost <= MOST_COST


@pytest.mark.parametrize(("port", "why"), [(None, "in use"), (99_999, "up to 65535")])
def test_no_key_is_made_for_an_address_that_cannot_be_used(port: int | None, why: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listening = Listening(port=port or taken.getsockname()[1], demo=True)
        with pytest.raises(SettingError, match=why):
            serve_until_stopped(Service(tmp_path), listening, lambda *_: pytest.fail("it serves"))
    service = Service(tmp_path)
    assert not len(service.keys)
    assert not service.records.item_rows
    service.close()
