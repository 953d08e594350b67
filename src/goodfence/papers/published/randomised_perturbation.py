"""`RandomisedPerturbation`: z-scores with uniform noise (Polat & Du 2003; Bilge & Polat 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.models.recommender import row_of
from goodfence.papers.published.perturbed import Sent, means_and_spreads, on_wide_scale
from goodfence.papers.published.published_recommender import person
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import between, checked

Distribution: TypeAlias = Literal["uniform", "gaussian", "coin"]


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedPerturbation:
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

    sigma_max: Annotated[float, between(0, 100)] = 2.0
    beta_max: Annotated[float, between(0, 100)] = 25.0
    law: Distribution = "uniform"

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return what users send, as mean + spread * (z + noise); they keep mean and spread."""
        means, spreads = means_and_spreads(ratings.csr)
        n_items, columns, values = ratings.shape[1], [], []
        for row, user in enumerate(ratings.users.tolist()):
            draws = streams.at(person(user))
            sigma, share = draws.uniform(0, self.sigma_max), draws.uniform(0, self.beta_max) / 100
            rated, given = row_of(ratings.csr, row)
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
            columns.append(cells)
            values.append(plain + spreads[row] * noise[cells])
        starts = np.cumsum([0, *map(len, columns)])
        parts = (np.concatenate(values), np.concatenate(columns), starts)
        csr = sparse.csr_array(parts, shape=ratings.shape)
        csr.sort_indices()
        return Sent(on_wide_scale(ratings, csr), means, spreads)

    def guarantee(self) -> Guarantee:
        """Return that there is none: the noise ends, and some users draw next to none of it."""
        return Guarantee(
            status="none",
            reason="Uniform noise ends somewhere, so no epsilon holds; and who draws a small sigma has no noise.",
        )
