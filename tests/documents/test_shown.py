"""A number that a document shows cannot be changed, and its source cannot change, without somebody noticing."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import goodfence as gf
from documents import __main__ as shown
from documents import architecture, commands, markers, reproduction, sources, tables
from documents.sources import SOURCES, stops
from goodfence.data import load as catalogue
from goodfence.errors import DataError, DownloadProblem

ROOT = tables.ROOT
DEMO = (
    "  kNN k=50              92 (89-94)  none\n"
    "  private means eps=1   37 (27-47)  proved\n"
    "  guessing              29 (29-30)\n"
    "  Choice    private means eps=1: the least error\n"
    "            of all.\n"
)


def test_a_tampered_number_is_found(tmp_path: Path) -> None:
    """Every number of every block and sentence that README.md shows between markers, one at a time."""
    text = markers.written_again((ROOT / "README.md").read_text(), SOURCES)
    places = [
        match.start(3) + digit.start()
        for match in re.finditer(r"<!-- shown: (.*?) -->()(.*?)<!-- /shown -->", text, re.DOTALL)
        for digit in re.finditer(r"\d", match[3])
    ]
    assert places
    for place in places:
        digit = (int(text[place]) + 1) % 10
        tampered = f"{text[:place]}{digit}{text[place + 1 :]}"
        assert markers.written_again(tampered, SOURCES) == text != tampered


def test_the_date_of_a_run_makes_nothing_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(_: object, __: object, arguments: list[str]) -> SimpleNamespace:
        text = f"Scope {arguments[0]}, {datetime.now(UTC).date()}\nsecond\nthird\n"
        return SimpleNamespace(exit_code=0, stdout=text, stderr="")

    monkeypatch.setattr(CliRunner, "invoke", ran)
    assert commands.printed("a-dated-command | head -2") == ("Scope a-dated-command, 2026-11-18\nsecond\n")


def test_a_stale_document_makes_the_check_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    claims = sources.claims()
    page.write_text(f"So <!-- shown: claims -->{claims}<!-- /shown -->\n")
    monkeypatch.setattr(shown, "ROOT", tmp_path)
    monkeypatch.setattr(shown, "documents", lambda: [page])
    assert shown.main(["--check"]) == 0
    page.write_text("So <!-- shown: claims -->15 of 14 claims hold<!-- /shown -->\n")
    assert shown.main(["--check"]) == 1
    assert "-So <!-- shown: claims -->15 of 14" in capsys.readouterr().out
    assert shown.main([]) == 0
    assert claims in page.read_text()
    assert shown.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("kind", "old", "new", "same"),
    [
        ("console", "92", "93", False),
        ("console", "37", "38", False),
        ("text", "92", "93", False),  # no noise in kNN
        ("text", "37 (27-47)  ", "8 (-1 to 9) ", True),  # fresh noise, and columns that move
        ("text", "37 (27-47)  proved", "37 (27-47)  claimed", False),
        ("text", "guessing ", "guesses ", False),
        ("text", "private means eps=1: the least error\n            of all", "none", True),
        ("output", "92", "93", True),
    ],
)
def test_what_counts_as_the_same_output(kind: str, old: str, new: str, same: bool) -> None:
    assert old in DEMO
    assert commands.agree(kind, DEMO, DEMO.replace(old, new)) is same


def test_a_command_that_prints_something_else_is_written_again() -> None:
    page = "```console\n$ goodfence explain GF204\nsomething else\n```\n"
    with commands.reader_folder():
        again = commands.written_again(page, ("console",))
        assert "GF204     The same user rated" in again
        assert commands.written_again(again, ("console",)) == again
        assert commands.written_again(page, ()) == page


@pytest.mark.parametrize(
    "text",
    [
        "It is <!-- shown: nothing-of-this-name -->1<!-- /shown -->",
        "It is <!-- shown: claims -->1",
        "1<!-- /shown -->",
        "<!-- shown:claims -->1<!-- /shown -->",
        "In the paper\n<!-- shown: claims -->7<!-- /shown -->.",  # begins a line
    ],
)
def test_a_marker_that_shows_nothing_is_an_error(text: str) -> None:
    with pytest.raises(markers.UnknownSource):
        markers.written_again(text, SOURCES)


def test_cells_of_a_measured_table() -> None:
    text = "# T\n\nMeasured.\n\n| a | b | c |\n|---|---|---|\n| x | 1 | 2 (1 to 3) |\n| y | 3 | |\n"
    rows = tables.rows_of(text)
    assert rows == ({"a": "x", "b": "1", "c": "2 (1 to 3)"}, {"a": "y", "b": "3", "c": ""})
    assert tables.find(rows, "y") == rows[1]
    assert tables.find(rows, "x", "3") is None
    assert tables.cell("attackers", "adaptive", "kNN", "advantage").startswith(
        tables.value("attackers", "adaptive", "kNN", "advantage")
    )
    assert tables.cell("no-such-table", "x", "b") == tables.UNMEASURED
    with pytest.raises(LookupError, match="no 'advantage' of adaptive, kMN"):
        tables.cell("attackers", "adaptive", "kMN", "advantage")


def test_readme_has_no_figure_by_hand() -> None:
    """What is measured stands between markers or is printed by a command; code and settings are not measured."""
    text = (ROOT / "README.md").read_text()
    for regenerated in (r"<!-- shown.*?<!-- /shown -->", r"```.*?```", r"`[^`\n]*`"):
        text = re.sub(regenerated, "", text, flags=re.DOTALL)
    prose = text.replace("Python 3.11", "")
    assert re.findall(r"\d+\.\d+|\d+ ?%|\b\d+x\b|\d+ of \d+", prose) == []


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    described = set(re.findall(r"^::: ([\w.]+)\.(\w+)$", page, re.MULTILINE))
    for module, name in sorted(described):
        assert hasattr(import_module(module), name), f"{module}.{name} is not there"
    public = set(gf.__all__) - {"__version__", "papers"}
    assert public - {name for _, name in described} == set()


LINKING = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "REPRODUCTION.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
        name, _, anchor = link.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), link
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            assert anchor in map(slug, headings), link


def slug(heading: str) -> str:
    """Return the anchor of a heading, as Markdown makes it."""
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


FOLDERS = (ROOT, ROOT / "src", ROOT / "src" / "goodfence")
ADDED = "docs/mechanisms/every-other.md"
"""What a reader of CONTRIBUTING.md writes."""


def test_every_file_that_a_document_names_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text() for page in pages if page != architecture.PAGE)
    found = set(re.findall(r"`([\w./-]+\.(?:py|toml|md))`", text)) - {ADDED}
    assert len(found) > 12
    assert [one for one in sorted(found) if not any((at / one).is_file() for at in FOLDERS)] == []


def test_the_reproduction_counts_its_verdicts() -> None:
    """The report states the same count, made in another place."""
    counts = Counter(row["verdict"].strip("*") for row in sources.verdict_rows())
    stated = f"{counts['holds']} of {counts.total()} hold, {counts['fails']} fail"
    assert stated in sources.sections()["Summary"]
    assert counts.total() == 18  # sixteen claims, two of them in two parts


def test_a_method_is_judged_by_all_of_its_interval() -> None:
    assert stops({"advantage": "+0.010 (-0.010 to +0.050)"}) == "yes"
    assert stops({"advantage": "+0.058 (+0.001 to +0.114)"}) == "open"
    assert stops({"advantage": "+0.185 (+0.124 to +0.246)"}) == "**no**"


def test_a_published_method_is_shown_under_its_strongest_attack() -> None:
    rows = tables.measured("published-ml-100k")
    answers = [row for row in rows if row["idea"] == "Laplace on each answer, ε=4"]
    strongest = max(answers, key=lambda row: float(row["advantage"].split()[0]))
    (line,) = tables.rows_of(sources.published("ml-100k", "Laplace on each answer, ε=4"))
    assert line["strongest attack"] == strongest["attacker"] == "all ask"


def test_a_report_without_its_data_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> Path:
        raise DownloadProblem("no network")

    monkeypatch.setattr(catalogue, "find_dataset", offline)
    with pytest.raises(DataError, match="the report needs every data set"):
        reproduction.write_report(tmp_path / "R.md", keep=tmp_path)
    assert not (tmp_path / "R.md").exists()
