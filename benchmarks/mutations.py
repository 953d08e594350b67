"""How many random mutations of the source the tests notice: one operator, constant, return or argument each.

The source is copied and changed there. Which tests execute which lines is recorded once; a mutation is then given to
the tests that execute its line, one of each test function first, the fastest first, until one fails. Kernels are
changed and tested with the compiler off, by the tests marked `kernel`: code compiled before would not notice. Tests
that need a session of Spark are asked last, when all that is not Spark's was tried. What is not finished is taken up
again when the command is given again with the same folder.

With `--survivors` the sample of the last results is taken up again: what was noticed stays noticed, survivors are tried
again by the tests of their part of the package, and where a line is gone, the next mutation of a random order of all
takes its place and is tried too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

import coverage

from benchmarks.mutants import CHANGE, Mutant, carried, sample
from benchmarks.mutation_tracing import SHARED
from benchmarks.results import FOLDER as RESULTS
from benchmarks.results import write_table

ROOT = Path(__file__).resolve().parents[1]
EXPLAINED = ROOT / "benchmarks" / "explained_mutations.json"
N_MUTATIONS, SEED = 300, 18
MOST_SECONDS, MOST_TESTS, LONGEST_TEST = 30.0, 150, 8.0
"""What one mutation is given: so many seconds of tests (as recorded), so many tests, none longer than that."""
SPARK_SECONDS = 60.0
NEAREST = 3
"""Files of tests that are asked first."""
LEFT_OUT = ("documents", "support")
"""No tests of the source."""
KEPT = ".kept"
"""The ending of a file as it was, while a mutation is in its place."""
PLAIN = "plain"
"""The record of the kernels' tests with the compiler off."""
SPARK = "spark"
"""The record of the tests with a session of Spark."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=N_MUTATIONS)
    parser.add_argument("--seed", type=int, default=SEED)
    default = Path(tempfile.gettempdir()) / "goodfence-mutations"
    parser.add_argument("--folder", type=Path, default=default, help="where work is kept")
    parser.add_argument(
        "--again", action="store_true", help="try survivors again, with the tests of today"
    )
    parser.add_argument(
        "--survivors", action="store_true", help="try those of the last results again, and no other"
    )
    parser.add_argument(
        "--seconds", type=float, default=MOST_SECONDS, help="of tests for one mutation, as recorded"
    )
    parser.add_argument(
        "--without", nargs="*", default=[], help="folders of tests that are not asked, this time"
    )
    asked = parser.parse_args()
    trial = Trial(asked.folder, asked.seconds)
    if asked.survivors:
        try_survivors(trial, asked.seed, again=asked.again)
        return
    changed = trial.copy(again=asked.again)
    groups = trial.groups()
    for name, arguments in groups.items():
        if name != SPARK and name not in asked.without:
            trial.record(name, arguments)
    trial.record_again(changed)
    mutants = sample(trial.package, asked.n, asked.seed)
    others = [one for one in mutants if not one.path.startswith("spark/")]
    done = trial.run(others, again=asked.again)
    if SPARK not in asked.without:
        trial.record(SPARK, groups[SPARK])
    rest = [one for one in mutants if one.path.startswith("spark/")]
    done += trial.run(rest, again=asked.again)
    stated = {"tests left out": ", ".join(asked.without)} if asked.without else {}
    report(done, seed=asked.seed, limit=limit_of(asked.seconds), **stated)


def try_survivors(trial: Trial, seed: int, *, again: bool) -> None:
    """Try the survivors of the last results again, and what takes the place of lines that are gone."""
    changed = trial.copy(again=again)
    kept = json.loads((RESULTS / "mutations.json").read_text("utf-8"))
    found, new = carried(trial.package, kept, seed)
    noticed = [(one, earlier["failed"]) for one, earlier in found if earlier["noticed"]]
    if not trial.results.exists():
        taken = [{**NOT_RUN, **facts(one), "noticed": True, "failed": by} for one, by in noticed]
        trial.results.write_text(json.dumps(taken, indent=1), "utf-8")
    mutants = [*(one for one, _ in found), *new]
    over = {one.name for one, _ in noticed}
    groups = trial.groups()
    for name in sorted({part_of(one.path) for one in mutants if one.name not in over}):
        trial.record(name, groups[name])
    trial.record_again(changed)
    stated: dict[str, Any] = {
        "limit": limit_of(trial.seconds),
        "tests": "those of the mutated part of the package, without a session of Spark",
        "noticed by an earlier run": len(over),
        "instead of lines that are gone": len(new),
    }
    report(trial.run(mutants, again=again), seed=seed, **stated)


def part_of(path: str) -> str:
    """Return the group of tests that is about a file of the package."""
    part = path.partition("/")[0] if "/" in path else "top"
    return {"kernels": PLAIN, "spark": "spark-quick"}.get(part, part)


def limit_of(seconds: float) -> str:
    return f"{MOST_TESTS} tests and {seconds:g} s of tests a mutation, none of more than {LONGEST_TEST:g} s"


@dataclass(frozen=True, slots=True)
class Trial:
    """A folder with a copy of the tree, what was recorded of its tests, and the results so far."""

    folder: Path
    seconds: float = MOST_SECONDS

    @property
    def tree(self) -> Path:
        """The copy."""
        return self.folder / "tree"

    @property
    def package(self) -> Path:
        """Its source."""
        return self.tree / "src" / "goodfence"

    @property
    def results(self) -> Path:
        """What became of each mutation so far."""
        return self.folder / "results.json"

    def copy(self, *, again: bool) -> list[str]:
        """Copy the tree, without the source where survivors are tried again; return which files of tests are new."""
        for kept in self.package.rglob(f"*{KEPT}"):  # an earlier run was ended here
            kept.replace(kept.with_suffix(".py"))
        new = not self.tree.exists()
        if not new and not again:
            return []
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        changed = []
        for name in listed.stdout.splitlines():
            path, to = ROOT / name, self.tree / name
            if not path.is_file() or (name.startswith("src/") and not new):
                continue
            same = to.is_file() and to.read_bytes() == path.read_bytes()
            if not new and not same and path.name.startswith("test_"):
                changed.append(name)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)
        return changed

    def groups(self) -> dict[str, list[str]]:
        """Return the tests by folder, each with the arguments of pytest; last the kernels' with the compiler off."""
        tests = self.tree / "tests"
        folders = [one.name for one in sorted(tests.iterdir()) if one.is_dir()]
        groups = {
            name: [f"tests/{name}"]
            for name in folders
            if name not in LEFT_OUT and list((tests / name).glob("test_*.py"))
        }
        # These run in processes of their own, out of sight of the record.
        groups["models"].append("--ignore=tests/models/test_hostile_models.py")
        groups[SPARK] = ["tests/spark", "-m", "spark"]
        groups["spark-quick"] = ["tests/spark", "-m", "not spark"]
        groups["top"] = [f"tests/{path.name}" for path in sorted(tests.glob("test_*.py"))]
        groups["examples"] = ["--doctest-modules", "src"]
        groups[PLAIN] = ["tests", "-m", "kernel", "--ignore=tests/spark"]
        return groups

    def record(self, name: str, arguments: list[str]) -> None:
        """Record which test of a group executes which lines, unless that is known."""
        data = self.folder / f"lines-{name}"
        if Path(f"{data}.json").exists():
            return
        command = [sys.executable, "-m", "benchmarks.mutation_tracing", str(data), *arguments]
        with Path(f"{data}.log").open("w", encoding="utf-8") as log:
            subprocess.run(
                command,
                cwd=self.tree,
                env=self.environment(plain=name.startswith(PLAIN)),
                stdout=log,
                stderr=log,
                check=False,
            )
        if not Path(f"{data}.json").exists():
            raise RuntimeError(f"the tests of {name} could not be run; see {data}.log")
        say(f"recorded {name}")

    def record_again(self, changed: list[str]) -> None:
        """Record files of tests that are new, or not as they were."""
        for name, arguments in {"again": [], f"{PLAIN}-again": ["-m", "kernel"]}.items():
            if changed:
                (self.folder / f"lines-{name}.json").unlink(missing_ok=True)
                self.record(name, [*changed, *arguments])

    def environment(self, *, plain: bool) -> dict[str, str]:
        """Return the variables that a run needs."""
        own = {"PYTHONPATH": str(self.tree / "src"), "OMP_NUM_THREADS": "1"}
        own |= {"NUMBA_DISABLE_JIT": "1"} if plain else {}
        return {**os.environ, **own}

    def run(self, mutants: list[Mutant], *, again: bool) -> list[dict[str, Any]]:
        """Return what became of each mutation, and write it down as it comes."""
        done = {}
        if self.results.exists():
            done = {one["name"]: one for one in json.loads(self.results.read_text("utf-8"))}
        tests = Recorded(self.folder, self.package, self.seconds)
        explained = explanations()
        servers: dict[bool, Server] = {}
        for number, mutant in enumerate(mutants):
            before = done.get(mutant.name)
            if before is not None and (before["noticed"] or not again):
                continue
            plain = mutant.path.startswith("kernels/")
            if plain not in servers:
                servers[plain] = Server(self, plain=plain)
            chosen = [] if mutant.change in explained else tests.noticing(mutant, plain=plain)
            result = self.tried(mutant, chosen, servers[plain], number)
            done[mutant.name] = result
            self.results.write_text(json.dumps(list(done.values()), indent=1), "utf-8")
            if not result["noticed"]:
                say(f"survived: {mutant.name}: {mutant.was[:80]} -> {mutant.now[:80]}")
            n_noticed = sum(one["noticed"] for one in done.values())
            say(f"{n_noticed} of {len(done)} noticed")
        for server in servers.values():
            server.end()
        return [done[one.name] for one in mutants]

    def tried(
        self, mutant: Mutant, chosen: list[tuple[str, float]], server: Server, number: int
    ) -> dict[str, Any]:
        """Return what the chosen tests say of a mutation."""
        path = self.package / mutant.path
        kept = path.with_suffix(KEPT)
        told = dict(NOT_RUN)
        if chosen:
            shutil.copy2(path, kept)
            path.write_bytes(mutant.apply(path.read_bytes()))
            os.utime(path, (2_000_000_000 + number, 2_000_000_000 + number))
            try:
                for some in staged(chosen, mutant.path):
                    said = server.ask(some)
                    for name in ("n_run", "processor"):
                        said[name] += told[name]
                    told = said
                    if is_noticed(told):
                        break
            finally:
                kept.replace(path)
        noticed = is_noticed(told)
        return {**told, **facts(mutant), "noticed": noticed, "n_tests": len(chosen)}


