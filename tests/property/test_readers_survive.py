"""Whatever is done to a file's bytes, it is read or refused: no other error, and no id in the message."""

from __future__ import annotations

import gzip
import tempfile
import warnings
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

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
PIECES = [b"", b"\0", b"\xff", b'"', b",", b"\t", b"::", b"\n", b"\r", b"\x1f", b"nan", b"1e999", b" "]
CHANGE = st.tuples(st.floats(0, 1), st.integers(0, 8), st.sampled_from(PIECES) | st.binary(max_size=4))


def outcome(path: Path) -> str:
    """Return what is said about the file: the ratings' own words, or why they were refused."""
    try:
        return repr(read_ratings(path).shape)
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
