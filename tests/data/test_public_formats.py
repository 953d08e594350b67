"""The formats of public ratings, a few made-up lines of each: read at the first try, or refused with advice."""

from __future__ import annotations

import gzip
import io
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import goodfence as gf
from goodfence.data.frame import ReadOptions
from goodfence.data.load import read_reported
from goodfence.errors import ColumnProblem, DataError, FileProblem, GoodfenceWarning, ValueProblem

HEADED = "user_id,movie_id,rating\n7,10,4.5\n8,9,1\n7,9,3\n"
CELLS = {(7, 10): 4.5, (8, 9): 1.0, (7, 9): 3.0}
FORMATS: dict[str, tuple[str, str, dict[tuple[Any, Any], float]]] = {
    "MovieLens csv": (
        "ratings.csv",
        "userId,movieId,rating,timestamp\n7,10,4.5,964982703\n8,9,1.0,964981247\n7,9,3.0,964982224\n",
        CELLS,
    ),
    "MovieLens dat": ("ratings.dat", "7::10::4.5::978300760\n8::9::1::9\n7::9::3::9\n", CELLS),
    "MovieLens u.data": ("u.data", "7\t10\t4.5\t881250949\n8\t9\t1\t9\n7\t9\t3\t9\n", CELLS),
    "FilmTrust": ("ratings.txt", "7 10 4.5\n8 9 1\n7 9 3\n", CELLS),
    "FilmTrust, blanks at the ends": ("ratings.txt", " 7 10  4.5 \n8 9 1 \n7 9 3\n", CELLS),
    "Epinions": ("ratings_data.txt", "7 10 4.5\r\n8 9 1\r\n7 9 3\r\n", CELLS),
    "Book-Crossing": (
        "BX-Book-Ratings.csv",
        '"User-ID";"ISBN";"Book-Rating"\n"7";"034545104X";"5"\n"8";"0155061224";"1"\n',
        {(7, "034545104X"): 5.0, (8, "0155061224"): 1.0},
    ),
    "anime": ("rating.csv", "user_id,anime_id,rating\n7,10,4.5\n8,9,1\n7,9,3\n", CELLS),
    "Jester": ("jester_ratings.dat", "7\t\t10\t\t4.5\n8\t\t9\t\t1\n7\t\t9\t\t3\n", CELLS),
    "NCF": ("ml-1m.train.rating", "7\t10\t4.5\t978824330\n8\t9\t1\t9\n7\t9\t3\t9\n", CELLS),
    "Libimseti": ("ratings.dat", "7,10,4.5\n8,9,1\n7,9,3\n", CELLS),
    "HetRec": (
        "user_ratedmovies.dat",
        "userID\tmovieID\trating\tdate_day\n7\t10\t4.5\t29\n8\t9\t1\t2\n7\t9\t3\t1\n",
        CELLS,
    ),
    "Yahoo": ("ydata-train.txt", "7\t10\t4.5\n8\t9\t1\n7\t9\t3\n", CELLS),
    "Netflix": ("combined_data_1.txt", "10:\n7,4.5,2005-09-06\n9:\n8,1,2005-05-13\n7,3,2005-10-19\n", CELLS),
    "RecBole": (
        "ml.inter",
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\n7\t10\t4.5\t9\n8\t9\t1\t9\n7\t9\t3\t9\n",
        CELLS,
    ),
    "Goodreads": (
        "goodreads_interactions.csv",
        "user_id,book_id,is_read,rating,is_reviewed\n7,10,1,4.5,0\n8,9,1,1,0\n7,9,1,3,1\n",
        CELLS,
    ),
    "Amazon JSON": (
        "reviews_Books_5.json",
        """{"reviewerID": "A7", "asin": "B10", "helpful": [0, 0], "reviewText": "so, \\"so\\"", "overall": 4.5}
{"reviewerID": "A8", "asin": "B9", "overall": 1}
""",
        {("A7", "B10"): 4.5, ("A8", "B9"): 1.0},
    ),
    "Yelp": (
        "review.jsonl",
        """{"review_id":"x","user_id":"u7","business_id":"b10","stars":4.0}
{"review_id":"y","user_id":"u8","business_id":"b9","stars":1.0}
""",
        {("u7", "b10"): 4.0, ("u8", "b9"): 1.0},
    ),
    "integers in JSON": (
        "a.ndjson",
        '{"user": 7, "item": 10, "rating": 4.5}\n{"user": 8, "item": 9, "rating": 1}\n',
        {(7, 10): 4.5, (8, 9): 1.0},
    ),
    "a column called Feedback": ("a.csv", HEADED.replace("rating", "Feedback"), CELLS),
    "a column called score": ("a.csv", HEADED.replace("rating", "score"), CELLS),
    "a title beside the id": ("a.csv", "user,movie_id,title,rating\n7,10,Heat,4.5\n8,9,Alien,1\n7,9,Alien,3\n", CELLS),
    "spreadsheet in a country of semicolons": ("a.csv", HEADED.replace(",", ";"), CELLS),
    "bars": ("a.txt", HEADED.replace(",", "|"), CELLS),
    "tabs in a csv": ("a.csv", HEADED.replace(",", "\t"), CELLS),
    "an ending of its own": ("ratings.export2024", HEADED, CELLS),
    "an index before the columns": ("a.csv", ",user_id,movie_id,rating\n0,7,10,4.5\n1,8,9,1\n2,7,9,3\n", CELLS),
}


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def cells(ratings: gf.Ratings) -> dict[tuple[Any, Any], float]:
    found = ratings.csr.tocoo()
    users, items = ratings.users.tolist(), ratings.items.tolist()
    triplets = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    return {(users[row], items[column]): value for row, column, value in triplets}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_public_format_is_read_at_the_first_try(name: str, packed: str, tmp_path: Path) -> None:
    file, text, expected = FORMATS[name]
    assert cells(gf.load(put(tmp_path, file + packed, text))) == expected


