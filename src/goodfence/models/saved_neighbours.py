"""A `NeighbourCF` on disk."""

from __future__ import annotations

import dataclasses
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from goodfence.errors import GoodfenceError, ModelFileError
from goodfence.models.files import Arrays, write_model
from goodfence.models.stored import pack_ratings, unpack_mechanism, unpack_ratings
from goodfence.rng import seed_of
from goodfence.selection.settings import settings_of
from goodfence.similarity.measure import Similarity

if TYPE_CHECKING:
    from goodfence.models.neighbour_cf import NeighbourCF

KIND = "NeighbourCF"


def save(model: NeighbourCF, path: str | PathLike[str]) -> None:
    """Write a fitted model to the folder `path`."""
    ratings_settings, arrays = pack_ratings(model.ratings_)
    settings = {
        "mechanism": settings_of(model.mechanism),
        "axis": model.axis,
        "similarity": dataclasses.asdict(model.similarity),
        "over": model.over,
        "fallback": model.fallback,
        "rng": seed_of(model.rng),
        "threads": model.threads,
        "progress": model.progress,
        "key": model.key_,
        "ratings": ratings_settings,
    }
    arrays |= {
        "neighbours": model.neighbours_,
        "similarities": model.similarities_,
        "weights": model.weights_,
    }
    write_model(path, KIND, settings, arrays)


def restore(settings: dict[str, Any], arrays: Arrays) -> NeighbourCF:
    """Return the fitted model that `save` wrote."""
    from goodfence.models.neighbour_cf import NeighbourCF

    stated = dict(settings)
    try:
        ratings = unpack_ratings(stated.pop("ratings"), arrays)
        mechanism = unpack_mechanism(stated.pop("mechanism"))
        similarity = Similarity(**stated.pop("similarity"))
        key = int(stated.pop("key"))
        model = NeighbourCF(mechanism, similarity=similarity, **stated)
        chosen = arrays["neighbours"], arrays["similarities"], arrays["weights"]
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, GoodfenceError):
        raise ModelFileError("the model's settings are not sound; save the model again") from None
    n_rows = ratings.shape[0 if model.axis == "user" else 1]
    _check_chosen(*chosen, n_rows, mechanism.k)
    model.restore(ratings, key, *chosen)
    return model


def _check_chosen(
    neighbours: npt.NDArray[Any],
    similarities: npt.NDArray[Any],
    weights: npt.NDArray[Any],
    n_rows: int,
    k: int,
) -> None:
    shapes = {array.shape for array in (neighbours, similarities, weights)}
    if shapes != {(n_rows, k)}:
        raise ModelFileError(f"the model's neighbours must have the shape ({n_rows}, {k})")
    whole = neighbours.dtype == np.int32 and similarities.dtype == weights.dtype == np.float64
    if not whole or (neighbours.size and not (0 <= neighbours.min() <= neighbours.max() < n_rows)):
        raise ModelFileError("the model's neighbours must be row numbers of its ratings")
