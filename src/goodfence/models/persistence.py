"""Saved models: a folder with `manifest.json` and `arrays.npz`, written atomically, never pickle.

A saved recommender holds the ratings it needs to answer. Keep it as you keep the ratings themselves.

A file is read once: what was hashed is what is parsed. Nothing in it is believed: not its checksums, which whoever
changed it can compute too, but what each array must be, and that the statements about a fit agree with each other.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

import goodfence
from goodfence.data.files import DEFAULT_MAX_BYTES, atomic_folder, check_limit, readable
from goodfence.data.ratings import Ratings, check_csr, check_starts
from goodfence.data.scale import Scale
from goodfence.errors import GoodfenceError, ModelFileError
from goodfence.registry import find_kind
from goodfence.settings import place

if TYPE_CHECKING:
    from goodfence.models.recommender import Recommender

FORMAT = 2
"""The version of the layout; a reader refuses any other."""
LARGEST_MANIFEST = 2**20
"""The manifest holds settings only: a few thousand bytes."""

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
_MANIFEST = "manifest.json"
_ARRAYS = "arrays.npz"
_BOUND = "settings_sha256"
"""The array that says which settings the others were fitted with."""
_KINDS = {"<f8": np.float64, "<i8": np.int64, "<i4": np.int32, "|u1": np.uint8}
"""The only kinds of numbers in a saved model, as the format spells them."""
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z][0-9])', 'fortran_order': False, 'shape': \(([0-9, ]{0,60})\), \} *\n"
)
_MOST_ARRAYS, _LARGEST_DIRECTORY, _LONGEST, _LARGE = 64, 2**16, 2**31, 2**31
_RATING_BYTES, _ID_BYTES, _TEXT_BYTES = 40, 200, 4
"""What a rating, an id and a byte of text take beyond the file, once the model has been asked."""
_TRIES = 50
M = TypeVar("M")


def load_model(path: str | PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES) -> Recommender:
    """Return the fitted recommender that was saved in the folder `path`, whichever it is.

    Parameters
    ----------
    path : str or path
        The folder.
    max_bytes : int, default 2 GiB
        How much memory the model may take; one that declares more is refused before it is built.
    """
    kind, settings, arrays = read_model(path, max_bytes=max_bytes)
    found = find_kind(kind)
    if found is None or not hasattr(found, "from_saved"):
        raise ModelFileError("the model is of a kind that this goodfence does not know; upgrade it")
    with refusing("the model's settings are not sound; save the model again"):
        model: Recommender = found.from_saved(settings, arrays)
    return model


def load_as(kind: type[M], path: str | PathLike[str]) -> M:
    """Return the recommender that was saved in `path`, which must be of this kind."""
    model = load_model(path)
    if not isinstance(model, kind):
        raise ModelFileError(f"the saved model is a {type(model).__name__}, not a {kind.__name__}")
    return model


@contextmanager
def refusing(text: str) -> Iterator[None]:
    """Turn whatever goes wrong with what a file says into one sentence: it was written by somebody else."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception:
        raise ModelFileError(text) from None


