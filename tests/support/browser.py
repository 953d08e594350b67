"""A headless Chromium, spoken to over its DevTools pipe: what a reader's browser makes of a page.

The protocol over two pipes needs no driver and no library: one JSON object after the other, each ended by a zero byte.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0


def find_browser() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


@dataclass
class Browser:
    """One page of a browser; `requests` lists every address that it asked for."""

    into: int
    out: int
    requests: list[str] = field(default_factory=list)
    _rest: bytes = b""
    _count: int = 0
    _session: str | None = None
    _events: list[dict[str, Any]] = field(default_factory=list)

    def open_page(self) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Network", "Runtime"):
            self.ask(f"{part}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its answer; events that come before it are kept."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            told = self._read()
            if told.get("id") == self._count:
                assert "error" not in told, told["error"]
                return told["result"]
            self._keep(told)

    def go(self, place: Path | str) -> None:
        """Open a file or an address, and wait until it is loaded."""
        self._events.clear()
        self.ask("Page.navigate", url=place if isinstance(place, str) else place.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._keep(self._read())

    def value(self, expression: str) -> Any:
        """Return what an expression is worth in the page; DevTools may ask even where the page's scripts are off."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def width(self, pixels: int, *, phone: bool = False) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=pixels, height=812, deviceScaleFactor=1, mobile=phone)

    def offline(self) -> None:
        self.ask("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def _keep(self, told: dict[str, Any]) -> None:
        if told.get("method") == "Network.requestWillBeSent":
            self.requests.append(told["params"]["request"]["url"])
        if "method" in told:
            self._events.append(told)

    def _read(self) -> dict[str, Any]:
        late = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.out], [], [], max(late - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            part = os.read(self.out, 1 << 16)
            assert part, "the browser has gone"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told


@contextmanager
def opened(program: str) -> Iterator[Browser]:
    """Start a browser with an empty profile, and end it afterwards."""
    read_commands, into = os.pipe()
    out, write_answers = os.pipe()
    flags = [
        "--headless",
        "--no-sandbox",  # not every machine allows one; the page is our own
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        "--remote-debugging-pipe",
    ]
    # Chromium reads its commands from file 3 and answers on file 4.
    line = f'exec "$0" "$@" 3<&{read_commands} 4>&{write_answers} 2>/dev/null'
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            ["/bin/bash", "-c", line, program, *flags, f"--user-data-dir={profile}"],
            pass_fds=(read_commands, write_answers),
            stdout=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        try:
            browser = Browser(into, out)
            browser.open_page()
            yield browser
        finally:
            process.kill()
            process.wait()
            os.close(into)
            os.close(out)
