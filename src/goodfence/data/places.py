"""Where data sets lie on this machine: the folder the user names, and the user's cache."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from goodfence.errors import FileProblem

FOLDER_VARIABLE = "GOODFENCE_DATA"
"""The environment variable that names a folder with data sets."""


def named_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder that `GOODFENCE_DATA` names, or None where it is not set."""
    name = environment.get(FOLDER_VARIABLE)
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise FileProblem(f"{FOLDER_VARIABLE} must name a folder that is there, got {name!r}")
    return folder


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return where this platform keeps what can be fetched again; it may not be there yet.

    Examples
    --------
    >>> cache_folder({"XDG_CACHE_HOME": "/tmp/cache"}, "linux").as_posix()
    '/tmp/cache/goodfence'
    """
    if platform == "win32":
        local = environment.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "goodfence" / "Cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "goodfence"
    base = environment.get("XDG_CACHE_HOME", "")
    # The XDG rule: a path that is not absolute does not count.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "goodfence"
