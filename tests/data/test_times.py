"""Times are kept where they are there: integers as they are, dates as seconds; nothing else is taken for them."""

from __future__ import annotations

import datetime
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import goodfence as gf
from goodfence.data.frame import ReadOptions
from goodfence.data.load import read_reported
from goodfence.data.times import read_times, span
from goodfence.errors import ColumnProblem, GoodfenceWarning, SettingError, SizeProblem, ValueProblem

SECONDS = [893286638, 874724710, 875000000]
DATES = ["1998-04-22T23:10:38", "1997-09-20 03:05:10", "1997-09-23T07:33:20.75"]


def rows(times: list[Any], name: str = "timestamp") -> dict[str, list[Any]]:
    return {"user": ["b", "a", "a"], "item": [1, 2, 1], "rating": [3, 4, 5], name: times}


def written(folder: Path, times: list[Any], ending: str, name: str = "timestamp") -> Path:
    columns = rows(times, name)
    path = folder / f"ratings{ending}"
    lines = list(zip(*columns.values(), strict=True))
    if ending == ".parquet":
        parquet.write_table(pa.table(columns), path)
    elif ending == ".jsonl":
        objects = (dict(zip(columns, line, strict=True)) for line in lines)
        path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    elif ending == ".dat":  # without a header line
        path.write_text("".join("::".join(map(str, line)) + "\n" for line in lines))
    else:
        text = "".join(",".join(map(str, line)) + "\n" for line in [tuple(columns), *lines])
        path.write_text(text)
    return path


# by hand: the cells in order are (a, 1), (a, 2), (b, 1)
IN_ORDER = [SECONDS[2], SECONDS[1], SECONDS[0]]


@pytest.mark.parametrize("times", [SECONDS, DATES], ids=["seconds", "dates"])
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ".dat"])
def test_times_of_every_kind_of_file(tmp_path: Path, ending: str, times: list[Any]) -> None:
    found = gf.load(written(tmp_path, times, ending))
    assert found.times is not None
    assert found.times.tolist() == IN_ORDER
    assert found.csr.data.tolist() == [5, 4, 3]


def test_times_of_sections(tmp_path: Path) -> None:
    path = tmp_path / "combined.txt"
    path.write_text("7:\n2,3,2005-09-06\n1,4,2005-09-07\n8:\n2,5,1970-01-02\n")
    found = gf.load(path)
    assert found.times is not None
    by_cell = dict(zip([(1, 7), (2, 7), (2, 8)], found.times.tolist(), strict=True))
    assert by_cell == {(1, 7): 1126051200, (2, 7): 1125964800, (2, 8): 86400}


TYPED = {
    "int32": pa.array([5, 7, 6], pa.int32()),
    "uint64": pa.array([5, 7, 6], pa.uint64()),
    "float": pa.array([5.0, 7.0, 6.0]),
    "seconds": pa.array([5, 7, 6], pa.timestamp("s")),
    "nanoseconds with a zone": pa.array([5_999_999_999, 7 * 10**9, 6 * 10**9], pa.timestamp("ns", "Europe/Paris")),
    "a dictionary": pa.array(["1970-01-01T00:00:05", "1970-01-01T00:00:07", "1970-01-01T00:00:06"]).dictionary_encode(),
    "a zone": pa.array(["1970-01-01T01:00:05+01:00", "1970-01-01T00:00:07Z", "1970-01-01T00:00:06Z"]),
    "nine digits": pa.array(["1970-01-01T00:00:05.123456789", "1970-01-01T00:00:07", "1970-01-01T00:00:06"]),
    "floats as text": pa.array(["5.0", "7.", "6"]),
    "large text": pa.array(["5", "7", "6"], pa.large_string()),
    "a view": pa.array(["5", "7", "6"], pa.string_view()),
}


@pytest.mark.parametrize("kind", TYPED)
def test_every_type_that_can_be_times(kind: str) -> None:
    assert read_times([TYPED[kind]], "time").tolist() == [5, 7, 6]


