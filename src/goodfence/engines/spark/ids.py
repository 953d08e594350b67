"""Ids as arrays, so that they travel in parcels: integers as they are, text as its bytes and where each one ends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from goodfence.engines.spark.parcels import Arrays


def as_arrays(name: str, ids: pa.Array) -> Arrays:
    """Return integers or text as arrays whose names begin with `name`.

    Examples
    --------
    >>> sorted(as_arrays("ids", pa.array(["ann", "bob"])))
    ['ids_bytes', 'ids_ends']
    """
    if pa.types.is_integer(ids.type):
        return {name: ids.to_numpy()}
    text = ids.cast(pa.string())
    _, ends, held = text.buffers()
    ends = np.frombuffer(ends, np.int32)[text.offset : text.offset + len(text) + 1]
    held = np.frombuffer(held or b"", np.uint8)[ends[0] : ends[-1]]
    return {f"{name}_ends": ends[1:] - ends[0], f"{name}_bytes": held}


def as_ids(name: str, arrays: Arrays) -> pa.Array:
    """Return the ids that `as_arrays` made arrays of.

    Examples
    --------
    >>> as_ids("ids", as_arrays("ids", pa.array(["ann", "bob"]))).to_pylist()
    ['ann', 'bob']
    """
    if name in arrays:
        return pa.array(arrays[name])
    ends = np.concatenate([[0], arrays[f"{name}_ends"]]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(arrays[f"{name}_bytes"])]
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers)


def cut_at(ids: pa.Array, borders: Sequence[int | str]) -> list[pa.Array]:
    """Return sorted ids in parts: one begins at the first id that is not below a border.

    Examples
    --------
    >>> [part.to_pylist() for part in cut_at(pa.array([1, 2, 5]), [2, 9])]
    [[1], [2, 5], []]
    """
    found = (bisect_left(ids, border, key=lambda one: one.as_py()) for border in borders)
    places = [0, *found, len(ids)]
    return [ids[first:last] for first, last in pairwise(places)]
