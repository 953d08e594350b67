"""The checks of settings, and the border of public callables."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Literal, get_type_hints

import numpy as np
import pytest

import goodfence as gf
from goodfence.errors import SettingError, given
from goodfence.settings import between, checked, finite, fraction, integer, one_of, positive


@checked
def drawn(
    k: int, share: float = 0.5, *, axis: Literal["user", "item"] = "user", ids: Sequence[int] | None = None
) -> tuple[Any, ...]:
    return k, share, axis, ids


@checked
def switched(n: bool) -> bool:
    return n


@checked
def worded(n: str) -> str:
    return n


@checked
@dataclass(frozen=True)
class Setting:
    k: int
    ratings: gf.Ratings | None = None


def test_good_settings_pass_as_they_are() -> None:
    ids: Any = np.array([1])
    k: Any = np.int64(3)
    share: Any = np.float32(0.5)
    assert drawn(3) == (3, 0.5, "user", None)
    assert drawn(k, share, axis="item", ids=ids)[3] is ids
    assert drawn(3, 1)[1] == 1
    assert Setting(3).k == 3
    assert drawn.__name__ == "drawn"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"k": "3"}, "k must be an integer, got '3'"),
        ({"k": True}, "k must be an integer, got True"),
        ({"k": 3.0}, "k must be an integer, got 3.0"),
        ({"k": None}, "k must be an integer, got None"),
        ({"k": np.array([3])}, "k must be an integer, got a ndarray"),
        ({"k": 3, "share": "a"}, "share must be a number, got 'a'"),
        ({"k": 3, "share": 10**400}, "share must be a number, got a int of very many digits|share must be a number"),
        ({"k": 3, "axis": 3}, "axis must be one of user, item, got 3"),
        ({"k": 3, "ids": "abc"}, "ids must be a sequence or None, got 'abc'"),
        ({"k": 3, "ids": {1: 2}}, "ids must be a sequence or None, got a dict"),
    ],
)
def test_wrong_kinds_are_one_sentence(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        drawn(**arguments)


def test_a_class_is_checked_where_it_is_made() -> None:
    with pytest.raises(SettingError, match="k must be an integer"):
        Setting(1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing"):
        Setting()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected"):
        drawn(3, beta=1)  # type: ignore[call-arg]


NAN = float("nan")


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda value: integer(value, "n", least=1, most=9), [1, 9, np.uint8(3)], [0, 10, True, 1.0, "1", None, 2**70]),
        (lambda value: positive(value, "n"), [1, 0.1, np.float32(2)], [0, -1, NAN, float("inf"), True, "1", 10**400]),
        (lambda value: finite(value, "n"), [0, -1.5], [NAN, float("inf"), True, "1", None, 10**400]),
        (lambda value: fraction(value, "n"), [0.5], [0, 1, NAN, True, "0.5"]),
        (lambda value: between(0, 100)(value, "n"), [0, 100, 3.5], [-1, 101, NAN, True, "1"]),
        (switched, [True, False], [0, 1, "yes", None]),
        (worded, ["", "a"], [b"a", 1, None]),
        (lambda value: one_of(value, "n", ("a", "b")), ["a"], ["c", 1, None, ["a"]]),
    ],
)  # fmt: skip
def test_checks(check: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert check(value) == value
    for value in bad:
        with pytest.raises(SettingError, match=r"^n must be .*, got "):
            check(value)


def test_what_was_given_is_shown_short_and_without_contents() -> None:
    assert given([1, 2]) == "[1, 2]"
    assert given(["x" * 100]).endswith("...")
    assert given(list(range(1000))) == "a list"
    assert given({"ann": 5}) == "a dict"
    assert given(np.array([4.5])) == "a ndarray"
    assert given(10**5000) == "a int of very many digits"


def test_what_may_be_somebodys_is_told_by_its_type_alone() -> None:
    films = gf.synthetic(users=12, items=8, ratings=60, rng=7)
    model = gf.NeighbourCF(gf.KNN(k=2), rng=7, progress=False).fit(films)
    somebody: Any = "ann of the third floor"
    for ask in (
        lambda: model.predict([], somebody),
        lambda: model.recommend_many(somebody),
        lambda: films.rows(somebody),
    ):
        with pytest.raises(SettingError, match="got a str") as told:
            ask()
        assert "ann" not in str(told.value)


def test_every_annotation_of_a_checked_callable_resolves() -> None:
    """A name that is imported for type checkers only would raise on the first call."""
    checked_ones = 0
    for found in pkgutil.walk_packages(gf.__path__, "goodfence."):
        if "spark" in found.name or found.name.endswith("__main__"):
            continue
        try:
            members = vars(importlib.import_module(found.name)).values()
        except ImportError:  # the module of a library that is not installed
            continue
        for one in members:
            inside = vars(one).values() if isinstance(one, type) else [one]
            for function in inside:
                if inspect.isfunction(function) and function.__code__ is drawn.__code__:
                    get_type_hints(one if is_dataclass(one) else inspect.unwrap(function))
                    checked_ones += 1
    assert checked_ones > 50
