"""Good files are read, whatever harmless oddity they have."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from goodfence.data.files import check_limit
from goodfence.data.frame import ReadOptions
from goodfence.data.load import _bytes_of_ids, read_item_list, read_ratings, read_reported, read_table
from goodfence.data.ratings import Ratings
from goodfence.data.text import CHUNK
from goodfence.errors import ColumnProblem, FileProblem, GoodfenceWarning, SettingError, SizeProblem, ValueProblem

CSV = "userId,movieId,rating,timestamp\n7,10,4.5,99\n8,9,0,98\n7,9,1,97\n"
EXPECTED = {(7, 9): 1.0, (7, 10): 4.5, (8, 9): 0.0}


def cells(ratings: Ratings) -> dict[tuple[Any, Any], float]:
    """Return the ratings as {(user, item): rating}."""
    matrix = ratings.csr.tocoo()
    users, items = ratings.users.tolist(), ratings.items.tolist()
    return {
        (users[row], items[column]): float(value)
        for row, column, value in zip(matrix.row, matrix.col, matrix.data, strict=True)
    }


def put(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    content = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


HEADLESS = "7|10|4.5|99\n8|9|0|98\n7|9|1|97\n"
SAME: dict[str, tuple[str, str | bytes]] = {
    "csv": ("a.csv", CSV),
    "capital ending": ("A.CSV", CSV),
    "tsv": ("a.tsv", CSV.replace(",", "\t")),
    "dat": ("ratings.dat", HEADLESS.replace("|", "::")),
    "dat with tabs": ("ratings.dat", HEADLESS.replace("|", "\t")),
    "u.data": ("u.data", HEADLESS.replace("|", "\t")),
    "u1.base": ("u1.base", HEADLESS.replace("|", "\t")),
    "u1.test": ("u1.test", HEADLESS.replace("|", "\t")),
    "three columns": ("a.csv", "7,10,4.5\n8,9,0\n7,9,1\n"),
    "txt": ("a.txt", CSV.replace(",", ";")),
    "no ending": ("ratings", HEADLESS),
    "csv.gz": ("a.csv.gz", CSV),
    "dat.gz": ("a.dat.gz", HEADLESS.replace("|", "::")),
    "gz": ("a.gz", CSV),
    "byte-order mark": ("a.csv", b"\xef\xbb\xbf" + CSV.encode()),
    "byte-order mark without a header": ("a.dat", "\ufeff" + HEADLESS.replace("|", "::")),
    "windows": ("a.csv", CSV.replace("\n", "\r\n")),
    "no last end": ("a.csv", CSV.rstrip("\n")),
    "blank lines at the end": ("a.csv", CSV + "\n\n\r\n"),
    "blank lines before": ("a.csv", "\n\n" + CSV),
    "blank lines between": ("a.csv", CSV.replace("\n", "\n\n")),
    "spaces around names": ("a.csv", CSV.replace("userId,movieId", " userId , movieId ")),
    "quoted": ("a.csv", '"userId","movieId","rating"\n"7","10","4.5"\n8,"9",0\n7,9,"1"\n'),
    "spaces around ratings": ("a.csv", CSV.replace("4.5", " 4.5 ")),
    "other notation": ("a.csv", CSV.replace("4.5", "+45e-1").replace(",1,", ",1.,")),
    "columns in another order": ("a.csv", "stars,who,USER-ID,film\n4.5,a,7,10\n0,b,8,9\n1,c,7,9\n"),
    "unused text with separators": ("a.csv", 'user,title,item,rating\n7,"a, ""b""",10,4.5\n8,,9,0\n7,c,9,1\n'),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_ratings_from_every_kind_of_text(name: str, tmp_path: Path) -> None:
    file, text = SAME[name]
    assert cells(read_ratings(put(tmp_path, file, text))) == EXPECTED


