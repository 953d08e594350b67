"""Exposure without simulation: how likely it is that a prediction rests on the target alone.

A hidden rating is exposed when the target is chosen and no other chosen neighbour with a weight rated the item:
then the prediction is the target's rating. Pools are drawn independently, so the probabilities of the pools multiply.

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

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import Flags, Floats, Integers, Rows
from goodfence.attack import DEFAULT_TARGETS
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.scoring import Estimate, ratio, share
from goodfence.attack.targets import RANDOM, Targets, Wanted, find_targets
from goodfence.attack.worlds import Lists, NeighbourWorlds
from goodfence.data.ratings import Id, Ratings
from goodfence.errors import SettingError
from goodfence.kernels.inclusion import included_beside
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.recommender import Recommender, row_of
from goodfence.parallel import bar, ranges
from goodfence.rng import RNG, Streams
from goodfence.selection.mechanism import Mechanism, pool_arrays
from goodfence.settings import Count, checked

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

    def to_dict(self) -> dict[str, Any]:
        """Return the two shares with their intervals, and how many targets and hidden ratings they are of."""
        shares = {"share": self.share._asdict(), "target_chosen": self.target_chosen._asdict()}
        return {"n_targets": len(self.hidden), "n_hidden": len(self.alone), **shares}

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


@checked
def exposure(
    ratings: Ratings,
    mechanism: Mechanism | NeighbourCF,
    *,
    attack: Attack,
    targets: Wanted = DEFAULT_TARGETS,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Exposure:
    """Return the probability of each hidden rating to be handed over, without drawing anything.

    Parameters
    ----------
    mechanism
        A selection mechanism, or a user-based `NeighbourCF` with one and any similarity. Where the mechanism adds noise
        to the similarities (`PNCF`), a prediction that rests on the target alone is the target's rating or, where the
        noise made the weight negative, minus that.
    attack
        What the attacker knows, and how many fake profiles there are. With the same `rng` the targets and what is
        known of them are those of `attack.run`.
    ratings, targets, rng, threads, progress
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
    subject, streams = Subject(ratings, mechanism, threads=threads), Streams(rng)
    if subject.traits.needs_refits or subject.recommender.over != "raters":
        raise SettingError(
            "mechanism must be a selection mechanism, or a user-based NeighbourCF that predicts over raters"
        )
    n_fakes = attack.n_fakes(subject.recommender, ratings.shape[0])
    worlds = NeighbourWorlds(ratings, subject.recommender, n_fakes, threads=threads)
    found, _ = find_targets(ratings, targets, attack.known, attack.choose, streams)
    raters = ratings.transposed.csr
    parts = []
    with bar("exposure", len(found), show=progress) as advance:
        for first, last in ranges(len(found), worlds.at_once(1)):
            block = found.part(first, last)
            lists, _ = worlds.lists(block)
            for position, pools in enumerate(_statements(worlds, lists)):
                target = block.part(position, position + 1)
                parts.append(_of_target(target, lists.rows[position], pools, raters))
                advance(1)
    chosen, alone = zip(*parts, strict=True)
    hidden = np.diff(found.starts)
    return Exposure(alone=np.concatenate(alone), chosen=np.array(chosen), hidden=hidden)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RatingExposure:
    """How exposed each rating of one user is, the riskiest first. It is for that user: it holds what they rated."""

    items: npt.NDArray[Any]
    """The items' own ids, by descending risk; ties by how often the rating is recovered, then in column order."""
    risk: Floats
    """How much more often the attacker recovers the rating because it is in the data: 0 where guessing does as well."""
    recovered: Floats
    """How often it is recovered; NaN where it was known in every draw."""
    without: Floats
    """How often it is recovered where the user is not in the data."""
    guessed: Flags
    """Whether the mean of the item's other ratings rounds to it, so that nobody needs an attack."""
    draws: Integers
    """In how many draws the rating was hidden."""

    def to_dict(self) -> dict[str, Any]:
        """Return the items and what is known of each, the riskiest first: for that user, as the object itself."""
        return {name: values.tolist() for name, values in asdict(self).items()}

    def __repr__(self) -> str:
        at_risk = int((self.risk > 0).sum())
        return f"RatingExposure({len(self.items):,} ratings, {at_risk:,} of them at risk)"


