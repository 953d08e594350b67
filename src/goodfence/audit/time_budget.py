"""How many users an audit attacks: everybody, unless that would take over a minute."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goodfence.attack import DEFAULT_KNOWN

if TYPE_CHECKING:
    from goodfence.attack.attack import Attack
    from goodfence.data.ratings import Ratings
    from goodfence.rng import RNG

LONGEST = 60.0
"""Seconds that nobody needs to ask for."""
_FEW, _SOME = 3, 30
_SHORT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a short trial of an attack said about the whole of it."""

    n_targets: int
    """How many users can be attacked in the time."""
    seconds: float
    """How long everybody would take, about."""


def affordable_targets(
    ratings: Ratings,
    recommender: Any,
    attack: Attack | None = None,
    *,
    known: int = DEFAULT_KNOWN,
    rng: RNG = None,
    threads: int | None = None,
) -> Pace:
    """Return how many users the attack, or the usual ones, can target on this recommender in a minute.

    Parameters
    ----------
    ratings : Ratings
        What the recommender learns from.
    recommender, attack, known
        What is attacked, and how, as in `audit`.
    rng : RNG, default None
        The seed of the trial runs.
    threads : int or None, default None
        How many threads; None for as many as there are cores.
    """
    from goodfence.attack.strongest import strongest, usual_attackers
    from goodfence.attack.subject import Subject

    subject = Subject(ratings, recommender, threads=threads)
    attackers = usual_attackers(subject, known=known) if attack is None else (attack,)

    def trial(n: int) -> object:
        fresh = Subject(ratings, recommender, threads=threads)
        return strongest(fresh, attackers, targets=n, rng=rng, progress=False)

    return find_pace(trial, ratings.shape[0])


def find_pace(
    attack: Callable[[int], object],
    n_users: int,
    *,
    longest: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Pace:
    """Try `attack` on a few users, and return how many of `n_users` it can attack in the longest time.

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
