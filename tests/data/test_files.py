"""Writing files: what is at the place already is replaced as a whole, or left alone."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from goodfence.data.files import atomic_write, destination, write_table
from goodfence.errors import FileProblem
from goodfence.report.serialize import write_json

NOT_A_FILE = "path must be an ordinary file, and is a pipe, a socket or a device"
WRITERS: dict[str, Callable[[Path], None]] = {
    "json": lambda path: write_json(path, {"mae": 0.5}),
    "csv": lambda path: write_table(path, pa.table({"a": [1, 2]})),
    "parquet": lambda path: write_table(path, pa.table({"a": [1, 2]})),
}


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.fspath(path))


def make_loop(path: Path) -> None:
    path.symlink_to(path)


THINGS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a folder": (Path.mkdir, "path must be a file, and a folder of that name is there"),
    "a pipe": (os.mkfifo, NOT_A_FILE),
    "a socket": (make_socket, NOT_A_FILE),
    "a link to a folder": (lambda path: path.symlink_to(path.parent), "a folder of that name"),
    "a link to a device": (lambda path: path.symlink_to(os.devnull), NOT_A_FILE),
    "a link to itself": (make_loop, "path must be a file, and is a link that leads nowhere"),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("thing", THINGS)
def test_what_is_no_file_stays(thing: str, writer: str, tmp_path: Path) -> None:
    make, sentence = THINGS[thing]
    path = tmp_path / f"out.{writer}"
    make(path)
    before = path.lstat()
    with pytest.raises(FileProblem, match=sentence) as caught:
        WRITERS[writer](path)
    assert str(tmp_path) not in str(caught.value)
    assert os.path.samestat(path.lstat(), before)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "/dev/tty", "/dev/zero"])
def test_a_device_stays(device: str) -> None:
    if not Path(device).exists():
        pytest.skip(f"{device} is missing")
    before = Path(device).lstat()
    with pytest.raises(FileProblem, match=NOT_A_FILE):
        write_json(device, {})
    assert os.path.samestat(Path(device).lstat(), before)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.lexists("/dev/stdout"), reason="/dev/stdout is missing")
def test_where_a_program_prints_is_no_file(tmp_path: Path) -> None:
    """A pipe, or a file that was deleted since: neither is replaced, and nothing appears beside it."""
    line = "from goodfence.report.serialize import write_json; write_json('/dev/stdout', {})"
    with (tmp_path / "deleted").open("w") as deleted:
        (tmp_path / "deleted").unlink()
        for stdout in (subprocess.PIPE, deleted):
            done = subprocess.run([sys.executable, "-c", line], stdout=stdout, stderr=subprocess.PIPE, check=False)
            assert NOT_A_FILE.encode() in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_stays_and_what_it_points_to_is_written(writer: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file, link = tmp_path / "elsewhere" / f"real.{writer}", tmp_path / f"out.{writer}"
    link.symlink_to(Path("elsewhere") / file.name)
    plain = tmp_path / f"plain.{writer}"
    WRITERS[writer](plain)
    for there in (False, True):  # at first the link points to nothing
        assert file.exists() is there
        WRITERS[writer](link)
        assert link.is_symlink()
        assert file.read_bytes() == plain.read_bytes()
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_link_into_a_folder_that_is_missing_makes_no_folder(tmp_path: Path) -> None:
    link = tmp_path / "out.json"
    link.symlink_to(tmp_path / "missing" / "out.json")
    with pytest.raises(FileProblem, match="path could not be written: no such file"):
        write_json(link, {})
    assert [one.name for one in tmp_path.iterdir()] == [link.name]


def test_permissions_stay_and_a_failure_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("older")
    path.chmod(0o640)
    with pytest.raises(TypeError), atomic_write(path) as file:
        file.writelines([b"half of it", None])  # type: ignore[list-item]
    assert path.read_text() == "older"
    write_json(path, {})
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("{}\n", 0o640)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert destination(path) == path


def test_what_is_left_by_killed_writers_is_removed_when_it_is_old(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    names = (".out.json.0123456789ab", ".out.json.0123456789ac", ".other.json.0123456789ab")
    for name in names:
        (tmp_path / name).touch()
    os.utime(tmp_path / names[0], (0, 0))
    os.utime(tmp_path / names[2], (0, 0))
    write_json(path, {})
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([*names[1:], path.name])


def test_a_new_file_is_never_readable_by_more_than_its_mode_says(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "model.gf", mode=0o600) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "model.gf").stat().st_mode) == 0o600


def test_a_file_that_cannot_be_renamed_is_an_error_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, target: Path) -> Path:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(PermissionError), atomic_write(tmp_path / "model.gf") as file:
        file.write(b"whole")
    assert list(tmp_path.iterdir()) == []