def test_amazon_s_csv_has_no_header_line_and_says_what_was_taken_for_what(tmp_path: Path) -> None:
    text = "A7,B10,4.5,1400457600\nA8,B9,1.0,1400457601\n"
    with pytest.warns(GoodfenceWarning, match="user in column 1, item in column 2"):
        ratings = gf.load(put(tmp_path, "ratings_Books.csv", text))
    assert cells(ratings) == {("A7", "B10"): 4.5, ("A8", "B9"): 1.0}
    stated = gf.load(tmp_path / "ratings_Books.csv", user="2", item="1", rating="3")
    assert stated.users.tolist() == ["B10", "B9"]


def test_sections_across_chunks_and_rows(tmp_path: Path) -> None:
    """The Netflix layout with a section that is longer than a chunk, and several in one chunk."""
    from goodfence.data.text import CHUNK

    n = CHUNK // 15
    long = "".join(f"{user},{1 + user % 5},2005-09-06\n" for user in range(1, n))
    ratings = gf.load(put(tmp_path, "combined_data_1.txt", f"1:\n2:\n{long}17:\n5,3,2005-01-01\n"))
    assert ratings.shape == (n - 1, 2)
    assert ratings.items.tolist() == [2, 17]
    assert ratings.csr[ratings.rows([5])[0], 1] == 3
    assert ratings.csr[ratings.rows([9])[0], 0] == 5


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("movie-ratings.txt", "1,1,17,1,5,2013-12-17\n1,2,3,4,5,6\n", "give the positions of user, item and rating"),
        ("user_artists.dat", "userID\tartistID\tweight\n2\t51\t13883\n", r"'weight' sounds like a count.*--rating"),
        ("wide.csv", "74,-7.82,8.79,99,99\n100,4.08,-0.29,6.36,4.37\n", "give the positions"),
        ("ratings.csv", "user,item,rating\n1,2,1.000\n1,3,2,000\n", "must have 3 fields"),
        ("ratings.csv", 'user;item;rating\n1;2;1,000\n1;3;2,5\n', r"decimal=,"),
        ("old.json", "{'user': 1}\n", "one JSON object a line, line 1"),
    ],
)  # fmt: skip
def test_what_is_not_read_gets_the_setting_that_helps(file: str, text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=says):
        gf.load(put(tmp_path, file, text))


