"""The code on the page about Spark runs, block after block, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "spark.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.spark
def test_the_blocks_of_the_page(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    assert names["spark"] is spark
    assert names["chosen"].columns == ["id", "row", "neighbours", "similarities", "weights"]
    assert names["predicted"].columns == ["user", "item", "prediction"]
    assert names["best"].columns == ["user", "rank", "item", "score"]
    assert (tmp_path / "work" / "lists" / "_SUCCESS").exists()
    assert names["private"].ratings_.n_ratings == 0
    assert names["everybody"].count() == 60 * 5
    assert names["lasting"].updates_left_ == 30
    for name in ("chosen", "predicted", "best", "everybody"):
        names[name].unpersist()


def test_there_is_something_to_run() -> None:
    assert len(BLOCKS) == 5
