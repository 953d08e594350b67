"""The child process of a service: requests come as lines of JSON, progress and results go out as lines of JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
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
            say(result=_KINDS[request["kind"]](folder, request, say))
        except GoodfenceError as problem:
            say(error={"code": problem.code, "message": str(problem)})
        except Exception as fault:  # its message may quote a rating, so only its type is told
            say(error={"code": ServiceProblem.code, "message": f"a fault of goodfence ({type(fault).__name__})"})


def _learn(folder: Path, request: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    from goodfence.service.learning import learn

    return learn(folder, request, say)


def _audit(_: Path, request: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    from goodfence.service.lab import audit_copy

    return audit_copy(request, say)


def _lab(_: Path, request: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    from goodfence.service.lab import attack_films

    return attack_films(request, say)


_KINDS = {"fit": _learn, "update": _learn, "audit": _audit, "lab": _lab}

if __name__ == "__main__":
    work()
