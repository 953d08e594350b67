"""A private model on disk: what was released, what it cost, and the ratings it answers from.

The arrays `effects`, `features` and `weights` are made of released quantities only. The ratings are not: keep a saved
model as you keep the ratings themselves, or save it without them.
"""

from __future__ import annotations

import dataclasses
from os import PathLike
from typing import Any

import numpy as np

from goodfence.errors import GoodfenceError, ModelFileError
from goodfence.models.files import Arrays, write_model
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private.catalogue import nobody
from goodfence.models.private.local_ridge import FARTHEST, ItemModel
from goodfence.models.stored import pack_ratings, unpack_ratings
from goodfence.privacy.accounting import Account, Release
from goodfence.privacy.fit_record import FitRecord


def save(model: PrivateRecommender, path: str | PathLike[str], *, ratings: bool = True) -> None:
    """Write a fitted model to the folder `path`; a seed is not written, only that there was one."""
    ratings_settings, arrays = pack_ratings(model.ratings_ if ratings else nobody(model.ratings_))
    record = dataclasses.asdict(model.record_)
    settings = {
        "arguments": model.settings(),
        "releases": list(record.pop("account")["releases"]),
        "fit": record,
        "ratings": ratings_settings,
    }
    released = model.model_
    arrays |= {
        "effects": released.effects,
        "features": released.features,
        "weights": released.weights,
    }
    write_model(path, type(model).__name__, settings, arrays)


def restore(
    kind: type[PrivateRecommender], settings: dict[str, Any], arrays: Arrays
) -> PrivateRecommender:
    """Return the fitted model that `save` wrote."""
    try:
        ratings = unpack_ratings(settings["ratings"], arrays)
        model = kind(**settings["arguments"])
        account = Account(tuple(Release(**release) for release in settings["releases"]))
        terms = {**settings["fit"], "private": settings["fit"]["private"] is True}
        record = FitRecord(account=account, **terms)
        if record.catalogue_given:
            model.catalogue = ratings.items
        released = ItemModel(arrays["effects"], arrays["features"], arrays["weights"])
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, GoodfenceError):
        raise ModelFileError("the model's settings are not sound; save the model again") from None
    _check(released, ratings.shape[1])
    return model.restore(ratings, released, record)


def _check(released: ItemModel, n_items: int) -> None:
    arrays = (released.effects, released.features, released.weights)
    shaped = (
        released.effects.shape == released.weights.shape == (n_items,)
        and released.features.ndim == 2
        and len(released.features) == n_items
        and released.features.shape[1] >= 1
    )
    # Not `>`: NaN fails this test too.
    if not shaped or not all(
        a.dtype == np.float64 and (np.abs(a) <= FARTHEST).all() for a in arrays
    ):
        raise ModelFileError(
            f"the model's arrays must be numbers of at most {FARTHEST:g}, one row an item"
        )
