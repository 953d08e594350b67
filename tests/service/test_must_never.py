"""What the service must never do: a test for each of the fourteen rules."""

from __future__ import annotations

import json
import logging
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from goodfence.errors import Conflict
from goodfence.service.learning import sha256_of
from goodfence.service.routes import REGISTRY
from goodfence.service.state import Service, ServiceSettings, Serving
from tests.support.service_shop import SETTINGS, Shop, fill, opened

BOTH = pytest.mark.parametrize("shop", ["sqlite", "postgres"], indirect=True)
GUEST = {"profile": [{"item": "i1", "value": 5}], "n": 5}


def test_1_a_model_is_not_served_before_its_charge_is_committed_and_anchored(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(trained, folder)
    service = Service(folder, SETTINGS)
    row = service.store.read("SELECT id, sha256 FROM model")[0]
    released = [entry for entry in service.books.entries if entry.facts.get("sha256") == row[1]]
    assert len(released) == 1
    assert service.model is not None
    model = folder / service.store.read("SELECT file FROM model")[0][0]
    kept = model.read_bytes()
    model.write_bytes(kept[:-1] + b"x")  # not what was charged for
    with pytest.raises(Exception, match="not the one that was recorded"):
        service.activate(row[0])
    sql = "UPDATE model SET sha256 = ?"
    service.store.write(lambda writer: writer.run(sql, sha256_of(model)))  # a model that was never paid
    with pytest.raises(Conflict, match="has not released this model"):
        service.activate(row[0])
    service.close()


def test_2_budget_is_neither_refunded_nor_reset_nor_renewed(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "shop")
    with opened(tmp_path / "shop") as shop:
        before = shop.told("GET", "/v1/ledger", "auditor")["cost"]["spent"]
        assert before == pytest.approx(1.0)
        for user in range(40):
            shop.told("DELETE", f"/v1/users/u{user}", "backend")
        assert shop.told("GET", "/v1/ledger", "auditor")["cost"]["spent"] == before
        assert shop.told("POST", "/v1/models?wait=60", "operator", json={})["job"]["state"] == "done"
        assert shop.told("GET", "/v1/ledger", "auditor")["cost"]["spent"] > before
        methods = {(method, path) for method, path in REGISTRY if "ledger" in path}
        assert not any(method in ("PUT", "PATCH", "DELETE") for method, _ in methods)


@BOTH
def test_3_a_cell_that_was_released_is_left_out_silently(shop: Shop) -> None:
    item = {"value": 3}
    first = shop.ask("PUT", "/v1/me/ratings/i29", "user", json=item)
    batch = shop.service.records.close_batch()
    shop.told("DELETE", "/v1/me/ratings/i29", "user")
    again = shop.ask("PUT", "/v1/me/ratings/i29", "user", json=item)
    assert (first.status_code, first.content) == (again.status_code, again.content)
    sql = "SELECT batch FROM cell JOIN account ON account.id = user_id WHERE account.ext = 'u1' AND item_id = ?"
    row = shop.service.records.item_rows["i29"]
    assert shop.service.store.read(sql, row) == [(0,)]  # served, and not learnt again
    assert shop.service.records.close_batch() == batch + 1
    assert shop.service.store.read(sql, row) == [(0,)]


@pytest.mark.parametrize(
    "path",
    ["/v1/users/u1/neighbors", "/v1/users/u1/ratings", "/v1/items/i1/ratings", "/v1/items/i1/count", "/v1/ratings"],
)
def test_4_what_would_leak_is_refused_with_the_reason(shop: Shop, path: str) -> None:
    for key in (None, "all"):
        answer = shop.ask("GET", path, key)
        assert (answer.status_code, answer.json()["code"]) == (410, "GF707")
        assert len(answer.json()["detail"]) > 20


def test_5_there_is_no_fallback_to_exact_popularity(tmp_path: Path) -> None:
    with opened(tmp_path / "shop") as shop:
        fill(shop)
        asked = (("GET", "/v1/popular"), ("GET", "/v1/users/u1/recommendations"), ("GET", "/v1/items/i1/related"))
        for method, path in asked:
            answer = shop.ask(method, path, "backend")
            assert (answer.status_code, answer.json()["code"]) == (503, "GF708")
        assert shop.ask("GET", "/v1/health/ready").status_code == 503


def test_6_events_do_not_create_items(shop: Shop) -> None:
    before = dict(shop.service.records.item_rows)
    body = {"events": [{"item": "brand-new", "value": 3}]}
    assert shop.ask("POST", "/v1/users/u1/events", "backend", json=body).status_code == 422
    assert shop.ask("POST", "/v1/session/recommendations", json={"profile": [{"item": "brand-new"}]}).status_code == 422
    assert shop.service.records.item_rows == before


@BOTH
def test_7_an_answer_depends_on_the_model_and_on_the_own_profile_alone(shop: Shop) -> None:
    answers = [shop.ask("POST", "/v1/session/recommendations", json=GUEST).content for _ in range(3)]
    others = {"events": [{"item": f"i{item}", "value": 5} for item in range(20)]}
    shop.told("POST", "/v1/users/busy/events", "backend", json=others)
    shop.told("DELETE", "/v1/users/u7", "backend")
    answer = shop.ask("POST", "/v1/session/recommendations", json=GUEST)
    assert {*answers} == {answer.content}  # nothing is drawn, and nobody else's data enter
    assert "etag" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"
    profile = shop.service.records.profile(shop.service.records.user_row("busy"))
    assert shop.service.model is not None
    ranked = shop.service.model.rank(profile, None, shop.service.model.allowed, 5)
    assert (
        shop.service.model.rank(profile, "whoever", shop.service.model.allowed, 5).columns.tolist()
        == ranked.columns.tolist()
    )
    assert np.isfinite(ranked.scores).all()


@BOTH
def test_8_no_id_and_no_token_is_in_logs_metrics_or_errors(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    canary = "canary-7f3a"
    caplog.set_level(logging.DEBUG)
    key = shop.told("POST", f"/v1/users?user={canary}", "operator")["key"]
    texts = [shop.ask("POST", f"/v1/users/{canary}/predictions", "backend", json={"items": [canary]}).text and ""]
    bearer = {"Authorization": f"Bearer {key}"}
    for turn in range(40):
        asked = [
            shop.client.put(f"/v1/me/ratings/{canary}", headers=bearer, json={"value": 3}),
            shop.client.get(f"/v1/me/recommendations?n={canary}", headers=bearer),
            shop.client.post("/v1/me/events", headers=bearer, json={"events": [{"item": canary, "value": turn}]}),
            shop.client.get(f"/v1/me?key={key}", headers={"Authorization": f"Bearer {key}x"}),
            shop.client.get(f"/{canary}"),
            shop.client.post("/v1/session/recommendations", content=canary),
            shop.client.post("/v1/models", headers=bearer, json={"method": canary}),
        ]
        texts += [answer.text for answer in asked if answer.status_code >= 400]
    texts.append(shop.ask("GET", "/metrics", "metrics").text)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("goodfence")]
    assert len(lines) > 200
    secret = key[-43:]
    assert not [text for text in [*texts, *lines] if canary in text or secret in text]
    assert canary not in repr(shop.service.records) + repr(shop.service.keys.caller(key)) + repr(shop.service.model)


@BOTH
def test_9_nothing_says_whether_an_account_exists(shop: Shop) -> None:
    shop.told("PUT", "/v1/users/empty", "backend", json={})
    for method, path, body in (
        ("GET", "/v1/users/{}/recommendations?n=4", None),
        ("POST", "/v1/users/{}/predictions", {"items": ["i1", "i2"]}),
        ("DELETE", "/v1/users/{}/ratings/i1", None),
        ("DELETE", "/v1/users/{}", None),
        ("PUT", "/v1/users/{}", {}),
    ):
        known, unknown = (shop.ask(method, path.format(name), "backend", json=body) for name in ("empty", "nobody-9"))
        assert (known.status_code, known.content) == (unknown.status_code, unknown.content), path
    opened_twice = [shop.ask("POST", "/v1/users").status_code for _ in range(2)]
    assert opened_twice == [201, 201]
    assert shop.ask("POST", "/v1/users?user=u1").status_code == 422  # nobody chooses, so no name can be taken


def test_10_nothing_trains_by_itself(shop: Shop) -> None:
    before = [one["id"] for one in shop.told("GET", "/v1/jobs", "operator")["jobs"]]
    shop.told("POST", "/v1/users/u3/events", "backend", json={"events": [{"item": "i2", "value": 3}]})
    assert [one["id"] for one in shop.told("GET", "/v1/jobs", "operator")["jobs"]] == before
    told = shop.told("POST", "/v1/models", "operator", json={"cost_only": True})["cost"]
    assert told["spent"] < told["after"] <= told["cap"]
    assert [one["id"] for one in shop.told("GET", "/v1/jobs", "operator")["jobs"]] == before


def test_11_no_unproved_model_is_activated_silently(tmp_path: Path) -> None:
    folder, unproved = tmp_path / "shop", ServiceSettings(method="knn k=5")
    with opened(folder, unproved) as shop:
        fill(shop)
        answer = shop.ask("POST", "/v1/models", "operator", json={})
        assert (answer.status_code, answer.json()["code"]) == (409, "GF706")
        assert "--allow-unproved" in answer.json()["detail"]
    with opened(folder, allow_unproved=True) as shop:
        told = shop.told("POST", "/v1/models?wait=60", "operator", json={})
        assert told["job"]["state"] == "done"
        assert shop.ask("GET", "/v1/popular", "backend").headers["goodfence-guarantee"] == "none"
    with pytest.raises(Conflict, match="--allow-unproved"):
        Service(folder, None, Serving())


def test_12_pages_load_nothing_from_another_host(shop: Shop) -> None:
    for (method, path), one in REGISTRY.items():
        if not one.page or method != "GET" or "{" in path:
            continue
        answer = shop.ask(method, path, "all")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", answer.text)


@BOTH
def test_13_an_audit_runs_on_a_copy_and_spends_nothing(shop: Shop) -> None:
    head, model = shop.service.books.head_text, shop.service.model
    told = shop.told("POST", "/v1/audits?wait=120", "auditor", json={"targets": 4, "method": "private-means epsilon=1"})
    assert told["job"]["state"] == "done", told
    assert told["job"]["result"]["verdict"]
    shop.service.books.refresh()
    assert shop.service.books.head_text == head
    assert shop.service.model is model
    assert shop.ask("GET", f"/v1/audits/{told['job']['id']}", "backend").status_code == 403


def test_14_no_epsilon_is_shown_without_its_unit(shop: Shop) -> None:
    told = [shop.told("GET", "/v1/promise"), shop.told("GET", "/v1/ledger", "auditor")["cost"]]
    told += [shop.told("GET", "/v1/models", "auditor")["models"][0]["guarantee"]]

    def check(part: object) -> None:
        if isinstance(part, dict):
            if part.get("epsilon") is not None:
                assert "unit" in part or "delta" in part, part
            for inside in part.values():
                check(inside)

    for one in told:
        check(one)
    header = shop.ask("GET", "/v1/popular", "backend").headers["goodfence-guarantee"]
    assert re.fullmatch(r"proved; unit=rating; eps=1; delta=1e-05", header)
    assert json.dumps(told[0]["guarantee"]).count("epsilon") == 1
