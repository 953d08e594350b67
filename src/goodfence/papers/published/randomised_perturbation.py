"""`RandomisedPerturbation`: z-scores with uniform noise (Polat & Du 2003; Bilge & Polat 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from goodfence.data.ratings import Ratings
from goodfence.papers.published.perturbed import (
    Sent,
    each_user,
    means_and_spreads,
    of_rows,
    on_wide_scale,
)
from goodfence.papers.published.published_recommender import NoGuarantee
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import between, checked

Distribution: TypeAlias = Literal["uniform", "gaussian", "coin"]


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedPerturbation(NoGuarantee):
    """Each user sends z-scores with noise of a spread of their own, and noise alone for some items they did not rate.

    The server's neighbours are those of what it received; the asker alone turns the answer back into a rating.

    Parameters
    ----------
    sigma_max : float, default 2.0
        Each user draws the spread sigma of their noise evenly from 0 to this.
    beta_max : float, default 25.0
        Each user draws evenly from 0 to this how many percent of the items they did not rate get noise alone; 0: none.
    law : {"uniform", "gaussian", "coin"}, default "uniform"
        The noise's distribution, of standard deviation sigma: uniform from -sqrt(3) sigma to sqrt(3) sigma, normal, or
        one of both by a coin of each user.
    """

    name: ClassVar[str] = "randomised-perturbation"
    label: ClassVar[str] = "Randomised perturbation"
    reason: ClassVar[str] = (
        "Uniform noise ends somewhere, so no epsilon holds; and who draws a small sigma has no "
        "noise."
    )

    sigma_max: Annotated[float, between(0, 100)] = 2.0
    beta_max: Annotated[float, between(0, 100)] = 25.0
    law: Distribution = "uniform"

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return what users send, as mean + spread * (z + noise); they keep mean and spread."""
        means, spreads = means_and_spreads(ratings.csr)
        n_items, rows = ratings.shape[1], []
        for row, rated, given, draws in each_user(ratings, streams):
            sigma, share = draws.uniform(0, self.sigma_max), draws.uniform(0, self.beta_max) / 100
            unrated = np.setdiff1d(np.arange(n_items), rated, assume_unique=True)
            filled = draws.permutation(unrated)[: round(share * len(unrated))]
            normal = self.law == "gaussian" or (self.law == "coin" and draws.random() < 0.5)
            noise = (
                draws.normal(0, sigma, n_items)
                if normal
                else np.sqrt(3) * sigma * draws.uniform(-1, 1, n_items)
            )
            cells = np.concatenate([rated, filled])
            plain = np.concatenate([given, np.full(len(filled), means[row])])
            rows.append((cells, plain + spreads[row] * noise[cells]))
        return Sent(on_wide_scale(ratings, of_rows(ratings, rows)), means, spreads)
