"""Events: what is declared is read, what is not is refused with the flag that declares it, repeats count once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import goodfence as gf
from goodfence.data.columns import FEEDBACK
from goodfence.data.frame import ReadOptions
from goodfence.data.load import read_reported
from goodfence.data.splits import core
from goodfence.errors import (
    ColumnProblem,
    DataError,
    DuplicateProblem,
    FileProblem,
    GoodfenceWarning,
    SettingError,
    ValueProblem,
)

CLICKS = {
    "user": ["bob", "ann", "ann", "bob", "ann"],
    "item": ["p2", "p1", "p2", "p2", "p1"],
    "plays": [1.0, 2.5, 3.0, 4.0, 0.5],
    "when": [50, 40, 30, 20, 60],
}
# by hand: ann p1 (twice, first at 40), ann p2 (once, at 30), bob p2 (twice, first at 20)


def put(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def written(folder: Path, ending: str, *names: str) -> Path:
    columns = {name: CLICKS[name] for name in names}
    rows = list(zip(*columns.values(), strict=True))
    path = folder / f"clicks{ending}"
    if ending == ".parquet":
        parquet.write_table(pa.table(columns), path)
        return path
    if ending == ".jsonl":
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    else:
        separator = {".csv": ",", ".tsv": "\t", ".txt": " ", ".dat": "::"}[ending]
        text = "".join(separator.join(map(str, row)) + "\n" for row in [names, *rows])
    return put(folder, path.name, text)


ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".jsonl", ".parquet")


@pytest.mark.parametrize("ending", ENDINGS)
def test_two_columns_of_every_kind_of_file(tmp_path: Path, ending: str) -> None:
    found = gf.load(written(tmp_path, ending, "user", "item"), feedback="implicit")
    assert repr(found) == "Ratings(2 users x 2 items, 3 events)"
    assert (found.feedback, found.liked_from, found.times) == ("implicit", None, None)
    assert found.csr.toarray().tolist() == [[1, 1], [0, 1]]
    assert (found.scale.lowest, found.scale.highest) == (1, 1)


@pytest.mark.parametrize("ending", ENDINGS)
def test_repeats_are_counted_where_that_is_asked_for(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending, "user", "item")
    found = gf.load(path, feedback="implicit", read=ReadOptions(duplicates="count"))
    assert found.csr.toarray().tolist() == [[2, 1], [0, 2]]
    with pytest.raises(DuplicateProblem, match="row 4 repeats row 1 \\(2 such rows\\)"):
        gf.load(path, feedback="implicit", read=ReadOptions(duplicates="error"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_weights_are_summed_and_times_are_those_of_the_first(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending, "when", "plays", "item", "user")
    found = gf.load(path, feedback="implicit", time="when", read=ReadOptions(weight="plays"))
    assert found.csr.toarray().tolist() == [[3, 3], [0, 5]]
    assert found.times is not None
    assert found.times.tolist() == [40, 30, 20]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_frames(make: Any) -> None:
    frame = make(CLICKS)
    with pytest.warns(GoodfenceWarning, match="'plays' sounds like a count and is not used"):
        found = gf.Ratings.from_frame(frame, feedback="implicit", time="when")
    assert found.csr.toarray().tolist() == [[1, 1], [0, 1]]
    assert found.times is not None
    assert found.times.tolist() == [40, 30, 20]
    heavy = gf.Ratings.from_frame(frame, feedback="implicit", read=ReadOptions(weight="plays"))
    assert heavy.csr.data.tolist() == [3, 3, 5]
    assert not heavy.items_declared


DECLARED = "say so with feedback='implicit' \\(--feedback implicit\\)"


@pytest.mark.parametrize(
    "text",
    ["user,item\n1,2\n1,3\n", "1,2\n1,3\n", "user,item,timestamp\n1,2,5\n1,3,6\n", "user,item,plays\n1,2,5\n1,3,6\n"],
)
def test_what_has_no_ratings_and_was_not_declared_names_the_flag(tmp_path: Path, text: str) -> None:
    with pytest.raises(ColumnProblem, match=DECLARED) as caught:
        gf.load(put(tmp_path, "a.csv", text))
    assert "\n" not in str(caught.value)
    with pytest.raises(ColumnProblem, match=DECLARED):
        gf.Ratings.from_frame(pa.table({"user": [1], "item": [2]}))


def test_no_other_separator_is_taken_because_two_fields_are_few(tmp_path: Path) -> None:
    with pytest.raises(ColumnProblem, match=DECLARED):
        gf.load(put(tmp_path, "a.txt", "1 2\n1 3\n"))
    assert gf.load(put(tmp_path, "a.txt", "1 2\n1 3\n"), feedback="implicit").n_ratings == 2
    dated = put(tmp_path, "b.txt", "user,item,date\n1,2,2020-01-01 10:00\n1,3,2020-01-02 11:00\n")
    assert gf.load(dated, feedback="implicit").n_ratings == 2
    with pytest.raises(FileProblem, match="one separator"):
        gf.load(put(tmp_path, "c.txt", "1,2|3\n1,3|4\n"), feedback="implicit")


@pytest.mark.parametrize("name", ["rating", "stars", "Score", "label", "value", "overall"])
def test_ratings_are_no_events_until_somebody_says_which(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, "a.csv", f"user,item,{name}\n1,2,1\n1,3,5\n2,2,4\n")
    with pytest.raises(ColumnProblem, match="say which of them count as likes with likes= \\(--likes\\)"):
        gf.load(path, feedback="implicit")
    for declared in FEEDBACK:
        found = gf.load(path, likes=4, feedback=declared)
        assert found.csr.toarray().tolist() == [[0, 1], [1, 0]]
        assert found.liked_from == 4
    assert gf.load(path, feedback="implicit", read=ReadOptions(weight=name)).csr.data.tolist() == [1, 5, 4]


def test_likes_of_what_says_the_same_of_everything(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user,item,rating\n1,2,1\n1,3,1\n")
    with pytest.raises(ValueProblem, match="take them so with likes= \\(--likes\\)"):
        gf.load(path)
    assert gf.load(path, likes=1).n_ratings == 2


def test_likes_of_a_named_data_set() -> None:
    whole, liked = gf.load("movietweetings"), gf.load("movietweetings", likes=8)
    assert liked.n_ratings == int((whole.csr.data >= 8).sum())
    assert liked.shape == whole.shape
    assert (liked.liked_from, liked.items_declared, liked.titles == whole.titles) == (8, True, True)
    with pytest.raises(SettingError, match="feedback must be explicit for a named data set"):
        gf.load("movietweetings", feedback="implicit")
    with pytest.raises(SettingError, match="time must be left out for a named data set"):
        gf.load("movietweetings", time="timestamp")


def test_the_least_rating_goes_everywhere_with_the_events() -> None:
    liked = gf.load("movietweetings", likes=8)
    train, test = gf.holdout(liked, rng=7)
    parts = [train, test, liked.transposed, core(liked, per_user=5, per_item=5), liked.on_items(liked.items)]
    assert [part.liked_from for part in parts] == [8.0] * 5
    assert "ratings of at least 8" in liked._repr_html_()


def test_sections_of_the_netflix_prize_hold_ratings(tmp_path: Path) -> None:
    path = put(tmp_path, "combined.txt", "7:\n1,5,2005-09-06\n2,3,2005-09-06\n8:\n1,4,2005-09-07\n")
    with pytest.raises(ColumnProblem, match="likes="):
        gf.load(path, feedback="implicit")
    assert gf.load(path, likes=4).csr.toarray().tolist() == [[1, 1], [0, 0]]


HEADLESS = {
    "three": "1,2,978300760\n1,3,978300761\n",
    "four": "1,2,5,978300760\n1,3,4,978300761\n",
    "text and a number": "ann,2,5\nbob,3,4\n",
}


@pytest.mark.parametrize("kind", HEADLESS)
def test_further_columns_without_names_are_named_by_the_caller(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, "a.csv", HEADLESS[kind])
    with pytest.raises(ColumnProblem, match="must have 2 columns, this one has"):
        gf.load(path, feedback="implicit")
    assert gf.load(path, feedback="implicit", user="1", item="2").n_ratings == 2
    assert gf.load(path, likes=5, user="1", item="2", rating="3").n_ratings >= 1


def test_positions_of_time_and_weight(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", HEADLESS["four"])
    found = gf.load(path, feedback="implicit", time="4", read=ReadOptions(weight="3"))
    assert found.csr.data.tolist() == [5, 4]
    assert found.times is not None
    assert found.times.tolist() == [978300760, 978300761]
    with pytest.raises(ColumnProblem, match="must be different columns"):
        gf.load(path, feedback="implicit", time="3", read=ReadOptions(weight="3"))
    with pytest.raises(ColumnProblem, match="weight must be a position from 1 to 4"):
        gf.load(path, feedback="implicit", time="4", read=ReadOptions(weight="5"))


def test_text_without_a_header_is_not_taken_for_one(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "ann,p1\nbob,p2\n")
    with pytest.raises(ColumnProblem, match="columns is called user") as caught:
        gf.load(path, feedback="implicit")
    assert "ann" not in str(caught.value)
    with pytest.warns(GoodfenceWarning, match="user in column 1, item in column 2; if"):
        numbers = gf.load(
            put(tmp_path, "b.csv", "ann,p1,7\nbob,p2,4\n"), feedback="implicit", read=ReadOptions(weight="3")
        )
    assert numbers.n_ratings == 2
    assert gf.load(path, feedback="implicit", user="1", item="2").users.tolist() == ["ann", "bob"]


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ("0", "must be more than 0, row 2 is not"),
        ("-1", "must be more than 0, row 2 is not"),
        ("nan", "must be a finite number, row 2 is not"),
        ("often", "must be a number, row 2 is not"),
        ("", "must not be missing, row 2 is"),
    ],
)
def test_a_weight_is_a_positive_number(tmp_path: Path, weight: str, said: str) -> None:
    path = put(tmp_path, "a.csv", f"user,item,plays\n1,2,5\n1,3,{weight}\n")
    with pytest.raises(ValueProblem, match=f"weight \\(column 'plays'\\) {said}"):
        gf.load(path, feedback="implicit", read=ReadOptions(weight="plays"))


def test_weights_whose_sum_is_infinite_are_refused() -> None:
    table = pa.table({"user": [1, 1], "item": [2, 2], "plays": [1e308, 1e308]})
    with pytest.raises(ValueProblem, match="must have finite sums"):
        gf.Ratings.from_frame(table, feedback="implicit", read=ReadOptions(weight="plays"))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"feedback": "clicks"}, "feedback must be one of explicit, implicit"),
    ({"feedback": "implicit", "scale": (1, 5)}, "scale must be left out for events"),
    ({"feedback": "implicit", "rating": "plays"}, "rating must be left out for events"),
    ({"feedback": "implicit", "unrated": 0.0}, "unrated must be left out for events"),
    ({"weight": "plays"}, "weight must be left out for ratings"),
    ({"weight": "plays", "likes": 4.0}, "weight must be left out for ratings"),
    ({"feedback": "implicit", "duplicates": "mean"}, "one of error, once, count, sum for events"),
    ({"duplicates": "count"}, "one of error, last, first, mean for ratings"),
    ({"feedback": "implicit", "duplicates": "sum"}, "sum where a weight is named"),
    ({"feedback": "implicit", "duplicates": "count", "weight": "plays"}, "sum where a weight is named"),
    ({"likes": float("nan")}, "likes must be a finite number"),
]


@pytest.mark.parametrize(("settings", "said"), WRONG)
def test_settings_that_do_not_go_together(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    path = written(tmp_path, ".csv", "user", "item", "plays")
    with pytest.raises(SettingError, match=said):
        gf.load(path, read=ReadOptions(**settings))


def test_no_rows_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileProblem):
        gf.load(put(tmp_path, "a.csv", "user,item\n"), feedback="implicit")
    with pytest.raises(DataError, match="at least one event"):
        gf.Ratings.from_frame(pa.table({"user": [], "item": []}), feedback="implicit")


def test_what_was_read_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, ".csv", "user", "item", "plays", "when")
    options = ReadOptions(feedback="implicit", weight="plays")
    found = read_reported(path, options)
    assert found.columns.chosen == ("user", "item", "plays")
    assert found.columns.unused == ("when",)
    assert found.n_repeated == 2


def test_a_matrix_by_hand_of_likes() -> None:
    table = pa.table({"user": [1, 1, 2], "item": [1, 2, 2], "rating": [4.0, 3.5, 5.0]})
    liked = gf.Ratings.from_frame(table, likes=4)
    assert liked.csr.toarray().tolist() == [[1, 0], [0, 1]]
    assert np.array_equal(liked.items, [1, 2])


def test_likes_that_nobody_gave_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user,item,rating\n1,2,1\n1,3,5\n2,2,4\n")
    for name in (path, "movietweetings"):
        with pytest.raises(DataError, match="likes must leave an event"):
            gf.load(name, likes=40)
