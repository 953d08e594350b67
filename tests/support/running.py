"""Running the command line in this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from goodfence.cli import app


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def run_json(*arguments: object) -> Any:
    code, stdout, stderr = run(*arguments, "--json")
    assert code in (0, 1), stderr
    return json.loads(stdout, parse_constant=no_constant)


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
