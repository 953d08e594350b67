"""Inputs for the readers and the model loader that reach code nobody reached before, found by chance and kept.

A seed is a file. Its ending says what reads it: the readers of ratings, the reader of item lists (`.list`), or the
loader of saved models (`.model`, a zip as a saved model is, which is written with checksums that fit). A seed is
changed a little and tried; where it executes a line after a line that no seed executed before, it is a new seed.

python -m tests.support.fuzzing CORPUS FOUND NUMBER SECONDS     fuzz until so much processor time is spent
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import random
import re
import signal
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import goodfence as gf
from goodfence.data.frame import ReadOptions
from goodfence.data.load import read_item_list
from goodfence.data.problems import count_problems
from goodfence.errors import DataError, GoodfenceError, ModelFileError
from goodfence.models.persistence import array_statements, load_model, manifest_checksum, settings_digest
from tests.support.flipped_bits import originals as good_files
from tests.support.hostile_models import ask
from tests.support.hostile_models import originals as good_models
from tests.support.model_files import BOUND, MANIFEST, as_npy, members, zipped
from tests.support.odd_files import odd_file

SEEDS = Path(__file__).parent / "seeds"
LIMIT = 64 * 2**20
"""What reading or loading may take in memory, within `FACTOR`."""
FACTOR = 1.5
LONGEST = 20
"""Seconds of processor that one new input may take."""
LARGEST = 2**15
"""Bytes of a seed."""
CANARY = "Quark"
"""In many ids; no message may repeat it."""
GOOD = ("read", "refused")
_SAVED = ("<f8", "<i8", "<i4", "|u1")
_PACKAGE = str(Path(gf.__file__).parent)

WORDS = [
    *(b",", b";", b"\t", b"|", b"::", b" ", b"\n", b"\r", b"\r\n", b'"', b'""', b"'", b"\0", b"\xff", b"\xef\xbb\xbf"),
    *(b"nan", b"inf", b"-inf", b"1e309", b"1e-400", b"0x10", b"1_0", b"+1", b"-0", b"1.", b".5", b"1,5", b"9" * 25),
    *(b"9007199254740993", b"9223372036854775808", b"\xff\xfe", b"\xc3\xa9", b"\xe2\x80\xa8", b"\x1a", b"\x1f", b"#"),
    *(b"userId,movieId,rating\n", b"user", b"item", b"rating", b"timestamp", b"1:\n", b"null", b"true", b"[", b"]"),
    *(b"{", b"}", b'{"user": 1, "item": 2, "rating": 3}\n', b'"rating": ', b"PAR1", b"\x1f\x8b\x08", b"[[[[", b"None"),
    *(b"\\", b"\\u0000", b"\\ud800", b"2014-01-01", b"12:30", b"<i4", b"<f8", b"|O", b"|S1", b"<U9", b"(0,)", b"(-1,)"),
]  # fmt: skip


def judged(path: Path) -> str:
    """Return what came of a file: read, refused, or what was wrong."""
    attempts: list[Callable[[], object]] = [lambda: read(path)]
    if path.suffix not in (".list", ".model"):
        attempts.append(lambda: count_problems(path, ReadOptions(max_bytes=LIMIT)))
        attempts.append(lambda: gf.load(path, feedback="implicit", read=ReadOptions(max_bytes=LIMIT)))
    told = "read"
    for attempt in attempts:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                attempt()
        except (DataError, ModelFileError) as problem:
            told = "refused"
            header = path.read_bytes().split(b"\n", 1)[0]
            if CANARY in str(problem) and CANARY.encode() not in header:
                return "an id in the message"
        except GoodfenceError as problem:
            return f"another error, {type(problem).__name__}"
        except Exception as problem:
            return f"raw {type(problem).__name__}"
    return told


def read(path: Path) -> None:
    """Read a file by its ending, and ask what was read."""
    if path.suffix == ".list":
        read_item_list(path, LIMIT)
        return
    if path.suffix == ".model":
        with tempfile.TemporaryDirectory() as folder:
            saved(path.read_bytes(), Path(folder, "model.gf"))
            model = load_model(Path(folder, "model.gf"), max_bytes=LIMIT)
            model.guarantee()
            ask(model)
        return
    ratings = gf.load(path, read=ReadOptions(max_bytes=LIMIT))
    assert ratings.csr.has_canonical_format
    assert np.isfinite(ratings.csr.data).all()
    assert ratings.csr.shape == (len(ratings.users), len(ratings.items))


def saved(packed: bytes, place: Path) -> None:
    """Write what a `.model` holds as a saved model, with checksums that fit."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = parts.pop(MANIFEST)
    try:
        stated = json.loads(manifest)
    except (ValueError, RecursionError):
        stated = None
    if isinstance(stated, dict):
        with contextlib.suppress(KeyError, TypeError, ValueError, RecursionError):
            digest = settings_digest(stated["kind"], stated["settings"])
            parts[f"{BOUND}.npy"] = as_npy(digest)
        if isinstance(stated.get("arrays"), dict):
            stated["arrays"] = _statements(parts)
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            stated["sha256"] = manifest_checksum(stated)
            manifest = json.dumps(stated).encode("utf-8", "surrogatepass")
    place.write_bytes(zipped({MANIFEST: manifest, **parts}))


