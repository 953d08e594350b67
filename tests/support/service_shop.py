"""A small service on a port of this machine, as its clients see it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn

from goodfence.service.access import OPERATOR
from goodfence.service.application import Door, application
from goodfence.service.state import Service, ServiceSettings, Serving

SETTINGS = ServiceSettings(method="private-cf epsilon=1", cap=(30.0, 1e-5))
N_USERS, N_ITEMS = 40, 30


@dataclass
class Shop:
    """A service, its application as a client sees it, and a key of each kind."""

    service: Service
    client: httpx.Client
    door: Door
    keys: dict[str, str]

    def ask(self, method: str, path: str, key: str | None = None, **how: Any) -> Any:
        """Return the answer to a request with a key of this kind."""
        headers = dict(how.pop("headers", {}))
        if key is not None:
            headers["Authorization"] = f"Bearer {self.keys[key]}"
        return self.client.request(method, path, headers=headers, **how)

    def told(self, method: str, path: str, key: str | None = None, **how: Any) -> Any:
        """Return the JSON of an answer that must be a good one."""
        answer = self.ask(method, path, key, **how)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None


def events(seed: int = 7) -> list[dict[str, Any]]:
    """Return made-up ratings."""
    generator = np.random.default_rng(seed)
    return [
        {"user": f"u{user}", "item": f"i{item}", "value": float(generator.integers(1, 6))}
        for user in range(N_USERS)
        for item in sorted(generator.choice(N_ITEMS, 12, replace=False).tolist())
    ]


@contextmanager
def listening(door: Door) -> Iterator[str]:
    """Serve an application, and hand out its address."""
    config = uvicorn.Config(door, port=0, log_config=None, access_log=False, loop="uvloop", http="httptools")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def opened(folder: Path, settings: ServiceSettings = SETTINGS, **how: Any) -> Iterator[Shop]:
    """Serve a folder."""
    service = Service(folder, settings, Serving(**how))
    door = application(service)
    keys = {scope: service.keys.make([scope]) for scope in ("backend", "operator", "auditor", "metrics")}
    keys |= {"all": service.keys.make(OPERATOR), "user": service.open_account("u1")[1]}
    with listening(door) as address, httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
        yield Shop(service, client, door, keys)


def fill(shop: Shop) -> None:
    """Declare items and import ratings."""
    items = [{"item": f"i{at}", "title": f"Item {at}", "labels": ["odd"] * (at % 2)} for at in range(N_ITEMS)]
    for what, rows in (("items", items), ("events", events())):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        how = {"content": lines, "headers": {"Content-Type": "application/x-ndjson"}}
        assert shop.told("POST", f"/v1/import/{what}", "operator", **how) == {"imported": len(rows)}
