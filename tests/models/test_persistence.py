from __future__ import annotations

import errno
import io
import os
import re
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.errors import ModelFileError
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.persistence import decode_ids, manifest_text, read_model, unpack_model, write_model
from tests.support.model_files import as_npy, members, packed, put_together, taken_apart, zipped

RATINGS = gf.synthetic(users=60, items=40, ratings=900, rng=2)
MODELS = [
    gf.NeighbourCF(gf.KNN(k=4), axis="item", over="neighbours", fallback="item_mean", rng=None),
    gf.NeighbourCF(gf.NPNS(k=4, within=3), similarity="pearson", rng=[1, 2]),
    gf.NeighbourCF(gf.PNCF(k=4, epsilon=0.1, reading="truncated"), rng=3),
    gf.NeighbourCF(
        gf.PPNS(k=4, beta=3, epsilon=1e-3, allocation=(2, 1, 1), sensitivity=gf.Sensitivity(scope="pair")), rng=11
    ),
    gf.NeighbourCF(
        gf.NPNS(k=4),
        similarity=gf.Similarity(name="pearson_baseline", shrinkage=3.0, min_common=2),
        center="bias",
        among="raters",
        min_neighbours=2,
        rng=5,
    ),
    gf.NeighbourCF(gf.KNN(k=4), axis="item", similarity="msd", center="user_mean", fallback="bias"),
    gf.NeighbourCF.accurate(gf.NPNS(k=4), rng=8),
]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    gf.NeighbourCF(gf.PPNS(k=4, beta=3), rng=1).fit(RATINGS).save(tmp_path / "model.gf")
    return tmp_path / "model.gf"


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m.mechanism).__name__)
def test_settings_and_answers_survive_exactly(model: NeighbourCF, tmp_path: Path) -> None:
    model.fit(RATINGS).save(tmp_path / "model.gf")
    loaded = gf.load_model(tmp_path / "model.gf")
    assert isinstance(loaded, NeighbourCF)
    for name in (
        "mechanism",
        "axis",
        "similarity",
        "center",
        "among",
        "min_neighbours",
        "over",
        "fallback",
        "rng",
        "threads",
        "progress",
    ):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.ratings_.scale == RATINGS.scale
    users, items = np.repeat(RATINGS.users, 40), np.tile(RATINGS.items, 60)
    assert np.array_equal(loaded.predict(users, items), model.predict(users, items), equal_nan=True)
    profile = {RATINGS.items[0]: 4.0, RATINGS.items[3]: 2.0}
    expected = model.predict(profile, RATINGS.items)
    assert np.array_equal(loaded.predict(profile, RATINGS.items), expected, equal_nan=True)


