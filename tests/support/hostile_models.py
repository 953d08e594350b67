"""Saved models in hostile hands: structured and random mutations with checksums that fit, and what becomes of them.

A mutation must be refused in one sentence, or load as a model that answers, raises nothing raw, and guarantees no more
than was guaranteed. `tests/models/test_hostile_models.py` tries hundreds, `benchmarks/hostile_models.py` thousands.
"""

from __future__ import annotations

import copy
import json
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

import goodfence as gf
from goodfence.data.ratings import Ratings
from goodfence.errors import GoodfenceError, ModelFileError
from goodfence.models.persistence import array_statements, load_model, manifest_checksum, settings_digest
from goodfence.models.private.base import PrivateRecommender
from goodfence.privacy.guarantee import Guarantee
from tests.support.model_files import BOUND, packed, taken_apart

Manifest: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, Any]
MAX_BYTES = 2**26
"""How much memory a mutated model may take; the models themselves are of some kilobytes."""
_STRENGTH = {"none": 0, "refuted": 0, "claimed": 1, "proved": 2}


def _ratings(text: bool) -> Ratings:
    made = gf.synthetic(users=40, items=30, ratings=500, rng=3)
    if not text:
        return made
    users, items = ([f"{kind}{at}é" for at in range(n)] for kind, n in (("u", 40), ("i", 30)))
    titles = {item: f"Title of {item}" for item in items[::2]}
    return Ratings(sparse.csr_array(made.csr), users, items, made.scale, titles)


def unfitted() -> dict[str, tuple[Any, bool, bool]]:
    """Return models of every class, by a name: unfitted, whether on text ids, and whether saved with ratings."""
    rated: dict[str, Any] = {"items": "from ratings"}
    near: dict[str, Any] = {"recommender": gf.NeighbourCF(gf.KNN(k=4))}
    return {
        "knn": (gf.NeighbourCF(gf.KNN(k=4)), False, True),
        "knn, items": (gf.NeighbourCF(gf.KNN(k=4), axis="item", fallback="item_mean"), True, True),
        "accurate": (gf.NeighbourCF.accurate(), True, True),
        "centred": (gf.NeighbourCF(gf.KNN(k=3), center="user_mean", fallback="bias", min_neighbours=2), False, True),
        "npns": (gf.NeighbourCF(gf.NPNS(k=3, within=4), similarity="pearson", rng=2), False, True),
        "pncf": (gf.NeighbourCF(gf.PNCF(k=3, epsilon=0.5), over="neighbours"), True, True),
        "ppns": (gf.NeighbourCF(gf.PPNS(k=4, beta=3, allocation=(2, 1, 1))), False, True),
        "means": (gf.PrivateMeans(epsilon=3.0, **rated), False, True),
        "means, user": (gf.PrivateMeans(epsilon=3.0, unit="user", **rated), True, False),
        "means, seeded": (gf.PrivateMeans(epsilon=1.0, rng=4, **rated), True, True),
        "cf": (gf.PrivateCF(epsilon=3.0, plan="covariance", **rated), False, False),
        "cf, user": (gf.PrivateCF(epsilon=3.0, unit="user", plan="half_step", **rated), True, True),
        "cf, catalogue": (gf.PrivateCF(epsilon=1.0, catalogue=range(30)), False, True),
        "noisy": (gf.papers.NoisyAnswers(gf.NeighbourCF(gf.KNN(k=4)), questions=10**6), False, True),
        "response": (gf.papers.Perturbed(by=gf.papers.RandomisedResponse(), **near), True, True),
        "response, seeded": (gf.papers.Perturbed(by=gf.papers.RandomisedResponse(), rng=3, **near), True, True),
        "z-scores": (gf.papers.Perturbed(by=gf.papers.RandomisedPerturbation(), rng=3, **near), False, True),
        "slope one": (gf.papers.SlopeOne(noise=1.0), True, True),
        "threshold": (gf.papers.ThresholdNeighbours(dense=20, bits=7), False, True),
        "factors": (gf.papers.MatrixFactorisation(rank=2, sweeps=2), True, True),
        "reuse": (gf.papers.ReuseKNN(k=3, tau=2.0, variant="gain"), False, True),
        "individual": (gf.papers.IndKNN(questions=10**6), True, True),
        "dp-als": (gf.papers.DPALS(epsilon=3.0, rank=2, **rated), False, True),
        "mcsherry, knn": (gf.papers.McSherryMironovKNN(epsilon=3.0, rank=3), True, True),
        "mcsherry": (gf.papers.McSherryMironov(epsilon=3.0, rank=3, **rated), False, True),
        "popularity": (gf.Popularity(), True, True),
        "ease": (gf.EASE(regularisation=9.0, items=25), False, True),
        "top-n": (gf.PrivateTopN(epsilon=3.0, **rated), True, True),
        "top-n, user": (gf.PrivateTopN(epsilon=3.0, unit="user", **rated), False, False),
        "top-n, seeded": (gf.PrivateTopN(epsilon=1.0, rng=4, catalogue=range(30)), False, True),
    }


