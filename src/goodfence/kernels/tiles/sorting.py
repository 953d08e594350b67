"""Candidates in the order of a list: descending similarity, ties by ascending row number."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints

_RUN = 12


@kernel
def stands_before(a: int, b: int, similarities: Floats, rows: Ints) -> bool:
    """Return whether candidate a stands before candidate b."""
    if similarities[a] != similarities[b]:
        return bool(similarities[a] > similarities[b])
    return bool(rows[a] < rows[b])


@kernel
def sort_candidates(similarities: Floats, rows: Ints) -> Ints:
    """Return the order of candidates: spread over buckets by similarity, nearly in order, then merged."""
    count = similarities.size
    slots = spread(similarities)
    for start in range(0, count, _RUN):
        for place in range(start + 1, min(start + _RUN, count)):
            moving = slots[place]
            at = place
            while at > start and stands_before(moving, slots[at - 1], similarities, rows):
                slots[at] = slots[at - 1]
                at -= 1
            slots[at] = moving
    spare = np.empty_like(slots)
    run = _RUN
    while run < count:
        for start in range(0, count, 2 * run):
            middle, end = min(start + run, count), min(start + 2 * run, count)
            if middle < end and stands_before(slots[middle], slots[middle - 1], similarities, rows):
                merge(slots, spare, start, middle, end, similarities, rows)
        run *= 2
    return slots


@kernel
def merge(
    slots: Ints, spare: Ints, start: int, middle: int, end: int, similarities: Floats, rows: Ints
) -> None:
    """Merge two sorted runs of `slots`."""
    left, right = start, middle
    for place in range(start, end):
        from_left = right >= end
        if not from_left and left < middle:
            from_left = not stands_before(slots[right], slots[left], similarities, rows)
        if from_left:
            spare[place] = slots[left]
            left += 1
        else:
            spare[place] = slots[right]
            right += 1
    slots[start:end] = spare[start:end]


@kernel
def spread(similarities: Floats) -> Ints:
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
