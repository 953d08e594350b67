"""`--compat gorse`: requests as Gorse's clients send them, and 410 for what leaks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from goodfence.service.routes import REGISTRY
from tests.support.service_shop import Shop, opened


@pytest.fixture(scope="module")
def gorse(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("gorse") / "shop"
    shutil.copytree(trained, folder)
    with opened(folder, compat="gorse") as shop:
        shop.client.headers["X-API-Key"] = shop.keys["all"]
        yield shop


def test_feedback_changes_the_own_list(gorse: Shop) -> None:
    before = gorse.told("GET", "/api/recommend/bob?n=30")
    feedback = [
        {"FeedbackType": "star", "UserId": "bob", "ItemId": before[0], "Value": 5, "Timestamp": "2026-01-31T10:00:00Z"}
    ]
    for method in ("POST", "PUT"):
        assert gorse.told(method, "/api/feedback", json=feedback) == {"RowAffected": 1}
    after = gorse.told("GET", "/api/recommend/bob?n=30")
    assert before[0] not in after
    scored = gorse.told("GET", "/api/recommend/bob?n=3", headers={"X-API-Version": "2"})
    assert [entry["Id"] for entry in scored] == after[:3]
    assert gorse.told("DELETE", "/api/user/bob") == {"RowAffected": 1}
    assert gorse.told("GET", "/api/recommend/bob?n=30") == before


def test_a_session_is_answered_and_not_stored(gorse: Shop) -> None:
    feedback = [{"FeedbackType": "star", "UserId": "guest", "ItemId": "i1", "Value": 5, "Timestamp": ""}]
    told = gorse.told("POST", "/api/session/recommend?n=3", json=feedback)
    assert len(told) == 3
    assert {*told[0]} == {"Id", "Score"}
    assert gorse.service.records.user_row("guest") is None


def test_users_items_and_health(gorse: Shop) -> None:
    assert gorse.told("POST", "/api/user", json={"UserId": "ann", "Labels": ["x"]}) == {"RowAffected": 1}
    item = {"ItemId": "fresh", "IsHidden": False, "Categories": ["odd"], "Comment": "Fresh", "Labels": []}
    assert gorse.told("POST", "/api/item", json=item) == {"RowAffected": 1}
    assert gorse.told("GET", "/v1/items/fresh")["title"] == "Fresh"
    assert gorse.told("GET", "/api/health/ready") == {"Ready": True}
    wrong = [{"FeedbackType": "star", "UserId": "ann", "ItemId": "fresh", "Value": 5, "Timestamp": "yesterday"}]
    assert gorse.ask("POST", "/api/feedback", json=wrong).status_code == 422


def test_what_leaks_is_gone(gorse: Shop) -> None:
    refused = [path for (_, path), one in REGISTRY.items() if one.compat == "gorse" and one.status == 410]
    assert len(refused) >= 5
    for path in refused:
        answer = gorse.ask("GET", path.replace("{", "").replace("}", ""))
        assert (answer.status_code, answer.json()["code"]) == (410, "GF707")


def test_without_compat_there_are_no_such_paths(shop: Shop) -> None:
    assert shop.ask("GET", "/api/recommend/bob", "all").status_code == 404