@dataclass(frozen=True)
class Original:
    """A saved model, taken apart, and what it guarantees."""

    name: str
    manifest: Manifest
    arrays: Arrays
    guarantee: Guarantee


def originals(folder: Path) -> list[Original]:
    """Fit and save a model of every class, and take the files apart."""
    made = []
    for name, (model, text, with_ratings) in unfitted().items():
        place = folder / name.replace(", ", "-")
        ratings = _ratings(text)
        learns_from = getattr(model, "learns_from", "explicit")
        fitted = model.fit(ratings.likes(4) if learns_from == "implicit" else ratings)
        if isinstance(fitted, PrivateRecommender):
            fitted.save(place, ratings=with_ratings)
        else:
            fitted.save(place)
        made.append(Original(name, *taken_apart(place), fitted.guarantee()))
    return made


ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 7, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.0, -0.0, 0.5, 1.5, 1e-320,
    1e308, -1e308, 1e-12, "", "user", "rating", "event", "item", "from ratings", "None", "x" * 3000, "\ud800", "../..",
    [], [[]], [0], [1, 2, 3], {}, {"a": {}}, [None] * 50, "KNN", "PrivateCF", "NeighbourCF", "1", "nan",
)  # fmt: skip


def _paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where everything in a manifest is."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _paths(part, (*at, key))
    elif isinstance(value, list):
        for key, part in enumerate(value):
            yield from _paths(part, (*at, key))


def _parent(manifest: Manifest, path: tuple[Any, ...]) -> Any:
    where: Any = manifest
    for key in path[:-1]:
        where = where[key]
    return where


