"""One process that serves: the first key, the demo's data, uvicorn, and a graceful stop."""

from __future__ import annotations

import math
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvicorn

from goodfence.data.load import load
from goodfence.errors import SettingError, require
from goodfence.ledger.costs import MOST_COST, epsilon_of, slack_of
from goodfence.models.method import parsed
from goodfence.models.private.base import FROM_RATINGS
from goodfence.service.access import OPERATOR
from goodfence.service.application import application
from goodfence.service.learning import FITS
from goodfence.service.records import Said
from goodfence.service.state import Service, ServiceSettings

DEMO = {"scale": (0.0, 10.0, 1.0)}
"""The settings of the bundled films, as far as they are not the usual ones."""
CODE_LASTS = 600.0
_GRACE = 10
_BATCH = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a service listens."""

    host: str = "127.0.0.1"
    port: int = 8000
    demo: bool = False


def settings_of_service(given: dict[str, Any]) -> ServiceSettings:
    """Return the settings of a new folder; the cap is that of the method unless it is given."""
    told = dict(given)
    if told.get("feedback") == "implicit":
        told.setdefault("method", "private-top-n epsilon=1")
    settings = ServiceSettings(**{name: value for name, value in told.items() if name != "cap"})
    recommender = parsed(settings.method, public={"items": FROM_RATINGS}).recommender
    epsilon, delta = getattr(recommender, "epsilon", 1.0), getattr(recommender, "delta", 1e-5)
    most = math.floor(epsilon_of(MOST_COST, slack_of(2**24) * FITS, delta))  # with room for so many items
    cap = float(told.get("cap", epsilon))
    require(0 < cap <= most, "cap", f"an epsilon above 0 and at most {most}, which is all that a ledger counts", cap)
    return ServiceSettings(**{**told, "cap": (cap, float(delta))})


def serve_until_stopped(
    service: Service, listening: Listening, announce: Callable[[str, str | None, str | None], None]
) -> None:
    """Serve until told to stop; then finish what was accepted."""
    bound = _bound(service, listening)  # before a key is made, which is shown once
    key = service.keys.make(OPERATOR) if not len(service.keys) else None
    code = entrance(service, key) if key is not None else None
    if listening.demo and not service.records.item_rows:
        fill_with_films(service)
        service.begin_training()
    config = uvicorn.Config(
        application(service),
        loop="uvloop",
        http="httptools",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=30,
        limit_concurrency=1024,
    )
    server = uvicorn.Server(config)
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    threading.Thread(
        target=_tell_when_up, args=(server, lambda: announce(f"http://{host}:{_port(server)}", key, code)), daemon=True
    ).start()
    server.run(sockets=[bound])
    if not server.started:
        service.close()


def _bound(service: Service, listening: Listening) -> socket.socket:
    """Return a socket with the address, on which nothing is answered yet."""
    made = socket.socket(socket.AF_INET6 if ":" in listening.host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((listening.host, listening.port))
    except (OSError, OverflowError) as problem:
        made.close()
        service.close()
        why = getattr(problem, "strerror", None) or "a port is a number up to 65535"
        raise SettingError(f"cannot listen there ({why}); choose another --port or --host") from None
    return made


def _tell_when_up(server: uvicorn.Server, tell: Callable[[], None]) -> None:
    while not server.started and not server.should_exit:
        time.sleep(0.02)
    if server.started:
        tell()


def _port(server: uvicorn.Server) -> int:
    return int(server.servers[0].sockets[0].getsockname()[1])


def entrance(service: Service, key: str) -> str:
    """Return a code that opens the page once with this key."""
    code = secrets.token_urlsafe(18)
    service.codes[code] = (key, time.time() + CODE_LASTS)
    return code


def fill_with_films(service: Service) -> None:
    """Fill a service with the bundled films: a catalogue with titles, and what users rated."""
    films = load("movietweetings")
    items = [str(item) for item in films.items.tolist()]
    service.records.save_items(
        [{"item": item, "title": films.title(own)} for item, own in zip(items, films.items.tolist(), strict=True)]
    )
    csr, users = films.csr.tocoo(), films.users.tolist()
    rows = [
        (f"film-fan-{users[row]}", Said(items[column], float(value)))
        for row, column, value in zip(csr.row.tolist(), csr.col.tolist(), csr.data.tolist(), strict=True)
    ]
    for first in range(0, len(rows), _BATCH):
        service.records.save_bulk(rows[first : first + _BATCH], service.scale)
