"""Saved models: one file, a stored zip of `manifest.json` and `.npy` members, written atomically, never pickle.

A saved recommender holds the ratings it needs to answer. Protect it like the ratings themselves. The loader reads the
file once and trusts nothing in it, no checksum either, because whoever changes a file can recompute them: it checks
what each array must be, and that the statements about a fit agree with each other.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

import goodfence
from goodfence.data.files import DEFAULT_MAX_BYTES, atomic_write, check_limit, readable
from goodfence.data.matrix import check_csr, check_starts
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.data.typed import each_once
from goodfence.errors import ModelFileError
from goodfence.registry import find_kind
from goodfence.settings import place

if TYPE_CHECKING:
    from goodfence.models.recommender import FittedRecommender

FORMAT = 3  # the version of the layout; a reader refuses any other
LARGEST_MANIFEST = 2**20  # the manifest holds settings only: a few thousand bytes

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
_MANIFEST = "manifest.json"
_BEGINNING = b'manifest.json{\n  "format": '
"""How each saved model goes on after the 30 bytes of its first member's header."""
_BOUND = "settings_sha256"  # the array that says which settings the others were fitted with
_KINDS = {"<f8": np.float64, "<f4": np.float32, "<i8": np.int64, "<i4": np.int32, "|u1": np.uint8}
"""The only kinds of numbers in a saved model, as the format spells them."""
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00([\s\S]{2})"
    rb"\{'descr': '([<|][a-z][0-9])', 'fortran_order': False, 'shape': \(([0-9, ]{0,60})\), \} *\n"
)
_MOST_MEMBERS, _LARGEST_DIRECTORY, _LONGEST = 65, 2**16, 2**31
_RATING_BYTES, _ID_BYTES, _TEXT_BYTES = 40, 200, 4
"""What a rating, an id and a byte of text take beyond the file, once the model has been asked."""
_DAMAGED = "the file is not a saved model, or it is damaged or truncated; save the model again"


def load_model(path: str | PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES) -> FittedRecommender:
    """Return the fitted recommender that was saved in the file `path`, of any class.

    A model that would take more than `max_bytes` of memory is refused before it is built.
    """
    kind, settings, arrays = read_model(path, max_bytes=max_bytes)
    found = find_kind(kind)
    if found is None or not hasattr(found, "from_saved"):
        raise ModelFileError("the model is of a kind that this goodfence does not know; upgrade it")
    model: FittedRecommender = found.from_saved(settings, arrays)
    return model


@contextmanager
def refusing(text: str) -> Iterator[None]:
    """Turn any error caused by the content of a file into one sentence."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception:
        raise ModelFileError(text) from None


def write_model(path: str | PathLike[str], kind: str, settings: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a model to the file `path`, a new one readable by its owner only; only a saved model is replaced."""
    target = place(path, "path")
    check_replaceable(target)
    bound = {**arrays, _BOUND: settings_digest(kind, settings)}
    manifest = {"format": FORMAT, "goodfence": goodfence.__version__, "kind": kind}
    manifest |= {"settings": dict(settings), "arrays": array_statements(bound)}
    try:
        with atomic_write(target, mode=0o600) as file:
            pack_model(file, manifest_text(manifest).encode(), bound)
    except OSError as problem:
        cause = problem.strerror or type(problem).__name__
        raise ModelFileError(f"the model could not be written ({cause}); what was there before is unchanged") from None


def settings_digest(kind: str, settings: Mapping[str, Any]) -> npt.NDArray[np.uint8]:
    """Return the digest that binds arrays to the settings that they were fitted with."""
    return np.frombuffer(bytes.fromhex(_digest([kind, settings])), dtype=np.uint8)


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def array_statements(arrays: Arrays) -> dict[str, dict[str, Any]]:
    """Return what a manifest states about each array: its type, its shape and the checksum of its numbers."""
    return {
        name: {
            "type": array.dtype.newbyteorder("<").str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(_little_endian(array).data).hexdigest(),
        }
        for name, array in arrays.items()
    }


