"""Settings: an annotation declares what each may be, and `checked` is the one place that checks it.

    @checked
    @dataclass(frozen=True, kw_only=True)
    class Method:
        k: Count                                        # k must be an integer of at least 1, got 0
        rank: Annotated[int, at_least(1, most=64)]
        share: Fraction | None = None
        axis: Literal["user", "item"] = "user"

The same declarations serve dataclasses, classes with an `__init__` of their own, and functions. What is checked arrives
as its plain type: an `int`, a `float`, a `tuple`. `True` is not a number, a float is not an integer, and NaN is within
no limits. Rules about several settings at once are for `__post_init__`, with `require`.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import math
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, is_dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from goodfence.errors import did_you_mean, require

Check: TypeAlias = Callable[[Any, str], Any]
"""Takes a value and the name of its setting, and returns the plain value or raises "name must be rule, got value"."""


def integer(value: Any, name: str, *, least: int, most: int | None = None) -> int:
    """Return `value` as an integer of at least `least`."""
    number = _is_integer(value)
    if number and most is not None:
        require(int(value) <= most, name, f"an integer of at most {most:,}", value)
    require(number and int(value) >= least, name, f"an integer of at least {least}", value)
    return int(value)


def is_number(value: Any) -> bool:
    """Return True for a finite real number; `True` itself is not one."""
    return _is_measure(value) and math.isfinite(float(value))


def _number(rule: str, holds: Callable[[float], bool]) -> Callable[[Any, str], float]:
    """Declare a finite number for which `holds` is true."""

    def check(value: Any, name: str) -> float:
        require(is_number(value) and holds(float(value)), name, rule, value)
        return float(value)

    return check


positive = _number("a positive, finite number", lambda number: number > 0)
finite = _number("a finite number", lambda _: True)
fraction = _number("strictly between 0 and 1", lambda number: 0 < number < 1)


def place(value: Any, name: str) -> Path:
    """Return `value` as a path."""
    holds = isinstance(value, str | os.PathLike)
    require(holds and isinstance(os.fspath(value), str), name, "text or a Path", value)
    require("\0" not in os.fspath(value), name, "a path without a NUL character", type(value))
    return Path(value)


def one_of(value: Any, name: str, known: Collection[str]) -> str:
    """Return `value` if it is one of the known words."""
    return str(_word(tuple(known)).check(value, name))


def at_least(least: int, *, most: int | None = None) -> Check:
    """Declare an integer of at least `least` and at most `most`."""
    return functools.partial(integer, least=least, most=most)


def between(least: float, most: float) -> Check:
    """Declare a number from `least` to `most`, both allowed."""
    return _number(f"a number from {least:g} to {most:g}", lambda number: least <= number <= most)


def each(check: Check) -> Check:
    """Declare a tuple of values that all pass `check`."""
    return lambda values, name: tuple(check(value, name) for value in values)


Count: TypeAlias = Annotated[int, at_least(1)]
Length: TypeAlias = Annotated[int, at_least(1, most=2**31 - 1)]
"""How many candidates, neighbours or items: no list is longer."""
Positive: TypeAlias = Annotated[float, positive]
Finite: TypeAlias = Annotated[float, finite]
Fraction: TypeAlias = Annotated[float, fraction]  # strictly between 0 and 1
Share: TypeAlias = Annotated[float, between(0, 1)]

F = TypeVar("F", bound=Callable[..., Any])
_PERSONAL = ("user", "users", "item", "items", "profile", "values")
"""Arguments of which an error shows the type only."""


def checked(called: F) -> F:
    """Check every argument by its annotation before a public function, or the constructor of a class, runs.

    A union allows any of its parts; what an annotation does not settle (a shape, an id) is for the function to check.
    """
    target: Any = vars(called)["__init__"] if isinstance(called, type) else called
    signature = inspect.signature(target)
    declared: Any = called if is_dataclass(called) else target

    @functools.cache  # on the first call, when every name of the module is defined
    def kinds() -> dict[str, _Kind]:
        hints = get_type_hints(declared, include_extras=True)
        found = {name: _kind(hints[name]) for name in signature.parameters if name in hints}
        return {name: kind for name, kind in found.items() if kind is not None}

    @functools.wraps(target)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as problem:
            made = target.__name__ == "__init__"
            called_as = type(args[0]).__name__ if made else target.__qualname__
            known, said = signature.parameters, str(problem)
            for name in kwargs.keys() - known.keys():
                said = f"got an unexpected keyword argument {name!r}{did_you_mean(name, known)}"
            raise TypeError(f"{called_as}() {said}") from None
        for name, kind in kinds().items():
            if name in given.arguments:
                given.arguments[name] = kind.check(given.arguments[name], name)
        return target(*given.args, **given.kwargs)

    if isinstance(called, type):
        made: Any = called
        made.__init__ = run
        return called
    return cast("F", run)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What an argument may be, and how it becomes a plain value."""

    rule: str
    holds: Callable[[Any], bool]
    plain: Check = lambda value, _: value
    words: tuple[str, ...] = ()

    def check(self, value: Any, name: str) -> Any:
        if not self.holds(value):
            hint = did_you_mean(value, self.words) if isinstance(value, str) else ""
            if isinstance(value, type):
                hint = f"; that is the class; write {value.__name__}(...)"
            require(False, name, self.rule, type(value) if name in _PERSONAL else value, hint)
        return self.plain(value, name)


