"""The examples in README.md and docs/: every `>>>` of a document runs, one after the other.

Not collected with the tests; `scripts/check` names this file. Examples are in fenced blocks
marked python or pycon. One that is elsewhere would look tested and be run by nobody, so
it is an error.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
ELSEWHERE = (ROOT / "docs" / "how-to" / "adapters.md", ROOT / "docs" / "how-to" / "spark.md")
"""Their blocks are run beside what they need, by tests/adapters and tests/spark."""
_FENCED = re.compile(r"^```(?:python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\s*>>>", re.MULTILINE)
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks_of(text: str) -> list[tuple[int, str]]:
    """Return the line number and the text of every fenced block that holds an example."""
    found = ((text.count("\n", 0, match.start(1)), match[1]) for match in _FENCED.finditer(text))
    return [(line, block) for line, block in found if _PROMPT.search(block)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_example_of_the_document_runs(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what an example writes is its own
    text = document.read_text(encoding="utf-8")
    blocks = blocks_of(text)
    n_fenced = sum(len(_PROMPT.findall(block)) for _, block in blocks)
    assert n_fenced == len(_PROMPT.findall(text)), "an example is outside a python block"
    silent = len(_FENCED.findall(text)) - len(blocks)
    assert not silent or document in ELSEWHERE, "a python block without >>> is run by nobody"
    runner = doctest.DocTestRunner(optionflags=_OPTIONS)
    names: dict[str, object] = {"__name__": "__main__"}
    complaints: list[str] = []
    for line, block in blocks:
        test = doctest.DocTestParser().get_doctest(block, names, document.name, str(document), line)
        runner.run(test, out=complaints.append, clear_globs=False)
        names = test.globs  # what one block defines, the next can use
    assert not runner.summarize(verbose=False).failed, "".join(complaints)
