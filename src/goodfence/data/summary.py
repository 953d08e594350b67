"""What ratings are, in a few numbers.

Size, density, how many each person gave, what is rated most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodfence.data.ratings import Ratings


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A few numbers about ratings; about everybody together and about nobody alone."""

    n_users: int
    n_items: int
    n_ratings: int
    scale: str
    density: float
    """The share of all pairs of person and item that are rated."""
    per_user: tuple[float, float, float]
    """The quartiles of how many ratings a person gave."""
    most_rated: tuple[tuple[str, int], ...]
    """The titles of the items with the most ratings, and how many each has."""


def summarise(ratings: Ratings, *, n_titles: int = 5) -> Summary:
    """Return a summary of `ratings` with the `n_titles` items that are rated most.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user": [1, 1, 2], "item": ["a", "b", "b"], "rating": [1, 2, 3]})
    >>> summarise(Ratings.from_frame(table), n_titles=1).most_rated
    (('b', 2),)
    """
    n_users, n_items = ratings.shape
    per_user = np.diff(ratings.csr.indptr)
    per_item = np.bincount(ratings.csr.indices, minlength=n_items)
    lower, middle, upper = (float(value) for value in np.quantile(per_user, [0.25, 0.5, 0.75]))
    most = np.argsort(-per_item, kind="stable")[:n_titles].tolist()
    ids = ratings.items.tolist()
    return Summary(
        n_users=n_users,
        n_items=n_items,
        n_ratings=ratings.n_ratings,
        scale=str(ratings.scale),
        density=ratings.n_ratings / (n_users * n_items),
        per_user=(lower, middle, upper),
        most_rated=tuple((ratings.title(ids[place]), int(per_item[place])) for place in most),
    )
