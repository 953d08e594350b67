"""`NeighbourCF`: neighbourhood-based collaborative filtering with any selection mechanism.

The neighbours are drawn once, in `fit`: asking again reveals nothing new.
"""

from __future__ import annotations

import dataclasses
from hashlib import blake2b
from os import PathLike
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Id, Ratings
from goodfence.engines.local.candidates import Axis, lay_out, rows_of
from goodfence.engines.local.draws import Draws
from goodfence.engines.local.predictions import Neighbourhoods
from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.errors import NotFittedError, require
from goodfence.kernels.predict import predict_for_profile
from goodfence.models.fallback import Fallback, Means, check_fallback
from goodfence.models.recommender import Floats, Ids, Profile, Recommendations, best
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG, Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.sensitivity import (
    ItemPeaks,
    item_peaks,
    profile_pair_sensitivities,
    profile_sensitivity,
)
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

Over: TypeAlias = Literal["raters", "neighbours"]


class NeighbourCF:
    """Predict from the ratings of chosen neighbours [PRED].

    Parameters
    ----------
    mechanism
        Who becomes a neighbour: `KNN`, `NPNS`, `PNCF`, `PPNS`, or your own.
    axis
        User-based, or item-based.
    similarity
        `cosine` [COS], `cosine_corated`, `pearson`, or a `Similarity`.
    over
        Divide by the similarities of the neighbours who rated the item, or of all of them.
    fallback
        What to predict where no neighbour rated the item: None (NaN), or a mean.
    rng
        None for randomness from the operating system; a seed makes an experiment repeatable.
    threads
        How many threads to use; None for as many as there are cores.
    progress
        Show a bar on standard error during `fit`; None for a terminal only.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> model = gf.NeighbourCF(gf.KNN(k=30)).fit(films)
    >>> len(model.recommend(films.users[0], n=5).items)
    5
    """

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        axis: Axis = "user",
        similarity: Similarity | str = "cosine",
        over: Over = "raters",
        fallback: Fallback | None = None,
        rng: RNG = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        require(axis in ("user", "item"), "axis", "'user' or 'item'", axis)
        require(over in ("raters", "neighbours"), "over", "'raters' or 'neighbours'", over)
        check_fallback(fallback)
        self.mechanism = mechanism
        self.axis: Axis = axis
        self.similarity = Similarity.of(similarity)
        self.over: Over = over
        self.fallback = fallback
        self.rng = rng
        self.threads = threads
        self.progress = progress

    def __repr__(self) -> str:
        return f"NeighbourCF({self.mechanism}, axis={self.axis!r}, similarity='{self.similarity}')"

    def fit(self, ratings: Ratings) -> Self:
        """Choose the neighbours of every row, once."""
        self._prepare(ratings, Streams(self.rng).key())
        chosen = self._draws().choose(threads=self.threads, progress=self.progress)
        self.neighbours_ = chosen.neighbours
        self.similarities_ = chosen.similarities
        self.weights_ = chosen.weights
        return self

    def restore(
        self,
        ratings: Ratings,
        key: int,
        neighbours: npt.NDArray[np.int32],
        similarities: Floats,
        weights: Floats,
    ) -> Self:
        """Take over what another fit chose."""
        self._prepare(ratings, key)
        self.neighbours_, self.similarities_, self.weights_ = neighbours, similarities, weights
        return self

    def _prepare(self, ratings: Ratings, key: int) -> None:
        self.ratings_ = ratings
        self.key_ = key
        self._rows = rows_of(ratings, self.axis)
        self._profiles = Profiles.of(self._rows.csr)
        self._means = Means.of(ratings) if self.fallback else None
        self._peaks: ItemPeaks | None = None

    def _draws(self) -> Draws:
        return Draws(self._profiles, self.mechanism, self.similarity, self.key_)

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Return the predicted rating of users[j] for items[j], NaN where no neighbour rated it."""
        self._require_fitted()
        require(len(users) == len(items), "items", "as many as users", len(items))
        return self.predict_cells(self.ratings_.rows(users), self.ratings_.columns(items))

    def predict_cells(
        self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]
    ) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""
        self._require_fitted()
        cells = (rows, columns) if self.axis == "user" else (columns, rows)
        predictions = self._neighbourhoods().predict(self._rows.csr, *cells, threads=self.threads)
        if self._means is None or self.fallback is None:
            return predictions
        missing = np.isnan(predictions)
        predictions[missing] = self._means.of_cells(self.fallback, rows[missing], columns[missing])
        return predictions

    def recommend(self, user: Id, n: int = 10) -> Recommendations:
        """Return at most n items the user has not rated, best first."""
        self._require_fitted()
        row = int(self.ratings_.rows([user])[0])
        csr = self.ratings_.csr
        seen = csr.indices[csr.indptr[row] : csr.indptr[row + 1]]
        unseen = np.ones(csr.shape[1], dtype=np.bool_)
        unseen[seen] = False
        if self.axis == "user":
            every = np.arange(csr.shape[1])
            scores = self.predict_cells(np.full(csr.shape[1], row), every)
        else:
            scores = self._from_items(seen, csr.data[csr.indptr[row] : csr.indptr[row + 1]])
            scores = self._filled(scores, row)
        return best(self.ratings_.items, scores, unseen, n)

    def answer(self, profile: Profile, items: Ids) -> Floats:
        """Return predictions for somebody who is not in the data, from her ratings {item: rating}.

        The same profile gets the same draw: asking twice reveals nothing new.
        """
        self._require_fitted()
        wanted = self.ratings_.columns(items)
        columns = self.ratings_.columns(list(profile))
        values = np.fromiter(profile.values(), dtype=np.float64, count=len(profile))
        if self.axis == "item":
            scores = self._from_items(columns, values)[wanted]
        else:
            scores = self._from_neighbours_of(profile, columns, values, wanted)
        if self._means is None or self.fallback is None:
            return scores
        own = float(values.mean()) if len(values) else self._means.overall
        missing = np.isnan(scores)
        scores[missing] = self._means.of_newcomer(self.fallback, own, wanted[missing])
        return scores

    def guarantee(self) -> Guarantee:
        """Return what the mechanism promises."""
        return self.mechanism.guarantee()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model, with the ratings it answers from, to the folder `path`."""
        from goodfence.models.saved_neighbours import save

        self._require_fitted()
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the fitted model that was saved in the folder `path`."""
        from goodfence.models.loading import load_as

        return load_as(cls, path)

    def _from_items(self, columns: npt.NDArray[np.integer], values: Floats) -> Floats:
        """Return item-based predictions of every item for one person's ratings."""
        profile = np.full(self.ratings_.shape[1], np.nan)
        profile[columns] = values
        predictions = np.empty(len(profile))
        every = np.arange(len(profile))
        raters = self.over == "raters"
        predict_for_profile(profile, every, self.neighbours_, self.weights_, raters, predictions)
        return predictions

    def _from_neighbours_of(
        self, profile: Profile, columns: npt.NDArray[np.integer], values: Floats, wanted: Any
    ) -> Floats:
        """Return user-based predictions for a newcomer: her candidate list, her draw, then [PRED]."""
        others = lay_out(self._profiles, self._rows, [profile])
        n_rows = self._profiles.n_rows
        reach = self.mechanism.reach(n_rows)
        engine = RowsAgainstAll(self._profiles, self.similarity)
        found = engine.nearest(others, np.zeros(1, dtype=np.int64), reach, themselves=False)
        key = _profile_key(self.key_, columns, values)
        draws = dataclasses.replace(self._draws(), key=key)
        bounds = self._newcomer_bounds(others, found[0])
        neighbours, _, weights = draws.from_lists(np.array([n_rows]), *found, bounds)
        newcomer = Neighbourhoods(neighbours, weights, self.over == "raters")
        return newcomer.predict(self._rows.csr, np.zeros(len(wanted), dtype=np.int64), wanted)

    def _newcomer_bounds(self, others: Profiles, indices: npt.NDArray[np.int32]) -> Floats | None:
        """Return RS of a newcomer among the rows, where the mechanism needs it."""
        options = self.mechanism.sensitivity
        if options is None:
            return None
        if self._peaks is None:
            self._peaks = item_peaks(self._profiles.rows, options)
        columns, values = others.rows.indices, others.rows.data
        if options.scope == "target":
            return np.array([profile_sensitivity(self._peaks, columns, values)])
        return profile_pair_sensitivities(self._peaks, columns, values)[0][indices]

    def _filled(self, scores: Floats, row: int) -> Floats:
        if self._means is None or self.fallback is None:
            return scores
        missing = np.flatnonzero(np.isnan(scores))
        scores[missing] = self._means.of_cells(self.fallback, np.full(len(missing), row), missing)
        return scores

    def _neighbourhoods(self) -> Neighbourhoods:
        return Neighbourhoods(self.neighbours_, self.weights_, self.over == "raters")

    def _require_fitted(self) -> None:
        if not hasattr(self, "neighbours_"):
            raise NotFittedError("the model must be fitted before it is asked; call fit(ratings)")


def _profile_key(key: int, columns: npt.NDArray[np.integer], values: Floats) -> int:
    """Return a key for the draw of a profile: the same profile, in any order, gets the same one."""
    order = np.argsort(columns)
    digest = blake2b(key.to_bytes(8, "little"), digest_size=8)
    digest.update(np.ascontiguousarray(columns[order], dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(values[order], dtype="<f8").tobytes())
    return int.from_bytes(digest.digest(), "little")
