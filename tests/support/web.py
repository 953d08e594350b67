"""A real web server on this machine that can misbehave, for the tests of downloads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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


@contextmanager
def served(manners: Manners) -> Iterator[str]:
    """Serve `manners.content` at every address below the one returned."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            manners.asked.append(self.path)
            time.sleep(manners.delay)
            if manners.status != 200:
                self.send_error(manners.status)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(manners.content)))
            self.end_headers()
            self.wfile.write(manners.content[: manners.stop_after])

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
