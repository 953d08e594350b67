"""What the audit is tried on: a recommender seen from outside only, and an attacker made for it by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import goodfence as gf
from goodfence.attack.attack import Attack


class Box(NamedTuple):
    """One black box of the benchmark."""

    name: str
    made: Callable[[], Any]
    """Return the recommender, not fitted; the audit sees it as a stranger."""
    ratings: Callable[[], gf.Ratings]
    """Return the data that it learns from."""
    best: Attack
    """The attacker made by hand for this box: it knows how the box works."""
    leaks: bool = True
    """Whether anything is to be found."""
