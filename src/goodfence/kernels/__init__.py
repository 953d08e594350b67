"""Where speed is: pure compiled functions, arrays in and arrays out, noise as an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first use and keep the machine code in the cache.

    No fastmath flag is set: NaN and ties have a meaning in every kernel.
    """
    return cast("Callable[P, R]", njit(cache=True, nogil=True)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Copy `function` into its caller, so that a loop over candidates runs four at a time."""
    return cast("Callable[P, R]", njit(inline="always")(function))
