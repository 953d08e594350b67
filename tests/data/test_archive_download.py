"""Zip archives: what is wanted comes out, and what is evil does not."""

from __future__ import annotations

import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from goodfence.data.catalogue import Archive, extract
from goodfence.errors import DataError, FileProblem, SizeProblem

KNOWN = {"url": "https://x.org/a.zip", "sha256": "", "n_bytes": 1}
ARCHIVE = Archive(**KNOWN, folder="set", wanted=["README", "u.data"], others=["u.item"])  # type: ignore[arg-type] # by name


def zipped(path: Path, members: dict[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def good() -> dict[str | zipfile.ZipInfo, bytes]:
    return {"set/": b"", "set/README": b"read", "set/u.item": b"1|a", "set/u.data": b"1\t2\t3\t4"}


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("set/u.item")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def take(archive: Path, folder: Path, max_bytes: int = 10_000) -> list[Path]:
    return extract(archive, ARCHIVE, folder, max_bytes)


def test_what_is_wanted_is_written_in_order_and_nothing_else(tmp_path: Path) -> None:
    files = take(zipped(tmp_path / "a.zip", good()), tmp_path / "out")
    assert [path.name for path in files] == ["README", "u.data"]
    assert (tmp_path / "out" / "u.data").read_bytes() == b"1\t2\t3\t4"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["README", "u.data"]


EVIL: dict[str, Callable[[], dict[str | zipfile.ZipInfo, bytes]]] = {
    "absolute": lambda: {**good(), "/etc/cron.d/job": b"x"},
    "above": lambda: {**good(), "../u.data": b"x"},
    "above, further in": lambda: {**good(), "set/../../u.data": b"x"},
    "backslashes": lambda: {**good(), "set\\..\\..\\u.data": b"x"},
    "drive letter": lambda: {**good(), "C:u.data": b"x"},
    "unexpected": lambda: {**good(), "set/run.sh": b"x"},
    "other folder": lambda: {**good(), "elsewhere/u.data": b"x"},
    "link": lambda: {"set/README": b"", "set/u.data": b"", link(): b"/etc/passwd"},
    "device": lambda: {**good(), device(): b""},
    "something missing": lambda: {"set/README": b"read"},
    "empty": lambda: {},
}


def device() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("set/")
    info.external_attr = (stat.S_IFCHR | 0o666) << 16
    return info


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", EVIL)
def test_an_archive_with_anything_odd_is_refused_whole(tmp_path: Path, kind: str) -> None:
    archive = zipped(tmp_path / "a.zip", EVIL[kind]())
    with pytest.raises(FileProblem, match=r"^a\.zip must hold .*not unpacked$"):
        take(archive, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    twice = {**good(), zipfile.ZipInfo("set/u.data"): b"another"}
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive = zipped(tmp_path / "a.zip", twice)
    with pytest.raises(FileProblem, match="each file once"):
        take(archive, tmp_path / "out")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {**good(), "set/u.data": b"0" * 10_001})
    assert archive.stat().st_size < 1000
    with pytest.raises(SizeProblem, match="at most 10,000 bytes when unpacked, got 10,001"):
        take(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bomb_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {**good(), "set/u.data": b"0" * 50_000})
    lying = archive.read_bytes().replace(struct.pack("<L", 50_000), struct.pack("<L", 9_000))
    archive.write_bytes(lying)
    with pytest.raises(DataError):
        take(archive, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["README"]


def test_an_encrypted_archive_is_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", good())
    content = bytearray(archive.read_bytes())
    at = content.index(b"PK\x01\x02")  # the first entry of the directory
    content[at + 8] |= 1
    archive.write_bytes(bytes(content))
    with pytest.raises(FileProblem, match="must not be encrypted"):
        take(archive, tmp_path / "out")


@pytest.mark.parametrize("cut", [0, 10, 60, -30])
def test_a_damaged_archive_is_refused(tmp_path: Path, cut: int) -> None:
    archive = zipped(tmp_path / "a.zip", good())
    archive.write_bytes(archive.read_bytes()[:cut])
    with pytest.raises(FileProblem, match="must be a whole zip archive"):
        take(archive, tmp_path / "out")


def test_a_flipped_byte_leaves_no_broken_file(tmp_path: Path) -> None:
    content = b"".join(b"%d\t%d\t3\n" % (number, number * 7) for number in range(500))
    archive = zipped(tmp_path / "a.zip", {**good(), "set/u.data": content})
    raw = bytearray(archive.read_bytes())
    raw[raw.index(b"set/u.data") + 200] ^= 0xFF
    archive.write_bytes(bytes(raw))
    with pytest.raises(FileProblem, match="must be a whole zip archive"):
        take(archive, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["README"]


def test_a_file_without_a_folder_keeps_its_name(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"u.data": b"1"})
    alone = Archive(**KNOWN, wanted=["u.data"])  # type: ignore[arg-type] # by name
    (path,) = extract(archive, alone, tmp_path / "out", 10)
    assert (path.name, path.read_bytes()) == ("u.data", b"1")
