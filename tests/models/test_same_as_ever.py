"""A seeded experiment is repeatable: a private model gives the same predictions as it did in earlier versions.

The steps are tested one by one against plain twins (`test_releases.py`, `test_estimation.py`); this holds them
together, public constants included. Whoever changes one on purpose writes the new numbers here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf

RATED: dict[str, Any] = {"items": "from ratings", "rng": 7}
FEATURES = np.arange(120.0).reshape(60, 2) % 7
CASES: dict[str, tuple[Any, list[float]]] = {
    "means": (gf.PrivateMeans(epsilon=2.0, **RATED), [4.570888, 2.607588, 3.387992, 4.221842]),
    "means, user": (gf.PrivateMeans(epsilon=6.0, unit="user", **RATED), [4.431466, 2.737785, 3.453661, 3.991342]),
    "auto, which is the covariance": (gf.PrivateCF(epsilon=4.0, **RATED), [4.44673, 2.634853, 3.547886, 4.157299]),
    "covariance": (gf.PrivateCF(epsilon=4.0, plan="covariance", **RATED), [4.44673, 2.634853, 3.547886, 4.157299]),
    "covariance, user": (
        gf.PrivateCF(epsilon=8.0, unit="user", plan="covariance", **RATED),
        [4.369006, 2.801455, 3.532697, 3.911335],
    ),
    "half steps": (
        gf.PrivateCF(epsilon=8.0, unit="user", plan="half_step", **RATED),
        [4.419978, 2.653823, 3.561476, 3.899473],
    ),
    "public features": (
        gf.PrivateCF(epsilon=4.0, plan="means", features=FEATURES, **RATED),
        [4.494325, 2.569014, 3.582014, 4.126295],
    ),
    "McSherry and Mironov": (
        gf.papers.McSherryMironov(epsilon=4.0, rank=3, **RATED),
        [4.931998, 2.826314, 3.507931, 4.194144],
    ),
}


@pytest.fixture(scope="module")
def ratings() -> gf.Ratings:
    return gf.synthetic(users=300, items=60, ratings=6000, rng=3)


@pytest.mark.parametrize("name", CASES)
def test_predictions_of_a_seeded_fit(name: str, ratings: gf.Ratings) -> None:
    model, expected = CASES[name]
    fitted = model.fit(ratings)
    found = fitted.predict(ratings.users[:4], ratings.items[[5, 17, 29, 41]])
    assert found == pytest.approx(expected, rel=1e-4)