def _little_endian(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    kind = array.dtype.newbyteorder("<")
    if kind.str not in _KINDS:
        raise ModelFileError(f"an array cannot be saved: it holds {array.dtype}")
    return np.ascontiguousarray(array, dtype=kind)


def pack_model(file: BinaryIO, manifest: bytes, arrays: Arrays) -> None:
    """Write a manifest and arrays as a stored zip: the same bytes for the same content."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_MANIFEST), manifest)
        for name, array in arrays.items():
            large = array.nbytes >= 2**31
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=large) as member:
                np.lib.format.write_array(member, _little_endian(array), version=(1, 0), allow_pickle=False)


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return a manifest as it is written, with its checksum."""
    whole = {**manifest, "sha256": manifest_checksum(manifest)}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def manifest_checksum(manifest: Mapping[str, Any]) -> str:
    """Return the sha256 of everything that a manifest states except this checksum."""
    return _digest({key: manifest[key] for key in manifest if key != "sha256"})


def read_model(
    path: str | PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES
) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the kind, the settings and the arrays (read-only, as the manifest states) of the model in a file."""
    check_limit(max_bytes)
    packed = _read_file(place(path, "path"), max_bytes)
    with refusing(_DAMAGED):
        text, arrays = unpack_model(packed)
    manifest = _parsed(text)
    with refusing("the manifest of the model lacks a part; save the model again"):
        kind, settings, stated = (manifest[key] for key in ("kind", "settings", "arrays"))
        settings = dict(settings)
    with refusing("the arrays of the model are not the ones that its manifest states; refused"):
        _require(array_statements(arrays) == stated)
    with refusing("the arrays were not fitted with the settings of the model; refused"):
        _require(arrays.pop(_BOUND).tobytes() == settings_digest(kind, settings).tobytes())
    _check_memory(len(packed), arrays, max_bytes)
    return str(kind), settings, arrays


def _check_memory(size: int, arrays: Arrays, max_bytes: int) -> None:
    """Refuse a model that would take more memory than is allowed, before it is built."""
    needed = 2 * size + _RATING_BYTES * len(arrays.get("data", ()))
    for name, array in arrays.items():
        needed += _ID_BYTES * len(array) * name.endswith(("users", "items", "_starts"))
        needed += _TEXT_BYTES * array.size * name.endswith("_bytes")
    _limit(needed, max_bytes, "of memory")


def _limit(needed: int, most: int, what: str) -> None:
    if needed > most:
        raise ModelFileError(f"the model takes more than {readable(most)} {what}; raise max_bytes (--max-bytes)")


def check_replaceable(path: Path) -> None:
    """Raise `ModelFileError` if anything but a saved model is at `path`."""
    if not os.path.lexists(path):
        return
    try:
        with _opened(path) as file:
            _require(file.read(30 + len(_BEGINNING))[30:] == _BEGINNING)
    except (ModelFileError, OSError, ValueError):
        raise ModelFileError("the path exists and is not a saved model; choose another path, or remove it") from None


def _opened(path: Path) -> BinaryIO:
    """Open an ordinary file; a pipe, a device or a folder is refused, and nothing is waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        opened, old = os.open(path, flags), (path / _MANIFEST).is_file()
    except FileNotFoundError:
        raise ModelFileError("there is no saved model at that path") from None
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the name
        raise _unreadable(problem) from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        if old:
            raise ModelFileError("the model was saved by goodfence 0.2, as a folder; fit it again")
        raise ModelFileError("a saved model is one ordinary file, and this path is none; refused")
    return os.fdopen(opened, "rb")


def _unreadable(problem: OSError | ValueError) -> ModelFileError:
    cause = getattr(problem, "strerror", None) or type(problem).__name__
    return ModelFileError(f"the model cannot be read ({cause}); save the model again")


def _read_file(path: Path, most: int) -> bytes:
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        _limit(size, most, "on the disk")
        try:
            content = file.read(size + 1)  # one more: it may have grown
        except OSError as problem:
            raise _unreadable(problem) from None
    if len(content) != size:
        raise ModelFileError("the file of the model changed while it was read; load it again")
    return content


def _parsed(written: bytes) -> dict[str, Any]:
    """Return the manifest, of this format and with its own checksum."""
    with refusing("the manifest of the model cannot be read; save the model again"):
        # int("NaN") raises: JSON has no such number.
        manifest: dict[str, Any] = json.loads(written.decode("utf-8"), parse_constant=int, object_pairs_hook=each_once)
        version, checksum = manifest.get("format"), manifest_checksum(manifest)
    if type(version) is not int or version != FORMAT:
        older = type(version) is int and version < FORMAT
        age, cure = ("an older", "fit the model again") if older else ("a newer", "upgrade goodfence")
        raise ModelFileError(f"the saved model has {age} format, this goodfence reads {FORMAT}; {cure}")
    if checksum != manifest.get("sha256"):
        raise ModelFileError("the manifest of the model was changed; save the model again")
    return manifest


def unpack_model(packed: bytes) -> tuple[bytes, dict[str, npt.NDArray[Any]]]:
    """Return the manifest and the arrays of a file that `pack_model` wrote, without a copy; anything else raises."""
    # No header is evaluated and nothing is inflated. The members must fill the file up to its directory, one after the
    # other, each with a name of its own and the crc that is stated; each shape must fill its member exactly.
    mark, *_, count, size, _, comment = struct.unpack("<4s4H2LH", packed[-22:])
    # A large directory would take long to read, and a model has a few arrays.
    _require(mark == b"PK\x05\x06" and not comment)
    _require(count <= _MOST_MEMBERS and size <= _LARGEST_DIRECTORY)
    _require(packed[-42:-38] != b"PK\x06\x07" or len(packed) >= 2**31)  # 64 bits without need
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        first, *rest = archive.infolist()
        start, end = _member(packed, first, 0)
        _require(first.filename == _MANIFEST and end - start <= LARGEST_MANIFEST)
        manifest, found = packed[start:end], {}
        for member in rest:
            name = member.filename.removesuffix(".npy")
            _require(name not in found and name != member.filename)
            start, end = _member(packed, member, end)
            found[name] = _array(packed, start, end)
        _require(end == archive.start_dir)
    return manifest, found


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


def _member(packed: bytes, member: zipfile.ZipInfo, at: int) -> tuple[int, int]:
    """Return where the content of the member whose header is `at` begins and ends."""
    name = member.filename.encode()
    n_name, n_extra = struct.unpack_from("<HH", packed, at + 26)
    begin = at + 30 + n_name + n_extra
    end = begin + member.file_size
    header = packed[at : at + 4] == b"PK\x03\x04" and packed[at + 30 : at + 30 + n_name] == name
    stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits
    sized = member.compress_size == member.file_size and end <= len(packed)
    _require(member.header_offset == at and header and stored and sized)
    _require(zlib.crc32(memoryview(packed)[begin:end]) == member.CRC)
    return begin, end


def _array(packed: bytes, begin: int, end: int) -> npt.NDArray[Any]:
    header = _HEADER.match(packed, begin, end)
    if header is None:
        raise ValueError
    length, spelt, sizes = header.groups()
    kind, data = np.dtype(_KINDS[spelt.decode()]).newbyteorder("<"), header.end()
    shape = tuple(int(size) for size in sizes.replace(b",", b" ").split())
    _require(len(shape) in (1, 2) and max(shape) < _LONGEST)
    count = math.prod(shape)
    _require(int.from_bytes(length, "little") == data - begin - 10)
    _require(count * kind.itemsize == end - data)
    stored = np.frombuffer(packed, kind, count, data).reshape(shape)
    array = np.require(stored, kind.newbyteorder("="), ["ALIGNED"])  # a copy only where it must be
    array.flags.writeable = False
    return array


def encode_ids(name: str, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return ids as plain arrays: integers as they are, text as bytes and where each begins."""
    if values.dtype != object:
        return {name: values}
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {f"{name}_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}_starts": starts}


def decode_ids(name: str, arrays: Arrays) -> npt.NDArray[Any]:
    """Return the ids that `encode_ids` wrote; what it cannot have written raises."""
    plain = name in arrays
    encoded, kind = (arrays[name], np.int64) if plain else (arrays[f"{name}_bytes"], np.uint8)
    if encoded.dtype != kind or encoded.ndim != 1:
        raise ModelFileError(f"the {name} of the model must be integers or text")
    if plain:
        return encoded
    starts = arrays[f"{name}_starts"]
    check_starts(starts, len(encoded), f"the {name} of the model")
    data = encoded.tobytes()
    values = np.empty(len(starts) - 1, dtype=object)
    values[:] = [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts.tolist())]
    return values


def pack_ratings(ratings: Ratings) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the settings and the arrays that hold `ratings`."""
    csr = ratings.csr
    titles = np.empty(csr.shape[1], dtype=object)
    titles[:] = [ratings.titles.get(item, "") for item in ratings.items.tolist()]
    arrays = {"indptr": csr.indptr, "indices": csr.indices, "data": csr.data}
    arrays |= encode_ids("users", ratings.users) | encode_ids("items", ratings.items)
    if ratings.titles:
        arrays |= encode_ids("titles", titles)
    stated = {"feedback": ratings.feedback, "liked_from": ratings.liked_from}
    usual = (None, "explicit")  # when it happened is not saved: no model asks
    how = {key: value for key, value in stated.items() if value not in usual}
    return {"shape": list(csr.shape), "scale": asdict(ratings.scale), **how}, arrays


def unpack_ratings(settings: dict[str, Any], arrays: Arrays) -> Ratings:
    """Return the ratings that `pack_ratings` packed, or say that they are not sound."""
    with refusing("the ratings inside the model are not sound; save the model again"):
        users, items = decode_ids("users", arrays), decode_ids("items", arrays)
        shape = (len(users), len(items))
        data, indices, starts = (arrays[name] for name in ("data", "indices", "indptr"))
        _require(settings["shape"] == list(shape) and data.dtype == np.float64 and data.ndim == 1)
        check_csr(starts, indices, len(data), shape)
        csr = sparse.csr_array((data, indices, starts), shape=shape)
        titles: dict[Any, str] = {}
        if "titles_bytes" in arrays:
            pairs = zip(items.tolist(), decode_ids("titles", arrays).tolist(), strict=True)
            titles = {item: title for item, title in pairs if title}
        how = {key: settings[key] for key in ("feedback", "liked_from") if key in settings}
        return Ratings(csr, users, items, Scale(**settings["scale"]), titles, **how)
