"""Ratings laid out on a public list of items, so that which items were rated is protected too."""

from __future__ import annotations

from scipy import sparse

from goodfence.data.ids import Ids
from goodfence.data.layout import lay_out, places_on
from goodfence.data.ratings import Ratings


def on_catalogue(ratings: Ratings, catalogue: Ids) -> Ratings:
    """Return the ratings with the catalogue's items as columns, in its order; no other item is used.

    That ratings of other items are left out is not told, because it would tell that somebody gave one.

    Examples
    --------
    >>> import numpy as np
    >>> csr = sparse.csr_array(np.array([[5.0, 3.0]]))
    >>> two = Ratings(csr, users=[1], items=["a", "b"], scale=(1, 5))
    >>> on_catalogue(two, Ids.of(["b", "c"], "items")).csr.toarray()
    array([[3., 0.]])
    """
    places = places_on(Ids.of_sorted(ratings.items, "items"), catalogue)  # different already
    matrix = lay_out(ratings.csr, places, len(catalogue))
    listed = set(catalogue.values.tolist())
    titles = {item: title for item, title in ratings.titles.items() if item in listed}
    return Ratings(matrix, ratings.users, catalogue, ratings.scale, titles)


def nobody(ratings: Ratings) -> Ratings:
    """Return ratings of the same items on the same scale, given by nobody."""
    empty = sparse.csr_array((0, ratings.shape[1]))
    return Ratings(empty, ratings.users[:0], ratings.items, ratings.scale, ratings.titles)
