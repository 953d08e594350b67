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
    ranges: bool = True
    """Whether it can send a part."""
    stop_after: int | None = None
    """After how many bytes it hangs up."""
    delay: float = 0.0
    """How many seconds it thinks before it answers."""
    wrong_range: bool = False
    """Whether it sends another part than was asked for."""
    asked: list[str | None] = field(default_factory=list)
    """The Range header of each question."""


class Server(ThreadingHTTPServer):
    """A server that does not complain when somebody hangs up."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing."""


@contextmanager
def served(manners: Manners) -> Iterator[str]:
    """Serve `manners.content` at every address below the one returned."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            manners.asked.append(wanted)
            time.sleep(manners.delay)
            if manners.status != 200:
                self.send_error(manners.status)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            self._send(start if manners.ranges else 0, partial=manners.ranges and bool(wanted))

        def _send(self, start: int, *, partial: bool) -> None:
            content = manners.content
            if start >= len(content) > 0:
                self.send_error(416)
                return
            self.send_response(206 if partial else 200)
            stated = 0 if manners.wrong_range else start
            if partial:
                self.send_header(
                    "Content-Range", f"bytes {stated}-{len(content) - 1}/{len(content)}"
                )
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            stop = len(content) if manners.stop_after is None else start + manners.stop_after
            self.wfile.write(content[start:stop])

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
