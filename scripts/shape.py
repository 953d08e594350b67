"""Print the size and the surface of goodfence beside their budgets; exit with 1 if a budget is exceeded.

A basename may repeat where one folder mirrors another: kernels/draw.py is the compiled part of neighbours/draw.py,
cli/audit.py the command of auditing/audit.py, spark/all_pairs.py the cluster's form of neighbours/all_pairs.py.

    .venv/bin/python scripts/shape.py [--where] [--json]
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "goodfence"
MANY_PARAMETERS = 8
MIRRORS = ("cli", "kernels", "spark")
"""Folders whose files may have the name of what they mirror."""
APART = ("papers", "spark", "ledger", "service")
"""Packages with a budget of their own."""
LIMITS = {
    "files in src": 225,
    "lines in src": 47_400,
    "lines of the core": 33_720,  # the rooms of 0.3 without papers, spark, ledger and service; it should fall again
    "lines of spark": 3_430,
    "lines of the ledger": 1_550,
    "lines of the service": 4_370,
    "public names in gf": 45,
    "commands": 15,
    "options of audit": 25,
    "functions with 8 or more parameters": 10,
    "lines of the longest function": 60,
    "highest complexity": 15,
    "public function names with two definitions": 0,
    "classes and types defined twice": 0,
    "basenames used for two things": 0,
    "words in README.md": 700,
    "words in docs outside tables": 30_000,
}
_BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.Assert)
Found = dict[str, tuple[int, list[str]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--where", action="store_true", help="name the places behind each figure")
    options = parser.parse_args()
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))}
    found = {**sizes(trees), **surface(), **functions(trees), **repeated(trees), **words()}
    above = [name for name, (value, _) in found.items() if value > LIMITS.get(name, value)]
    if options.json:
        print(json.dumps({name: value for name, (value, _) in found.items()}, indent=2))
    else:
        print("  value  at most")
        for name, (value, places) in found.items():
            limit = f"{LIMITS[name]:,}" if name in LIMITS else ""
            print(f"{value:>7,}  {limit:>7}  {name}{'  <-- above' if name in above else ''}")
            for place in places if options.where else []:
                print(f"{'':20}{place}")
    sys.exit(bool(above))


def sizes(trees: dict[Path, ast.Module]) -> Found:
    lines = {file: file.read_text(encoding="utf-8").count("\n") for file in trees}
    rooms: collections.Counter[str] = collections.Counter()
    for file, n in lines.items():
        parts = file.relative_to(SOURCE).parts
        rooms[parts[0] if len(parts) > 1 else "top level"] += n
    core = sum(n for room, n in rooms.items() if room not in APART)
    return {
        "files in src": (len(trees), []),
        "lines in src": (sum(lines.values()), [f"{room}: {n:,}" for room, n in rooms.items()]),
        "lines of the core": (core, []),
        "lines of spark": (rooms["spark"], []),
        "lines of the ledger": (rooms["ledger"], []),
        "lines of the service": (rooms["service"], []),
    }


def surface() -> Found:
    import typer.main

    import goodfence
    from goodfence.cli import app

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = [one for one in commands["audit"].params if one.param_type_name == "option"]
    return {
        "public names in gf": (len(goodfence.__all__), list(goodfence.__all__)),
        "commands": (len(commands), list(commands)),
        "options of audit": (len(options), [one.opts[0] for one in options]),
    }


def functions(trees: dict[Path, ast.Module]) -> Found:
    rows = [
        (f"{short(file)}:{node.name}", n_parameters(node), n_lines(node), complexity(node))
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]
    many = [f"{place} ({n})" for place, n, _, _ in rows if n >= MANY_PARAMETERS]
    longest = sorted(rows, key=lambda row: -row[2])[:8]
    knotted = sorted(rows, key=lambda row: -row[3])[:8]
    return {
        f"functions with {MANY_PARAMETERS} or more parameters": (len(many), many),
        "lines of the longest function": (longest[0][2], [f"{row[0]} ({row[2]})" for row in longest]),
        "highest complexity": (knotted[0][3], [f"{row[0]} ({row[3]})" for row in knotted]),
    }


def n_parameters(node: ast.FunctionDef) -> int:
    listed = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return len([one for one in listed if one.arg not in ("self", "cls")])


def n_lines(node: ast.FunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def complexity(node: ast.FunctionDef) -> int:
    """McCabe's number: one, and one more for each branch."""
    n = 1
    for inner in ast.walk(node):
        n += isinstance(inner, _BRANCHES)
        n += len(inner.values) - 1 if isinstance(inner, ast.BoolOp) else 0
    return n


def repeated(trees: dict[Path, ast.Module]) -> Found:
    """Public functions, classes and basenames that stand for two things."""
    stems, kinds, verbs = (collections.defaultdict(list) for _ in range(3))
    for file, tree in trees.items():
        if not file.name.startswith("__"):
            stems[file.stem].append(short(file))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                kinds[node.name].append(short(file))
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                kinds[ast.unparse(node.target)].append(short(file))
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                verbs[node.name].append(short(file))
    return {
        "public function names with two definitions": twice(verbs),
        "classes and types defined twice": twice(kinds),
        "basenames used for two things": twice({stem: unmirrored(stems[stem]) for stem in stems}),
    }


def unmirrored(files: list[str]) -> list[str]:
    """Return the files of one name without those that mirror another of them, or a folder (models/private)."""
    folder = any(one.is_dir() and one.name == Path(files[0]).stem for one in SOURCE.glob("*/*"))
    return [file for file in files if file.split("/")[0] not in MIRRORS] or ([] if folder else files)


def twice(places: dict[str, list[str]]) -> tuple[int, list[str]]:
    found = [f"{name}: {', '.join(files)}" for name, files in places.items() if len(files) > 1]
    return len(found), found


def words() -> Found:
    """Words of the README, and of the documentation without its tables."""
    pages = {page: prose(page) for page in sorted((ROOT / "docs").rglob("*.md"))}
    longest = sorted(pages, key=lambda page: -pages[page])
    return {
        "words in README.md": (len((ROOT / "README.md").read_text(encoding="utf-8").split()), []),
        "words in docs outside tables": (
            sum(pages.values()),
            [f"{page.relative_to(ROOT)}: {pages[page]:,}" for page in longest],
        ),
    }


def prose(page: Path) -> int:
    """Count the words outside tables; commands and their output count too."""
    return len(re.sub(r"^\|.*$", "", page.read_text(encoding="utf-8"), flags=re.M).split())


def short(file: Path) -> str:
    return file.relative_to(SOURCE).as_posix()


if __name__ == "__main__":
    main()