@checked
def rating_exposure(
    ratings: Ratings,
    attacked: Mechanism | Recommender,
    user: Id,
    *,
    attack: Attack,
    draws: Count = 40,
    rng: RNG = None,
    progress: bool | None = None,
) -> RatingExposure:
    """Return which of a user's ratings are the risky ones: how likely fakes who know m others recover each.

    The known ratings are drawn anew `draws` times, and all others are attacked, in the world with the user and in the
    one without. A rating that the mean of the item's other ratings gives away has no risk: guessing does as well.

    Parameters
    ----------
    ratings, attacked, rng, progress
        As in `KNNAttack.run`; a recommender that must be refitted is fitted twice for each draw.
    user : id
        Whose ratings. They have more than `attack.known`.
    attack : Attack
        Who attacks, with `choose="random"`.
    draws : int, default 40
        How often the known ratings are drawn. A share of n draws has a standard error of at most 0.5 / sqrt(n).
    """
    if attack.choose != RANDOM:
        raise SettingError("choose must be 'random': the known ratings are drawn anew each time")
    streams = Streams(rng)
    # How often each was hidden, recovered, recovered without the user, guessed.
    counts = np.zeros((4, ratings.shape[1]))
    with bar("exposure", draws, show=progress) as advance:
        for turn in range(draws):
            how: dict[str, Any] = {"rng": streams.key(turn), "progress": False}
            told = attack.run_on(Subject(ratings, attacked), targets=[user], **how).outcomes
            assert told is not None  # noqa: S101 - an attack that was run has them
            hidden = np.ones(len(told.columns))
            seen = (hidden, told.recovered, told.recovered_without, told.guessed)
            counts[:, told.columns] += np.stack(seen)
            advance(1)
    return _ranked(ratings, user, counts)


def _ranked(ratings: Ratings, user: Id, counts: Floats) -> RatingExposure:
    """Return the user's ratings by descending risk; what was never hidden comes last."""
    row = int(ratings.rows([user])[0])
    columns, _ = row_of(ratings.csr, row)
    hidden, read, read_without, guesses = counts[:, columns]
    with np.errstate(invalid="ignore"):
        recovered, without = read / hidden, read_without / hidden
    guessed = guesses > 0
    risk = np.where(guessed, 0.0, np.maximum(recovered - without, 0.0))
    order = np.lexsort((columns, -np.nan_to_num(recovered), -np.nan_to_num(risk, nan=-1.0)))
    found = {"risk": risk, "recovered": recovered, "without": without, "guessed": guessed}
    each: dict[str, Any] = {name: values[order] for name, values in found.items()}
    draws = hidden[order].astype(np.int64)
    return RatingExposure(items=ratings.items[columns[order]], **each, draws=draws)


def alone_in_pool(log_weights: Floats, take: int, target: int | None, rivals: Flags) -> float:
    """Return the probability that `take` draws from a pool choose the target (at this position, or None) and no rival.

    Candidates with a log-weight of -inf are drawn last, uniformly.
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


def _alone(log_weights: Floats, take: int, target: int | None, rivals: Flags) -> float:
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


def _included(others: Floats, candidates: list[float], take: int) -> tuple[list[float], list[float]]:
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


class _Pools(NamedTuple):
    """The pools of one list, and whose rating has a weight in the prediction, (reach,)."""

    log_weights: Floats
    starts: Integers
    stops: Integers
    takes: Integers
    counting: Flags


def _statements(worlds: NeighbourWorlds, lists: Lists) -> list[_Pools]:
    log_weights, pools = worlds.statements(lists)
    starts, stops, takes = pool_arrays(pools, len(lists.rows))
    scale = None if lists.bounds is None else worlds.mechanism.noise_scale(lists.bounds)
    counting = lists.similarities != 0
    if scale is not None:
        counting = counting | (np.asarray(scale).reshape(len(lists.rows), -1) > 0)
    return [_Pools(*row) for row in zip(log_weights, starts, stops, takes, counting, strict=True)]


def _of_target(target: Targets, listed: Rows, pools: _Pools, raters: sparse.csr_array) -> tuple[float, Floats]:
    """Return how likely the target is chosen, and for each of its hidden items, how likely it is chosen alone."""
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


def _product(pools: _Pools, target: int, rivals: Flags, known: dict[bytes, float]) -> float:
    """Return the product over the pools; what was computed for the same rivals is `known`."""
    probability, inside = 1.0, False
    every = zip(pools.starts.tolist(), pools.stops.tolist(), pools.takes.tolist(), strict=True)
    for number, (start, stop, take) in enumerate(every):
        place = target - start if start <= target < stop else None
        inside |= place is not None
        pool, among = pools.log_weights[start:stop], rivals[start:stop]
        key = bytes([number % 256]) + among.tobytes()
        if key not in known:
            known[key] = alone_in_pool(pool, take, place, among)
        probability *= known[key]
    return probability if inside else 0.0
