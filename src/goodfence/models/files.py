"""Saved models: a folder with `manifest.json` and `arrays.npz`, written whole or not at all, never pickle.

A saved recommender holds the ratings it needs to answer. Keep it as you keep the ratings themselves.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import goodfence
from goodfence.data.whole import folder_written_whole
from goodfence.errors import ModelFileError

FORMAT = 1
"""The version of the layout; a reader refuses a newer one."""

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
_MANIFEST = "manifest.json"
_ARRAYS = "arrays.npz"


def write_model(
    path: str | PathLike[str], kind: str, settings: Mapping[str, Any], arrays: Arrays
) -> None:
    """Write a model's settings and arrays to the folder `path`; one that is there is replaced."""
    folder = Path(path)
    if folder.exists() and not (folder / _MANIFEST).is_file():
        raise ModelFileError(
            "the path exists and is not a saved model; choose another, or remove it"
        )
    with folder_written_whole(folder) as partial:
        np.savez(partial / _ARRAYS, allow_pickle=False, **dict(arrays))
        manifest = {
            "format": FORMAT,
            "goodfence": goodfence.__version__,
            "kind": kind,
            "settings": dict(settings),
            "arrays": {
                "file": _ARRAYS,
                "sha256": _checksum(partial / _ARRAYS),
                "shapes": {name: list(array.shape) for name, array in arrays.items()},
            },
        }
        text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False)
        (partial / _MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_model(
    path: str | PathLike[str],
) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the kind, the settings and the arrays of the model in the folder `path`."""
    folder = Path(path)
    manifest = _manifest(folder)
    try:
        version, kind = manifest["format"], manifest["kind"]
        settings, stated = dict(manifest["settings"]), manifest["arrays"]
        name, checksum, shapes = stated["file"], stated["sha256"], dict(stated["shapes"])
    except (KeyError, TypeError, ValueError):
        raise ModelFileError(
            "the manifest of the model lacks a part; save the model again"
        ) from None
    if not isinstance(version, int) or version > FORMAT:
        raise ModelFileError(
            f"the model was saved in a newer format than this goodfence reads ({FORMAT}); upgrade goodfence"
        )
    if (
        not isinstance(name, str)
        or Path(name).name != name
        or "\\" in name
        or (folder / name).is_symlink()
    ):
        raise ModelFileError("the manifest names a file outside the model's folder; refused")
    return str(kind), settings, _arrays(folder / name, checksum, shapes)


def encode_ids(name: str, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return ids as plain arrays: integers as they are, text as bytes and where each begins."""
    if values.dtype != object:
        return {name: values}
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {
        f"{name}_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}_starts": starts,
    }


def decode_ids(name: str, arrays: Arrays) -> npt.NDArray[Any]:
    """Return the ids that `encode_ids` wrote."""
    if name in arrays:
        return arrays[name]
    data, starts = arrays[f"{name}_bytes"].tobytes(), arrays[f"{name}_starts"].tolist()
    values = np.empty(len(starts) - 1, dtype=object)
    values[:] = [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts)]
    return values


def _manifest(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelFileError("there is no saved model at that path (a model is a folder)")
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError("the folder is not a saved model: it has no manifest.json") from None
    except (OSError, ValueError):
        raise ModelFileError(
            "the manifest of the model cannot be read; save the model again"
        ) from None
    if not isinstance(manifest, dict):
        raise ModelFileError("the manifest of the model is not an object; save the model again")
    return manifest


def _arrays(path: Path, checksum: object, shapes: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    if not path.is_file():
        raise ModelFileError("the arrays of the model are missing; save the model again")
    if _checksum(path) != checksum:
        raise ModelFileError(
            "the arrays of the model are damaged or truncated; save the model again"
        )
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise ModelFileError(
            "the arrays of the model cannot be read; save the model again"
        ) from None
    if {name: list(array.shape) for name, array in arrays.items()} != shapes:
        raise ModelFileError("the arrays of the model do not have the shapes its manifest states")
    return arrays


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
