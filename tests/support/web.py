"""Real web servers on this machine: what runs them all, and one that can misbehave, for the tests of downloads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Manners:
    """How the server behaves, and what it was asked."""

    content: bytes
    status: int = 200
    """What it answers instead of the file, if not 200."""
    stop_after: int | None = None
    """After how many bytes it hangs up."""
    delay: float = 0.0
    """How many seconds it thinks before it answers."""
    asked: list[str] = field(default_factory=list)
    """The path of each request."""


class Server(ThreadingHTTPServer):
    """A server that does not complain when somebody hangs up."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing."""


class QuietHandler(BaseHTTPRequestHandler):
    """What questions and answers in JSON have in common; nothing is logged."""

    def received(self) -> Any:
        """Return the JSON that was sent, None for none."""
        length = int(self.headers.get("Content-Length") or 0)
        return json.loads(self.rfile.read(length)) if length else None

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None, reason: str | None = None) -> None:
        """Send a whole answer."""
        self.send_response(status, reason)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def running(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server in a thread, and return its address."""
    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def served(manners: Manners) -> Iterator[str]:
    """Serve `manners.content` at every address below the one returned."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            manners.asked.append(self.path)
            time.sleep(manners.delay)
            if manners.status != 200:
                self.send_error(manners.status)
                return
            stated = {"Content-Length": str(len(manners.content))}
            self.reply(200, manners.content[: manners.stop_after], stated)

    with running(Handler) as address:
        yield address