class Mutation:
    """One way to change a model, drawn by chance; `manifest` and `arrays` are changed in place."""

    def __init__(self, original: Original, others: list[Original], rng: np.random.Generator) -> None:
        self.rng = rng
        self.others = others
        self.manifest = copy.deepcopy(original.manifest)
        self.arrays = {name: array.copy() for name, array in original.arrays.items()}
        self.told: list[str] = []
        self.bind = bool(rng.random() < 0.8)
        """Whether the digest that binds arrays to settings is made to fit, too."""
        kinds: list[Callable[[], str]] = [self.value, self.value, self.key, self.borrow]
        kinds += [self.array, self.array, self.array, self.element, self.element, self.swap]
        for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
            self.told.append(kinds[int(rng.integers(len(kinds)))]())

    def pick(self, values: Any) -> Any:
        listed = list(values)
        return listed[int(self.rng.integers(len(listed)))]

    def _path(self, manifest: Manifest) -> tuple[Any, ...]:
        """Return a path, mostly below the settings."""
        every = [path for path in _paths(manifest) if path[0] not in ("sha256", "goodfence")]
        settings = [path for path in every if path[0] == "settings" and len(path) > 1]
        return tuple(self.pick(settings if settings and self.rng.random() < 0.85 else every))

    def value(self) -> str:
        """Another value, odd or near the old one."""
        path = self._path(self.manifest)
        where = _parent(self.manifest, path)
        old, new = where[path[-1]], self.pick(ODD)
        if isinstance(old, int | float) and not isinstance(old, bool) and self.rng.random() < 0.5:
            new = self.pick([old + 1, old - 1, old * 2, old / 2, -old, float(old), old * 1.001])
        where[path[-1]] = new
        return f"{path} = {new!r}"[:200]

    def key(self) -> str:
        """A key less, or more, or a value twice."""
        path = self._path(self.manifest)
        where = _parent(self.manifest, path)
        if isinstance(where, list):
            where.append(copy.deepcopy(where[path[-1]]))
            return f"{path} twice"
        if self.rng.random() < 0.6:
            del where[path[-1]]
            return f"{path} left out"
        where[f"{path[-1]}_more"] = self.pick(ODD)
        return f"{path} and more"

    def borrow(self) -> str:
        """What another model states there."""
        other = self.pick(self.others)
        path = self._path(other.manifest)
        try:
            _parent(self.manifest, path)[path[-1]] = copy.deepcopy(_parent(other.manifest, path)[path[-1]])
        except (KeyError, IndexError, TypeError):
            return f"nothing borrowed from {other.name}"
        self.bind &= path != ("settings",)  # with a digest that fits this would be the other model
        return f"{path} of {other.name}"

    def array(self) -> str:
        """An array of another kind, shape, order or length; or none; or another model's."""
        name = self.pick(self.arrays)
        array = self.arrays[name]
        changes: dict[str, Callable[[], Any]] = {
            "left out": lambda: None,
            "reversed": lambda: array[::-1],
            "shorter": lambda: array[: len(array) // 2],
            "one shorter": lambda: array[:-1],
            "longer": lambda: np.concatenate([array, array]),
            "empty": lambda: array[:0],
            "a table": lambda: array.reshape(-1, 1),
            "flat": lambda: array.reshape(-1),
            "turned": lambda: array.T,
            "float64": lambda: array.astype(np.float64),
            "int64": lambda: array.astype(np.int64),
            "int32": lambda: array.astype(np.int32),
            "bytes": lambda: array.astype(np.uint8),
            "zero": lambda: np.zeros_like(array),
            "wide": lambda: np.ones((len(array), 3000)),
            "of no width": lambda: np.empty((len(array), 0)),
            "of no length": lambda: np.empty((0, 2**30)),
            "shuffled": lambda: self.rng.permutation(array),
            "another's": lambda: self.pick(self.others).arrays.get(name),
        }
        kind = self.pick(changes)
        with np.errstate(all="ignore"):
            made = changes[kind]()
        if made is None:
            self.arrays.pop(name)
        else:
            self.arrays[name] = made
        return f"{name} {kind}"

    def element(self) -> str:
        """Some elements of an array, or all, odd."""
        name = self.pick(self.arrays)
        array = self.arrays[name] = np.array(self.arrays[name])
        if not array.size:
            return f"{name} is empty"
        at = self.rng.integers(array.size, size=int(self.rng.choice([1, 1, 3, array.size])))
        at = self.pick([at, np.array([array.size - 1]), np.array([0])])
        odd: list[float] = [0, 1, -1, 2**31 - 1, -(2**31), len(array), array.size, 255]
        odd += [np.nan, np.inf, -np.inf, 1e308, 1e-320, 0.5] if array.dtype.kind == "f" else [2**62, -(2**62)]
        value = self.pick(odd)
        with np.errstate(all="ignore"):
            array.flat[at] = np.array(value).astype(array.dtype)
        return f"{len(at)} of {name} = {value}"

    def swap(self) -> str:
        """Two arrays in each other's place."""
        one, two = self.pick(self.arrays), self.pick(self.arrays)
        self.arrays[one], self.arrays[two] = self.arrays[two], self.arrays[one]
        return f"{one} for {two}"

    def write(self, place: Path) -> None:
        """Write the file, with all checksums that can be made to fit; some bytes of some files are flipped."""
        manifest, arrays = self.manifest, self.arrays
        if self.bind and BOUND in arrays:
            try:
                arrays[BOUND] = settings_digest(manifest["kind"], manifest["settings"])
            except (KeyError, TypeError, ValueError):
                self.told.append("unbound")
        if isinstance(manifest.get("arrays"), dict) and self.rng.random() < 0.95:
            manifest["arrays"] = array_statements(arrays)
        manifest["sha256"] = manifest_checksum(manifest)
        text = json.dumps(manifest, allow_nan=True).encode("utf-8", "surrogatepass")
        place.write_bytes(self._flipped(packed(self._flipped(text, 0.03), arrays), 0.1))

    def _flipped(self, content: bytes, often: float) -> bytes:
        if self.rng.random() >= often or not content:
            return content
        flipped = bytearray(content)
        for at in self.rng.integers(len(flipped), size=int(self.rng.choice([1, 1, 2, 20]))):
            flipped[at] ^= 1 << int(self.rng.integers(8))
        self.told.append("bytes flipped")
        cut = int(self.rng.integers(len(flipped))) if self.rng.random() < 0.1 else len(flipped)
        return bytes(flipped[:cut])


def ask(model: Any) -> None:
    """Ask a loaded model everything that can be asked."""
    ratings = model.ratings_
    users, items = ratings.users[:3], ratings.items[:4]
    repr(model)
    asked: list[Callable[[], Any]] = [
        lambda: model.predict(np.repeat(users, len(items)), np.tile(items, len(users))),
        lambda: model.predict_cells(np.arange(len(users)), np.zeros(len(users), dtype=int)),
        lambda: model.recommend(users[0], n=5) if len(users) else None,
        lambda: model.predict(dict.fromkeys(items[:2].tolist(), float(ratings.scale.highest)), items),
        lambda: model.predict({}, items),
        lambda: model.recommend({}, n=5),
        lambda: model.recommend_many(n=3),
    ]
    for question in asked:
        try:
            question()
        except GoodfenceError:
            continue


def stronger(stated: Guarantee, true: Guarantee) -> bool:
    """Return whether more is stated than is true."""
    strength = _STRENGTH[stated.status]
    if strength == 0:
        return False
    if strength > _STRENGTH[true.status]:
        return True
    assert None not in (stated.epsilon, stated.delta, true.epsilon, true.delta)
    small = 1 - 1e-9
    less = (stated.epsilon or 0) < (true.epsilon or 0) * small
    return less or (stated.delta or 0) < (true.delta or 0) * small or stated.unit != true.unit


def attempt(original: Original, others: list[Original], seed: int, place: Path) -> tuple[str, str]:
    """Mutate a model with this seed, load it and ask it; return the outcome, and what was done.

    The outcome is `refused`, `answers`, `wrong guarantee`, or the name of a raw error.
    """
    mutation = Mutation(original, others, np.random.default_rng(seed))
    what = f"{original.name}, seed {seed}: " + "; ".join(mutation.told)
    try:
        mutation.write(place)
    except (ValueError, TypeError, ModelFileError):
        return "not written", what
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            model: Any = load_model(place, max_bytes=MAX_BYTES)
            stated = model.guarantee()
            ask(model)
    except ModelFileError:
        return "refused", what
    except Exception as problem:
        return type(problem).__name__, what
    finally:
        place.unlink(missing_ok=True)
    return ("wrong guarantee" if stronger(stated, original.guarantee) else "answers"), what


GOOD = ("refused", "answers", "not written")


def run_batch(first: int, n: int, log: Path, only: list[str]) -> dict[str, dict[str, int]]:
    """Try n mutations from this seed on, of all models or of some; the log holds the seed, and what went wrong.

    Return how often each outcome came, by model.
    """
    found: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as name, log.open("w", encoding="utf-8") as told:
        models = originals(Path(name))
        mutated = [model for model in models if model.name in only] if only else models
        for seed in range(first, first + n):
            original = mutated[seed % len(mutated)]
            told.write(f"seed {seed}\n")
            told.flush()
            outcome, what = attempt(original, models, seed, Path(name) / "mutated")
            counts = found.setdefault(original.name, {})
            counts[outcome] = counts.get(outcome, 0) + 1
            if outcome not in GOOD:
                told.write(f"{outcome}: {what}\n")
    return found


def in_process(
    first: int, n: int, memory: int = 2**32, only: tuple[str, ...] = ()
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Try n mutations in a process of its own, so that a signal is seen; return the outcomes, and what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "log"
        command = [sys.executable, "-m", "tests.support.hostile_models", str(first), str(n), str(log)]
        words = [*command, str(memory), *only]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    wrong = [line for line in lines if not line.startswith("seed ")]
    if done.returncode == 0:
        return json.loads(done.stdout), wrong
    last = lines[-1] if lines else "no seed"
    return {"": {"signal": 1}}, [*wrong, f"exit {done.returncode} at {last}: {done.stderr[-500:]}"]


if __name__ == "__main__":
    first, n, log, memory, *only = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    print(json.dumps(run_batch(int(first), int(n), Path(log), only)))  # noqa: T201
