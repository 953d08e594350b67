"""`goodfence explain`: every error and every mechanism has its text, and the document holds the same."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import goodfence
from goodfence.cli.explain import explanations, promised
from goodfence.cli.recipes import NAMES
from goodfence.errors import GoodfenceError
from tests.cli.running import run
from tests.shown.errors_page import error_index

ROOT = Path(__file__).parents[2]
ERRORS, MECHANISMS = explanations("errors"), explanations("mechanisms")
PRINTED = {"GF100": 2, "GF130": 130, "GF999": 70}
"""What only the command line prints."""


def _kinds(kind: type[GoodfenceError]) -> Iterator[type[GoodfenceError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def all_kinds() -> list[type[GoodfenceError]]:
    for module in pkgutil.walk_packages(goodfence.__path__, "goodfence."):
        try:
            importlib.import_module(module.name)
        except ImportError:  # an adapter whose library is not installed
            assert "adapters" in module.name
    return [kind for kind in _kinds(GoodfenceError) if kind.__module__.startswith("goodfence.")]


def test_every_error_has_its_own_code_and_text() -> None:
    codes = {kind.code: kind.exit_code for kind in all_kinds()}
    assert len(codes) == len(all_kinds())
    assert {**codes, **PRINTED} == {code: text["exit"] for code, text in ERRORS.items()}
    assert all(re.fullmatch(r"GF\d{3}", code) for code in ERRORS)


def test_no_other_code_is_anywhere() -> None:
    sources = (path.read_text() for path in Path(goodfence.__path__[0]).rglob("*.py"))
    found = {code for text in sources for code in re.findall(r"\bGF\d{3}\b", text)}
    assert found <= set(ERRORS)


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_is_explained(code: str) -> None:
    done, stdout, stderr = run("explain", code.lower())
    assert (done, stderr) == (0, "")
    assert stdout.startswith(f"  {code}")
    assert ERRORS[code]["title"] in stdout
    told = json.loads(run("explain", code, "--json")[1])
    assert told == {"code": code, **ERRORS[code]}


@pytest.mark.parametrize("name", NAMES)
def test_a_mechanism_is_explained_with_its_promise(name: str) -> None:
    done, stdout, stderr = run("explain", name.upper().replace("-", "_"))
    assert (done, stderr) == (0, "")
    assert f"Promise   {promised(name).status}" in stdout
    assert json.loads(run("explain", name, "--json")[1])["guarantee"]["reason"]


def test_all_mechanisms_have_a_text() -> None:
    assert list(MECHANISMS) == list(NAMES)


def test_the_python_line_is_python() -> None:
    names = {"gf": goodfence}
    for name, text in MECHANISMS.items():
        made = eval(text["python"], names)  # noqa: S307 - our own file
        assert made.guarantee() == promised(name)


def test_what_can_be_explained_is_listed() -> None:
    _, stdout, _ = run("explain")
    assert len(stdout.splitlines()) == len(ERRORS) + len(MECHANISMS)
    assert list(json.loads(run("explain", "--json")[1])) == [*MECHANISMS, *ERRORS]


def test_the_error_index_is_up_to_date() -> None:
    assert (ROOT / "docs" / "errors.md").read_text() == error_index(ERRORS)
