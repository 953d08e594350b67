"""How far one rating more moves what McSherry and Mironov release, over the constant of their Theorem 5.

`search` tries: the item averages were released before, so they are the enemy's too, and a rating lies anywhere in
[-4, 4] from its item's. `bound` proves (`docs/mechanisms/mcsherry-mironov.md`).
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.papers.mcsherry_mironov import THEOREM
from goodfence.privacy.fixed_point import SPAN

MOST = 1000
"""Up to how many ratings are tried."""
_POOL, _ELITE, _ROUNDS = 20_000, 1_000, 40
_POINTS = 1024
MANY = 2000
"""Up to how many ratings each number of them is bounded by itself."""

Floats: TypeAlias = npt.NDArray[np.float64]


class Users(NamedTuple):
    """Users in two blocks of equal ratings, one row each, and the rating in question."""

    n_ratings: Floats
    """How many ratings they have."""
    first: Floats
    """How many of these are of the first block."""
    apart: Floats
    """(3, users): how far both blocks and the new rating lie from their items' averages."""
    chosen: Floats
    """1 where items of the second block enter the covariance, else 0."""


class Found(NamedTuple):
    """The largest moves that were found, over the constant."""

    covariance: float
    n_ratings: int
    """How many ratings that user has."""
    together: float
    """Of covariance and weights together."""


def moves(users: Users, clamp: float, prior: int) -> tuple[Floats, Floats]:
    """Return how far one rating more moves each user's covariance, and covariance and weights together."""
    count, first, (one, two, new), chosen = users
    second = count - first
    before = (first * one + second * two) / (count + prior)
    after = (first * one + second * two + new) / (count + 1 + prior)
    old = [np.clip(each - before, -clamp, clamp) for each in (one, two)]
    now = [np.clip(each - after, -clamp, clamp) for each in (one, two, new)]
    light, lighter = 1 / np.sqrt(count), 1 / np.sqrt(count + 1)

    def moved(i: int, j: int) -> Floats:
        return np.asarray((old[i] * old[j] * light - now[i] * now[j] * lighter) ** 2)

    covariance = first * (first - 1) / 2 * moved(0, 0) + first * (now[2] * now[0] * lighter) ** 2
    others = second * (second - 1) / 2 * moved(1, 1) + first * second * moved(0, 1)
    covariance = covariance + chosen * (others + second * (now[2] * now[1] * lighter) ** 2)
    n = first + chosen * second
    weights = (light - lighter) ** 2 * n * (n - 1) / 2 + n * lighter**2
    together = np.sqrt((covariance / clamp**4 + weights) / 2)
    return np.sqrt(covariance) / clamp**2 / THEOREM, together / THEOREM


def search(clamp: float, prior: int) -> Found:
    """Return the largest moves that were found."""
    users = worst(clamp, prior)
    covariance, together = moves(users, clamp, prior)
    return Found(float(covariance[0]), int(users.n_ratings[0]), float(together.max()))


def worst(clamp: float, prior: int, seed: int = 0) -> Users:
    """Return the users who move most, first the one who moves most of all.

    They are random at first; then the worst of them are kept and changed, less and less.
    """
    rng = np.random.default_rng(seed)
    users = _random(rng, _POOL)
    for turn in range(_ROUNDS):
        elite = _best(users, clamp, prior)
        pairs = zip(elite, _changed(elite, rng, 0.5 * 0.9**turn), strict=True)
        users = Users(*(np.concatenate(pair, axis=-1) for pair in pairs))
    return _best(users, clamp, prior)


def _best(users: Users, clamp: float, prior: int) -> Users:
    order = np.argsort(-moves(users, clamp, prior)[0])[:_ELITE]
    return Users(*(part[..., order] for part in users))


def _random(rng: np.random.Generator, n: int) -> Users:
    count = np.floor(np.exp(rng.uniform(0, math.log(MOST), n)))
    first = np.clip(np.round(count * rng.choice([1, 0.9, 0.75, 0.5, 0.25], n)), 1, count)
    apart = rng.uniform(-SPAN, SPAN, (3, n))
    apart[2] = rng.choice([-SPAN, SPAN], n)
    return Users(count, first, apart, rng.integers(0, 2, n).astype(np.float64))


def _changed(elite: Users, rng: np.random.Generator, size: float) -> Users:
    picked = rng.integers(0, _ELITE, _POOL)
    kept = Users(*(part[..., picked] for part in elite))
    count = np.clip(kept.n_ratings + np.round(rng.normal(0, 1 + 30 * size, _POOL)), 1, MOST)
    first = np.clip(kept.first + np.round(rng.normal(0, 1 + 20 * size, _POOL)), 1, count)
    apart = np.clip(kept.apart + rng.normal(0, size, (3, _POOL)), -SPAN, SPAN)
    return Users(count, first, apart, kept.chosen)


def bound(clamp: float, prior: int) -> float:
    """Return a proved bound on the covariance's move over the constant, for any number of ratings."""
    counts = np.arange(1.0, MANY + 1)
    shift = SPAN * (1 + counts / (counts + prior)) / (counts + 1 + prior)
    products = _products(np.minimum(shift, 2 * clamp), clamp)
    products[-1] = (
        2 * clamp * 2 * SPAN / MANY
    )  # |d||s|/c: with still more ratings it falls faster than its factor grows
    old = products * counts / np.sqrt(counts + 1)
    old += clamp**2 * counts * (1 / np.sqrt(counts) - 1 / np.sqrt(counts + 1))
    new = np.where(counts < MANY, clamp**2 * np.sqrt(counts / (counts + 1)), clamp**2)
    return float(np.hypot(old / math.sqrt(2), new).max()) / clamp**2 / THEOREM


def _products(shift: Floats, clamp: float) -> Floats:
    """Bound |r rᵀ - r' r'ᵀ|/c where no residual moves farther than `shift`, and all to the same side.

    With d = r - r' and s = r + r', which is at most 2B - d, its square is (E[d²]E[s²] + E[ds]²)/2, over c². For a
    given mean m of d this is convex in E[d²], so it is largest at m² or at shift·m. The points of m that are tried
    miss the largest value by at most the derivative times half their distance.
    """
    mean = np.linspace(0.0, 1.0, _POINTS + 1)[:, None] * shift
    found = np.zeros(len(shift))
    for square in (mean**2, mean * shift):
        spread = square * (4 * clamp**2 - 4 * clamp * mean + square)
        both = (2 * clamp * mean - square) ** 2
        found = np.maximum(found, ((spread + both) / 2).max(axis=0))
    slack = 24 * clamp**3 * shift / (2 * _POINTS)
    return np.asarray(np.sqrt(found + slack))
