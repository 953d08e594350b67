"""Ratings of a RecBole atomic file: `.inter`, text with typed columns (`user_id:token`, `rating:float`)."""

from __future__ import annotations

import os

from goodfence.data.limits import DEFAULT_MAX_BYTES
from goodfence.data.ratings import Ratings
from goodfence.data.readers import read_ratings
from goodfence.data.scale import Scale
from goodfence.data.triplets import Duplicates


def read_inter(
    path: str | os.PathLike[str],
    *,
    user: str = "user_id",
    item: str = "item_id",
    rating: str = "rating",
    scale: Scale | tuple[float, ...] | None = None,
    duplicates: Duplicates = "error",
    separator: str = "\t",
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Ratings:
    r"""Return the ratings of a `.inter` file, checked as those of every other file are.

    Parameters
    ----------
    path
        The file.
    user, item, rating
        RecBole's `USER_ID_FIELD`, `ITEM_ID_FIELD` and `RATING_FIELD`, without their types.
    scale, duplicates, max_bytes
        As in `gf.load` of a file.
    separator
        RecBole's `field_separator`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "tiny.inter")
    >>> _ = path.write_text("user_id:token\titem_id:token\trating:float\n7\ta\t4\n8\ta\t3.5\n")
    >>> read_inter(path, scale=(0.5, 5, 0.5))
    Ratings(2 users x 1 items, 2 ratings, 0.5-5 in steps of 0.5)
    >>> folder.cleanup()
    """
    return read_ratings(
        path,
        user=f"{user}:token",
        item=f"{item}:token",
        rating=f"{rating}:float",
        scale=scale,
        duplicates=duplicates,
        separator=separator,
        max_bytes=max_bytes,
    )
