"""How many people an audit attacks: everybody, unless that would take over a minute."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

LONGEST = 60.0
"""Seconds that nobody needs to ask for."""
_FEW, _SOME = 3, 30
_SHORT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a short trial of an attack said about the whole of it."""

    n_targets: int
    """How many people can be attacked in the time."""
    seconds: float
    """How long everybody would take, about."""


def find_pace(
    attack: Callable[[int], object],
    n_users: int,
    *,
    longest: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Pace:
    """Try `attack` on a few people, and return how many of `n_users` it can attack in the longest time.

    The first trial pays for compiling and is not counted.
    """
    limit = LONGEST if longest is None else longest
    attack(1)
    few = _seconds(attack, min(_FEW, n_users), clock)
    each = few / min(_FEW, n_users)
    if each * n_users > limit and few < _SHORT and n_users > _SOME:
        # What is done once, however many are attacked, must not count for each of them.
        each = max(_seconds(attack, _SOME, clock) - few, 0.0) / (_SOME - _FEW)
    whole = few + each * n_users
    if whole <= limit or each == 0:
        return Pace(n_targets=n_users, seconds=whole)
    return Pace(n_targets=max(_FEW, int((limit - few) / each)), seconds=whole)


def _seconds(attack: Callable[[int], object], n: int, clock: Callable[[], float]) -> float:
    start = clock()
    attack(n)
    return clock() - start
