"""How users change their ratings before they send them, without a guarantee: values for `Perturbed(by=...)`.

`RandomisedPerturbation`: Polat & Du 2003; Bilge & Polat 2012. `NeNDS`: Parameswaran & Blough 2007. `BlurMe`: Weinsberg,
Bhagat, Ioannidis & Taft 2012. `ItemSwap`: after D2P, Guerraoui, Kermarrec, Patra & Taziki 2015.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from goodfence.arrays import AnyIntegers, Flags, Floats, Integers
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError
from goodfence.papers.published.perturbed import (
    Sent,
    each_user,
    means_and_spreads,
    of_rows,
    on_wide_scale,
    words_of_users,
)
from goodfence.papers.published.published_recommender import NoGuarantee, indicators, require_few_items
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Count, Share, at_least, between, checked


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
        "Uniform noise ends somewhere, so no epsilon holds; and who draws a small sigma has no noise."
    )

    sigma_max: Annotated[float, between(0, 100)] = 2.0
    beta_max: Annotated[float, between(0, 100)] = 25.0
    law: Literal["uniform", "gaussian", "coin"] = "uniform"

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return what users send, as mean + spread * (z + noise); they keep mean and spread."""
        means, spreads = means_and_spreads(ratings.csr)
        n_items, rows = ratings.shape[1], []
        for row, rated, given, draws in each_user(ratings, streams):
            sigma, share = draws.uniform(0, self.sigma_max), draws.uniform(0, self.beta_max) / 100
            unrated = np.setdiff1d(np.arange(n_items), rated, assume_unique=True)
            filled = draws.permutation(unrated)[: round(share * len(unrated))]
            if self.law == "gaussian" or (self.law == "coin" and draws.random() < 0.5):
                noise = draws.normal(0, sigma, n_items)
            else:
                noise = np.sqrt(3) * sigma * draws.uniform(-1, 1, n_items)
            cells = np.concatenate([rated, filled])
            plain = np.concatenate([given, np.full(len(filled), means[row])])
            rows.append((cells, plain + spreads[row] * noise[cells]))
        return Sent(on_wide_scale(ratings, of_rows(ratings, rows)), means, spreads)


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class NeNDS(NoGuarantee):
    """Values are grouped with their nearest, and rotated by one place in each group: nobody keeps their own place.

    Parameters
    ----------
    within : {"column", "person"}, default "column"
        The raters of an item, sorted by rating, exchange values with their neighbours in that order; or a person's
        most similar items exchange their ratings, as the paper describes it.
    size : int, optional
        How many make a group; None for 5 by column and 3 within a person. One that is left over joins the group before.
    """

    name: ClassVar[str] = "nends"
    label: ClassVar[str] = "NeNDS"
    reason: ClassVar[str] = (
        "Values are only exchanged with their nearest, on a scale of few values mostly with equal ones."
    )

    within: Literal["column", "person"] = "column"
    size: Annotated[int, at_least(2)] | None = None

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return the ratings with values exchanged; ties are broken by each user's own random words."""
        csr = ratings.csr
        size = self.size or (5 if self.within == "column" else 3)
        ties = words_of_users(ratings, streams.words)
        data = csr.data.copy()
        if self.within == "column":
            order = np.lexsort((ties, csr.data, csr.indices))
            starts = np.searchsorted(csr.indices[order], np.arange(csr.shape[1] + 1))
            for first, last in pairwise(starts):
                _rotate(data, csr.data, order[first:last], size)
        else:
            require_few_items(ratings, "NeNDS within a person")
            alike = item_cosines(csr)
            for first, last in pairwise(csr.indptr):
                cells = first + np.argsort(ties[first:last], kind="stable")
                _rotate(data, csr.data, _chained(cells, csr.indices, alike, size), size)
        return Sent(ratings.replaced(sparse.csr_array((data, csr.indices, csr.indptr), csr.shape)))


def _rotate(data: Floats, held: Floats, order: AnyIntegers, size: int) -> None:
    """Let every cell of `order` take the value of the next in its group."""
    edges = list(range(0, max(len(order), 1), size))
    if len(edges) > 1 and len(order) - edges[-1] == 1:
        edges.pop()
    for first, last in zip(edges, [*edges[1:], len(order)], strict=True):
        group = order[first:last]
        data[group] = held[np.roll(group, -1)]


def _chained(cells: AnyIntegers, columns: AnyIntegers, alike: Floats, size: int) -> Integers:
    """Return the cells so that every `size` in a row are an item and those most similar to it of the items left."""
    left, found = list(cells.tolist()), []
    while left:
        near = alike[columns[left[0]], columns[left]]
        near[0] = np.inf
        chosen = np.argsort(-near, kind="stable")[:size]
        found += [left[place] for place in chosen]
        gone = set(chosen.tolist())
        left = [cell for place, cell in enumerate(left) if place not in gone]
    return np.array(found, dtype=np.int64)


