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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import goodfence
from goodfence.auditing.audit import rounded
from goodfence.data.files import atomic_write, find_file
from goodfence.data.ratings import Ratings
from goodfence.errors import FileProblem
from goodfence.settings import place

MANIFEST = "manifest.json"
_LARGEST = 16 * 2**20
"""How many bytes the JSON of an audit may have."""
_FIRST = ("advantage", "recovery", "precision", "exact", "fully_recovered", "guess", "popularity")
_ABOUT = ("recommender", "attack", "data", "guarantee", "seed", "fakes", "targets", "hidden")
_NOT_COMPARED = ("checksum", "digest", "reason", "date")


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
    """Return a mapping or a result as JSON text; unknown figures are null. `ascii_only` escapes all other letters.

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
    with named_cause(name), atomic_write(place(path, name), name=name) as file:
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
            raise FileProblem(
                f"folder exists and is not a saved {kind}; choose another, or remove it"
            )
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


def ratings_table(ratings: Ratings) -> pa.Table:
    """Return ratings as a table of userId, movieId and rating, the names that most readers know.

    Events have no rating, a weight where they count more than 1, and a timestamp where it is known.

    Examples
    --------
    >>> from goodfence.data.load import load
    >>> ratings_table(load("movietweetings")).num_rows
    45027
    """
    cells = ratings.csr.tocoo()
    values = cells.data.astype(int) if (cells.data % 1 == 0).all() else cells.data
    columns = {"userId": ratings.users[cells.row], "movieId": ratings.items[cells.col]}
    if ratings.feedback == "explicit":
        return pa.table({**columns, "rating": values})
    if not (values == 1).all():
        columns["weight"] = values
    if ratings.times is not None:
        columns["timestamp"] = ratings.times
    return pa.table(columns)


def read_audit(path: Path) -> dict[str, Any]:
    """Return the JSON of an audit, or say that it is none."""
    file = find_file(path, _LARGEST)
    try:
        found = json.loads(file.path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError):
        found = None
    estimates = found.get("estimates") if isinstance(found, dict) else None
    if not isinstance(estimates, dict) or not any(map(_is_estimate, estimates.values())):
        raise FileProblem(
            f"{file.name!r} must be the JSON of an audit, as `goodfence audit -o name.json` writes it"
        )
    audit: dict[str, Any] = found
    return audit


def compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each figure that both audits have, the leading ones first."""
    before, after = old["estimates"], new["estimates"]
    names = [name for name in before if name in after]
    for name in sorted(names, key=lambda one: _FIRST.index(one) if one in _FIRST else len(_FIRST)):
        a, b = before[name], after[name]
        if _is_estimate(a) and _is_estimate(b):
            yield {"figure": name.replace("_", " "), "old": a, "new": b, "verdict": _verdict(a, b)}


def _verdict(old: Mapping[str, float], new: Mapping[str, float]) -> str:
    """Return whether the intervals are apart: only then is a change more than the choice of targets explains."""
    if old["value"] == new["value"]:
        return "the same"
    moved = "higher" if new["value"] > old["value"] else "lower"
    apart = old["high"] < new["low"] or new["high"] < old["low"]
    return moved if apart else f"{moved}, within the intervals"


def different(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and both values of each setting in which the audits differ."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _leaves(audit: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for part in _ABOUT:
        value = audit.get(part)
        inner = value if isinstance(value, dict) else {"": value}
        for name, leaf in inner.items():
            if name not in _NOT_COMPARED and isinstance(leaf, str | int | float | None):
                yield f"{part} {name}".strip(), leaf


def _is_estimate(value: Any) -> bool:
    parts = value if isinstance(value, dict) else {}
    return all(type(parts.get(name)) in (int, float) for name in ("value", "low", "high"))
