"""Print how large and how tangled the source is: files, lines, what a call touches, repeated names, long functions.

A basename counts as used for two things where two folders have a file of that name, except where a kernel, a command
or Spark mirrors the library's file: kernels/draw.py is the compiled part of neighbours/draw.py, cli/audit.py the
command of audit/audit.py, spark/all_pairs.py the work of neighbours/all_pairs.py on a cluster. These are one thing,
found at its name in the folder where one looks for it.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "goodfence"
MANY_PARAMETERS = 8
SMALL = 50
MIRRORS = ("cli", "kernels", "spark")
"""Folders whose files may have the name of what they mirror."""
LIMITS = {
    "files in src": 150,
    "lines in src": 26_500,
    "basenames used for two things": 5,
    "classes and types defined twice": 0,
    "functions with 8 or more parameters": 15,
    "lines of the longest function": 60,
    "highest complexity": 15,
    "files touched by audit -o": 75,
    "files touched by NeighbourCF": 20,
    "files touched by PrivateCF": 20,
}
"""The most of each that is wanted."""
_BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.comprehension,
    ast.Assert,
)

# Each call runs in a process of its own, which then says in how many files of goodfence a function ran.
_RATINGS = """
import numpy as np
import pyarrow as pa
import goodfence as gf
chance = np.random.default_rng(7)
cells = chance.choice(60 * 40, 900, replace=False)
frame = pa.table({"user": cells // 40, "item": cells % 40, "rating": chance.integers(1, 6, 900)})
ratings = gf.Ratings.from_frame(frame, scale=gf.Scale(1, 5))
"""
CALLS = {
    "audit -o": """
import sys
from goodfence.cli import main
sys.argv = ["goodfence", "audit", "movietweetings", "--targets", "5", "--seed", "7", "--quiet", "-o", PAGE]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
""",
    "NeighbourCF": f"""{_RATINGS}
model = gf.NeighbourCF(gf.KNN(k=5), rng=7).fit(ratings)
model.predict(ratings.users[:3], ratings.items[:3])
""",
    "PrivateCF": f"""{_RATINGS}
model = gf.PrivateCF(epsilon=1.0, delta=1e-5, unit="rating", items="from ratings", rng=7).fit(ratings)
model.recommend(ratings.users[0], n=3)
""",
}
_TRACED = """
import sys, threading
ran = set()
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and "/goodfence/" in code.co_filename:
        ran.add(code.co_filename)
threading.setprofile(note)
sys.setprofile(note)
import atexit
atexit.register(lambda: print(len(ran), file=sys.stderr))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument(
        "--where", action="store_true", help="also name the places behind each figure"
    )
    options = parser.parse_args()
    trees = {
        file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))
    }
    found = {**sizes(trees), **repeated(trees), **functions(trees)}
    found |= {f"files touched by {name}": (touched(call), []) for name, call in CALLS.items()}
    if options.json:
        print(json.dumps({name: value for name, (value, _) in found.items()}, indent=2))
        return
    print("  value  at most")
    for name, (value, places) in found.items():
        limit = LIMITS.get(name)
        above = "  <-- above" if limit is not None and value > limit else ""
        print(f"{value:>7,}  {'' if limit is None else format(limit, ','):>7}  {name}{above}")
        for place in places if options.where else []:
            print(f"                    {place}")


Found = dict[str, tuple[int, list[str]]]


def sizes(trees: dict[Path, ast.Module]) -> Found:
    lines = {file: file.read_text(encoding="utf-8").count("\n") for file in trees}
    small = [short(file) for file, n in lines.items() if n <= SMALL and file.name != "__init__.py"]
    return {
        "files in src": (len(trees), []),
        "lines in src": (sum(lines.values()), []),
        f"files of at most {SMALL} lines": (len(small), small),
    }


def repeated(trees: dict[Path, ast.Module]) -> Found:
    """Basenames of two things, and classes and types of one name in two files."""
    stems = collections.defaultdict(list)
    names = collections.defaultdict(list)
    for file, tree in trees.items():
        if not file.name.startswith("__"):
            stems[file.stem].append(short(file))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names[node.name].append(short(file))
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                names[ast.unparse(node.target)].append(short(file))
    return {
        "basenames used for two things": listed({stem: different(stems[stem]) for stem in stems}),
        "classes and types defined twice": listed(names),
    }


def different(files: list[str]) -> list[str]:
    """Return the files of one name without those that mirror another of them."""
    own = [file for file in files if file.split("/")[0] not in MIRRORS]
    return own or files


def listed(places: dict[str, list[str]]) -> tuple[int, list[str]]:
    twice = [f"{name}: {', '.join(files)}" for name, files in places.items() if len(files) > 1]
    return len(twice), twice


def functions(trees: dict[Path, ast.Module]) -> Found:
    rows = []
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                arguments = node.args
                names = [
                    a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
                ]
                n_parameters = len([name for name in names if name not in ("self", "cls")])
                rows.append(
                    (f"{short(file)}:{node.name}", n_parameters, length(node), complexity(node))
                )
    many = [f"{place} ({n})" for place, n, _, _ in rows if n >= MANY_PARAMETERS]
    longest = sorted(rows, key=lambda row: -row[2])[:8]
    knotted = sorted(rows, key=lambda row: -row[3])[:8]
    return {
        f"functions with {MANY_PARAMETERS} or more parameters": (len(many), many),
        "lines of the longest function": (
            longest[0][2],
            [f"{row[0]} ({row[2]})" for row in longest],
        ),
        "highest complexity": (knotted[0][3], [f"{row[0]} ({row[3]})" for row in knotted]),
    }


def length(node: ast.FunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def complexity(node: ast.FunctionDef) -> int:
    """McCabe's number: one, and one more for each branch."""
    n = 1
    for inner in ast.walk(node):
        n += isinstance(inner, _BRANCHES)
        n += len(inner.values) - 1 if isinstance(inner, ast.BoolOp) else 0
    return n


def touched(call: str) -> int:
    """In how many files of goodfence a function runs when this is called."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"PAGE = {str(Path(folder) / 'page.html')!r}\n{_TRACED}{call}"
        ended = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    return int(ended.stderr.strip().splitlines()[-1])


def short(file: Path) -> str:
    return file.relative_to(SOURCE).as_posix()


if __name__ == "__main__":
    main()
