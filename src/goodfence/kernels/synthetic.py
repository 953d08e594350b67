"""Synthetic ratings: which items a user rates, and how. Chance depends on (key, row, count) only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodfence.arrays import Floats, Integers, Rows
from goodfence.kernels import inner, kernel
from goodfence.kernels.draw import Word, philox, to_uniform

_UNIT_NOISE = 3.0**0.5 / 65536.0  # the sum of four uniforms of 16 bits has variance 65536**2 / 3
_MIDDLE = 2.0 * 65535.0
_ZERO, _LOW16, _LOW32 = Word(0), Word(0xFFFF), Word(0xFFFFFFFF)
_S12, _S16, _S32 = Word(12), Word(16), Word(32)

DENSE = 8  # who rates more than one item in this many gets a key for every item instead of repeated tries


class Tastes(NamedTuple):
    """Which items are popular with whom."""

    user_groups: Integers  # (users,): the group of taste of each user
    group_starts: Integers
    """(groups + 1,): where the items of each group begin; items are in the order of their groups."""
    cumulative: Floats  # (items + 1,): the running sum of the items' weights, starting at 0
    columns: Rows  # (items,): which column each item is
    own_share: float  # how many tries go to the user's own group


class Levels(NamedTuple):
    """What a rating is made of, on a scale from 0 to 1."""

    users: Floats
    user_groups: Integers
    items: Floats
    item_groups: Integers
    tastes: Floats  # (groups, groups): what a group of users thinks of a group of items
    noise: float


@kernel
def two_uniforms(key: Word, row: int, count: int) -> tuple[float, float]:
    """Return pair number `count` of a row's uniforms, both strictly between 0 and 1."""
    low_key, high_key = key & _LOW32, key >> _S32
    c0, c1, c2, c3 = philox(Word(count), Word(row), _ZERO, _ZERO, low_key, high_key)
    return to_uniform(((c0 << _S32) | c1) >> _S12), to_uniform(((c2 << _S32) | c3) >> _S12)


@kernel
def noise_of(key: Word, row: int, item: int) -> float:
    """Return noise of mean 0 and variance 1, nearly normal: four uniforms of 16 bits, added."""
    low_key, high_key = key & _LOW32, key >> _S32
    c0, c1, _, _ = philox(Word(item), Word(row), _ZERO, _ZERO, low_key, high_key)
    total = (c0 & _LOW16) + (c0 >> _S16) + (c1 & _LOW16) + (c1 >> _S16)
    return (float(total) - _MIDDLE) * _UNIT_NOISE


@kernel
def choose_items(first: int, last: int, indptr: Integers, tastes: Tastes, key: Word, out: Rows) -> None:
    """Write which items the rows from `first` to before `last` rate, ascending, by successive sampling.

    A try takes the user's own group with probability `own_share`, all items otherwise; repeated items are tried again.
    """
    cumulative, columns, own_share = tastes.cumulative, tastes.columns, tastes.own_share
    n_items = len(cumulative) - 1
    seen = np.full(n_items, -1, np.int64)
    for row in range(first, last):
        begin, end = indptr[row], indptr[row + 1]
        group = tastes.user_groups[row]
        low, high = tastes.group_starts[group], tastes.group_starts[group + 1]
        if (end - begin) * DENSE > n_items:
            keys = _arrivals(row, low, high, cumulative, own_share, key)
            out[begin:end] = columns[np.argsort(keys)[: end - begin]]
        else:
            count = 0
            at = begin
            while at < end:
                coin, place = two_uniforms(key, row, count)
                own = coin < own_share
                item = _by_weight(cumulative, low if own else 0, high if own else n_items, place)
                count += 1
                if seen[item] != row:
                    seen[item] = row
                    out[at] = columns[item]
                    at += 1
        out[begin:end] = np.sort(out[begin:end])


@inner
def _by_weight(cumulative: Floats, low: int, high: int, uniform_number: float) -> int:
    wanted = cumulative[low] + uniform_number * (cumulative[high] - cumulative[low])
    left, right = low, high - 1
    while left < right:
        middle = (left + right) // 2
        if cumulative[middle + 1] > wanted:
            right = middle
        else:
            left = middle + 1
    return left


@inner
def _arrivals(row: int, low: int, high: int, cumulative: Floats, own_share: float, key: Word) -> Floats:
    n_items = len(cumulative) - 1
    own_total = cumulative[high] - cumulative[low]
    keys = np.empty(n_items, np.float64)
    for item in range(n_items):
        weight = cumulative[item + 1] - cumulative[item]
        rate = (1.0 - own_share) * weight / cumulative[n_items]
        if low <= item < high:
            rate += own_share * weight / own_total
        keys[item] = -np.log(two_uniforms(key, row, item)[0]) / rate
    return keys


@kernel
def rate_items(first: int, last: int, indptr: Integers, items: Rows, levels: Levels, key: Word, out: Floats) -> None:
    """Write how the rows from `first` to before `last` like their items, from 0 to 1."""
    for row in range(first, last):
        for at in range(indptr[row], indptr[row + 1]):
            item = items[at]
            taste = levels.tastes[levels.user_groups[row], levels.item_groups[item]]
            level = levels.users[row] + levels.items[item] + taste
            level += levels.noise * noise_of(key, row, item)
            out[at] = min(max(level, 0.0), 1.0)
