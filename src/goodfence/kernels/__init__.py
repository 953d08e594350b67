"""Where speed is: pure compiled functions, arrays in and arrays out, noise as an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache

P = ParamSpec("P")
R = TypeVar("R")


class _Cache(FunctionCache):
    """Machine code on disk; what cannot be read is compiled anew.

    After an update it may name a type that is gone, and a file may be cut short. numba looks whether an entry is of
    today's source only after it has read all of it, and would end with a raw error.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature, None where there is none that can be read."""
        kept: Any = super()
        try:
            return kept.load_overload(sig, target_context)
        except Exception:  # whatever a damaged pickle raises
            kept.flush()
            return None


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first use and keep the machine code in the cache.

    No fastmath flag is set: NaN and ties have a meaning in every kernel.
    """
    compiled: Any = njit(cache=True, nogil=True)(function)
    if compiled is not function:  # it is where the compiler is off
        cache: Any = _Cache
        compiled._cache = cache(function)
    return cast("Callable[P, R]", compiled)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Copy `function` into its caller, so that a loop over candidates runs four at a time."""
    return cast("Callable[P, R]", njit(inline="always")(function))
