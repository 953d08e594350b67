"""Questions about people and items that a recommender has never met: they get NaN, not an error."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings

Floats: TypeAlias = npt.NDArray[np.float64]


def predict_known(
    recommender: Any, ratings: Ratings, users: npt.NDArray[Any], items: npt.NDArray[Any]
) -> Floats:
    """Return predictions where both the user and the item are in `ratings`, NaN elsewhere.

    The libraries around us split ratings without regard for who is left; goodfence itself calls an id that is not
    in the ratings a mistake.
    """
    known = among(users, ratings.users) & among(items, ratings.items)
    predictions = np.full(len(known), np.nan)
    if known.any():
        asked = (_own_kind(users[known], ratings.users), _own_kind(items[known], ratings.items))
        predictions[known] = recommender.predict(*asked)
    return predictions


def among(wanted: npt.NDArray[Any], ids: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which of `wanted` are among the ids; text and numbers are never the same."""
    if ids.dtype != object and wanted.dtype.kind in "iu":
        return np.isin(wanted, ids)
    known = set(ids.tolist())
    return np.fromiter((one in known for one in wanted.tolist()), np.bool_, len(wanted))


def _own_kind(wanted: npt.NDArray[Any], ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ids as the ratings hold them: what is whole, as integers; text, as objects."""
    return wanted.astype(ids.dtype)