def write_model(
    path: str | PathLike[str], kind: str, settings: Mapping[str, Any], arrays: Arrays
) -> None:
    """Write a model's settings and arrays to the folder `path`, readable by its owner only.

    A saved model that is there is replaced; anything else that is there, or in its folder, is an error.
    """
    folder = place(path, "path")
    if os.path.lexists(folder) and not is_model_folder(folder):
        raise ModelFileError(
            "the path exists and is not a saved model and nothing else; choose another, or remove it"
        )
    try:
        with atomic_folder(folder, ours=is_model_folder, mode=0o700) as partial:
            bound = {**arrays, _BOUND: settings_digest(kind, settings)}
            with (partial / _ARRAYS).open("xb+") as file:
                pack_arrays(bound, file)
                file.seek(0)
                checksum = hashlib.file_digest(file, "sha256").hexdigest()
            shapes = {name: list(array.shape) for name, array in bound.items()}
            stated = {"file": _ARRAYS, "sha256": checksum, "shapes": shapes}
            told = {"format": FORMAT, "goodfence": goodfence.__version__, "kind": kind}
            manifest = told | {"settings": dict(settings), "arrays": stated}
            (partial / _MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    except OSError as problem:
        cause = problem.strerror or type(problem).__name__
        raise ModelFileError(
            f"the model could not be written ({cause}); what was there before is unchanged"
        ) from None


def settings_digest(kind: str, settings: Mapping[str, Any]) -> npt.NDArray[np.uint8]:
    """Return what binds arrays to the settings that they were fitted with: of another fit's manifest it is another."""
    text = json.dumps([kind, settings], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint8)


def is_model_folder(folder: Path) -> bool:
    """Return whether a folder holds a saved model and nothing else."""
    try:
        names = {path.name for path in folder.iterdir()}
        if names != {_MANIFEST, _ARRAYS}:
            return False
        stated = _parsed(_read_file(folder / _MANIFEST, None, LARGEST_MANIFEST))
    except (OSError, GoodfenceError):
        return False
    return {"format", "goodfence", "kind", "settings", "arrays"} <= set(stated)


def pack_arrays(arrays: Arrays, file: BinaryIO) -> None:
    """Write the arrays as an npz file: nothing compressed, nothing pickled, the same bytes for the same arrays."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            kind = array.dtype.newbyteorder("<")
            if kind.str not in _KINDS:
                raise ModelFileError(f"the array {name!r} cannot be saved: it holds {array.dtype}")
            plain, large = np.ascontiguousarray(array, dtype=kind), array.nbytes >= _LARGE
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=large) as member:
                np.lib.format.write_array(member, plain, version=(1, 0), allow_pickle=False)


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return a manifest as it is written, with its checksum."""
    whole = {**manifest, "sha256": manifest_checksum(manifest)}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def manifest_checksum(manifest: Mapping[str, Any]) -> str:
    """Return the sha256 of everything that a manifest states but this checksum itself."""
    stated = {key: value for key, value in manifest.items() if key != "sha256"}
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_model(
    path: str | PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES
) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the kind, the settings and the arrays of the model in the folder `path`.

    The arrays are read-only, of the shapes that the manifest states, and of four kinds: float64, int64, int32, uint8.
    """
    check_limit(max_bytes)
    manifest, packed = _read_folder(place(path, "path"), max_bytes)
    with refusing("the manifest of the model lacks a part; save the model again"):
        stated = manifest["arrays"]
        kind, settings = manifest["kind"], dict(manifest["settings"])
        checksum, shapes = stated["sha256"], dict(stated["shapes"])
    if hashlib.sha256(packed).hexdigest() != checksum:
        raise ModelFileError(
            "the arrays of the model are damaged or truncated; save the model again"
        )
    with refusing("the manifest of the model cannot be read; save the model again"):
        unchanged = manifest_checksum(manifest) == manifest.get("sha256")
    if not unchanged:
        raise ModelFileError("the manifest of the model was changed; save the model again")
    with refusing("the arrays of the model cannot be read; save the model again"):
        arrays = unpack_arrays(packed)
    if {name: list(array.shape) for name, array in arrays.items()} != shapes:
        raise ModelFileError("the arrays of the model do not have the shapes its manifest states")
    with refusing(
        "the arrays of the model were not fitted with the settings of its manifest; refused"
    ):
        if arrays.pop(_BOUND).tobytes() != settings_digest(kind, settings).tobytes():
            raise ValueError
    _check_memory(len(packed), arrays, max_bytes)
    return str(kind), settings, arrays


def _check_memory(size: int, arrays: Arrays, max_bytes: int) -> None:
    """Refuse what would take more memory than is allowed, before anything is made of it."""
    needed = 2 * size + _RATING_BYTES * len(arrays.get("data", ()))
    for name, array in arrays.items():
        needed += _ID_BYTES * len(array) * name.endswith(("users", "items", "_starts"))
        needed += _TEXT_BYTES * array.size * name.endswith("_bytes")
    if needed > max_bytes:
        raise ModelFileError(
            f"the model must take at most {readable(max_bytes)} of memory, and would take more; "
            "raise the limit with max_bytes (--max-bytes)"
        )


def _read_folder(folder: Path, max_bytes: int) -> tuple[dict[str, Any], bytes]:
    """Return the manifest and the bytes of the arrays, of one and the same saved model."""
    for _ in range(_TRIES):
        opened = _open_folder(folder)
        try:
            manifest = _parsed(_read_file(folder / _MANIFEST, opened, LARGEST_MANIFEST))
            _check_layout(manifest)
            return manifest, _read_file(folder / _ARRAYS, opened, max_bytes)
        except FileNotFoundError as problem:
            if not _was_replaced(folder, opened):
                text = "the arrays of the model are missing; save the model again"
                if Path(str(problem.filename)).name == _MANIFEST:
                    text = "the folder is not a saved model: it has no manifest.json"
                raise ModelFileError(text) from None
        finally:
            if opened is not None:
                os.close(opened)
    raise ModelFileError("the model is replaced all the time; load it when nobody writes it")


def _open_folder(folder: Path) -> int | None:
    """Return the folder, opened: what is read through it is of one save, whoever replaces it meanwhile."""
    try:
        there = folder.is_dir()
    except (OSError, ValueError):  # a name that is too long, or with a NUL in it
        there = False
    if not there:
        raise ModelFileError("there is no saved model at that path (a model is a folder)")
    if os.open not in os.supports_dir_fd:
        return None
    try:
        return os.open(folder, os.O_RDONLY)
    except OSError as problem:
        raise _unreadable(problem) from None


def _was_replaced(folder: Path, opened: int | None) -> bool:
    try:
        return opened is not None and not os.path.samestat(os.fstat(opened), folder.stat())
    except OSError:
        return True


def _unreadable(problem: OSError) -> ModelFileError:
    cause = problem.strerror or type(problem).__name__
    return ModelFileError(f"the model cannot be read ({cause}); save the model again")


def _read_file(path: Path, folder: int | None, most: int) -> bytes:
    """Return all bytes of an ordinary file; a pipe, a device, a link or a larger file is not one of a model."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    flags |= getattr(os, "O_BINARY", 0)
    try:
        opened = os.open(path if folder is None else path.name, flags, dir_fd=folder)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as problem:
        raise _unreadable(problem if isinstance(problem, OSError) else OSError()) from None
    status = os.fstat(opened)
    if not stat.S_ISREG(status.st_mode):
        os.close(opened)
        raise ModelFileError("the files of a model must be ordinary ones; refused")
    with os.fdopen(opened, "rb") as file:
        if status.st_size > most:
            raise ModelFileError(
                f"a file of the model must be at most {readable(most)}, and is more; "
                "raise the limit with max_bytes (--max-bytes)"
            )
        try:
            content = file.read(status.st_size + 1)  # one more: it may have grown
        except OSError as problem:
            raise _unreadable(problem) from None
    if len(content) != status.st_size:
        raise ModelFileError("a file of the model changed while it was read; load it again")
    return content


def _check_layout(manifest: Mapping[str, Any]) -> None:
    """Refuse another format, and arrays that are not in the one file of this folder."""
    version = manifest.get("format")
    if type(version) is not int or version > FORMAT:
        raise ModelFileError(
            f"the model was saved in a newer format than this goodfence reads ({FORMAT}); upgrade goodfence"
        )
    if version < FORMAT:
        raise ModelFileError(
            f"the model was saved in an older format than this goodfence reads ({FORMAT}); fit and save it again"
        )
    with refusing("the manifest of the model lacks a part; save the model again"):
        name = manifest["arrays"]["file"]
    if name != _ARRAYS:
        raise ModelFileError(
            f"the arrays of the model must be in its own folder, in {_ARRAYS}; what the manifest names is outside it"
        )


def _parsed(written: bytes) -> dict[str, Any]:
    with refusing("the manifest of the model cannot be read; save the model again"):
        # int("NaN") raises: JSON has no such number.
        manifest = json.loads(written.decode("utf-8"), parse_constant=int, object_pairs_hook=_once)
    if not isinstance(manifest, dict):
        raise ModelFileError("the manifest of the model is not an object; save the model again")
    return manifest


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def unpack_arrays(packed: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an npz file as `pack_arrays` writes it, without a copy; anything else raises.

    No header is evaluated, nothing is inflated, no two arrays share bytes, and no shape is believed: each must fill
    its part of the file exactly.
    """
    mark, *_, count, size, _, comment = struct.unpack("<4s4H2LH", packed[-22:])
    # A large directory would take long to read, and a model has a few arrays.
    if mark != b"PK\x05\x06" or comment or count > _MOST_ARRAYS or size > _LARGEST_DIRECTORY:
        raise ValueError
    if packed[-42:-38] == b"PK\x06\x07" and len(packed) < 2**32 - 1:  # 64 bits without need
        raise ValueError
    found: dict[str, npt.NDArray[Any]] = {}
    end = 0
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    for member in members:
        name = member.filename.removesuffix(".npy")
        plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
        start = member.header_offset
        if not plain or name in found or name == member.filename or start < end:
            raise ValueError
        begin = start + 30 + sum(struct.unpack_from("<HH", packed, start + 26))
        end = begin + member.file_size
        if packed[start : start + 4] != b"PK\x03\x04" or end > len(packed):
            raise ValueError
        found[name] = _array(packed, begin, end)
    return found


def _array(packed: bytes, begin: int, end: int) -> npt.NDArray[Any]:
    if packed[begin : begin + 8] != b"\x93NUMPY\x01\x00":
        raise ValueError
    data = begin + 10 + struct.unpack_from("<H", packed, begin + 8)[0]
    header = _HEADER.fullmatch(packed[begin + 10 : data])
    if header is None:
        raise ValueError
    kind = np.dtype(_KINDS[header[1].decode()]).newbyteorder("<")
    shape = tuple(int(size) for size in header[2].replace(b",", b" ").split())
    if len(shape) not in (1, 2) or max(shape) >= _LONGEST:
        raise ValueError
    count = math.prod(shape)
    if count * kind.itemsize != end - data:
        raise ValueError
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
    return {
        f"{name}_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}_starts": starts,
    }


def decode_ids(name: str, arrays: Arrays) -> npt.NDArray[Any]:
    """Return the ids that `encode_ids` wrote; what it cannot have written raises."""
    if name in arrays:
        if arrays[name].ndim != 1 or arrays[name].dtype != np.int64:
            raise ModelFileError(f"the {name} of the model must be integers or text")
        return arrays[name]
    encoded, starts = arrays[f"{name}_bytes"], arrays[f"{name}_starts"]
    if encoded.dtype != np.uint8 or encoded.ndim != 1:
        raise ModelFileError(f"the {name} of the model must be integers or text")
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
    settings: dict[str, Any] = {
        "shape": list(csr.shape),
        "scale": dataclasses.asdict(ratings.scale),
    }
    if ratings.feedback == "implicit":  # when it happened is not saved: no model asks
        settings["feedback"] = ratings.feedback
        if ratings.liked_from is not None:
            settings["liked_from"] = ratings.liked_from
    return settings, arrays


def unpack_ratings(settings: dict[str, Any], arrays: Arrays) -> Ratings:
    """Return the ratings that `pack_ratings` packed, or say that they are not sound."""
    with refusing("the ratings inside the model are not sound; save the model again"):
        users, items = decode_ids("users", arrays), decode_ids("items", arrays)
        shape = (len(users), len(items))
        if settings["shape"] != list(shape):
            raise ValueError
        data, indices, starts = (arrays[name] for name in ("data", "indices", "indptr"))
        if data.dtype != np.float64 or data.ndim != 1:
            raise ValueError
        check_csr(starts, indices, len(data), shape)
        csr = sparse.csr_array((data, indices, starts), shape=shape)
        titles: dict[Any, str] = {}
        if "titles_bytes" in arrays:
            pairs = zip(items.tolist(), decode_ids("titles", arrays).tolist(), strict=True)
            titles = {item: title for item, title in pairs if title}
        stated = settings["scale"]
        numbers = [stated["lowest"], stated["highest"]]
        numbers += [] if stated["step"] is None else [stated["step"]]
        typed = all(type(number) in (int, float) for number in numbers)
        if not typed or type(stated["declared"]) is not bool:
            raise ValueError
        feedback, least = settings.get("feedback", "explicit"), settings.get("liked_from")
        if least is not None and type(least) not in (int, float):
            raise ValueError
        how: dict[str, Any] = {"feedback": feedback, "liked_from": least}
        return Ratings(csr, users, items, Scale(**stated), titles, **how)