def test_text_ids_and_titles_survive(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table({"user": ["Zoë", "a b", "007", "é"], "item": ["x", "x", "y", "y"], "rating": [1, 2, 3, 4]})
    ratings = gf.Ratings.from_frame(table, scale=(1, 5))
    gf.NeighbourCF(gf.KNN(k=1)).fit(ratings).save(tmp_path / "model.gf")
    loaded = gf.load_model(tmp_path / "model.gf")
    assert isinstance(loaded, NeighbourCF)
    assert loaded.ratings_.users.tolist() == ratings.users.tolist()


def test_a_class_loads_its_own_kind_only(saved: Path) -> None:
    assert gf.NeighbourCF.load(saved).mechanism == gf.PPNS(k=4, beta=3)
    with pytest.raises(ModelFileError, match="is a NeighbourCF, not a PrivateMeans"):
        gf.PrivateMeans.load(saved)


def test_a_model_is_one_stored_zip_and_nothing_in_it_is_pickled(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
        first, *rest = archive.infolist()
        assert first.filename == "manifest.json"
        assert all(member.filename.endswith(".npy") for member in rest)
        assert {member.compress_type for member in (first, *rest)} == {zipfile.ZIP_STORED}
    with np.load(saved, allow_pickle=False) as arrays:
        names = [name for name in arrays.files if name != "manifest.json"]
        assert all(arrays[name].dtype != object for name in names)


def test_the_same_model_is_saved_as_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    gf.load_model(saved).save(tmp_path / "again.gf")
    assert saved.read_bytes() == (tmp_path / "again.gf").read_bytes()


def test_saving_over_a_model_replaces_it_and_leaves_nothing_else(saved: Path) -> None:
    gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["model.gf"]
    loaded = gf.load_model(saved)
    assert isinstance(loaded, NeighbourCF)
    assert loaded.mechanism == gf.KNN(k=2)


def test_a_folder_that_is_no_model_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(ModelFileError, match="not a saved model"):
        gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"


def change(saved: Path, **changes: object) -> None:
    """Change what the manifest states: `settings__over` is its setting `over`; and all checksums, so that they fit."""
    manifest, arrays = taken_apart(saved)
    for path, value in changes.items():
        where: Any = manifest
        *parents, last = path.split("__")
        for parent in parents:
            where = where[int(parent) if parent.isdecimal() else parent]
        where[int(last) if last.isdecimal() else last] = value
    if any(path.startswith("arrays") for path in changes):
        saved.write_bytes(packed(manifest_text(manifest).encode(), arrays))
    else:
        put_together(saved, manifest, arrays, bind=isinstance(manifest["settings"], dict))


def change_arrays(saved: Path, **changes: Any) -> None:
    """Write other arrays, with the checksums and shapes that fit."""
    manifest, arrays = taken_apart(saved)
    put_together(saved, manifest, {**arrays, **changes})


def change_text(saved: Path, change: Callable[[bytes], bytes]) -> None:
    """Write another manifest, byte for byte."""
    text, arrays = unpack_model(saved.read_bytes())
    saved.write_bytes(packed(change(text), dict(arrays)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 99}, "newer format"),
        ({"format": "1"}, "newer format"),
        ({"format": True}, "newer format"),
        ({"format": 1}, "older format"),
        ({"kind": "Oracle"}, "kind"),
        ({"kind": ["NeighbourCF"]}, "kind"),
        ({"arrays__file": "../arrays.npz"}, "states"),
        ({"arrays__file": "/etc/passwd"}, "states"),
        ({"arrays__weights": {"file": "..\\arrays.npz"}}, "states"),
        ({"arrays__weights": 7}, "states"),
        ({"arrays__weights__shape": [60, 5]}, "states"),
        ({"arrays__weights__sha256": "0" * 64}, "states"),
        ({"arrays__weights__type": "<i8"}, "states"),
        ({"arrays": {}}, "states"),
        ({"arrays": 3}, "states"),
        ({"settings": 3}, "lacks a part"),
        ({"settings__mechanism": {"mechanism": "Magic", "k": 3}}, "mechanism"),
        ({"settings__mechanism": {"mechanism": "KNN", "k": 0}}, "mechanism"),
        ({"settings__mechanism": {"mechanism": "KNN", "k": 3}}, "shape"),
        ({"settings__over": "everything"}, "not sound"),
        ({"settings__surprise": 1}, "not sound"),
        ({"settings__key": -1}, "64-bit"),
        ({"settings__key": 1 << 64}, "64-bit"),
        ({"settings__key": 1e400}, "cannot be read"),
        ({"settings__ratings": {"shape": [3, 3]}}, "not sound"),
        ({"settings__ratings__shape": [60, 10**12]}, "not sound"),
        ({"settings__ratings__scale__declared": 1}, "not sound"),
        ({"settings__ratings__scale__lowest": "1"}, "not sound"),
    ],
)
def test_a_changed_manifest_is_refused(saved: Path, changes: dict[str, object], message: str) -> None:
    if 1e400 in changes.values():
        change_text(saved, lambda text: re.sub(rb'"key": \d+', b'"key": 1e400', text))
    else:
        change(saved, **changes)
    with pytest.raises(ModelFileError, match=message):
        gf.load_model(saved)


