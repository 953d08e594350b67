"""Candidate lists: for each row the other rows by descending similarity, ties by ascending row number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.engines.local import tiles
from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.engines.progress import bar
from goodfence.errors import DataError, require
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

Axis: TypeAlias = Literal["user", "item"]
ShortLists: TypeAlias = Literal["error", "shorten"]
Profile: TypeAlias = Mapping[Any, float]


@dataclass(frozen=True, eq=False, slots=True)
class CandidateLists:
    """For each row its nearest other rows, nearest first."""

    indices: npt.NDArray[np.int32]
    """(rows, n): row numbers, by descending similarity, ties by ascending row number."""
    similarities: npt.NDArray[np.float64]
    """(rows, n): how similar."""

    def __repr__(self) -> str:
        shape = " x ".join(f"{size:,}" for size in self.indices.shape)
        return f"CandidateLists({shape})"


def rows_of(ratings: Ratings, axis: Axis) -> Ratings:
    """Return the ratings with the things to be compared as rows: users, or items."""
    require(axis in ("user", "item"), "axis", "'user' or 'item'", axis)
    return ratings if axis == "user" else ratings.transposed


def list_length(n: int, n_candidates: int, short_lists: ShortLists) -> int:
    """Return the length of a list of `n` when there are `n_candidates`, or say that there are too few."""
    require(n >= 1, "n", "at least 1", n)
    require(short_lists in ("error", "shorten"), "short_lists", "'error' or 'shorten'", short_lists)
    if short_lists == "error":
        rule = f"at most {n_candidates:,}, the number of candidates (or short_lists='shorten')"
        require(n <= n_candidates, "n", rule, n)
    return min(n, n_candidates)


def candidate_lists(
    ratings: Ratings,
    *,
    n: int,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    short_lists: ShortLists = "error",
    threads: int | None = None,
    progress: bool | None = None,
) -> CandidateLists:
    """Return for every row the n most similar other rows, exactly.

    Parameters
    ----------
    ratings
        Who rated what how.
    n
        The length of each list.
    axis
        Compare users, or items.
    similarity
        `cosine` [COS], `cosine_corated`, `pearson`, or a `Similarity`.
    short_lists
        What to do when there are fewer than n other rows: an error, or lists of as many as there are.
    threads
        How many threads to use; None for as many as there are cores.
    progress
        Show a bar on standard error; None for a terminal only.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> gf.candidate_lists(films, n=20)
    CandidateLists(1,238 x 20)
    """
    rows = rows_of(ratings, axis)
    n_rows = rows.shape[0]
    length = list_length(n, n_rows - 1, short_lists)
    measure = Similarity.of(similarity)
    profiles = Profiles.of(rows.csr)
    found = nearest_rows(profiles, length, measure, threads=threads, progress=progress)
    return CandidateLists(*found)


def nearest_rows(
    profiles: Profiles,
    n: int,
    similarity: Similarity,
    *,
    threads: int | None = None,
    progress: bool | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return for every row its n nearest other rows, and their similarities."""
    if tiles.fits(profiles, similarity):
        steps = tiles.n_tiles(profiles.n_rows, threads)
        with bar("candidate lists", steps, show=progress) as advance:
            return tiles.nearest_by_tiles(profiles, n, threads=threads, advance=advance)
    engine = RowsAgainstAll(profiles, similarity)
    every = np.arange(profiles.n_rows)
    with bar("candidate lists", engine.n_pieces(len(every)), show=progress) as advance:
        return engine.nearest(profiles, every, n, themselves=True, threads=threads, advance=advance)


def candidate_list(
    ratings: Ratings,
    profile: Profile | Sequence[Profile],
    *,
    n: int | None = None,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    threads: int | None = None,
) -> CandidateLists:
    """Return the candidate list of one profile, or of a batch of them, that need not be in the data.

    Parameters
    ----------
    ratings
        Who rated what how.
    profile
        What somebody rated, `{item: rating}` (with `axis="item"`: who rated something, `{user: rating}`), or a
        sequence of such profiles.
    n
        The length of the list; None for every row.
    axis, similarity, threads
        As in `candidate_lists`.

    Returns
    -------
    CandidateLists
        For one profile, arrays of shape (n,); for a batch, (profiles, n).
    """
    rows = rows_of(ratings, axis)
    batch = [profile] if isinstance(profile, Mapping) else list(profile)
    length = list_length(rows.shape[0] if n is None else n, rows.shape[0], "error")
    profiles = Profiles.of(rows.csr)
    others = lay_out(profiles, rows, batch)
    engine = RowsAgainstAll(profiles, Similarity.of(similarity))
    every = np.arange(len(batch))
    indices, values = engine.nearest(others, every, length, themselves=False, threads=threads)
    if isinstance(profile, Mapping):
        return CandidateLists(indices[0], values[0])
    return CandidateLists(indices, values)


def lay_out(profiles: Profiles, rows: Ratings, batch: Sequence[Profile]) -> Profiles:
    """Lay out profiles given by ids in the units and columns of `profiles`."""
    columns, values = [], []
    for profile in batch:
        ratings = np.fromiter(profile.values(), dtype=np.float64, count=len(profile))
        if not np.isfinite(ratings).all():
            raise DataError("a profile must hold finite ratings only")
        columns.append(rows.columns(list(profile)))
        values.append(ratings)
    return profiles.lay_out(columns, values)
