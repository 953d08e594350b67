"""The runner of the documents' examples finds what it should, and fails when an example does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import examples

GOOD = "Text\n\n```python\n>>> one = 1\n```\n\nand then\n\n```pycon\n>>> one + 1\n2\n```\n"


def check(folder: Path, text: str) -> None:
    (folder / "page.md").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        examples.test_every_example_of_the_document_runs(folder / "page.md", folder, patch)


def test_a_good_document_passes_and_its_blocks_share_names(tmp_path: Path) -> None:
    check(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD.replace("\n2\n", "\n3\n"), "Expected:\n *3"),
        (GOOD.replace("one = 1", "one = 1 / 0"), "ZeroDivisionError"),
        (GOOD.replace("```pycon", "```text"), "outside a python block"),
        (GOOD + "\n>>> lost()\n", "outside a python block"),
        (GOOD + "\n```python\nlost()\n```\n", "run by nobody"),
    ],
)
def test_a_document_with_a_wrong_example_fails(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check(tmp_path, text)
