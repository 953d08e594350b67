"""Whatever is done to a file's bytes, it is read or refused: no other error, and no id in the message."""

from __future__ import annotations

import gzip
import io
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from goodfence.data.frame import ReadOptions
from goodfence.data.load import read_ratings
from goodfence.errors import DataError, GoodfenceWarning
from tests.support.bad_inputs import FORMATS, SECRETS, good_rows
from tests.support.bad_parquet import as_bytes, good_columns

TEXTS = {style.ending: "".join(style.lines(good_rows())).encode() for style in FORMATS.values()}
NAMED = {**good_columns(), "userId": pa.array(["ann", "bob", "carl", "dora", "Zoë"])}
FILES = {
    **{f"a{ending}": text for ending, text in TEXTS.items() if not ending.endswith(".gz")},
    "a.csv.gz": gzip.compress(TEXTS[".csv.gz"]),
    "a.parquet": as_bytes(pa.table(good_columns())),
    "b.parquet": as_bytes(pa.table(NAMED)),
}
with zipfile.ZipFile(packed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as opened:
    opened.writestr("a.csv", TEXTS[".csv"])
OPTIONS: dict[str, dict[str, Any]] = {
    "wide.csv": {"layout": "wide", "unrated": (99.0,)},
    "lists.csv": {"layout": "lists", "feedback": "implicit"},
    "baskets.txt": {"layout": "baskets", "feedback": "implicit"},
    "where.csv": {"where": "kind=seen,rated", "user": "wer"},
}
FILES |= {
    "a.zip": packed.getvalue(),
    "wide.csv": b"user,10,11,12\nann,5,99,3\nbob,,1,\nUndine Quark,2,2.5,\n",
    "lists.csv": b'ann,milk,"rye bread"\nUndine Quark,milk\n',
    "baskets.txt": b"1 2 3\n\n4 5\n",
    "where.csv": b"wer,was,wie,kind\nann,7,4,seen\nUndine Quark,8,x,lost\nbob,8,1,rated\n",
}
PIECES = [b"", b"\0", b"\xff", b'"', b",", b"\t", b"::", b"\n", b"\r", b"\x1f", b"nan", b"1e999", b" "]
CHANGE = st.tuples(st.floats(0, 1), st.integers(0, 8), st.sampled_from(PIECES) | st.binary(max_size=4))


def outcome(path: Path) -> str:
    """Return what is said about the file: the ratings' own words, or why they were refused."""
    try:
        return repr(read_ratings(path, ReadOptions(**OPTIONS.get(path.name, {}))).shape)
    except DataError as problem:
        return str(problem)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.lists(CHANGE, min_size=1, max_size=6))
def test_changed_bytes(name: str, changes: list[tuple[float, int, bytes]]) -> None:
    content = bytearray(FILES[name])
    for share, n_left_out, piece in changes:
        place = int(share * len(content))
        content[place : place + n_left_out] = piece
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodfenceWarning)
        path = Path(folder, name)
        path.write_bytes(content)
        told = outcome(path)
    assert not [secret for secret in SECRETS if secret in told]
