"""`audit`: what a recommender gives away on these ratings, and whether its promise survives an attempt to break it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from goodfence.attack.attack import Attack, is_mechanism
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.report import AttackReport
from goodfence.attack.targets import Wanted
from goodfence.auditing.bounds import CONFIDENCE, Floats, LowerBound, lower_bound
from goodfence.auditing.outputs import asked_as, bound_of_answers, dense_pair
from goodfence.auditing.pairs import worst_pair
from goodfence.auditing.report import AuditReport, Exhibit
from goodfence.auditing.transcripts import Transcripts
from goodfence.auditing.unseeded import Unseeded
from goodfence.auditing.witnesses import witness_against
from goodfence.data.ratings import Ratings
from goodfence.engines.progress import bar
from goodfence.errors import require
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.recommender import Recommender
from goodfence.privacy.guarantee import Guarantee
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism

FAKES = 50
"""How many fakes attack what has no k."""
_TARGETS, _TARGETS_REFITTED = 200, 30
_BLOCK = 20


class Runs(NamedTuple):
    """What repeated runs on two neighbouring data sets gave."""

    bound: LowerBound | None
    claimed_mu: float | None
    moved: float | None
    pair: str


def audit(
    ratings: Ratings,
    audited: Mechanism | Recommender,
    *,
    attack: Attack | None = None,
    targets: Wanted | None = None,
    trials: int = 1000,
    confidence: float = CONFIDENCE,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> AuditReport:
    """Measure the leak on these ratings, and try to break the promise on data made for it.

    Parameters
    ----------
    ratings
        Who rated what how.
    audited
        A selection mechanism, which means `NeighbourCF` with it, user-based; or any recommender. Its instance is the
        recipe: copies are fitted. Private models are always fitted with fresh noise, never with a seed.
    attack
        None for `KNNAttack(known=8)`.
    targets
        How many users are attacked, or which; None for 200, or 30 where every target needs two fits.
    trials
        How often it is fitted on each of two neighbouring data sets; 0 for not at all. Half of the runs choose what
        to look at. More runs give a higher bound, never a wrong one.
    confidence
        How sure the bound is. A promise that is kept is called broken with a probability of 2 (1 - confidence) at most.
    rng
        A seed for targets, what is known of them, and the search for the pair; noise has none.
    threads, progress
        As in `KNNAttack.run`.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = audit(films, gf.PPNS(k=20, beta=3), targets=50, trials=60, rng=7)
    >>> report.verdict, report.exhibit.without
    ('refuted', 0.0)
    """
    require(trials == 0 or trials >= 30, "trials", "0 or at least 30", trials)
    require(0 < confidence < 1, "confidence", "between 0 and 1", confidence)
    model: Any = NeighbourCF(audited, threads=threads) if is_mechanism(audited) else audited
    leakage = leak(
        ratings, model, attack=attack, targets=targets, rng=rng, threads=threads, progress=progress
    )
    exhibit = None
    if isinstance(model, PrivateRecommender):
        runs = _private_runs(model, ratings, trials, confidence, rng, progress)
    else:
        exhibit, runs = _open_runs(model, trials, confidence)
    return AuditReport(
        audited=repr(audited) if _is_own(audited) else type(audited).__name__,
        guarantee=promise_of(audited),
        leakage=leakage,
        exhibit=exhibit,
        **runs._asdict(),
    )


def leak(
    ratings: Ratings,
    audited: Any,
    *,
    attack: Attack | None = None,
    targets: Wanted | None = None,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> AttackReport:
    """Attack by the shortest way that gives the same: from candidate lists, or with refits of fresh noise."""
    model: Any = NeighbourCF(audited) if is_mechanism(audited) else audited
    listed = isinstance(model, NeighbourCF) and model.axis == "user" and model.fallback is None
    if attack is None:
        has_k = isinstance(model, NeighbourCF) and model.axis == "user"
        attack = KNNAttack(known=8, fakes=None if has_k else FAKES)
    if listed:
        return attack.run(
            ratings,
            model.mechanism,
            targets=_TARGETS if targets is None else targets,
            rng=rng,
            similarity=model.similarity,
            over=model.over,
            threads=threads,
            progress=progress,
        )
    recipe = Unseeded(model) if isinstance(model, PrivateRecommender) else model
    wanted = _TARGETS_REFITTED if targets is None else targets
    return attack.run(ratings, recipe, targets=wanted, rng=rng, threads=threads, progress=progress)


def promise_of(audited: Any) -> Guarantee:
    """Return the guarantee; something that makes none has the status `none`."""
    stated = getattr(audited, "guarantee", None)
    if stated is None:
        return Guarantee(status="none", reason="The recommender states no guarantee.")
    found: Guarantee = stated()
    return found


def _private_runs(
    model: PrivateRecommender,
    ratings: Ratings,
    trials: int,
    confidence: float,
    rng: RNG,
    progress: bool | None,
) -> Runs:
    """Fit on the worst pair that was found, and score what was released by its exact likelihood ratio."""
    pair, shift = worst_pair(model, ratings.scale, rng)
    fits = Transcripts(model, pair.without, pair.with_it)
    claimed = fits.mu  # what the promise allows, whatever the model charges itself
    words = f"{pair.with_it.shape[0]} made-up people, {pair.with_it.shape[1]} items"
    bound = None
    if trials:
        scores = [_in_blocks(fits, which, trials, progress) for which in (0, 1)]
        bound = lower_bound(*scores, delta=model.delta, confidence=confidence)
    moved = max(shift / claimed, fits.largest_ratio if fits.largest_ratio > 1 else 0.0)
    return Runs(bound, claimed, moved, words)


def _in_blocks(fits: Transcripts, which: int, trials: int, progress: bool | None) -> Floats:
    parts = []
    with bar("audit", trials, show=progress) as advance:
        for start in range(0, trials, _BLOCK):
            n = min(_BLOCK, trials - start)
            parts.append(fits.scores(which, n))
            advance(n)
    return np.concatenate(parts)


def _open_runs(model: Any, trials: int, confidence: float) -> tuple[Exhibit | None, Runs]:
    """Exhibit a witness where the law is known, and run on its data sets, or on plain ones."""
    witness = witness_against(model) if isinstance(model, NeighbourCF) else None
    exhibit = None
    matrices = _PLAIN, _without(_PLAIN)
    if witness is not None:
        with_it, without = witness.probabilities()
        n_candidates = len(witness.ratings) - 1
        exhibit = Exhibit(
            event=witness.event, with_it=with_it, without=without, n_candidates=n_candidates
        )
        matrices = witness.ratings, witness.ratings_without
    elif isinstance(model, NeighbourCF):
        return None, Runs(None, None, None, "none: no witness is computed for these settings")
    pair = dense_pair(*matrices)
    words = f"{pair[0].shape[0]} made-up people, {pair[0].shape[1]} items"
    if not trials:
        return exhibit, Runs(None, None, None, words)
    answers = asked_as(Unseeded(model), pair, asker=0)
    promised = promise_of(model)
    bound = bound_of_answers(answers, trials, delta=promised.delta or 0.0, confidence=confidence)
    return exhibit, Runs(bound, None, None, words)


_PLAIN: Floats = np.array(
    [[5, 4, 0, 0], [5, 4, 5, 0], *[[4, 5, 0, 2], [0, 3, 0, 5], [3, 0, 0, 4]] * 6], dtype=np.float64
)
"""Somebody asks who is like one other, and that one alone rated the third item."""


def _without(ratings: Floats) -> Floats:
    other = ratings.copy()
    other[1, 2] = 0.0
    return other


def _is_own(audited: Any) -> bool:
    known = isinstance(audited, NeighbourCF | PrivateRecommender)
    return known or is_mechanism(audited)
