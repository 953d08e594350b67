"""What travels between tasks: each kind of message is a frozen dataclass, and all have one encoding.

A message goes to a partition, and one task works on it there. On the way it is a row of `SCHEMA`; only the payload
depends on the kind, so Spark can address a message anew without looking inside.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, TypeAlias, dataclass_transform

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.arrays import Float32s, Floats, Integers, Rows

SCHEMA = "partition int, sender int, kind string, count int, payload binary"
_ALIGNED = 64
_HEAD = 8
_FILE = b"file:"
_TYPES = {"int": pa.int32(), "string": pa.string(), "binary": pa.binary()}
_ARROW_SCHEMA = pa.schema([(n, _TYPES[t]) for n, t in map(str.split, SCHEMA.split(", "))])
_KINDS: dict[str, type[Message]] = {}
AnyNumbers: TypeAlias = npt.NDArray[Any]  # in the smallest type that holds them


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True, eq=False, repr=False)
class Message:
    """An address, and what else a kind holds: arrays, ids (arrow integers or text) and plain JSON values.

    A task takes the messages of a kind in the order of their senders. The driver may read `count` without the payload:
    the number of repeated pairs of a block, of sorted ids, or of uncertain lists. Every subclass is a kind of message.
    """

    partition: int
    sender: int
    count: int = field(default=0, kw_only=True)

    def __init_subclass__(cls) -> None:
        _KINDS[cls.__name__] = dataclass(frozen=True, eq=False, repr=False)(cls)

    def __repr__(self) -> str:
        names = ", ".join(_names(self))
        return f"{type(self).__name__}({self.partition} from {self.sender}: {names})"


class ChunkFacts(Message):
    """Counts and extremes of one chunk, or of all chunks together."""

    n_ratings: int = 0
    n_wrong: list[int] = field(default_factory=list)  # rows for each problem that a reader can have
    extremes: list[float] = field(default_factory=list)  # as `extremes_of` returns them
    id_bytes: list[int] = field(default_factory=list)  # of the users, then of the items
    id_types: list[str] = field(default_factory=list)  # as Spark calls them
    chunks: list[int] = field(default_factory=list)  # the split that each chunk was cut from
    notes: list[str] = field(default_factory=list)  # warnings of the reader
    error: list[str] | None = None  # class and sentence of what the reader raised


class ChunkIds(Message):
    """The different ids of a chunk, or a sample of them, sorted; the stamp tells them from those of another cut."""

    stamp: int
    users: pa.Array
    items: pa.Array


class ChunkRatings(Message):
    """The ratings of a chunk; user and item are positions among the ids of the chunk."""

    stamp: int
    n_ids: list[int]
    users: AnyNumbers
    items: AnyNumbers
    ratings: AnyNumbers


class IdsInRange(Message):
    """The ids of a chunk that are in one range."""

    stamp: int
    ids: pa.Array


class SortedIds(Message):
    """All ids of a range, or those of a block's rows that are in one range."""

    ids: pa.Array


class IdPositions(Message):
    """Where in a range the ids of a chunk are."""

    stamp: int
    positions: AnyNumbers


class BlockPart(Message):
    """The ratings of a chunk that are in one block; rows are counted from the first of the block."""

    rows: AnyNumbers
    columns: AnyNumbers
    ratings: AnyNumbers


class SparseRows(Message):
    """Rows of ratings: how many each row has, then the columns and the ratings of all."""

    n_columns: int
    counts: Rows
    columns: AnyNumbers
    ratings: AnyNumbers


class NumberedRows(SparseRows):
    """Single rows, by ascending number."""

    numbers: Integers


class UserRows(SparseRows):
    """Rows of some users, by their ids, on their way to the bucket that keeps these users."""

    ids: pa.Array


class UserState(Message):
    """All that is kept of the users of one bucket between updates."""

    ids: pa.Array
    kept: dict[str, AnyNumbers]


class Block(SparseRows):
    """Consecutive rows, by ascending number; the sender is the number of the block."""

    first: int
    thresholds: Float32s | None = None  # (rows,): similarities below it are left out

    @property
    def numbers(self) -> Integers:
        """The row numbers."""
        return np.arange(self.first, self.first + len(self.counts))


class RaggedLists(Message):
    """For each of some rows a list of rows or columns, of any length, with a value for each."""

    lengths: Rows
    indices: Rows
    values: Floats


class NumberedLists(RaggedLists):
    """Lists of single rows: candidates that were recomputed, or recommended columns."""

    numbers: Integers


class Candidates(RaggedLists):
    """What a tile found for consecutive rows of a block."""

    first: int
    bounds: Floats | None = None  # (rows,): RS among the rows of the tile
    thresholds: Float32s | None = None  # from one tile of each block only


class BlockLists(Message):
    """The candidate lists of a block."""

    first: int
    indices: Rows
    similarities: Floats
    uncertain: Integers  # rows, counted in the block
    bounds: Floats | None = None  # RS of each row, (rows,), or of each entry, (rows, n)


class ListEntries(Message):
    """Entries of a block's lists: whose (counted in the block), where in the list, which row, and its RS."""

    first: int
    owners: Rows
    slots: Rows
    candidates: Rows
    bounds: Floats | None = None


