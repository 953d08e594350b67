"""`PrivateTopN`: lists from events, with a proof: noisy counts and co-occurrences once, then post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Flags, Float32s, Floats, as_csr
from goodfence.data.ratings import Feedback, Ratings
from goodfence.errors import ModelFileError
from goodfence.kernels.factor_lists import TILE, Loadings, rank_by_factors, weigh_profiles
from goodfence.kernels.lists import merge_lists
from goodfence.models.persistence import Arrays
from goodfence.models.private.base import FromRatings, PrivateRecommender
from goodfence.models.private.co_occurrence import (
    MOST_CHOSEN,
    UNIT,
    EventProfiles,
    centre_of,
    co_occurrence_noise,
    release_co_occurrence,
    release_counts,
)
from goodfence.models.private.estimation import leading_eigenvectors
from goodfence.models.private.releases import Noisy, most_rated
from goodfence.models.recommender import IdsLike, rated_rows
from goodfence.neighbours.lists import Ranked, no_lists, rank_alike
from goodfence.parallel import ranges, run
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA, Publisher
from goodfence.registry import register
from goodfence.rng import RNG
from goodfence.settings import checked

MOST_FACTORS = 64
FARTHEST = 1e3
"""No popularity or factor loading is farther from 0: far beyond what is found, whatever the noise."""
_SPARE_FACTORS = 4
"""Factors kept beyond those whose eigenvalue stands out of the noise, but no more than these are."""
_DOUBT = 2.0
"""How much of a factor is doubted: it counts by w²/(w² + _DOUBT·edge²/4), w being its eigenvalue."""
_TOGETHER = 1024
"""How many lists a thread makes at a time."""
_ROUNDS = 2
"""How often the diagonal, which is not released, is filled in from the factors."""


@dataclass(frozen=True, eq=False)
class ListModel:
    """Every item's popularity and its loadings on the factors: all that is kept of the releases."""

    popularity: Floats
    """(items,): noisy counts, those of the chosen items of length 1."""
    factors: Floats
    """(items, factors): loadings, zero for items that were not chosen."""

    @cached_property
    def loadings(self) -> Loadings:
        """The same as the kernels take it."""
        chosen = np.flatnonzero(self.factors.any(axis=1))
        places = np.full(len(self.factors), -1, dtype=np.int32)
        places[chosen] = np.arange(len(chosen))
        own = self.factors[chosen]
        table = np.concatenate([self.popularity[chosen, None], own], axis=1)
        lengths = (own**2).sum(axis=0)
        shares = own**2 / np.maximum(lengths, 1e-300)
        return Loadings(
            places,
            np.maximum(self.popularity, 0.0),
            chosen,
            own.astype(np.float32),
            np.ascontiguousarray(table),
            _in_tiles(table),
            lengths,
            shares.sum(axis=1) / max(len(lengths), 1),
        )

    def weigh(self, profiles: sparse.csr_array) -> Floats:
        """Return the weights of popularity and of each factor for profiles of ones: (profiles, 1 + factors)."""
        weights = np.empty((profiles.shape[0], 1 + self.factors.shape[1]))
        weigh_profiles(as_csr(profiles), self.loadings, weights)
        return weights

    def scores(self, weights: Floats) -> Floats:
        """Return the scores of all items for profiles of these weights: their sum over popularity and loadings."""
        found: Floats = weights[:, :1] * self.popularity
        chosen, table = self.loadings.chosen, self.loadings.table
        found[:, chosen] += weights[:, 1:] @ table[:, 1:].T
        return found

    def rank(self, profiles: sparse.csr_array, allowed: Flags, n: int) -> Ranked:
        """Return the lists of some profiles; items without factors are in the same order for everybody."""
        model, popularity = self.loadings, self.popularity.copy()
        popularity[model.chosen] = np.nan
        others = rank_alike(popularity, profiles, allowed, n)
        lists = no_lists(profiles.shape[0], n, profiles.shape[1])

        def work(piece: tuple[int, int]) -> None:
            first, last = piece
            own = Csr(profiles.indptr[first : last + 1], profiles.indices, profiles.data)
            out = lists.columns[first:last], lists.scores[first:last]
            of_popularity = np.empty(last - first)
            rank_by_factors(own, model, allowed, *out, of_popularity)
            scores = others.scores[first:last] * of_popularity[:, np.newaxis]
            merge_lists(others.columns[first:last], scores, *out)

        run(work, ranges(profiles.shape[0], _TOGETHER))
        return lists


