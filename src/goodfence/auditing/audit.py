"""`audit`: what a recommender gives away on these ratings, and whether its promise survives an attempt to break it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from goodfence.attack.attack import Attack, is_mechanism, mechanism_in
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.report import AttackReport
from goodfence.attack.targets import Wanted
from goodfence.auditing.bounds import CONFIDENCE, Floats, LowerBound, lower_bound
from goodfence.auditing.outputs import asked_as, bound_of_answers, dense_pair, plain_pair
from goodfence.auditing.pairs import for_made_up_items, worst_pair
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
from goodfence.rng import RNG, Streams, seed_of
from goodfence.selection.mechanism import Mechanism

FAKES = 50
"""How many fakes attack what has no neighbours."""
# More fakes than a neighbourhood holds crowd the target out of it, and far fewer are lost in it: where the number
# of neighbours is not known, one attacker alone may find nothing where another reads everything.
FAKES_TRIED = (10, 20, 50)
"""How many fakes attack what may have neighbours, nobody knows how many: each number in turn."""
_TARGETS, _TARGETS_REFITTED = 200, 30
_BLOCK = 20
_PEOPLE = (20, 60, 200, 600)
"""How many people are in the plain data sets: so many, or, where that is too few, the next."""


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
        None for `KNNAttack(known=8)` with as many fakes as there are neighbours. Where that is not known, as of a
        `BlackBox`, attackers with 10, 20 and 50 fakes try, and the report is of the one who gained most.
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
        exhibit, runs = _open_runs(model, ratings.shape[0], trials, confidence)
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
    attacks = _attacks(model) if attack is None else (attack,)
    listed = isinstance(model, NeighbourCF) and model.axis == "user" and model.fallback is None
    if listed:
        return attacks[0].run(
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
    seed = rng
    if len(attacks) > 1 and seed_of(rng) is None:
        seed = Streams(rng).key(0)  # the same people for every attacker
    return _strongest(
        [
            each.run(ratings, recipe, targets=wanted, rng=seed, threads=threads, progress=progress)
            for each in attacks
        ]
    )


def _attacks(model: Any) -> tuple[KNNAttack, ...]:
    """Return who attacks where nobody is named: k fakes, or several attackers where there is no telling k."""
    if mechanism_in(model) is not None:
        return (KNNAttack(known=8),)
    tried = (FAKES,) if isinstance(model, PrivateRecommender) else FAKES_TRIED
    return tuple(KNNAttack(known=8, fakes=fakes) for fakes in tried)


def _strongest(reports: list[AttackReport]) -> AttackReport:
    """Return the report of the attack that gained most, and say in it who else tried."""
    if len(reports) == 1:
        return reports[0]
    # An advantage that is no number, where nothing was hidden, is no gain.
    most = max(reports, key=lambda report: np.nan_to_num(report.advantage, nan=-np.inf))
    tried = ", ".join(f"{report.n_fakes}" for report in reports)
    return replace(most, attack=f"{most.attack}, who gained most of those with {tried} fakes")


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
    small = for_made_up_items(model)
    pair, shift = worst_pair(small, ratings.scale, rng)
    fits = Transcripts(small, pair.without, pair.with_it)
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


def _open_runs(
    model: Any, n_users: int, trials: int, confidence: float
) -> tuple[Exhibit | None, Runs]:
    """Exhibit a witness where the law is known, and run on its data sets, or on plain ones."""
    if not isinstance(model, NeighbourCF):
        return None, _plain_runs(model, n_users, trials, confidence)
    witness = witness_against(model)
    if witness is None:
        return None, Runs(None, None, None, "none: no witness is computed for these settings")
    with_it, without = witness.probabilities()
    n_candidates = len(witness.ratings) - 1
    exhibit = Exhibit(
        event=witness.event, with_it=with_it, without=without, n_candidates=n_candidates
    )
    pair = dense_pair(witness.ratings, witness.ratings_without)
    return exhibit, _runs(model, pair, trials, confidence)


def _plain_runs(model: Any, n_users: int, trials: int, confidence: float) -> Runs:
    """Run on plain data sets of so many people that the model can be fitted and asked.

    A stranger may need more neighbours than a few people have. How many is not known, but those of the given ratings
    were enough: so the data sets grow until they are, or until there are as many people in them.
    """
    sizes = [size for size in _PEOPLE if size < n_users]
    for n_people in [*sizes, max(n_users, _PEOPLE[0])]:
        pair = plain_pair(n_people)
        try:
            asked_as(Unseeded(model), pair, asker=0)(0)
        except Exception:  # a stranger's own error, of any kind
            if n_people >= n_users:
                raise
            continue
        return _runs(model, pair, trials, confidence)
    raise AssertionError("the last size is tried above")


def _runs(model: Any, pair: tuple[Ratings, Ratings], trials: int, confidence: float) -> Runs:
    words = f"{pair[0].shape[0]} made-up people, {pair[0].shape[1]} items"
    if not trials:
        return Runs(None, None, None, words)
    answers = asked_as(Unseeded(model), pair, asker=0)
    promised = promise_of(model)
    bound = bound_of_answers(answers, trials, delta=promised.delta or 0.0, confidence=confidence)
    return Runs(bound, None, None, words)


def _is_own(audited: Any) -> bool:
    known = isinstance(audited, NeighbourCF | PrivateRecommender)
    return known or is_mechanism(audited)
