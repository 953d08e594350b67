"""Predictions of some targets' cells without an attack: candidate lists once, then a draw for each mechanism.

The lists of the targets depend neither on the mechanism nor on the seed of its draws, so all points of a figure
share them. The predictions are those of `paper_protocol`, and with a held-out part those of `NeighbourCF`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.data.splits import sample_targets
from goodfence.engines.local.candidates import Axis, rows_of
from goodfence.engines.local.draws import Draws
from goodfence.engines.local.predictions import Neighbourhoods
from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.experiments.reading import Reading
from goodfence.experiments.tallies import Cells, Floats, Integers, anonymous_numbers
from goodfence.rng import Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.sensitivity import Sensitivity, sensitivities
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

Seed = list[int]

# The streams of `paper_protocol` below one seed.
TARGETS, CHOICES = 0, 1


@dataclass(frozen=True, eq=False)
class Unattacked:
    """Ratings to choose neighbours from, and the ratings to predict: the same, or a held-out part."""

    ratings: Ratings
    """What the neighbours are found with."""
    asked: Ratings
    """What is predicted, with the same ids."""
    axis: Axis
    reading: Reading
    threads: int | None = None
    _bounds: dict[Sensitivity, Floats] = field(default_factory=dict)

    @cached_property
    def rows(self) -> Ratings:
        """The ratings with the things to be compared as rows."""
        return rows_of(self.ratings, self.axis)

    @cached_property
    def profiles(self) -> Profiles:
        """The rows, laid out for comparing them."""
        return Profiles.of(self.rows.csr)

    def targets(self, n: int, seed: Seed) -> TargetLists:
        """Return the lists of `n` targets drawn with this seed, as `paper_protocol` draws them."""
        streams = Streams(seed)
        askers = self.rows.rows(sample_targets(self.rows, n, rng=streams.at(TARGETS)))
        engine = RowsAgainstAll(self.profiles, Similarity.of(self.reading.similarity))
        lists = engine.nearest(
            self.profiles, askers, self.profiles.n_rows - 1, themselves=True, threads=self.threads
        )
        return TargetLists(self, askers, *lists, streams.key(CHOICES))

    def bounds(self, mechanism: Mechanism) -> Floats | None:
        """Return RS of every row, where the mechanism needs it; computed once."""
        options = mechanism.sensitivity
        if options is None:
            return None
        if options not in self._bounds:
            self._bounds[options] = sensitivities(self.profiles.rows, options)
        return self._bounds[options]


@dataclass(frozen=True, eq=False, repr=False)
class TargetLists:
    """The whole candidate lists of some targets."""

    world: Unattacked
    askers: Integers
    indices: npt.NDArray[np.int32]
    similarities: Floats
    key: int

    def cells(self, numbering: Integers) -> tuple[Cells, npt.NDArray[np.int32]]:
        """Return the cells to predict, numbered by `numbering`, and their columns."""
        asked = rows_of(self.world.asked, self.world.axis)
        csr = asked.csr[self.askers]
        owners = np.repeat(np.arange(len(self.askers)), np.diff(csr.indptr))
        numbers = anonymous_numbers(self.world.rows.shape[0], numbering)[self.askers]
        scale = self.world.ratings.scale
        return Cells(owners=owners, ratings=csr.data, numbers=numbers, scale=scale), csr.indices

    def predict(self, mechanism: Mechanism, cells: Cells, columns: npt.NDArray[np.int32]) -> Floats:
        """Return the prediction of each cell, NaN where no neighbour rated it."""
        world = self.world
        read = world.reading.applied(mechanism)
        reach = read.reach(world.profiles.n_rows - 1)
        draws = Draws(world.profiles, read, Similarity.of(world.reading.similarity), self.key)
        bounds = world.bounds(read)
        neighbours, _, weights = draws.from_lists(
            self.askers,
            self.indices[:, :reach],
            self.similarities[:, :reach],
            None if bounds is None else bounds[self.askers],
        )
        near = Neighbourhoods(neighbours, weights, world.reading.over == "raters")
        return near.predict(world.rows.csr, cells.owners, columns, threads=world.threads)
