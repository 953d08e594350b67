"""Events on Spark: from two columns, with weights, and likes of ratings: the same as on one machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

import goodfence as gf
from goodfence import spark as engine
from goodfence.data.frame import ReadOptions
from goodfence.errors import ColumnProblem, DuplicateProblem, ValueProblem
from goodfence.spark.chunks import Encoder, PlainFiles, WholeFile, checked_facts, plain_files
from goodfence.spark.messages import ChunkFacts, ChunkRatings
from goodfence.spark.ratings import BlockAssembly, BlockLayout, cut_in_blocks, examine
from tests.spark.test_spark_ratings import WHOLE, index_of, same_blocks
from tests.support.by_hand import in_order, shuffled
from tests.support.frames import frame_of_lists, table_of
from tests.support.running import run
from tests.support.spark_chunks import encoded, merged, numbered, of_kind

EVENTS = ReadOptions(feedback="implicit")
CLICKS = pa.table({"user": ["b", "a", "a", "b", "c"], "item": [2, 1, 2, 2, 1], "plays": [1.0, 2.0, 3.0, 4.0, 5.0]})


def read_whole(reader: WholeFile | PlainFiles) -> list[dict[str, Any]]:
    batches = [batch for split in range(len(reader.splits)) for batch in reader.read(split)]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches).to_pylist()
    return rows


@pytest.mark.spark
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("weight", [None, "plays"])
def test_both_readers_give_ones_or_weights(tmp_path: Path, ending: str, weight: str | None) -> None:
    path = tmp_path / f"clicks{ending}"
    table = CLICKS if weight else CLICKS.drop(["plays"])
    (csv.write_csv if ending == ".csv" else parquet.write_table)(table, path)
    options = replace(EVENTS, weight=weight)
    readers: list[WholeFile | PlainFiles] = [WholeFile(path=str(path), options=options)]
    if ending == ".parquet":
        plain = plain_files([str(path)], options)
        assert plain is not None
        readers.append(plain)
    wanted = [
        {"user": u, "item": i, "rating": w if weight else 1.0}
        for u, i, w in zip(*(CLICKS[name].to_pylist() for name in CLICKS.column_names), strict=True)
    ]
    for reader in readers:
        assert read_whole(reader) == wanted


def test_plain_files_refuse_what_the_local_engine_refuses(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(CLICKS.rename_columns(["user", "item", "rating"]), path)
    with pytest.raises(ColumnProblem, match="likes="):
        plain_files([str(path)], EVENTS)
    parquet.write_table(CLICKS.select(["user", "item"]), path)
    with pytest.raises(ColumnProblem, match="feedback='implicit'"):
        plain_files([str(path)], ReadOptions())


def assembled(table: pa.Table, options: ReadOptions, shape: tuple[int, int]) -> list[Any]:
    """Do by hand what the cluster does with chunks of a table."""
    chunks = numbered(encoded(table, 3, 60))
    _, positions, starts = index_of(chunks, WHOLE)
    layout = BlockLayout(n_rows=shape[0], n_columns=shape[1], n_ratings=0, block_rows=2)
    assembly = BlockAssembly(layout, "user", starts, WHOLE.n_users, options.repeated, options.likes)
    sent = shuffled([*positions, *of_kind(chunks, ChunkRatings)], assembly.split)
    return in_order(shuffled(sent, assembly.assemble))


PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=40)
RULES = [
    ReadOptions(feedback="implicit"),
    ReadOptions(feedback="implicit", duplicates="count"),
    ReadOptions(feedback="implicit", weight="rating"),
    *(ReadOptions(likes=3.0, duplicates=rule) for rule in ("last", "first", "mean")),
]


@settings(max_examples=40, deadline=None)
@given(PAIRS, st.sampled_from(RULES))
@pytest.mark.filterwarnings("ignore:.*repeat a pair")
def test_blocks_are_those_of_one_machine(rows: list[tuple[int, int, int]], options: ReadOptions) -> None:
    users, items, grades = (list(column) for column in zip(*rows, strict=True))
    values = np.array(grades, dtype=float) if options.rated or options.weight else np.ones(len(rows))
    table = pa.table({"user": users, "item": items, "rating": values})
    own = table if options.rated or options.weight else table.drop(["rating"])
    read = {name: getattr(options, name) for name in ("feedback", "likes", "weight", "duplicates")}
    if options.likes is not None and max(_settled(rows, options.repeated).values()) < options.likes:
        return  # nothing is liked, which is refused
    wanted = gf.Ratings.from_frame(own, read=ReadOptions(**read))
    found = assembled(table, options, wanted.shape)
    same_blocks([replace(one, count=0) for one in found], cut_in_blocks(wanted.csr, 2))


def _settled(rows: list[tuple[int, int, int]], rule: str) -> dict[tuple[int, int], float]:
    given: dict[tuple[int, int], list[int]] = {}
    for user, item, grade in rows:
        given.setdefault((user, item), []).append(grade)
    return {
        pair: {"last": grades[-1], "first": grades[0]}.get(rule, sum(grades) / len(grades))
        for pair, grades in given.items()
    }


def test_a_block_without_likes_has_no_facts() -> None:
    table = pa.table({"user": [1, 2, 3], "item": [1, 1, 1], "rating": [1.0, 2.0, 5.0]})
    blocks = assembled(table, ReadOptions(likes=5.0), (3, 1))
    facts = [
        one for block in blocks for one in shuffled([block], lambda at, inbox: examine(Encoder(most=100), at, inbox))
    ]
    told = [one for one in facts if isinstance(one, ChunkFacts)]
    assert [one.n_ratings for one in told] == [0, 1]


def test_weights_are_more_than_0() -> None:
    table = pa.table({"user": [1, 2], "item": [1, 1], "rating": [1.0, 0.0]})
    sent = list(Encoder(most=1000, weighted=True).encode(iter(table.to_batches()), 0))
    with pytest.raises(ValueProblem, match="weight must be more than 0, 1 rows are not"):
        checked_facts(merged(sent), "weight")
    missing = pa.table({"user": [1], "item": [1], "rating": pa.array([None], pa.float64())})
    sent = list(Encoder(most=1000, weighted=True).encode(iter(missing.to_batches()), 0))
    with pytest.raises(ValueProblem, match="weight must not be missing, 1 rows are"):
        checked_facts(merged(sent), "weight")


@pytest.fixture(scope="module")
def events() -> gf.Ratings:
    return gf.synthetic(users=60, items=40, ratings=900, rng=2, feedback="implicit")


@pytest.mark.spark
@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_candidate_lists_of_events(spark: Any, tmp_path: Path, events: gf.Ratings, ending: str, axis: Any) -> None:
    path = tmp_path / f"clicks{ending}"
    table = table_of(events, seed=3).select(["user", "item"])
    table = pa.concat_tables([table, table.slice(5, 7)])  # some happened twice
    (csv.write_csv if ending == ".csv" else parquet.write_table)(table, path)
    config = engine.SparkConfig(spark=spark, read=EVENTS)
    here = gf.load(path, feedback="implicit")
    ids = here.users if axis == "user" else here.items
    found = frame_of_lists(engine.candidate_lists(path, n=10, axis=axis, config=config), ids)
    wanted = gf.candidate_lists(here, n=10, axis=axis)
    assert np.array_equal(found.indices, wanted.indices)
    assert np.array_equal(found.similarities, wanted.similarities)
    frame = spark.createDataFrame(table)
    there = frame_of_lists(engine.candidate_lists(frame, n=10, axis=axis, config=config), ids)
    assert np.array_equal(there.indices, wanted.indices)
    once = engine.SparkConfig(spark=spark, read=replace(EVENTS, duplicates="error"))
    with pytest.raises(DuplicateProblem, match="an event must happen once, and 7 rows repeat"):
        engine.candidate_lists(path, n=10, axis=axis, config=once)


@pytest.mark.spark
def test_likes_of_a_file_of_ratings(spark: Any, tmp_path: Path) -> None:
    films = gf.synthetic(users=60, items=40, ratings=900, rng=2)
    path = tmp_path / "ratings.parquet"
    parquet.write_table(table_of(films, seed=3), path)
    liked = gf.load(path, likes=4)
    config = engine.SparkConfig(spark=spark, read=ReadOptions(likes=4.0))
    found = frame_of_lists(engine.candidate_lists(path, n=10, config=config), liked.users)
    wanted = gf.candidate_lists(liked, n=10)
    assert np.array_equal(found.indices, wanted.indices)
    assert np.array_equal(found.similarities, wanted.similarities)


@pytest.mark.spark
@pytest.mark.parametrize("flags", [("--feedback", "implicit"), ("--likes", "4")])
def test_a_model_of_events_is_that_of_one_machine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, str]
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # other tests need the session
    films = table_of(gf.synthetic(users=60, items=40, ratings=900, rng=2), seed=3)
    path = tmp_path / "a.parquet"
    parquet.write_table(films if flags[0] == "--likes" else films.drop(["rating"]), path)
    models: list[Any] = []
    for engine_name in ("local", "spark"):
        out = tmp_path / f"{engine_name}.gf"
        settings_of = ("--method", "ppns k=5 beta=3", "--seed", "7")
        code, _, stderr = run("fit", str(path), *flags, *settings_of, "--engine", engine_name, "-o", str(out))
        assert code == 0, stderr
        models.append(gf.load_model(out))
    here, there = models
    assert np.array_equal(here.neighbours_, there.neighbours_)
    assert there.ratings_.feedback == "implicit"
    assert there.ratings_.liked_from == here.ratings_.liked_from
    assert (here.ratings_.csr != there.ratings_.csr).nnz == 0