NOT_RUN: dict[str, Any] = {"code": 0, "failed": "", "n_run": 0, "signal": 0, "processor": 0.0}
"""What a run of no tests tells."""


def facts(mutant: Mutant) -> dict[str, Any]:
    """Return what a list of results says of a mutation."""
    stated = {name: getattr(mutant, name) for name in ("name", "kind", *CHANGE)}
    return {**stated, "line": mutant.lines[0]}


def is_noticed(told: dict[str, Any]) -> bool:
    """Return whether a test failed, or the process with it; 5 is "no test was collected": nothing was tried."""
    return bool(told["signal"] != 0 or told["code"] not in (0, 5))


def staged(chosen: list[tuple[str, float]], path: str) -> list[list[tuple[str, float]]]:
    """Return the tests of the few files that are most about a module, and then the others.

    To load a file of tests costs as much as many a test.
    """
    words = set(Path(path).with_suffix("").as_posix().replace("/", "_").split("_"))
    n_tests, about = Counter[str](), dict[str, int]()
    for test, _ in chosen:
        file = test.partition("::")[0]
        n_tests[file] += 1
        about[file] = len(words & set(Path(file).stem.split("_")))
    nearest = sorted(n_tests, key=lambda file: (-about[file], -n_tests[file], file))[:NEAREST]
    first = [one for one in chosen if one[0].partition("::")[0] in nearest]
    return [part for part in (first, [one for one in chosen if one not in first]) if part]


