"""`paper_protocol`: the paper's MAE. Its targets' own ratings stay in place while their neighbours are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Id, Ratings
from goodfence.data.splits import sample_targets
from goodfence.engines.local.candidates import Axis, rows_of
from goodfence.engines.local.draws import Draws
from goodfence.engines.local.predictions import Neighbourhoods
from goodfence.errors import require
from goodfence.evaluation.scores import Scores
from goodfence.models.neighbour_cf import Over
from goodfence.rng import RNG, Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles


def paper_protocol(
    ratings: Ratings,
    mechanism: Mechanism,
    *,
    axis: Axis = "user",
    targets: int | Sequence[Id] | npt.NDArray[Any] = 200,
    similarity: Similarity | str = "cosine",
    over: Over = "raters",
    rng: RNG = None,
    threads: int | None = None,
) -> Scores:
    """Return the paper's scores: all ratings of some targets, predicted with those ratings in place.

    Parameters
    ----------
    ratings
        Who rated what how.
    mechanism
        Who becomes a neighbour.
    axis
        Targets are users, or items.
    targets
        How many to draw at random (all, if there are no more), or their ids.
    similarity, over
        As in `NeighbourCF`.
    rng
        A seed for a repeatable experiment; None for fresh randomness.
    threads
        How many threads to use; None for as many as there are cores.

    Notes
    -----
    This is not an honest estimate of error on unseen ratings: each target's ratings helped to find the
    neighbours that predict them. `evaluate` with `holdout` is.

    Examples
    --------
    >>> import goodfence as gf
    >>> gf.paper_protocol(gf.load("movietweetings"), gf.KNN(k=30), targets=100, rng=7).n > 100
    True
    """
    require(over in ("raters", "neighbours"), "over", "'raters' or 'neighbours'", over)
    streams = Streams(rng)
    rows = rows_of(ratings, axis)
    if isinstance(targets, int | np.integer):
        targets = sample_targets(rows, int(targets), rng=streams.at(0))
    askers = rows.rows(targets)
    profiles = Profiles.of(rows.csr)
    draws = Draws(profiles, mechanism, Similarity.of(similarity), streams.key(1))
    chosen = draws.choose(askers, threads=threads)
    csr = rows.csr[askers]
    positions = np.repeat(np.arange(len(askers)), np.diff(csr.indptr))
    near = Neighbourhoods(chosen.neighbours, chosen.weights, over == "raters")
    predictions = near.predict(rows.csr, positions, csr.indices, threads=threads)
    return Scores.of(predictions, csr.data)
