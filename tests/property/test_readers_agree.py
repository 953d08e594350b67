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
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters=':"'),
    min_size=1,
    max_size=5,
).map(lambda text: "n" + text)
GRADES = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: value + 0.0)


def cells(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[Cells]:
    ids = st.lists(kind, min_size=1, max_size=6, unique=True)
    pairs = st.tuples(ids, ids).flatmap(
        lambda both: st.lists(
            st.tuples(st.sampled_from(both[0]), st.sampled_from(both[1])), min_size=1, unique=True
        )
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
    assert np.allclose(repeats.mean(values), means)
    later = sorted((group[n], group[0]) for group in groups.values() for n in range(1, len(group)))
    if later:
        assert repeats.earliest() == (later[0][0] + 1, later[0][1] + 1)
