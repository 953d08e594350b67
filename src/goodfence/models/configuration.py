"""An unfitted recommender: of a mechanism, of a configuration {"mechanism": "ppns", "k": 50}, or of a line of text."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodfence.errors import SettingError, did_you_mean
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.recommender import Traits
from goodfence.neighbours.predict import Over
from goodfence.neighbours.similarity import Similarity
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import find, made_of
from goodfence.rng import RNG
from goodfence.selection.mechanism import is_mechanism

DEFAULT_K = 50
"""How many neighbours, if `k` is not given: those of the paper's attacks."""
_OF_NEIGHBOUR_CF = (
    "axis",
    "similarity",
    "center",
    "among",
    "shrinkage",
    "min_common",
    "min_neighbours",
    "over",
    "fallback",
)
_SHOWN = {"k": "k", "beta": "beta", "within": "within", "epsilon": "eps", "unit": "unit"}


def as_recommender(
    thing: object,
    *,
    similarity: Similarity | str = "cosine",
    over: Over = "raters",
    threads: int | None = None,
) -> Any:
    """Return what can be fitted and asked: a recommender as it is, or `NeighbourCF` of a mechanism.

    Parameters
    ----------
    thing : Mechanism or recommender
        A recommender needs `fit`, and `predict` or `answer`.
    similarity, over, threads
        As in `NeighbourCF`, for a bare mechanism; a recommender has its own.

    Examples
    --------
    >>> import goodfence as gf
    >>> as_recommender(gf.KNN(k=5))
    NeighbourCF(KNN(k=5), axis='user', similarity='cosine')
    """
    if is_mechanism(thing):
        return NeighbourCF(thing, similarity=similarity, over=over, threads=threads)
    able = {name for name in ("fit", "predict", "answer") if callable(getattr(thing, name, None))}
    if isinstance(thing, type) or "fit" not in able or len(able) == 1:
        got = f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__
        raise SettingError(
            "what is tested must be a selection mechanism, or a recommender with fit and predict or answer, "
            f"got {got}"
        )
    return thing


def traits_of(thing: object) -> Traits:
    """Return what attack and audit must know of a mechanism or a recommender; little of a stranger.

    Examples
    --------
    >>> import goodfence as gf
    >>> traits_of(gf.PPNS(k=5, beta=2)).settings, traits_of(gf.NeighbourCF(gf.KNN(k=5))).n_neighbours
    ('k=5, β=2', 5)
    """
    recommender = as_recommender(thing)
    stated = getattr(recommender, "traits", None)
    if isinstance(stated, Traits):
        return stated
    kind, fresh = type(recommender).__name__, getattr(recommender, "fresh_answers", None)
    return Traits(family=kind, title=kind, fresh_answers=fresh)


@dataclass(frozen=True, eq=False, kw_only=True)
class Configured:
    """A recommender that is not fitted yet, with what it was made of."""

    label: str
    """Its name with its main settings, for tables."""
    settings: dict[str, Any]
    """The settings as they were given, for JSON."""
    recommender: Any
    """What can be fitted."""
    guarantee: Guarantee
    """What it guarantees where no seed is used."""


def configured(
    settings: Mapping[str, Any],
    *,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
    public: Mapping[str, Any] | None = None,
) -> Configured:
    """Return the recommender of these settings; a setting that it does not have is an error.

    Parameters
    ----------
    settings : mapping
        `mechanism`, a name of the registry, and any of its settings; for a selection mechanism also those of
        `NeighbourCF`: axis, similarity, center, among, shrinkage, min_common, min_neighbours, over, fallback.
    rng : RNG, default None
        As in the recommender; a private model with a seed has no guarantee.
    threads, progress
        As in `NeighbourCF`.
    public : mapping, optional
        Which items are public, for a private model: its `catalogue` or its `items`. Other recommenders have neither.

    Examples
    --------
    >>> configured({"mechanism": "ppns", "beta": 7, "axis": "item"}).label
    'PPNS k=50 beta=7 eps=1 axis=item'
    """
    kind = find(str(settings.get("mechanism", "")))
    own = {key: value for key, value in settings.items() if key not in _OF_NEIGHBOUR_CF}
    around = {key: value for key, value in settings.items() if key in _OF_NEIGHBOUR_CF}
    if callable(getattr(kind, "fit", None)):
        known = inspect.signature(kind).parameters
        told = {key: value for key, value in (public or {}).items() if key in known}
        own, around = dict(settings), {}
        described = made_of({**settings, **told})
        recommender = made_of({**settings, **told, "rng": rng})
    else:
        own.setdefault("k", DEFAULT_K)
        described = made_of(own)
        recommender = NeighbourCF(described, **around, rng=rng, threads=threads, progress=progress)
    return Configured(
        label=_label(described, around),
        settings={**own, **around, "mechanism": kind.name},
        recommender=recommender,
        guarantee=described.guarantee(),
    )


def parsed(text: str, **running: Any) -> Configured:
    """Return the recommender of a line such as "ppns k=50 beta=7"; `running` as in `configured`.

    Examples
    --------
    >>> parsed("private-means epsilon=0.5 unit=user").recommender
    PrivateMeans(epsilon=0.5, delta=1e-05, unit='user')
    """
    name, *parts = text.split() or [""]
    pairs = dict(part.partition("=")[::2] for part in parts)
    kind = find(name)
    known = {*inspect.signature(kind).parameters, *_OF_NEIGHBOUR_CF}
    for key, value in pairs.items():
        if key not in known or not value:
            near = did_you_mean(key, known - {key})
            raise SettingError(f"compared must be as in 'ppns k=50 beta=7', got {text!r}{near}")
    given = {key: _number_or_text(value) for key, value in pairs.items()}
    return configured({"mechanism": name, **given}, **running)


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
    """Return a number where the text is one.

    Examples
    --------
    >>> _number_or_text("7"), _number_or_text("0.5"), _number_or_text("user")
    (7, 0.5, 'user')
    """
    for make in (int, float):
        try:
            return make(text)
        except ValueError:
            continue
    return text
