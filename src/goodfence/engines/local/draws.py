"""The chosen neighbours of many rows: candidate lists, sensitivities and draws together.

A mechanism that looks at the nearest few of each list gets candidate lists of that length. One that looks at
whole lists gets them a block of rows at a time, and only the chosen k are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.engines.local.candidates import Axis, nearest_rows, rows_of
from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.engines.local.threads import ranges, run
from goodfence.engines.progress import bar
from goodfence.errors import SettingError
from goodfence.rng import RNG, Streams
from goodfence.selection.draw import draw_neighbours, laplace_noise
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.sensitivity import pair_sensitivities, sensitivities
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_PIECE = 4096
"""The most rows whose neighbours one thread chooses at a time."""
_PIECE_CELLS = 2_000_000
"""The most list entries that one thread holds at a time: about 100 MB with all that is computed from them."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The chosen neighbours of some rows, nearest first."""

    neighbours: Rows
    """(rows, k): row numbers."""
    similarities: Floats
    """(rows, k): how similar each one is."""
    weights: Floats
    """(rows, k): what each one counts in a prediction: the similarity, with noise if the mechanism adds it."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Chooses neighbours among the rows of `profiles`."""

    profiles: Profiles
    mechanism: Mechanism
    similarity: Similarity
    key: int
    """The key of the random stream: the draw of a row depends on the key and its row number only."""

    def __post_init__(self) -> None:
        check_similarity(self.mechanism, self.similarity)

    def choose(
        self,
        rows: npt.NDArray[np.integer] | None = None,
        *,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> Chosen:
        """Return the chosen neighbours of `rows`, or of every row."""
        askers = np.arange(self.profiles.n_rows) if rows is None else np.asarray(rows)
        reach = self.mechanism.reach(self.profiles.n_rows - 1)
        lists = self._lists(askers, reach, rows is None, threads, progress)
        bounds = self._target_bounds(askers)
        shape = (len(askers), self.mechanism.k)
        chosen = Chosen(np.empty(shape, dtype=np.int32), np.empty(shape), np.empty(shape))

        def work(piece: tuple[int, int]) -> None:
            part = slice(*piece)
            indices, similarities = lists(part)
            block = askers[part]
            bound = self._pair_bounds(block, indices) if bounds is None else bounds[part]
            found = self.from_lists(block, indices, similarities, bound)
            chosen.neighbours[part], chosen.similarities[part], chosen.weights[part] = found

        pieces = ranges(len(askers), max(1, min(_PIECE, _PIECE_CELLS // max(reach, 1))))
        with bar("choosing neighbours", len(pieces), show=progress) as advance:
            run(work, pieces, threads=threads, advance=advance)
        return chosen

    def from_lists(
        self,
        askers: npt.NDArray[np.integer],
        indices: Rows,
        similarities: Floats,
        bounds: Floats | None,
    ) -> tuple[Rows, Floats, Floats]:
        """Return the chosen neighbours, their similarities and their weights, given candidate lists.

        `bounds` is RS where the mechanism needs it: one for each asker, or one for each list entry.
        """
        return choose_from_lists(self.mechanism, self.key, askers, indices, similarities, bounds)

    def _lists(
        self,
        askers: npt.NDArray[np.integer],
        reach: int,
        everybody: bool,
        threads: int | None,
        progress: bool | None,
    ) -> Callable[[slice], tuple[Rows, Floats]]:
        """Return what hands out the candidate lists of a part of `askers`."""
        if everybody and reach < self.profiles.n_rows - 1:
            indices, similarities = nearest_rows(
                self.profiles, reach, self.similarity, threads=threads, progress=progress
            )
            return lambda part: (indices[part], similarities[part])
        engine = RowsAgainstAll(self.profiles, self.similarity)
        engine.lay_out_shared()
        return lambda part: engine.nearest(
            self.profiles, askers[part], reach, themselves=True, threads=1
        )

    def _target_bounds(self, askers: npt.NDArray[np.integer]) -> Floats | None:
        options = self.mechanism.sensitivity
        if options is None or options.scope == "pair":
            return None
        bounds: Floats = sensitivities(self.profiles.rows, options)[askers]
        return bounds

    def _pair_bounds(self, askers: npt.NDArray[np.integer], indices: Rows) -> Floats | None:
        options = self.mechanism.sensitivity
        if options is None:
            return None
        return pair_sensitivities(self.profiles.rows, askers, indices, options)


def choose_neighbours(
    ratings: Ratings,
    mechanism: Mechanism,
    *,
    axis: Axis = "user",
    similarity: Similarity | str = "cosine",
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Chosen:
    """Return the chosen neighbours of every row, as `NeighbourCF.fit` does with the same seed.

    Examples
    --------
    >>> import goodfence as gf
    >>> chosen = choose_neighbours(gf.load("movietweetings"), gf.PPNS(k=5, beta=2), rng=7)
    >>> chosen.neighbours.shape
    (1238, 5)
    """
    profiles = Profiles.of(rows_of(ratings, axis).csr)
    draws = Draws(profiles, mechanism, Similarity.of(similarity), Streams(rng).key())
    return draws.choose(threads=threads, progress=progress)


def choose_from_lists(
    mechanism: Mechanism,
    key: int,
    askers: npt.NDArray[np.integer],
    indices: Rows,
    similarities: Floats,
    bounds: Floats | None,
) -> tuple[Rows, Floats, Floats]:
    """Return the chosen neighbours of `askers`, their similarities and their weights, given candidate lists.

    A draw depends on the key and the row numbers only: not on which lists are drawn from together, or where.
    """
    positions = draw_neighbours(mechanism, similarities, indices, askers, key, bounds)
    neighbours = np.take_along_axis(indices, positions, axis=1)
    chosen = np.take_along_axis(similarities, positions, axis=1)
    scale = mechanism.noise_scale(bounds)
    if scale is None:
        return neighbours, chosen, chosen
    scales = np.asarray(scale)
    if scales.ndim == 2:
        scales = np.take_along_axis(scales, positions, axis=1)
    return neighbours, chosen, chosen + laplace_noise(neighbours, askers, key, scales)


def check_similarity(mechanism: Mechanism, similarity: Similarity) -> None:
    """Raise where the mechanism needs a sensitivity that the similarity does not have."""
    if mechanism.sensitivity is not None and similarity.name == "pearson":
        raise SettingError(
            "similarity must be a cosine for a mechanism with a sensitivity: RS is not defined for pearson"
        )
