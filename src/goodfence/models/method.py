"""Unfitted recommenders, from a mechanism, settings, or a line such as "ppns k=50 beta=7"; the default recommenders."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from goodfence.data.columns import Feedback
from goodfence.errors import SettingError, did_you_mean, require
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private.base import FROM_RATINGS
from goodfence.models.recommender import Traits
from goodfence.neighbours.predict import Over
from goodfence.neighbours.similarity import Similarity
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import find, find_kind, made_of
from goodfence.rng import RNG
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import is_mechanism

_RUNNING = ("mechanism", "rng", "threads", "progress")
Which: TypeAlias = Literal["demo", "usual", "page", "full"]
DEFAULT_K = 50  # how many neighbours, if `k` is not given: those of the paper's attacks
_OF_NEIGHBOUR_CF = tuple(name for name in inspect.signature(NeighbourCF).parameters if name not in _RUNNING)
_ABLE = ("fit", "predict", "recommend")
_DEFAULTS = (
    ("knn k=30", "f", "f"),
    ("knn k={k}", "dupf", "dupf"),
    ("knn k=100", "f", "f"),
    ("ppns k={k} beta=2", "f", "f"),
    ("ppns k={k} beta=4", "f", "f"),
    ("ppns k={k} beta=7", "dupf", "dupf"),
    ("npns k={k} within=4", "f", ""),
    ("npns k={k} within=7", "uf", "uf"),
    ("npns k={k}", "pf", "pf"),
    ("pncf k={k} within=7", "upf", "upf"),
    ("pncf k={k} within=7 epsilon=10", "f", ""),
    ("knn k={k} axis=item", "", "upf"),
    ("ease", "", "upf"),
    ("popularity", "", "upf"),
    ("private-means epsilon=1", "dup", ""),
    ("private-cf epsilon=0.5", "f", ""),
    ("private-cf epsilon=1", "upf", ""),
    ("private-cf epsilon=4", "f", ""),
    ("private-cf epsilon=1 unit=user", "f", ""),
    ("private-cf epsilon=4 unit=user", "f", ""),
    ("private-cf epsilon=8 unit=user", "f", ""),
    ("private-top-n epsilon=0.5", "", "f"),
    ("private-top-n epsilon=1", "", "dupf"),
    ("private-top-n epsilon=4", "", "f"),
    ("private-top-n epsilon=1 unit=user", "", "f"),
    ("private-top-n epsilon=4 unit=user", "", "upf"),
    ("private-top-n epsilon=8 unit=user", "", "f"),
)
"""The recommenders that are compared by default, and the lists of ratings and of events that have each: the demo (d),
the usual frontier (u), the page of an audit (p), the full frontier (f)."""
_SHOWN = {"k": "k", "beta": "beta", "within": "within", "epsilon": "eps", "unit": "unit"}


def as_recommender(
    thing: object, *, similarity: Similarity | str = "cosine", over: Over = "raters", threads: int | None = None
) -> Any:
    """Return what can be fitted and asked: a `Recommender` as it is, or `NeighbourCF` of a mechanism.

    The other parameters, as in `NeighbourCF`, are for a bare mechanism; a recommender has its own.
    """
    if is_mechanism(thing):
        return NeighbourCF(thing, similarity=similarity, over=over, threads=threads)
    able = {name for name in _ABLE if callable(getattr(thing, name, None))}
    if isinstance(thing, type) or "fit" not in able or len(able) == 1:
        got = f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__
        raise SettingError(
            "what is tested must be a selection mechanism, or a recommender with fit and predict (for lists: "
            f"recommend), got {got}"
        )
    return thing


def traits_of(thing: object) -> Traits:
    """Return what attack and audit must know of a mechanism or a recommender; little of a stranger."""
    recommender = as_recommender(thing)
    stated = getattr(recommender, "traits", None)
    if isinstance(stated, Traits):
        return stated
    kind, fresh = type(recommender).__name__, getattr(recommender, "fresh_answers", None)
    return Traits(family=kind, title=kind, fresh_answers=fresh)


@dataclass(frozen=True, eq=False, kw_only=True)
class Configured:
    """A recommender that is not fitted yet, with what it was made of."""

    label: str  # its name with its main settings, for tables
    settings: dict[str, Any]  # the settings as they were given, for JSON
    recommender: Any  # what can be fitted
    guarantee: Guarantee  # what it guarantees where no seed is used

    def stated(self, seed: int | None) -> dict[str, Any]:
        """Return label, settings and seed, for JSON."""
        return {"label": self.label, "settings": self.settings, "seed": seed}


def configured(
    settings: Mapping[str, Any],
    *,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
    public: Mapping[str, Any] | None = None,
) -> Configured:
    """Return the recommender of these settings; a setting that it does not have is an error.

    `settings` has `mechanism`, a name of the registry, and any of its settings; for a selection mechanism also those of
    `NeighbourCF`. `public` says which items are public, for a private model: its `catalogue` or its `items`. A private
    model with a seed (`rng`) has no guarantee.
    """
    kind = find(str(settings.get("mechanism", "")))
    mine = set(inspect.signature(kind).parameters)
    wraps = _wraps(kind)
    outer = [name for name in _OF_NEIGHBOUR_CF if not (wraps and name in mine)]
    own = {key: value for key, value in settings.items() if key not in outer}
    around = {key: value for key, value in settings.items() if key in outer}
    told = around
    if wraps:
        inside = KNN(k=own.pop("k", DEFAULT_K))
        base = NeighbourCF(inside, **around, rng=rng, threads=threads, progress=progress)
        described, recommender = (_around(base, made_of(own), one) for one in (None, rng))
        told = {**_unshown(own, described), **around}
        own["k"] = inside.k
    elif callable(getattr(kind, "fit", None)):
        listed = public if public and "catalogue" in mine else {}
        own, around = dict(settings), {}
        described = made_of({**settings, **listed})
        recommender = made_of({**settings, **listed, **({"rng": rng} if "rng" in mine else {})})
        told = _unshown(own, described) if ".published." in kind.__module__ else {}
    else:
        own.setdefault("k", DEFAULT_K)
        described = made_of(own)
        recommender = NeighbourCF(described, **around, rng=rng, threads=threads, progress=progress)
    return Configured(
        label=_label(described, told),
        settings={**own, **around, "mechanism": kind.name},
        recommender=recommender,
        guarantee=described.guarantee(),
    )


def _unshown(settings: Mapping[str, Any], described: Any) -> dict[str, Any]:
    """Return the settings that a label does not show by itself."""
    shown = {key for key in _SHOWN if getattr(described, key, None) is not None}
    return {key: value for key, value in settings.items() if key not in {*shown, "mechanism"}}


def _around(base: NeighbourCF, made: Any, rng: RNG) -> Any:
    """Return what was made with `base` inside: noise on its answers, or on the ratings that it gets."""
    if callable(getattr(made, "perturb", None)):
        perturbed: Any = find_kind("Perturbed")
        return perturbed(base, by=made, rng=rng)
    made.recommender, made.rng = base, rng
    return made


def parsed(text: str, **running: Any) -> Configured:
    """Return the recommender of a line such as "ppns k=50 beta=7"; `running` as in `configured`."""
    name, *parts = text.split() or [""]
    kind = find(name)
    known = {*inspect.signature(kind).parameters, *_OF_NEIGHBOUR_CF} - {"rng"}
    known |= {"k"} if _wraps(kind) else set()
    if "sensitivity" in known:
        known = known - {"sensitivity"} | {f"rs_{key}" for key in ("scope", "reading", "clamp")}
    given = pairs(parts)
    for key in given.keys() - known:
        raise SettingError(f"{kind.__name__} has no setting {key!r}{did_you_mean(key, known)}")
    rs = {key.removeprefix("rs_"): given.pop(key) for key in list(given) if key.startswith("rs_")}
    sensitivity = {"sensitivity": rs} if rs else {}
    return configured({"mechanism": name, **given, **sensitivity}, **running)


def pairs(listed: Sequence[str]) -> dict[str, int | float | str]:
    """Return settings that are written as NAME=VALUE."""
    found: dict[str, int | float | str] = {}
    for one in listed:
        key, equals, value = one.partition("=")
        require(bool(key and equals and value), "a setting", "NAME=VALUE, as in k=50", one)
        name = key.replace("-", "_")
        require(name not in found, name, "given once", one)
        found[name] = _number_or_text(value)
    return found


def _wraps(kind: Any) -> bool:
    """Return whether this is put around a neighbour-based recommender: noise on its answers, or on its ratings."""
    return bool(getattr(kind, "wraps", False)) or callable(getattr(kind, "perturb", None))


def _label(described: Any, around: Mapping[str, Any]) -> str:
    stated = {short: getattr(described, key, None) for key, short in _SHOWN.items()}
    if stated["unit"] == "rating":  # the usual unit is not said
        stated["unit"] = None
    parts = [
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in {**stated, **around}.items()
        if value is not None
    ]
    return " ".join([described.label, *parts])


def _number_or_text(text: str) -> int | float | str:
    """Return a number, or True or False for yes or no, where the text is one."""
    for make in (int, float):
        with suppress(ValueError):
            return make(text)
    return {"yes": True, "no": False}.get(text, text)


def default_methods(which: Which, feedback: Feedback = "explicit", k: int = DEFAULT_K) -> tuple[str, ...]:
    """Return the lines of the recommenders that are compared by default, with this many neighbours."""
    lists = 1 if feedback == "explicit" else 2
    return tuple(row[0].format(k=k) for row in _DEFAULTS if which[0] in row[lists])


def default_recommenders(which: Which, n_users: int, feedback: Feedback = "explicit", k: int = DEFAULT_K) -> list[Any]:
    """Return the recommenders of `default_methods` that fit this many users; selection mechanisms are bare."""
    found = []
    for line in default_methods(which, feedback, k):
        made = parsed(line, public={"items": FROM_RATINGS}).recommender
        if isinstance(made, NeighbourCF) and made.axis == "user":
            made = made.mechanism
        with suppress(SettingError):  # a mechanism that needs more users
            if is_mechanism(made):
                made.reach(n_users - 1)
            found.append(made)
    return found
