"""From `--mechanism ppns --k 50 --beta 7` to the recommender that is meant."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from goodfence.errors import SettingError, did_you_mean

if TYPE_CHECKING:
    from goodfence.cli.options import Running, Settings
    from goodfence.privacy.guarantee import Guarantee

SELECTIONS = {"knn": "kNN", "npns": "nPNS", "pncf": "PNCF", "ppns": "PPNS"}
"""How the selection mechanisms are called in options, and in print."""
PRIVATE = {
    "private-means": "private means",
    "private-cf": "private CF",
    "mcsherry-mironov": "McSherry-Mironov",
}
"""The same of the private models."""
NAMES = {**SELECTIONS, **PRIVATE}

K = 50
"""How many neighbours, and how many fakes, where nobody says otherwise: those of the paper's attacks."""
_OF_NEIGHBOUR_CF = ("axis", "similarity", "over", "fallback")
_SHOWN = {"k": "k", "beta": "beta", "within": "within", "epsilon": "eps", "unit": "unit"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Recipe:
    """A recommender that is not fitted yet, and what it is called."""

    label: str
    """Its name with its main settings, for tables."""
    settings: dict[str, Any]
    """The settings as they were given, for JSON."""
    recommender: Any
    """What can be fitted."""
    n_fakes: int | None
    """How many fakes attack it where nobody says otherwise; None for the k of the mechanism."""
    promised: Guarantee
    """What is promised where no seed is used."""


def find_name(text: str) -> str:
    """Return the name of the mechanism that is meant.

    Examples
    --------
    >>> find_name("PPNS")
    'ppns'
    >>> find_name("pnps")
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: mechanism must be one of knn, npns, pncf, ppns, private-means, private-cf, \
mcsherry-mironov, got 'pnps'; did you mean 'ppns'?
    """
    name = text.casefold().replace("_", "-").replace(" ", "-")
    if name not in NAMES:
        near = did_you_mean(name, NAMES)
        raise SettingError(f"mechanism must be one of {', '.join(NAMES)}, got {text!r}{near}")
    return name


def build(settings: Settings, running: Running, seed: int | None = None) -> Recipe:
    """Return the recommender that the options describe; a setting that it does not have is an error."""
    name = find_name(settings.mechanism)
    given = {key: value for key, value in asdict(settings).items() if value is not None}
    del given["mechanism"]
    if name in SELECTIONS:
        return _neighbours(name, given, running, seed)
    return _private(name, given, seed)


def parse(text: str, running: Running) -> Recipe:
    """Return the recommender of a line such as "ppns k=50 beta=7"."""
    from goodfence.cli.options import Settings

    name, *parts = text.split() or [""]
    pairs = dict(part.partition("=")[::2] for part in parts)
    known = {one.name for one in fields(Settings)}
    for key, value in pairs.items():
        if key not in known or not value:
            near = did_you_mean(key, known - {key})
            raise SettingError(f"compared must be as in 'ppns k=50 beta=7', got {text!r}{near}")
    given: dict[str, Any] = {key: number_or_text(value) for key, value in pairs.items()}
    return build(Settings(mechanism=name, **given), running)


def number_or_text(text: str) -> int | float | str:
    """Return a number where the text is one.

    Examples
    --------
    >>> number_or_text("7"), number_or_text("0.5"), number_or_text("user")
    (7, 0.5, 'user')
    """
    for make in (int, float):
        try:
            return make(text)
        except ValueError:
            continue
    return text


def _neighbours(name: str, given: dict[str, Any], running: Running, seed: int | None) -> Recipe:
    from goodfence.models.neighbour_cf import NeighbourCF
    from goodfence.selection.settings import mechanism_of

    own = {key: value for key, value in given.items() if key not in _OF_NEIGHBOUR_CF}
    mechanism = mechanism_of({"mechanism": name.upper(), "k": K, **own})
    around = {key: value for key, value in given.items() if key in _OF_NEIGHBOUR_CF}
    model = NeighbourCF(
        mechanism, **around, rng=seed, threads=running.threads, progress=running.progress
    )
    return Recipe(
        label=_label(name, mechanism, around),
        settings={"mechanism": name, "k": K, **given},
        recommender=model,
        n_fakes=None if model.axis == "user" else K,
        promised=mechanism.guarantee(),
    )


def _private(name: str, given: dict[str, Any], seed: int | None) -> Recipe:
    from goodfence.models.mcsherry_mironov import McSherryMironov
    from goodfence.models.private_cf import PrivateCF
    from goodfence.models.private_means import PrivateMeans

    classes: tuple[type[Any], ...] = (PrivateMeans, PrivateCF, McSherryMironov)
    kind = dict(zip(PRIVATE, classes, strict=True))[name]
    known = inspect.signature(kind).parameters
    for key in given:
        if key not in known:
            raise SettingError(f"{name} has no setting {key!r}{did_you_mean(key, known)}")
    if "epsilon" not in given:
        raise SettingError(f"{name} needs the setting 'epsilon', as in --epsilon 1")
    unseeded = kind(**given)
    return Recipe(
        label=_label(name, unseeded, {}),
        settings={"mechanism": name, **given},
        recommender=kind(**given, rng=seed),
        n_fakes=K,
        promised=unseeded.guarantee(),
    )


def _label(name: str, described: Any, around: dict[str, Any]) -> str:
    stated = {short: getattr(described, key, None) for key, short in _SHOWN.items()}
    if stated["unit"] == "rating":  # what is usual is not said
        stated["unit"] = None
    parts = [
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in {**stated, **around}.items()
        if value is not None
    ]
    return " ".join([NAMES[name], *parts])
