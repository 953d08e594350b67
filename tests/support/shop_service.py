"""A shop behind a real web server on this machine: accounts click, and are shown lists in the shop's own shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
from scipy import sparse

import goodfence as gf
from tests.support.web import QuietHandler, running

MAPPING = """
settle = 0

[open]
method = "POST"
path = "/v1/accounts/{user}/clicks"
body = {clicked = "$items", source = "web"}

[close]
method = "DELETE"
path = "/v1/accounts/{user}"

[learn]
path = "/v1/retrain"

[list]
method = "GET"
path = "/v1/accounts/{user}/shelf?size={n}"
items = "shelf.entries.*.sku"
"""


def write_mapping(folder: Path, text: str = MAPPING) -> Path:
    """Write the file that says how the shop is asked."""
    path = folder / "shop.toml"
    path.write_text(text)
    return path


@dataclass
class Shop:
    """User-based kNN on what accounts clicked, learnt when it is asked to."""

    k: int = 4
    clicks: dict[str, list[str]] = field(default_factory=dict)
    """What each account clicked."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Every question: method and path."""
    model: Any = None

    def answer(self, method: str, path: str, sent: Any) -> tuple[int, bytes]:
        """Return status and body."""
        parts = urlsplit(path)
        words = [unquote(word) for word in parts.path.split("/")[1:]]
        if words == ["v1", "retrain"]:
            self.model = self.learnt()
            return 202, b""
        account = words[2]
        if method == "DELETE":
            return (204, b"") if self.clicks.pop(account, None) else (404, b"")
        if method == "POST":
            self.clicks[account] = sent["clicked"]
            return 201, b"{}"
        size = int(parse_qs(parts.query)["size"][0])
        entries = [{"sku": str(item)} for item in self.model.recommend(account, size).items]
        return 200, json.dumps({"shelf": {"entries": entries, "seed": 3}}).encode()

    def learnt(self) -> Any:
        """Return the model of all accounts."""
        users = sorted(self.clicks, key=place_of)
        items = sorted({item for held in self.clicks.values() for item in held})
        held = np.zeros((len(users), len(items)))
        for row, user in enumerate(users):
            held[row, [items.index(item) for item in self.clicks[user]]] = 1
        events = gf.Ratings(sparse.csr_array(held), users, items, feedback="implicit")
        return gf.NeighbourCF(gf.KNN(k=self.k), progress=False, threads=1).fit(events)


def place_of(account: str) -> tuple[bool, int]:
    """Return where an account is among the rows: people by their number, then fakes by theirs."""
    return "fake" in account, int(account.rpartition(" ")[2])


@contextmanager
def serving(shop: Shop) -> Iterator[str]:
    """Serve, and return the address."""

    class Handler(QuietHandler):
        def _do(self) -> None:
            shop.asked.append((self.command, self.path))
            self.reply(*shop.answer(self.command, self.path, self.received()))

        do_GET = do_POST = do_DELETE = _do  # noqa: N815 - names of the server

    with running(Handler) as address:
        yield address
