"""The unit and the container file: what they name is there, and the command they run serves and stops without loss."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "deploy" / "goodfence.service").read_text(encoding="utf-8")
CONTAINER = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def of_unit() -> list[str]:
    return shlex.split(re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)[0])


def of_container() -> list[str]:
    found: list[str] = json.loads(re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)[0])
    return found


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    here = UNIT.replace("/usr/local/bin/goodfence", sys.executable).replace("User=goodfence", "User=root")
    (tmp_path / "goodfence.service").write_text(here)
    assert [line for line in UNIT.splitlines() if line.startswith("[")] == ["[Unit]", "[Service]", "[Install]"]
    if shutil.which("systemd-analyze") is None:
        return
    verify = [str(shutil.which("systemd-analyze")), "verify", "--man=no", str(tmp_path / "goodfence.service")]
    told = subprocess.run(verify, capture_output=True, text=True)
    assert not [line for line in told.stderr.splitlines() if "goodfence.service" in line]
    assert told.returncode == 0, told.stderr


def test_the_container_file_copies_what_is_there() -> None:
    for line in re.findall(r"^COPY (.*)$", CONTAINER, re.MULTILINE):
        for part in line.split()[:-1]:
            assert (ROOT / part).exists(), part
    assert re.findall(r"^EXPOSE (\d+)$", CONTAINER, re.MULTILINE) == ["8000"]
    assert re.findall(r"^STOPSIGNAL (\w+)$", CONTAINER, re.MULTILINE) == ["SIGTERM"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [of_unit(), of_container()], ids=["unit", "container"])
def test_the_command_serves_and_stops_without_loss(command: list[str], tmp_path: Path) -> None:
    assert Path(command[0]).name == "goodfence"
    here = [str(tmp_path / Path(word).name) if word.startswith("/") else word for word in command[1:]]
    words = [sys.executable, "-m", "goodfence", *("127.0.0.1" if word == "0.0.0.0" else word for word in here)]  # noqa: S104
    port = free_port()
    running = subprocess.Popen([*words, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        key = re.findall(r"gfk_\S+", running.stdout.readline())[0]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"X-API-Key": key}, trust_env=False) as client:
            wait_until_live(client)
            if "HEALTHCHECK" in CONTAINER and "--host" in command:
                check = json.loads(re.findall(r"^HEALTHCHECK CMD (.*)$", CONTAINER, re.MULTILINE)[0])
                check = [sys.executable, *(part.replace(":8000/", f":{port}/") for part in check[1:])]
                assert subprocess.run(check).returncode == 0
            client.put("/v1/items/film", json={"title": "A film"}).raise_for_status()
            client.post("/v1/users/ann/events", json={"events": [{"item": "film", "value": 4}]}).raise_for_status()
            running.send_signal(signal.SIGTERM)
        assert running.wait(30) in (0, -signal.SIGTERM)  # the server tells its parent why it ended
    finally:
        running.kill()
        running.communicate()
    from goodfence.service.state import Service

    service = Service(tmp_path / "shop")
    assert service.records.profile(service.records.user_row("ann")).values.tolist() == [4.0]
    service.close()


def wait_until_live(client: httpx.Client) -> None:
    late = time.monotonic() + 60
    while time.monotonic() < late:
        try:
            client.get("/v1/health/live").raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the service does not answer")