class Server:
    """A process that runs tests in forks of itself."""

    def __init__(self, trial: Trial, *, plain: bool) -> None:
        self.log = trial.folder / f"tests-{'plain' if plain else 'compiled'}.log"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.mutation_server"],
            cwd=trial.tree,
            env={**trial.environment(plain=plain), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, chosen: list[tuple[str, float]]) -> dict[str, Any]:
        """Run the tests, and return what came of it."""
        expected = sum(seconds for _, seconds in chosen)
        seconds = int(12 + 3 * expected)
        asked = {
            "tests": [test for test, _ in chosen],
            "seconds": seconds,
            "longest": 10 * seconds,
            "log": str(self.log),
        }
        stdin, stdout = self._streams()
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        return dict(json.loads(stdout.readline()))

    def _streams(self) -> tuple[IO[str], IO[str]]:
        return cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)

    def end(self) -> None:
        """Close it."""
        self._streams()[0].close()
        self._process.wait()


class Recorded:
    """Which tests execute which lines, and how long each takes."""

    def __init__(self, folder: Path, package: Path, seconds: float) -> None:
        self.package = package
        self.seconds = seconds
        self.files = sorted(folder.glob("lines-*.json"))
        self.tests: dict[str, dict[str, Any]] = {}
        self.plain: dict[str, dict[str, Any]] = {}
        for path in self.files:
            into = self.plain if path.stem.startswith(f"lines-{PLAIN}") else self.tests
            into.update(json.loads(path.read_text("utf-8")))
        self.contexts = cache(self._contexts)

    def _contexts(self, path: str, plain: bool) -> dict[int, set[str]]:
        """Return the tests that execute each line of a file."""
        found: dict[int, set[str]] = defaultdict(set)
        for one in self.files:
            if one.stem.startswith(f"lines-{PLAIN}") != plain:
                continue
            data = coverage.CoverageData(str(one.with_suffix("")))
            data.read()
            for line, names in data.contexts_by_lineno(str(self.package / path)).items():
                found[line].update(name for name in names if "::" in name)
        return found

    def noticing(self, mutant: Mutant, *, plain: bool) -> list[tuple[str, float]]:
        """Return the tests that can notice a mutation, in the order in which they are run, with their seconds."""
        lines = self.contexts(mutant.path, plain)
        first, last = mutant.lines
        names = set[str]()
        for line, some in lines.items():
            if not mutant.inside or first <= line <= last:
                names |= some
        if (
            not names
        ):  # run while the module is imported, as what a class does when another derives from it
            names = set[str]().union(*lines.values())
        tests = self.plain if plain else self.tests
        whole = {name.removesuffix(SHARED) for name in names if name.endswith(SHARED)}
        names |= {test for test in tests if test.partition("::")[0] in whole}
        most = self.seconds
        if mutant.path.startswith("spark/"):  # the rest of it is executed by workers, out of sight
            names |= {test for test, one in tests.items() if "spark" in one["marks"]}
            most = SPARK_SECONDS
        return limited({test: tests[test] for test in names if test in tests}, most)


