"""A report on disk: a folder with a table and a manifest, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import goodfence
from goodfence.data.ratings import Ratings
from goodfence.data.whole import folder_written_whole
from goodfence.errors import FileProblem

if TYPE_CHECKING:
    from goodfence.attack.report import AttackReport

_MANIFEST = "manifest.json"
_TABLE = "targets.parquet"


def save_report(report: AttackReport, folder: str | PathLike[str]) -> None:
    """Write the report to `folder`; a report that is there is replaced, anything else is an error."""
    import pyarrow.parquet as pq

    target = Path(folder)
    if target.exists() and not ((target / _MANIFEST).is_file() and (target / _TABLE).is_file()):
        raise FileProblem("folder exists and is not a saved report; choose another, or remove it")
    with folder_written_whole(target) as partial:
        pq.write_table(report.table(), partial / _TABLE, compression="zstd")
        text = json.dumps(_manifest(report), indent=2, ensure_ascii=False, allow_nan=False)
        (partial / _MANIFEST).write_text(text + "\n", encoding="utf-8")


def ratings_checksum(ratings: Ratings) -> str:
    """Return the sha256 of the ratings: shape, scale, and each cell in order; ids are not in it."""
    csr, scale = ratings.csr, ratings.scale
    digest = hashlib.sha256(repr((csr.shape, scale.lowest, scale.highest, scale.step)).encode())
    for part, kind in ((csr.indptr, "<i8"), (csr.indices, "<i8"), (csr.data, "<f8")):
        digest.update(np.ascontiguousarray(part, dtype=kind).tobytes())
    return digest.hexdigest()


def _manifest(report: AttackReport) -> dict[str, object]:
    numbers = {
        name: {part: _written(number) for part, number in estimate._asdict().items()}
        for name, estimate in report.estimates.items()
    }
    return {
        "goodfence": goodfence.__version__,
        "kind": "AttackReport",
        "attack": report.attack,
        "attacked": report.attacked,
        **report.settings,
        "ratings": ratings_checksum(report.ratings),
        "n_targets": report.n_targets,
        "n_hidden": report.n_hidden,
        "n_left_out": report.n_left_out,
        "n_fakes": report.n_fakes,
        "estimates": numbers,
        "table": _TABLE,
    }


def _written(number: float) -> float | None:
    return number if math.isfinite(number) else None
