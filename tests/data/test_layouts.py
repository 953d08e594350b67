"""Tables of users x items, lines of items, rows of one kind of event, and archives of one file."""

from __future__ import annotations

import gzip
import io
import stat
import sys
import types
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import goodfence as gf
from goodfence.data.frame import ReadOptions
from goodfence.errors import ColumnProblem, DataError, DuplicateProblem, FileProblem, GoodfenceWarning, ValueProblem

Cells = dict[tuple[Any, Any], float]
JESTER = "2,-7.82,99,8.79\n1,99,99,-0.29\n3,4.08,-0.29,6.36\n"
JOKES: Cells = {(1, 1): -7.82, (1, 3): 8.79, (2, 3): -0.29, (3, 1): 4.08, (3, 2): -0.29, (3, 3): 6.36}
SMALL: Cells = {("ann", 10): 5.0, ("ann", 30): 3.0, ("bob", 20): 1.0}


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def cells(ratings: gf.Ratings) -> Cells:
    found = ratings.csr.tocoo()
    users, items = ratings.users.tolist(), ratings.items.tolist()
    triplets = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    return {(users[row], items[column]): value for row, column, value in triplets}


@pytest.mark.parametrize(
    ("name", "text", "how"),
    [
        ("a.csv", "user,10,20,30\nann,5,,3\nbob,,1,\n", {}),
        ("a.csv.gz", "user,10,20,30\r\nann,5,,3\r\n\r\nbob,NaN,1, \r\n", {}),
        ("a.csv", ",10,20,30\nann,5,,3\nbob,,1,\n", {"user": "1"}),
        ("a.tsv", "Kunde\t10\t20\t30\nann\t5\t\t3\nbob\t\t1\tnan\n", {}),
        ("a.csv", 'name,"10","20",30\n"ann",5,,3\nbob,,"1",\n', {"user": "name"}),
        ("a.csv", "10,20,30,who\n5,,3,ann\n,1,,bob\n", {"user": "who", "item": "1-3"}),
        ("a.csv", "user,10,20,30\nann,5,99,3\nbob,99,1,99\n", {"unrated": 99}),
        ("a.csv", "user,age,10,20,30\nann,41,5,,3\nbob,23,,1,\n", {"item": "3-"}),
    ],
)
def test_a_row_for_each_user_and_a_column_for_each_item(name: str, text: str, how: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)  # counts what was left out
        assert cells(gf.load(put(tmp_path, name, text), read=ReadOptions(layout="wide", **how))) == SMALL


def test_jester_has_no_header_and_no_user(tmp_path: Path) -> None:
    path = put(tmp_path, "jester-data-1.csv", JESTER)
    with pytest.warns(GoodfenceWarning, match=r"3 rows say that there is no rating \(unrated=\)"):
        found = gf.load(path, item="2-", scale=(-10, 10, 0.01), read="layout=wide unrated=99")
    assert cells(found) == JOKES
    by_position = put(tmp_path, "a.csv", "ann,5,,3\nbob,,1,\n")
    assert cells(gf.load(by_position, user="1", read="layout=wide")) == {("ann", 1): 5, ("ann", 3): 3, ("bob", 2): 1}
    blank = gf.load(put(tmp_path, "c.csv", ",5\n4,\n"), item="1-", read="layout=wide")
    assert cells(blank) == {(1, 2): 5, (2, 1): 4}
    ones = gf.load(put(tmp_path, "e.csv", "user,1,2\nann,5,3\n"), user="1", read="layout=wide")
    assert cells(ones) == {("ann", 1): 5, ("ann", 2): 3}
    named = gf.load(put(tmp_path, "d.csv", ",x,y\nann,5,3\n"), read="layout=wide")
    assert cells(named) == {("ann", "x"): 5, ("ann", "y"): 3}
    liked = gf.load(put(tmp_path, "b.csv", "user,x,y\n7,1,0\n8,1,1\n"), likes=1, read="layout=wide")
    assert cells(liked) == {(7, "x"): 1, (8, "x"): 1, (8, "y"): 1}