def test_two_members_of_gzip_are_one_file(tmp_path: Path) -> None:
    content = gzip.compress(CSV[:40].encode()) + gzip.compress(CSV[40:].encode())
    (tmp_path / "a.csv.gz").write_bytes(content)
    assert cells(read_ratings(tmp_path / "a.csv.gz")) == EXPECTED


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("grade", ["float32", "float64"])
def test_parquet_of_every_number(kind: str, grade: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "user": np.array([7, 8, 7], dtype=kind),
            "item": np.array([10, 9, 9], dtype=kind),
            "rating": np.array([4.5, 0, 1], dtype=grade),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    assert cells(read_ratings(tmp_path / "a.parquet")) == EXPECTED


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_parquet_of_text(kind: pa.DataType, use_dictionary: bool, tmp_path: Path) -> None:
    names = pa.array(["b", "a", "é", "a"], kind)
    table = pa.table({"user": names, "item": [1, 1, 1, 2], "rating": [1, 2, 3, 4]})
    path = tmp_path / "a.pq"
    parquet.write_table(table, path, row_group_size=2, use_dictionary=use_dictionary)
    ratings = read_ratings(path)
    assert cells(ratings) == {("b", 1): 1, ("a", 1): 2, ("é", 1): 3, ("a", 2): 4}
    assert ratings.users.tolist() == ["a", "b", "é"]


def test_parquet_with_a_nested_column_that_is_not_used(tmp_path: Path) -> None:
    table = pa.table({"user": [1], "item": [2], "rating": [3], "tags": [["a", "b"]]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read_reported(tmp_path / "a.parquet").columns.unused == ("tags",)


def test_one_long_id_on_every_row_does_not_fill_the_memory(tmp_path: Path) -> None:
    n = 100_000
    same = pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), ["x" * 30_000])
    table = pa.table({"user": same, "item": np.arange(n), "rating": np.arange(n) % 5})
    parquet.write_table(table, tmp_path / "a.parquet", store_schema=False)
    assert parquet.read_schema(tmp_path / "a.parquet").field("user").type == pa.string()
    # 3 GB if each row had its own, which is beyond the limit and what arrow's text can hold.
    assert read_ratings(tmp_path / "a.parquet").shape == (1, n)


@pytest.mark.parametrize(
    ("ids", "own"),
    [
        (("10", "9", "-1"), [-1, 9, 10]),
        (("0", "1"), [0, 1]),
        (("007", "7"), ["007", "7"]),
        (("7.0", "8"), ["7.0", "8"]),
        (("+7", "8"), ["+7", "8"]),
        (("-0", "8"), ["-0", "8"]),
        (("ann", "Bob"), ["Bob", "ann"]),
        ((str(2**63 - 1), "1"), [1, 2**63 - 1]),
        ((str(2**63), "1"), ["1", str(2**63)]),
        (("1" * 30, "1"), ["1", "1" * 30]),
    ],
)
def test_ids_are_integers_only_if_all_are(ids: tuple[str], own: list[Any], tmp_path: Path) -> None:
    text = "user,item,rating\n" + "".join(f"{one},1,{n}\n" for n, one in enumerate(ids))
    assert read_ratings(put(tmp_path, "a.csv", text)).users.tolist() == own


def test_a_leading_zero_is_part_of_a_film_s_id(tmp_path: Path) -> None:
    path = put(tmp_path, "ratings.dat", "1::0054890::9::1\n2::1408101::10::2\n")
    ratings = read_ratings(path)
    assert ratings.users.tolist() == [1, 2]
    assert ratings.items.tolist() == ["0054890", "1408101"]


def test_spaces_around_ids_are_left_out_and_told(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", CSV.replace(",", ", "))
    with pytest.warns(GoodfenceWarning, match="item .* has ids with spaces around them"):
        assert cells(read_ratings(path)) == EXPECTED


def test_positions_read_a_file_without_numbers(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "x,ann,4,heat\nx,bob,3,heat\n")
    reading = read_reported(path, ReadOptions(user="2", item="4", rating="3"))
    assert cells(reading.ratings) == {("ann", "heat"): 4, ("bob", "heat"): 3}
    assert reading.columns.positional


def test_a_stated_separator(tmp_path: Path) -> None:
    path = put(tmp_path, "a.log", CSV.replace(",", "|"))
    assert cells(read_ratings(path, ReadOptions(separator="|"))) == EXPECTED
    for wrong in ("", "ab", '"', "\n", "é"):
        with pytest.raises(SettingError, match="separator must be"):
            read_ratings(path, ReadOptions(separator=wrong))


def test_many_chunks(tmp_path: Path) -> None:
    n = 3 * CHUNK // 120
    lines = "".join(f"{row},{row % 977},{row % 5},{'x' * 110}\n" for row in range(n))
    assert len(lines) > 2 * CHUNK
    ratings = read_ratings(put(tmp_path, "a.csv", "user,item,rating,time\n" + lines))
    assert ratings.n_ratings == n
    assert ratings.users.tolist() == list(range(n))
    assert np.array_equal(ratings.csr.data, np.arange(n) % 5)
    assert np.array_equal(ratings.csr.indices, np.arange(n) % 977)
    with pytest.raises(ValueProblem, match=f"row {n + 1} is not"):
        read_ratings(put(tmp_path, "b.csv", "user,item,rating,time\n" + lines + "1,1,x,1\n"))
    with pytest.raises(FileProblem, match=f"row {n + 1} has 2"):
        read_ratings(put(tmp_path, "c.csv", "user,item,rating,time\n" + lines + "1,1\n"))


def test_a_first_chunk_of_blank_lines(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "\n" * (CHUNK + 1) + CSV)
    assert cells(read_ratings(path)) == EXPECTED


def test_a_field_beyond_measure_in_the_first_line(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user,item,rating," + "x" * 200_000 + "\n1,2,3,4\n")
    with pytest.raises(ColumnProblem, match="needs columns for user, item and rating"):
        read_ratings(path)


def test_a_declared_scale_lets_wide_grades_pass(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "".join(f"{n},{n},{n}\n" for n in range(1500)))
    assert read_ratings(path, ReadOptions(scale=(0, 1500))).n_ratings == 1500


def test_what_was_read_is_told(tmp_path: Path) -> None:
    table, columns = read_table(put(tmp_path, "a.csv", CSV))
    assert table.column_names == ["user", "item", "rating", "time"]
    assert columns.chosen == ("userId", "movieId", "rating")
    assert (columns.time, columns.unused) == ("timestamp", ())


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_a_limit_is_a_positive_integer(limit: Any) -> None:
    with pytest.raises(SettingError, match="max_bytes must be a positive integer"):
        check_limit(limit)


def test_a_limit_that_is_just_enough(tmp_path: Path) -> None:
    text = CSV.replace("\n", f",{'x' * 1000}\n")
    packed = put(tmp_path, "a.csv.gz", text)
    assert read_ratings(packed, ReadOptions(max_bytes=len(text))).n_ratings == 3
    with pytest.raises(SizeProblem, match="KiB once inflated"):
        read_ratings(tmp_path / "a.csv.gz", ReadOptions(max_bytes=len(text) - 1))
    parquet.write_table(
        pa.table({"user": [1], "item": [2], "rating": pa.array([3], pa.uint8())}), tmp_path / "a.parquet"
    )
    size = (tmp_path / "a.parquet").stat().st_size
    assert read_ratings(tmp_path / "a.parquet", ReadOptions(max_bytes=size)).n_ratings == 1


@pytest.mark.parametrize("problem", [PermissionError, OSError])
def test_a_file_that_the_system_refuses(
    problem: type[OSError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise problem("Undine Quark")

    path = put(tmp_path, "a.csv", CSV)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileProblem, match=r"'a\.csv' must be readable") as caught:
        read_ratings(path)
    assert "Undine" not in str(caught.value)


def test_a_disk_that_fails_while_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("Undine Quark")

    path = put(tmp_path, "a.csv.gz", gzip.compress(CSV.encode()))
    monkeypatch.setattr(gzip, "open", refuse)
    with pytest.raises(FileProblem, match="reading it failed"):
        read_ratings(path)


@pytest.mark.real("ml-100k", "movietweetings", "ml-1m")
@pytest.mark.parametrize(
    ("file", "shape", "n_ratings", "scale"),
    [
        ("ml-100k/u.data", (943, 1682), 100_000, "integers 1-5 (observed)"),
        ("ml-100k/u1.base", (943, 1650), 80_000, "integers 1-5 (observed)"),
        ("movietweetings/ratings.dat", (21081, 12611), 141_695, "integers 0-10 (observed)"),
        ("ml-1m/ratings.parquet", (6040, 3706), 1_000_209, "integers 1-5 (observed)"),
    ],
)
def test_real_files(file: str, shape: tuple[int, int], n_ratings: int, scale: str, real_data: Path) -> None:
    ratings = read_ratings(real_data / file)
    assert ratings.shape == shape
    assert ratings.n_ratings == n_ratings
    assert str(ratings.scale) == scale


def test_an_array_of_json_is_told_from_lines(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="must be JSON lines, one object a line, and is an array"):
        read_ratings(put(tmp_path, "a.json", json.dumps([{"user": 1}])))


def test_memory_of_json_by_hand(tmp_path: Path) -> None:
    """A thousand rows of 64 bytes, and a user of 20 letters on each, with 4 bytes to say where: less 8, four times."""
    lines = [f'{{"user": "{"u" * 20}", "item": {at}, "rating": {at % 5}}}\n' for at in range(1000)]
    path = put(tmp_path, "a.jsonl", "".join(lines))
    assert read_ratings(path, ReadOptions(max_bytes=132_000)).n_ratings == 1000
    with pytest.raises(SizeProblem, match="raise the limit"):
        read_ratings(path, ReadOptions(max_bytes=124_000))


def test_a_list_of_items_by_hand(tmp_path: Path) -> None:
    """Blank lines have numbers too; spaces around an id are left out with a word; a second time is refused."""
    path = put(tmp_path, "items.txt", "\ntt01\r\n\n tt02\nßß\n")
    with pytest.warns(GoodfenceWarning, match="spaces"):
        listed = read_item_list(path, 2**20)
    assert (listed.file, listed.lines) == ("items.txt", {"tt01": 2, "tt02": 4, "ßß": 5})
    again = put(tmp_path, "twice.txt", "a\nb\n\na\n")
    with pytest.raises(ValueProblem, match="line 4 repeats line 1"):
        read_item_list(again, 2**20)
    for nothing in ("", "\n\n"):
        with pytest.raises(FileProblem, match="is empty"):
            read_item_list(put(tmp_path, "nothing.txt", nothing), 2**20)


def test_memory_of_a_list_of_items_by_hand(tmp_path: Path) -> None:
    """A thousand ids of four letters and an end: 5 bytes, twice, and 256 for each with its line and place."""
    path = put(tmp_path, "items.txt", "".join(f"{at:04}\n" for at in range(1000)))
    needed = 1000 * (2 * 5 + 256)
    assert len(read_item_list(path, needed).lines) == 1000
    with pytest.raises(SizeProblem, match="raise the limit"):
        read_item_list(path, needed - 1)


@pytest.mark.parametrize("separator", [5, b",", "é", "ab", "", '"', "\n", "\0", "\x1f"])
def test_what_can_separate_fields(separator: Any, tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", CSV)
    with pytest.raises(SettingError, match="separator must be"):
        read_ratings(path, ReadOptions(separator=separator))


@pytest.mark.parametrize(
    ("last", "says"),
    [
        ("9,a\0,3\n", "NUL bytes"),
        ("9,a\x1f,3\n", "control characters"),
        ("9,a\rb,3\n", "ordinary line ends"),
        (f"9,{'a' * 1_100_000},3\n", "is longer"),
    ],
)
@pytest.mark.parametrize("n_pieces", [0, 1, 2])
def test_lines_are_counted_over_all_pieces(last: str, says: str, n_pieces: int, tmp_path: Path) -> None:
    """What is wrong on the last line is told with its number, however many pieces were read before it."""
    row = f"7,{'x' * 50_000},3\n"
    n_rows = n_pieces * (CHUNK // len(row) + 1)
    path = put(tmp_path, "a.csv", "userId,movieId,rating\n" + row * n_rows + last)
    with pytest.raises(FileProblem, match=says) as told:
        read_ratings(path)
    assert f"line {n_rows + 2} is" in str(told.value)


def test_a_comma_is_spoken_of_only_where_there_is_one(tmp_path: Path) -> None:
    for rating in ("abc", "1,5x", "x1"):
        path = put(tmp_path, "a.tsv", f"userId\tmovieId\trating\n1\t2\t3\n1\t3\t{rating}\n")
        with pytest.raises(ValueProblem, match="row 2 is not") as told:
            read_ratings(path)
        assert "decimal" not in str(told.value)


def test_ids_that_lie_close_need_no_sorting_and_far_ones_do() -> None:
    dense, far = (pa.chunked_array([pa.array(ids)]) for ids in (range(1000), range(0, 10**9, 10**6)))
    assert _bytes_of_ids(dense) == 0
    assert _bytes_of_ids(far) > 8 * len(far)
    text = pa.chunked_array([pa.array(["a", "bb", "bb"]).dictionary_encode()])
    longer = pa.chunked_array([pa.array(["a" * 1000, "bb", "bb"]).dictionary_encode()])
    assert _bytes_of_ids(longer) - _bytes_of_ids(text) >= 999


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70])
def test_an_id_beyond_64_bits_in_json_is_refused(number: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(f'{{"user":{number},"item":2,"rating":3}}\n{{"user":1,"item":2,"rating":4}}\n')
    with pytest.raises(ValueProblem, match="user"):
        read_ratings(path)


@pytest.mark.parametrize("rating", ["9007199254740993", "1e-400", "1e400", "123456789012345678.5"])
def test_a_rating_of_json_that_a_float_would_change_is_refused(rating: str, tmp_path: Path) -> None:
    lines = f'{{"user":1,"item":2,"rating":3}}\n{{"user":2,"item":2,"rating":{rating}}}\n'
    with pytest.raises(ValueProblem, match="64-bit float holds, line 2 is not"):
        read_ratings(put(tmp_path, "a.jsonl", lines))


@pytest.mark.parametrize("between", ["", " ", ",\n", "\n\n,"])
def test_objects_of_json_that_are_not_on_a_line_each_are_refused(between: str, tmp_path: Path) -> None:
    lines = between.join(['{"user":1,"item":2,"rating":3}', '{"user":2,"item":2,"rating":4}'])
    with pytest.raises(FileProblem, match="one JSON object a line"):
        read_ratings(put(tmp_path, "a.jsonl", lines))
    split = '{"user":1,"item":2,"rating":3}\n{"user":2,\n"item":2,"rating":4}\n'
    with pytest.raises(FileProblem, match="one JSON object a line, line 2"):
        read_ratings(put(tmp_path, "b.jsonl", split))
