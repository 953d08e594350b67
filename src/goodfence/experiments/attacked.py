"""The kNN attack on some targets, cell by cell: the same answers that `KNNAttack.run` scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.attack.attack import seeds
from goodfence.attack.combining import combined
from goodfence.attack.neighbour_worlds import NeighbourWorlds
from goodfence.attack.scoring import item_mean_guesses
from goodfence.attack.targets import Targets, find_targets
from goodfence.data.ratings import Id, Ratings
from goodfence.data.splits import sample_targets
from goodfence.engines.local.threads import ranges
from goodfence.experiments.reading import Reading
from goodfence.experiments.tallies import Cells, Floats, Integers, anonymous_numbers
from goodfence.experiments.unattacked import TARGETS, Seed
from goodfence.rng import Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.similarity.measure import Similarity


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """What the attacker was told: for each hidden cell with and without the target, and who was near."""

    with_target: Floats
    without_target: Floats
    chosen: Floats
    """(targets,): the share of the asking fakes that had the target among their neighbours."""


@dataclass(frozen=True, eq=False)
class Attacked:
    """Ratings under attack."""

    ratings: Ratings
    reading: Reading
    threads: int | None = None

    def sample(self, n: int, seed: Seed, more_than: int) -> npt.NDArray[np.generic]:
        """Return the ids of `n` targets with more than `more_than` ratings, as `KNNAttack.run` draws them."""
        rng = Streams(seed).at(TARGETS)
        return sample_targets(self.ratings, n, rng=rng, more_than=more_than)

    def targets(self, ids: npt.NDArray[np.generic] | list[Id], known: int, seed: Seed) -> Targets:
        """Return what the attacker knows of these users, and what is hidden from him."""
        found, _ = find_targets(self.ratings, ids, known, "random", Streams(seed))
        return found

    def cells(self, targets: Targets, numbering: Integers) -> Cells:
        """Return the hidden cells, numbered by `numbering`."""
        numbers = anonymous_numbers(self.ratings.shape[0], numbering)[targets.rows]
        return Cells(
            owners=targets.owners,
            ratings=targets.ratings,
            numbers=numbers,
            scale=self.ratings.scale,
        )

    def guesses(self, targets: Targets) -> Floats:
        """Return the mean of each hidden item's other ratings: what needs no attack."""
        return item_mean_guesses(targets, self.ratings)

    def answers(
        self,
        mechanism: Mechanism,
        targets: Targets,
        seed: Seed,
        *,
        fakes: int | None = None,
        everybody_asks: bool = False,
    ) -> Answers:
        """Return what the fakes are told: the first of them, or the most frequent answer to all."""
        read = self.reading.applied(mechanism)
        worlds = NeighbourWorlds(
            self.ratings,
            read,
            read.k if fakes is None else fakes,
            similarity=Similarity.of(self.reading.similarity),
            over_raters=self.reading.over == "raters",
            threads=self.threads,
        )
        n_askers = worlds.n_fakes if everybody_asks else 1
        streams, parts = Streams(seed), []
        for first, last in ranges(len(targets), worlds.at_once(n_askers)):
            block = targets.part(first, last)
            asked = worlds.ask(block, seeds(block, streams), n_askers)
            told = (asked.with_target, asked.without_target)
            both = [combined(each, "mode", self.ratings.scale) for each in told]
            parts.append((*both, asked.chosen))
        return Answers(*(np.concatenate(part) for part in zip(*parts, strict=True)))
