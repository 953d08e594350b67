"""Mutation testing itself: which changes are made, and which tests are chosen."""

from __future__ import annotations

import ast
from pathlib import Path

from benchmarks.mutants import Mutant, carried, mutants, possible, sample, sources
from benchmarks.mutations import LONGEST_TEST, MOST_SECONDS, MOST_TESTS, facts, limited, part_of

SOURCE = '''"""Text is left alone: 1 + 1."""

LIMIT: int = 3


def share(part, whole: int = 2, *, cut=False):
    """And here: 1 < 2."""
    if part < 0 or not whole:
        raise ValueError(f"not {part + 1}")
    part += 1
    return min(part / whole, 1.0, key=abs) if cut else -part
'''


def changed(folder: Path) -> list[Mutant]:
    path = folder / "shares.py"
    path.write_text(SOURCE, encoding="utf-8")
    return mutants(path, folder)


def test_every_operator_constant_return_and_argument_once(tmp_path: Path) -> None:
    found = {(one.was, one.now) for one in changed(tmp_path)}
    condition = "min(part / whole, 1.0, key=abs) if cut else -part"
    assert found == {
        ("3", "(4)"),
        ("2", "(3)"),
        ("False", "(True)"),
        ("part < 0 or not whole", "(part < 0 and (not whole))"),
        ("part < 0", "(part <= 0)"),
        ("0", "(1)"),
        ("not whole", "(whole)"),
        ("part += 1", "part -= 1"),
        ("1", "(2)"),
        (f"return {condition}", "return None"),
        (condition, "(min(part / whole, 1.0, key=abs) if not cut else -part)"),
        ("min(part / whole, 1.0, key=abs)", "(min(part / whole, 1.0))"),
        ("part / whole", "(part * whole)"),
        ("1.0", "(2.0)"),
        ("-part", "(part)"),
    }


def test_a_mutant_is_the_file_with_one_change(tmp_path: Path) -> None:
    for one in changed(tmp_path):
        text = one.apply(SOURCE.encode()).decode()
        ast.parse(text)
        assert text != SOURCE
        assert text.replace(one.now, one.was, 1) == SOURCE or one.now in text
        first, last = one.lines
        assert one.inside == (first > 6)
        assert one.was in " ".join(SOURCE.splitlines()[first - 1 : last]).strip()


def test_the_sample_is_that_of_its_seed_and_of_logic_only() -> None:
    package = Path(__file__).parents[2] / "src" / "goodfence"
    privacy = package / "privacy"
    first, again, other = (sample(privacy, 30, seed) for seed in (18, 18, 19))
    assert first == again != other
    assert len({one.name for one in first}) == 30
    folders = {path.relative_to(package).parts[0] for path in sources(package)}
    assert {"data", "models", "kernels", "attack", "spark"} <= folders
    assert not {"cli", "report"} & folders


def test_a_sample_is_found_again_and_what_is_gone_is_replaced_by_chance(tmp_path: Path) -> None:
    path = tmp_path / "shares.py"
    path.write_text("def share(part):\n    return part / 2\n\n\nLIMIT = 3\n", encoding="utf-8")
    kept = [facts(one) for one in mutants(path, tmp_path)]
    assert [one["was"] for one in kept] == ["return part / 2", "part / 2", "2", "3"]
    path.write_text("def share(part):\n    return part / 4\n\n\n\n\nLIMIT = 3\n", encoding="utf-8")
    again, new = carried(tmp_path, kept, 18)
    assert [(one.was, one.lines, earlier["was"]) for one, earlier in again] == [("3", (7, 7), "3")]
    assert {one.was for one in new} == {"return part / 4", "part / 4", "4"}
    assert carried(tmp_path, kept, 18) == (again, new)


def test_a_change_that_a_line_has_twice_is_found_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "pairs.py"
    path.write_text("PAIR = (1, 1)\n", encoding="utf-8")
    first, second = possible(tmp_path)
    assert first.change == second.change
    for order in ([first, second], [second, first], [second], [first]):
        again, _ = carried(tmp_path, [facts(one) for one in order], 18)
        assert [one for one, _ in again] == order


def test_a_part_of_the_package_has_tests_of_its_own() -> None:
    parts = {"models/private/cf.py": "models", "rng.py": "top", "kernels/draw.py": "plain"}
    assert {path: part_of(path) for path in parts} == parts
    assert part_of("spark/chunks.py") == "spark-quick"


def test_one_test_of_each_function_comes_first_and_nothing_beyond_the_limits() -> None:
    tests = {
        "a.py::f[1]": {"seconds": 0.1},
        "a.py::f[2]": {"seconds": 0.2},
        "a.py::g": {"seconds": 5.0},
        "b.py::h": {"seconds": 0.3, "shared": 6.0},
        "b.py::i": {"seconds": 0.1, "shared": 6.0},
        "b.py::slow": {"seconds": LONGEST_TEST + 1, "shared": 6.0},
    }
    assert limited(tests, MOST_SECONDS) == [
        ("a.py::f[1]", 0.1),
        ("a.py::g", 5.0),
        ("b.py::i", 6.1),
        ("b.py::h", 0.3),
        ("a.py::f[2]", 0.2),
    ]
    assert limited(tests, 5.2) == [("a.py::f[1]", 0.1), ("a.py::g", 5.0)]
    many = {f"a.py::f{at}": {"seconds": 0.0} for at in range(MOST_TESTS + 5)}
    assert len(limited(many, 1.0)) == MOST_TESTS