def test_a_large_table_across_batches(tmp_path: Path) -> None:
    n_users, n_items = 30_000, 90
    rows = [",".join(str((user + item) % 5 + 1) for item in range(n_items)) for user in range(n_users)]
    found = gf.load(put(tmp_path, "a.csv", "\n".join(rows)), scale=(1, 5), read="layout=wide")
    assert found.shape == (n_users, n_items)
    assert found.csr[29_999, 89] == (29_999 + 89) % 5 + 1
    assert found.csr.sum() == sum((user + item) % 5 + 1 for user in range(n_users) for item in range(n_items))


@pytest.mark.parametrize(
    ("text", "how", "says"),
    [
        ("ann,5,,3\nbob,,1,\n", {}, "must say which column has the users"),
        (",5,3\n4,,1\n", {}, "must say which column has the users"),
        ("user,10,20\nann,5\n", {}, "must have 3 fields in each row"),
        ("user,10,20\nann,5,x\n", {}, r"rating \(layout=wide, counted cell by cell\) must be a number, row 2 is not"),
        ("user,10,20\n,5,4\n", {}, "user .* must not be missing, row 1 is"),
        ("user,10,20\nann,5,4\nann,3,4\n", {}, "a user must rate an item once, row 3 repeats row 1"),
        ("user,10,10\nann,5,4\n", {}, "a user must rate an item once"),
        ("user,10,20\n", {}, "has a header line only"),
        ("user,10,20\nann,,\n", {}, "must hold ratings or items, and every field is empty"),
        ("user,10,20\nann,5,4\n", {"item": "2-9"}, "within 1 to 3"),
        ("user,10,20\nann,5,4\n", {"item": "x"}, "must be the positions of the items"),
        ("user,10,20\nann,5,4\n", {"item": "1-2"}, "different columns"),
        ("user,10,20\nann,5,4\n", {"user": "9"}, "or a position from 1 to 3"),
        ("user,10,20\nann,5,4\n", {"user": "2"}, "must name the positions of the items"),
        ("user,10,20\nann,5,4\n", {"user": "who"}, "must be the name of a column of the table"),
        ('user,10,20\nann,"5,4\nbob,1,"2\n', {}, "must have 3 fields in each row"),
    ],
)
def test_what_is_no_table_is_refused_without_an_id(text: str, how: Any, says: str, tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", text)
    with pytest.raises(DataError, match=says) as caught:
        gf.load(path, read=ReadOptions(layout="wide", **how))
    assert "ann" not in str(caught.value)


BOUGHT: Cells = {("ann", "milk"): 1, ("ann", "rye bread"): 1, ("bob", "milk"): 1}


@pytest.mark.parametrize(
    ("name", "text", "layout"),
    [
        ("a.csv", "ann,milk,rye bread\nbob,milk\n", "lists"),
        ("a.csv", "user,items\nann, milk , rye bread,milk\nbob,milk,,\ncarl\n", "lists"),
        ("a.csv", 'ann,milk,"rye bread"\r\n\r\nbob,"milk"\r\n', "lists"),
        ("a.txt.gz", "ann\tmilk\trye bread\nbob\tmilk\n", "lists separator=tab"),
        ("a.dat", "ann::milk::rye bread\nbob::milk\n", "lists"),
    ],
)
def test_a_line_of_items_for_each_user(name: str, text: str, layout: str, tmp_path: Path) -> None:
    found = gf.load(put(tmp_path, name, text), feedback="implicit", read=f"layout={layout}")
    assert cells(found) == BOUGHT


def test_lines_of_numbers_and_baskets(tmp_path: Path) -> None:
    lightgcn = put(tmp_path, "train.txt", "0 10 11 12\n1 10 \n2\n")
    found = gf.load(lightgcn, feedback="implicit", read="layout=lists")
    assert cells(found) == {(0, 10): 1, (0, 11): 1, (0, 12): 1, (1, 10): 1}
    baskets = gf.load(lightgcn, feedback="implicit", read="layout=baskets")
    assert set(cells(baskets)) == {(1, 0), (1, 10), (1, 11), (1, 12), (2, 1), (2, 10), (3, 2)}
    counted = gf.load(
        put(tmp_path, "b.csv", "a,x,x,y\n"), feedback="implicit", read="layout=lists duplicates=count separator=,"
    )
    assert cells(counted) == {("a", "x"): 2, ("a", "y"): 1}
    n = 100_000
    many = put(tmp_path, "c.txt", "7 " + " ".join(map(str, range(n))) + "\n8 1\n")
    long = gf.load(many, feedback="implicit", read="layout=lists")
    assert long.shape == (2, n)


@pytest.mark.parametrize(
    ("text", "read", "says"),
    [
        ("1\t2 3 4\n2\t3 4\n", "layout=lists", "tabs or spaces both fit its first lines"),
        ("a,b;c\n", "layout=lists", "both fit"),
        ("ann\nbob\n", "layout=lists", "must hold ratings or items, and every field is empty"),
        ('ann,"milk\nbob,tea\n', "layout=lists", "must close each quoted field on the line where it opens, line 1"),
        ('ann,"milk"x\n', "layout=lists", "must quote a whole field"),
        ("ann,milk\n", "layout=lists separator=::", "must be separated by '::'"),
    ],
)
def test_what_is_no_list_is_refused_without_an_id(text: str, read: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=says) as caught:
        gf.load(put(tmp_path, "a.txt", text), feedback="implicit", read=read)
    assert "ann" not in str(caught.value)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"read": "layout=wide", "feedback": "implicit"}, "layout=wide holds ratings; add likes="),
        ({"read": "layout=lists"}, "layout=lists holds events; add --feedback implicit"),
        ({"read": "layout=wide time=x"}, "time must be left out for layout=wide"),
        ({"read": "layout=lists where=a=b", "feedback": "implicit"}, "where must be left out"),
        ({"read": "layout=lists", "feedback": "implicit", "user": "1"}, "user must be left out for layout=lists"),
        ({"read": "layout=tall"}, "layout must be one of wide, lists, baskets"),
        ({"read": "where=view"}, "where must be COLUMN=VALUE, as in event_type=view"),
        ({"read": "where=view="}, "where must be COLUMN=VALUE"),
    ],
)
def test_settings_that_do_not_go_together(how: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(gf.SettingError, match=says):
        gf.load(put(tmp_path, "a.csv", "ann,milk,tea\n"), **how)


def test_layouts_are_for_text(tmp_path: Path) -> None:
    table = pa.table({"user": [1], "item": [2], "rating": [3.0]})
    parquet.write_table(table, tmp_path / "a.parquet")
    put(tmp_path, "a.jsonl", '{"user": 1, "item": 2, "rating": 3}\n')
    for name in ("a.parquet", "a.jsonl"):
        with pytest.raises(gf.SettingError, match="layout must be left out for parquet and JSON"):
            gf.load(tmp_path / name, read="layout=wide")
    with pytest.raises(gf.SettingError, match="layout must be left out for a data frame"):
        gf.Ratings.from_frame(table, read="layout=wide")


LOG = {
    "event_time": [
        "2019-10-01 00:00:00 UTC",
        "2019-10-01 00:00:01 UTC",
        "2019-10-01 00:00:02 UTC",
        "2019-10-01 00:00:03 UTC",
    ],
    "event_type": ["view", "cart", "view", "purchase"],
    "product_id": [10, 10, 11, 12],
    "user_id": [7, 7, 8, 8],
}


def log(name: str, folder: Path) -> Any:
    frame, path = pd.DataFrame(LOG), folder / name
    if name == "pandas":
        return frame
    if name.endswith(".csv"):
        frame.to_csv(path, index=False)
    elif name.endswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.astype({"event_type": "category"}).to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "pandas"])
