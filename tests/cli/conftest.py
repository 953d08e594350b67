"""Ratings for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Forty users with thirty ratings each, in a file with columns that are found by name."""
    rng = np.random.default_rng(7)
    path = tmp_path / "ratings.csv"
    lines = ["userId,movieId,rating"]
    for user in range(40):
        for item in rng.choice(60, size=30, replace=False):
            lines.append(f"{user + 1000},m{item},{rng.integers(1, 6)}")
    path.write_text("\n".join(lines) + "\n")
    return path
