"""Parcels: arrays on their way from task to task, each with the place it goes to.

Everything that moves between tasks has this one form. A place is a partition: what goes to one place is worked on
by one task, whatever else happens to be on the cluster. Work is a pure function of what arrived, in a fixed order,
so that a task that failed and is tried again, or runs twice, gives the same.
"""

from __future__ import annotations

import gc
import json
import os
import secrets
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
SCHEMA = "place int, part int, payload binary"
_ALIGNED = 64
_HEAD = 8
_FILE = b"file:"
DEPOT: ContextVar[str | None] = ContextVar("depot", default=None)
"""The folder in which parcels lie while they go from task to task on one machine."""

_LOADED = [0]
"""How many modules were loaded when this process last settled its memory."""


class Parcel(NamedTuple):
    """Arrays with an address."""

    place: int
    """Where they go to."""
    part: int
    """Which of the parcels of that place they are; work gets them in this order."""
    arrays: Arrays

    def __repr__(self) -> str:
        return f"Parcel(place={self.place}, part={self.part}, {', '.join(self.arrays)})"


Work: TypeAlias = Callable[[int, list[Parcel]], Iterable[Parcel]]
"""What a task does: from its place, and the parcels that came there, to parcels for other places."""

Shorten: TypeAlias = Callable[[list[Parcel]], list[Parcel]]
"""What keeps the parcels that wait at a place few, without a change in what becomes of them."""


@contextmanager
def staying_here(session: SparkSession) -> Iterator[None]:
    """Leave parcels in files while they go from task to task: all tasks are on this machine.

    What passes through Spark is then only where each one lies. The name of a file is new for each attempt of a
    task, so what a failed or a slower attempt wrote is never read. The files go when the block ends.
    """
    if not str(session.sparkContext.master).startswith("local"):
        yield
        return
    with TemporaryDirectory(prefix="goodfence-", ignore_cleanup_errors=True) as folder, _in(folder):
        yield


@contextmanager
def set_aside() -> Iterator[Callable[[], None]]:
    """Leave what is sent in the block in files of its own; what is handed out lets go of them, before all others."""
    depot = DEPOT.get()
    if depot is None:
        yield lambda: None
        return
    folder = mkdtemp(dir=depot)
    with _in(folder):
        yield partial(shutil.rmtree, folder, ignore_errors=True)


@contextmanager
def _in(folder: str) -> Iterator[None]:
    before = DEPOT.set(folder)
    try:
        yield
    finally:
        DEPOT.reset(before)


def pack(arrays: Arrays) -> bytes:
    """Return arrays as bytes, each beginning where a processor likes it to.

    Examples
    --------
    >>> unpack(pack({"rows": np.arange(3)}))["rows"]
    array([0, 1, 2])
    """
    return b"".join(_pieces(arrays))


def deposit(arrays: Arrays, folder: str) -> bytes:
    """Write arrays to a new file of `folder`, and return what `unpack` finds them by."""
    path = Path(folder) / secrets.token_hex(12)
    with path.open("xb") as file:
        file.writelines(_pieces(arrays))
    return _FILE + os.fsencode(path)


def unpack(payload: Any) -> Arrays:
    """Return the arrays that `pack` packed; they lie in the memory of `payload` and are read-only."""
    view = memoryview(payload).cast("B")
    if view[: len(_FILE)] == _FILE:
        with Path(os.fsdecode(bytes(view[len(_FILE) :]))).open("rb") as file:
            view = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
    end = _HEAD + int.from_bytes(view[:_HEAD], "little")
    arrays: Arrays = {}
    place = _rounded(end)
    for name, kind, shape in json.loads(bytes(view[_HEAD:end])):
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(view, dtype=kind, count=count, offset=place).reshape(shape)
        arrays[name] = array if array.flags.aligned else array.copy()
        arrays[name].flags.writeable = False
        place = _rounded(place + array.nbytes)
    return arrays


