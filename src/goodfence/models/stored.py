"""How ratings and mechanisms are written into a saved model, and read back exactly."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import DataError, GoodfenceError, ModelFileError
from goodfence.models.files import Arrays, decode_ids, encode_ids
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.settings import mechanism_of


def pack_ratings(ratings: Ratings) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the settings and the arrays that hold `ratings`."""
    csr = ratings.csr
    titles = np.empty(csr.shape[1], dtype=object)
    titles[:] = [ratings.titles.get(item, "") for item in ratings.items.tolist()]
    arrays = {"indptr": csr.indptr, "indices": csr.indices, "data": csr.data}
    arrays |= encode_ids("users", ratings.users) | encode_ids("items", ratings.items)
    if ratings.titles:
        arrays |= encode_ids("titles", titles)
    return {"shape": list(csr.shape), "scale": dataclasses.asdict(ratings.scale)}, arrays


def unpack_ratings(settings: dict[str, Any], arrays: Arrays) -> Ratings:
    """Return the ratings that `pack_ratings` packed, or say that they are not sound."""
    try:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        csr = sparse.csr_array(parts, shape=tuple(settings["shape"]))
        csr.check_format(full_check=True)
        users, items = decode_ids("users", arrays), decode_ids("items", arrays)
        titles: dict[Any, str] = {}
        if "titles_bytes" in arrays:
            pairs = zip(items.tolist(), decode_ids("titles", arrays).tolist(), strict=True)
            titles = {item: title for item, title in pairs if title}
        return Ratings(csr, users, items, Scale(**settings["scale"]), titles)
    except (KeyError, TypeError, ValueError, DataError):
        raise ModelFileError(
            "the ratings inside the model are not sound; save the model again"
        ) from None


def unpack_mechanism(settings: dict[str, Any]) -> Mechanism:
    """Return the mechanism whose settings a manifest holds."""
    try:
        return mechanism_of(settings)
    except (TypeError, ValueError, GoodfenceError):
        raise ModelFileError(
            "the model's mechanism or a setting of it is not one of this goodfence"
        ) from None
