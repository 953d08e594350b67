"""The order of a candidate list: descending similarity, ties by ascending row number."""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Words
from goodfence.kernels import inner, kernel

RADIX_PAYS = 512
DIGIT_BITS = 11
N_DIGITS = 3
RUN = 12
SIGN = np.uint64(1 << 63)
UPPER = np.uint64(0xFFFFFFFF00000000)


@kernel
def kth_largest(values: AnyFloats, k: int) -> float:
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


@inner
def sort_ascending(values: AnyIntegers) -> None:
    """Sort integers in place (Shell sort: far less to compile than `np.sort`)."""
    for gap in (701, 301, 132, 57, 23, 10, 4, 1):
        for place in range(gap, values.size):
            moving, at = values[place], place
            while at >= gap and values[at - gap] > moving:
                values[at] = values[at - gap]
                at -= gap
            values[at] = moving


@inner
def _upper_half_order(packed: Words) -> Words:
    """Return `packed` in the stable ascending order of its upper 32 bits."""
    n = packed.size
    counts = np.zeros((N_DIGITS, 1 << DIGIT_BITS), dtype=np.int64)
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    for i in range(n):
        for digit in range(N_DIGITS):
            counts[digit, (packed[i] >> np.uint64(32 + digit * DIGIT_BITS)) & mask] += 1
    spare = np.empty_like(packed)
    for digit in range(N_DIGITS):
        shift = np.uint64(32 + digit * DIGIT_BITS)
        if counts[digit, (packed[0] >> shift) & mask] == n:
            continue
        place = 0
        for value in range(1 << DIGIT_BITS):
            count = counts[digit, value]
            counts[digit, value] = place
            place += count
        for i in range(n):
            value = (packed[i] >> shift) & mask
            spare[counts[digit, value]] = packed[i]
            counts[digit, value] += 1
        packed, spare = spare, packed
    return packed


@inner
def _comes_before(a: int, b: int, similarities: AnyFloats, rows: AnyIntegers) -> bool:
    if similarities[a] != similarities[b]:
        return bool(similarities[a] > similarities[b])
    return bool(rows[a] < rows[b])


@inner
def _sort_run(slots: AnyIntegers, similarities: AnyFloats, rows: AnyIntegers) -> None:
    for place in range(1, slots.size):
        moving, at = slots[place], place
        while at > 0 and _comes_before(moving, slots[at - 1], similarities, rows):
            slots[at] = slots[at - 1]
            at -= 1
        slots[at] = moving


@kernel
def sort_candidates(similarities: AnyFloats, rows: AnyIntegers) -> AnyIntegers:
    """Return the order of candidates: spread over buckets by similarity, nearly in order, then merged."""
    count = similarities.size
    slots = _bucket_order(similarities)
    for start in range(0, count, RUN):
        _sort_run(slots[start : start + RUN], similarities, rows)
    spare = np.empty_like(slots)
    run = RUN
    while run < count:
        for start in range(0, count, 2 * run):
            middle, end = min(start + run, count), min(start + 2 * run, count)
            if middle < end and _comes_before(slots[middle], slots[middle - 1], similarities, rows):
                _merge_runs(slots[start:end], spare, middle - start, similarities, rows)
        run *= 2
    return slots


@inner
def _merge_runs(
    slots: AnyIntegers, spare: AnyIntegers, middle: int, similarities: AnyFloats, rows: AnyIntegers
) -> None:
    left, right = 0, middle
    for place in range(slots.size):
        from_left = right >= slots.size
        if not from_left and left < middle:
            from_left = not _comes_before(slots[right], slots[left], similarities, rows)
        if from_left:
            spare[place] = slots[left]
            left += 1
        else:
            spare[place] = slots[right]
            right += 1
    slots[:] = spare[: slots.size]


@inner
def _bucket_order(similarities: AnyFloats) -> AnyIntegers:
    """Return the candidates in buckets of falling similarity: nearly in order, in linear time."""
    count = similarities.size
    slots = np.arange(count)
    low, high = np.inf, -np.inf
    for slot in range(count):
        low = min(low, similarities[slot])
        high = max(high, similarities[slot])
    if not high > low:
        return slots
    scale = (count - 1) / (high - low)
    starts = np.zeros(count + 1, dtype=np.int64)
    for slot in range(count):
        starts[int((high - similarities[slot]) * scale) + 1] += 1
    for bucket in range(count):
        starts[bucket + 1] += starts[bucket]
    for slot in range(count):
        bucket = int((high - similarities[slot]) * scale)
        slots[starts[bucket]] = slot
        starts[bucket] += 1
    return slots


@inner
def _all_tie(values: AnyFloats, order: AnyIntegers) -> bool:
    first = values[order[0]]
    for position in range(1, order.size):  # noqa: SIM110 - compiled: no generators
        if values[order[position]] != first:
            return False
    return True


@kernel
def descending_order(values: AnyFloats) -> AnyIntegers:
    """Return the stable order of `values`, largest first; no NaN and no infinity.

    Long lists get a radix sort over the upper half of the floats' bits, with the position in the lower half, which is
    several times faster than comparing. Runs that are equal in the upper half are short, or ties.
    """
    n = values.size
    numbers = np.arange(n)
    if n < RADIX_PAYS:
        return sort_candidates(values, numbers)
    packed = np.empty(n, dtype=np.uint64)
    for i in range(n):
        bits = np.float64(values[i] + 0.0).view(np.uint64)  # -0.0 becomes 0.0, and they tie
        # Floats of either sign, as unsigned integers, in descending order.
        key = bits if bits & SIGN else ~(bits | SIGN)
        packed[i] = (key & UPPER) | np.uint64(i)
    packed = _upper_half_order(packed)
    order = np.empty(n, dtype=np.int64)
    for i in range(n):
        order[i] = packed[i] & ~UPPER
    start = 0
    for i in range(1, n + 1):
        if i < n and (packed[i] ^ packed[start]) & UPPER == 0:
            continue
        run = order[start:i]
        if run.size > RUN and not _all_tie(values, run):
            run[:] = run[sort_candidates(values[run], run)]
        elif 1 < run.size <= RUN:
            _sort_run(run, values, numbers)
        start = i
    return order


@kernel
def nearest(similarities: AnyFloats, skip: int, scratch: AnyFloats, indices: AnyIntegers, values: AnyFloats) -> None:
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
    rows = np.empty(n, dtype=np.int64)
    found = 0
    for row in range(similarities.size):
        if row != skip and similarities[row] > last:
            rows[found], scratch[found] = row, similarities[row]
            found += 1
    order = descending_order(scratch[:found])
    for position in range(found):
        indices[position] = rows[order[position]]
    for row in range(similarities.size):
        if found == n:
            break
        if row != skip and similarities[row] == last:
            indices[found] = row
            found += 1
    for position in range(n):
        values[position] = similarities[indices[position]]
