"""The whole of what a private model releases in one fit, and its exact likelihood ratio between two data sets.

What `fit` makes public is a row of noisy integers, each stage free to depend on those before. Given the noisy integers
that were released, the same stages on a neighbouring data set would have had other integers before noise. So a second
run, in which what was released is handed back in place of fresh noise, gives the exact log-likelihood ratio of all that
was released: no test on the model, its predictions or recommendations can tell the two data sets apart better.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError
from goodfence.models.private.base import PrivateRecommender
from goodfence.parallel import bar
from goodfence.privacy.accounting import Account, Release, total_mu
from goodfence.privacy.noise import SIGMA, Noise, Publisher, SystemNoise

_RULE = "the stages of a private model must depend on what was released only"


@dataclass(repr=False)
class Recorder(Publisher):
    """A publisher that keeps what went in and what came out."""

    totals: list[Integers] = field(default_factory=list)
    noisy: list[Integers] = field(default_factory=list)

    def publish(self, name: str, totals: Integers, sensitivity: int) -> Integers:
        """Publish, and keep both."""
        released = super().publish(name, totals, sensitivity)
        self.totals.append(totals.copy())
        self.noisy.append(released.copy())
        return released


@dataclass(repr=False)
class Replayer(Publisher):
    """A publisher that hands out what another run released, whatever goes in, and keeps what went in."""

    released: list[Integers] = field(default_factory=list)
    totals: list[Integers] = field(default_factory=list)

    def publish(self, name: str, totals: Integers, sensitivity: int) -> Integers:  # noqa: ARG002 - nothing is charged
        """Return the next release of the other run."""
        place = len(self.totals)
        if place >= len(self.released) or self.released[place].shape != totals.shape:
            raise DataError(f"{_RULE}; these differ in shape")
        self.totals.append(totals.copy())
        return self.released[place].copy()


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Stage:
    """One release of a fit: the integers of its own data set, those of the other, and what came out."""

    release: Release
    own: Integers
    other: Integers
    noisy: Integers

    @property
    def apart(self) -> Floats:
        """The difference of the integers."""
        return (self.other - self.own).astype(np.float64).ravel()

    @property
    def ratio(self) -> float:
        """How far they are apart, over the stated sensitivity."""
        return float(np.sqrt((self.apart**2).sum())) / max(self.release.sensitivity, 1)


class Transcripts:
    """Fits of one private model on two neighbouring data sets, scored by their exact likelihood ratio.

    The model is copied, and its seed, if it has one, is not used: noise comes from `noise`, or the operating system.
    """

    def __init__(
        self, model: PrivateRecommender, without: Ratings, with_it: Ratings, noise: Noise | None = None
    ) -> None:
        self.model = copy.copy(model)
        self.noise = SystemNoise() if noise is None else noise
        self.profiles = [model.profiles_of(model.laid_out(one)) for one in (without, with_it)]
        n_items = self.profiles[0].n_items
        self.mu = total_mu(model.epsilon, model.delta, model._distance(n_items))
        """What one fit may spend; the same for every fit."""
        self.account = Account()
        """What the last fit has spent."""
        self.largest_ratio = 0.0
        """How far any release was from its neighbour's, over its stated sensitivity: above 1 is a violation."""

    def scores(self, which: int, trials: int, progress: bool | None = False) -> Floats:
        """Return log P(released | with it) - log P(released | without) of fits on data set 0 or 1."""
        ratios = np.empty(trials)
        with bar("audit", trials, show=progress) as advance:
            for trial in range(trials):
                ratios[trial], _ = self._one(which)
                advance(1)
        return ratios

    def moved(self, which: int = 0) -> float:
        """Return the shift mu between the two data sets in one fit: the root of all squared distances over sigma."""
        return self._one(which)[1]

    def stages(self, which: int = 0) -> list[Stage]:
        """Return what one fit on data set 0 or 1 released, and what the other would have put in its place."""
        recorder = Recorder(self.noise)
        self.model._learn(self.profiles[which], self.mu, recorder)
        replayer = Replayer(self.noise, released=recorder.noisy)
        self.model._learn(self.profiles[1 - which], self.mu, replayer)
        if len(replayer.totals) != len(recorder.totals):
            raise DataError(f"{_RULE}; their number differs")
        self.account = recorder.account
        integers = recorder.totals, replayer.totals, recorder.noisy
        rows = zip(recorder.account.releases, *integers, strict=True)
        return [Stage(*row) for row in rows]

    def _one(self, which: int) -> tuple[float, float]:
        """Return the log-likelihood ratio of one fit, and its shift."""
        loss = square = 0.0
        for stage in self.stages(which):
            apart = stage.apart
            rest = (2 * stage.noisy - stage.own - stage.other).astype(np.float64).ravel()
            loss += float(rest @ apart) / (2 * SIGMA**2)
            square += float(apart @ apart) / SIGMA**2
            self.largest_ratio = max(self.largest_ratio, stage.ratio)
        return (loss if which == 0 else -loss), math.sqrt(square)
