"""The chosen neighbours of many rows: candidate lists, sensitivities and draws together.

A mechanism that looks at full lists gets them a block of rows at a time, and only the chosen k are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from goodfence.arrays import AnyIntegers, Floats, Integers, Rows
from goodfence.errors import SettingError
from goodfence.kernels.draw import draw_rows, fill_laplace
from goodfence.neighbours.candidate_lists import RowsAgainstAll, nearest_rows
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.parallel import bar, ranges, run
from goodfence.selection.mechanism import RS, Mechanism, pool_arrays, weights_if_drawn
from goodfence.selection.sensitivity import (
    ItemPeaks,
    item_peaks,
    pair_sensitivities,
    profile_pair_sensitivities,
    profile_sensitivity,
    sensitivities,
)

_PIECE = 4096  # the most rows whose neighbours one thread chooses at a time
_PIECE_CELLS = 2_000_000  # the most list entries of a thread: 100 MB with all that they need


@dataclass(frozen=True, eq=False)
class Chosen:
    """The chosen neighbours of some rows, nearest first; all arrays have shape (rows, k)."""

    neighbours: Rows  # row numbers
    similarities: Floats
    weights: Floats  # in a prediction: the similarity, with noise if the mechanism adds it


@dataclass(frozen=True, eq=False)
class Draws:
    """Chooses neighbours among the rows of `profiles`."""

    profiles: Profiles
    mechanism: Mechanism
    similarity: Similarity
    key: int  # of the random stream: the draw of a row depends on the key and its row number only

    def __post_init__(self) -> None:
        check_similarity(self.mechanism, self.similarity)

    def choose(
        self, rows: AnyIntegers | None = None, *, threads: int | None = None, progress: bool | None = None
    ) -> Chosen:
        """Return the chosen neighbours of `rows`, or of every row."""
        askers = np.arange(self.profiles.n_rows) if rows is None else np.asarray(rows)
        reach = self.mechanism.reach(self.profiles.n_rows - 1)
        how: dict[str, Any] = {"threads": threads, "progress": progress}
        lists = self._lists(askers, reach, rows is None, how)
        options = self.mechanism.sensitivity
        by_pair = options is not None and options.scope == "pair"
        bounds = None if by_pair else self.row_bounds(askers)
        shape = (len(askers), self.mechanism.k)
        chosen = Chosen(np.empty(shape, dtype=np.int32), np.empty(shape), np.empty(shape))

        def work(piece: tuple[int, int]) -> None:
            part = slice(*piece)
            indices, similarities = lists(part)
            block, bound = askers[part], None if bounds is None else bounds[part]
            if by_pair:
                bound = pair_sensitivities(self.profiles.rows, block, indices, options)
            found = choose_from_lists(self.mechanism, self.key, block, indices, similarities, bound)
            chosen.neighbours[part], chosen.similarities[part], chosen.weights[part] = found

        pieces = ranges(len(askers), max(1, min(_PIECE, _PIECE_CELLS // max(reach, 1))))
        with bar("choosing neighbours", len(pieces), show=progress) as advance:
            run(work, pieces, threads=threads, advance=advance)
        return chosen

    def _lists(
        self, askers: AnyIntegers, reach: int, everybody: bool, how: dict[str, Any]
    ) -> Callable[[slice], tuple[Rows, Floats]]:
        """Return what hands out the candidate lists of a part of `askers`."""
        own = self.profiles
        if everybody and reach < own.n_rows - 1:
            indices, similarities = nearest_rows(own, reach, self.similarity, **how)
            return lambda part: (indices[part], similarities[part])
        engine = RowsAgainstAll(own, self.similarity)
        engine.compute_shared()
        return lambda part: engine.nearest(own, askers[part], reach, themselves=True, threads=1)

    def row_bounds(self, askers: AnyIntegers) -> Floats | None:
        """Return RS of each asker, or with `scope="pair"` of each asker and each row; None where none is needed."""
        options, rows = self.mechanism.sensitivity, self.profiles.rows
        if options is None:
            return None
        if options.scope == "target":
            return self._target_sensitivities[askers]
        parts = (slice(rows.indptr[asker], rows.indptr[asker + 1]) for asker in askers)
        pairs = [self._pair_bounds(rows.indices[part], rows.data[part]) for part in parts]
        return np.array(pairs).reshape(len(askers), -1)

    def profile_bounds(self, others: Profiles) -> Floats | None:
        """Return the same for an out-of-sample row, the one row of `others`."""
        options, columns, values = self.mechanism.sensitivity, others.rows.indices, others.rows.data
        if options is None:
            return None
        if options.scope == "target":
            return np.array([profile_sensitivity(self._peaks, columns, values)])
        return self._pair_bounds(columns, values)[np.newaxis]

    def _pair_bounds(self, columns: AnyIntegers, values: Floats) -> Floats:
        return profile_pair_sensitivities(self._peaks, columns, values)[0]

    @cached_property
    def _target_sensitivities(self) -> Floats:
        return sensitivities(self.profiles.rows, self.mechanism.sensitivity)

    @cached_property
    def _peaks(self) -> ItemPeaks:
        return item_peaks(self.profiles.rows, self.mechanism.sensitivity)


def choose_from_lists(
    mechanism: Mechanism, key: int, askers: AnyIntegers, indices: Rows, similarities: Floats, bounds: Floats | None
) -> tuple[Rows, Floats, Floats]:
    """Return the chosen neighbours of `askers`, their similarities and their weights, given candidate lists.

    `bounds` is RS where the mechanism needs it, for each asker or each list entry.
    """
    positions, weights = draw_with_noise(mechanism, key, askers, indices, similarities, bounds)
    neighbours = np.take_along_axis(indices, positions, axis=1)
    return neighbours, np.take_along_axis(similarities, positions, axis=1), weights


def draw_with_noise(
    mechanism: Mechanism, key: int, askers: AnyIntegers, indices: Rows, similarities: Floats, bounds: Floats | None
) -> tuple[Integers, Floats]:
    """Return which positions of each list are the neighbours, and what each of them counts in a prediction."""
    positions = draw_neighbours(mechanism, similarities, indices, askers, key, bounds)
    chosen = np.take_along_axis(similarities, positions, axis=1)
    scale = mechanism.noise_scale(bounds)
    if scale is None:
        return positions, chosen
    scales = np.asarray(scale)
    if scales.ndim == 2:
        scales = np.take_along_axis(scales, positions, axis=1)
    neighbours = np.take_along_axis(indices, positions, axis=1)
    return positions, chosen + laplace_noise(neighbours, askers, key, scales)


def check_similarity(mechanism: Mechanism, similarity: Similarity) -> None:
    """Raise where the mechanism needs a sensitivity that the similarity does not have."""
    known = similarity.name in ("cosine", "cosine_corated") and not similarity.counts_common
    if mechanism.sensitivity is not None and not known:
        raise SettingError(
            "similarity must be a cosine, not shrunk, for a mechanism with a sensitivity: "
            f"RS is not defined for {similarity}"
        )


def draw_neighbours(
    mechanism: Mechanism, similarities: Floats, rows: AnyIntegers, askers: AnyIntegers, key: int, sensitivity: RS = None
) -> Integers:
    """Return which positions of each target's list are the neighbours, shape (targets, k), ascending.

    `similarities` and `rows`, (targets, n), are the candidate lists; `sensitivity` is RS, (targets,) or (targets, n).
    """
    if similarities.ndim != 2 or rows.shape != similarities.shape:
        raise SettingError("similarities and rows must both have shape (targets, candidates)")
    if askers.shape != similarities.shape[:1]:
        raise SettingError("askers must have one row number for each target")
    pools = mechanism.pools(similarities, sensitivity)
    log_weights = weights_if_drawn(mechanism, pools, similarities, sensitivity)
    chosen = np.empty((len(similarities), mechanism.k), dtype=np.int64)
    draw_rows(
        np.ascontiguousarray(log_weights),
        np.ascontiguousarray(rows, dtype=np.int32),
        pool_arrays(pools, len(similarities)),
        np.uint64(key),
        np.ascontiguousarray(askers, dtype=np.int32),
        chosen,
    )
    return chosen


def laplace_noise(rows: AnyIntegers, askers: AnyIntegers, key: int, scale: npt.ArrayLike) -> Floats:
    """Return Laplace noise for each (target, neighbour), the same when asked again; `scale` may differ for each."""
    scales = np.asarray(scale, dtype=np.float64)
    if not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise SettingError("scale must be finite and at least 0")
    if scales.ndim == 1:
        scales = scales[:, np.newaxis]
    noise = np.empty(rows.shape)
    fill_laplace(
        np.uint64(key),
        np.ascontiguousarray(askers, dtype=np.int32),
        np.ascontiguousarray(rows, dtype=np.int32),
        np.ascontiguousarray(np.broadcast_to(scales, rows.shape)),
        noise,
    )
    return noise + 0.0  # no negative zero
