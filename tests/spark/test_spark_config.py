"""The size of blocks, and settings outside their rule."""

from __future__ import annotations

import pytest

from goodfence.errors import SettingError
from goodfence.spark.config import SparkConfig, balanced_blocks


@pytest.mark.parametrize("n_cores", [1, 2, 3, 8, 100])
def test_blocks_keep_all_cores_busy(n_cores: int) -> None:
    n_blocks = balanced_blocks(n_cores)
    work = [2] * (n_blocks * (n_blocks - 1) // 2) + [1] * n_blocks
    ends = [0] * n_cores
    for tile in work:
        ends[ends.index(min(ends))] += tile
    assert max(ends) <= 1.15 * sum(work) / n_cores
    assert n_blocks == 1 or 2 * n_cores >= n_blocks  # and no more of them than that takes


@pytest.mark.parametrize(("name", "value"), [("memory", 1000), ("block_rows", 0)])
def test_settings_outside_their_rule(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} must be at least"):
        SparkConfig(spark=None, **{name: value})  # type: ignore[arg-type]  # refused before it is used
