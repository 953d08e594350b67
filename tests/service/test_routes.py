"""What each route answers, and to whom."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goodfence.service.application import routes_of
from goodfence.service.routes import REGISTRY
from tests.support.service_shop import N_ITEMS, Shop

IDENTITIES = (None, "user", "backend", "operator", "auditor", "metrics")
FRAMEWORK = {("GET", "/openapi.json")}
pytestmark = pytest.mark.parametrize("shop", ["sqlite", "postgres"], indirect=True)


def test_every_route_is_registered_with_a_scope(shop: Shop) -> None:
    answered = set(routes_of(shop.door))
    assert answered - FRAMEWORK == {key for key, one in REGISTRY.items() if one.compat is None}
    assert all(one.scopes for one in REGISTRY.values())


@pytest.mark.parametrize("identity", IDENTITIES)
def test_no_route_answers_without_its_scope(shop: Shop, identity: str | None) -> None:
    for (method, path), one in REGISTRY.items():
        if one.compat is not None or "public" in one.scopes or identity in one.scopes:
            continue
        asked = path.replace("{user}", "u2").replace("{item}", "i1").replace("{what}", "items")
        asked = asked.replace("{model}", "none").replace("{job}", "none").replace("{key}", "none")
        answer = shop.ask(method, asked, identity, follow_redirects=False)
        refused = (303,) if one.page and identity is None else (401,) if identity is None else (403,)
        assert answer.status_code in refused, (method, path, identity, answer.status_code)


def test_a_key_must_be_known(shop: Shop) -> None:
    for token in ("gfk_" + "0" * 16 + "_" + "A" * 43, "nonsense", shop.keys["user"][:-1] + "x"):
        answer = shop.client.get("/v1/me", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["code"] == "GF702"


def test_a_key_can_be_revoked(shop: Shop) -> None:
    key = shop.told("POST", "/v1/keys", "operator", json={"scopes": ["metrics"], "days": 1})["key"]
    bearer = {"Authorization": f"Bearer {key}"}
    assert shop.client.get("/metrics", headers=bearer).status_code == 200
    shop.told("DELETE", f"/v1/keys/{key.split('_')[1]}", "operator")
    assert shop.client.get("/metrics", headers=bearer).status_code == 401
    assert key[-43:] not in shop.ask("GET", "/v1/keys", "operator").text
    assert shop.ask("POST", "/v1/keys", "operator", json={"scopes": ["user"]}).status_code == 422


def test_recommendations_are_new_to_the_user_and_name_the_guarantee(shop: Shop) -> None:
    answer = shop.ask("GET", "/v1/me/recommendations?n=5", "user")
    told = answer.json()
    mine = {one["item"] for one in shop.told("GET", "/v1/me/ratings", "user")["ratings"]}
    listed = [one["item"] for one in told["items"]]
    assert len(listed) == 5
    assert not mine & set(listed)
    assert answer.headers["goodfence-guarantee"] == "proved; unit=rating; eps=1; delta=1e-05"
    assert answer.headers["goodfence-ledger"].startswith("4:")
    assert answer.headers["cache-control"] == "no-store"
    assert all(1 <= one["score"] <= 5 for one in told["items"])
    asked = shop.told("GET", f"/v1/me/recommendations?n=9&exclude={listed[0]}&category=odd", "user")
    assert all(int(one["item"][1:]) % 2 and one["item"] != listed[0] for one in asked["items"])
    assert shop.told("GET", "/v1/users/u1/recommendations?n=5", "backend") == told


@pytest.mark.parametrize("query", ["n=0", "n=101", "n=x", "n=1e3", "n="])
def test_a_wrong_number_is_refused(shop: Shop, query: str) -> None:
    answer = shop.ask("GET", f"/v1/me/recommendations?{query}", "user")
    assert (answer.status_code, answer.json()["code"]) == (422, "GF704")


def test_a_guest_is_answered_like_a_user_with_the_same_profile(shop: Shop) -> None:
    mine = shop.told("GET", "/v1/me/ratings", "user")["ratings"]
    profile = [{"item": one["item"], "value": one["value"]} for one in mine]
    told = shop.told("POST", "/v1/session/recommendations", json={"profile": profile, "n": 5})
    assert told == shop.told("GET", "/v1/me/recommendations?n=5", "user")
    wrongs: list[Any] = [{"profile": [{"item": "none"}]}, {"profile": 1}, [], {"profile": profile, "n": 0}]
    for wrong in wrongs:
        assert shop.ask("POST", "/v1/session/recommendations", json=wrong).status_code == 422


def test_own_ratings_are_saved_changed_and_taken_back(shop: Shop) -> None:
    key = shop.told("POST", "/v1/users", json={})["key"]
    bearer: dict[str, Any] = {"headers": {"Authorization": f"Bearer {key}"}}
    shop.told("PUT", "/v1/me/ratings/i3", json={"value": 4}, **bearer)
    shop.told("PUT", "/v1/me/ratings/i3", json={"value": 2}, **bearer)
    shop.told("POST", "/v1/me/events", json={"events": [{"item": "i5", "value": 5, "at": 7}]}, **bearer)
    told = shop.told("GET", "/v1/me/ratings", **bearer)["ratings"]
    assert [(one["item"], one["value"]) for one in told] == [("i5", 5.0), ("i3", 2.0)]
    lines = shop.ask("GET", "/v1/me/export", **bearer).text.splitlines()
    assert [json.loads(line)["item"] for line in lines] == ["i5", "i3"]
    shop.told("DELETE", "/v1/me/ratings/i5", **bearer)
    assert [one["item"] for one in shop.told("GET", "/v1/me/ratings", **bearer)["ratings"]] == ["i3"]
    predicted = shop.told("POST", "/v1/me/predictions", json={"items": ["i1", "nothing"]}, **bearer)["predictions"]
    assert 1 <= predicted[0]["value"] <= 5
    assert predicted[1] == {"item": "nothing", "value": None}
    assert shop.ask("PUT", "/v1/me/ratings/i3", json={"value": 9}, **bearer).status_code == 422
    assert shop.ask("PUT", "/v1/me/ratings/none", json={"value": 3}, **bearer).status_code == 422


def test_a_batch_is_saved_whole_or_not_at_all(shop: Shop) -> None:
    wrong = {"events": [{"item": "i1", "value": 3}, {"item": "none", "value": 3}]}
    assert shop.ask("POST", "/v1/users/newcomer/events", "backend", json=wrong).status_code == 422
    assert shop.service.records.profile(shop.service.records.user_row("newcomer")).items.size == 0


def test_a_repeated_request_changes_nothing(shop: Shop) -> None:
    body = {"events": [{"item": "i1", "value": 3}]}
    how: dict[str, Any] = {"headers": {"Idempotency-Key": "one"}}
    first = shop.ask("POST", "/v1/users/twice/events", "backend", json=body, **how)
    row = shop.service.records.user_row("twice")
    assert row is not None
    shop.service.records.remove(row, shop.service.records.item_rows["i1"])
    again = shop.ask("POST", "/v1/users/twice/events", "backend", json=body, **how)
    assert (first.status_code, first.json()) == (again.status_code, again.json()) == (202, {"accepted": 1})
    assert shop.service.records.profile(row).items.size == 0  # not done again
    other = shop.ask("POST", "/v1/users/twice/events", "backend", json={"events": []}, **how)
    assert (other.status_code, other.json()["code"]) == (422, "GF706")


def test_related_and_popular_come_from_the_released_model(shop: Shop) -> None:
    related = shop.told("GET", "/v1/items/i1/related?n=4", "backend")["items"]
    assert "i1" not in {one["item"] for one in related}
    popular = shop.told("GET", "/v1/popular?n=4", "backend")
    assert popular == shop.told("GET", "/v1/users/nobody/recommendations?n=4", "backend")
    assert shop.ask("GET", "/v1/items/none/related", "backend").status_code == 404


def test_items_are_declared_changed_and_hidden(shop: Shop) -> None:
    shop.told("PUT", "/v1/items/new", "operator", json={"title": "New", "labels": ["odd"]})
    shop.told("PATCH", "/v1/items/new", "operator", json={"title": "Newer"})
    assert shop.told("GET", "/v1/items/new", "user") == {
        "item": "new", "title": "Newer", "labels": ["odd"], "hidden": False,
    }  # fmt: skip
    best = shop.told("GET", "/v1/popular?n=1", "backend")["items"][0]["item"]
    before = shop.told("GET", f"/v1/items/{best}", "backend")
    shop.told("DELETE", f"/v1/items/{best}", "operator")
    listed = shop.told("GET", f"/v1/popular?n={N_ITEMS}", "backend")["items"]
    assert best not in {one["item"] for one in listed}
    shop.told("PUT", f"/v1/items/{best}", "operator", json={key: before[key] for key in ("title", "labels")})
    assert shop.told("GET", "/v1/popular?n=1", "backend")["items"][0]["item"] == best


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("what", ["items", "users", "events"])
def test_an_export_can_be_imported(shop: Shop, what: str, form: str) -> None:
    answer = shop.ask("GET", f"/v1/export/{what}?format={form}", "operator")
    kind = answer.headers["content-type"].partition(";")[0]
    told = shop.told("POST", f"/v1/import/{what}", "operator", content=answer.content, headers={"Content-Type": kind})
    assert told["imported"] > 0
    assert shop.ask("GET", f"/v1/export/{what}?format={form}", "operator").content == answer.content


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text/csv", "user,item,value\nann,i1\n"),
        ("text/csv", "user,item,value\nann,i1,many\n"),
        ("application/x-ndjson", "nonsense\n"),
        ("application/x-ndjson", '{"user": "ann", "item": "none", "value": 3}\n'),
        ("application/x-ndjson", '{"user": "a/b", "item": "i1", "value": 3}\n'),
        ("application/x-ndjson", '{"user": "ann", "item": "i1", "value": NaN}\n'),
        ("application/json", "[]"),
        ("application/vnd.apache.parquet", b""),
        ("application/vnd.apache.parquet", b"PAR1 ann PAR1"),
        ("text/csv", b"user,item\n\xff\xfe,i1\n"),
    ],
)
def test_a_bad_import_is_refused(shop: Shop, kind: str, content: str | bytes) -> None:
    answer = shop.ask("POST", "/v1/import/events", "operator", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (422, "GF704")
    assert "ann" not in answer.text


def test_a_large_body_is_refused(shop: Shop) -> None:
    large = {"profile": [{"item": "i1", "value": 3}] * 60_000}
    for path in ("/v1/session/recommendations", "/v1/users/u1/predictions"):
        assert shop.ask("POST", path, "backend", json=large).status_code == 413


def test_a_body_that_is_not_understood_is_not_repeated(shop: Shop) -> None:
    answer = shop.ask("POST", "/v1/users/u1/events", "backend", json={"events": [{"item": "i1", "value": "canary"}]})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert "canary" not in answer.text
    assert answer.json()["type"] == "urn:goodfence:error:GF704"


def test_health_metrics_and_the_schema(shop: Shop) -> None:
    assert shop.told("GET", "/v1/health/live") == {"status": "live"}
    assert shop.told("GET", "/v1/health/ready") == {"status": "ready", "missing": []}
    told = shop.ask("GET", "/metrics", "metrics").text
    assert 'goodfence_answers_total{route="/v1/health/live",status="200"}' in told
    paths = shop.told("GET", "/openapi.json")["paths"]
    documented = {path for (_, path), one in REGISTRY.items() if one.compat is None and not one.page}
    assert documented <= set(paths)
