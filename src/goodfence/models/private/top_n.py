"""`PrivateTopN`: lists from events, with a proof: noisy counts and co-occurrences once, then post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import LinAlgError, eigh
from scipy.special import expit

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Flags, Float32s, Floats, Integers, Rows, as_csr
from goodfence.data.ratings import Feedback, Ratings
from goodfence.errors import ModelFileError
from goodfence.kernels.weight_lists import HEAD_START, TILE, ZERO, ItemWeights, rank_by_weights, score_by_weights
from goodfence.models.persistence import Arrays
from goodfence.models.private.base import FromRatings
from goodfence.models.private.co_occurrence import (
    CO_OCCURRENCE_NAME,
    COUNTS_NAME,
    COUNTS_SHARE,
    MOST_CHOSEN,
    UNIT,
    EventProfiles,
    ReleasedLists,
    centre_of,
    co_occurrence_size,
    co_occurrence_totals,
    count_totals,
    how_many,
    release_co_occurrence,
    release_counts,
    release_lists,
    require_exact,
)
from goodfence.models.private.estimation import leading_eigenvectors
from goodfence.models.private.history import events_size, frozen_events, history_event_totals, release_history_events
from goodfence.models.private.lasting import LastingRecommender
from goodfence.models.private.life import Known
from goodfence.models.private.releases import Noisy, most_rated
from goodfence.models.private.updated import AHEAD, grown
from goodfence.models.recommender import IdsLike, rated_rows
from goodfence.neighbours.lists import Ranked, rank_in_pieces
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.fixed_point import integer_sensitivity
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA, Publisher
from goodfence.privacy.updates import Lasting, Updater, pairs_in_order
from goodfence.registry import register
from goodfence.rng import RNG
from goodfence.settings import checked

MOST_FACTORS = 64
FARTHEST = 1e3
"""No popularity is farther from 0: far beyond what is found, whatever the noise."""
LEAST_SCALE = 1e-6
"""The scale of no item is smaller, that of the largest being 1."""
_SPARE_FACTORS = 4
"""Factors kept beyond those whose eigenvalue stands out of the noise, but no more than these are."""
_ROUNDS = 2
"""How often the diagonal, which is not released, is filled in from the factors."""
_REGULARISATION = 350.0
"""The λ of EASE, for events that count 1."""
_EVENT_WEIGHT, _WEIGHT_DEVIATION, _WEIGHTS = 0.25, 0.15, (0.03, 0.7)
"""What one event counts in the co-occurrence: expected before the release, by how much wrong, and the limits."""
_LEARNING_STEPS, _LEARNT_FROM = 60, 100_000
"""How long, and from how many cells at most, the sizes of cells are learnt."""


@dataclass(frozen=True, eq=False)
class ListModel:
    """Every item's popularity, and how the chosen items go together: all that is kept of the releases."""

    popularity: Floats
    """(items,): noisy counts, those of the chosen items of length 1."""
    chosen: Integers
    """(chosen,): the columns of the chosen items, ascending."""
    partial: Float32s
    """(chosen, chosen): the partial correlations between them, of all others being known; the diagonal is 0."""
    scale: Floats
    """(chosen,): by what the correlations are multiplied by row and divided by column to be weights."""

    @cached_property
    def weights(self) -> Float32s:
        """(chosen, chosen): what each chosen item of a profile adds to the score of each other."""
        return np.asarray(self.partial * (self.scale[:, None] / self.scale), dtype=np.float32)

    @cached_property
    def tiles(self) -> ItemWeights:
        """The weights as the kernels take them."""
        popular = np.maximum(self.popularity[self.chosen], 0.0)
        order = np.argsort(-(popular @ self.weights**2), kind="stable")  # whose scores are often far from 0
        chosen, n_chosen, places = self.chosen[order], len(order), np.full(len(self.popularity), -1, dtype=np.int32)
        places[chosen] = np.arange(n_chosen)
        others = np.argsort(-self.popularity, kind="stable")
        weights = np.zeros((n_chosen + 2, -(-n_chosen // TILE) * TILE), dtype=np.float32)
        weights[:n_chosen, :n_chosen] = self.weights[np.ix_(order, order)]
        weights[n_chosen, :n_chosen] = HEAD_START * popular[order]
        sums = np.maximum(np.maximum(weights, 0).sum(axis=0), np.maximum(-weights, 0).sum(axis=0))
        steps = np.maximum(np.maximum(np.abs(weights).max(axis=0) / 127, sums / 30_000), np.float32(1e-30))
        rough = _in_tiles((np.rint(weights / steps) + ZERO).astype(np.uint8))
        rough[:] = rough.reshape(*rough.shape[:2], 2, TILE // 2).swapaxes(2, 3).reshape(rough.shape)
        tables = (_in_tiles(weights), rough, steps.reshape(-1, TILE))
        return ItemWeights(places, chosen, self.popularity, others[places[others] < 0], *tables)

    def scores(self, profiles: sparse.csr_array) -> Floats:
        """Return the scores of all items for profiles of ones."""
        found: Floats = np.empty(profiles.shape)
        score_by_weights(as_csr(profiles), self.tiles, found, np.empty(self.tiles.steps.size, dtype=np.float32))
        return found

    def rank(self, profiles: sparse.csr_array, allowed: Flags, n: int) -> Ranked:
        """Return the lists of some profiles."""

        def rank(own: Csr, _part: slice, columns: Rows, scores: Floats) -> None:
            rank_by_weights(own, self.tiles, allowed, columns, scores)

        return rank_in_pieces(profiles, n, rank, together=2048)


def _in_tiles(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the columns in tiles, where no row of a tile is on one cache line more than needed."""
    room = np.empty(weights.nbytes + TILE, dtype=np.int8)
    found = room[-room.ctypes.data % TILE :][: weights.nbytes].view(weights.dtype).reshape(-1, len(weights), TILE)
    found[:] = weights.reshape(len(weights), -1, TILE).swapaxes(0, 1)
    return found


def estimate_lists(released: ReleasedLists) -> ListModel:
    """Return what lists are made of, from what was released alone.

    Where no factor stands out of the noise, the weights are those of popularity.
    """
    counts = released.counts
    length = math.sqrt(float(counts @ counts))
    popularity = np.clip(released.items.values / length, -FARTHEST, FARTHEST)
    centre = released.centre
    gram = estimate_gram(released)
    if gram is None:
        partial, scale = np.outer(centre, centre), np.ones(len(counts))
    else:
        partial, scale = partial_correlations(*gram)
    np.fill_diagonal(partial, 0.0)
    return ListModel(popularity, released.chosen, partial.astype(np.float32), scale)


def partial_correlations(gram: Floats, least: float) -> tuple[Floats, Floats]:
    """Return the partial correlations of a matrix whose eigenvalues are at least `least`, or are made so, and scales.

    With P its inverse they are -P_ij/sqrt(P_ii P_jj), and the weights of EASE -P_ij/P_jj.
    """
    try:
        values, vectors = eigh(gram)
    except LinAlgError:  # none of what was released may raise
        values, vectors = np.maximum(np.diag(gram), least), np.eye(len(gram))
    inverse = (vectors / np.maximum(values, least)) @ vectors.T
    scale = np.sqrt(np.diag(inverse))
    partial = np.clip(-inverse / np.outer(scale, scale), -1.0, 1.0)
    return partial, np.maximum(scale / scale.max(), LEAST_SCALE)


def estimate_gram(released: ReleasedLists) -> tuple[Floats, float] | None:
    """Return X'X + λI, with each user weighed as in the release, and how small its eigenvalues may be.

    It is the low rank that stands out of the noise, the rest cell by cell, the centre and the diagonal, which were not
    released, and λI. None where nothing stands out.
    """
    counts, centre = released.counts, released.centre
    noise, n_items = released.pairs.noise, len(counts)
    most = min(MOST_FACTORS, n_items - 1)
    if most < 1:
        return None
    edge = 2 * noise * math.sqrt(n_items)
    weight = event_weight(released)
    matrix: Float32s = released.pairs.values.astype(np.float32)
    values, vectors = leading_eigenvectors(matrix, most)
    if not values[0] > edge:
        return None
    cells = denoised_cells(_rest(released, values, vectors, weight * counts), counts, noise)
    for _ in range(_ROUNDS):
        clear = values > edge
        np.fill_diagonal(matrix, (vectors[:, clear] ** 2) @ _true_values(values[clear], edge))
        values, vectors = leading_eigenvectors(matrix, most)
    n_clear = int((values > edge).sum())
    rank = min(most, n_clear + min(n_clear, _SPARE_FACTORS))
    kept = np.maximum(values[:rank], 0.0)
    gram = np.asarray((vectors[:, :rank] * kept) @ vectors[:, :rank].T, dtype=np.float64) + cells
    np.fill_diagonal(gram, np.maximum(np.diag(gram), weight * counts))
    gram += float(counts @ counts) / (weight * float(counts.sum())) * np.outer(centre, centre)
    of_user = weight if released.unit == "event" else weight**2
    added = _REGULARISATION * of_user + edge / 4
    gram[np.diag_indices(n_items)] += added
    return gram, 0.2 * added


def event_weight(released: ReleasedLists) -> float:
    """Return what one event adds to the diagonal of the co-occurrence, in the mean."""
    # With its diagonal, weight * counts, the matrix T has no part along the centre v: so T v is minus that times v.
    along = released.counts * released.centre
    square = float(along @ along)
    found = -float(along @ (released.pairs.values @ released.centre)) / square
    precision = square / (2 * released.pairs.noise**2)
    before = 1 / _WEIGHT_DEVIATION**2
    weight = (precision * found + before * _EVENT_WEIGHT) / (precision + before)
    return min(max(weight, _WEIGHTS[0]), _WEIGHTS[1])


def _rest(released: ReleasedLists, values: AnyFloats, vectors: AnyFloats, diagonal: Floats) -> Floats:
    """Return what the factors above the edge leave of the released cells, and what the centre took of them."""
    edge = 2 * released.pairs.noise * math.sqrt(len(diagonal))
    clear, centre = values > edge, released.centre
    factors = vectors[:, clear] - np.outer(centre, centre @ vectors[:, clear])
    low = np.asarray((factors * _true_values(values[clear], edge)) @ factors.T, dtype=np.float64)
    own = np.maximum(diagonal - np.diag(low), 0.0)
    taken = np.outer(centre, centre) * (own[:, None] + own - float(centre**2 @ own))
    rest: Floats = released.pairs.values + taken - low
    np.fill_diagonal(rest, 0.0)
    return rest


def denoised_cells(cells: Floats, counts: Floats, noise: float) -> Floats:
    """Return the posterior means of cells: each is 0, or normal with a variance that grows with its items' counts."""
    # Which part is not 0, and how large that is (t, in units of the noise), are learnt by EM from every so many cells.
    root = np.sqrt(counts / counts.mean())
    size = np.outer(root, root)
    above = np.triu_indices(len(cells), 1)
    every = slice(None, None, -(-len(above[0]) // _LEARNT_FROM))
    learnt, sizes = cells[above][every] / noise, size[above][every]
    share, t = 0.5, 0.5
    for _ in range(_LEARNING_STEPS):
        kept, real = _kept(learnt, t * sizes, share)
        squares = (kept * learnt) ** 2 + kept
        share = float(np.clip(real.mean(), 1e-6, 1 - 1e-6))
        t = float(np.clip((real * squares / sizes).sum() / real.sum(), 1e-6, 1e6))
    kept, real = _kept(cells / noise, t * size, share)
    found: Floats = real * kept * cells
    np.fill_diagonal(found, 0.0)
    return found


def _kept(cells: Floats, variances: Floats, share: float) -> tuple[Floats, Floats]:
    """Return what is kept of cells that are not 0, and how likely they are that; the noise is 1."""
    kept = variances / (1 + variances)
    odds = np.log(share / (1 - share)) - np.log1p(variances) / 2 + kept * cells**2 / 2
    return kept, expit(odds)


def _true_values(values: AnyFloats, edge: float) -> AnyFloats:
    """Return what an eigenvector above the edge is expected to carry [Benaych-Georges and Nadakuditi 2011]."""
    # Noise turns an eigenvalue l into l + e²/l, and leaves 1 - e²/l² of its eigenvector's square; 2 e is the edge.
    true = (values + np.sqrt(np.maximum(values**2 - edge**2, 0.0))) / 2
    return np.asarray(true - (edge / 2) ** 2 / np.maximum(true, 1e-300))


@checked
@register
class PrivateTopN(LastingRecommender):
    """Lists of items from events (clicks, purchases, likes), with a proved guarantee.

    Which items go together is released once, with noise; a list is then made of that and of the user's own events.

    Parameters
    ----------
    epsilon : float, default 1.0
        As in `PrivateCF`, and so are `delta`, `catalogue`, `items`, `rng` and `lasting`.
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
    _sized = {None: (COUNTS_NAME, slice(None))}  # noqa: RUF012 - never changed
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
        lasting: Lasting | None = None,
    ) -> None:
        given: Any = {"epsilon": epsilon, "delta": delta, "unit": unit, "lasting": lasting}
        super().__init__(**given, catalogue=catalogue, items=items, rng=rng)

    def laid_out(self, ratings: Ratings) -> Ratings:
        """Return the events as they are fitted: each once, on the `catalogue`, or as they are where that was chosen."""
        laid = super().laid_out(ratings)
        csr = laid.csr
        # Whatever the events are, without a look at them: what is public of the result is the same.
        once = sparse.csr_array((np.ones(csr.nnz), csr.indices, csr.indptr), shape=csr.shape)
        how: dict[str, Any] = {"titles": laid.titles, "items_declared": laid.items_declared}
        return Ratings(once, laid.users, laid.items, feedback="implicit", liked_from=laid.liked_from, **how)

    def profiles_of(self, ratings: Ratings) -> EventProfiles:
        """Return which items each user has."""
        return EventProfiles.of(ratings)

    def _distance(self, n_items: int) -> float:
        pairs = MOST_CHOSEN * (MOST_CHOSEN - 1) // 2
        return 2 * lattice_distance(max(n_items, pairs), SIGMA)

    def _learn(self, profiles: EventProfiles, mu: float, publisher: Publisher) -> ListModel:
        if isinstance(publisher, Updater):
            return estimate_lists(self._release_update(profiles, mu, publisher))
        return estimate_lists(release_lists(profiles, self.unit, mu, publisher))

    def _numbers(self, room: int) -> int:
        listed = min(MOST_CHOSEN, room)
        return room + listed * (listed - 1) // 2

    def _release_update(self, profiles: EventProfiles, mu: float, updater: Updater) -> ReleasedLists:
        """Publish the counts, and the pairs of a list of items that only grows; return the chosen items' totals."""
        known, past, unit = updater.known, updater.past[-1] if updater.past else {}, self.unit
        of_pairs, updater.listed = mu * math.sqrt(1 - COUNTS_SHARE), min(MOST_CHOSEN, profiles.room)
        items = release_counts(profiles, unit, mu * math.sqrt(COUNTS_SHARE), updater)
        effective = updater.effective(of_pairs)
        chosen = most_rated(items.values, how_many(items, unit, effective))
        later = how_many(Noisy(AHEAD * items.values, items.noise), unit, effective)
        wanted = grown(past.get("listed", chosen[:0]), np.union1d(chosen, most_rated(items.values, later)))
        listed = known.setdefault("listed", wanted[: updater.listed])
        known.setdefault("centre", centre_of(np.maximum(items.values[listed], items.noise)))
        require_exact(items, unit, co_occurrence_size(unit, updater.listed, integer_sensitivity(of_pairs)))
        if profiles.arrival is not None:
            found = release_history_events(profiles, listed, known["centre"] / UNIT, of_pairs, updater)
        else:
            found = release_co_occurrence(profiles, listed, known["centre"], unit, of_pairs, updater)
        places = np.full(profiles.n_items, -1, dtype=np.int64)
        places[listed] = np.arange(len(listed))
        chosen = chosen[places[chosen] >= 0]
        counts, own = np.maximum(items.values[chosen], items.noise), places[chosen]
        pairs = Noisy(found.values[np.ix_(own, own)], found.noise)
        return ReleasedLists(unit, items, chosen, counts, centre_of(counts) / UNIT, pairs)

    def _sums(self, profiles: EventProfiles, known: Known) -> dict[str, Integers]:
        mu, unit, listed = self.life_.terms.of_batch, self.unit, known["listed"]
        counts = profiles.total(count_totals, unit, integer_sensitivity(mu * math.sqrt(COUNTS_SHARE)))
        target = integer_sensitivity(mu * math.sqrt(1 - COUNTS_SHARE))
        most = min(MOST_CHOSEN, profiles.room)
        if profiles.arrival is not None:
            pairs = profiles.total(history_event_totals, listed, events_size(most, target))
        else:
            size = co_occurrence_size(unit, most, target)
            pairs = co_occurrence_totals(profiles, listed, known["centre"], unit, size)
        return {COUNTS_NAME: counts, CO_OCCURRENCE_NAME: pairs[pairs_in_order(len(listed))]}

    def frozen(self, profiles: EventProfiles, known: Known) -> Integers | None:
        """Return 1 for each event whose item was listed."""
        return frozen_events(profiles, known["listed"])

    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        once = np.ones_like(values)  # however often it happened
        profile = (once, columns, np.array([0, len(columns)]))
        own = sparse.csr_array(profile, shape=(1, self.ratings_.shape[1]))
        return np.asarray(self.model_.scores(own)[0])

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        return self.model_.rank(rated_rows(self.ratings_.csr, rows), allowed, n)

    def _similarities(self, column: int) -> Floats:
        """Return what one event of the item adds to the scores of the others."""
        found = np.full(self.ratings_.shape[1], np.nan)
        place = np.flatnonzero(self.model_.chosen == column)
        if len(place):
            found[self.model_.chosen] = self.model_.weights[place[0]]
        return found

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        model = self.model_
        partial = model.partial[np.triu_indices(len(model.chosen), 1)]
        return {"popularity": model.popularity, "chosen": model.chosen, "partial": partial, "scale": model.scale}

    @classmethod
    def _unpacked(cls, arrays: Arrays, ratings: Ratings) -> ListModel:
        popularity, chosen, partial, scale = (arrays[name] for name in ("popularity", "chosen", "partial", "scale"))
        n_items, n_chosen = ratings.shape[1], chosen.size
        # Not `>`: NaN fails these tests too.
        sound = (
            popularity.shape == (n_items,),
            chosen.shape == scale.shape == (n_chosen,),
            1 <= n_chosen <= MOST_CHOSEN,
            partial.shape == (n_chosen * (n_chosen - 1) // 2,),
            popularity.dtype == scale.dtype == np.float64,
            chosen.dtype == np.int64,
            partial.dtype == np.float32,
            (np.abs(popularity) <= FARTHEST).all(),
            (np.abs(partial) <= 1).all(),
            ((scale >= LEAST_SCALE) & (scale <= 1)).all(),
            (np.diff(chosen) > 0).all(),
            ((chosen >= 0) & (chosen < n_items)).all(),
            (ratings.csr.data == 1).all(),
        )
        if not all(sound):
            raise ModelFileError(
                f"the model's arrays must be numbers of at most {FARTHEST:g} about its items, and its events ones"
            )
        matrix = np.zeros((n_chosen, n_chosen), dtype=np.float32)
        matrix[np.triu_indices(n_chosen, 1)] = partial
        return ListModel(popularity, chosen, matrix + matrix.T, scale)
