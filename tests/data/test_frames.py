"""The same ratings from every kind of data frame, and the same refusals."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from goodfence.data.frame import ReadOptions, read_triplets
from goodfence.data.ratings import Ratings
from goodfence.errors import ColumnProblem, DataError, DuplicateProblem, GoodfenceWarning, SettingError, ValueProblem

Frame = Callable[[dict[str, list[Any]]], Any]
KINDS: dict[str, Frame] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
SECRETS = ("Undine Quark", "3.14159", "471108150")


@pytest.fixture(params=list(KINDS))
def frame(request: pytest.FixtureRequest) -> Frame:
    return KINDS[request.param]


def test_rows_and_columns_are_in_the_order_of_the_ids(frame: Frame) -> None:
    rating = [4.0, 0.0, 2.5, 1.0]
    table: dict[str, list[Any]] = {"user": [10, 9, 10, 2], "item": ["b", "é", "a", "Z"], "rating": rating}
    ratings = Ratings.from_frame(frame(table))
    assert ratings.users.tolist() == [2, 9, 10]
    assert ratings.items.tolist() == ["Z", "a", "b", "é"]
    assert ratings.csr.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 2.5, 4, 0]]
    assert ratings.n_ratings == 4  # the 0 is a rating
    assert ratings.csr.has_canonical_format


def test_text_stays_text_in_a_frame(frame: Frame) -> None:
    ratings = Ratings.from_frame(frame({"user": ["10", "9"], "item": [1, 1], "rating": [1, 2]}))
    assert ratings.users.tolist() == ["10", "9"]


def test_whole_floats_are_integers(frame: Frame) -> None:
    ratings = Ratings.from_frame(frame({"user": [3.0, 1.0], "item": [1, 1], "rating": [1, 2]}))
    assert ratings.users.tolist() == [1, 3]
    assert ratings.users.dtype == np.int64


def test_columns_can_be_named(frame: Frame) -> None:
    table = frame({"a": [1], "b": [2], "c": [3.0], "rating": [9.0]})
    ratings = Ratings.from_frame(table, user="b", item="a", rating="c")
    assert (ratings.users[0], ratings.items[0], ratings.csr.data[0]) == (2, 1, 3.0)


BAD: dict[str, tuple[dict[str, list[Any]], type[DataError], str]] = {
    "missing user": ({"user": [1, None]}, ValueProblem, r"user .* must not be missing, row 2"),
    "missing name": ({"user": ["Undine Quark", None]}, ValueProblem, "missing, row 2"),
    "empty name": ({"item": ["Undine Quark", ""]}, ValueProblem, "missing, row 2"),
    "missing rating": ({"rating": [3.14159, None]}, ValueProblem, "missing, row 2"),
    "NaN": ({"rating": [3.14159, float("nan")]}, ValueProblem, "must (not be missing|be a finite)"),
    "infinity": ({"rating": [3.14159, float("inf")]}, ValueProblem, "finite number, row 2"),
    "text": ({"rating": ["3.14159", "4"]}, ValueProblem, "must be a number, row 1 is not"),
    "truth": ({"rating": [True, False]}, ValueProblem, "must be a number, row 1 is not"),
    "fraction": ({"user": [3.14159, 1.0]}, ValueProblem, "an integer or text, row 1 is not"),
    "infinite id": ({"user": [1.0, float("inf")]}, ValueProblem, "an integer or text, row 2"),
    "truth for ids": ({"user": [True, False]}, ColumnProblem, "must hold integers or text"),
    "dates for ids": ({"item": [datetime.date(2024, 1, 1)] * 2}, ColumnProblem, "integers or text"),
    "lists for ids": ({"item": [[1], [2]]}, ColumnProblem, "integers or text, it holds nested"),
    "only missing": ({"user": [None, None]}, ValueProblem, "missing, row 1 is"),
    "no rows": ({"user": [], "item": [], "rating": []}, DataError, "at least one rating"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_frames(name: str, frame: Frame) -> None:
    columns, problem, says = BAD[name]
    table = frame({"user": [1, 2], "item": [1, 2], "rating": [1.0, 2.0], **columns})
    with pytest.raises(problem, match=says) as caught:
        Ratings.from_frame(table)
    assert not [secret for secret in SECRETS if secret in str(caught.value)]


def test_outside_the_scale_names_the_row(frame: Frame) -> None:
    table = frame({"user": [1, 2, 3], "item": [1, 1, 1], "rating": [1.0, 5.0, 3.14159]})
    with pytest.raises(ValueProblem, match=r"on the scale \(integers 1-5\), row 3 is not") as c:
        Ratings.from_frame(table, scale=(1, 5))
    assert "3.14159" not in str(c.value)


@pytest.mark.parametrize(("rule", "kept"), [("first", 1.0), ("last", 5.0), ("mean", 3.0)])
def test_duplicates(rule: Any, kept: float, frame: Frame) -> None:
    table = frame({"user": [7, 8, 7, 7], "item": ["x", "x", "x", "x"], "rating": [1.0, 2.0, 3.0, 5.0]})
    with pytest.raises(DuplicateProblem, match=r"row 3 repeats row 1 \(2 such rows\)"):
        Ratings.from_frame(table)
    with pytest.warns(GoodfenceWarning, match=f"2 ratings repeat.*kept the {rule}"):
        ratings = Ratings.from_frame(table, read=ReadOptions(duplicates=rule))
    assert ratings.csr.data.tolist() == [kept, 2.0]
    with pytest.warns(GoodfenceWarning):
        assert read_triplets(table, ReadOptions(duplicates=rule)).n_repeated == 2


def test_an_unknown_rule_for_duplicates(frame: Frame) -> None:
    table = frame({"user": [1], "item": [1], "rating": [1]})
    with pytest.raises(SettingError, match="duplicates must be one of error, last, first, mean"):
        read_triplets(table, ReadOptions(duplicates="both"))  # type: ignore[arg-type]  # the point


def test_spellings_that_normalise_alike_are_kept_apart(frame: Frame) -> None:
    table = frame({"user": ["Zo\u00eb", "Zoe\u0308"], "item": [1, 1], "rating": [1, 2]})
    with pytest.warns(GoodfenceWarning, match="Unicode normalisation; they are kept apart") as told:
        ratings = Ratings.from_frame(table)
    assert ratings.shape == (2, 1)
    assert "Zo" not in str(told[0].message)


def test_ids_that_read_like_a_missing_value_are_kept_and_told(frame: Frame) -> None:
    table = frame({"user": ["Ann", "None"], "item": [1, 1], "rating": [1, 2]})
    with pytest.warns(GoodfenceWarning, match="read like a missing value"):
        assert Ratings.from_frame(table).shape == (2, 1)


def test_categories() -> None:
    names = pd.Categorical(["b", "a", "b"], categories=["unused", "b", "a"])
    table = pd.DataFrame({"user": names, "item": [1, 1, 2], "rating": [1, 2, 3]})
    assert Ratings.from_frame(table).users.tolist() == ["a", "b"]
    cast = pl.DataFrame({"user": ["b", "a"], "item": [1, 1], "rating": [1, 2]}).with_columns(
        pl.col("user").cast(pl.Enum(["a", "b", "unused"]))
    )
    assert Ratings.from_frame(cast).users.tolist() == ["a", "b"]


def test_dictionaries_with_nulls_and_repeats() -> None:
    users = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), ["Undine Quark", "a", None])
    table = pa.table({"user": users, "item": [1, 1, 1], "rating": [1, 2, 3]})
    with pytest.raises(ValueProblem, match="must not be missing, row 3 is"):
        Ratings.from_frame(table)
    same = pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["a", "a"])
    table = pa.table({"user": same, "item": [1, 2], "rating": [1, 2]})
    assert Ratings.from_frame(table).shape == (1, 2)


def test_arrow_s_views_of_text() -> None:
    users = pa.array(["b", "a"], pa.string_view())
    table = pa.table({"user": users, "item": [1, 1], "rating": [1, 2]})
    assert Ratings.from_frame(table).users.tolist() == ["a", "b"]


def test_dictionaries_that_are_too_narrow_together() -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(np.arange(100), pa.int8()), [f"{chunk}-{n}" for n in range(100)])
        for chunk in range(3)
    ]
    table = pa.table({"user": pa.chunked_array(chunks), "item": [1] * 300, "rating": [1, 2, 3] * 100})
    assert Ratings.from_frame(table).shape == (300, 1)


def test_triplets_show_sizes_only() -> None:
    table = pa.table({"user": ["Undine Quark"], "item": [1], "rating": [3.14159]})
    assert repr(read_triplets(table)) == "Triplets(1 users x 1 items, 1 ratings)"


def test_mixed_objects_name_the_row_and_not_the_value() -> None:
    table = pd.DataFrame({"user": [1, "Undine Quark"], "item": [1, 2], "rating": [1, 2]})
    table["user"] = table["user"].astype(object)
    with pytest.raises(ColumnProblem, match="one kind of value, row 2 is of another") as caught:
        Ratings.from_frame(table)
    assert "Undine" not in str(caught.value)


def test_two_columns_of_one_name() -> None:
    table = pd.DataFrame([[1, 1, 1, 1]], columns=["user", "item", "rating", "rating"])
    with pytest.raises(ColumnProblem, match="must have different names"):
        Ratings.from_frame(table)


def test_unsigned_integers_beyond_the_signed_ones() -> None:
    table = pa.table({"user": pa.array([1, 2**63], pa.uint64()), "item": [1, 1], "rating": [1, 1]})
    with pytest.raises(ValueProblem, match="signed 64-bit integer, row 2 does not"):
        Ratings.from_frame(table)


def test_decimals_are_ratings() -> None:
    rating = pa.array([1, 2]).cast(pa.decimal128(38, 2))
    table = pa.table({"user": [1, 2], "item": [1, 1], "rating": rating})
    assert Ratings.from_frame(table).csr.data.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("thing", [[("a", "b", 1)], {"user": [1]}, None, 7, np.zeros((2, 3))])
def test_what_is_no_frame(thing: object) -> None:
    with pytest.raises(DataError, match="must be a data frame in memory"):
        Ratings.from_frame(thing)


def test_a_lazy_frame_is_collected_by_the_caller() -> None:
    with pytest.raises(DataError, match="collect a lazy one first"):
        Ratings.from_frame(pl.LazyFrame({"user": [1], "item": [1], "rating": [1]}))
