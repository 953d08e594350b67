"""Taking known files out of a zip archive, and refusing one that is not what it should be."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path

from goodfence.data.whole import written_whole
from goodfence.errors import FileProblem, SizeProblem

MAX_FILE_BYTES = 256 * 2**20
"""No file in an archive of the catalogue is larger than this when unpacked."""
_CHUNK = 2**20
_ENCRYPTED = 0x1


def extract(
    archive: Path,
    *,
    folder: Path,
    wanted: Sequence[str],
    expected: Collection[str],
    max_bytes: int = MAX_FILE_BYTES,
) -> list[Path]:
    """Write the `wanted` members of a zip archive into `folder`, in order, each whole or not.

    The archive is checked as a whole before anything is written: it holds nothing but `expected`
    members, no path that leads elsewhere, no link, nothing encrypted, nothing larger than
    `max_bytes` when unpacked.

    Parameters
    ----------
    archive
        The zip file.
    folder
        Where the files go, under the last part of their names.
    wanted
        The members to take out, as they are named in the archive, all of them among `expected`.
    expected
        Every member that may be there; a name ending in "/" is a folder.

    Returns
    -------
    The files written.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            _check(opened.infolist(), archive.name, wanted, expected, max_bytes)
            return [_write(opened, member, folder, max_bytes) for member in wanted]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as problem:
        raise FileProblem(
            f"{archive.name} must be a whole zip archive, and is damaged or none; "
            "remove it and try again"
        ) from problem


def _check(
    members: Sequence[zipfile.ZipInfo],
    archive: str,
    wanted: Sequence[str],
    expected: Collection[str],
    max_bytes: int,
) -> None:
    names = [member.orig_filename for member in members]
    for member in members:
        _check_member(member, archive, expected, max_bytes)
    if len(set(names)) != len(names):
        raise FileProblem(
            f"{archive} must hold each file once, and one is there twice; not unpacked"
        )
    if not set(wanted) <= set(names):
        raise FileProblem(f"{archive} must hold {', '.join(wanted)}; not unpacked")


def _check_member(
    member: zipfile.ZipInfo, archive: str, expected: Collection[str], max_bytes: int
) -> None:
    if member.orig_filename not in expected or member.filename != member.orig_filename:
        raise FileProblem(
            f"{archive} must hold nothing but the files of the data set, and one is none of them; "
            "not unpacked"
        )
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if member.is_dir() else stat.S_IFREG):
        raise FileProblem(f"{archive} must hold plain files only; not unpacked")
    if member.flag_bits & _ENCRYPTED:
        raise FileProblem(f"{archive} must not be encrypted; not unpacked")
    if member.file_size > max_bytes:
        raise SizeProblem(
            f"a file in {archive} must have at most {max_bytes:,} bytes when unpacked, "
            f"got {member.file_size:,}; not unpacked"
        )


def _write(opened: zipfile.ZipFile, member: str, folder: Path, max_bytes: int) -> Path:
    target = folder / member.rsplit("/", 1)[-1]
    n_bytes = 0
    with opened.open(member) as source, written_whole(target) as file:
        while chunk := source.read(_CHUNK):
            n_bytes += len(chunk)
            if n_bytes > max_bytes:  # the size a member states may be a lie
                raise SizeProblem(
                    f"a file in an archive must have at most {max_bytes:,} bytes when unpacked"
                )
            file.write(chunk)
    return target
