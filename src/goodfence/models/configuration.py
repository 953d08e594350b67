"""An unfitted recommender from its configuration: {"mechanism": "ppns", "k": 50, "beta": 7}, or a line of text."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodfence.errors import SettingError, did_you_mean
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import find, made_of
from goodfence.rng import RNG

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
        unseeded = made_of({**settings, **told})
        seeded = made_of({**settings, **told, "rng": rng})
        return _stated(kind.name, seeded, unseeded, dict(settings), {})
    own.setdefault("k", DEFAULT_K)
    mechanism = made_of(own)
    model = NeighbourCF(mechanism, **around, rng=rng, threads=threads, progress=progress)
    return _stated(kind.name, model, mechanism, {**own, **around}, around)


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


def _stated(
    name: str,
    recommender: Any,
    described: Any,
    settings: dict[str, Any],
    around: dict[str, Any],
) -> Configured:
    return Configured(
        label=_label(described, around),
        settings={**settings, "mechanism": name},
        recommender=recommender,
        guarantee=described.guarantee(),
    )


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
