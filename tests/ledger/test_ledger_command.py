"""`goodfence ledger`, and what an export tells."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import dp_accounting  # type: ignore[import-untyped]
import pytest

from goodfence.ledger.chain import Entry
from goodfence.ledger.costs import Cap, Charge
from goodfence.privacy.noise import SIGMA
from tests.support.ledgers import Store, sqlite_store
from tests.support.running import run, run_json


@pytest.fixture
def store() -> Iterator[Store]:
    with sqlite_store() as made, made.open() as ledger:
        batch, _ = ledger.open_accounts("rating", ["one", "two"], Cap.of(epsilon=1, delta=1e-5, slack=100))
        people = ledger.open_accounts("user", [f"{at}" for at in range(4321)], Cap(10**12, 100))
        for at in (1, 2):
            charges = [Charge(batch, (at * 10**6) ** 2, at)]
            ledger.release(f"fit/{at}", request=b"", charges=charges, draw=bytes, facts={"name": f"stage {at}"})
        charges = [Charge(person, 10**6, 1) for person in people]
        ledger.release("people", request=b"", charges=charges, draw=bytes, facts={})
        yield made


def told(store: Store, name: str, *options: object) -> Any:
    return run_json("ledger", name, store.place, "--anchor", store.anchor, "--folder", store.folder, *options)


def test_status_and_verify(store: Store) -> None:
    status = told(store, "status")
    assert [one["unit"] for one in status["caps"]] == ["rating", "user"]
    first = status["releases"][0]
    assert (first["key"], first["end"]) == ("fit/1#1", "release")
    assert told(store, "verify") == {"faults": []}
    code, out, _ = run("ledger", "status", store.place, "--anchor", store.anchor, "--folder", store.folder)
    assert code == 0
    assert "fit/2#1" in out


def test_a_fault_ends_with_1(store: Store) -> None:
    next(path for path in store.folder.iterdir() if len(path.name) == 32).unlink()
    code, out, _ = run("ledger", "verify", store.place, "--anchor", store.anchor, "--folder", store.folder)
    assert code == 1
    assert "artefact" in out


def test_anybody_can_check_the_chain_of_an_export(store: Store) -> None:
    export = told(store, "export")
    before = bytes(32)
    for fields in export["entries"]:
        raw = {name: fields.get(name, 0) for name in Entry._fields}
        for name in ("request", "release_id", "accounts_hash", "prev_hash", "hash"):
            raw[name] = None if raw[name] is None else bytes.fromhex(raw[name])
        entry = Entry(**raw)
        assert entry.prev_hash == before
        assert entry.computed_hash() == entry.hash
        before = entry.hash
    assert before.hex() == export["head"]["hash"]
    assert hashlib.sha256(b"").hexdigest() in str(export)


@pytest.mark.parametrize("kind", ["json", "dp-event", "registry"])
def test_no_export_tells_how_many_people_there_are(store: Store, kind: str) -> None:
    assert "4321" not in str(told(store, "export", "--format", kind)).replace(store.place, "")
    with store.open() as ledger:
        assert ledger.account("user", "7").hex() not in str(told(store, "export", "--format", kind))


def test_dp_accounting_finds_the_same_cost(store: Store) -> None:
    units = told(store, "export", "--format", "dp-event")["units"]
    events = [dp_accounting.GaussianDpEvent(one["noise_multiplier"]) for one in units["rating"]["events"]]
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(dp_accounting.ComposedDpEvent(events))
    mu = (1 + 4) ** 0.5 * 10**6 / SIGMA
    alone = dp_accounting.pld.PLDAccountant().compose(dp_accounting.GaussianDpEvent(1 / mu))
    assert accountant.get_epsilon(1e-5) == pytest.approx(alone.get_epsilon(1e-5), rel=1e-3)
    assert units["user"]["events"][0]["noise_multiplier"] == pytest.approx(SIGMA / 10**6)  # the cap


def test_restore_and_anchor(store: Store) -> None:
    old = store.backup()
    with store.open() as ledger:
        [batch] = ledger.open_accounts("rating", ["one"], Cap.of(epsilon=1, delta=1e-5, slack=100))
        ledger.release("later", request=b"", charges=[Charge(batch, 100, 1)], draw=bytes, facts={})
    store.put_back(old)
    code, _, problem = run("ledger", "status", store.place, "--anchor", store.anchor, "--folder", store.folder)
    assert (code, "GF603" in problem) == (3, True)
    assert told(store, "restore", "--from-anchor") == {"lines": 1}
    with store.open() as ledger:
        other = ledger.account("rating", "two")
        assert ledger.spent(other).cost == 100  # everybody pays what was lost
    store.anchor.unlink()
    told(store, "anchor")
    assert told(store, "verify") == {"faults": []}


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["status", "nothing.ledger", "--anchor", "nothing.log"], "no ledger"),
        (["status", "nothing.ledger"], "--anchor"),
        (["restore", "nothing.ledger", "--anchor", "nothing.log"], "--from-anchor"),
    ],
)
def test_mistakes(options: list[str], wrong: str) -> None:
    code, _, problem = run("ledger", *options)
    assert code == 2
    assert wrong in problem
