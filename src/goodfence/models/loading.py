"""`load_model`: any saved recommender, by what its manifest says it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any, TypeVar

from goodfence.errors import ModelFileError
from goodfence.models import saved_neighbours
from goodfence.models.files import Arrays, read_model
from goodfence.models.mcsherry_mironov import McSherryMironov
from goodfence.models.private import saved
from goodfence.models.private_cf import PrivateCF
from goodfence.models.private_means import PrivateMeans
from goodfence.models.recommender import Recommender

M = TypeVar("M")

_PRIVATE = (PrivateMeans, PrivateCF, McSherryMironov)
_RESTORE: dict[str, Callable[[dict[str, Any], Arrays], Recommender]] = {
    saved_neighbours.KIND: saved_neighbours.restore,
    **{kind.__name__: partial(saved.restore, kind) for kind in _PRIVATE},
}


def load_model(path: str | PathLike[str]) -> Recommender:
    """Return the fitted recommender that was saved in the folder `path`."""
    kind, settings, arrays = read_model(path)
    if kind not in _RESTORE:
        raise ModelFileError("the model is of a kind that this goodfence does not know; upgrade it")
    return _RESTORE[kind](settings, arrays)


def load_as(kind: type[M], path: str | PathLike[str]) -> M:
    """Return the recommender that was saved in `path`, which must be of this kind."""
    model = load_model(path)
    if not isinstance(model, kind):
        raise ModelFileError(f"the saved model is a {type(model).__name__}, not a {kind.__name__}")
    return model
