"""Fake profiles: what they rate, how similar they are to each other, and the data with them appended."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.attack.targets import Floats, Integers, Targets
from goodfence.data.ratings import Ratings
from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles


def fake_profiles(
    profiles: Profiles, targets: Targets, helper_rating: float | None
) -> tuple[Profiles, Profiles]:
    """Return what the asking fake of each target rated, and what its fellow fakes did.

    All rate exactly what the attacker knows; with a `helper_rating` the fellows also rate the one hidden item.
    """
    askers = profiles.lay_out(list(targets.known_columns), list(targets.known_ratings))
    if helper_rating is None:
        return askers, askers
    columns, ratings = helper_cells(targets, helper_rating)
    return askers, profiles.lay_out(list(columns), list(ratings))


def helper_cells(targets: Targets, helper_rating: float) -> tuple[Integers, Floats]:
    """Return the columns and ratings of the helpers of targets with one hidden item each, (targets, m + 1)."""
    extra = np.full((len(targets), 1), helper_rating)
    columns = np.hstack([targets.known_columns, targets.columns[:, np.newaxis]])
    ratings = np.hstack([targets.known_ratings, extra])
    order = np.argsort(columns, axis=1)
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(ratings, order, axis=1)


def fake_similarities(askers: Profiles, helpers: Profiles, similarity: Similarity) -> Floats:
    """Return the similarity of each asker to its fellow fakes, (targets,).

    That is 1 for equal profiles, but for rounding where ratings are not on a grid, and for profiles without
    length or variance.
    """
    if askers is helpers and similarity.name == "cosine" and askers.are_whole:
        return np.where(askers.squared_norms > 0, 1.0, 0.0)
    engine = RowsAgainstAll(helpers, similarity)
    return np.array([engine.similarities(askers, row)[row] for row in range(askers.n_rows)])


def attacked(
    ratings: Ratings,
    removed: int | None,
    columns: list[npt.NDArray[np.integer]],
    values: list[Floats],
) -> tuple[Ratings, npt.NDArray[Any]]:
    """Return the ratings without row `removed`, followed by one row for each fake, and the fakes' new ids."""
    csr, n_rows = ratings.csr, ratings.shape[0]
    kept = np.ones(n_rows, dtype=np.bool_)
    if removed is not None:
        kept[removed] = False
    lengths = np.diff(csr.indptr)
    cells = np.repeat(kept, lengths)
    counts = np.concatenate([lengths[kept], [len(row) for row in columns]])
    parts = (
        np.concatenate([csr.data[cells], *values]),
        np.concatenate([csr.indices[cells], *columns]),
        np.concatenate([[0], np.cumsum(counts)]),
    )
    ids = new_ids(ratings.users, len(columns))
    users = np.concatenate([ratings.users[kept], ids])
    world = sparse.csr_array(parts, shape=(len(users), csr.shape[1]))
    return Ratings(world, users, ratings.items, ratings.scale, ratings.titles), ids


def new_ids(users: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return `n` ids of the same kind that none of the users has.

    Examples
    --------
    >>> new_ids(np.array([3, 9]), 2)
    array([10, 11])
    """
    if users.dtype == object:
        taken = set(users.tolist())
        name = "fake"
        while any(f"{name} {number}" in taken for number in range(n)):
            name += "'"
        ids = np.empty(n, dtype=object)
        ids[:] = [f"{name} {number}" for number in range(n)]
        return ids
    highest = int(users.max(initial=-1))
    if highest <= np.iinfo(np.int64).max - n - 1:
        return np.arange(highest + 1, highest + 1 + n)
    free = np.setdiff1d(np.arange(n + len(users)), users)
    return free[:n]