def test_only_the_rows_of_one_kind_of_event(name: str, tmp_path: Path) -> None:
    given = log(name, tmp_path)
    read = gf.Ratings.from_frame if name == "pandas" else gf.load
    viewed: gf.Ratings = read(given, feedback="implicit", read="where=event_type=view")
    assert cells(viewed) == {(7, 10): 1, (8, 11): 1}
    assert viewed.times is not None
    assert viewed.times.tolist() == [1569888000, 1569888002]
    bought: gf.Ratings = read(given, feedback="implicit", read="where=event_type=cart,view duplicates=count")
    assert cells(bought) == {(7, 10): 2, (8, 11): 1}
    with pytest.raises(DataError, match="no row has the value that where asks for"):
        read(given, feedback="implicit", read="where=event_type=remove")
    with pytest.raises(ColumnProblem, match="where must name a column, and there is none called 'type'"):
        read(given, feedback="implicit", read="where=type=view")


def test_rows_that_are_left_out_may_hold_anything(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "user,item,rating,kind\n1,2,5,rating\n,2,x,view\n1,3,2,rating\n")
    assert cells(gf.load(path, read="where=kind=rating")) == {(1, 2): 5, (1, 3): 2}
    with pytest.raises(
        ValueProblem, match=r"rating \(column 'rating', in the rows of where=\) must be a number, row 2"
    ):
        gf.load(put(tmp_path, "b.csv", "user,item,rating,ok\n1,2,5,yes\n1,2,5,no\n1,3,x,yes\n"), read="where=ok=yes")
    numbers = put(tmp_path, "c.csv", "1,2,3\n1,4,0\n2,2,3\n")
    assert gf.load(numbers, feedback="implicit", read="where=3=3").n_ratings == 2
    flags = put(tmp_path, "a.jsonl", '{"user":1,"item":2,"new":true}\n{"user":1,"item":3,"new":false}\n')
    assert cells(gf.load(flags, feedback="implicit", read="where=new=true")) == {(1, 2): 1}