def limited(tests: dict[str, dict[str, Any]], most: float) -> list[tuple[str, float]]:
    """Return the tests within the limits: one of each test function first, the fastest first.

    What is done once for all tests of a file is paid by the first of them.
    """
    cost = {test: one["seconds"] + one.get("shared", 0.0) for test, one in tests.items()}
    functions: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda test: (cost[test], test)):
        if tests[test]["seconds"] <= LONGEST_TEST:
            functions[test.partition("[")[0]].append(test)
    ranked = [
        (rank, cost[test], test) for cases in functions.values() for rank, test in enumerate(cases)
    ]
    chosen: dict[str, float] = {}
    files = set[str]()
    for _, _, test in sorted(ranked):
        file = test.partition("::")[0]
        spent = tests[test]["seconds"] if file in files else cost[test]
        if len(chosen) < MOST_TESTS and spent + sum(chosen.values()) <= most:
            chosen[test] = spent
            files.add(file)
    return list(chosen.items())


def report(results: list[dict[str, Any]], **stated: Any) -> None:
    """Write the tables: what was noticed by kind, and every survivor."""
    reasons = explanations()
    head = ["mutated", "mutations", "noticed", "by", "survived"]
    rows = []
    for kind in [*sorted({one["kind"] for one in results}), "all"]:
        some = [one for one in results if kind in ("all", one["kind"])]
        n_noticed = sum(one["noticed"] for one in some)
        share = f"{100 * n_noticed / len(some):.0f}%"
        rows.append([kind, str(len(some)), str(n_noticed), share, str(len(some) - n_noticed)])
    minutes = sum(one["processor"] for one in results) / 60
    title = "Random mutations noticed"
    write_table("mutations", title, head, rows, **stated, processor=f"{minutes:.0f} min")
    survivors = [
        [
            f"`{one['path']}`",
            f"`{short(one['code'])}`",
            f"`{short(one['was'])}` → `{short(one['now'])}`",
            reasons.get(tuple(one[name] for name in CHANGE), ""),
        ]
        for one in sorted(results, key=lambda one: one["name"])
        if not one["noticed"]
    ]
    head = ["file", "line", "mutation", "why no test notices it"]
    title = "Mutations that no test notices"
    write_table("mutations_survived", title, head, survivors, command="mutations")
    kept = [{key: one[key] for key in ("name", *CHANGE, "noticed", "failed")} for one in results]
    path = RESULTS / "mutations.json"
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def explanations() -> dict[tuple[str, ...], str]:
    """Return why no test can notice some mutations: they are not tried, and count as not noticed."""
    explained = json.loads(EXPLAINED.read_text("utf-8")) if EXPLAINED.exists() else []
    return {tuple(one[name] for name in CHANGE): one["why"] for one in explained}


def short(text: str) -> str:
    """Return a text as one cell of a table shows it."""
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= 70 else text[:67] + "..."


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