def test_days_before_1970_are_negative() -> None:
    days = pa.array([datetime.date(1969, 12, 31), datetime.date(1970, 1, 2)])
    for column in (days, days.cast(pa.date64()), days.cast(pa.timestamp("ms"))):
        assert read_times([column], "time").tolist() == [-86400, 86400]
    half = pa.array([-1], pa.timestamp("ms"))
    assert read_times([pa.array(half)], "time").tolist() == [-1]  # the second that it falls into


START = 1569888000  # 2019-10-01 in UTC
OTHERWISE = {
    "UTC": ["2019-10-01 00:00:00 UTC", "2019-10-02 00:00:01 UTC"],
    "GMT": ["2019-10-01T00:00:00GMT", "2019-10-02T00:00:01GMT"],
    "Z": ["2019-10-01T00:00:00Z", "2019-10-02T00:00:01Z"],
    "offsets": ["2019-10-01T02:00:00+02:00", "2019-10-01 19:30:01-0430"],
    "an offset apart": ["2019-10-01 02:00:00 +0200", "2019-10-01 19:30:01 -04:30"],
    "dots": ["01.10.2019", "02.10.2019 00:00:01"],
    "single digits": ["1.10.2019", "2.10.2019 00:00:01"],
    "the year first": ["2019/10/01", "2019/10/02 00:00:01"],
}


@pytest.mark.parametrize("kind", OTHERWISE)
def test_dates_as_others_write_them(kind: str) -> None:
    expected = [START, START + 86401]
    assert read_times([pa.array(OTHERWISE[kind])], "time").tolist() == expected
    in_chunks = [pa.array([one]) for one in OTHERWISE[kind]]
    assert read_times(in_chunks, "time").tolist() == expected


def test_dates_that_could_be_two_days_need_an_order(tmp_path: Path) -> None:
    """Never guessed, even where only one order fits all rows."""
    for texts in (["03/04/2019", "05/06/2019"], ["3-4-2019", "25-12-2019"]):
        with pytest.raises(ValueProblem, match="time does not tell day from month, as in 03/04/2019; say read='dates="):
            read_times([pa.array(texts)], "time")
    april, march = 1554249600, 1551657600  # 3 April and 4 March 2019
    assert read_times([pa.array(["03/04/2019"])], "time", "day-first").tolist() == [april]
    assert read_times([pa.array(["3/4/2019 00:00"])], "time", "month-first").tolist() == [march]
    with pytest.raises(ValueProblem, match="row 2 is not"):
        read_times([pa.array(["03/04/2019", "25/12/2019"])], "time", "month-first")
    for ending in (".csv", ".parquet", ".jsonl"):
        path = written(tmp_path, ["03/04/2019", "04/04/2019", "05/04/2019"], ending, "date")
        with pytest.warns(GoodfenceWarning, match="times are left out: time .* does not tell day from month"):
            assert gf.load(path).times is None
        with pytest.raises(ValueProblem, match="day from month"):
            gf.load(path, time="date")
        found = gf.load(path, read="dates=day-first").times
        assert found is not None
        assert found.tolist() == [april + 2 * 86400, april + 86400, april]
    with pytest.raises(SettingError, match="dates must be one of day-first, month-first"):
        gf.load(path, read="dates=daily")


