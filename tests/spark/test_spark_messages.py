"""Messages survive their encoding, in memory and in files, and do not show what is in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from goodfence.spark.messages import (
    Block,
    BlockLists,
    ChunkIds,
    Message,
    NumberedRows,
    from_arrow,
    pack,
    to_arrow,
    unpack,
)
from goodfence.spark.ratings import compact, cut_in_blocks, merged_rows
from tests.support.strategies import from_rows


def block() -> Block:
    csr = from_rows([{0: 0.5, 2: 0.0}, {}], 3).csr
    return Block(3, 4, *compact(csr), 7, np.array([0.1, 0.2], np.float32), count=5)


def test_a_message_in_a_file_is_the_same_message(tmp_path: Path) -> None:
    flags, rows = np.empty((0, 2)), np.arange(3)
    lists = BlockLists(0, 1, 7, rows.astype(np.int32), flags, rows, None)
    found = unpack("BlockLists", pack(lists, str(tmp_path)), 0, 1)
    assert isinstance(found, BlockLists)
    assert (found.first, found.bounds) == (7, None)
    assert found.similarities.shape == (0, 2)
    assert (found.uncertain == rows).all()
    assert not found.uncertain.flags.writeable


def test_a_block_survives_its_encoding() -> None:
    (other,) = from_arrow([to_arrow([block()])])
    assert isinstance(other, Block)
    assert (other.partition, other.sender, other.count, other.first) == (3, 4, 5, 7)
    assert (merged_rows([other]).toarray() == merged_rows([block()]).toarray()).all()
    assert merged_rows([other]).nnz == 2
    assert other.thresholds is not None
    assert (other.thresholds == block().thresholds).all()


@pytest.mark.parametrize("ids", [["ann", "", "Zoë"], [3, -1], []])
def test_ids_of_both_kinds_survive(ids: list[str] | list[int]) -> None:
    given = pa.array(["out", *ids], pa.string())[1:] if ids[:1] == ["ann"] else pa.array(ids, pa.int16())
    sent = ChunkIds(0, 0, 1, given, pa.array([1]))
    found = unpack("ChunkIds", pack(sent), 0, 0)
    assert isinstance(found, ChunkIds)
    assert found.users.to_pylist() == ids
    assert found.users.type == given.type


def test_a_message_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError):
        unpack("NumberedRows", pack(block()), 0, 0)
    with pytest.raises(KeyError):
        unpack("Parcel", pack(block()), 0, 0)


def test_a_message_does_not_show_what_is_in_it() -> None:
    shown = repr(NumberedRows(1, 2, *compact(from_rows([{0: 4.25}], 1).csr), np.array([77])))
    assert shown == "NumberedRows(1 from 2: n_columns, counts, columns, ratings, numbers)"
    assert repr(Message(1, 2)) == "Message(1 from 2: )"


def test_a_popular_item_is_in_every_block_and_no_block_is_larger_for_it() -> None:
    rows = [{0: 5.0, 1 + r % 7: 3.0} for r in range(1000)]
    sizes = [len(pack(one)) for one in cut_in_blocks(from_rows(rows, 8).csr, 100)]
    assert len(sizes) == 10
    assert max(sizes) - min(sizes) < 10  # the number of the first row is written in digits


def test_arrays_are_read_where_they_lie() -> None:
    """Blocks are most of the memory of a task: a copy of each would double it."""
    lists = BlockLists(0, 1, 7, np.arange(3, dtype=np.int32), np.linspace(0, 1, 5), np.arange(2))
    payload = pack(lists)
    found = unpack("BlockLists", payload, 0, 1)
    assert isinstance(found, BlockLists)
    memory = np.frombuffer(payload, np.uint8)
    for array in (found.indices, found.similarities, found.uncertain):
        assert np.shares_memory(array, memory)


def test_a_message_is_itself_and_no_other() -> None:
    """Arrays are equal entry by entry, so a message that was compared by what it holds could not be looked for."""
    one, other = (unpack("Block", pack(block()), 3, 4) for _ in range(2))
    assert one != other
    assert [one, other].index(other) == 1
    assert len({one, other, one}) == 2