def _statements(parts: dict[str, bytes]) -> dict[str, Any]:
    """Return what a manifest must state about the arrays that can be read."""
    arrays = {}
    for name, content in parts.items():
        with contextlib.suppress(ValueError, TypeError, SyntaxError, EOFError, MemoryError):
            arrays[name.removesuffix(".npy")] = np.load(io.BytesIO(content), allow_pickle=False)
    return array_statements({name: a for name, a in arrays.items() if a.dtype.str in _SAVED})


def first_seeds() -> Iterator[tuple[str, bytes]]:
    """Yield good files and models of every kind: ending and content."""
    for name, content in good_files().items():
        yield "".join(Path(name).suffixes), content
    for number in range(60):
        odd = odd_file(number)
        yield "".join(Path(odd.name).suffixes), odd.content
    yield ".list", f"{CANARY}-1\n\n 2 \ntt3\n".encode()
    with tempfile.TemporaryDirectory() as folder:
        for model in good_models(Path(folder)):
            place = Path(folder, model.name.replace(", ", "-"))
            yield ".model", zipped(members(place), zipfile.ZIP_DEFLATED)


class Lines:
    """Which line of the package was executed after which, while it looks."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int, int]] = set()
        self.new: set[tuple[CodeType, int, int]] = set()

    def __enter__(self) -> Lines:
        self.new = set()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            return None
        last = 0
        seen, new = self.seen, self.new

        def line(frame: FrameType, _event: str, _argument: object) -> Any:
            nonlocal last
            step = (code, last, frame.f_lineno)
            if step not in seen:
                seen.add(step)
                new.add(step)
            last = frame.f_lineno
            return line

        return line


def changed(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """Return bytes a little different: flipped, cut, doubled, spliced, with a word or a number in them."""
    made = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 3, 6])):
        at = chance.randrange(len(made) + 1)
        length = min(chance.choice([1, 1, 2, 4, 8, 40]), len(made) - at)
        match chance.randrange(9):
            case 0 if length:
                made[at] ^= 1 << chance.randrange(8)
            case 1 if length:
                made[at] = chance.choice([0, 1, 127, 128, 255, 9, 10, 13, 32, 34, 44, 48])
            case 2:
                del made[at : at + length]
            case 3:
                made[at:at] = made[at : at + length] * chance.choice([1, 1, 2, 50])
            case 4:
                made[at : at + length * chance.randrange(2)] = chance.choice(WORDS)
            case 5 if other:
                start = chance.randrange(len(other))
                piece = other[start : start + chance.choice([1, 4, 20, 200])]
                made[at : at + len(piece) * chance.randrange(2)] = piece
            case 6:
                _renumber(made, chance)
            case 7:
                lines = made.split(b"\n")
                lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
                made = bytearray(b"\n".join(lines))
            case _:
                one = chance.randrange(len(made) + 1)
                low, high = min(one, at), max(one, at)
                if high - low < 64 or chance.random() < 0.1:
                    del made[low:high]
    return bytes(made[:LARGEST])


def _renumber(made: bytearray, chance: random.Random) -> None:
    """Put another number where one is."""
    numbers = list(re.finditer(rb"-?\d+(\.\d+)?", made))
    if not numbers:
        return
    found = chance.choice(numbers)
    old = found[0]
    near = b"%d" % (int(float(old)) + chance.choice([-1, 1])) if len(old) < 15 else old
    odd = (b"0", b"-1", b"2147483648", b"4294967296", b"18446744073709551616", b"1e308", b"0.1")
    made[found.start() : found.end()] = chance.choice([near, near, *odd])


def mutated(ending: str, content: bytes, other: bytes, chance: random.Random) -> bytes:
    """Return a seed a little different; what is packed is unpacked first, mostly."""
    if ending == ".model":
        return _model_mutated(content, other, chance)
    if ending.endswith(".gz") and chance.random() < 0.9:
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return gzip.compress(changed(gzip.decompress(content), other, chance), mtime=0)
    return changed(content, other, chance)


def _model_mutated(content: bytes, other: bytes, chance: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    donor = dict(parts)
    if other[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(other)) as archive:
            donor = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(parts)
    name = chance.choice(names) if chance.random() < 0.6 else MANIFEST
    kind = chance.random()
    if kind < 0.08 and name != MANIFEST:
        del parts[name]
    elif kind < 0.2:
        parts[name] = donor.get(name, parts[name])
    elif kind < 0.6 and name == MANIFEST:
        parts[name] = _manifest_mutated(parts[name], donor[MANIFEST], chance)
    else:
        parts[name] = changed(parts[name], donor.get(name, b""), chance)
    return zipped(parts, zipfile.ZIP_DEFLATED)


def _manifest_mutated(text: bytes, other: bytes, chance: random.Random) -> bytes:
    """Return a manifest with one value replaced, by an odd one or by one from anywhere in another."""
    try:
        stated, donor = json.loads(text), json.loads(other)
    except (ValueError, RecursionError):
        return changed(text, other, chance)
    if not isinstance(stated, dict | list) or not isinstance(donor, dict | list):
        return changed(text, other, chance)
    places, values = list(_places(stated)), [value for _, _, value in _places(donor)]
    if not places:
        return text
    where, key, old = chance.choice(places)
    odd: list[Any] = [None, True, 0, -1, 2**63, 1e308, 0.5, "", "user", "x" * 300, [], {}, [old], {"a": old}]
    where[key] = chance.choice([chance.choice(odd), chance.choice(values or odd)])
    return json.dumps(stated).encode("utf-8", "surrogatepass")


def _places(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(pairs):
        yield value, key, part
        if isinstance(part, dict | list):
            yield from _places(part)


@dataclass
class Fuzzer:
    """Seeds in a folder, and what was found wrong in another."""

    corpus: Path
    found: Path
    chance: random.Random
    lines: Lines = field(default_factory=Lines)
    seeds: dict[str, list[bytes]] = field(default_factory=dict)
    n_tried: int = 0
    n_kept: int = 0

    def run(self, seconds: float) -> None:
        """Fuzz until so much processor time is spent."""
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, in whatever it is
        with tempfile.TemporaryDirectory() as folder:
            for path in sorted(self.corpus.iterdir()):
                self.tried(ending_of(path), path.read_bytes(), Path(folder), known=True)
            while time.process_time() < seconds:
                self.once(Path(folder))

    def once(self, folder: Path) -> None:
        """Change a seed, and try it."""
        ending = self._ending()
        some = self.seeds[ending]
        # What was found last leads on more often than what was there from the beginning.
        content = some[int(len(some) * self.chance.random() ** 0.5)]
        made = mutated(ending, content, self.chance.choice(some), self.chance)
        self.tried(ending, made, folder, known=False)

    def _ending(self) -> str:
        """Return an ending: text as often as parquet and models together."""
        shares = {".model": 6.0, ".parquet": 4.0, ".list": 0.3}
        endings = sorted(self.seeds)
        return self.chance.choices(endings, [shares.get(one, 2.0) for one in endings])[0]

    def tried(self, ending: str, content: bytes, folder: Path, *, known: bool) -> None:
        """Try one input; keep it if it leads to new lines, and report it if anything is wrong."""
        path = folder / f"a{ending}"
        path.write_bytes(content)
        (self.found / "current").write_bytes(ending.encode() + b"\n" + content)
        before = _peak(anew=True)
        if not known:  # the first seeds load libraries and compile kernels, which takes longer in a fresh clone
            signal.setitimer(signal.ITIMER_PROF, LONGEST)
        with self.lines as lines:
            told = judged(path)
        signal.setitimer(signal.ITIMER_PROF, 0)
        more = _peak(anew=False) - before
        if more > FACTOR * LIMIT and not known:  # those that are known also load libraries
            told = f"{more // 2**20} MiB"
        self.n_tried += not known
        if told not in GOOD:
            report(self.found, told, ending, content)
        if known or lines.new:
            self.seeds.setdefault(ending, []).append(content)
        if lines.new and not known:
            self.n_kept += 1
            write(self.corpus, ending, content)


def _peak(*, anew: bool) -> int:
    """Return the most memory that this process took, since it was measured anew."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


def ending_of(path: Path) -> str:
    """Return what of a seed's name says how it is read."""
    return "." + path.name.split(".", 1)[1]


def write(folder: Path, ending: str, content: bytes) -> Path:
    """Write a seed under a name that its content gives it."""
    path = folder / f"{hashlib.sha256(content).hexdigest()[:12]}{ending}"
    path.write_bytes(content)
    return path


def report(folder: Path, told: str, ending: str, content: bytes) -> None:
    """Keep an input with which something was wrong: once for each kind of wrong."""
    kind = folder / re.sub(r"\W+", "-", told)
    kind.mkdir(exist_ok=True)
    if len(list(kind.iterdir())) < 20:
        write(kind, ending, content)


def main() -> None:
    """Fuzz in this process, and print how much was tried."""
    corpus, found, number, seconds = sys.argv[1:]
    fuzzer = Fuzzer(Path(corpus), Path(found), random.Random(int(number)))
    fuzzer.run(float(seconds))
    told = {"tried": fuzzer.n_tried, "kept": fuzzer.n_kept, "steps": len(fuzzer.lines.seen)}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