def test_a_manifest_whose_checksum_does_not_fit_is_refused(saved: Path) -> None:
    change_text(saved, lambda text: text.replace(b'"raters"', b'"neighbours"'))
    with pytest.raises(ModelFileError, match="was changed"):
        gf.load_model(saved)
    change(saved, settings__over="neighbours")
    assert gf.load_model(saved).over == "neighbours"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        b'{"format": 3,',
        b'{"format": 3, "format": 3}',
        b'{"format": NaN}',
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"format": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b" " * (2**20 + 1),
        b"[]",
        b"",
    ],
    ids=["cut", "twice", "NaN", "deep", "deeper", "digits", "bytes", "huge", "list", "empty"],
)
def test_a_manifest_that_is_none_is_refused(saved: Path, text: bytes) -> None:
    change_text(saved, lambda _: text)
    with pytest.raises(ModelFileError):
        gf.load_model(saved)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "unreadable", "loop", "lost"])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model.gf"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "unreadable":
        path.touch(mode=0)
    else:
        places = {"device": Path("/dev/zero"), "loop": path, "lost": tmp_path / "nowhere"}
        path.symlink_to(places[kind])
    with pytest.raises(ModelFileError):
        gf.load_model(path)
    with pytest.raises(ModelFileError, match="not a saved model"):
        gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(path)
    assert os.path.lexists(path)


def test_a_model_of_an_earlier_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.gf").mkdir()
    (tmp_path / "model.gf" / "manifest.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"goodfence 0\.2.*fit it again"):
        gf.load_model(tmp_path / "model.gf")
    with pytest.raises(ModelFileError, match="not a saved model"):
        gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(tmp_path / "model.gf")


@pytest.mark.parametrize(
    ("model", "argument"),
    [
        (gf.papers.Perturbed(gf.NeighbourCF(gf.KNN(k=2)), by=gf.papers.RandomisedResponse(epsilon=2.0)), "by"),
        (gf.papers.NoisyAnswers(gf.NeighbourCF(gf.KNN(k=2)), epsilon=2.0, questions=9), "epsilon"),
        (gf.papers.IndKNN(epsilon=2.0), "epsilon"),
    ],
)
def test_a_published_system_cannot_carry_a_smaller_epsilon_than_it_was_fitted_with(
    model: Any, argument: str, tmp_path: Path
) -> None:
    """With every checksum recomputed."""
    model.fit(RATINGS).save(tmp_path / "model.gf")
    kind, settings, arrays = read_model(tmp_path / "model.gf")
    assert gf.load_model(tmp_path / "model.gf").guarantee() == model.guarantee()
    if argument == "by":
        settings["arguments"]["by"]["epsilon"] = 0.5
    else:
        settings["arguments"]["epsilon"] = 0.5
    write_model(tmp_path / "model.gf", kind, settings, arrays)
    with pytest.raises(ModelFileError, match=r"another guarantee than its fit had|left of every user's budget"):
        gf.load_model(tmp_path / "model.gf")


def test_why_a_file_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "model.gf").symlink_to(tmp_path / "model.gf")
    with pytest.raises(ModelFileError, match=re.escape(os.strerror(errno.ELOOP))):
        gf.load_model(tmp_path / "model.gf")


def test_a_directory_of_64_bits_that_nothing_needs_is_refused(saved: Path) -> None:
    """A second directory, beside the one whose size was looked at: whoever reads it must not be led there."""
    whole = saved.read_bytes()
    assert set(unpack_model(whole)[1]) == {*rows_of(saved), "settings_sha256"}
    _, *_, count, size, offset, _ = struct.unpack("<4s4H2LH", whole[-22:])
    wide = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, offset)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(whole) - 22, 1)
    crafted = whole[:-22] + wide + locator + whole[-22:]
    with zipfile.ZipFile(io.BytesIO(crafted)) as archive:
        assert len(archive.infolist()) == count, "a zip file that others read"
    with pytest.raises(ValueError, match=r"^$"):
        unpack_model(crafted)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused(saved: Path, share: float) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ModelFileError, match="truncated"):
        gf.load_model(saved)
    with pytest.raises(ModelFileError, match="no saved model"):
        gf.load_model(saved.parent / "nowhere")


