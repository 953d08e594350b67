"""The order of a candidate list: descending similarity, ties by ascending row number."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints

RADIX_PAYS = 512
DIGIT_BITS = 11
N_DIGITS = 6
SIGN = np.uint64(1 << 63)


@kernel
def kth_largest(values: Floats, k: int) -> float:
    """Return the k-th largest of `values` (k from 1); the array is reordered."""
    low, high = 0, values.size - 1
    wanted = k - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return float(values[wanted])


@kernel
def descending_order(values: Floats) -> Ints:
    """Return the stable order of `values`, largest first; no NaN.

    A radix sort over the bits of the floats: whole candidate lists are long, and this is several times faster
    than comparing.
    """
    n = values.size
    if n < RADIX_PAYS:
        return np.argsort(-values, kind="mergesort")
    keys = np.empty(n, dtype=np.uint64)
    counts = np.zeros((N_DIGITS, 1 << DIGIT_BITS), dtype=np.int64)
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    bits = (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0, and they tie
    for i in range(n):
        # Floats of either sign in ascending order as unsigned integers, then turned round.
        sign = bits[i] >> np.uint64(63)
        key = bits[i] if sign else ~(bits[i] | SIGN)
        keys[i] = key
        for digit in range(N_DIGITS):
            counts[digit, (key >> np.uint64(digit * DIGIT_BITS)) & mask] += 1
    order = np.arange(n)
    spare_order, spare_keys = np.empty_like(order), np.empty_like(keys)
    for digit in range(N_DIGITS):
        shift = np.uint64(digit * DIGIT_BITS)
        if counts[digit, (keys[0] >> shift) & mask] == n:
            continue
        place = 0
        for value in range(1 << DIGIT_BITS):
            count = counts[digit, value]
            counts[digit, value] = place
            place += count
        for i in range(n):
            value = (keys[i] >> shift) & mask
            place = counts[digit, value]
            counts[digit, value] = place + 1
            spare_order[place], spare_keys[place] = order[i], keys[i]
        order, spare_order = spare_order, order
        keys, spare_keys = spare_keys, keys
    return order


@kernel
def nearest(
    similarities: Floats, skip: int, scratch: Floats, indices: Ints, values: Floats
) -> None:
    """Write the `indices.size` nearest rows and their similarities, in the order of a candidate list.

    `skip` is the row itself, or a negative number; `scratch` holds as many floats as there are rows.
    """
    n = indices.size
    if n == 0:
        return
    count = 0
    for row in range(similarities.size):
        if row != skip:
            scratch[count] = similarities[row]
            count += 1
    last = kth_largest(scratch[:count], n) if n < count else -np.inf
    found = 0
    for row in range(similarities.size):
        if row != skip and similarities[row] > last:
            indices[found] = row
            found += 1
    order = descending_order(similarities[indices[:found]])
    indices[:found] = indices[:found][order]
    for row in range(similarities.size):
        if found == n:
            break
        if row != skip and similarities[row] == last:
            indices[found] = row
            found += 1
    for position in range(n):
        values[position] = similarities[indices[position]]
