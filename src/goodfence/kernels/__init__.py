"""Where speed is: pure compiled functions, arrays in and arrays out, noise as an argument."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache

P = ParamSpec("P")
R = TypeVar("R")
ZERO: Any = np.int64(0)
"""Where a count starts: a plain 0 would compile the functions that take the count once more."""
_NEWEST = max(file.stat().st_mtime for file in Path(__file__).parent.rglob("*.py"))


class _Cache(FunctionCache):
    """Machine code on disk, of the present source of all kernels: numba would look at one file only.

    An entry that cannot be read is compiled again, where numba would raise a raw error.
    """

    def __init__(self, function: Any) -> None:
        numba_cache: Any = super()
        numba_cache.__init__(function)
        files: Any = self._cache_file
        files._source_stamp = (files._source_stamp, _NEWEST)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature, None where there is none that can be read."""
        numba_cache: Any = super()
        try:
            return numba_cache.load_overload(sig, target_context)
        except Exception:  # a damaged pickle may raise anything
            numba_cache.flush()
            return None


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first use and cache the machine code.

    No fastmath flag is set: NaN and ties have a meaning in every kernel.
    """
    options: Any = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
    compiled: Any = njit(**options)(function)
    if compiled is not function:  # it is where the compiler is off
        cache: Any = _Cache
        compiled._cache = cache(function)
    return cast("Callable[P, R]", compiled)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` into the kernels that call it. Python cannot call it, which halves the time to compile it."""
    options: Any = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast("Callable[P, R]", njit(**options)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Copy `function` into its caller, so that a loop over candidates runs four at a time."""
    return cast("Callable[P, R]", njit(inline="always")(function))
