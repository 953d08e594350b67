"""The certificate, and its check from outside: roll-backs, forks, other ledgers, other keys."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from goodfence.errors import BrokenPromise, ServiceProblem
from goodfence.service.chains import checked_chain
from goodfence.service.promises import check_promise
from goodfence.service.state import ServiceSettings
from tests.support.running import run
from tests.support.service_shop import SETTINGS, Shop, fill, opened


def train(shop: Shop) -> None:
    assert shop.told("POST", "/v1/models?wait=60", "operator", json={})["job"]["state"] == "done"


def test_a_promise_is_verified_and_remembered(shop: Shop, tmp_path: Path) -> None:
    memory, url = tmp_path / "heads.json", str(shop.client.base_url).rstrip("/")
    first = check_promise(url, memory)
    assert first.signed
    assert first.known_since is None
    assert first.spent == pytest.approx(1.0)
    assert "one rating, epsilon 1 for life" in first.sentence
    again = check_promise(url, memory)
    assert again.known_since == len(first.entries)
    code, stdout, _ = run("promise", "check", url, "--remember", memory)
    assert code == 0
    assert "grown from entry" in stdout


def test_a_service_that_was_put_back_is_noticed(trained: Path, tmp_path: Path) -> None:
    older, memory = tmp_path / "older", tmp_path / "heads.json"
    shutil.copytree(trained, tmp_path / "shop")
    shutil.copytree(trained, older)
    with opened(tmp_path / "shop") as shop:
        train(shop)
        check_promise(str(shop.client.base_url).rstrip("/"), memory)
        url = next(iter(json.loads(memory.read_text())))
    with opened(older) as shop:  # the whole virtual machine, anchor included
        now = str(shop.client.base_url).rstrip("/")
        memory.write_text(memory.read_text().replace(url, now))
        with pytest.raises(BrokenPromise, match="put back"):
            check_promise(now, memory)
        train(shop)
        with pytest.raises(BrokenPromise, match="forked"):
            check_promise(now, memory)
        assert run("promise", "check", now, "--remember", memory)[0] == 1


def test_another_ledger_and_another_key_are_noticed(tmp_path: Path) -> None:
    memory = tmp_path / "heads.json"
    for turn in range(2):
        with opened(tmp_path / f"shop-{turn}") as shop:
            url = str(shop.client.base_url).rstrip("/")
            if turn == 0:
                check_promise(url, memory)
                known = json.loads(memory.read_text())[url]
                continue
            memory.write_text(json.dumps({url: known}))
            with pytest.raises(BrokenPromise, match="another key"):
                check_promise(url, memory)
            public = shop.told("GET", "/v1/promise")["public_key"]
            memory.write_text(json.dumps({url: {**known, "public_key": public}}))
            with pytest.raises(BrokenPromise, match="another ledger"):
                check_promise(url, memory)


@pytest.mark.parametrize("field", ["cost", "body", "hash", "prev_hash", "kind"])
def test_a_changed_entry_breaks_the_chain(shop: Shop, field: str) -> None:
    told = shop.told("GET", "/v1/promise/chain")
    checked_chain(told["entries"], told["ledger"])
    entry: dict[str, Any] = told["entries"][2]
    changed = {"cost": entry["cost"] - 1, "body": entry["body"] + " ", "kind": "burn"}
    entry[field] = changed.get(field, "00" * 32)
    with pytest.raises(BrokenPromise):
        checked_chain(told["entries"], told["ledger"])


def test_a_certificate_that_was_changed_is_noticed(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from goodfence.service import promises

    plain = promises._got

    def smaller(url: str, path: str) -> Any:
        told, head = plain(url, path)
        if path == "/v1/promise":
            told["guarantee"]["epsilon"] = 0.1
        return told, head

    monkeypatch.setattr(promises, "_got", smaller)
    with pytest.raises(BrokenPromise, match="signature"):
        check_promise(str(shop.client.base_url).rstrip("/"), tmp_path / "heads.json")


def test_a_service_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ServiceProblem):
        check_promise("http://127.0.0.1:9", tmp_path / "heads.json")


def test_a_cap_is_never_exceeded(tmp_path: Path) -> None:
    settings = ServiceSettings(method="private-cf epsilon=1", cap=(1.0, 1e-5))
    with opened(tmp_path / "shop", settings) as shop:
        fill(shop)
        train(shop)
        answer = shop.ask("POST", "/v1/models?wait=60", "operator", json={})
        assert answer.status_code == 409
        assert answer.json()["job"]["error"]["code"] == "GF601"
        assert shop.ask("GET", "/v1/health/ready").status_code == 200  # the model that was paid goes on


def test_a_ledger_that_was_put_back_stops_training_and_not_serving(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(trained, folder)
    kept = [folder / "privacy.ledger", folder / "released"]
    shutil.copy(kept[0], tmp_path / "old.ledger")
    with opened(folder, SETTINGS) as shop:
        train(shop)
    shutil.copy(tmp_path / "old.ledger", kept[0])
    with pytest.raises(Exception, match="older than its anchor"), opened(folder):
        pass
