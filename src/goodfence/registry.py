"""The mechanisms and models that have a name: a class owns its `name` (in options) and its `label` (in tables)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from importlib import import_module
from pkgutil import get_data, iter_modules
from typing import Any, TypeAlias, TypeVar

from goodfence.errors import SettingError, did_you_mean

_PACKAGES = ("selection", "models", "models.private", "papers", "papers.published")
"""Where mechanisms and models are. Every module there is found by itself, and imported when a name is looked for."""
_PAPERS = "goodfence.papers"
_registered: dict[str, type[Any]] = {}

T = TypeVar("T")


def register(kind: type[T]) -> type[T]:
    """Make a class known, for saved files by its class name and for options by its `name`, if it has one."""
    _registered[kind.__name__] = kind
    if hasattr(kind, "pools") and not hasattr(kind, "fit"):
        made: Any = kind
        made.__getattr__ = _missing
    return kind


def _missing(mechanism: object, name: str) -> Any:
    """Raise `AttributeError`; a mechanism that is used as a recommender is told what to write."""
    kind, hint = type(mechanism).__name__, ""
    if name in ("fit", "predict", "recommend", "similar_items", "save"):
        hint = f"; {kind} only selects neighbours, so write gf.NeighbourCF({mechanism!r}).fit(ratings)"
    raise AttributeError(f"{kind!r} object has no attribute {name!r}{hint}")


def find(text: str) -> type[Any]:
    """Return the mechanism or model that is meant, by its name or its class name."""
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


def _modules() -> Iterator[str]:
    for package in (f"goodfence.{name}" for name in _PACKAGES):
        folders = import_module(package).__path__
        yield from (f"{package}.{found.name}" for found in iter_modules(folders) if not found.ispkg)


def _classes() -> Iterator[type[Any]]:
    """Yield what is registered, in the order of the packages; what a user registered comes last."""
    known = set()
    for module in _modules():
        import_module(module)
        known.add(module)
        yield from [kind for kind in _registered.values() if kind.__module__ == module]
    yield from [kind for kind in _registered.values() if kind.__module__ not in known]


def _with_names() -> Iterator[type[Any]]:
    return (kind for kind in _classes() if hasattr(kind, "name"))


def _arguments(made: Any) -> dict[str, Any]:
    if callable(getattr(made, "settings", None)):
        return dict(made.settings())
    if not is_dataclass(made) or isinstance(made, type):
        raise SettingError("mechanism must be a dataclass, so that its settings can be kept")
    pairs = asdict(made).items()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in pairs}


def _unknown(got: object, near: str = "") -> SettingError:
    return SettingError(f"method must be one of {', '.join(named())}, got {got!r}{near}")


Lazy: TypeAlias = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def lazy_names(package: str) -> Lazy:
    """Return `__getattr__`, `__dir__` and `__all__` of a package: the names in its stub, imported on first use.

    A mechanism or a model that the stub does not list is found by its class name all the same.
    """
    stub = ast.parse(get_data(package, "__init__.pyi") or b"")
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {name.name: node.module or "" for node in imports for name in node.names}
    public = sorted([*homes, "__version__"] if package == "goodfence" else homes)

    def get(name: str) -> Any:
        home = homes.get(name)
        if home == package:
            return import_module(f"{package}.{name}")
        found = getattr(import_module(home), name) if home else _unlisted(package, name)
        if found is None:
            near = did_you_mean(name, public)
            if package == "goodfence" and name in import_module(_PAPERS).__all__:
                near = f"; it is gf.papers.{name}"
            raise AttributeError(f"module {package!r} has no attribute {name!r}{near}")
        vars(import_module(package))[name] = found
        return found

    return get, lambda: public, public


def _unlisted(package: str, name: str) -> type[Any] | None:
    kind = find_kind(name) if name[:1].isupper() else None
    if kind is None or not kind.__module__.startswith(f"{package}."):
        return None
    return kind if package == _PAPERS or not kind.__module__.startswith(_PAPERS) else None
