"""Candidate lists: for each row the other rows by descending similarity, ties by ascending row number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from goodfence.arrays import AnyIntegers, Csr, Floats, Rows, as_csr
from goodfence.data.ratings import Profile, Ratings
from goodfence.errors import require
from goodfence.kernels.moments import (
    add_counted_dots,
    add_dots,
    add_moments,
    corated_cosines,
    correlations,
    cosines,
    cosines_of_rows,
    inverse_differences,
)
from goodfence.kernels.order import nearest
from goodfence.neighbours import all_pairs as tiles
from goodfence.neighbours.baseline import Baseline
from goodfence.neighbours.similarity import OVER_ALL, Profiles, Similarity
from goodfence.parallel import Advance, bar, ranges, run
from goodfence.settings import checked

Axis: TypeAlias = Literal["user", "item"]
ShortLists: TypeAlias = Literal["error", "shorten"]


@dataclass(frozen=True, eq=False, slots=True)
class CandidateLists:
    """For each row its nearest other rows, nearest first."""

    indices: Rows
    """(rows, n): row numbers, by descending similarity, ties by ascending row number."""
    similarities: Floats
    """(rows, n): how similar."""

    def __repr__(self) -> str:
        return f"CandidateLists({' x '.join(f'{size:,}' for size in self.indices.shape)})"


def rows_along(ratings: Ratings, axis: Axis) -> Ratings:
    """Return the ratings with the things to be compared as rows: users, or items."""
    require(axis in ("user", "item"), "axis", "'user' or 'item'", axis)
    return ratings if axis == "user" else ratings.transposed


def compared_rows(ratings: Ratings, axis: Axis, similarity: Similarity) -> Profiles:
    """Return the rows that are compared: the ratings, or what is left of them without means or biases."""
    base, csr = similarity.base(axis), rows_along(ratings, axis).csr
    if base is None:
        return Profiles.of(csr)
    baseline = Baseline.of(ratings, base)
    return Profiles.of(csr, baseline if axis == "user" else baseline.transposed)


def list_length(n: int, n_candidates: int, short_lists: ShortLists) -> int:
    """Return the length of a list of `n` when there are `n_candidates`, or raise where these are too few."""
    require(n >= 1, "n", "at least 1", n)
    require(short_lists in ("error", "shorten"), "short_lists", "'error' or 'shorten'", short_lists)
    rule = f"at most {n_candidates:,}, the number of candidates (or short_lists='shorten')"
    require(short_lists == "shorten" or n <= n_candidates, "n", rule, n)
    return min(n, n_candidates)


@checked
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
    ratings : Ratings
        The user-item rating matrix.
    n : int
        The length of each list.
    axis : {"user", "item"}, default "user"
        Compare users, or items.
    similarity : Similarity or str, default "cosine"
        A `Similarity`, or its name.
    short_lists : {"error", "shorten"}, default "error"
        Raise where there are fewer than n other rows, or return shorter lists.
    threads, progress
        As in `NeighbourCF`.

    Examples
    --------
    >>> import goodfence as gf
    >>> gf.candidate_lists(gf.load("movietweetings"), n=20)
    CandidateLists(1,238 x 20)
    """
    length = list_length(n, rows_along(ratings, axis).shape[0] - 1, short_lists)
    measure = Similarity.of(similarity)
    profiles = compared_rows(ratings, axis, measure)
    found = nearest_rows(profiles, length, measure, threads=threads, progress=progress)
    return CandidateLists(*found)


def nearest_rows(
    profiles: Profiles, n: int, similarity: Similarity, *, threads: int | None = None, progress: bool | None = None
) -> tuple[Rows, Floats]:
    """Return for every row its n nearest other rows, and their similarities."""
    if tiles.fits(profiles, similarity):
        few = tiles.are_few(profiles, n)
        steps = profiles.n_rows if few else tiles.n_tiles(profiles.n_rows, threads)
        with bar("candidate lists", steps, show=progress) as advance:
            nearest_by = tiles.nearest_by_rows if few else tiles.nearest_by_tiles
            return nearest_by(profiles, n, threads=threads, advance=advance)
    engine = RowsAgainstAll(profiles, similarity)
    every = np.arange(profiles.n_rows)
    with bar("candidate lists", len(ranges(len(every), _PIECE)), show=progress) as advance:
        return engine.nearest(profiles, every, n, themselves=True, threads=threads, advance=advance)


@checked
def profile_candidates(
    ratings: Ratings,
    profile: Profile | Sequence[Profile],
    *,
    n: int | None = None,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    threads: int | None = None,
) -> CandidateLists:
    """Return the candidate list of one profile, or of a batch of them, that need not be in the data.

    A profile is `{item: rating}` (with `axis="item"`: `{user: rating}`); `n` is None for every row. The arrays have
    shape (n,) for one profile, and (profiles, n) for a batch. Other parameters as in `candidate_lists`.
    """
    rows = rows_along(ratings, axis)
    batch = [profile] if isinstance(profile, Mapping) else list(profile)
    rule = "a mapping of items to ratings, or a list of such"
    require(all(isinstance(one, Mapping) for one in batch), "profile", rule, type(profile))
    length = list_length(rows.shape[0] if n is None else n, rows.shape[0], "error")
    measure = Similarity.of(similarity)
    profiles = compared_rows(ratings, axis, measure)
    cells = [rows.profile_cells(one) for one in batch]
    others = profiles.lay_out([own[0] for own in cells], [own[1] for own in cells])
    engine = RowsAgainstAll(profiles, measure)
    every = np.arange(len(batch))
    indices, values = engine.nearest(others, every, length, themselves=False, threads=threads)
    if isinstance(profile, Mapping):
        return CandidateLists(indices[0], values[0])
    return CandidateLists(indices, values)