def test_a_missing_member_is_refused(saved: Path) -> None:
    for name in members(saved):
        path = saved.with_name("less.gf")
        path.write_bytes(zipped({one: it for one, it in members(saved).items() if one != name}))
        with pytest.raises(ModelFileError):
            gf.load_model(path)
    saved.write_bytes(zipped(members(saved)))
    gf.load_model(saved)


def bad_crc(whole: bytes) -> bytes:
    """Another crc of the last member, in its header and in the directory."""
    crc = whole[whole.rindex(b"PK\x03\x04") + 14 :][:4]
    assert whole.count(crc) == 2
    return whole.replace(crc, bytes(4))


def twice(whole: bytes) -> bytes:
    """Two members of one name, which readers take for one or the other."""
    file = io.BytesIO(whole)
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(zipfile.ZipInfo("weights.npy"), archive.read("weights.npy"))
    return file.getvalue()


def more(name: str, content: bytes = b"") -> Callable[[bytes], bytes]:
    """A further member."""

    def added(whole: bytes) -> bytes:
        file = io.BytesIO(whole)
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(zipfile.ZipInfo(name), content)
        return file.getvalue()

    return added


def other_name_inside(whole: bytes) -> bytes:
    """A header that names another member than the directory does."""
    return whole.replace(b"weights.npy", b"weighty.npy", 1)


def hidden(whole: bytes) -> bytes:
    """Bytes between the last member and the directory."""
    offset = struct.unpack("<L", whole[-6:-2])[0]
    end = whole[-22:-6] + struct.pack("<LH", offset + 9, 0)
    return whole[:offset] + b"smuggled!" + whole[offset:-22] + end


def moved_last(whole: bytes) -> bytes:
    """The manifest behind the arrays."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return zipped({**{name: parts[name] for name in [*parts][1:]}, **parts})


def deflated(whole: bytes) -> bytes:
    """As a bomb would be."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return zipped(parts, zipfile.ZIP_DEFLATED)


