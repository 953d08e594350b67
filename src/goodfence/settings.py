"""What a setting may be: each check returns the value as its plain type, or raises "name must be rule, got value".

`True` is no number, a float is no integer, and NaN is within no limits.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import math
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import numpy as np
import numpy.typing as npt

from goodfence.errors import require


def integer(value: Any, name: str, *, least: int, most: int | None = None) -> int:
    """Return `value` as an integer of at least `least`.

    Examples
    --------
    >>> integer(0, "k", least=1)
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: k must be an integer of at least 1, got 0
    """
    number = not isinstance(value, bool) and isinstance(value, Integral)
    if number and most is not None:
        require(int(value) <= most, name, f"an integer of at most {most:,}", value)
    holds = number and int(value) >= least
    require(holds, name, f"an integer of at least {least}", value)
    return int(value)


def is_number(value: Any) -> bool:
    """Return whether this is a finite real number; True is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer beyond every float
        return False


def positive(value: Any, name: str) -> float:
    """Return `value` as a positive, finite float.

    Examples
    --------
    >>> positive(1, "epsilon")
    1.0
    """
    require(is_number(value) and float(value) > 0, name, "a positive, finite number", value)
    return float(value)


def finite(value: Any, name: str) -> float:
    """Return `value` as a finite float."""
    require(is_number(value), name, "a finite number", value)
    return float(value)


