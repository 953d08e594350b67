"""`PrivateTopN`: lists from events, with a proof: noisy counts and co-occurrences once, then post-processing."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import AnyIntegers, Flags, Floats
from goodfence.data.ratings import Feedback, Ratings
from goodfence.errors import ModelFileError
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
from goodfence.models.private.list_model import (
    FARTHEST,
    MOST_FACTORS,
    ListModel,
    list_factors,
)
from goodfence.models.private.releases import Noisy, most_rated
from goodfence.models.recommender import IdsLike, rated_rows
from goodfence.neighbours.lists import Ranked
from goodfence.privacy.accounting import lattice_distance
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA, Publisher
from goodfence.registry import register
from goodfence.rng import RNG
from goodfence.settings import checked

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
        super().__init__(
            epsilon=epsilon, delta=delta, unit=unit, catalogue=catalogue, items=items, rng=rng
        )

    def laid_out(self, ratings: Ratings) -> Ratings:
        """Return the events as they are fitted: each once, on the `catalogue`, or as they are where that was chosen."""
        laid = super().laid_out(ratings)
        csr = laid.csr
        if (csr.data == 1).all():
            return laid
        ones = (np.ones(csr.nnz), csr.indices, csr.indptr)
        ids = (laid.users, laid.items)
        how: dict[str, Any] = {"titles": laid.titles, "items_declared": laid.items_declared}
        once = sparse.csr_array(ones, shape=csr.shape)
        return Ratings(once, *ids, feedback="implicit", **how)

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
        scores: Floats = self.model_.scores(self.model_.weigh(own))[0]
        return scores

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        return self.model_.rank(rated_rows(self.ratings_.csr, rows), allowed, n)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"popularity": self.model_.popularity, "factors": self.model_.factors}

    @classmethod
    def _unpacked(cls, arrays: Arrays, ratings: Ratings) -> ListModel:
        popularity, factors, n_items = arrays["popularity"], arrays["factors"], ratings.shape[1]
        shaped = popularity.shape == (n_items,) and factors.ndim == 2 and len(factors) == n_items
        # Not `>`: NaN fails these tests too.
        sound = (
            shaped
            and popularity.dtype == factors.dtype == np.float64
            and factors.shape[1] <= MOST_FACTORS
            and bool((np.abs(popularity) <= FARTHEST).all() and (np.abs(factors) <= 1).all())
        )
        if not sound or not (ratings.csr.data == 1).all():
            raise ModelFileError(
                f"the model's arrays must be numbers of at most {FARTHEST:g}, one row an item, and its events ones"
            )
        return ListModel(popularity, factors)


def how_many(items: Noisy, unit: Unit, mu: float) -> int:
    """Return how many of the most frequent items (by noisy counts) are chosen.

    As many as occur often enough to stand out of the noise of that many: an item's row is the sum of as many vectors
    of length at most 1 as its count says, and the noise's eigenvalues end at twice its deviation times the root of the
    number of items. Computed from noisy counts and public constants alone.
    """
    ordered = np.sort(items.values)[::-1][:MOST_CHOSEN]
    n_items = len(ordered)
    noise = co_occurrence_noise(unit, n_items, mu)
    clear = ordered >= _CLEAR * noise * np.sqrt(np.arange(1, n_items + 1))
    found = int(np.flatnonzero(clear).max(initial=-1)) + 1
    return min(max(found, _FEWEST_CHOSEN), n_items)
