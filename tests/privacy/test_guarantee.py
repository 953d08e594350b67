"""Guarantees: complete or none, and what the mechanisms state."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from goodfence.errors import SettingError
from goodfence.privacy.guarantee import Guarantee
from goodfence.selection.knn import KNN
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS

FULL: dict[str, Any] = {
    "status": "proved",
    "unit": "rating",
    "adjacency": "add/remove",
    "epsilon": 1.0,
    "delta": 1e-6,
    "reason": "It is so.",
}


def test_it_reads_as_a_sentence() -> None:
    assert str(Guarantee(**FULL)) == ("proved: epsilon=1, delta=1e-06 per rating (add/remove). It is so.")
    assert str(Guarantee(status="none", reason="No guarantee.")) == "none: No guarantee."


def test_it_is_a_frozen_value() -> None:
    guarantee: Any = Guarantee(**FULL)
    with pytest.raises(FrozenInstanceError):
        guarantee.epsilon = 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "sure"}, "status must be one of"),
        ({"unit": "item"}, "unit must be"),
        ({"adjacency": "near"}, "adjacency must be one of"),
        ({"epsilon": -1.0}, "epsilon must be at least 0"),
        ({"epsilon": float("nan")}, "epsilon must be at least 0"),
        ({"delta": 1.5}, "delta must be a number from 0 to 1"),
        ({"delta": None}, "a guarantee must be stated with"),
        ({"reason": " "}, "reason must be a sentence"),
        ({"status": "none"}, "without numbers"),
    ],
)
def test_half_a_guarantee_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Guarantee(**{**FULL, **change})


def test_the_mechanisms_say_what_they_are_worth() -> None:
    for mechanism in (KNN(k=3), NPNS(k=3)):
        assert mechanism.guarantee().status == "none"
    for private in (PPNS(k=3, beta=2, epsilon=0.7), PNCF(k=3, epsilon=0.7)):
        guarantee = private.guarantee()
        assert (guarantee.status, guarantee.unit, guarantee.epsilon) == ("refuted", "rating", 0.7)
        assert "claims" in guarantee.reason
