"""From chunks to blocks, without Spark: however ratings are cut in chunks, the blocks are the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodfence as gf
from goodfence import spark as engine
from goodfence.data.frame import ReadOptions
from goodfence.errors import ColumnProblem, DataError, DuplicateProblem, ValueProblem
from goodfence.neighbours.similarity import Profiles
from goodfence.spark.chunks import Encoder, checked_facts, grid_factor, smallest
from goodfence.spark.id_index import IdRanges, ranges_from, sample_ids, send_to_blocks
from goodfence.spark.messages import Block, ChunkIds, ChunkRatings, Message, SortedIds
from goodfence.spark.ratings import BlockAssembly, BlockLayout, cut_in_blocks
from goodfence.spark.shuffle import Inbox
from tests.support.by_hand import in_order, shuffled
from tests.support.frames import table_of
from tests.support.spark_chunks import encoded, merged, numbered, of_kind, rated
from tests.support.strategies import from_rows, rated_rows

WHOLE = IdRanges()


def index_of(chunks: list[Message], ranges: IdRanges) -> tuple[list[SortedIds], list[Message], tuple[int, ...]]:
    """Return the ranges of ids in order, where the ids of each chunk are, and the first number of each range."""
    found = shuffled(shuffled(of_kind(chunks, ChunkIds), ranges.share), ranges.sort)
    sorted_ids = [one for one in in_order(found) if isinstance(one, SortedIds)]
    counts = np.zeros(ranges.n, dtype=int)
    for one in sorted_ids:
        counts[one.partition] = one.count
    by_kind = np.split(counts, [ranges.n_users])
    starts = np.concatenate([np.cumsum(one) - one for one in by_kind]).tolist()
    positions = [one for one in found if not isinstance(one, SortedIds)]
    return sorted_ids, positions, tuple(starts)


def blocks_of(
    chunks: list[Message],
    axis: Any,
    block_rows: int,
    shape: tuple[int, int],
    ranges: IdRanges = WHOLE,
    duplicates: Any = "error",
) -> list[Message]:
    """Do by hand what the cluster does with chunks."""
    _, positions, starts = index_of(chunks, ranges)
    n_rows, n_columns = shape
    layout = BlockLayout(n_rows=n_rows, n_columns=n_columns, n_ratings=0, block_rows=block_rows)
    assembly = BlockAssembly(layout, axis, starts, ranges.n_users, duplicates)
    sent = shuffled([*positions, *of_kind(chunks, ChunkRatings)], assembly.split)
    return in_order(shuffled(sent, assembly.assemble))


def same_blocks(found: list[Message], wanted: list[Block]) -> None:
    assert [one.partition for one in found] == [one.partition for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        for name, value in vars(other).items():
            own = vars(one)[name]
            assert type(own) is type(value)
            if isinstance(value, np.ndarray):
                assert own.dtype == value.dtype
                assert (own == value).all()
            else:
                assert own == value


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    rated_rows().filter(lambda given: any(given[0])),
    st.sampled_from(["user", "item"]),
    st.integers(1, 4),
    st.integers(1, 400),
    st.integers(1, 9),
)
def test_any_chunks_give_the_same_blocks(
    rated: tuple[list[dict[int, float]], int], axis: str, n_splits: int, most: int, block_rows: int
) -> None:
    given = from_rows(*rated)
    ratings = gf.Ratings.from_frame(table_of(given), scale=given.scale)
    rows = ratings.csr if axis == "user" else ratings.csr.T.tocsr()
    sent = encoded(table_of(ratings, seed=most), n_splits, most)
    facts = checked_facts(merged(sent))
    chunks = numbered(sent)
    block_rows = min(block_rows, rows.shape[0])
    wanted = cut_in_blocks(rows, block_rows)
    for borders in ((), ()), ((2,), (0, 1)), ((-5, 1, 99), (3,)):
        found = blocks_of(chunks, axis, block_rows, rows.shape, IdRanges(*borders))
        same_blocks(found, wanted)
    assert facts.n_ratings == ratings.n_ratings
    assert -facts.extremes[0] == ratings.csr.data.min()
    assert grid_factor(facts) == Profiles.of(ratings.csr).factor


def test_films_with_text_for_ids_and_chunks_in_files(tmp_path: Path) -> None:
    films = gf.load("movietweetings")
    users = [f"{'aZé𝄞'[i % 4]}{i % 13}-{i}" for i in range(films.shape[0])]
    table = table_of(gf.Ratings(films.csr, users, films.items, films.scale))
    ratings = gf.Ratings.from_frame(table)
    sent = encoded(table, 3, 50_000)
    chunks = numbered(sent)
    ids = [one for one in of_kind(chunks, ChunkIds) if isinstance(one, ChunkIds)]
    assert len(ids) > 6
    wanted = cut_in_blocks(ratings.csr, 300)
    same_blocks(blocks_of(chunks, "user", 300, ratings.shape), wanted)
    n_bytes = merged(sent)[0].id_bytes

    def sample(partition: int, inbox: Any) -> Any:
        return sample_ids((5, 2), n_bytes, partition, inbox)

    samples = [one for one in shuffled(ids, sample) if isinstance(one, ChunkIds)]
    ranges = ranges_from(samples, (5, 2))
    assert (ranges.n_users, ranges.n) == (5, 7)
    assert "𝄞" not in repr(ranges)
    same_blocks(blocks_of(chunks, "user", 300, ratings.shape, ranges), wanted)
    sorted_ids, _, starts = index_of(chunks, ranges)
    sizes = [one.count for one in sorted_ids[:5]]
    assert max(sizes) < 2 * min(sizes)

    def send(partition: int, inbox: Any) -> Any:
        return send_to_blocks(starts, 300, partition, inbox)

    owners = in_order(shuffled(sorted_ids[:5], send))
    for block in wanted:
        own = [one for one in owners if one.partition == block.partition]
        found = [id_ for one in own if isinstance(one, SortedIds) for id_ in one.ids.to_pylist()]
        assert found == list(ratings.users[block.first : block.first + 300])


def test_the_numbers_of_other_ids_are_refused() -> None:
    """A partition that was lost, and made again with its rows in another order, may be cut otherwise."""
    sent = numbered(encoded(rated([1, 2, 3, 4], [7, 7, 7, 7], [1.0] * 4), 2, 1000))
    ids, ratings = of_kind(sent, ChunkIds), of_kind(sent, ChunkRatings)
    other = dataclasses.replace(ratings[1], partition=0)
    fewer: Any = dataclasses.replace(ratings[0], n_ids=[1, 1])  # type: ignore[call-arg]  # a ChunkRatings
    for wrong in ([ids[0], other], [ids[0], fewer]):
        with pytest.raises(RuntimeError, match="the same ratings each time") as caught:
            blocks_of(wrong, "user", 4, (4, 1))
        assert "1" not in str(caught.value)


@pytest.mark.parametrize("most", [1, 60, 10_000])
@pytest.mark.parametrize("duplicates", ["first", "last", "mean"])
def test_repeated_pairs_are_settled_as_on_one_machine(duplicates: Any, most: int) -> None:
    table = rated([2, 1, 1, 2, 1, 2, 1], [5, 7, 5, 5, 7, 6, 7], [1.0, 2, 3, 4, 5, 2, 2.5])
    with pytest.warns(match=f"3 ratings repeat a pair of user and item; kept the {duplicates}"):
        local = gf.Ratings.from_frame(table, read=ReadOptions(duplicates=duplicates))
    chunks = numbered(encoded(table, 2, most))
    (found,) = blocks_of(chunks, "user", 2, (2, 3), duplicates=duplicates)
    assert found.count == 3
    (wanted,) = cut_in_blocks(local.csr, 2)
    same_blocks([dataclasses.replace(found, count=0)], [wanted])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_small_numbers_are_the_same_numbers(values: list[float]) -> None:
    array = np.array(values)
    assert (smallest(array).astype(np.float64) == array).all()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("columns", "kind", "sentence"),
    [
        ({"rating": [4.25, None, 1.0]}, ValueProblem, "rating must not be missing, 1 rows are"),
        ({"rating": [4.25, np.nan, np.inf]}, ValueProblem, "rating must be a finite number, 2"),
        ({"user": [None, "ann", "bob"]}, ValueProblem, "user must not be missing, 1 rows are"),
        ({"user": ["ann", "", "bob"]}, ValueProblem, "user must not be missing, 1 rows are"),
        ({"user": ["ann", "ann", "bob"]}, DuplicateProblem, "once, and 1 rows repeat a pair"),
        ({"user": [1.5, 2.5, 3.5]}, ColumnProblem, r"user \(column 'user'\) must hold integers"),
        ({"rating": ["4.25", "2", "1"]}, ColumnProblem, "'rating'. must hold numbers"),
        ({"user": []}, DataError, "at least one rating"),
        ({"rating": [2.0, 2.0, 2.0]}, ValueProblem, "must differ between rows"),
    ],
)
def test_what_is_wrong_with_a_data_frame(
    spark: Any, columns: dict[str, list[Any]], kind: type[DataError], sentence: str
) -> None:
    good: dict[str, list[Any]] = {"user": ["ann", "bob", "eve"], "item": [7, 7, 7], "rating": [1.0, 2.0, 3.0]}
    broken = {**good, **columns}
    if not broken["user"]:
        frame = spark.createDataFrame([], "user string, item int, rating double")
    else:
        frame = spark.createDataFrame(pa.table(broken))
    with pytest.raises(kind, match=sentence) as caught:
        engine.candidate_lists(frame, n=1, spark=spark)
    for private in ("ann", "bob", "4.25"):
        assert private not in str(caught.value)


@pytest.mark.spark
def test_a_data_frame_has_no_first_and_no_last_and_a_scale_is_kept(spark: Any) -> None:
    frame = spark.createDataFrame(rated([1, 2], [7, 7], [1.0, 4.25]))
    for options, sentence in (
        (ReadOptions(duplicates="last"), "duplicates must be 'error' for ratings in no order"),
        (ReadOptions(unrated=-1), "unrated must be left out for a data frame"),
        (ReadOptions(scale=(1, 5)), "rating must be on the declared scale, 1 rows are not"),
    ):
        config = engine.SparkConfig(spark=spark, read=options)
        with pytest.raises(ValueError, match=sentence):
            engine.candidate_lists(frame, n=1, config=config)


def test_an_encoder_keeps_to_the_memory_of_a_task() -> None:
    session: Any = None
    config = engine.SparkConfig(spark=session, memory=16 << 20)
    assert Encoder.of(config).most == 2 << 20


def test_ids_of_a_later_range_go_to_the_blocks_of_their_rows() -> None:
    """By hand: rows 5 to 11, in blocks of four."""
    inbox = Inbox([SortedIds(1, 1, pa.array([50, 60, 70, 80, 90, 100, 110]))])
    sent = [(one.partition, one.ids.to_pylist()) for one in send_to_blocks((0, 5, 12), 4, 1, inbox)]
    assert sent == [(1, [50, 60, 70]), (2, [80, 90, 100, 110])]
