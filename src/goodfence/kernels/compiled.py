"""How a kernel is compiled: once, cached on disk, without the interpreter lock."""

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
