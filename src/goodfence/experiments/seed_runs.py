"""All points of one seed: targets drawn once, and what several points share computed once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.experiments.attacked import Answers, Attacked
from goodfence.experiments.definition import Definition, Number
from goodfence.experiments.reading import Reading
from goodfence.experiments.tallies import Cells, Counts, Floats, Integers, tallies
from goodfence.experiments.unattacked import Seed, TargetLists, Unattacked


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PaperSeed:
    """One seed without an attack: the paper's protocol."""

    definition: Definition
    ratings: Ratings
    reading: Reading
    n_targets: int
    seed: Seed
    numbering: Integers
    threads: int | None
    _made: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def _asked(self) -> tuple[TargetLists, Cells, npt.NDArray[np.int32]]:
        axis = self.definition.axis
        world = Unattacked(self.ratings, self.ratings, axis, self.reading, self.threads)
        lists = world.targets(self.n_targets, self.seed)
        return lists, *lists.cells(self.numbering)

    def counts(self, x: Number) -> tuple[dict[str, Counts], Integers]:
        """Return the counts of every series at x, and the targets' numbers."""
        lists, cells, columns = self._asked
        predictions = {}
        for series in self.definition.series:
            mechanism = self.definition.mechanism(series, x)
            name = repr(mechanism)
            if name not in self._made:  # most series are the same at every x
                self._made[name] = lists.predict(mechanism, cells, columns)
            predictions[series] = self._made[name]
        return tallies(cells, predictions), cells.numbers


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AttackSeed:
    """One seed under attack."""

    definition: Definition
    ratings: Ratings
    reading: Reading
    n_targets: int
    seed: Seed
    numbering: Integers
    threads: int | None
    _made: dict[tuple[str, int], Answers] = field(default_factory=dict)

    def counts(self, x: Number) -> tuple[dict[str, Counts], Integers]:
        """Return the counts of every series at x, and the targets' numbers."""
        known = self.definition.known(x)
        world = Attacked(self.ratings, self.reading, self.threads)
        ids = world.sample(self.n_targets, self.seed, self.definition.most_known)
        targets = world.targets(ids, known, self.seed)
        cells = world.cells(targets, self.numbering)
        answers = {}
        for series in self.definition.series:
            mechanism = self.definition.mechanism(series, x)
            name = repr(mechanism), known
            if name not in self._made:
                self._made[name] = world.answers(mechanism, targets, self.seed)
            answers[series] = self._made[name]
        counts = tallies(cells, {series: told.with_target for series, told in answers.items()})
        guessed = cells.recovered(world.guesses(targets))
        for series, told in answers.items():
            counts[series]["recovered_without"] = cells.recovered(told.without_target)
            counts[series]["chosen"] = told.chosen
            counts[series]["guessed"] = guessed
        return counts, cells.numbers