def _kind(annotation: Any) -> _Kind | None:
    """Return what an annotation allows; None for anything."""
    origin, parts = get_origin(annotation), get_args(annotation)
    protocols = [part for part in parts if getattr(part, "_is_protocol", False)]
    if annotation == str | int or len(protocols) > 1:
        return None  # the function itself says best how to give an id, or which methods it needs
    if origin is Annotated:
        base = _kind(parts[0]) or _Kind("", lambda _: True)
        return replace(base, plain=parts[1])
    if origin in (Union, UnionType):
        return _any_of([_kind(part) for part in parts])
    if origin is Literal:
        return _word(parts)
    if origin is np.ndarray and "float" in repr(annotation):
        return _Kind("an array of numbers", are_numbers)
    return _simple(origin or annotation)


def are_numbers(value: Any) -> bool:
    """Return True for a list or an array of numbers, each within the floats; True and False are not numbers."""
    if not is_sequence(value):
        return False
    try:
        np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return np.asarray(value).dtype.kind in "fiu"


def _any_of(kinds: list[_Kind | None]) -> _Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    return _Kind(
        " or ".join(dict.fromkeys(kind.rule for kind in known)),
        lambda value: any(kind.holds(value) for kind in known),
        lambda value, name: next(one for one in known if one.holds(value)).plain(value, name),
        tuple(word for kind in known for word in kind.words),
    )


def _word(words: tuple[str, ...]) -> _Kind:
    return _Kind(
        f"one of {', '.join(words)}" if len(words) > 1 else repr(words[0]),
        lambda value: isinstance(value, str) and value in words,
        lambda value, _: str(value),
        words,
    )


def _simple(kind: Any) -> _Kind | None:
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    if not isinstance(kind, type) or kind is Any:
        return None
    rule = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    if getattr(kind, "_is_protocol", False):
        names = {one for one in vars(kind) if not one.startswith("_")}  # any of them will do here
        return _Kind(rule, lambda value: not isinstance(value, type) and bool(names & {*dir(value)}))
    if callable(getattr(kind, "of", None)):  # it takes other forms too, and checks them
        return None
    return _Kind(rule, lambda value: isinstance(value, kind))


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_measure(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:  # an integer beyond every float
        return False
    return True


def is_sequence(value: Any) -> bool:
    """Return True for values of a known number: a list, an array or a series, but not text."""
    if isinstance(value, str | bytes | collections.abc.Mapping | collections.abc.Set | type):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, collections.abc.Sized) and isinstance(value, collections.abc.Iterable)


_SEQUENCE = _Kind("a sequence", is_sequence)
_BUILT_IN = {
    type(None): _Kind("None", lambda value: value is None),
    bool: _Kind("True or False", lambda value: isinstance(value, bool)),
    int: _Kind("an integer", _is_integer, lambda value, _: int(value)),
    float: _Kind("a number", _is_measure, lambda value, _: float(value)),
    str: _Kind("text", lambda value: isinstance(value, str)),
    tuple: _Kind("a tuple", lambda value: isinstance(value, tuple | list)),
    collections.abc.Sequence: _SEQUENCE,
    np.ndarray: _SEQUENCE,
}
"""What an annotation of Python's or numpy's own allows."""
