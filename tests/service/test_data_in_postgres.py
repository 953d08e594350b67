"""A service whose data and ledger are in PostgreSQL: restarts, kills, a server that crashes, one writer, migrations."""

from __future__ import annotations

import multiprocessing
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from benchmarks.service_faults import canaries_in, faults_after, killed, later_schema
from goodfence.errors import StoreProblem
from goodfence.service import store
from goodfence.service.records import Said
from goodfence.service.state import Service, ServiceSettings, Serving
from goodfence.service.store import PostgresStore, Writer, migrations
from tests.service.test_deploy import free_port, wait_until_live
from tests.support.postgres import Cluster
from tests.support.service_shop import SETTINGS, fill, opened


@pytest.fixture
def url(postgres: Cluster, tmp_path: Path) -> str:
    """Return the address of an empty database."""
    return postgres.made(re.sub(r"\W", "_", str(tmp_path))[-60:])


@pytest.fixture
def trained_copy(postgres: Cluster, trained_in_postgres: Path, tmp_path: Path) -> tuple[Path, Serving]:
    """Return a folder and an address of a trained service."""
    shutil.copytree(trained_in_postgres, tmp_path / "shop")
    place = postgres.made(re.sub(r"\W", "_", str(tmp_path))[-60:], copied_from="trained")
    return tmp_path / "shop", Serving(data=place, ledger=place)


def _running(sql: str, value: str) -> Callable[[Writer], object]:
    return lambda writer: writer.run(sql, value)


def test_a_restart_keeps_everything_and_forgetting_leaves_nothing(trained_copy: tuple[Path, Serving]) -> None:
    folder, serving = trained_copy
    service = Service(folder, SETTINGS, serving)
    row, key = service.records.save_users(["ann"])[0], service.open_account("bob")[1]
    service.records.save(row, [Said("i1", 4.0), Said("i2", 2.0)], service.scale)
    model = service.model
    service.close()
    service = Service(folder, SETTINGS, serving)
    assert service.model is not None
    assert model is not None
    assert service.model.sha256 == model.sha256
    assert service.records.profile(service.records.user_row("ann")).values.tolist() == [4.0, 2.0]
    assert service.keys.caller(key).user == service.records.user_row("bob")
    service.forget(row)
    for table, column in (("cell", "user_id"), ("account", "id"), ("api_key", "user_id")):
        assert service.store.read(f"SELECT count(*) FROM {table} WHERE {column} = ?", row) == [(0,)]  # noqa: S608
    assert not service.books.verify()
    service.close()


def test_the_address_of_the_database_is_not_recorded(trained_copy: tuple[Path, Serving]) -> None:
    service = Service(trained_copy[0], SETTINGS, trained_copy[1])
    requests = [row[0] for row in service.store.read("SELECT request FROM job")]
    assert requests
    assert not [text for text in requests if "postgresql" in text]
    service.close()


def test_one_service_at_a_time_writes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_PATIENCE", 1)
    first = PostgresStore(url)
    with pytest.raises(StoreProblem, match="another service writes"):
        PostgresStore(url)
    reader = PostgresStore(url, read_only=True)
    assert reader.read("SELECT count(*) FROM cell") == [(0,)]
    reader.close()
    first.close()
    PostgresStore(url).close()


def test_text_that_the_database_cannot_hold(trained_copy: tuple[Path, Serving]) -> None:
    folder, serving = trained_copy
    with opened(folder, data=serving.data, ledger=serving.ledger) as shop:
        assert shop.ask("GET", "/v1/items/%00", "operator").status_code == 404
        assert shop.ask("GET", "/v1/users/%00/recommendations", "backend").status_code == 200
        answer = shop.ask("PUT", "/v1/items/film", "operator", json={"title": "a\0b"})
        assert (answer.status_code, answer.json()["code"]) == (422, "GF704")
        assert shop.ask("GET", "/v1/items/film", "operator").status_code == 404


def test_many_read_while_one_writes(url: str) -> None:
    data, wrong = PostgresStore(url), list[str]()
    data.write(lambda writer: writer.run("INSERT INTO setting (name, value) VALUES ('n', '0')"))

    def read() -> None:
        last = 0
        for _ in range(100):
            now = int(data.read("SELECT value FROM setting WHERE name = 'n'")[0][0])
            wrong.extend(["a commit was undone"] * (now < last))
            last = now

    readers = [threading.Thread(target=read) for _ in range(24)]
    for one in readers:
        one.start()
    for turn in range(100):
        data.write(_running("UPDATE setting SET value = ?", str(turn)))
    for one in readers:
        one.join()
    sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    assert data.read(sql)[0][0] <= store._READERS + 1
    assert not wrong
    data.close()


def test_what_fails_is_undone_alone(url: str) -> None:
    data = PostgresStore(url)

    def work(writer: Any) -> None:
        writer.run("INSERT INTO setting (name, value) VALUES ('half', 'done')")
        writer.run("INSERT INTO setting (name, value) VALUES ('half', 'again')")

    with pytest.raises(psycopg.errors.UniqueViolation):
        data.write(work)
    assert data.read("SELECT * FROM setting") == []
    with pytest.raises(StoreProblem, match="UndefinedTable"):
        data.read("SELECT * FROM nothing")
    data.close()


