"""The tree of errors: each has a code of its own, one builtin beside it, and an exit code."""

from __future__ import annotations

import re

import pytest

from goodfence import errors
from goodfence.errors import (
    BlackBoxProblem,
    BrokenPromise,
    DataError,
    GoodfenceError,
    LedgerProblem,
    ModelFileError,
    ServiceProblem,
    did_you_mean,
    require,
)

TREE = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, GoodfenceError)]
BUILTINS = (ValueError, RuntimeError, ImportError)


def test_the_tree_that_is_drawn_is_the_tree() -> None:
    drawn = re.findall(r"[├└]── (\w+)(?: \((\w+)\))?.*?(?:exit (\d))?$", errors.__doc__ or "", re.M)
    assert [name for name, _, _ in drawn] == [kind.__name__ for kind in TREE[1:]]
    for kind, (_, builtin, exit_code) in zip(TREE[1:], drawn, strict=True):
        if builtin:
            assert [kind.__bases__[1].__name__, str(kind.exit_code)] == [builtin, exit_code]
        else:
            assert kind.__bases__ in ((DataError,), (LedgerProblem,), (ServiceProblem,))


def test_codes_are_different() -> None:
    codes = [kind.code for kind in TREE]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", [kind for kind in TREE if kind is not GoodfenceError])
def test_every_error_is_ours_and_python_s(kind: type[GoodfenceError]) -> None:
    assert sum(issubclass(kind, builtin) for builtin in BUILTINS) == 1
    assert kind.exit_code in ((1,) if kind is BrokenPromise else (2, 3, 4))  # a check that ran and found a fault
    from_outside = issubclass(kind, DataError | ModelFileError | BlackBoxProblem | LedgerProblem)
    assert (kind.exit_code == 3) == from_outside


def test_require() -> None:
    require(True, "k", "positive", 0)
    with pytest.raises(errors.SettingError, match=r"^k must be positive, got 0$"):
        require(False, "k", "positive", 0)


def test_did_you_mean() -> None:
    assert did_you_mean("USERID", ["userId", "item"]) == "; did you mean 'userId'?"
    assert did_you_mean("zzz", ["userId", "item"]) == ""
    assert did_you_mean("a", []) == ""
