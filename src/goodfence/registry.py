"""The mechanisms and models that have a name: for the command line, `explain`, tables and saved files.

A class owns its `name` (as options say it) and its `label` (as tables print it). Here is only where to look.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

from goodfence.errors import SettingError, did_you_mean

_MODULES = (
    "goodfence.selection.knn",
    "goodfence.selection.npns",
    "goodfence.selection.pncf",
    "goodfence.selection.ppns",
    "goodfence.models.neighbour_cf",
    "goodfence.models.popularity",
    "goodfence.models.ease",
    "goodfence.models.private.means",
    "goodfence.models.private.cf",
    "goodfence.models.private.top_n",
    "goodfence.papers.mcsherry_mironov",
    "goodfence.papers.published.noisy_answers",
    "goodfence.papers.published.perturbed",
    "goodfence.papers.published.randomised_perturbation",
    "goodfence.papers.published.nends",
    "goodfence.papers.published.blurme",
    "goodfence.papers.published.randomised_response",
    "goodfence.papers.published.item_swap",
    "goodfence.papers.published.slope_one",
    "goodfence.papers.published.threshold_neighbours",
    "goodfence.papers.published.matrix_factorisation",
    "goodfence.papers.published.reuse_knn",
    "goodfence.papers.published.dp_als",
    "goodfence.papers.published.ind_knn",
    "goodfence.papers.published.mcsherry_mironov_knn",
    "goodfence.papers.pair_attack",
)
"""Imported one after the other, and no farther than a name is looked for."""
_registered: dict[str, type[Any]] = {}

T = TypeVar("T")


def register(kind: type[T]) -> type[T]:
    """Make a class known, for saved files by its class name and for options by its `name`, if it has one."""
    _registered[kind.__name__] = kind
    return kind


def find(text: str) -> type[Any]:
    """Return the mechanism or model that is meant, by its name or its class name.

    Examples
    --------
    >>> find("PPNS").label, find("private_cf").__name__
    ('PPNS', 'PrivateCF')
    >>> find("pnps")
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: method must be one of knn, npns, pncf, ppns, popularity, ease, private-means, \
private-cf, private-top-n, mcsherry-mironov, noisy-answers, randomised-perturbation, nends, blurme, \
randomised-response, local-laplace, item-swap, slope-one, threshold-neighbours, matrix-factorisation, reuse-knn, \
dp-als, ind-knn, mcsherry-mironov-knn, got 'pnps'; did you mean 'ppns'?
    """
    name = text.casefold().replace("_", "-").replace(" ", "-")
    for kind in _with_names():
        if name in (kind.name, kind.__name__.casefold()):
            return kind
    raise _unknown(text, did_you_mean(name, named()))


def named() -> dict[str, type[Any]]:
    """Return every named mechanism and model by its name, in declared order: mechanisms first."""
    return {kind.name: kind for kind in _with_names()}


def find_kind(class_name: str) -> type[Any] | None:
    """Return the registered class of exactly this name, as saved models state it; None if there is none."""
    return next((kind for kind in _classes() if kind.__name__ == class_name), None)


def settings_of(made: object) -> dict[str, Any]:
    """Return the class name and every setting of a mechanism or a private model, as JSON knows them."""
    return {"mechanism": type(made).__name__, **_arguments(made)}


def made_of(settings: Mapping[str, Any]) -> Any:
    """Return the mechanism or model of these settings; the inverse of `settings_of`."""
    name = settings.get("mechanism")
    if not isinstance(name, str):
        raise _unknown(name)
    kind = find(name)
    given = {key: value for key, value in settings.items() if key != "mechanism"}
    known = inspect.signature(kind).parameters
    for key in given:
        if key not in known:
            raise SettingError(f"{kind.__name__} has no setting {key!r}{did_you_mean(key, known)}")
    for key, parameter in known.items():
        if parameter.default is parameter.empty and key not in given:
            raise SettingError(f"{kind.__name__} needs the setting {key!r}")
    return kind(**given)


def _classes() -> Iterator[type[Any]]:
    """Yield what is registered, in declared order; what a user registered comes last."""
    for module in _MODULES:
        import_module(module)
        yield from [kind for kind in _registered.values() if kind.__module__ == module]
    yield from [kind for kind in _registered.values() if kind.__module__ not in _MODULES]


def _with_names() -> Iterator[type[Any]]:
    return (kind for kind in _classes() if hasattr(kind, "name"))


def _arguments(made: Any) -> dict[str, Any]:
    if callable(getattr(made, "settings", None)):
        return dict(made.settings())
    if not is_dataclass(made) or isinstance(made, type):
        raise SettingError("mechanism must be a dataclass, so that its settings can be kept")
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(made).items()
    }


def _unknown(got: object, near: str = "") -> SettingError:
    return SettingError(f"method must be one of {', '.join(named())}, got {got!r}{near}")