BROKEN = {
    "no month": (pa.array(["01.13.2019"]), "row 1 is not"),
    "two figures of a year": (pa.array(["01.10.19"]), "row 1 is not"),
    "another zone": (pa.array(["2019-10-01 00:00:00 CET"]), "row 1 is not"),
    "half past noon": (pa.array(["2019-10-01 12:30 PM"]), "row 1 is not"),
    "a word": (pa.array(["5", "noon"]), "row 2 is not"),
    "no day": (pa.array(["2020-01-31", "2020-02-31"]), "row 2 is not"),
    "a time of day": (pa.array(["12:30"]), "row 1 is not"),
    "mixed": (pa.array(["2020-01-31", "5"]), "row 2 is not"),
    "one with a zone": (pa.array(["2020-01-31T00:00:00", "2020-01-31T00:00:00Z"]), "row 2 is not"),
    "a fraction": (pa.array([1.0, 2.5]), "row 2 is not"),
    "infinity": (pa.array([1.0, float("inf")]), "row 2 is not"),
    "missing": (pa.array([1, None]), "must not be missing, row 2 is"),
    "empty": (pa.array(["1", " "]), "must not be missing, row 2 is"),
    "nothing": (pa.array([None, None]), "must not be missing, row 1 is"),
    "true": (pa.array([True]), "it holds true and false"),
    "nested": (pa.array([[1]]), "it holds nested values"),
    "too large": (pa.array([2**63], pa.uint64()), "must fit in a signed 64-bit integer"),
    "twenty digits": (pa.array(["1" * 20]), "row 1 is not"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_no_time_is_told_with_its_row(kind: str) -> None:
    column, said = BROKEN[kind]
    with pytest.raises(ValueProblem, match=said):
        read_times([column], "time")


def test_the_row_is_counted_over_all_chunks() -> None:
    chunks = [pa.array(["1", "2"]), pa.array(["3", "x", "4"])]
    with pytest.raises(ValueProblem, match="row 4 is not"):
        read_times(chunks, "time")
    with pytest.raises(ValueProblem, match="row 3 is"):
        read_times([pa.array(["1", "2"]), pa.array(["", "4"])], "time")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_a_named_column_must_hold_times(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ["2020-01-01", "Undine Quark", "2020-01-03"], ending, "seen")
    with pytest.raises(ValueProblem, match="time \\(column 'seen'\\) must be an integer or a date") as caught:
        gf.load(path, time="seen")
    assert "Undine" not in str(caught.value)
    assert gf.load(path).times is None  # it is not called a time
    with pytest.raises(ColumnProblem, match="time must name a column"):
        gf.load(path, time="sen")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_a_found_column_that_holds_something_else_is_not_used(tmp_path: Path, ending: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_reported(written(tmp_path, ["monday", "tuesday", "friday"], ending, "date"))
    assert found.ratings.times is None
    assert found.columns.unused == ("date",)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_a_found_column_that_breaks_off_is_left_out_with_a_warning(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ["2020-01-01"] * 3, ending, "date")
    if ending == ".parquet":
        table = pa.table({**rows(["2020-01-01"] * 3, "date")})
        longer = pa.concat_tables([table] * 10)
        users = pa.array([f"u{n}" for n in range(30)])
        dates = pa.array(["2020-01-01"] * 29 + ["Undine Quark"])
        parquet.write_table(longer.set_column(0, "user", users).set_column(3, "date", dates), path)
    else:
        line = path.read_text().splitlines()[-1]
        more = [
            line.replace("a", f"u{n}", 1) if ending == ".csv" else line.replace('"a"', f'"u{n}"') for n in range(30)
        ]
        more[-1] = more[-1].replace("2020-01-01", "Undine Quark")
        path.write_text(path.read_text() + "".join(f"{one}\n" for one in more))
    with pytest.warns(GoodfenceWarning, match="times are left out: time") as told:
        found = gf.load(path)
    assert found.times is None
    assert found.n_ratings >= 30
    assert not any("Undine" in str(one.message) for one in told)


def test_two_columns_of_times_are_not_guessed_between(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating,date,timestamp\n1,1,2,2020-01-01,5\n1,2,3,2020-01-02,4\n")
    assert gf.load(path).times is None
    found = gf.load(path, time="timestamp").times
    assert found is not None
    assert found.tolist() == [5, 4]


def test_a_fourth_column_without_a_name_must_be_likely_times(tmp_path: Path) -> None:
    path = tmp_path / "a.dat"
    for fourth, kept in (
        ("978300760", True),
        ("12", False),
        ("2001-01-01", True),
        ("978300760123", True),
        ("yes", False),
    ):
        path.write_text(f"1::1::2::{fourth}\n1::2::3::{fourth}\n")
        assert (gf.load(path).times is not None) == kept, fourth
    path.write_text("".join(f"1::{n}::{n % 5}::978300760\n" for n in range(40)) + "1::99::3::1\n")
    with pytest.warns(GoodfenceWarning, match="must be times between 1973 and 2100"):
        assert gf.load(path).times is None


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("times", [SECONDS, DATES], ids=["seconds", "dates"])
def test_times_of_frames(make: Any, times: list[Any]) -> None:
    found = gf.Ratings.from_frame(make(rows(times)))
    assert found.times is not None
    assert found.times.tolist() == IN_ORDER
    named = gf.Ratings.from_frame(make(rows(times, "seen")), time="seen")
    assert named.times is not None
    assert named.times.tolist() == IN_ORDER


def test_times_of_pandas_own_type() -> None:
    frame = pd.DataFrame({**rows(DATES), "timestamp": pd.to_datetime(DATES, format="ISO8601")})
    found = gf.Ratings.from_frame(frame)
    assert found.times is not None
    assert found.times.tolist() == IN_ORDER


@pytest.mark.parametrize(("rule", "kept"), [("first", 30), ("last", 10), ("mean", 10)])
def test_of_a_repeated_rating_the_time_is_that_of_its_row(rule: Any, kept: int) -> None:
    table = pa.table({"user": [1, 1, 1], "item": [1, 1, 2], "rating": [3, 5, 1], "time": [30, 10, 20]})
    with pytest.warns(GoodfenceWarning, match="repeat a pair"):
        found = gf.Ratings.from_frame(table, read=ReadOptions(duplicates=rule))
    assert found.times is not None
    assert found.times.tolist() == [kept, 20]


def test_times_go_with_their_ratings() -> None:
    times = np.array(IN_ORDER)
    found = gf.Ratings.from_frame(pa.table(rows(SECONDS)))
    turned = found.transposed.times
    assert turned is not None
    assert turned.tolist() == [times[0], times[2], times[1]]
    moved = found.on_items([9, 2, 1]).times
    assert moved is not None
    assert moved.tolist() == [times[1], times[0], times[2]]
    liked = found.likes(4).times
    assert liked is not None
    assert liked.tolist() == [times[0], times[1]]


def test_a_span_of_days_or_of_integers() -> None:
    assert span(np.array([10**12, 1.1 * 10**12], dtype=np.int64)) == ("2001-09-09", "2004-11-09")
    assert span(np.array([20050906, 20060101])) == ("20050906", "20060101")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_times_are_left_out_where_memory_is_short_unless_they_are_named(tmp_path: Path, ending: str) -> None:
    n = 2000  # by hand: 64 bytes a row and 80 for each of 90 ids, and 16 more for a time
    rows = [(at // 50, at % 50, at % 5, 881250949 + at) for at in range(n)]
    path = tmp_path / f"a{ending}"
    names = ("user", "item", "rating", "timestamp")
    if ending == ".csv":
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in [names, *rows]))
    else:
        columns = zip(*rows, strict=True)
        parquet.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)
    enough, short = 80 * n + 80 * 90, 79 * n
    assert gf.load(path, read=ReadOptions(max_bytes=enough)).times is not None
    with pytest.warns(GoodfenceWarning, match="times are left out: they would take more memory"):
        found = gf.load(path, read=ReadOptions(max_bytes=short))
    assert (found.n_ratings, found.times) == (n, None)
    with pytest.raises(SizeProblem):
        gf.load(path, time="timestamp", read=ReadOptions(max_bytes=short))


def test_times_stay_with_their_ratings_where_rows_are_left_out(tmp_path: Path) -> None:
    """More rows than one chunk holds: what is left out of the ratings is left out of the times."""
    path, n = tmp_path / "many.csv", 300_000
    lines = (f"{at},{at % 7},{'' if at % 3 == 0 else at % 5 + 1},{10**9 + at}\n" for at in range(n))
    path.write_text("user,item,rating,time\n" + "".join(lines))
    with pytest.warns(GoodfenceWarning, match="100,000 rows say that there is no rating"):
        found = gf.load(path, read="unrated=missing")
    assert found.times is not None
    np.testing.assert_array_equal(found.times - 10**9, found.users)
