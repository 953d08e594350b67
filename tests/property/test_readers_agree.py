"""Whatever the order of the rows and the format of the file, the ratings are the same."""

from __future__ import annotations

import gzip
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from goodfence.data.frame import ReadOptions, find_repeats
from goodfence.data.load import read_ratings
from goodfence.data.ratings import Ratings
from goodfence.errors import GoodfenceWarning

Cells = dict[tuple[Any, Any], float]
INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters=':"'), min_size=1, max_size=5
).map(lambda text: "n" + text)
GRADES = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: value + 0.0)


def cells(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[Cells]:
    ids = st.lists(kind, min_size=1, max_size=6, unique=True)
    pairs = st.tuples(ids, ids).flatmap(
        lambda both: st.lists(st.tuples(st.sampled_from(both[0]), st.sampled_from(both[1])), min_size=1, unique=True)
    )
    return pairs.flatmap(lambda found: st.fixed_dictionaries(dict.fromkeys(found, GRADES)))


def as_text(rows: list[tuple[Any, ...]], separator: str, header: bool) -> bytes:
    lines = [("user", "item", "rating")] if header else []
    quoted = [(quote(u, separator), quote(i, separator), repr(r)) for u, i, r in rows]
    return "".join(separator.join(line) + "\n" for line in [*lines, *quoted]).encode()


def quote(value: Any, separator: str) -> str:
    return f'"{value}"' if len(separator) == 1 and separator in str(value) else str(value)


def by_file(name: str, separator: str, header: bool) -> Callable[[list[Any]], Ratings]:
    def read(rows: list[Any]) -> Ratings:
        content = as_text(rows, separator, header)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
            if header:
                return read_ratings(path)
            return read_ratings(path, ReadOptions(user="1", item="2", rating="3"))

    return read


def columns(rows: list[Any]) -> dict[str, list[Any]]:
    users, items, ratings = (list(column) for column in zip(*rows, strict=True))
    return {"user": users, "item": items, "rating": ratings}


def by_parquet(rows: list[Any]) -> Ratings:
    with tempfile.TemporaryDirectory() as folder:
        parquet.write_table(pa.table(columns(rows)), Path(folder, "a.parquet"))
        return read_ratings(Path(folder, "a.parquet"))


READERS: dict[str, Callable[[list[Any]], Ratings]] = {
    "csv": by_file("a.csv", ",", header=True),
    "tsv.gz": by_file("a.tsv.gz", "\t", header=True),
    "dat": by_file("a.dat", "::", header=False),
    "parquet": by_parquet,
    "pandas": lambda rows: Ratings.from_frame(pd.DataFrame(columns(rows))),
    "polars": lambda rows: Ratings.from_frame(pl.DataFrame(columns(rows))),
    "arrow": lambda rows: Ratings.from_frame(pa.table(columns(rows))),
}


@settings(max_examples=60, deadline=None)
@given(cells(INTEGERS) | cells(TEXT), st.sampled_from(list(READERS)), st.randoms())
def test_every_reader_gives_the_same_ratings(expected: Cells, reader: str, chance: Any) -> None:
    assume(len(expected) == 1 or len(set(expected.values())) > 1)  # else it looks like clicks
    rows = [(user, item, rating) for (user, item), rating in expected.items()]
    chance.shuffle(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)  # spellings that normalise alike
        ratings = READERS[reader](rows)
    assert ratings.users.tolist() == sorted({user for user, _ in expected})
    assert ratings.items.tolist() == sorted({item for _, item in expected})
    places = [(ratings.rows([u])[0], ratings.columns([i])[0]) for u, i in expected]
    assert [ratings.csr[place] for place in places] == list(expected.values())
    assert ratings.n_ratings == len(expected)


PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), GRADES), min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(PAIRS)
def test_repeats_are_what_a_dictionary_makes_of_them(rows: list[tuple[int, int, float]]) -> None:
    users, items, values = (np.array(column) for column in zip(*rows, strict=True))
    groups: dict[tuple[int, int], list[int]] = {}
    for place, (user, item, _) in enumerate(rows):
        groups.setdefault((user, item), []).append(place)
    pairs = sorted(groups)
    repeats = find_repeats(users, items, 4)
    assert repeats.n_repeated == len(rows) - len(pairs)
    assert repeats.first(values).tolist() == [values[groups[pair][0]] for pair in pairs]
    assert repeats.last(values).tolist() == [values[groups[pair][-1]] for pair in pairs]
    means = [np.mean(values[groups[pair]]) for pair in pairs]
    assert np.allclose(repeats.settled(values, "mean"), means)
    later = sorted((group[n], group[0]) for group in groups.values() for n in range(1, len(group)))
    if later:
        assert repeats.earliest() == (later[0][0] + 1, later[0][1] + 1)


