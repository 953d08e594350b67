"""Files and folders written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_whole(target: Path) -> Iterator[BinaryIO]:
    """Open a file that appears at `target`, or replaces it, only when the block ends well.

    Until then it is a hidden file beside it, which is removed when the block fails.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     target = Path(folder) / "a" / "data.bin"
    ...     with written_whole(target) as file:
    ...         _ = file.write(b"all of it")
    ...     target.read_bytes()
    b'all of it'
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def folder_written_whole(target: Path) -> Iterator[Path]:
    """Make a folder that appears at `target`, or replaces it, only when the block ends well.

    Until then it is a hidden folder beside it, which is removed when the block fails.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    beside.mkdir()
    try:
        yield beside
        if target.exists():
            old = beside.with_name(f"{beside.name}.old")
            target.rename(old)
            beside.rename(target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