def fraction(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    holds = is_number(value) and 0 < float(value) < 1
    require(holds, name, "strictly between 0 and 1", value)
    return float(value)


def within(value: Any, name: str, *, least: float, most: float) -> float:
    """Return `value` as a float between `least` and `most`, both allowed."""
    holds = is_number(value) and least <= float(value) <= most
    require(holds, name, f"a number from {least:g} to {most:g}", value)
    return float(value)


def switch(value: Any, name: str) -> bool:
    """Return `value` if it is True or False."""
    require(isinstance(value, bool), name, "True or False", value)
    return bool(value)


def text(value: Any, name: str, rule: str = "text") -> str:
    """Return `value` if it is text."""
    require(isinstance(value, str), name, rule, value)
    return str(value)


def place(value: Any, name: str) -> Path:
    """Return `value` as a path.

    Examples
    --------
    >>> place(3, "path")
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: path must be text or a Path, got 3
    """
    holds = isinstance(value, str | os.PathLike)
    require(holds and isinstance(os.fspath(value), str), name, "text or a Path", value)
    require("\0" not in os.fspath(value), name, "a path without a NUL character", type(value))
    return Path(value)


def one_of(value: Any, name: str, known: Collection[str]) -> str:
    """Return `value` if it is one of the known words.

    Examples
    --------
    >>> one_of("users", "axis", ["user", "item"])
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: axis must be one of user, item, got 'users'
    """
    require(isinstance(value, str) and value in known, name, f"one of {', '.join(known)}", value)
    return str(value)


def instance(value: Any, name: str, kind: type | tuple[type, ...], rule: str) -> None:
    """Raise unless `value` is of this kind; its type is told, and nothing of what it holds."""
    require(isinstance(value, kind), name, rule, type(value))


F = TypeVar("F", bound=Callable[..., Any])
_SOMEBODYS = ("user", "users", "item", "items", "profile", "values")
"""Arguments of which an error tells the type and nothing else."""


def checked(called: F) -> F:
    """Check the kind of every argument by its annotation before a public function, or a class' constructor, runs.

    An integer is asked where the annotation says so, a number where it says float, text where it lists words, and so
    on; a union takes any of its parts. Which of its kind (a range, a word, a shape) is for the function to check.

    Examples
    --------
    >>> @checked
    ... def draw(k: int, *, axis: Literal["user", "item"] = "user") -> None: ...
    >>> draw("3")
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: k must be an integer, got '3'
    """
    target: Any = vars(called)["__init__"] if isinstance(called, type) else called
    signature = inspect.signature(target)
    kinds: dict[str, _Kind] = {}

    @functools.wraps(target)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not kinds:
            kinds.update(_kinds_of(target, signature))
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:  # an argument that is missing or unknown, which Python tells best itself
            return target(*args, **kwargs)
        for name, value in given.items():
            kind = kinds.get(name)
            if kind is not None and not kind.holds(value):
                require(False, name, kind.rule, type(value) if name in _SOMEBODYS else value)
        return target(*args, **kwargs)

    if isinstance(called, type):
        made: Any = called
        made.__init__ = run
        return called
    wrapped: Any = run
    return cast("F", wrapped)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What an argument may be: a rule in words, and whether a value keeps it."""

    rule: str
    holds: Callable[[Any], bool]


def _kinds_of(target: Any, signature: inspect.Signature) -> dict[str, _Kind]:
    found: dict[str, _Kind] = {}
    for name, parameter in signature.parameters.items():
        if parameter.annotation is not parameter.empty:
            kind = _kind(parameter.annotation, target.__globals__)
            found |= {} if kind is None else {name: kind}
    return found


def _kind(annotation: Any, names: dict[str, Any]) -> _Kind | None:
    """Return what an annotation allows; None where that cannot be told."""
    if annotation == "Id":  # the ratings refuse what is none, and say how several are asked for
        return None
    if isinstance(annotation, str):
        parts = _alternatives(annotation)
        if len(parts) > 1:
            return _any_of([_kind(part, names) for part in parts])
        try:
            found = eval(annotation, names)  # noqa: S307 - annotations of this package
        except NameError:  # imported for type checkers only
            return None
        return _kind(found, {**vars(collections.abc), **names, "np": np, "npt": npt})
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return _any_of([_kind(part, names) for part in get_args(annotation)])
    if origin is Literal:
        return _word(get_args(annotation))
    if origin is np.ndarray and "float" in repr(annotation):
        return _Kind("an array of numbers", are_numbers)
    return _simple(origin or annotation)


def are_numbers(value: Any) -> bool:
    """Return whether this is listed numbers, each within the floats; True and False are none."""
    if not is_listed(value):
        return False
    try:
        np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return np.asarray(value).dtype.kind in "fiu"


def _alternatives(annotation: str) -> list[str]:
    """Return the parts of a union.

    Examples
    --------
    >>> _alternatives("Sequence[int | str] | None")
    ['Sequence[int | str]', 'None']
    """
    parts, depth = [""], 0
    for letter in annotation:
        depth += (letter in "[(") - (letter in ")]")
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _any_of(kinds: list[_Kind | None]) -> _Kind | None:
    if None in kinds:
        return None
    known = [kind for kind in kinds if kind is not None]
    rules = list(dict.fromkeys(kind.rule for kind in known))
    return _Kind(" or ".join(rules), lambda value: any(kind.holds(value) for kind in known))


def _word(words: tuple[Any, ...]) -> _Kind:
    shown = ", ".join(repr(word) for word in words)
    return _Kind(f"one of {shown}", lambda value: isinstance(value, str))


def _simple(kind: Any) -> _Kind | None:
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    if not isinstance(kind, type) or kind is Any:
        return None
    rule = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    if getattr(kind, "_is_protocol", False):
        members = [one for one in vars(kind) if not one.startswith("_")]
        return _Kind(rule, lambda value: _has_any(value, members))
    if callable(getattr(kind, "of", None)):  # which takes other forms of it, and checks them
        return None
    return _Kind(rule, lambda value: isinstance(value, kind))


def _has_any(value: Any, members: list[str]) -> bool:
    """Return whether this may be something that has methods of its own; which ones it needs is for its user to see."""
    return not isinstance(value, type) and any(hasattr(value, member) for member in members)


def _is_measure(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:  # an integer beyond every float
        return False
    return True


def is_listed(value: Any) -> bool:
    """Return whether this is listed values of a known number: a list, an array, a series, and no text."""
    if isinstance(value, str | bytes | collections.abc.Mapping | collections.abc.Set | type):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, collections.abc.Sized) and isinstance(value, collections.abc.Iterable)


_NOTHING = _Kind("None", lambda value: value is None)
_LISTED = _Kind("a sequence", is_listed)
_BUILT_IN = {
    None: _NOTHING,
    type(None): _NOTHING,
    bool: _Kind("True or False", lambda value: isinstance(value, bool)),
    int: _Kind(
        "an integer", lambda value: isinstance(value, Integral) and not isinstance(value, bool)
    ),
    float: _Kind("a number", _is_measure),
    str: _Kind("text", lambda value: isinstance(value, str)),
    tuple: _Kind("a tuple", lambda value: isinstance(value, tuple | list)),
    collections.abc.Sequence: _LISTED,
    np.ndarray: _LISTED,
}
"""What an annotation of Python's or numpy's own allows."""
