"""The tree of errors: each has a code of its own, one builtin beside it, and an exit code."""

from __future__ import annotations

import pytest

from goodfence import errors
from goodfence.errors import DataError, GoodfenceError, did_you_mean, require

TREE = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, GoodfenceError)
]
BUILTINS = (ValueError, RuntimeError, ImportError)


def test_codes_are_different() -> None:
    codes = [kind.code for kind in TREE]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", [kind for kind in TREE if kind is not GoodfenceError])
def test_every_error_is_ours_and_python_s(kind: type[GoodfenceError]) -> None:
    assert sum(issubclass(kind, builtin) for builtin in BUILTINS) == 1
    assert kind.exit_code in (2, 3, 4)
    assert (kind.exit_code == 3) == (issubclass(kind, DataError) or "ModelFile" in kind.__name__)


def test_require() -> None:
    require(True, "k", "positive", 0)
    with pytest.raises(errors.SettingError, match=r"^k must be positive, got 0$"):
        require(False, "k", "positive", 0)


def test_did_you_mean() -> None:
    assert did_you_mean("USERID", ["userId", "item"]) == "; did you mean 'userId'?"
    assert did_you_mean("zzz", ["userId", "item"]) == ""
    assert did_you_mean("a", []) == ""
