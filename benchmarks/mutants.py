"""Small changes of the source, one at a time, as a programmer's slip would make them."""

from __future__ import annotations

import ast
import copy
import random
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PRESENTATION = (
    "cli/",
    "report/",
    "__init__.py",
    "__main__.py",
    "markup.py",
    "reproduction/figure_charts.py",
)
"""What prints, draws and parses; strings, errors and docstrings are left alone everywhere."""
ELSEWHERE = ("adapters/lenskit.py", "adapters/surprise.py", "adapters/sklearn.py")
"""Tested beside the libraries that they adapt to, in an environment of their own (`scripts/adapters-test`)."""
SPOKEN = {"__repr__", "__str__", "_repr_html_", "__rich__"}
TOLD = {"warn", "debug", "info", "warning", "TypeVar", "ParamSpec", "NewType"}
"""Calls that only say something."""

CHANGE = ("path", "code", "was", "now")
"""What a change is, wherever its line went."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change: what is replaced in a file, and by what."""

    path: str
    kind: str
    lines: tuple[int, int]
    """First and last line of the statement that it changes."""
    inside: bool
    """Whether it runs when a function is called, and not when the module is imported."""
    code: str
    """The line on which it begins."""
    was: str
    now: str
    span: tuple[int, int]
    """Where it is in the file, in bytes."""

    @property
    def change(self) -> tuple[str, ...]:
        """By what it is found again, wherever its line went."""
        return tuple(str(getattr(self, name)) for name in CHANGE)

    @property
    def name(self) -> str:
        """What it is called in a list of results: the same as long as the file is."""
        change = zlib.crc32(self.now.encode())
        return f"{self.path}:{self.lines[0]}:{self.span[0]}-{self.span[1]} {self.kind} {change:08x}"

    def apply(self, source: bytes) -> bytes:
        """Return the source with the change."""
        start, end = self.span
        return source[:start] + self.now.encode() + source[end:]


def sources(package: Path) -> list[Path]:
    """Return the files that are changed: everything but presentation."""
    return [
        path
        for path in sorted(package.rglob("*.py"))
        if not path.relative_to(package).as_posix().startswith(PRESENTATION)
        and path.name not in ("__init__.py", "__main__.py")
        and path.relative_to(package).as_posix() not in ELSEWHERE
    ]


def sample(package: Path, n: int, seed: int) -> list[Mutant]:
    """Return `n` changes out of all that are possible, in random order."""
    return random.Random(seed).sample(possible(package), n)


def possible(package: Path) -> list[Mutant]:
    """Return every change of every file."""
    return [one for path in sources(package) for one in mutants(path, package)]


def carried(
    package: Path, kept: list[dict[str, Any]], seed: int
) -> tuple[list[tuple[Mutant, dict[str, Any]]], list[Mutant]]:
    """Return the changes of an earlier sample that the source of today still has, and others for those it has not.

    A change is found by its line, what was there and what is there now; where a line has it twice, by where it was in
    the file. The others are the next in a random order of all changes of today: nobody chooses them.
    """
    found = possible(package)
    by_change: dict[tuple[str, ...], list[Mutant]] = defaultdict(list)
    for one in found:
        by_change[one.change].append(one)
    again = []
    for earlier in kept:
        alike = by_change[tuple(earlier[name] for name in CHANGE)]
        if alike:
            span = earlier["name"].split(" ")[0].rpartition(":")[2]
            start = int(span.partition("-")[0])
            nearest = min(alike, key=lambda one: abs(one.span[0] - start))
            alike.remove(nearest)
            again.append((nearest, earlier))
    names = {one.name for one, _ in again}
    shuffled = random.Random(seed).sample(found, len(found))
    new = [one for one in shuffled if one.name not in names]
    return again, new[: len(kept) - len(again)]