def item_cosines(csr: sparse.csr_array) -> Floats:
    """Return the cosine of every two items, over all users; 0 on the diagonal."""
    norms = np.sqrt(np.bincount(csr.indices, csr.data**2, csr.shape[1]))
    scaled = csr.data / np.where(norms > 0, norms, 1.0)[csr.indices]
    unit = sparse.csr_array((scaled, csr.indices, csr.indptr), csr.shape)
    alike: Floats = (unit.T @ unit).toarray()
    np.fill_diagonal(alike, 0.0)
    return alike


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlurMe(NoGuarantee):
    """Each user adds ratings of items that users of the other kind rate, at the item's mean.

    Parameters
    ----------
    attribute : mapping of user to bool
        Who is of the one kind (True) and who of the other, as in gender. It must be given to fit.
    extra : float, default 0.01
        How many ratings are added, as a share of those a user has, rounded up.
    strategy : {"random", "sampled", "greedy"}, default "sampled"
        Which: any items of the other kind's list, by chance in proportion to how strongly they indicate it, or the
        strongest first.
    """

    name: ClassVar[str] = "blurme"
    label: ClassVar[str] = "BlurMe"
    reason: ClassVar[str] = "An attribute is blurred by ratings that are added; the true ratings are sent as they are."

    attribute: Mapping[Any, bool] | None = None
    extra: Share = 0.01
    strategy: Literal["random", "sampled", "greedy"] = "sampled"

    def __repr__(self) -> str:
        return f"BlurMe(extra={self.extra}, strategy={self.strategy!r})"

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return the ratings with those that were added, by lists that are learnt from them."""
        kinds = self._kinds(ratings)
        return Sent(self.added(ratings, kinds, indication(ratings.csr, kinds), streams))

    def added(self, ratings: Ratings, kinds: Flags, strength: Floats, streams: Streams) -> Ratings:
        """Return the ratings with those that users of these kinds add, by how strongly items indicate the one kind."""
        counts = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
        sums = np.bincount(ratings.csr.indices, ratings.csr.data, ratings.shape[1])
        means = ratings.scale.round(sums / np.maximum(counts, 1))
        rows = []
        for row, rated, given, draws in each_user(ratings, streams):
            other = -strength if kinds[row] else strength.copy()
            other[counts == 0] = 0.0
            other[rated] = 0.0
            added = self._chosen(np.maximum(other, 0.0), len(rated), draws)
            rows.append((np.concatenate([rated, added]), np.concatenate([given, means[added]])))
        return ratings.replaced(of_rows(ratings, rows))

    def _chosen(self, strength: Floats, n_rated: int, draws: np.random.Generator) -> Any:
        able = np.flatnonzero(strength > 0)
        n = min(math.ceil(self.extra * n_rated), len(able))
        if self.strategy == "greedy":
            return able[np.argsort(-strength[able], kind="stable")[:n]]
        weights = strength[able] if self.strategy == "sampled" else np.ones(len(able))
        return able[np.argsort(draws.exponential(size=len(able)) / weights, kind="stable")[:n]]

    def _kinds(self, ratings: Ratings) -> Flags:
        if self.attribute is None:
            raise DataError("attribute must be given to fit: which users are of the one kind, {user: True or False}")
        known, users = self.attribute, ratings.users.tolist()
        if not all(user in known for user in users):
            raise DataError("attribute must be given for every user; at least one has none")
        return np.array([bool(known[user]) for user in users], dtype=np.bool_)


def indication(csr: sparse.csr_array, kinds: Flags, ridge: float = 1.0) -> Floats:
    """Return how strongly having rated each item indicates the kind: the coefficients of a logistic regression (L2)."""
    rated, signs = indicators(csr), np.where(kinds, 1.0, -1.0)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        margin = signs * (rated @ coefficients[:-1] + coefficients[-1])
        pull = -signs * expit(-margin)
        slope = np.append(rated.T @ pull + ridge * coefficients[:-1], pull.sum())
        squares = float(coefficients[:-1] @ coefficients[:-1])
        return float(np.logaddexp(0, -margin).sum() + ridge / 2 * squares), slope

    start, options = np.zeros(csr.shape[1] + 1), {"maxiter": 500}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x[:-1])


@checked
@register
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSwap(NoGuarantee):
    """Each rating is sent, with probability p, for one of the `group` items most similar to the one that was rated.

    Of two ratings that end at the same item one is sent. This is the idea of D2P, not its formula.

    Parameters
    ----------
    p : float, default 0.5
        How often a rating is moved.
    group : int, default 10
        To one of how many similar items.
    """

    name: ClassVar[str] = "item-swap"
    label: ClassVar[str] = "Item swapping, after D2P"
    reason: ClassVar[str] = (
        "The idea of a published system without its formula: who rated what is blurred, and not bounded."
    )

    p: Share = 0.5
    group: Count = 10

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return the ratings with items exchanged, by each user's own random stream."""
        require_few_items(ratings, "item swapping")
        near = np.argsort(-item_cosines(ratings.csr), axis=1, kind="stable")[:, : self.group]
        rows = []
        for _, rated, given, draws in each_user(ratings, streams):
            moved = draws.random(len(rated)) < self.p
            to = near[rated, draws.integers(0, near.shape[1], len(rated))]
            sent, kept = np.unique(np.where(moved, to, rated), return_index=True)
            rows.append((sent, given[kept]))
        return Sent(ratings.replaced(of_rows(ratings, rows)))