@pytest.mark.slow
def test_a_server_that_crashes_loses_nothing_acknowledged(postgres: Cluster, url: str) -> None:
    data, saved = PostgresStore(url), list[int]()

    sql = "INSERT INTO setting (name, value) VALUES (?, '')"

    def write() -> None:
        for turn in range(100_000):
            try:
                data.write(_running(sql, str(turn)))
            except StoreProblem:
                return
            saved.append(turn)

    writing = threading.Thread(target=write)
    writing.start()
    while len(saved) < 200:
        time.sleep(0.01)
    postgres.stop("immediate")
    writing.join()
    with pytest.raises(StoreProblem):
        data.read("SELECT 1")
    postgres.start()
    kept = {int(row[0]) for row in data.read("SELECT name FROM setting")}
    assert set(saved) <= kept
    assert len(kept) <= len(saved) + 1  # one was committed, perhaps, and not acknowledged
    data.write(lambda writer: writer.run("DELETE FROM setting"))
    assert data.read("SELECT * FROM setting") == []
    data.close()


def _write_until_killed(folder: Path, serving: Serving, told: Any) -> None:
    service = Service(folder, SETTINGS, serving)
    for turn in range(100_000):
        rows = [(f"k{turn}-{user}", Said(f"i{user % 30}", 3.0)) for user in range(50)]
        service.records.save_bulk(rows, service.scale)
        told.send(turn)


@pytest.mark.slow
def test_a_kill_while_writing_loses_nothing_acknowledged(trained_copy: tuple[Path, Serving]) -> None:
    folder, serving = trained_copy
    for _ in range(3):
        here, there = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=_write_until_killed, args=(folder, serving, there))
        child.start()
        there.close()
        last = here.recv()
        while last < 20:
            last = here.recv()
        child.kill()
        child.join()
        while here.poll():
            try:
                last = here.recv()
            except EOFError:
                break
        service = Service(folder, SETTINGS, serving)
        sql = "SELECT split_part(ext, '-', 1), count(*) FROM cell JOIN account ON account.id = user_id "
        found: dict[str, int] = dict(service.store.read(f"{sql} WHERE ext LIKE 'k%' GROUP BY 1"))
        assert set(found.values()) == {50}
        assert {f"k{turn}" for turn in range(last + 1)} <= found.keys()
        service.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["training", "import"])
@pytest.mark.parametrize("after", [0.1, 1.0])
def test_a_kill_leaves_nothing_half_done(kind: str, after: float, trained_copy: tuple[Path, Serving]) -> None:
    killed(kind, trained_copy[0], after, "both", trained_copy[1])
    assert not faults_after(kind, trained_copy[0], 1, trained_copy[1])


@pytest.mark.slow
def test_no_canary_is_told_to_anybody_else(url: str, tmp_path: Path) -> None:
    settings = ServiceSettings(scale=(1.0, 5.0, 0.0625))
    with opened(tmp_path / "shop", settings, self_service=True, data=url, ledger=url) as shop:
        fill(shop)
        lines, _, wrong = canaries_in(shop, 500)
    assert not wrong
    assert lines >= 500


def test_an_older_schema_comes_up_to_date(url: str, tmp_path: Path) -> None:
    service = Service(tmp_path / "shop", SETTINGS, Serving(data=url))
    service.records.save_items([{"item": "film"}])
    service.records.save_bulk([("ann", Said("film", 4.0))], service.scale)
    service.close()
    with later_schema():
        data = PostgresStore(url)
        assert data.read("SELECT twice FROM cell") == [(8.0,)]
        data.close()
    with pytest.raises(StoreProblem, match="another version"):  # the older program on the newer schema
        PostgresStore(url)


def test_a_migration_that_fails_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PostgresStore(url).close()
    known = migrations("postgres")
    broken = "CREATE TABLE more (one BIGINT);\nINSERT INTO nothing VALUES (1);\n"
    monkeypatch.setattr(store, "migrations", lambda _: [*known, (len(known) + 1, broken, "later")])
    with pytest.raises(StoreProblem, match="UndefinedTable"):
        PostgresStore(url)
    monkeypatch.undo()
    data = PostgresStore(url)
    assert data.read("SELECT to_regclass('goodfence_service.more') IS NULL") == [(True,)]
    data.close()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_both_dialects_have_the_same_tables(dialect: str) -> None:
    def columns(text: str) -> dict[str, list[str]]:
        made = re.findall(r"CREATE TABLE (\w+) \((.*?)\)[^)]*;\n", text, re.DOTALL)
        words = {name: re.findall(r"(?:^|,)\s*([a-z_0-9]+) [A-Z]", body) for name, body in made}
        return {name: [word for word in found if word != "rowid"] for name, found in words.items()}

    found, other = (columns("".join(text for _, text, _ in migrations(each))) for each in (dialect, "sqlite"))
    assert len(found) == 12
    assert found == other


@pytest.mark.slow
def test_the_command_serves_from_postgres(url: str, tmp_path: Path) -> None:
    port = free_port()
    words = ["serve", str(tmp_path / "shop"), "--data", url, "--ledger", url, "--port", str(port)]
    running = subprocess.Popen([sys.executable, "-m", "goodfence", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        key = re.findall(r"gfk_\S+", running.stdout.readline())[0]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"X-API-Key": key}, trust_env=False) as client:
            wait_until_live(client)
            client.put("/v1/items/film", json={"title": "A film"}).raise_for_status()
            client.post("/v1/users/ann/events", json={"events": [{"item": "film", "value": 4}]}).raise_for_status()
            job = client.post("/v1/models?wait=60", json={}, timeout=90).json()["job"]
            assert job["state"] == "done", job
        running.terminate()
        running.wait(30)
    finally:
        running.kill()
        running.communicate()
    assert not (tmp_path / "shop" / "data.db").exists()
    assert not (tmp_path / "shop" / "privacy.ledger").exists()
    data = PostgresStore(url)
    assert data.read("SELECT value FROM cell") == [(4.0,)]
    data.close()