def _in_tiles(table: Floats) -> Float32s:
    """Return a table, (items, lines), tile by tile of items, each (lines, TILE): what is beyond the last item is 0."""
    n_items, n_lines = table.shape
    n_tiles = -(-n_items // TILE)
    padded = np.zeros((n_tiles * TILE, n_lines), dtype=np.float32)
    padded[:n_items] = table
    return np.ascontiguousarray(padded.reshape(n_tiles, TILE, n_lines).swapaxes(1, 2))


def list_factors(found: Noisy, centre: Floats) -> Floats:
    """Return the loadings of the chosen items on the factors that stand out of the noise, without the centre's part."""
    # Each is as long as it is trusted. The diagonal is not released; it is filled in from the factors.
    n_items = len(found.values)
    most = min(MOST_FACTORS, n_items - 1)
    if most < 1:
        return np.zeros((n_items, 0))
    edge = 2 * found.noise * math.sqrt(n_items)
    matrix: Float32s = found.values.astype(np.float32)
    for _ in range(_ROUNDS):
        values, vectors = leading_eigenvectors(matrix, most)
        clear = values > edge
        np.fill_diagonal(matrix, (vectors[:, clear] ** 2) @ _true_values(values[clear], edge))
    values, vectors = leading_eigenvectors(matrix, most)
    n_clear = int((values > edge).sum())
    rank = min(most, n_clear + min(n_clear, _SPARE_FACTORS))
    kept = np.maximum(values[:rank].astype(np.float64), 0.0)
    trust = kept**2 / (kept**2 + _DOUBT * edge**2 / 4 + 1e-300)
    rest = vectors[:, :rank] - np.outer(centre, centre @ vectors[:, :rank])
    return np.asarray(rest * np.sqrt(trust))


def _true_values(values: AnyFloats, edge: float) -> AnyFloats:
    """Return what an eigenvector above the edge is expected to carry [Benaych-Georges and Nadakuditi 2011]."""
    # Noise turns an eigenvalue l into l + e²/l, and leaves 1 - e²/l² of its eigenvector's square; 2 e is the edge.
    true = (values + np.sqrt(np.maximum(values**2 - edge**2, 0.0))) / 2
    return np.asarray(true - (edge / 2) ** 2 / np.maximum(true, 1e-300))


COUNTS_SHARE = 0.1
"""What the counts take of the squared mu."""
_CLEAR = 1.6
"""How often an item must occur, over the edge of the noise, to be chosen: a public constant."""
_FEWEST_CHOSEN = 64
"""So many are chosen in any case, if there are as many."""


@checked
@register
class PrivateTopN(PrivateRecommender):
    """Lists of items from events (clicks, purchases, likes), with a proved guarantee.

    Which items go together is released once, with noise; a list is then made of that and of the user's own events.

    Parameters
    ----------
    epsilon : float, default 1.0
        As in `PrivateCF`, and so are `delta`, `catalogue`, `items` and `rng`.
    unit : {"event", "user"}, default "event"
        What is protected: one event, or one user with all their events.

    Examples
    --------
    >>> import goodfence as gf
    >>> likes = gf.load("movietweetings").likes(8)
    >>> model = gf.PrivateTopN(epsilon=1.0, unit="event", items="from ratings").fit(likes)
    >>> model.guarantee().status, len(model.recommend(likes.users[0], n=5).items)
    ('proved', 5)
    """

    name: ClassVar[str] = "private-top-n"
    label: ClassVar[str] = "PrivateTopN"
    learns_from: ClassVar[Feedback] = "implicit"
    units: ClassVar[tuple[Unit, ...]] = ("event", "user")
    model_: ListModel

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit = "event",
        catalogue: IdsLike | None = None,
        items: FromRatings | None = None,
        rng: RNG = None,
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, unit=unit, catalogue=catalogue, items=items, rng=rng)

    def laid_out(self, ratings: Ratings) -> Ratings:
        """Return the events as they are fitted: each once, on the `catalogue`, or as they are where that was chosen."""
        laid = super().laid_out(ratings)
        csr = laid.csr
        if (csr.data == 1).all():
            return laid
        once = sparse.csr_array((np.ones(csr.nnz), csr.indices, csr.indptr), shape=csr.shape)
        how: dict[str, Any] = {"titles": laid.titles, "items_declared": laid.items_declared}
        return Ratings(once, laid.users, laid.items, feedback="implicit", **how)

    def profiles_of(self, ratings: Ratings) -> EventProfiles:
        """Return which items each user has."""
        return EventProfiles.of(ratings)

    def _distance(self, n_items: int) -> float:
        pairs = MOST_CHOSEN * (MOST_CHOSEN - 1) // 2
        return 2 * lattice_distance(max(n_items, pairs), SIGMA)

    def _learn(self, profiles: EventProfiles, mu: float, publisher: Publisher) -> ListModel:
        of_pairs = mu * math.sqrt(1 - COUNTS_SHARE)
        items = release_counts(profiles, self.unit, mu * math.sqrt(COUNTS_SHARE), publisher)
        chosen = most_rated(items.values, how_many(items, self.unit, of_pairs))
        kept = np.maximum(items.values[chosen], items.noise)
        centre = centre_of(kept)
        found = release_co_occurrence(profiles, chosen, centre, self.unit, of_pairs, publisher)
        own = list_factors(found, centre / UNIT)
        factors = np.zeros((profiles.n_items, own.shape[1]))
        factors[chosen] = own
        popularity = np.clip(items.values / math.sqrt(float(kept @ kept)), -FARTHEST, FARTHEST)
        return ListModel(popularity, np.clip(np.nan_to_num(factors), -1.0, 1.0))

    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        once = np.ones_like(values)  # however often it happened
        profile = (once, columns, np.array([0, len(columns)]))
        own = sparse.csr_array(profile, shape=(1, self.ratings_.shape[1]))
        return np.asarray(self.model_.scores(self.model_.weigh(own))[0])

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        return self.model_.rank(rated_rows(self.ratings_.csr, rows), allowed, n)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"popularity": self.model_.popularity, "factors": self.model_.factors}

    @classmethod
    def _unpacked(cls, arrays: Arrays, ratings: Ratings) -> ListModel:
        popularity, factors, n_items = arrays["popularity"], arrays["factors"], ratings.shape[1]
        # Not `>`: NaN fails these tests too.
        if not (
            popularity.shape == (n_items,)
            and factors.ndim == 2
            and len(factors) == n_items
            and factors.shape[1] <= MOST_FACTORS
            and popularity.dtype == factors.dtype == np.float64
            and (np.abs(popularity) <= FARTHEST).all()
            and (np.abs(factors) <= 1).all()
            and (ratings.csr.data == 1).all()
        ):
            raise ModelFileError(
                f"the model's arrays must be numbers of at most {FARTHEST:g}, one row an item, and its events ones"
            )
        return ListModel(popularity, factors)


def how_many(items: Noisy, unit: Unit, mu: float) -> int:
    """Return how many of the most frequent items (by noisy counts) are chosen: those that stand out of the noise."""
    # An item's row is the sum of as many vectors of length at most 1 as its count says, and the noise's eigenvalues
    # end at twice its deviation times the root of the number of items.
    ordered = np.sort(items.values)[::-1][:MOST_CHOSEN]
    n_items = len(ordered)
    noise = co_occurrence_noise(unit, n_items, mu)
    clear = ordered >= _CLEAR * noise * np.sqrt(np.arange(1, n_items + 1))
    found = int(np.flatnonzero(clear).max(initial=-1)) + 1
    return min(max(found, _FEWEST_CHOSEN), n_items)
