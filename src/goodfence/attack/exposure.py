"""Exposure without simulation: how likely it is that a prediction rests on the target alone.

A hidden rating is exposed when the target is chosen and no other chosen neighbour with a weight rated the item:
then the prediction is her rating. Pools are drawn independently, so the probabilities of the pools multiply.

Inside a pool, draws are a race: candidate i fires at a time of rate w_i, the first c are chosen. Rivals R (who
rated the item too) count by the first of them to fire, whose rate is W = sum of their weights: they act as one
candidate. With t the target, O all others, and mu(w; c) the inclusion probability of one candidate of weight w
added to O, in c draws,

    P[R out] = 1 - mu(W; c),
    P[t in, R out] = w/(w+W) mu(w+W; c) - mu(W; c-1) + W/(w+W) mu(w+W; c-1).

The second: t is in and R is out exactly when the c-th of O and t to fire does so before R, and t is not later. If
t is the c-th, the density is `w e^{-ws} e^{-Ws} P[N(s) = c-1]`, with N(s) how many of O have fired; if one of O is,
it is `(1 - e^{-ws}) e^{-Ws} (-d/ds) P[N(s) <= c-2]`. Integrate the latter by parts and collect the terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.attack.attack import Attack, is_mechanism
from goodfence.attack.neighbour_worlds import Lists, NeighbourWorlds
from goodfence.attack.scoring import Estimate, ratio, share
from goodfence.attack.targets import Floats, Integers, Targets, Wanted, find_targets
from goodfence.data.ratings import Ratings
from goodfence.engines.local.threads import ranges
from goodfence.engines.progress import bar
from goodfence.errors import SettingError
from goodfence.kernels.exposure import included_beside
from goodfence.rng import RNG, Streams
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.pool import pool_arrays
from goodfence.similarity.measure import Similarity

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_EXTREME = 700.0  # beyond e^700 to 1 an order is certain


@dataclass(frozen=True, eq=False, kw_only=True)
class Exposure:
    """How exposed the hidden ratings of some targets are to one question by one fake."""

    alone: Floats
    """(hidden,): the probability that the prediction rests on the target alone."""
    chosen: Floats
    """(targets,): the probability that the target is a neighbour of the fake who asks."""
    hidden: Integers
    """(targets,): how many ratings of each target are hidden; `alone` has them in this order."""

    def __repr__(self) -> str:
        return (
            f"Exposure({len(self.hidden):,} targets, {len(self.alone):,} hidden ratings: "
            f"share {self.share}, target chosen {self.target_chosen})"
        )

    @property
    def share(self) -> Estimate:
        """The expected share of the hidden ratings that rest on the target alone; interval over targets."""
        owners = np.repeat(np.arange(len(self.hidden)), self.hidden)
        exposed = np.bincount(owners, weights=self.alone, minlength=len(self.hidden))
        return share(exposed.astype(np.float64), self.hidden.astype(np.float64))

    @property
    def target_chosen(self) -> Estimate:
        """How often the target is expected among the neighbours; interval over targets."""
        return ratio(self.chosen, np.ones(len(self.chosen)), highest=1.0)


def exposure(
    ratings: Ratings,
    mechanism: Mechanism,
    *,
    attack: Attack,
    targets: Wanted = 200,
    rng: RNG = None,
    similarity: Similarity | str = "cosine",
    threads: int | None = None,
    progress: bool | None = None,
) -> Exposure:
    """Return the probability of each hidden rating to be handed over, without drawing anything.

    Parameters
    ----------
    ratings
        Who rated what how.
    mechanism
        A selection mechanism. Where it adds noise to the similarities (`PNCF`), a prediction that rests on the
        target alone is her rating or, where the noise made the weight negative, minus her rating.
    attack
        What the attacker knows and how many fakes he makes. With the same `rng` the targets and what is known of
        them are those of `attack.run`.
    targets, rng, similarity, threads, progress
        As in `KNNAttack.run`.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> attack = gf.KNNAttack(known=8)
    >>> found = gf.exposure(films, gf.PPNS(k=20, beta=3), attack=attack, targets=20, rng=7)
    >>> 0 < found.share.value < 1
    True
    """
    if not is_mechanism(mechanism):
        raise SettingError(
            "mechanism must be a selection mechanism: exposure follows from its pools"
        )
    streams = Streams(rng)
    worlds = NeighbourWorlds(
        ratings,
        mechanism,
        attack.n_fakes(mechanism, ratings.shape[0]),
        similarity=Similarity.of(similarity),
        over_raters=True,
        threads=threads,
    )
    found, _ = find_targets(ratings, targets, attack.known, attack.choose, streams)
    raters = ratings.transposed.csr
    parts = []
    blocks = ranges(len(found), worlds.at_once(1))
    with bar("exposure", len(found), show=progress) as advance:
        for first, last in blocks:
            block = found.part(first, last)
            lists, _ = worlds.lists(block)
            for position, pools in enumerate(_statements(worlds, lists)):
                target = block.part(position, position + 1)
                parts.append(_of_target(target, lists.rows[position], pools, raters))
                advance(1)
    chosen, alone = zip(*parts, strict=True)
    return Exposure(
        alone=np.concatenate(alone), chosen=np.array(chosen), hidden=np.diff(found.starts)
    )


def alone_in_pool(
    log_weights: Floats, take: int, target: int | None, rivals: npt.NDArray[np.bool_]
) -> float:
    """Return the probability that `take` draws from a pool choose the target (if she is in it) and no rival.

    Parameters
    ----------
    log_weights
        Of each candidate in the pool; -inf is drawn last, uniformly.
    target
        Where the target stands, or None.
    rivals
        Which candidates must not be chosen.

    Examples
    --------
    >>> round(alone_in_pool(np.zeros(3), 2, 0, np.array([False, True, False])), 6)
    0.333333
    """
    weighted = log_weights > -np.inf
    n_weighted = int(weighted.sum())
    if n_weighted in (0, len(weighted)):
        equal = np.zeros(len(weighted)) if n_weighted == 0 else log_weights
        return _alone(equal, take, target, rivals)
    here = target is not None and bool(weighted[target])
    if n_weighted >= take:  # those without a weight are never drawn
        if target is not None and not here:
            return 0.0
        position = int(weighted[:target].sum()) if target is not None else None
        return _alone(log_weights[weighted], take, position, rivals[weighted])
    if rivals[weighted].any():
        return 0.0
    left = None if target is None or here else int((~weighted[:target]).sum())
    n_left = len(weighted) - n_weighted
    return _alone(np.zeros(n_left), take - n_weighted, left, rivals[~weighted])


def _alone(
    log_weights: Floats, take: int, target: int | None, rivals: npt.NDArray[np.bool_]
) -> float:
    """Return the same for candidates who all have a weight."""
    rival = _sum(log_weights[rivals])
    if target is None:
        return 1.0 - _included(log_weights[~rivals], [rival], take)[0][0]
    others = ~rivals
    others[target] = False
    rest, own = log_weights[others], float(log_weights[target])
    if rival == -np.inf:
        return _included(rest, [own], take)[0][0]
    both = float(np.logaddexp(own, rival))
    (_, both_now), (rival_before, both_before) = _included(rest, [rival, both], take)
    probability = np.exp(own - both) * both_now - rival_before + np.exp(rival - both) * both_before
    return float(np.clip(probability, 0.0, 1.0))


def _included(
    others: Floats, candidates: list[float], take: int
) -> tuple[list[float], list[float]]:
    """Return mu(w; c) and mu(w; c-1) of each candidate, one at a time beside `others`, by log-weights."""
    if candidates == [-np.inf]:
        return [0.0], [0.0]
    n, ones, zeros = len(others), [1.0] * len(candidates), [0.0] * len(candidates)
    if take <= 0 or take > n + 1:
        certain = zeros if take <= 0 else ones
        return certain, certain
    if take == 1:
        total = _sum(others)
        return [float(np.exp(own - np.logaddexp(own, total))) for own in candidates], zeros
    if take == n + 1:
        return ones, _included(others, candidates, n)[0]
    pivot = np.partition(others, n - take)[n - take]
    near = np.clip(others - pivot, -_EXTREME, _EXTREME)
    added = np.clip(np.array(candidates) - pivot, -_EXTREME, _EXTREME)
    now, before = included_beside(near, added, take, _NODES, _NODE_WEIGHTS).tolist()
    return now, before


def _sum(log_weights: Floats) -> float:
    """Return the logarithm of the sum of the weights."""
    return float(np.logaddexp.reduce(log_weights, initial=-np.inf))


@dataclass(frozen=True, eq=False)
class _Pools:
    """The pools of one list, and who counts in a prediction."""

    log_weights: Floats
    starts: Integers
    stops: Integers
    takes: Integers
    counting: npt.NDArray[np.bool_]
    """(reach,): whose rating has a weight in the prediction."""


def _statements(worlds: NeighbourWorlds, lists: Lists) -> list[_Pools]:
    log_weights, pools = worlds.statements(lists)
    starts, stops, takes = pool_arrays(pools, len(lists.rows))
    scale = None if lists.bounds is None else worlds.mechanism.noise_scale(lists.bounds)
    counting = lists.similarities != 0
    if scale is not None:
        counting = counting | (np.asarray(scale).reshape(len(lists.rows), -1) > 0)
    return [
        _Pools(log_weights[row], starts[row], stops[row], takes[row], counting[row])
        for row in range(len(lists.rows))
    ]


def _of_target(
    target: Targets,
    listed: npt.NDArray[np.int32],
    pools: _Pools,
    raters: sparse.csr_array,
) -> tuple[float, Floats]:
    """Return how likely the target is chosen, and for each of her hidden items, how likely she is alone."""
    places = np.full(raters.shape[1], -1, dtype=np.int64)
    real = listed >= 0
    places[listed[real]] = np.flatnonzero(real)
    place = int(places[target.rows[0]])
    if place < 0:
        return 0.0, np.zeros(len(target.columns))
    nobody = np.zeros(len(listed), dtype=np.bool_)
    known: dict[bytes, float] = {}
    alone = np.empty(len(target.columns))
    for position, column in enumerate(target.columns.tolist()):
        rivals = nobody.copy()
        near = places[raters.indices[raters.indptr[column] : raters.indptr[column + 1]]]
        rivals[near[near >= 0]] = True
        rivals &= pools.counting
        rivals[place] = False
        alone[position] = _product(pools, place, rivals, known) if pools.counting[place] else 0.0
    return _product(pools, place, nobody, known), alone


def _product(
    pools: _Pools, target: int, rivals: npt.NDArray[np.bool_], known: dict[bytes, float]
) -> float:
    """Return the product over the pools; what was computed for the same rivals is `known`."""
    probability, inside = 1.0, False
    for number, (start, stop, take) in enumerate(
        zip(pools.starts.tolist(), pools.stops.tolist(), pools.takes.tolist(), strict=True)
    ):
        here = start <= target < stop
        inside |= here
        key = bytes([number % 256]) + rivals[start:stop].tobytes()
        if key not in known:
            place = target - start if here else None
            known[key] = alone_in_pool(
                pools.log_weights[start:stop], take, place, rivals[start:stop]
            )
        probability *= known[key]
    return probability if inside else 0.0
