"""Ratings laid out on a given list of items, in its order, whoever rated what."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.data.ids import Ids
from goodfence.errors import require


def places_on(items: Ids, wanted: Ids) -> npt.NDArray[np.int64]:
    """Return where each of the items stands among the wanted ones; -1 where it does not.

    Examples
    --------
    >>> places_on(Ids.of(["b", "x"], "items"), Ids.of(["a", "b"], "items"))
    array([ 1, -1])
    """
    same = wanted.are_text == items.are_text or not len(items)
    rule = "ids of the same kind as those of the ratings"
    require(same, "the given items", rule, "text and integers")
    place = {item: at for at, item in enumerate(wanted.values.tolist())}
    return np.array([place.get(item, -1) for item in items.values.tolist()], dtype=np.int64)


def lay_out(
    csr: sparse.csr_array, places: npt.NDArray[np.int64], n_columns: int
) -> sparse.csr_array:
    """Return the matrix with column j moved to places[j], and left out where that is -1; a stored 0 stays.

    Examples
    --------
    >>> lay_out(sparse.csr_array(np.array([[5.0, 3.0]])), np.array([2, -1]), 3).toarray()
    array([[0., 0., 5.]])
    """
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    columns = places[csr.indices]
    kept = columns >= 0
    cells: tuple[Any, ...] = (csr.data[kept], (rows[kept], columns[kept]))
    return sparse.csr_array(cells, shape=(csr.shape[0], n_columns))
