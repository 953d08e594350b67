"""`load_model`: any saved recommender, by what its manifest says it is."""

from __future__ import annotations

from os import PathLike

from goodfence.errors import ModelFileError
from goodfence.models import saved_neighbours
from goodfence.models.files import read_model
from goodfence.models.recommender import Recommender

_RESTORE = {saved_neighbours.KIND: saved_neighbours.restore}


def load_model(path: str | PathLike[str]) -> Recommender:
    """Return the fitted recommender that was saved in the folder `path`."""
    kind, settings, arrays = read_model(path)
    if kind not in _RESTORE:
        raise ModelFileError("the model is of a kind that this goodfence does not know; upgrade it")
    return _RESTORE[kind](settings, arrays)
