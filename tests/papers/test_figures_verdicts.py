"""The verdicts of a quick run, on the bundled ratings and on the paper's; and of the committed report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import goodfence as gf
from documents.reproduction import WRITTEN_FOR
from goodfence.papers.reproduction.definition import ORDER
from goodfence.papers.reproduction.figures import Reproduction

ROOT = Path(__file__).parents[2]


QUICK = {**WRITTEN_FOR, "7": "cannot tell"}
"""What epsilon does to PPNS is too little to be told with the targets of a quick run."""


def verdicts(found: Reproduction) -> dict[str, str]:
    return {claim.label: claim.verdict for claim in found.claims}


@pytest.mark.slow
def test_the_verdicts_of_a_quick_run_on_the_bundled_ratings() -> None:
    found = gf.papers.reproduce_all(rng=7, quick=True, data="movietweetings")
    assert verdicts(found) == WRITTEN_FOR
    assert [figure.definition.id for figure in found.figures] == list(ORDER)
    for claim in found.claims:
        assert claim.text
        assert claim.rule
        assert claim.comparisons or claim.numbers
        assert claim.sentence.endswith(".")
        assert claim.sentence.count(". ") == 0, "one sentence"


@pytest.mark.real("ml-100k", "douban-movie")
def test_the_verdicts_of_a_quick_run_on_the_papers_ratings() -> None:
    found = gf.papers.reproduce_all(rng=7, quick=True)
    assert verdicts(found) == QUICK
    by_label = {claim.label: claim for claim in found.claims}
    assert by_label["5"].numbers["m=8: wrong predictions"] > 0
    assert by_label["5"].numbers["m=64: wrong predictions"] == 0
    assert by_label["12"].numbers["share of similarity 1"] == 0
    assert by_label["14b"].numbers["50 fakes: probability of being alone"] == 0
    assert by_label["14a"].numbers["349 fakes: share of targets with no stranger"] == 0
    assert by_label["15"].numbers["lists of fakes: share on which PNCF has more"] > 0.5
    assert by_label["15"].numbers["user-movielens: share on which PNCF has more"] == 0
    leaks = by_label["9b"].numbers
    assert leaks["PPNS m=64: advantage"] > 0.7 > leaks["nPNS m=64: advantage"]


def test_the_committed_report_is_a_full_run_with_these_verdicts() -> None:
    text = (ROOT / "REPRODUCTION.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+[ab]?) \| .* \| \*\*([a-z ]+)\*\* \|", text, flags=re.MULTILINE)
    assert dict(rows) == WRITTEN_FOR
    assert "5 seeds x 200 targets" in text
    assert "$" not in text
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert len(pictures) == 2 * len(ORDER)
    for picture in pictures:
        assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")
    assert "douban-movie" in text
    assert "1 to\n583" in text or "1 to 583" in text