_PIECE = 64


@dataclass(frozen=True, eq=False)
class RowsAgainstAll:
    """Compares single rows with all rows of `profiles`."""

    profiles: Profiles
    similarity: Similarity

    def similarities(self, others: Profiles, row: int) -> Floats:
        """Return the similarity of row `row` of `others` to every row of the profiles."""
        start, stop = others.rows.indptr[row], others.rows.indptr[row + 1]
        columns, values = others.rows.indices[start:stop], others.rows.data[start:stop]
        with np.errstate(all="ignore"):  # of rows without co-rated columns, and of huge ratings
            if self.similarity.name in OVER_ALL:
                result, common = self._over_all(columns, values, float(others.squared_norms[row]))
            else:
                result, common = self._over_corated(columns, values)
            if self.similarity.shrinkage:
                result *= (common - 1.0) / (common - 1.0 + self.similarity.shrinkage)
        if self.similarity.counts_common:
            result[common < self.similarity.min_common] = 0.0
        return result

    def block(self, rows: AnyIntegers) -> Floats:
        """Return the similarities of some rows of the profiles to every row, (rows, all rows)."""
        result = np.empty((len(rows), self.profiles.n_rows))
        plain = self.similarity.name in ("cosine", "centred_cosine")
        if not plain or self.similarity.counts_common:
            for place, row in enumerate(rows.tolist()):
                result[place] = self.similarities(self.profiles, row)
            return result
        own = as_csr(self.profiles.rows)
        cosines_of_rows(rows, own, self.profiles.squared_norms, self._columns, result)
        return result

    @property
    def _columns(self) -> Csr:
        return as_csr(self.profiles.columns)

    def _over_all(self, columns: AnyIntegers, values: Floats, squared_norm: float) -> tuple[Floats, Floats]:
        """Return similarities that divide by all ratings of a row, and the numbers of co-rated columns."""
        n_rows, result = self.profiles.n_rows, np.empty(self.profiles.n_rows)
        if self.similarity.name != "jaccard" and not self.similarity.counts_common:
            dots = np.zeros(n_rows)
            add_dots(columns, values, self._columns, dots)
            cosines(dots, squared_norm, self.profiles.squared_norms, result)
            return result, dots
        sums = np.zeros((n_rows, 2))
        add_counted_dots(columns, values, self._columns, sums)
        common = sums[:, 1]
        if self.similarity.name == "jaccard":
            either = len(values) + self.profiles.counts - common
            return np.divide(common, either, out=np.zeros(n_rows), where=either > 0.0), common
        cosines(sums[:, 0], squared_norm, self.profiles.squared_norms, result)
        return result, common

    def _over_corated(self, columns: AnyIntegers, values: Floats) -> tuple[Floats, Floats]:
        """Return similarities over the co-rated columns, and how many these are."""
        name, profiles = self.similarity.name, self.profiles
        moments, result = np.zeros((profiles.n_rows, 6)), np.empty(profiles.n_rows)
        add_moments(columns, values, self._columns, moments)
        if name == "pearson":
            count = float(len(values)) if self.similarity.centre == "all" else -1.0
            total = float(values.sum())
            correlations(moments, total, count, profiles.totals, profiles.counts, result)
        elif name == "msd":
            inverse_differences(moments, float(max(profiles.factor, 1)), result)
        else:
            corated_cosines(moments, result)
        return result, moments[:, 0]

    def nearest(
        self,
        others: Profiles,
        rows: AnyIntegers,
        n: int,
        *,
        themselves: bool,
        threads: int | None = None,
        advance: Advance | None = None,
    ) -> tuple[Rows, Floats]:
        """Return the n nearest rows to each of `rows` of `others`; with `themselves`, `others` are the profiles."""
        indices, values = np.empty((len(rows), n), dtype=np.int32), np.empty((len(rows), n))
        self.compute_shared()
        _ = others.squared_norms

        def work(piece: tuple[int, int]) -> None:
            scratch = np.empty(self.profiles.n_rows)
            for position in range(*piece):
                row = int(rows[position])
                found, skip = self.similarities(others, row), row if themselves else -1
                nearest(found, skip, scratch, indices[position], values[position])

        run(work, ranges(len(rows), _PIECE), threads=threads, advance=advance)
        return indices, values

    def compute_shared(self) -> None:
        """Compute what the threads share before they start."""
        own = self.profiles
        _ = own.columns, own.squared_norms, own.totals, own.counts