@pytest.mark.parametrize(
    "craft",
    [
        bad_crc,
        twice,
        more("more.npy", as_npy(np.zeros(2))),
        more("../weights.npy", as_npy(np.zeros(2))),
        more("notes.txt"),
        more("manifest.json.npy"),
        other_name_inside,
        hidden,
        moved_last,
        deflated,
        lambda whole: b"#!/bin/sh\n" + whole,
        lambda whole: whole[:-2] + b"\x03\x00abc",
        lambda whole: whole + b"x",
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_that_goodfence_did_not_write_is_refused(saved: Path, craft: Callable[[bytes], bytes]) -> None:
    crafted = craft(saved.read_bytes())
    assert crafted != saved.read_bytes()
    saved.write_bytes(crafted)
    with pytest.raises(ModelFileError) as refused:
        gf.load_model(saved)
    assert str(refused.value).count(". ") == 0


def rows_of(saved: Path) -> dict[str, Any]:
    return {name: array.copy() for name, array in read_model(saved)[2].items()}


BAD_ARRAYS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "last start is 0": lambda a: {"indptr": np.r_[a["indptr"][:-1], 0].astype(np.int32)},
    "starts fall": lambda a: {"indptr": a["indptr"][::-1].copy()},
    "starts beyond the end": lambda a: {"indptr": a["indptr"] + 1},
    "too few starts": lambda a: {"indptr": a["indptr"][1:]},
    "starts are fractions": lambda a: {"indptr": a["indptr"].astype(np.float64)},
    "a column beyond the items": lambda a: {"indices": a["indices"] + 40},
    "a column below 0": lambda a: {"indices": a["indices"] - 5},
    "columns in a table": lambda a: {"indices": a["indices"][:, None]},
    "a column twice": lambda a: {"indices": np.zeros_like(a["indices"])},
    "a rating is NaN": lambda a: {"data": np.full_like(a["data"], np.nan)},
    "a rating off the scale": lambda a: {"data": a["data"] * 100},
    "ratings are integers": lambda a: {"data": a["data"].astype(np.int64)},
    "users twice": lambda a: {"users": np.zeros_like(a["users"])},
    "users are fractions": lambda a: {"users": a["users"].astype(np.float64)},
    "a neighbour beyond the rows": lambda a: {"neighbours": a["neighbours"] + 1000},
    "a neighbour below 0": lambda a: {"neighbours": -a["neighbours"] - 1},
    "neighbours are fractions": lambda a: {"neighbours": a["neighbours"].astype(np.float64)},
    "weights are NaN": lambda a: {"weights": np.full_like(a["weights"], np.nan)},
    "similarities are infinite": lambda a: {"similarities": np.full_like(a["weights"], np.inf)},
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_bad_arrays_are_refused_before_anything_is_made_of_them(saved: Path, kind: str) -> None:
    change_arrays(saved, **BAD_ARRAYS[kind](rows_of(saved)))
    with pytest.raises(ModelFileError):
        gf.load_model(saved)


@pytest.mark.parametrize("starts", [[0, 3, 1, 4], [0, 9, 9, 4], [1, 2, 3, 4], [0, 2, 3, 5], [4, 4, 4, 4], []])
def test_starts_of_text_are_checked(starts: list[int]) -> None:
    arrays = {"items_bytes": np.frombuffer(b"abcd", np.uint8), "items_starts": np.array(starts)}
    with pytest.raises((ModelFileError, gf.DataError)):
        decode_ids("items", {**arrays, "items_starts": arrays["items_starts"].astype(np.int64)})


def by_hand(name: str, header: bytes, content: bytes, method: int = 0) -> bytes:
    size = struct.pack("<H", len(header))
    array = b"\x93NUMPY\x01\x00" + size + header + content
    return zipped({"manifest.json": b'{"format": 3}', name: array}, method)


def header(kind: str = "<f8", shape: str = "(1,)", order: str = "False") -> bytes:
    return f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()


@pytest.mark.parametrize(
    "whole",
    [
        by_hand("a.npy", header(), bytes(8), zipfile.ZIP_DEFLATED),
        by_hand("a.npy", header("|O"), bytes(8)),
        by_hand("a.npy", header("<c8"), bytes(8)),
        by_hand("a.npy", header("<U2"), bytes(8)),
        by_hand("a.npy", header("<f8", "(1000000000,)"), bytes(8)),
        by_hand("a.npy", header("<f8", "(99999999999, 0)"), b""),
        by_hand("a.npy", header("<f8", "()"), bytes(8)),
        by_hand("a.npy", header("<f8", "(1, 1, 1)"), bytes(8)),
        by_hand("a.npy", header("<f8", "(-1,)"), bytes(8)),
        by_hand("a.npy", header(order="True"), bytes(8)),
        by_hand("a.npy", b"{'descr': __import__('os'), }\n", bytes(8)),
        by_hand("a.npy", b"(" * 9000, bytes(8)),
        by_hand("a", header(), bytes(8)),
        by_hand("a.npy", header(), bytes(8)) + b"x",
        b"",
        b"PK\x05\x06" + bytes(18),
        b"PK\x05\x06" + b"\xff" * 16 + bytes(2),
    ],
)
def test_arrays_that_are_not_ours_are_refused(saved: Path, whole: bytes) -> None:
    saved.write_bytes(whole)
    with pytest.raises(ModelFileError, match="damaged"):
        gf.load_model(saved)


def test_arrays_made_by_hand_are_read() -> None:
    """What the test above changes is what is refused there."""
    text, arrays = unpack_model(by_hand("a.npy", header(), bytes(8)))
    assert (text, arrays["a"].tolist()) == (b'{"format": 3}', [0.0])


def test_numpy_reads_what_is_saved(saved: Path) -> None:
    _, _, arrays = read_model(saved)
    with np.load(saved, allow_pickle=False) as stored:
        assert {name: stored[name].tobytes() for name in arrays} == {
            name: array.tobytes() for name, array in arrays.items()
        }
        assert {*stored.files} == {*arrays, "settings_sha256", "manifest.json"}


def test_a_model_is_its_owners(saved: Path) -> None:
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(saved)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"user,item,rating\n", zipped({"manifest.json": b"{}"})])
def test_a_file_that_is_no_model_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    """An extension of a browser is a zip with a manifest.json too."""
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a saved model"):
        gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(path)
    assert path.read_bytes() == content


