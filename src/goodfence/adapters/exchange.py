"""One question over HTTP with a limit of time and of size, and one error for all that can go wrong."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any

from goodfence.adapters.problem import BlackBoxProblem
from goodfence.data.limits import readable

_CHUNK = 2**16


class _Here(urllib.request.HTTPRedirectHandler):
    """Ratings go where they were sent, and nowhere else."""

    def redirect_request(self, *_arguments: Any, **_more: Any) -> None:
        """Follow nobody."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Posts JSON to one address."""

    url: str
    timeout: float
    max_bytes: int

    def post(self, body: bytes, headers: Mapping[str, str], *, where: str) -> bytes:
        """Return the body of the answer; an error names `where`, and nothing that was sent or received."""
        stated = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        request = urllib.request.Request(  # noqa: S310 - the endpoint is http or https
            self.url, data=body, headers=stated, method="POST"
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Here())
        deadline = time.monotonic() + self.timeout
        try:
            with opener.open(request, timeout=self.timeout) as response:
                return self._read(response, deadline)
        except BlackBoxProblem as problem:
            raise BlackBoxProblem(f"the recommender at {where} {problem}") from None
        except urllib.error.HTTPError as error:
            error.close()
            raise BlackBoxProblem(
                f"the recommender at {where} must answer with status 200, got {error.code}"
            ) from None
        except (OSError, HTTPException) as error:
            raise BlackBoxProblem(
                f"the recommender at {where} must be reached within {self.timeout:g} seconds, and was not "
                f"({_kind(error)})"
            ) from None

    def _read(self, response: HTTPResponse, deadline: float) -> bytes:
        """Read to the end, but no longer than the deadline and no more than the limit."""
        if response.status != 200:
            raise BlackBoxProblem(f"must answer with status 200, got {response.status}")
        parts, n_bytes = [], 0
        while part := response.read1(_CHUNK):
            n_bytes += len(part)
            if n_bytes > self.max_bytes:
                limit = readable(self.max_bytes)
                raise BlackBoxProblem(f"must answer with at most {limit}, and sent more")
            if time.monotonic() > deadline:
                raise BlackBoxProblem(f"must answer within {self.timeout:g} seconds, and did not")
            parts.append(part)
        whole = response.length in (None, 0)  # what is left of the stated length
        if not whole:
            raise BlackBoxProblem("must send the whole answer, and hung up")
        return b"".join(parts)


def _kind(error: BaseException) -> str:
    """Return what kind of failure it was; its text may quote what was sent."""
    reason = getattr(error, "reason", None)
    return type(reason if isinstance(reason, BaseException) else error).__name__
