"""Libraries that goodfence speaks to and does not need."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from goodfence.errors import MissingExtra

_INSTALL = "pip install 'goodfence[adapters]'"
_PACKAGES = {"sklearn": "scikit-learn", "surprise": "scikit-surprise", "lenskit": "lenskit"}
"""What the libraries are called where they are installed from."""


def library(module: str) -> Any:
    """Return a module of an optional library; where the library is missing, say how to get it.

    Examples
    --------
    >>> library("json.decoder").__name__
    'json.decoder'
    """
    name = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name:
            raise  # the library is there, and misses something of its own
        raise _missing(name) from None


def base_class(module: str, name: str) -> Any:
    """Return a class of an optional library to derive from.

    Where the library is missing, that is a class of which no instance can be made: the module that derives from
    it can be read and documented everywhere, and used where the library is.
    """
    try:
        return getattr(library(module), name)
    except MissingExtra:
        return type(name, (), {"__new__": _refuse_instance, "missing": module.partition(".")[0]})


def _refuse_instance(cls: Any, *_arguments: object, **_settings: object) -> NoReturn:
    raise _missing(cls.missing)


def _missing(name: str) -> MissingExtra:
    package = _PACKAGES.get(name, name)
    return MissingExtra(f"{package} must be installed for this adapter; {_INSTALL}")
