"""The promise: a signed certificate of what is guaranteed, and its check from outside.

The check proves the bookkeeping: that the ledger was only ever appended to, stays below its caps, and is the one that
answers name. It cannot prove that noise was drawn.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from goodfence import __version__
from goodfence.data.files import atomic_write
from goodfence.errors import BrokenPromise, MissingExtra, ServiceProblem, SettingError
from goodfence.ledger.chain import Entry, canonical
from goodfence.ledger.costs import epsilon_of
from goodfence.service.chains import checked_chain, spending

if TYPE_CHECKING:
    from goodfence.service.state import Service

FORMAT = 1
NOT_COVERED = (
    "one person who has several accounts",
    "what a user says again after the account was deleted and opened anew",
    "that noise was drawn: the chain proves the bookkeeping only",
)
_PATIENCE, _LARGEST, _PAGE = 20.0, 32 * 2**20, 1000


def certificate(service: Service) -> dict[str, Any]:
    """Return what the service promises, signed if it can be."""
    books, model = service.books, service.model
    paid = {name: {"spent": spent, "cap": cap} for name, (_, spent, cap) in spending(books.entries).items()}
    head = books.entries[-1] if books.entries else None
    told: dict[str, Any] = {
        "format": FORMAT,
        "goodfence": __version__,
        "guarantee": None if model is None else model.guarantee.to_dict(),
        "model": None if model is None else {"id": model.id, "method": model.method, "sha256": model.sha256},
        "cap": {"epsilon": service.settings.cap[0], "delta": service.settings.cap[1], **paid},
        "cap_changes": [entry.facts for entry in books.entries if entry.kind == "cap"],
        "ledger": {"id": books.ledger_id, "seq": head.seq if head else 0, "hash": head.hash.hex() if head else ""},
        "released": [entry.facts["sha256"] for entry in books.entries if entry.kind == "release"],
        "audit": service.last_audit(),
        "not_covered": list(NOT_COVERED),
    }
    return {**told, **signed(told, service.folder / "keys" / "signing")}


def signed(told: dict[str, Any], path: Path) -> dict[str, str | None]:
    """Return public key and signature (Ed25519) of a certificate; None for both without the extra `sign`."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    except ImportError:
        return {"public_key": None, "signature": None}
    from goodfence.service.records import secret_at

    private = Ed25519PrivateKey.from_private_bytes(secret_at(path))
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {"public_key": _text(public), "signature": _text(private.sign(canonical(told).encode()))}


@dataclass(frozen=True, slots=True)
class CheckedPromise:
    """What was found at a service."""

    told: dict[str, Any]
    entries: list[Entry]
    signed: bool
    known_since: int | None
    """The head that was remembered; None for a service that is asked for the first time."""

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        guarantee, head = self.told["guarantee"], self.told["ledger"]["seq"]
        stated = "no model is active" if guarantee is None else _stated(guarantee)
        since = "first seen now" if self.known_since is None else f"grown from entry {self.known_since}"
        sign = "signed" if self.signed else "unsigned"
        return f"{stated}; ledger whole to entry {head}, {since}; certificate {sign}; that noise was drawn is not shown"

    @property
    def spent(self) -> float:
        """The epsilon, for life, of all that was charged."""
        [ticks, slack] = [spent for _, spent, _ in spending(self.entries).values()]
        return epsilon_of(ticks, slack, self.told["cap"]["delta"])


def check_promise(url: str, memory: Path) -> CheckedPromise:
    """Verify the certificate at an address against its chain and what is remembered, and remember its head."""
    told, _ = _got(url, "/v1/promise")
    remembered = json.loads(memory.read_text(encoding="utf-8")) if memory.exists() else {}
    known = remembered.get(url)
    try:
        is_signed = _verified(told, known)
        ledger, entries = told["ledger"], list[dict[str, Any]]()
        while len(entries) < ledger["seq"]:
            part, _ = _got(url, f"/v1/promise/chain?after={len(entries)}")
            if not part["entries"]:
                break
            entries += part["entries"]
        chain = checked_chain(entries, ledger["id"])
        _require_head(chain, ledger, known)
        _, head = _got(url, "/v1/health/live")
        _require_same(chain, head)
    except (KeyError, TypeError, AttributeError):
        raise BrokenPromise("the certificate cannot be read") from None
    kept = {"ledger": ledger["id"], "seq": ledger["seq"], "hash": ledger["hash"], "public_key": told["public_key"]}
    with atomic_write(memory, mode=0o600) as file:
        file.write(json.dumps({**remembered, url: kept}, indent=1).encode())
    return CheckedPromise(told, chain, is_signed, None if known is None else known["seq"])


def _verified(told: dict[str, Any], known: dict[str, Any] | None) -> bool:
    """Return whether the certificate is signed; raise if wrongly, or by another key than is remembered."""
    public, signature = told["public_key"], told["signature"]
    if known is not None and known["public_key"] != public:
        raise BrokenPromise("the service signs with another key than before")
    if signature is None:
        return False
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise MissingExtra('the signature needs the extra "sign": pip install "goodfence[sign]"') from None
    plain = {name: value for name, value in told.items() if name not in ("public_key", "signature")}
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public))
        key.verify(base64.b64decode(signature), canonical(plain).encode())
    except (InvalidSignature, ValueError, TypeError):
        raise BrokenPromise("the signature of the certificate is wrong") from None
    return True


def _require_head(chain: list[Entry], ledger: dict[str, Any], known: dict[str, Any] | None) -> None:
    last = chain[-1]
    if (last.seq, last.hash.hex()) < (ledger["seq"], "") or chain[ledger["seq"] - 1].hash.hex() != ledger["hash"]:
        raise BrokenPromise("the chain does not end where the certificate says")
    if known is None:
        return
    if known["ledger"] != ledger["id"]:
        raise BrokenPromise("the service has begun another ledger: what was spent before is no longer counted")
    if last.seq < known["seq"]:
        raise BrokenPromise("the ledger was put back: entries that were seen before are gone")
    if chain[known["seq"] - 1].hash.hex() != known["hash"]:
        raise BrokenPromise("the ledger was forked: an entry that was seen before is another one now")


def _require_same(chain: list[Entry], head: str) -> None:
    """Raise if ordinary answers name another ledger than the certificate."""
    seq, _, digest = head.partition(":")
    if not seq.isdecimal():
        raise BrokenPromise("ordinary answers do not name the head of the ledger")
    if 0 < int(seq) <= len(chain) and not chain[int(seq) - 1].hash.hex().startswith(digest):
        raise BrokenPromise("ordinary answers name another ledger than the certificate")


def _got(url: str, path: str) -> tuple[Any, str]:
    """Return the JSON of an answer, and the head that it names; no redirection is followed."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError("url must be an address that begins with https:// or http://")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=_PATIENCE)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}{path}", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read(_LARGEST)
        if answer.status != 200:
            raise ServiceProblem(f"the service answered with status {answer.status}")
        return json.loads(body), answer.getheader("Goodfence-Ledger", "")
    except (OSError, HTTPException, ValueError) as problem:
        raise ServiceProblem(f"the service cannot be asked ({type(problem).__name__})") from None
    finally:
        connection.close()


def _stated(guarantee: dict[str, Any]) -> str:
    if guarantee["epsilon"] is None:
        return f"{guarantee['status']}: no guarantee is stated"
    return f"{guarantee['status']}: one {guarantee['unit']}, epsilon {guarantee['epsilon']:g} for life"


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
