"""A number that a document shows cannot be changed, and its source cannot change, without somebody noticing."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

import goodfence as gf
from documents import __main__ as shown
from documents import architecture, commands, markers, peers, reproduced, reproduction, tables
from documents.sources import SOURCES
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


def test_the_date_of_a_run_makes_nothing_stale() -> None:
    then, now = "  Scope     2026-01-02. 92 (89-94)\n", "  Scope     2027-11-12. 92 (89-94)\n"
    assert commands.agree(commands.EXACT, then, now)
    assert not commands.agree(commands.EXACT, then, now.replace("92", "93"))


def test_a_stale_document_makes_the_check_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    claims = reproduced.claims()
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
    public = {name for name in gf.__all__ if name != "__version__"}
    assert public - {name for _, name in described} == set()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "REPRODUCTION.md"])
def test_links_of_the_repository_lead_somewhere(name: str) -> None:
    """The documentation's own links are checked when it is built; these are not."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", (ROOT / name).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


FOLDERS = (ROOT, ROOT / "src", ROOT / "src" / "goodfence")
ADDED = "docs/mechanisms/every-other.md"
"""What a reader of CONTRIBUTING.md writes."""


def test_every_file_that_a_document_names_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text() for page in pages if page != architecture.PAGE)
    found = set(re.findall(r"`([\w./-]+\.(?:py|toml|md))`", text)) - {ADDED}
    assert len(found) > 12
    assert [one for one in sorted(found) if not any((at / one).is_file() for at in FOLDERS)] == []


def test_the_peers_table_says_how_many_times_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = {
        "goodfence": {"seconds": 4.0, "beyond_mib": 12.3},
        "sparse-dot-topn": {"seconds": 50.0, "beyond_mib": 1234.5},
    }
    (tmp_path / "candidates.json").write_text(json.dumps({"netflix-tenth user 350": cells}))
    monkeypatch.setattr(peers, "RESULTS", tmp_path)
    netflix, douban = tables.rows_of(peers.candidate_lists())
    assert netflix["goodfence"] == "**4.0 s**, 12 MiB"
    assert netflix["sparse-dot-topn"] == "50.0 s (**12.5x**), 1,234 MiB"
    assert netflix["implicit"] == douban["goodfence"] == tables.UNMEASURED


def test_the_reproduction_counts_its_verdicts() -> None:
    """The report states the same count, made in another place."""
    counts = reproduced.verdicts()
    stated = f"{counts['holds']} of {counts.total()} hold, {counts['fails']} fail"
    assert stated in reproduced.section("In short")
    assert counts.total() == 18  # sixteen claims, two of them in two parts


def test_a_report_without_its_data_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: object, **__: object) -> Path:
        raise DownloadProblem("no network")

    monkeypatch.setattr(catalogue, "find", offline)
    with pytest.raises(DataError, match="the report needs every data set"):
        reproduction.write_report(tmp_path / "R.md", keep=tmp_path)
    assert not (tmp_path / "R.md").exists()
