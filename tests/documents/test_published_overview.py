"""The short table of published ideas: the strongest attacker of each, and the rule by which it is judged."""

from __future__ import annotations

from documents.published_overview import FAMILIES, overview, stops
from documents.tables import measured


def test_an_idea_is_judged_by_all_of_its_interval() -> None:
    assert stops({"advantage": "+0.010 (-0.010 to +0.050)"}) == "yes"
    assert stops({"advantage": "+0.058 (+0.001 to +0.114)"}) == "open"
    assert stops({"advantage": "+0.185 (+0.124 to +0.246)"}) == "**no**"


def test_every_measured_idea_has_a_row_with_its_strongest_attacker() -> None:
    rows = measured("published-ml-100k")
    told = overview("ml-100k").splitlines()[2:]
    assert len(told) == len({row["idea"] for row in rows})
    answers = [row for row in rows if row["idea"] == "Laplace on each answer, ε=4"]
    strongest = max(answers, key=lambda row: float(row["advantage"].split()[0]))
    (line,) = [line for line in told if "Laplace on each answer, ε=4 " in line]
    assert f"| {strongest['attacker']} |" in line
    assert strongest["attacker"] == "all ask"


def test_the_lines_of_the_benchmark_are_those_of_the_families() -> None:
    from benchmarks.published import LINES

    names = tuple(name for family in FAMILIES.values() for name in family)
    assert all(line.idea.startswith(names) for line in LINES)
