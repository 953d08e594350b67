"""Kernels of made-up ratings: which items a user rates, and how.

Chance is a pure function of (key, row, count): no state is shared, so rows can be made in any
order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from goodfence.kernels.compiled import kernel
from goodfence.kernels.philox import Word, philox, to_uniform

_UNIT_NOISE = 3.0**0.5 / 65536.0  # the sum of four uniforms of 16 bits has variance 65536**2 / 3
_MIDDLE = 2.0 * 65535.0
_ZERO, _LOW16, _LOW32 = Word(0), Word(0xFFFF), Word(0xFFFFFFFF)
_S12, _S16, _S32 = Word(12), Word(16), Word(32)

DENSE = 8
"""Who rates more than one item in this many gets a key for every item instead of repeated tries."""


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
def choose_items(
    first: int,
    last: int,
    indptr: npt.NDArray[np.int64],
    user_groups: npt.NDArray[np.int64],
    group_starts: npt.NDArray[np.int64],
    cumulative: npt.NDArray[np.float64],
    columns: npt.NDArray[np.int32],
    own_share: float,
    key: Word,
    out: npt.NDArray[np.int32],
) -> None:
    """Write which items the rows from `first` to before `last` rate, ascending, all different.

    Items stand in the order of their groups, and `columns` says which each is; `cumulative` (items
    + 1) is the running sum of their weights, starting at 0. A try takes the user's own group with
    probability `own_share`, all items otherwise, and an item by its weight; an item that is there
    already is tried again. That is successive sampling.
    """
    n_items = len(cumulative) - 1
    seen = np.full(n_items, -1, np.int64)
    for row in range(first, last):
        begin, end = indptr[row], indptr[row + 1]
        group = user_groups[row]
        low, high = group_starts[group], group_starts[group + 1]
        if (end - begin) * DENSE > n_items:
            keys = _arrivals(row, low, high, cumulative, own_share, key)
            out[begin:end] = columns[np.argsort(keys)[: end - begin]]
        else:
            count = 0
            at = begin
            while at < end:
                coin, place = two_uniforms(key, row, count)
                own = coin < own_share
                item = _by_weight(
                    cumulative,
                    low if own else 0,
                    high if own else n_items,
                    place,
                )
                count += 1
                if seen[item] != row:
                    seen[item] = row
                    out[at] = columns[item]
                    at += 1
        out[begin:end] = np.sort(out[begin:end])


@kernel
def _by_weight(
    cumulative: npt.NDArray[np.float64], low: int, high: int, uniform_number: float
) -> int:
    """Return the item from `low` to before `high` in whose part of the sum the number falls."""
    wanted = cumulative[low] + uniform_number * (cumulative[high] - cumulative[low])
    left, right = low, high - 1
    while left < right:
        middle = (left + right) // 2
        if cumulative[middle + 1] > wanted:
            right = middle
        else:
            left = middle + 1
    return left


@kernel
def _arrivals(
    row: int,
    low: int,
    high: int,
    cumulative: npt.NDArray[np.float64],
    own_share: float,
    key: Word,
) -> npt.NDArray[np.float64]:
    """Return when each item arrives, exponential by its weight; the first are taken."""
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
def rate_items(
    first: int,
    last: int,
    indptr: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    user_levels: npt.NDArray[np.float64],
    user_groups: npt.NDArray[np.int64],
    item_levels: npt.NDArray[np.float64],
    item_groups: npt.NDArray[np.int64],
    tastes: npt.NDArray[np.float64],
    noise: float,
    key: Word,
    out: npt.NDArray[np.float64],
) -> None:
    """Write how the rows from `first` to before `last` like their items, from 0 to 1.

    A user's level, an item's level, what the user's group thinks of the item's group, and noise.
    """
    for row in range(first, last):
        for at in range(indptr[row], indptr[row + 1]):
            item = items[at]
            level = (
                user_levels[row] + item_levels[item] + tastes[user_groups[row], item_groups[item]]
            )
            level += noise * noise_of(key, row, item)
            out[at] = min(max(level, 0.0), 1.0)