class BlockNeighbours(Message):
    """The chosen neighbours of a block."""

    first: int
    neighbours: Rows
    similarities: Floats
    weights: Floats


class Totals(Message):
    """A part of integer sums over the users of one block, or of all; the count is how many blocks are in it."""

    totals: AnyNumbers


class BlockFigures(Message):
    """What is told of the users of one block."""

    told: dict[str, AnyNumbers]


class GroupNeighbours(Message):
    """The chosen neighbours of a group of rows, for which one task predicts."""

    rows: Integers
    neighbours: Rows
    weights: Floats


class RowRequest(Message):
    """The rows of a block that a group needs."""

    numbers: Integers


class Cells(Message):
    """Cells of a group, and what is predicted."""

    rows: Integers
    columns: Integers
    predictions: Floats | None = None


def pack(one: Message, spill_folder: str | None = None) -> bytes:
    """Return the payload of a message; with a spill folder, the name of a new file there that holds it."""
    if spill_folder is None:
        return b"".join(_pieces(one))
    path = Path(spill_folder) / secrets.token_hex(12)
    with path.open("xb") as file:
        file.writelines(_pieces(one))
    return _FILE + os.fsencode(path)


def unpack(kind: str, payload: Any, partition: int, sender: int, count: int = 0) -> Message:
    """Return the message that `pack` packed; its arrays lie in the memory of `payload`, read-only."""
    view = memoryview(payload).cast("B")
    if view[: len(_FILE)] == _FILE:
        with Path(os.fsdecode(bytes(view[len(_FILE) :]))).open("rb") as file:
            view = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
    end = _HEAD + int.from_bytes(view[:_HEAD], "little")
    values: dict[str, Any] = {}
    position = _rounded(end)
    for name, form, stated in json.loads(bytes(view[_HEAD:end])):
        if form == "value":
            values[name] = stated
            continue
        arrays: Any = []
        for dtype, shape in stated:
            size = math.prod(shape)
            array = np.frombuffer(view, dtype=dtype, count=size, offset=position).reshape(shape)
            position = _rounded(position + array.nbytes)
            array = array if array.flags.aligned else array.copy()
            array.flags.writeable = False
            arrays.append(array)
        if isinstance(form, list):
            values[name] = dict(zip(form, arrays, strict=True))
        else:
            values[name] = arrays[0] if form == "array" else _ids_of(arrays)
    return _KINDS[kind](partition, sender, count=count, **values)


def to_arrow(messages: Iterable[Message], spill_folder: str | None = None) -> pa.RecordBatch:
    """Return messages as arrow rows of `SCHEMA`; their payloads are in files where there is a spill folder."""
    rows = ((one.partition, one.sender, type(one).__name__, one.count, pack(one, spill_folder)) for one in messages)
    named = [dict(zip(_ARROW_SCHEMA.names, row, strict=True)) for row in rows]
    return pa.RecordBatch.from_pylist(named, schema=_ARROW_SCHEMA)


def from_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """Yield the messages of arrow rows."""
    for batch in batches:
        partitions, senders, kinds, counts = (batch.column(i).to_pylist() for i in range(4))
        payloads = (one.as_buffer() for one in batch.column("payload"))
        yield from map(unpack, kinds, payloads, partitions, senders, counts)


def _pieces(one: Message) -> Iterator[Any]:
    """Yield the bytes of a payload: a head that says what is in it, then each array, all padded."""
    head, whole = [], []
    for name in _names(one):
        value = getattr(one, name)
        named = isinstance(value, dict)
        arrays = arrays_of_ids(value) if isinstance(value, pa.Array) else list(value.values()) if named else [value]
        if not named and not isinstance(arrays[0], np.ndarray):
            head.append([name, "value", value])
            continue
        arrays = [np.ascontiguousarray(array) for array in arrays]
        form = list(value) if named else "array" if isinstance(value, np.ndarray) else "ids"
        head.append([name, form, [[part.dtype.str, part.shape] for part in arrays]])
        whole += arrays
    text = json.dumps(head).encode()
    yield (len(text).to_bytes(_HEAD, "little") + text).ljust(_rounded(_HEAD + len(text)), b"\0")
    for array in whole:
        yield array.reshape(-1).view(np.uint8).data
        yield bytes(_rounded(array.nbytes) - array.nbytes)


def _names(one: Message) -> list[str]:
    return [stated.name for stated in fields(one) if stated.name not in _ARROW_SCHEMA.names]


def arrays_of_ids(ids: pa.Array) -> list[AnyNumbers]:
    """Return integers as one array, and text as two: where each one ends, and the bytes of all."""
    if pa.types.is_integer(ids.type):
        return [ids.to_numpy()]
    text = ids.cast(pa.string())
    _, ends, data = text.buffers()
    ends = np.frombuffer(ends, np.int32)[text.offset : text.offset + len(text) + 1]
    data = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    return [ends[1:] - ends[0], data]


def _ids_of(arrays: list[AnyNumbers]) -> pa.Array:
    if len(arrays) == 1:
        return pa.array(arrays[0])
    ends, data = arrays
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(ends), buffers)


def _rounded(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNED) * _ALIGNED