@pytest.mark.parametrize("member", ["user", "item"])
def test_half_a_character_is_no_id(member: str, tmp_path: Path) -> None:
    """JSON spells characters beyond 16 bits in two halves; one of them alone is no text."""
    whole = {"user": '"\\ud83d\\ude00"', "item": '"b"', "rating": "3"}
    lines = ["{" + ", ".join(f'"{name}": {value}' for name, value in whole.items()) + "}"]
    half = {**whole, member: '"a\\ud83d"', "rating": "4"}
    lines.append("{" + ", ".join(f'"{name}": {value}' for name, value in half.items()) + "}")
    assert cells(gf.load(put(tmp_path, "a.json", lines[0] + "\n"), scale=(1, 5))) == {("😀", "b"): 3.0}
    with pytest.raises(DataError, match=rf"'{member}'\) must be an integer or text, line 2 is not"):
        gf.load(put(tmp_path, "b.json", "\n".join(lines) + "\n"))


def test_a_position_reads_ciao_and_a_name_reads_last_fm(tmp_path: Path) -> None:
    ciao = put(tmp_path, "movie-ratings.txt", "1,1,17,1,5,2013-12-17\n2,1,17,9,3,2013-12-18\n")
    assert cells(gf.load(ciao, user="1", item="2", rating="5")) == {(1, 1): 5.0, (2, 1): 3.0}
    plays = put(tmp_path, "a.dat", "userID\tartistID\tweight\n2\t51\t13883\n2\t52\t11690\n")
    assert gf.load(plays, rating="weight").n_ratings == 2


