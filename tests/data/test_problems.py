"""What is wrong with the rows of a file: every kind, how many rows, and on which lines, counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from goodfence.data.frame import ReadOptions
from goodfence.data.problems import count_problems

ROWS = """userId,movieId,rating
1,10,4
{blank}1,10,5
,11,3
2,,3
2,12,
2,13,abc
2,14,inf
2,15,9007199254740993
2,16,9
2,17
3,10,2
3,10,2
"""
FIRST_LINES = {
    "for a pair of user and item that has a rating already": (3, 13),
    "without a user": (4,),
    "without an item": (5,),
    "without a rating": (6,),
    "with a rating that is no number": (7,),
    "with a rating that is not finite": (8,),
    "with a rating that a 64-bit float does not hold": (9,),
    "off the scale": (10,),
    "with another number of fields": (11,),
}


def problems(path: Path, **options: Any) -> dict[str, tuple[int, tuple[int, ...]]]:
    found = count_problems(path, ReadOptions(**options))
    assert [one.n for one in found] == sorted((one.n for one in found), reverse=True)
    return {one.kind: (one.n, one.lines) for one in found}


@pytest.mark.parametrize("n_blank", [0, 1, 3])
@pytest.mark.parametrize("header", [True, False])
def test_lines_are_those_of_the_file(n_blank: int, header: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    text = ROWS.format(blank="\n" * n_blank)
    path.write_text(text if header else text.split("\n", 1)[1], encoding="utf-8")
    expected = {
        kind: (len(lines), tuple(line + n_blank - (not header) for line in lines))
        for kind, lines in FIRST_LINES.items()
    }
    columns = {} if header else {"user": "1", "item": "2", "rating": "3"}
    assert problems(path, scale=(1, 5), **columns) == expected


def test_no_scale_and_another_rule_for_repeated_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("userId,movieId,rating\n1,1,3\n1,1,99\n", encoding="utf-8")
    repeated = "for a pair of user and item that has a rating already"
    assert problems(path) == {repeated: (1, (3,))}
    assert problems(path, duplicates="last") == {}


def test_blank_lines_in_pieces_that_are_read_one_after_the_other(tmp_path: Path) -> None:
    """Ten megabytes of rows, of which the last has no rating, with a blank line before it."""
    path = tmp_path / "a.csv"
    n_rows = 10_000
    long = "x" * 1000
    rows = "".join(f"{at},{long},3\n" for at in range(n_rows))
    path.write_text(f"userId,movieId,rating\n{rows}\n7777777,{long},\n", encoding="utf-8")
    assert problems(path) == {"without a rating": (1, (n_rows + 3,))}


def test_sections_are_no_rows(tmp_path: Path) -> None:
    """Films in sections, as the Netflix Prize has them: the third row is on line 5."""
    path = tmp_path / "combined_data_1.txt"
    path.write_text("1:\n5,3,2005-01-01\n6,4,2005-01-01\n2:\n5,,2005-01-01\n6,1,2005-01-02\n", encoding="utf-8")
    assert problems(path) == {"without a rating": (1, (5,))}


def test_rows_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "userId": pa.array(["a", None, "b", " a", "c"]),
            "movieId": pa.array([1, 1, None, 1, 2]),
            "rating": pa.array([1.0, 2.0, float("inf"), None, 7.0]),
        }
    )
    parquet.write_table(table, path)
    assert problems(path, scale=(1, 5)) == {
        "without a user": (1, (2,)),
        "without an item": (1, (3,)),
        "with a rating that is not finite": (1, (3,)),
        "without a rating": (1, (4,)),
        "for a pair of user and item that has a rating already": (1, (4,)),
        "off the scale": (1, (5,)),
    }


def test_text_where_numbers_are_expected_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"userId": [1, 2], "movieId": [1, 1], "rating": pa.array(["good", None])})
    parquet.write_table(table, path)
    assert problems(path) == {"with a rating that is no number": (1, (1,)), "without a rating": (1, (2,))}
