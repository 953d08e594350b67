"""`goodfence explain`: every error has a text, every mechanism one of its own or of its class; the document agrees."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import goodfence
from documents.errors_page import error_index
from goodfence.cli.explain import explanations, guaranteed
from goodfence.errors import GoodfenceError
from goodfence.registry import named
from tests.support.running import run

ROOT = Path(__file__).parents[2]
ERRORS, MECHANISMS = explanations("errors"), explanations("mechanisms")
TERMS = explanations("terms")
EXPLAINED = ("mechanisms", "terms", "errors")
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
        except ImportError:  # what it leans on is not installed
            assert module.name.split(".")[1] in ("adapters", "spark")
    return [kind for kind in _kinds(GoodfenceError) if kind.__module__.startswith("goodfence.")]


def test_every_error_has_its_own_code_and_text() -> None:
    codes = {kind.code: kind.exit_code for kind in all_kinds()}
    assert len(codes) == len(all_kinds())
    assert {kind.__module__ for kind in all_kinds()} == {"goodfence.errors"}  # one tree
    assert {**codes, **PRINTED} == {code: text["exit"] for code, text in ERRORS.items()}
    assert all(re.fullmatch(r"GF\d{3}", code) for code in ERRORS)


def test_no_other_code_is_anywhere() -> None:
    sources = (path.read_text() for path in Path(goodfence.__path__[0]).rglob("*.py"))
    found = {code for text in sources for code in re.findall(r"\bGF\d{3}\b", text)}
    assert found <= set(ERRORS)


def test_a_long_name_stands_apart_from_its_title() -> None:
    assert run("explain", "private-cf")[1].startswith("  private-cf PrivateCF: ")


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_is_explained(code: str) -> None:
    done, stdout, stderr = run("explain", code.lower())
    assert (done, stderr) == (0, "")
    assert stdout.startswith(f"  {code}")
    assert ERRORS[code]["title"] in stdout
    told = json.loads(run("explain", code, "--json")[1])
    assert told == {"code": code, **ERRORS[code]}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_explained_with_its_guarantee(name: str) -> None:
    done, stdout, stderr = run("explain", name.upper().replace("-", "_"))
    assert (done, stderr) == (0, "")
    assert f"Guarantee {guaranteed(MECHANISMS[name]['configuration']).status}" in stdout
    assert json.loads(run("explain", name, "--json")[1])["guarantee"]["reason"]


def test_texts_are_of_mechanisms() -> None:
    assert set(MECHANISMS) <= set(named())


@pytest.mark.parametrize("name", named())
def test_a_mechanism_without_a_text_is_explained_by_its_class(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {kind: {} if kind == "mechanisms" else explanations(kind) for kind in EXPLAINED}
    monkeypatch.setattr("goodfence.cli.explain.explanations", others.__getitem__)
    kind = named()[name]
    done, stdout, stderr = run("explain", name)
    assert (done, stderr) == (0, "")
    assert kind.label in stdout
    assert "Guarantee" in stdout
    told = json.loads(run("explain", name, "--json")[1])
    assert told["does"] == " ".join(str(kind.__doc__).split("\n\n")[0].split())
    known = inspect.signature(kind).parameters
    assert {one.split()[0] for one in told["settings"]} == set(known)
    assert name in json.loads(run("explain", "--json")[1])


def test_the_python_line_is_python() -> None:
    names = {"gf": goodfence}
    for text in MECHANISMS.values():
        made = eval(text["python"], names)  # noqa: S307 - our own file
        assert made.guarantee() == guaranteed(text["configuration"])


def test_what_can_be_explained_is_listed() -> None:
    _, stdout, _ = run("explain")
    listed = {**MECHANISMS, **named()}
    assert len(stdout.splitlines()) == len(ERRORS) + len(listed) + len(TERMS)
    assert list(json.loads(run("explain", "--json")[1])) == [*listed, *TERMS, *ERRORS]


@pytest.mark.parametrize("name", TERMS)
def test_a_term_is_explained(name: str) -> None:
    done, stdout, stderr = run("explain", name)
    assert (done, stderr) == (0, "")
    assert " ".join(TERMS[name]["means"].split()[:5]) in stdout
    assert json.loads(run("explain", name, "--json")[1]) == {"name": name, **TERMS[name]}


def test_epsilon_is_a_term_and_a_mistyped_one_is_suggested() -> None:
    assert "privacy budget" in run("explain", "epsilon")[1]
    assert "did you mean 'epsilon'" in run("explain", "epsilom")[2]


def test_the_error_index_is_up_to_date() -> None:
    assert (ROOT / "docs" / "errors.md").read_text() == error_index(ERRORS)


def test_whose_rs_is_said_where_pncf_is_explained_and_on_its_page() -> None:
    """The paper's figures and the mechanisms' default differ in it, so neither may be silent."""
    page = (ROOT / "docs" / "mechanisms" / "pncf.md").read_text(encoding="utf-8")
    _, told, _ = run("explain", "pncf")
    default = goodfence.Sensitivity().scope
    assert f'`Sensitivity(scope="{default}")`, the default' in page
    assert 'sensitivity=gf.Sensitivity(scope="pair")' in page
    assert "rs_scope" in told
