"""Results as JSON text and as files: the one place where NaN becomes null, and where files are written atomically."""

from __future__ import annotations

import io
import json
import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import goodfence
from goodfence.auditing.audit import rounded
from goodfence.data.files import atomic_write
from goodfence.data.ratings import Ratings
from goodfence.errors import FileProblem
from goodfence.settings import place

MANIFEST = "manifest.json"


def plain(value: Any) -> Any:
    """Return a value as JSON knows it, however deep: no NaN, no infinity, no numpy, no classes."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain(inside) for key, inside in value.items()}
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    return value


def to_json(value: Any, *, ascii_only: bool = False, indent: int | None = 2) -> str:
    """Return a mapping or a result as JSON text; unknown figures are null. `ascii_only` escapes all other letters."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=ascii_only, allow_nan=False)


def inline_json(value: Any) -> str:
    r"""Return JSON that can be part of a page: nothing in it closes its element."""
    text = to_json(value, ascii_only=True, indent=None)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def write_text(path: str | PathLike[str], text: str, *, name: str = "path") -> None:
    """Write a text file in one atomic step; `name` is what an error calls the path."""
    with named_cause(name), atomic_write(place(path, name), name=name) as file:
        file.write(text.encode())


@contextmanager
def named_cause(name: str) -> Iterator[None]:
    """Turn a failure of the system into one sentence with its cause and without the path."""
    try:
        yield
    except OSError as problem:
        cause = (problem.strerror or type(problem).__name__).lower()
        raise FileProblem(f"{name} could not be written: {cause}") from None


def write_json(path: str | PathLike[str], value: Any, *, name: str = "path") -> None:
    """Write a result as a JSON file in one atomic step."""
    write_text(path, to_json(value) + "\n", name=name)


def write_folder(
    folder: str | PathLike[str],
    kind: str,
    manifest: Mapping[str, Any],
    table: tuple[str, pa.Table],
    files: Mapping[str, bytes] | None = None,
) -> None:
    """Write a result to a folder: a parquet table, further files and, last, a manifest, each atomically.

    A result of the same kind that is there is replaced; anything else is an error. The old manifest goes first: a
    folder without one was interrupted, and may hold files of two results.
    """
    target, (table_name, rows) = place(folder, "folder"), table
    with named_cause("folder"):
        new, names = not target.exists(), {MANIFEST, table_name, *(files or {})}
        held = {path.name for path in target.iterdir()} if target.is_dir() else set()
        # What a killed process left of `atomic_write` is no file of somebody else.
        held -= {name for name in held if name.startswith(tuple(f".{one}." for one in names))}
        if not new and not {table_name} <= held <= names:
            raise FileProblem(f"folder exists and is not a saved {kind}; choose another, or remove it")
        packed = io.BytesIO()
        parquet.write_table(rows, packed, compression="zstd")
        told = to_json({"goodfence": goodfence.__version__, **manifest}) + "\n"
        contents = {table_name: packed.getvalue(), **(files or {}), MANIFEST: told.encode()}
        if not new:
            (target / MANIFEST).unlink(missing_ok=True)
        try:
            for name, content in contents.items():
                with atomic_write(target / name) as file:
                    file.write(content)
        except BaseException:
            if new:
                shutil.rmtree(target, ignore_errors=True)
            raise


def describe(ratings: Ratings) -> dict[str, Any]:
    """Return what a result says about its ratings: rounded counts and the scale.

    It holds no id, no rating and no digest, from which somebody who knows all other ratings could read the last one.
    """
    n_users, n_items = ratings.shape
    made_of = {} if ratings.liked_from is None else {"liked_from": ratings.liked_from}
    return {
        "users": rounded(n_users),
        "items": rounded(n_items),
        "ratings": rounded(ratings.n_ratings),
        "feedback": ratings.feedback,
        **made_of,
        "scale": str(ratings.scale),
        "scale_declared": ratings.scale.declared,
    }
