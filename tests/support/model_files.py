"""Saved models taken apart and put together again, with every checksum that can be made to fit."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from goodfence.models.persistence import array_statements, manifest_text, pack_model, settings_digest, unpack_model

BOUND = "settings_sha256"
MANIFEST = "manifest.json"


def taken_apart(saved: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the manifest of a saved model and copies of its arrays."""
    text, arrays = unpack_model(saved.read_bytes())
    return json.loads(text), {name: array.copy() for name, array in arrays.items()}


def packed(manifest: bytes, arrays: dict[str, Any]) -> bytes:
    """Return the bytes of a file that holds these."""
    file = io.BytesIO()
    pack_model(file, manifest, arrays)
    return file.getvalue()


def put_together(saved: Path, manifest: dict[str, Any], arrays: dict[str, Any], *, bind: bool = False) -> None:
    """Write a model with statements about its arrays and a checksum that fit, and, to `bind`, the settings' digest."""
    if bind:
        arrays = {**arrays, BOUND: settings_digest(manifest["kind"], manifest["settings"])}
    if isinstance(manifest.get("arrays"), dict):
        manifest = {**manifest, "arrays": array_statements(arrays)}
    saved.write_bytes(packed(manifest_text(manifest).encode(), arrays))


def zipped(parts: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip file of these members, in their order."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return sink.getvalue()


def members(saved: Path) -> dict[str, bytes]:
    """Return the members of a saved model."""
    with zipfile.ZipFile(saved) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def as_npy(array: Any) -> bytes:
    """Return an array as the bytes of a `.npy` file."""
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=False)
    return sink.getvalue()