def test_latin_1(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user,title,rating\n1,Amélie,5\n2,Amélie,3\n".encode("latin-1"))
    with pytest.raises(FileProblem, match=r"must be UTF-8 text, line 2 is not; .*encoding=latin-1"):
        gf.load(path)
    assert gf.load(path, read=ReadOptions(encoding="latin-1")).items.tolist() == ["Amélie"]
    with pytest.raises(gf.SettingError, match="encoding must be one of utf-8, latin-1"):
        gf.load(path, read=ReadOptions(encoding="rot13"))
    with pytest.raises(FileProblem, match="is not utf-16 text"):
        gf.load(path, read=ReadOptions(encoding="utf-16"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "cp1252"])
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user,title,rating\n1,Amélie,5\n2,Amélie,3\n".encode(encoding))
    assert gf.load(path, read=ReadOptions(encoding=encoding)).items.tolist() == ["Amélie"]


def test_a_decimal_comma(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user;item;rating\n1;2;4,5\n1;3;2\n2;3;0,25\n")
    with pytest.warns(GoodfenceWarning, match="written with a decimal comma, and was read so"):
        found = gf.load(path)
    assert cells(found) == {(1, 2): 4.5, (1, 3): 2.0, (2, 3): 0.25}
    assert cells(gf.load(path, read=ReadOptions(decimal=","))) == cells(found)
    with pytest.raises(ValueProblem, match="must be a number, row 1 is not"):
        gf.load(path, read=ReadOptions(decimal="."))
    with pytest.raises(gf.SettingError, match=r"decimal must be '\.' or ',', got ';'"):
        gf.load(path, read=ReadOptions(decimal=";"))
    thousands = put(tmp_path, "b.csv", "user;item;rating\n1;2;1,250\n1;3;2,125\n")
    with pytest.raises(ValueProblem, match="if it has a decimal comma, say so"):
        gf.load(thousands)
    assert cells(gf.load(thousands, read=ReadOptions(decimal=","))) == {(1, 2): 1.25, (1, 3): 2.125}
    with pytest.raises(ValueProblem, match="row 1 is not"):
        gf.load(put(tmp_path, "c.csv", "user;item;rating\n1;2;1.5\n1;3;2,5\n"), read=ReadOptions(decimal=","))


def test_what_stands_for_not_rated_is_left_out_on_request(tmp_path: Path) -> None:
    text = "user_id,anime_id,rating\n" + "".join(f"{n},1,{n % 10 + 1}\n" for n in range(50)) + "99,1,-1\n"
    path = put(tmp_path, "rating.csv", text)
    with pytest.warns(GoodfenceWarning, match=r"-1 \(2 of 100 ratings\) may mean .not rated.*unrated=-1"):
        assert gf.load(path).n_ratings == 51
    with pytest.warns(GoodfenceWarning, match=r"1 rows say that there is no rating \(unrated="):
        assert gf.load(path, read=ReadOptions(unrated=-1)).n_ratings == 50
    with pytest.warns(GoodfenceWarning, match="6 rows"):
        assert gf.load(path, read=ReadOptions(unrated=[-1, 3])).n_ratings == 45
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gf.load(path, scale=(-1, 10)).n_ratings == 51
    with pytest.raises(gf.SettingError, match="unrated must be a number or a sequence or None, got 'none'"):
        gf.load(path, read=ReadOptions(unrated="none"))  # type: ignore[arg-type]


BLANKS = {
    "a.csv": 'user,item,rating\n1,2,4\n1,3,\n2,2," "\n2,3,NaN\n2,4,1\n3,4,-1\n',
    "a.jsonl": "".join(
        f'{{"user": {user}, "item": {item}{rating}}}\n'
        for user, item, rating in (
            (1, 2, ', "rating": 4'),
            (1, 3, ', "rating": null'),
            (2, 2, ""),
            (2, 3, ', "rating": null'),
            (2, 4, ', "rating": 1'),
            (3, 4, ', "rating": -1'),
        )
    ),
}


@pytest.mark.parametrize("name", [*BLANKS, "a.parquet"])
def test_rows_without_a_rating_are_left_out_on_request(tmp_path: Path, name: str) -> None:
    if name in BLANKS:
        path = put(tmp_path, name, BLANKS[name])
    else:
        path = tmp_path / name
        given = pa.array([4.0, None, float("nan"), None, 1.0, -1.0])
        pq.write_table(pa.table({"user": [1, 1, 2, 2, 2, 3], "item": [2, 3, 2, 3, 4, 4], "rating": given}), path)
    with pytest.raises(ValueProblem, match=r"rating .* must not be missing, row [23] is"):
        gf.load(path)
    with pytest.warns(GoodfenceWarning, match="^3 rows say that there is no rating") as told:
        assert cells(gf.load(path, read="unrated=missing")) == {(1, 2): 4, (2, 4): 1, (3, 4): -1}
    assert len(told) == 1
    with pytest.warns(GoodfenceWarning, match="^4 rows"):
        assert cells(gf.load(path, read="unrated=-1,missing")) == {(1, 2): 4, (2, 4): 1}


def test_a_missing_rating_is_told_with_what_to_do(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user,item,rating\n1,2,4\n1,3,\n")
    with pytest.raises(ValueProblem, match=r"row 2 is; leave such rows out with read='unrated=missing' \(--read\)$"):
        gf.load(path)
    nothing = put(tmp_path, "b.csv", "user,item,rating\n1,2,\n1,3,nan\n")
    with pytest.raises(DataError, match="must hold a rating, and every row says that there is none"):
        gf.load(nothing, read="unrated=missing")
    words = put(tmp_path, "c.csv", "user,item,rating\n1,2,4\n1,3,none\n")
    with pytest.raises(ValueProblem, match="must be a number, row 2 is not"):
        gf.load(words, read="unrated=missing")


@pytest.mark.parametrize("content", [HEADED.encode(), gzip.compress(HEADED.encode())], ids=["plain", "gz"])
def test_standard_input(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))
    assert cells(gf.load("-")) == CELLS


def test_standard_input_has_the_limit_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(HEADED.encode())))
    with pytest.raises(DataError, match="'standard input' must be at most 10 bytes"):
        gf.load("-", read=ReadOptions(max_bytes=10))


@pytest.mark.parametrize("rows", [2, 3, 1000])
def test_clicks_are_no_ratings(rows: int, tmp_path: Path) -> None:
    text = "user,item,rating\n" + "".join(f"{n},{n},1\n" for n in range(rows))
    path = put(tmp_path, "clicks.csv", text)
    with pytest.raises(ValueProblem, match=r"is the same in all .*: these look like clicks.*--scale"):
        gf.load(path)
    assert gf.load(path, scale=(1, 5)).n_ratings == rows