def test_a_link_to_a_model_stays_a_link(saved: Path) -> None:
    link = saved.parent / "current"
    link.symlink_to(saved)
    gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(link)
    assert link.is_symlink()
    assert gf.NeighbourCF.load(saved).mechanism == gf.KNN(k=2)
    assert gf.NeighbourCF.load(link).mechanism == gf.KNN(k=2)
    (saved.parent / "lost").symlink_to(saved.parent / "nowhere")
    with pytest.raises(ModelFileError, match="not a saved model"):
        gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(saved.parent / "lost")


def test_what_a_killed_writer_left_is_swept(saved: Path) -> None:
    """An hour later: a younger file may be what another process writes now."""
    left = saved.with_name(".model.gf.0123456789ab")
    young = saved.with_name(".model.gf.0123456789ac")
    others = saved.with_name(".model.gf.notes")
    for path in (left, young, others):
        path.write_bytes(b"ratings")
    for path in (left, others):
        os.utime(path, (0, 0))
    gf.NeighbourCF(gf.KNN(k=2)).fit(RATINGS).save(saved)
    assert [path.exists() for path in (left, young, others)] == [False, True, True]


def test_where_the_rename_fails_the_old_model_stays(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(ModelFileError, match="No space left on device"):
        gf.NeighbourCF(gf.KNN(k=3)).fit(RATINGS).save(saved)
    monkeypatch.undo()
    assert gf.NeighbourCF.load(saved).mechanism == gf.PPNS(k=4, beta=3)
    assert [path.name for path in saved.parent.iterdir()] == ["model.gf"]


def test_more_memory_than_is_allowed_is_refused(saved: Path) -> None:
    with pytest.raises(ModelFileError, match="max_bytes"):
        gf.load_model(saved, max_bytes=10_000)
    with pytest.raises(ModelFileError, match="of memory"):
        gf.load_model(saved, max_bytes=60_000)
    gf.load_model(saved, max_bytes=2**20)
    with pytest.raises(gf.SettingError, match="max_bytes"):
        gf.load_model(saved, max_bytes=0)


PRIVATE = gf.PrivateMeans(epsilon=1.0, items="from ratings")


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments__unit": "user"},
        {"fit__unit": "user"},
        {"arguments__unit": "user", "fit__unit": "user"},
        {"arguments__epsilon": 0.5},
        {"fit__epsilon": 0.5},
        {"arguments__epsilon": 0.5, "fit__epsilon": 0.5},
        {"arguments__epsilon": 3.0, "fit__epsilon": 3.0},
        {"arguments__delta": 1e-9},
        {"arguments__delta": 1e-9, "fit__delta": 1e-9},
        {"arguments__epsilon": True, "fit__epsilon": True},
        {"fit__private": False},
        {"fit__private": 1},
        {"seeded": True},
        {"seeded": 0},
        {"fit__catalogue_given": True},
        {"arguments__items": None},
        {"fit__n_fits": 0},
        {"fit__n_fits": 1.5},
        {"releases": []},
        {"releases__0__sensitivity": 1},
        {"releases__0__sensitivity": -5},
        {"releases__0__sensitivity": 1e6},
        {"releases__0__sigma": 1 << 30},
        {"releases__0__unit": "user"},
        {"releases__0__unit": None},
        {"ratings__scale__declared": False},
        {"arguments__rng": 3},
        {"arguments__surprise": 3},
        {"arguments": [1]},
        {"fit": None},
    ],
)
def test_a_guarantee_that_the_fit_does_not_bear_out_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    """With a checksum that fits: whoever changes a file can compute that, too."""
    PRIVATE.fit(RATINGS).save(tmp_path / "model")
    stated = gf.load_model(tmp_path / "model").guarantee()
    change(tmp_path / "model", **{f"settings__{name}": value for name, value in changes.items()})
    try:
        assert gf.load_model(tmp_path / "model").guarantee() == stated
    except ModelFileError:
        return
    assert changes == {"arguments__rng": 3}, "only what says nothing may pass"