def exchange(
    frame: DataFrame, n_places: int, work: Work, shorten: Shorten | None = None
) -> DataFrame:
    """Bring every parcel to its place, one task for each place, and return what `work` sends from there."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    return each(frame.repartitionById(n_places, F.col("place")), work, shorten)


def each(frame: DataFrame, work: Work, shorten: Shorten | None = None) -> DataFrame:
    """Do `work` where the parcels are."""
    depot = DEPOT.get()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from done(work, batches, shorten, depot)
        settle_memory()

    with without_advice():
        return frame.mapInArrow(task, SCHEMA)


def done(
    work: Work,
    batches: Iterator[pa.RecordBatch],
    shorten: Shorten | None = None,
    depot: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield what `work` makes of the parcels of one partition, place by place."""
    arrived: dict[int, list[Parcel]] = {}
    for batch in batches:
        for parcel in opened(batch):
            waiting = arrived.setdefault(parcel.place, [])
            waiting.append(parcel)
            if shorten is not None:
                arrived[parcel.place] = shorten(waiting)
    for place in sorted(arrived):
        parcels = sorted(arrived.pop(place), key=lambda parcel: parcel.part)
        for sent in work(place, parcels):
            yield closed([sent], depot)


def settle_memory() -> None:
    """Take what was loaded out of the garbage collector's way, once for each time that something was.

    Spark has every worker collect garbage after each task. With the compiler's modules loaded that took longer
    than most of the tasks.
    """
    if len(sys.modules) > _LOADED[0]:
        _LOADED[0] = len(sys.modules)
        gc.collect()
        gc.freeze()


def opened(batch: pa.RecordBatch | pa.Table) -> Iterator[Parcel]:
    """Yield the parcels of arrow rows."""
    columns = (batch.column(name).to_pylist() for name in ("place", "part"))
    for place, part, payload in zip(*columns, batch.column("payload"), strict=True):
        yield Parcel(place, part, unpack(payload.as_buffer()))


def closed(parcels: list[Parcel], depot: str | None = None) -> pa.RecordBatch:
    """Return parcels as arrow rows; what is in them lies in files where there is a depot."""
    packed = (pack(one.arrays) if depot is None else deposit(one.arrays, depot) for one in parcels)
    columns = [
        pa.array([parcel.place for parcel in parcels], pa.int32()),
        pa.array([parcel.part for parcel in parcels], pa.int32()),
        pa.array(list(packed), pa.binary()),
    ]
    return pa.record_batch(columns, names=["place", "part", "payload"])


def frame_of(spark: SparkSession, parcels: Iterable[Parcel]) -> DataFrame:
    """Return parcels of this process as a data frame."""
    with without_advice():
        return spark.createDataFrame(pa.Table.from_batches([closed(list(parcels), DEPOT.get())]))


def collected(frame: DataFrame) -> list[Parcel]:
    """Return all parcels of a data frame in this process, in the order of their places."""
    with without_advice():
        found = list(opened(frame.toArrow()))
    return sorted(found, key=lambda parcel: (parcel.place, parcel.part))


def _pieces(arrays: Arrays) -> Iterator[Any]:
    """Yield the bytes of a parcel: what is in it, then each array, all padded."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    head = json.dumps([[name, one.dtype.str, one.shape] for name, one in whole.items()]).encode()
    yield (len(head).to_bytes(_HEAD, "little") + head).ljust(_rounded(_HEAD + len(head)), b"\0")
    for one in whole.values():
        yield one.reshape(-1).view(np.uint8).data
        yield bytes(_rounded(one.nbytes) - one.nbytes)


def _rounded(place: int) -> int:
    return -(-place // _ALIGNED) * _ALIGNED


@contextmanager
def without_advice() -> Iterator[None]:
    """Leave out what PySpark says about the version of pandas: no data frame of pandas is made here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
        yield