def test_times_are_no_ratings_even_if_there_are_few(tmp_path: Path) -> None:
    text = "1,2,881250949,4\n2,2,881250950,5\n3,2,881250949,4\n"
    with pytest.raises(ColumnProblem, match="must look like ratings, and holds integers that are ids or times"):
        gf.load(put(tmp_path, "a.csv", text))
    assert gf.load(tmp_path / "a.csv", user="1", item="2", rating="4").n_ratings == 3


@pytest.mark.parametrize(
    "written", ["9007199254740993", "1e-400", "-1E-999", "123456789012345678901", "1e-9999999999999999999"]
)
@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_a_rating_that_a_float_would_change_is_refused(name: str, written: str, tmp_path: Path) -> None:
    text = f"user,item,rating\n1,2,3\n1,3,{written}\n"
    if name == "a.json":
        text = f'{{"user":1,"item":2,"rating":3}}\n{{"user":1,"item":3,"rating":{written}}}\n'
    with pytest.raises(ValueProblem, match="must be a number"):
        gf.load(put(tmp_path, name, text))


@pytest.mark.parametrize("number", ["9007199254740992", "0.0", "1e-300", "0.1000000000000000055", "5e-324"])
def test_a_rating_that_a_float_holds_is_read(number: str, tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", f"user,item,rating\n1,2,3\n1,3,{number}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)
        assert cells(gf.load(path))[1, 3] == float(number)


@pytest.mark.parametrize("line", ['1,"a"b,3', '1, "a",3', '1,"a""b"c,3', '"1"0,a,3', '1,a,"3"4', '1,"a" ,3'])
def test_a_field_is_quoted_as_a_whole_or_not_at_all(line: str, tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", f"user,item,rating\n7,b,4\n\n{line}\n")
    with pytest.raises(FileProblem, match="must quote a whole field or nothing of it, line 4 does not"):
        gf.load(path)


@pytest.mark.parametrize(("line", "item"), [('"1","a, ""b"", c",3', 'a, "b", c'), ('1,5" disk,3', '5" disk')])
def test_marks_inside_fields(line: str, item: str, tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", f"user,item,rating\n7,b,4\n{line}\n")
    assert cells(gf.load(path))[1, item] == 3


def test_no_id_in_an_error_about_a_name_that_a_headless_file_has_not(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user7,film9,4\nuser8,film9,3\n")
    with pytest.raises(ColumnProblem) as caught:
        gf.load(path, user="user")
    assert "user7" not in str(caught.value)
    with pytest.raises(ColumnProblem) as caught:
        gf.load(put(tmp_path, "b.csv", "user7,film9,good\nuser8,film9,bad\n"), user="user")
    assert "user7" not in str(caught.value)


def test_a_named_data_set_states_its_own_settings() -> None:
    for setting, value in {"separator": ",", "decimal": ",", "encoding": "utf-8", "unrated": 0}.items():
        with pytest.raises(gf.SettingError, match=f"{setting} must be left out for a named data set"):
            gf.load("movietweetings", read=ReadOptions(**{setting: value}))  # type: ignore[arg-type]


def test_a_report_says_which_columns_were_read(tmp_path: Path) -> None:
    file, text, _ = FORMATS["Netflix"]
    assert read_reported(put(tmp_path, file, text)).columns.chosen == ("1", "4", "2")


def test_the_rarer_options_can_be_written_in_a_line(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user;item;rating\n1;2;1,5\n1;3;99\n".encode("latin-1"))
    with pytest.warns(GoodfenceWarning, match="left out"):
        found = gf.load(path, read="encoding=latin-1 decimal=, separator=; unrated=99")
    assert found.n_ratings == 1
    assert ReadOptions.parse("separator=tab max-bytes=100") == ReadOptions(separator="\t", max_bytes=100)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("encodng=x", "did you mean 'encoding'"),
        ("encoding", "NAME=VALUE"),
        ("decimal=. decimal=,", "given once"),
        ("unrated=none", "unrated must be a number or missing, got 'none'"),
        ("encoding='x", "quotation mark"),
        ("max_bytes=0", "max_bytes must be"),
    ],
)
def test_options_in_a_line_that_are_none(text: str, said: str) -> None:
    with pytest.raises(gf.SettingError, match=said):
        ReadOptions.parse(text)