def mutants(path: Path, package: Path) -> list[Mutant]:
    """Return every change of a file."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    written = source.decode().split("\n")
    found = []
    for node, changed, kind, lines, inside in _changes(ast.parse(source)):
        span = _span(node, starts)
        text = ast.unparse(ast.fix_missing_locations(changed))
        now = f"({text})" if isinstance(node, ast.expr) else text
        was = " ".join(source[span[0] : span[1]].decode().split())
        found.append(
            Mutant(
                path=path.relative_to(package).as_posix(),
                kind=kind,
                lines=lines,
                inside=inside,
                code=written[source[: span[0]].count(b"\n")].strip(),
                was=was,
                now=now,
                span=span,
            )
        )
    return found


def _span(node: ast.AST, starts: list[int]) -> tuple[int, int]:
    """Return where an expression or a statement begins and ends, in bytes."""
    first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
    begin, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
    return starts[first - 1] + begin, starts[last - 1] + end


Change = tuple[ast.AST, ast.AST, str, tuple[int, int], bool]


def _changes(tree: ast.Module) -> Iterator[Change]:
    yield from _visit(tree, (1, 1), inside=False)


def _visit(node: ast.AST, lines: tuple[int, int], *, inside: bool) -> Iterator[Change]:
    """Yield the changes of a node and of what is below it."""
    if isinstance(node, ast.stmt):
        lines = _lines(node)
    for changed, kind in _changed(node):
        yield node, changed, kind, lines, inside
    function = isinstance(node, ast.FunctionDef | ast.Lambda)
    for child in _below(node):
        deeper = inside or (function and child not in _evaluated_early(node))
        yield from _visit(child, lines, inside=deeper)


def _lines(node: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement; of one with a body, those of its head."""
    body = getattr(node, "body", None)
    last = node.end_lineno or node.lineno
    if isinstance(body, list) and body:
        last = max(node.lineno, body[0].lineno - 1)
    return node.lineno, last


def _evaluated_early(node: ast.AST) -> list[ast.AST]:
    return [node.args] if isinstance(node, ast.FunctionDef) else []


def _below(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children that are logic: no text, no types, no decorators, no errors, nothing that only speaks."""
    skipped: set[str] = set()
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Assert():
            return
        case ast.FunctionDef(name=name) if name in SPOKEN:
            return
        case ast.FunctionDef():
            skipped = {"decorator_list", "returns", "type_params"}
        case ast.ClassDef():
            skipped = {"decorator_list", "bases", "keywords", "type_params"}
        case ast.arg():
            return
        case ast.AnnAssign():
            skipped = {"annotation"}
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in TOLD:
            return
        case ast.Call(func=ast.Name(id="isinstance")):
            return
    for field, value in ast.iter_fields(node):
        if field in skipped:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _changed(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the node as it might have been written by mistake."""
    match node:
        case ast.Compare(ops=ops):
            for at, operator in enumerate(ops):
                others = [*ops[:at], COMPARISONS[type(operator)](), *ops[at + 1 :]]
                yield _with(node, "ops", others), "comparison"
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS and not _typed(node):
            yield _with(node, "op", OPERATORS[type(op)]()), "operator"
        case ast.BoolOp(op=joined):
            either = ast.Or() if isinstance(joined, ast.And) else ast.And()
            yield _with(node, "op", either), "operator"
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield copy.deepcopy(operand), "operator"
        case ast.Constant(value=bool(flag)):
            yield ast.Constant(not flag), "constant"
        case ast.Constant(value=int(number) | float(number)):
            yield ast.Constant(number + 1), "constant"
        case ast.Return(value=value) if value is not None and not _none(value):
            yield ast.Return(ast.Constant(None)), "return"
        case ast.IfExp(test=test):
            yield _with(node, "test", _negated(test)), "condition"
        case ast.Call(keywords=keywords) if not _quiet(node):
            for at, keyword in enumerate(keywords):
                if keyword.arg is not None:
                    yield _with(node, "keywords", keywords[:at] + keywords[at + 1 :]), "argument"


def _with(node: ast.AST, field: str, value: object) -> ast.AST:
    twin = copy.deepcopy(node)
    setattr(twin, field, value)
    return twin


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), copy.deepcopy(test))


def _none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _typed(node: ast.AST) -> bool:
    """Return whether a `|` joins types."""
    joined = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return joined and bool(names & {"str", "int", "float", "None", "Path"})


def _quiet(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "cast")
