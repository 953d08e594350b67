"""A job that stopped resumes from its checkpoints, and those of another job are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goodfence as gf
from goodfence import spark as engine
from goodfence.errors import SettingError, SparkProblem
from goodfence.spark import all_pairs, shuffle
from goodfence.spark.messages import Block

FILMS = gf.synthetic(users=200, items=50, ratings=3_000, rng=2)
PRIVATE = "somebody rated 4.25"


@pytest.mark.spark
def test_a_job_that_stopped_goes_on_and_another_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: Any
) -> None:
    work = tmp_path / "work"
    config = engine.SparkConfig(spark=spark, block_rows=70, work=str(work))
    compare = all_pairs.compare_tile

    def until_then(settings: Any, partition: int, inbox: Any) -> Any:
        if {block.sender for block in inbox.every(Block)} == {1}:
            raise RuntimeError(PRIVATE)
        return compare(settings, partition, inbox)

    monkeypatch.setattr(all_pairs, "compare_tile", until_then)
    with pytest.raises(SparkProblem) as caught:
        engine.candidate_lists(FILMS, n=20, config=config)
    assert "4.25" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    before = finished(work)
    assert {"fingerprint", "blocks", "tiles-0-0", "tiles-3-3"} <= set(before)
    assert "tiles-4-4" not in before
    monkeypatch.undo()
    found = engine.candidate_lists(FILMS, n=20, config=config)
    assert (found.indices == gf.candidate_lists(FILMS, n=20).indices).all()
    after = finished(work)
    assert {"tiles-4-4", "tiles-5-5", "lists"} <= set(after)
    assert {name: after[name] for name in before} == before
    monkeypatch.setattr(shuffle, "shuffle", None)  # nothing is left to be done
    resumed = engine.candidate_lists(FILMS, n=20, config=config)
    assert (resumed.indices == found.indices).all()
    other = gf.synthetic(users=200, items=50, ratings=3_000, rng=3)
    for ratings, n in ((other, 20), (FILMS, 21)):
        with pytest.raises(SettingError, match="other ratings"):
            engine.candidate_lists(ratings, n=n, config=config)
