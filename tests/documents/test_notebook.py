"""The notebooks in examples/ run from top to bottom, and every result shows itself."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from documents.tables import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return what its last expression is, as a notebook does."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<cell>", "exec"), names)  # noqa: S102 - the cells are ours
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_the_cells_of_a_notebook_run_in_order(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "a notebook is kept without outputs"
            result = run_cell("".join(cell["source"]), names)
            show = getattr(result, "_repr_html_", None) or getattr(result, "_repr_mimebundle_", None)
            shown.append(str(show() if show else result))
    assert len(cells) <= 22
    assert sum("<table>" in one for one in shown) >= 8
    assert "proved" in "".join(shown)


def test_there_is_a_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == ["tour.ipynb"]


def test_a_cell_shows_its_last_expression() -> None:
    names: dict[str, Any] = {}
    assert run_cell("a = 3\na + 1", names) == 4
    assert run_cell("b = a", names) is None
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", names)