LOGS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-(2**40), 2**40), st.integers(1, 9)),
    min_size=1,
    max_size=30,
)


def by_event_file(name: str, separator: str) -> Callable[[list[Any], dict[str, Any]], Ratings]:
    def read(rows: list[Any], how: dict[str, Any]) -> Ratings:
        lines = [("user", "item", "seen", "plays"), *rows]
        text = "".join(separator.join(map(str, line)) + "\n" for line in lines).encode()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
            return read_ratings(path, ReadOptions(**how))

    return read


def event_columns(rows: list[Any]) -> dict[str, list[Any]]:
    return dict(zip(("user", "item", "seen", "plays"), map(list, zip(*rows, strict=True)), strict=True))


def by_event_parquet(rows: list[Any], how: dict[str, Any]) -> Ratings:
    with tempfile.TemporaryDirectory() as folder:
        parquet.write_table(pa.table(event_columns(rows)), Path(folder, "a.parquet"))
        return read_ratings(Path(folder, "a.parquet"), ReadOptions(**how))


EVENT_READERS: dict[str, Callable[[list[Any], dict[str, Any]], Ratings]] = {
    "csv": by_event_file("a.csv", ","),
    "tsv.gz": by_event_file("a.tsv.gz", "\t"),
    "dat": by_event_file("a.dat", "::"),
    "parquet": by_event_parquet,
    "pandas": lambda rows, how: Ratings.from_frame(pd.DataFrame(event_columns(rows)), read=ReadOptions(**how)),
    "polars": lambda rows, how: Ratings.from_frame(pl.DataFrame(event_columns(rows)), read=ReadOptions(**how)),
    "arrow": lambda rows, how: Ratings.from_frame(pa.table(event_columns(rows)), read=ReadOptions(**how)),
}


@settings(max_examples=100, deadline=None)
@given(LOGS, st.sampled_from(list(EVENT_READERS)), st.sampled_from(["once", "count", "sum"]))
def test_events_are_what_a_dictionary_makes_of_them(
    rows: list[tuple[int, int, int, int]], reader: str, rule: str
) -> None:
    seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for user, item, time, weight in rows:
        seen.setdefault((user, item), []).append((time, weight))
    how: dict[str, Any] = {"feedback": "implicit", "time": "seen", "duplicates": rule}
    how |= {"weight": "plays"} if rule == "sum" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)  # plays that are not used
        events = EVENT_READERS[reader](rows, how)
    pairs = sorted(seen)
    cells = events.csr.tocoo()
    users, items = events.users[cells.row].tolist(), events.items[cells.col].tolist()
    assert list(zip(users, items, strict=True)) == pairs
    values: dict[str, Callable[[list[tuple[int, int]]], int]]
    values = {"once": lambda _: 1, "count": len, "sum": lambda of: sum(weight for _, weight in of)}
    assert cells.data.tolist() == [values[rule](seen[pair]) for pair in pairs]
    assert events.times is not None
    assert events.times.tolist() == [min(time for time, _ in seen[pair]) for pair in pairs]