def test_a_model_cannot_carry_another_fits_guarantee(tmp_path: Path) -> None:
    """The manifest of epsilon = 1 over the arrays of epsilon = 3, with the checksums that fit."""
    for name, epsilon in (("one", 1.0), ("three", 3.0)):
        gf.PrivateMeans(epsilon=epsilon, items="from ratings").fit(RATINGS).save(tmp_path / name)
    (one, _), (_, arrays) = taken_apart(tmp_path / "one"), taken_apart(tmp_path / "three")
    (tmp_path / "one").write_bytes(packed(manifest_text(one).encode(), arrays))
    with pytest.raises(ModelFileError, match="states"):
        gf.load_model(tmp_path / "one")
    put_together(tmp_path / "one", one, arrays)
    with pytest.raises(ModelFileError, match="not fitted with the settings"):
        gf.load_model(tmp_path / "one")


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": lambda a: -a},
        {"weights": lambda a: a + 2},
        {"weights": lambda a: a * np.nan},
        {"features": lambda a: a * 0},
        {"features": lambda a: np.ones((len(a), 2000))},
        {"features": lambda a: a[:, :0]},
        {"effects": lambda a: a + 100},
        {"effects": lambda a: a.astype(np.int64)},
    ],
)
def test_a_private_model_of_impossible_numbers_is_refused(
    tmp_path: Path, changes: dict[str, Callable[[Any], Any]]
) -> None:
    PRIVATE.fit(RATINGS).save(tmp_path / "model")
    arrays = rows_of(tmp_path / "model")
    change_arrays(tmp_path / "model", **{name: change(arrays[name]) for name, change in changes.items()})
    with pytest.raises(ModelFileError, match="one row an item"):
        gf.load_model(tmp_path / "model")


@pytest.mark.parametrize("model", [gf.NeighbourCF(gf.KNN(k=2)), PRIVATE], ids=["cf", "private"])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([60], [0]),
        ([-1], [0]),
        ([10**12], [0]),
        ([0], [40]),
        ([0], [-1]),
        ([np.nan], [0]),
        ([0.0], [0]),
        ([[0]], [[0]]),
        ([0, 1], [0]),
        (["a"], [0]),
        ([True], [0]),
        ([2**64 - 1], [0]),
    ],
)
def test_cells_outside_the_matrix_are_refused(model: Any, rows: Any, columns: Any) -> None:
    fitted = model.fit(RATINGS)
    with pytest.raises((gf.DataError, gf.SettingError)):
        fitted.predict_cells(np.array(rows), np.array(columns))
    assert len(fitted.predict_cells(np.array([], dtype=int), np.array([], dtype=int))) == 0


@pytest.mark.parametrize("shape", [(1, 1, 1), (0, 2**31), (2**31, 0)])
def test_arrays_of_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    whole = packed(b"", {"a": np.empty((2, 0)), "b": np.empty(shape)})
    with pytest.raises(ValueError):  # noqa: PT011 - what reads the file turns any into one sentence
        unpack_model(whole)


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (0, 2**31 - 1)])
def test_arrays_of_one_or_two_dimensions_come_back(shape: tuple[int, ...]) -> None:
    _, found = unpack_model(packed(b"", {"a": np.zeros(shape), "b": np.arange(4, dtype=np.int32)}))
    assert (found["a"].shape, found["b"].tolist()) == (shape, [0, 1, 2, 3])


def test_events_come_back_with_the_least_rating_that_was_liked(tmp_path: Path) -> None:
    films = gf.load("movietweetings", likes=8)
    model = gf.NeighbourCF(gf.KNN(k=5), rng=7).fit(films)
    model.save(tmp_path / "model.gf")
    found = gf.NeighbourCF.load(tmp_path / "model.gf").ratings_
    assert (found.feedback, found.liked_from, found.n_ratings) == ("implicit", 8.0, films.n_ratings)
