"""The core of ratings: what is left when users and items with few ratings go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, require


def core(ratings: Ratings, *, per_user: int, per_item: int) -> Ratings:
    """Return the part in which every user has `per_user` and every item `per_item` ratings or more.

    To leave out an item may bring a user below the limit, and so on: it is repeated until stable.
    The result is the largest such part and does not depend on the order in which users and items
    go.

    Examples
    --------
    >>> from scipy import sparse
    >>> chain = Ratings(sparse.csr_array(np.tri(4)), list("abcd"), range(4), scale=(1, 5))
    >>> core(chain, per_user=2, per_item=2)
    Ratings(3 users x 3 items, 8 ratings, whole numbers 1-5)
    """
    require(per_user >= 1, "per_user", "a positive integer", per_user)
    require(per_item >= 1, "per_item", "a positive integer", per_item)
    users, items = _stable(ratings, per_user, per_item)
    if not users.any():
        raise DataError(f"no part of the ratings has {per_user:,} a user and {per_item:,} an item")
    matrix = ratings.csr[np.flatnonzero(users)][:, np.flatnonzero(items)]
    kept = ratings.items[items]
    known = ratings.titles
    titles = {item: known[item] for item in kept.tolist() if item in known}
    return Ratings(matrix, ratings.users[users], kept, ratings.scale, titles)


def _stable(
    ratings: Ratings, per_user: int, per_item: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    n_users, n_items = ratings.shape
    rows = np.repeat(np.arange(n_users), np.diff(ratings.csr.indptr))
    columns = ratings.csr.indices
    while True:
        users = np.bincount(rows, minlength=n_users) >= per_user
        items = np.bincount(columns, minlength=n_items) >= per_item
        inside = users[rows] & items[columns]
        if inside.all():
            return users, items
        rows, columns = rows[inside], columns[inside]
