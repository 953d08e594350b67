"""Results as JSON text and as files: the one place where NaN becomes null, and where files are written atomically."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import goodfence
from goodfence.data.files import atomic_folder, atomic_write
from goodfence.data.ratings import Ratings
from goodfence.errors import FileProblem

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"


def plain(value: Any) -> Any:
    """Return a value as JSON knows it, however deep: no NaN, no infinity, no numpy, no classes.

    Examples
    --------
    >>> plain({"mae": float("nan"), "interval": (np.float64(0.5), float("inf")), "n": np.int64(3)})
    {'mae': None, 'interval': [0.5, None], 'n': 3}
    """
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
    r"""Return a result as JSON text; what is not known is null.

    Parameters
    ----------
    value : object
        A mapping, or a result with `to_dict`.
    ascii_only : bool, default False
        Whether other letters are escaped, for a terminal that may not know them.
    indent : int or None, default 2
        As in `json.dumps`.

    Examples
    --------
    >>> to_json({"mae": float("nan")}, indent=None)
    '{"mae": null}'
    """
    return json.dumps(plain(value), indent=indent, ensure_ascii=ascii_only, allow_nan=False)


def inline_json(value: Any) -> str:
    r"""Return JSON that can be part of a page: nothing in it closes its element.

    Examples
    --------
    >>> inline_json({"name": "</script>"})
    '{"name": "\\u003c/script\\u003e"}'
    """
    text = to_json(value, ascii_only=True, indent=None)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def write_text(path: str | PathLike[str], text: str, *, name: str = "path") -> None:
    """Write a text file in one atomic step; `name` is what an error calls the path."""
    with named_cause(name), atomic_write(Path(path)) as file:
        file.write(text.encode())


@contextmanager
def named_cause(name: str) -> Iterator[None]:
    """Turn a failure of the system into one sentence with its cause and without the path."""
    try:
        yield
    except OSError as problem:
        cause = (problem.strerror or type(problem).__name__).lower()
        raise FileProblem(f"{name} must be written, and could not be: {cause}") from None


def write_json(path: str | PathLike[str], value: Any, *, name: str = "path") -> None:
    """Write a result as a JSON file in one atomic step."""
    write_text(path, to_json(value) + "\n", name=name)


def save_result(
    folder: str | PathLike[str],
    kind: str,
    manifest: Mapping[str, Any],
    table: tuple[str, pa.Table],
    files: Mapping[str, bytes] | None = None,
) -> None:
    """Write a result to a folder in one atomic step: a manifest, a parquet table, and further files.

    A result of the same kind that is there is replaced; anything else is an error.
    """
    import pyarrow.parquet as pq

    target, (table_name, rows) = Path(folder), table
    names = {MANIFEST, table_name, *(files or {})}

    def ours(there: Path) -> bool:
        held = {path.name for path in there.iterdir()} if there.is_dir() else set()
        return {MANIFEST, table_name} <= held <= names

    if target.exists() and not ours(target):
        raise FileProblem(f"folder exists and is not a saved {kind}; choose another, or remove it")
    with named_cause("folder"), atomic_folder(target, ours=ours) as partial:
        pq.write_table(rows, partial / table_name, compression="zstd")
        told = {"goodfence": goodfence.__version__, **manifest}
        (partial / MANIFEST).write_text(to_json(told) + "\n", encoding="utf-8")
        for name, content in (files or {}).items():
            (partial / name).write_bytes(content)


def describe(ratings: Ratings) -> dict[str, Any]:
    """Return what a result that may be handed on says about its ratings: no ids, no ratings, and counts only about.

    Nor a digest: whoever knows all ratings but one could read the last one from it.
    """
    n_users, n_items = ratings.shape
    return {
        "users": about(n_users),
        "items": about(n_items),
        "ratings": about(ratings.n_ratings),
        "scale": str(ratings.scale),
        "scale_declared": ratings.scale.declared,
    }


def about(count: int) -> int:
    """Return a count to two digits: one user or rating more or less is not told, but for a chance at the edges.

    Examples
    --------
    >>> about(943), about(100_000), about(7)
    (940, 100000, 7)
    """
    unit: int = 10 ** max(len(str(count)) - 2, 0)
    return (count + unit // 2) // unit * unit
