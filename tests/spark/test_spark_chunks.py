"""From a data frame to blocks, without Spark: however ratings are cut in chunks, the blocks are the same."""

from __future__ import annotations

from collections.abc import Iterator
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
from goodfence.engines.spark.encoding import coded, encode, facts_from, looked_at, stamp_of
from goodfence.engines.spark.gathering import Gathering
from goodfence.engines.spark.parcels import Parcel
from goodfence.errors import ValueProblem
from goodfence.similarity.profiles import Profiles
from tests.spark.by_hand import exchanged
from tests.spark.frames import table_of
from tests.strategies import from_rows, rated_rows

ARRIVING = pa.schema(
    {
        "place": pa.int32(),
        "stamp": pa.int64(),
        "code": pa.int32(),
        "number": pa.int32(),
        "payload": pa.binary(),
    }
)


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
    counts, lowest, largest = facts[:, :5], facts[:, 5], facts[:, 6:]
    return [*counts.sum(axis=0).tolist(), float(lowest.min()), *largest.max(axis=0).tolist()]


def arriving(place: int, chunk: dict[str, Any], ids: dict[str, list[Any]]) -> Iterator[Any]:
    """Yield what comes to the task of a chunk: the numbers of its ids, backwards, and its codes."""
    numbers = [ids[name].index(one) for name in ("users", "items") for one in chunk[name]]
    same = {"place": place, "stamp": chunk["stamp"]}
    rows: list[dict[str, Any]] = [{**same, "code": c, "number": n} for c, n in enumerate(numbers)]
    yield pa.RecordBatch.from_pylist(rows[::-1], ARRIVING)
    yield pa.RecordBatch.from_pylist([{**same, "payload": chunk["payload"]}], ARRIVING)


def blocks_of(chunks: list[dict[str, Any]], axis: str, block_rows: int) -> list[Parcel]:
    """Do by hand what the cluster does with chunks."""
    ids = {
        name: sorted({one for chunk in chunks for one in chunk[name]})
        for name in ("users", "items")
    }
    rows, columns = ("users", "items") if axis == "user" else ("items", "users")
    how = Gathering(
        axis=axis, n_rows=len(ids[rows]), n_columns=len(ids[columns]), block_rows=block_rows
    )
    sent = [
        parcel
        for place, chunk in enumerate(chunks)
        for parcel in how.split(arriving(place, chunk, ids))
    ]
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
    found = blocks_of(chunks, axis, min(block_rows, rows.shape[0]))
    same_blocks(found, cut(rows, min(block_rows, rows.shape[0])))
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
    same_blocks(blocks_of(chunks, "user", 300), cut(ratings.csr, 300))


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
    parts = [looked_at(rated([1], [2], [one]))[1] for one in ratings]
    found = facts_from(together(parts), np.array([2]))
    assert found.factor == factor == Profiles.of(sparse.csr_array(np.array([ratings]))).factor
    assert found.lowest == min(ratings)


@pytest.mark.parametrize("huge", [1e200, -1.5e308])
def test_huge_ratings_are_on_no_grid(huge: float) -> None:
    parts = [looked_at(rated([1], [2], [one]))[1] for one in (huge, 0.5)]
    found = facts_from(together(parts), np.array([2]))
    assert found.factor == 0
    assert found.lowest == min(huge, 0.5)


def rated(users: list[Any], items: list[Any], ratings: list[float | None]) -> pa.Table:
    return pa.table({"user": users, "item": items, "rating": pa.array(ratings, pa.float64())})


def test_what_is_wrong_is_counted_over_all_chunks_and_goes_no_further() -> None:
    table = rated(["ann", None, "bob", None], [1, 2, None, 4], [4.25, None, np.nan, np.inf])
    for n_partitions in (1, 2):
        chunks = chunks_of(table, n_partitions, 1000)
        assert all(one["users"] == one["items"] == [] for one in chunks)
        assert all(one["payload"] is None for one in chunks)
        facts = together([one["facts"] for one in chunks])
        assert facts[:5] == [4, 2, 1, 1, 2]
        with pytest.raises(ValueProblem, match="user must not be missing, 2 rows are"):
            facts_from(facts, np.array([n_partitions]))


def test_the_numbers_of_other_ids_are_refused() -> None:
    """A partition that was lost, and made again with its rows in another order, may be cut otherwise."""
    chunk, other = chunks_of(rated([1, 2, 3, 4], [7, 7, 7, 7], [1.0] * 4), 2, 1000)
    how = Gathering(axis="user", n_rows=4, n_columns=1, block_rows=4)
    mixed = {**chunk, "stamp": other["stamp"]}
    codes, _ = arriving(0, chunk, {"users": [1, 2, 3, 4], "items": [7]})
    _, payload = arriving(0, mixed, {"users": [1, 2, 3, 4], "items": [7]})
    for batches in ([codes, payload], [codes.slice(1), payload]):
        with pytest.raises(RuntimeError, match="the same ratings each time") as caught:
            list(how.split(iter(batches)))
        assert "1" not in str(caught.value)


def test_the_order_of_ratings_leaves_no_trace_in_the_codes() -> None:
    one, other = coded(pa.chunked_array([[5, 3], [5]])), coded(pa.chunked_array([[3, 5, 5]]))
    assert one.ids == other.ids
    assert stamp_of(one.ids) == stamp_of(other.ids) != stamp_of(pa.array([3, 6]))
    assert one.codes.tolist() == [1, 0, 1]


def test_many_ids_have_wide_codes() -> None:
    found = coded(pa.chunked_array([np.arange(70_000)[::-1]]))
    assert found.codes.dtype == np.int32
    assert (found.codes == np.arange(70_000)[::-1]).all()
    assert encoding.narrow(1 << 16) == np.uint16


def test_a_partition_without_ratings_has_no_chunk() -> None:
    empty = rated([], [], []).to_batches(3)
    assert list(encode(iter(empty), 0, 1000)) == []
    assert list(Gathering(axis="user", n_rows=1, n_columns=1, block_rows=1).split(iter([]))) == []