def archive(path: Path, members: dict[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return path


ROWS = b"user,item,rating\n1,2,3\n1,3,4\n"


@pytest.mark.parametrize(
    "name", ["a.csv", "folder/deep/a.csv", "../../a.csv", "/etc/passwd", "C:\\a.csv", "é\n\0.csv", "."]
)
def test_the_only_file_of_an_archive_is_read_and_its_name_leads_nowhere(name: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {name: ROWS, "folder/": b"", "__MACOSX/._a.csv": b"x"})
    assert cells(gf.load(path)) == {(1, 2): 3, (1, 3): 4}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.zip"]


def test_an_archive_may_hold_any_format_and_come_by_standard_input(tmp_path: Path, monkeypatch: Any) -> None:
    packed = archive(tmp_path / "b.zip", {"a.csv.gz": gzip.compress(ROWS)})
    assert gf.load(packed).n_ratings == 2
    table = io.BytesIO()
    parquet.write_table(pa.table({"user": [1, 2], "item": [2, 3], "rating": [3.0, 4.0]}), table)
    assert gf.load(archive(tmp_path / "c.zip", {"a.parquet": table.getvalue()})).n_ratings == 2
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(packed.read_bytes())))
    assert gf.load("-").n_ratings == 2


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("a.csv")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({}, "must hold one file, and holds 0"),
        ({"a.csv": ROWS, "b.csv": ROWS}, "must hold one file, and holds 2"),
        ({link(): b"/etc/passwd"}, "must hold plain files only"),
        ({"a.zip": ROWS}, "is an archive in another"),
        ({"a.csv": b"PK\x03\x04" + ROWS}, "is a zip archive or a spreadsheet"),
        ({"a.exe": b"MZ\0\0"}, "must be text without NUL bytes"),
        ({"a.csv": b""}, "'the file in a.csv' is empty"),
        ({"a.csv": b"user,item,rating\n" + b"1,1,1\n" * 200_000}, "must have at most 1,000,000 bytes when unpacked"),
    ],
)
def test_an_archive_is_no_way_in(members: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=says):
        gf.load(archive(tmp_path / "a.zip", members), read="max_bytes=1000000")


def test_a_damaged_or_lying_archive(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"a.csv": ROWS * 100})
    whole = path.read_bytes()
    for content in (whole[:-30], whole[:60] + bytes(20) + whole[80:], b"PK\x03\x04", b"user,item,rating\n1,2,3\n"):
        path.write_bytes(content)
        with pytest.raises(FileProblem, match="must be a whole zip archive, and is damaged or none"):
            gf.load(path)
    path.write_bytes(whole.replace(b"PK\x03\x04\x14\0\0\0", b"PK\x03\x04\x14\0\x01\0").replace(
        b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\x01\0"))  # fmt: skip
    with pytest.raises(FileProblem, match="must not be encrypted"):
        gf.load(path)
    small = (len(ROWS) * 100).to_bytes(4, "little")
    path.write_bytes(whole.replace(small, (7).to_bytes(4, "little")))
    with pytest.raises(DataError):
        gf.load(path)


def test_repeats_in_a_list_may_be_refused(tmp_path: Path) -> None:
    with pytest.raises(DuplicateProblem, match="an event must happen once"):
        gf.load(put(tmp_path, "a.txt", "1 2 2\n"), feedback="implicit", read="layout=lists duplicates=error")
