"""Ratings laid out on a public list of items, so that which items were rated is protected too."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from goodfence.data.ids import Ids
from goodfence.data.ratings import Ratings
from goodfence.errors import require


def on_catalogue(ratings: Ratings, catalogue: Ids) -> Ratings:
    """Return the ratings with the catalogue's items as columns, in its order; no other item is used.

    That ratings of other items are left out is not told, because it would tell that somebody gave one.

    Examples
    --------
    >>> csr = sparse.csr_array(np.array([[5.0, 3.0]]))
    >>> two = Ratings(csr, users=[1], items=["a", "b"], scale=(1, 5))
    >>> on_catalogue(two, Ids.of(["b", "c"], "items")).csr.toarray()
    array([[3., 0.]])
    """
    same = catalogue.are_text == (ratings.items.dtype == object) or not len(ratings.items)
    require(same, "catalogue", "ids of the same kind as those of the ratings", "text and integers")
    place = {item: at for at, item in enumerate(catalogue.values.tolist())}
    places = np.array([place.get(item, -1) for item in ratings.items.tolist()], dtype=np.int64)
    csr = ratings.csr
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    columns = places[csr.indices]
    kept = columns >= 0
    laid = (csr.data[kept], (rows[kept], columns[kept]))
    matrix = sparse.csr_array(laid, shape=(csr.shape[0], len(catalogue)))
    titles = {item: title for item, title in ratings.titles.items() if item in place}
    return Ratings(matrix, ratings.users, catalogue, ratings.scale, titles)


def nobody(ratings: Ratings) -> Ratings:
    """Return ratings of the same items on the same scale, given by nobody."""
    empty = sparse.csr_array((0, ratings.shape[1]))
    return Ratings(empty, ratings.users[:0], ratings.items, ratings.scale, ratings.titles)
