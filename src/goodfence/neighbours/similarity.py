"""The similarities, by name: `cosine` [COS], `pearson`, `adjusted_cosine` and others; and the rows they compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Floats
from goodfence.data.matrix import read_only
from goodfence.data.scale import all_multiples
from goodfence.errors import did_you_mean, require
from goodfence.neighbours.baseline import Base, Baseline, without_noise
from goodfence.settings import Length, checked

Name: TypeAlias = Literal[
    "cosine", "cosine_corated", "pearson", "centred_cosine", "adjusted_cosine", "pearson_baseline", "jaccard", "msd"
]
Centre: TypeAlias = Literal["all", "corated"]

OVER_ALL = ("cosine", "centred_cosine", "jaccard")  # the others look at co-rated columns only
_SHRINKAGE = {"pearson_baseline": 100.0}  # the default where it is not 0


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """How similar two users, or two items, are.

    Parameters
    ----------
    name : str, default "cosine"
        `cosine`: dot product over the co-rated items, norms over all items each one rated [COS].
        `cosine_corated`: norms over the co-rated items only. `pearson`: correlation over the co-rated items.
        `centred_cosine`: the cosine of what is left of each row without its own mean.
        `adjusted_cosine`: over the co-rated items, without each item's mean (item-based: without each user's).
        `pearson_baseline`: over the co-rated items, without the user and item biases [BIAS].
        `jaccard`: co-rated items over all that either rated. `msd`: 1 / (1 + mean squared difference).
    centre : {"all", "corated"}, default "all"
        For `pearson`: centre by the mean over all of a row's ratings, or over the co-rated ones only.
    shrinkage : float, optional
        Multiply by `(n - 1) / (n - 1 + shrinkage)`, with n co-rated items; None is 100 for `pearson_baseline` and
        0, no shrinkage, for the others.
    min_common : int, default 1
        With fewer co-rated items than this the similarity is 0.

    Examples
    --------
    >>> Similarity.of("pearson")
    Similarity(name='pearson', centre='all', shrinkage=0.0, min_common=1)
    """

    name: Name = "cosine"
    centre: Centre = "all"
    shrinkage: float | None = None
    min_common: Length = 1

    def __post_init__(self) -> None:
        names = get_args(Name)
        near = did_you_mean(str(self.name), names)
        require(self.name in names, "similarity", f"one of {', '.join(names)}", self.name, near)
        given = _SHRINKAGE.get(self.name, 0.0) if self.shrinkage is None else self.shrinkage
        holds = 0.0 <= float(given) < math.inf
        require(holds, "shrinkage", "a finite number of at least 0", given)
        object.__setattr__(self, "shrinkage", float(given))

    @classmethod
    def of(
        cls, similarity: Similarity | str, *, shrinkage: float | None = None, min_common: int | None = None
    ) -> Similarity:
        """Return `similarity` itself, or the one of that name; with these settings where they are given."""
        made = similarity
        if not isinstance(made, Similarity):
            made = cls(name=made)  # type: ignore[arg-type]  # checked by __post_init__
        given = {"shrinkage": shrinkage, "min_common": min_common}
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        return replace(made, **changes) if changes else made

    @property
    def counts_common(self) -> bool:
        """Whether it depends on how many items are co-rated, beyond what its name says."""
        return bool(self.shrinkage) or self.min_common > 1

    @property
    def is_plain_cosine(self) -> bool:
        """Whether it is [COS] and nothing else."""
        return self.name == "cosine" and not self.counts_common

    def base(self, axis: Literal["user", "item"]) -> Base | None:
        """Return what is subtracted from the ratings before they are compared."""
        means: tuple[Base, Base] = ("user_mean", "item_mean")
        own, other = means if axis == "user" else means[::-1]
        bases: dict[str, Base] = {"centred_cosine": own, "adjusted_cosine": other}
        return "bias" if self.name == "pearson_baseline" else bases.get(self.name)

    def __str__(self) -> str:
        words = [str(self.name)]
        if self.centre == "corated":
            words.append("centred on co-rated")
        if self.shrinkage != _SHRINKAGE.get(self.name, 0.0):
            words.append(f"shrinkage={self.shrinkage or 0:g}")
        if self.min_common > 1:
            words.append(f"min_common={self.min_common}")
        return ", ".join(words)


FACTORS = (1, 2, 4, 10)
ON_GRID = 1e-9
EXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class Profiles:
    """Rows to be compared with each other, and how to lay out other rows beside them."""

    rows: sparse.csr_array  # integers in float64 where the ratings lie on a grid
    factor: int  # what made the ratings integers; 0 where they are real-valued
    baseline: Baseline | None = None  # what was subtracted from the ratings

    @classmethod
    def of(cls, csr: sparse.csr_array, baseline: Baseline | None = None) -> Profiles:
        """Lay out the rows of `csr`, without what `baseline` expects."""
        if baseline is not None:
            return cls(baseline.deviations(csr), 0, baseline)
        factor = grid_of(csr.data)
        values = csr.data
        if factor:
            values = values * factor
            np.rint(values, out=values)
        return cls(read_only((values, csr.indices, csr.indptr), csr.shape), factor)

    def __repr__(self) -> str:
        return f"Profiles({self.n_rows:,} rows x {self.n_columns:,} columns)"

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.rows.shape[0])

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.rows.shape[1])

    @cached_property
    def columns(self) -> sparse.csr_array:
        """The same, columns x rows: for each column who rated it."""
        turned = self.rows.T.tocsr()
        return read_only((turned.data, turned.indices, turned.indptr), turned.shape)

    @cached_property
    def squared_norms(self) -> Floats:
        """The squared norm of each row, over all its columns."""
        return self.sums(self.rows.data * self.rows.data)

    @cached_property
    def totals(self) -> Floats:
        """The sum of each row."""
        return self.sums(self.rows.data)

    @cached_property
    def counts(self) -> Floats:
        """The number of ratings of each row."""
        return np.asarray(np.diff(self.rows.indptr).astype(np.float64))

    def sums(self, values: Floats) -> Floats:
        """Return the sum over each row of `values`, one per stored rating, left to right."""
        weights = sparse.csr_array((values, self.rows.indices, self.rows.indptr), self.rows.shape)
        return np.asarray(weights @ np.ones(self.n_columns))

    def lay_out(self, columns: Sequence[npt.NDArray[np.integer]], values: Sequence[Floats]) -> Profiles:
        """Return other rows (their columns and ratings), laid out in the same units as these."""
        counts = [len(row) for row in columns]
        indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        indices = np.concatenate([*columns, np.empty(0, dtype=np.int32)]).astype(np.int32)
        data = np.concatenate([*values, np.empty(0)]).astype(np.float64)
        csr = sparse.csr_array((data, indices, indptr), shape=(len(counts), self.n_columns))
        csr.sort_indices()
        if self.baseline is not None:
            left = csr.data.copy()
            for part in map(slice, csr.indptr[:-1], csr.indptr[1:]):
                own, rated = csr.indices[part], csr.data[part]
                left[part] -= self.baseline.for_own(self.baseline.own(own, rated), own)
            units = without_noise(left)
        else:
            scaled = csr.data * max(self.factor, 1)
            rounded = np.rint(scaled)
            exact = (self.factor > 0) & (np.abs(scaled - rounded) < ON_GRID)
            units = np.where(exact, rounded, scaled)
        laid = read_only((units, csr.indices, csr.indptr), csr.shape)
        return Profiles(laid, self.factor, self.baseline)


def grid_of(values: Floats) -> int:
    """Return the least factor that makes every value an integer small enough to be exact, or 0."""
    factor = next((factor for factor in FACTORS if all_multiples(values, 1 / factor)), 0)
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    units = largest * factor
    return factor if units * units * max(len(values), 1) < EXACT else 0
