"""From a data frame to blocks, without Spark: however ratings are cut in chunks, the blocks are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import goodfence as gf
from goodfence.engines.spark import encoding
from goodfence.engines.spark.blocks import cut
from goodfence.engines.spark.encoding import coded, encode, facts_from, stamp_of
from goodfence.engines.spark.gathering import Gathering
from goodfence.engines.spark.ids import as_ids
from goodfence.engines.spark.numbering import Marking, Ranges, Sending
from goodfence.engines.spark.parcels import Parcel, pack, unpack
from goodfence.errors import ValueProblem
from goodfence.similarity.profiles import Profiles
from tests.spark.by_hand import exchanged
from tests.spark.frames import table_of
from tests.strategies import from_rows, rated_rows

WHOLE = Ranges(borders=((), ()))


def chunks_of(table: pa.Table, n_partitions: int, most: int, **how: Any) -> list[dict[str, Any]]:
    """Return what the tasks of the one pass say of a table, in batches of three ratings."""
    size = -(-table.num_rows // n_partitions)
    return [
        row
        for partition in range(n_partitions)
        for batch in encode(
            iter(table.slice(partition * size, size).to_batches(3)), partition, most, **how
        )
        for row in batch.to_pylist()
    ]


def together(chunks: list[Any]) -> list[float]:
    """Return the facts of all chunks as Spark puts them together."""
    facts = np.array(chunks)
    counts, lowest, largest = facts[:, :7], facts[:, 7], facts[:, 8:]
    return [*counts.sum(axis=0).tolist(), float(lowest.min()), *largest.max(axis=0).tolist()]


def numbered(
    chunks: list[dict[str, Any]], ranges: Ranges
) -> tuple[list[Parcel], list[Parcel], tuple[int, ...]]:
    """Return the ranges of ids in order, where the ids of each chunk stand, and the first number of each range."""
    ids = [Parcel(place, -1, unpack(chunk["ids"])) for place, chunk in enumerate(chunks)]
    found = exchanged(exchanged(ids, ranges.share), ranges.number)
    in_order = sorted(parcel for parcel in found if parcel.part < 0)
    counts = np.zeros(ranges.n, dtype=int)
    for parcel in in_order:
        counts[parcel.place] = -parcel.part
    by_kind = np.split(counts, [ranges.n_users])
    firsts = np.concatenate([np.cumsum(one) - one for one in by_kind]).tolist()
    return in_order, [parcel for parcel in found if parcel.part >= 0], tuple(firsts)


def blocks_of(
    chunks: list[dict[str, Any]],
    axis: str,
    block_rows: int,
    shape: tuple[int, int],
    ranges: Ranges = WHOLE,
) -> list[Parcel]:
    """Do by hand what the cluster does with chunks."""
    _, standing, firsts = numbered(chunks, ranges)
    n_rows, n_columns = shape
    how = Gathering(
        axis=axis,
        n_rows=n_rows,
        n_columns=n_columns,
        block_rows=block_rows,
        firsts=firsts,
        n_user_ranges=ranges.n_users,
    )
    coded = [Parcel(place, -1, unpack(chunk["payload"])) for place, chunk in enumerate(chunks)]
    sent = exchanged([*standing, *coded], how.split)
    return sorted(exchanged(sent, how.assemble), key=lambda parcel: parcel.place)


def same_blocks(found: list[Parcel], wanted: list[Parcel]) -> None:
    assert [one.place for one in found] == [one.place for one in wanted]
    assert [one.part for one in found] == [one.part for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one.arrays.keys() == other.arrays.keys()
        for name, array in one.arrays.items():
            assert array.dtype == other.arrays[name].dtype
            assert (array == other.arrays[name]).all()


@settings(max_examples=60, deadline=None)
@given(
    rated_rows().filter(lambda given: any(given[0])),
    st.sampled_from(["user", "item"]),
    st.integers(1, 4),
    st.integers(1, 400),
    st.integers(1, 9),
)
def test_any_chunks_give_the_same_blocks(
    rated: tuple[list[dict[int, float]], int],
    axis: str,
    n_partitions: int,
    most: int,
    block_rows: int,
) -> None:
    ratings = gf.Ratings.from_frame(table_of(from_rows(*rated)))
    rows = ratings.csr if axis == "user" else ratings.csr.T.tocsr()
    chunks = chunks_of(table_of(ratings, seed=most), n_partitions, most)
    block_rows = min(block_rows, rows.shape[0])
    wanted = cut(rows, block_rows)
    for borders in ((), ()), ((2,), (0, 1)), ((-5, 1, 99), (3,)):
        found = blocks_of(chunks, axis, block_rows, rows.shape, Ranges(borders=borders))
        same_blocks(found, wanted)
    n_chunks = np.bincount([one["partition"] for one in chunks])
    facts = facts_from(together([one["facts"] for one in chunks]), n_chunks)
    assert facts.n_ratings == ratings.n_ratings
    assert facts.lowest == ratings.csr.data.min()
    assert facts.factor == Profiles.of(ratings.csr).factor


def test_films_with_text_for_ids_and_chunks_in_files(tmp_path: Path) -> None:
    films = gf.load("movietweetings")
    users = [f"{'aZé𝄞'[i % 4]}{i % 13}-{i}" for i in range(films.shape[0])]
    table = table_of(gf.Ratings(films.csr, users, films.items, films.scale))
    ratings = gf.Ratings.from_frame(table)
    chunks = chunks_of(table, 3, 50_000, depot=str(tmp_path))
    assert len(chunks) > 6
    assert max(len(chunk["payload"]) for chunk in chunks) < 1000  # where they lie
    wanted = cut(ratings.csr, 300)
    same_blocks(blocks_of(chunks, "user", 300, ratings.shape), wanted)
    ids = [Parcel(place, -1, unpack(chunk["ids"])) for place, chunk in enumerate(chunks)]
    n_bytes = together([chunk["facts"] for chunk in chunks])[5:7]
    marking = Marking(n_ranges=(5, 2), id_bytes=(int(n_bytes[0]), int(n_bytes[1])))
    ranges = Ranges(borders=marking.borders(exchanged(ids, marking.mark)))
    assert (ranges.n_users, ranges.n) == (5, 7)
    same_blocks(blocks_of(chunks, "user", 300, ratings.shape, ranges), wanted)
    in_order, _, firsts = numbered(chunks, ranges)
    sizes = [-parcel.part for parcel in in_order]
    assert max(sizes[:5]) < 2 * min(sizes[:5])
    sending = Sending(firsts=firsts, block_rows=300)
    owners = exchanged(in_order[:5], sending.send)
    for block in wanted:
        own = sorted(one for one in owners if one.place == block.place)
        found = pa.concat_arrays([as_ids("ids", one.arrays) for one in own]).to_pylist()
        first = 300 * block.place
        assert found == list(ratings.users[first : first + 300])


@pytest.mark.parametrize(
    ("ratings", "factor"),
    [
        ([1.0, 5.0], 1),
        ([0.5, 5.0], 2),
        ([-3.0, 0.25], 4),
        ([0.1, 0.3], 10),
        ([0.1, 1 / 3], 0),
        ([3.0 + 1e-10, 1.0], 1),
    ],
)
def test_the_facts_are_those_of_one_machine(ratings: list[float], factor: int) -> None:
    found = facts_from(facts_of_each(ratings), np.array([2]))
    assert found.factor == factor == Profiles.of(sparse.csr_array(np.array([ratings]))).factor
    assert found.lowest == min(ratings)


@pytest.mark.parametrize("huge", [1e200, -1.5e308])
def test_huge_ratings_are_on_no_grid(huge: float) -> None:
    found = facts_from(facts_of_each([huge, 0.5]), np.array([2]))
    assert found.factor == 0
    assert found.lowest == min(huge, 0.5)


def facts_of_each(ratings: list[float]) -> list[float]:
    """Return the facts of ratings, each of which is a chunk."""
    table = rated([1] * len(ratings), list(range(len(ratings))), ratings)
    return together([chunk["facts"] for chunk in chunks_of(table, len(ratings), 1)])


def rated(users: list[Any], items: list[Any], ratings: Sequence[float | None]) -> pa.Table:
    return pa.table({"user": users, "item": items, "rating": pa.array(ratings, pa.float64())})


def test_what_is_wrong_is_counted_over_all_chunks_and_goes_no_further() -> None:
    table = rated(["ann", None, "bob", None], [1, 2, None, 4], [4.25, None, np.nan, np.inf])
    for n_partitions in (1, 2):
        chunks = chunks_of(table, n_partitions, 1000)
        assert all(one["ids"] is None and one["payload"] is None for one in chunks)
        facts = together([one["facts"] for one in chunks])
        assert facts[:5] == [4, 2, 1, 1, 2]
        with pytest.raises(ValueProblem, match="user must not be missing, 2 rows are"):
            facts_from(facts, np.array([n_partitions]))


def test_the_numbers_of_other_ids_are_refused() -> None:
    """A partition that was lost, and made again with its rows in another order, may be cut otherwise."""
    chunk, other = chunks_of(rated([1, 2, 3, 4], [7, 7, 7, 7], [1.0] * 4), 2, 1000)
    mixed = {"ids": chunk["ids"], "payload": other["payload"]}
    for wrong in ([mixed], [{**chunk, "payload": without_an_id(chunk["payload"])}]):
        with pytest.raises(RuntimeError, match="the same ratings each time") as caught:
            blocks_of(wrong, "user", 4, (4, 1))
        assert "1" not in str(caught.value)


def without_an_id(payload: bytes) -> bytes:
    arrays = unpack(payload)
    return pack({**arrays, "n_ids": arrays["n_ids"] - 1})


def test_the_order_of_ratings_leaves_no_trace_in_the_codes() -> None:
    one, other = coded(pa.chunked_array([[5, 3], [5]])), coded(pa.chunked_array([[3, 5, 5]]))
    assert one.ids == other.ids
    stamps = [stamp_of(np.asarray(ids)) for ids in (one.ids, other.ids, pa.array([3, 6]))]
    assert stamps[0] == stamps[1] != stamps[2]
    assert one.codes.tolist() == [1, 0, 1]


def test_many_ids_have_wide_codes() -> None:
    found = coded(pa.chunked_array([np.arange(70_000)[::-1]]))
    assert found.codes.dtype == np.int32
    assert (found.codes == np.arange(70_000)[::-1]).all()
    assert encoding.narrow(1 << 16) == np.uint16


def test_a_partition_without_ratings_has_no_chunk() -> None:
    empty = rated([], [], []).to_batches(3)
    assert list(encode(iter(empty), 0, 1000)) == []
