"""The child process of a service: requests come as lines of JSON, progress and results go out as lines of JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from goodfence.errors import GoodfenceError, ServiceProblem


def work() -> None:
    """Serve requests until the parent closes the pipe."""
    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # nothing else may write among the answers

    def say(**told: Any) -> None:
        out.write(json.dumps(told) + "\n")

    folder = Path(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            say(result=_done(folder, request, say))
        except GoodfenceError as problem:
            say(error={"code": problem.code, "message": str(problem)})
        except Exception as fault:  # its message may quote a rating, so only its type is told
            say(error={"code": ServiceProblem.code, "message": f"a fault of goodfence ({type(fault).__name__})"})


_KINDS = {
    "fit": "learning.learn",
    "update": "learning.learn",
    "audit": "lab.audit_copy",
    "lab": "lab.attack_films",
    "frontier": "lab.compare_films",
}
"""Where each kind of job is done; imported when it is asked for."""


def _done(folder: Path, request: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    module, _, name = _KINDS[request["kind"]].partition(".")
    work: Callable[..., dict[str, Any]] = getattr(import_module(f"goodfence.service.{module}"), name)
    return work(folder, request, say)


if __name__ == "__main__":
    work()
