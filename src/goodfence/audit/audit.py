"""`audit`: what a recommender gives away on these ratings, and whether an attempt breaks its guarantee."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from goodfence.arrays import Floats
from goodfence.attack import DEFAULT_KNOWN
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.report import AttackReport
from goodfence.attack.strongest import strongest, usual_attackers, within_time
from goodfence.attack.targets import Wanted
from goodfence.audit.dp_audit import Transcripts
from goodfence.audit.lower_bound import CONFIDENCE, LowerBound, lower_bound
from goodfence.audit.pairs import (
    asked_as,
    bound_of_answers,
    dense_pair,
    for_made_up_items,
    plain_pair,
    witness_against,
    worst_pair,
)
from goodfence.audit.report import AuditReport, Exhibit
from goodfence.data.ratings import Ratings
from goodfence.errors import require
from goodfence.models.neighbour_cf import NeighbourCF, as_recommender, traits_of
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.recommender import Attackable, guarantee_of
from goodfence.neighbours.threads import bar
from goodfence.rng import RNG
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import checked

_BLOCK = 20
_PEOPLE = (20, 60, 200, 600)
"""How many users are in the plain data sets: the first number, or, where that is too few, the next."""


class Trials(NamedTuple):
    """How often a recommender is fitted on each data set, and how sure the bound is."""

    n: int
    confidence: float


class Runs(NamedTuple):
    """What repeated runs on two neighbouring data sets gave."""

    bound: LowerBound | None
    claimed_mu: float | None
    moved: float | None
    pair: str


MOST_TRIALS = 10**7
"""More refits than anybody waits for."""


@checked
def audit(
    ratings: Ratings,
    audited: Mechanism | Attackable,
    *,
    known: int = DEFAULT_KNOWN,
    attack: Attack | None = None,
    targets: Wanted | None = None,
    seconds: float | None = None,
    trials: int = 1000,
    confidence: float = CONFIDENCE,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> AuditReport:
    """Measure the leak on these ratings, and try to break the guarantee on data made for it.

    Parameters
    ----------
    ratings, threads, progress
        As in `KNNAttack.run`.
    audited
        A mechanism or a recommender: copies are fitted, private models always with fresh noise, never with a seed.
    known, attack
        How many ratings of each target the attackers know; None for the usual ones (`usual_attackers`), of whom the
        strongest on one half of the targets attacks the other.
    targets
        How many users are attacked, or which; None for 200, or 30 where every target needs fits.
    seconds
        Try only attackers that take less than about this long on ten users, where every target needs fits; the report
        names the others. None for all.
    trials, confidence
        How often it is fitted on each of two neighbouring data sets, or 0, and how sure the bound is: a guarantee that
        holds is called broken with a probability of 2 (1 - confidence) at most.
    rng
        A seed for targets, what is known of them, and the search for the pair; noise has none.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = audit(films, gf.PPNS(k=20, beta=3), targets=50, trials=60, rng=7)
    >>> report.verdict, report.exhibit.without
    ('refuted', 0.0)
    """
    holds = trials == 0 or 30 <= trials <= MOST_TRIALS
    require(holds, "trials", f"0, or from 30 to {MOST_TRIALS:,}", trials)
    require(0 < confidence < 1, "confidence", "between 0 and 1", confidence)
    model = as_recommender(audited, threads=threads)
    leakage = leak(
        Subject(ratings, model, threads=threads),
        known=known,
        attack=attack,
        targets=targets,
        seconds=seconds,
        rng=rng,
        progress=progress,
    )
    exhibit, runs = _tested(model, ratings, Trials(trials, confidence), rng, progress)
    return AuditReport(
        audited=traits_of(model).title,
        guarantee=guarantee_of(model),
        leakage=leakage,
        neighbourhood=neighbourhood(model),
        exhibit=exhibit,
        **runs._asdict(),
    )


def leak(
    subject: Subject,
    *,
    known: int = DEFAULT_KNOWN,
    attack: Attack | None = None,
    targets: Wanted | None = None,
    seconds: float | None = None,
    rng: RNG = None,
    progress: bool | None = None,
) -> AttackReport:
    """Return the report of the attack, or of the strongest of the usual ones; parameters as in `audit`."""
    usual = usual_attackers(subject, known=known) if attack is None else (attack,)
    attackers, left_out = within_time(subject, usual, seconds)
    running: dict[str, Any] = {"targets": targets, "rng": rng, "progress": progress}
    return strongest(subject, attackers, not_tried=left_out, **running)


def neighbourhood(model: Any) -> str:
    """Return in words whose neighbours were attacked: kNN of another library is not kNN of the paper.

    Examples
    --------
    >>> import goodfence as gf
    >>> neighbourhood(gf.NeighbourCF(gf.KNN(k=20)))
    'the neighbours that KNN(k=20) of goodfence chooses for each user among all users, by cosine'
    """
    traits = traits_of(model)
    if traits.mechanism is not None and traits.similarity is not None:
        among = getattr(model, "among", "all")
        whom = "the raters of each item" if among == "raters" else "all users"
        return (
            f"the neighbours that {traits.mechanism!r} of goodfence chooses for each user among {whom}, "
            f"by {traits.similarity.name}"
        )
    if traits.n_neighbours == 0:
        return "none: no answer rests on a few users alone"
    return f"whatever {traits.title} answers from, seen from outside only"


def _tested(
    model: Any, ratings: Ratings, trials: Trials, rng: RNG, progress: bool | None
) -> tuple[Exhibit | None, Runs]:
    """Try to break the guarantee: by the releases of a private model, by a counterexample, or by answers alone."""
    if isinstance(model, PrivateRecommender):
        return None, _private_runs(model, ratings, trials, rng, progress)
    return _open_runs(model, ratings.shape[0], trials)


def _private_runs(
    model: PrivateRecommender,
    ratings: Ratings,
    trials: Trials,
    rng: RNG,
    progress: bool | None,
) -> Runs:
    """Fit on the worst pair that was found, and score what was released by its exact likelihood ratio."""
    small = for_made_up_items(model)
    pair, shift = worst_pair(small, ratings.scale, rng)
    fits = Transcripts(small, pair.without, pair.with_it)
    claimed = fits.mu  # what the guarantee allows, whatever the model charges itself
    words = f"{pair.with_it.shape[0]} made-up users, {pair.with_it.shape[1]} items"
    bound = None
    if trials.n:
        scores = [_in_blocks(fits, which, trials.n, progress) for which in (0, 1)]
        bound = lower_bound(*scores, delta=model.delta, confidence=trials.confidence)
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


def _open_runs(model: Any, n_users: int, trials: Trials) -> tuple[Exhibit | None, Runs]:
    """Show a counterexample where the distribution is known, and run on its data sets, or on plain ones."""
    if not isinstance(model, NeighbourCF):
        return None, _plain_runs(model, n_users, trials)
    example = witness_against(model)
    if example is None:
        return None, Runs(
            None, None, None, "none: no counterexample is computed for these settings"
        )
    with_it, without = example.probabilities()
    n_candidates = len(example.ratings) - 1
    exhibit = Exhibit(
        event=example.event, with_it=with_it, without=without, n_candidates=n_candidates
    )
    pair = dense_pair(example.ratings, example.ratings_without)
    return exhibit, _runs(model, pair, trials)


def _plain_runs(model: Any, n_users: int, trials: Trials) -> Runs:
    """Run on plain data sets of enough users for the model to be fitted and asked.

    A stranger may need more neighbours than a few users have. How many is not known, but those of the given ratings
    were enough: so the data sets grow until they are, or until there are as many users in them. Without trials
    nothing is fitted, and where the recommender fails on all of them, that is told and the leak is kept.
    """
    if not trials.n:
        return Runs(None, None, None, "none: no trials were asked for")
    sizes = [size for size in _PEOPLE if size < n_users]
    for n_people in [*sizes, max(n_users, _PEOPLE[0])]:
        pair = plain_pair(n_people)
        try:
            asked_as(model, pair, asker=0)(0)
        except Exception as error:  # a stranger's own error, of any kind
            if n_people < n_users:
                continue
            failed = f"failed with its own {type(error).__name__}"
            return Runs(None, None, None, f"none: on made-up data the recommender {failed}")
        return _runs(model, pair, trials)
    raise AssertionError("the last size is tried above")


def _runs(model: Any, pair: tuple[Ratings, Ratings], trials: Trials) -> Runs:
    words = f"{pair[0].shape[0]} made-up users, {pair[0].shape[1]} items"
    if not trials.n:
        return Runs(None, None, None, words)
    answers, delta = asked_as(model, pair, asker=0), guarantee_of(model).delta or 0.0
    bound = bound_of_answers(answers, trials.n, delta=delta, confidence=trials.confidence)
    return Runs(bound, None, None, words)


LONGEST = 60.0
"""Seconds that nobody needs to ask for."""
_FEW, _SOME = 3, 30
_SHORT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a short trial of an attack said about the whole of it."""

    n_targets: int
    """How many users can be attacked in the time."""
    seconds: float
    """How long everybody would take, about."""


def affordable_targets(
    ratings: Ratings,
    recommender: Any,
    attack: Attack | None = None,
    *,
    known: int = DEFAULT_KNOWN,
    rng: RNG = None,
    threads: int | None = None,
) -> Pace:
    """Return how many users the attack, or the usual ones, can target on this recommender in a minute.

    Parameters
    ----------
    ratings : Ratings
        What the recommender learns from.
    recommender, attack, known
        What is attacked, and how, as in `audit`.
    rng : RNG, default None
        The seed of the trial runs.
    threads : int or None, default None
        How many threads; None for as many as there are cores.
    """
    subject = Subject(ratings, recommender, threads=threads)
    usual = usual_attackers(subject, known=known) if attack is None else (attack,)
    attackers, _ = within_time(subject, usual, LONGEST)

    def trial(n: int) -> object:
        fresh = Subject(ratings, recommender, threads=threads)
        return strongest(fresh, attackers, targets=n, rng=rng, progress=False)

    return find_pace(trial, ratings.shape[0])


def find_pace(
    attack: Callable[[int], object],
    n_users: int,
    *,
    longest: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Pace:
    """Try `attack` on a few users, and return how many of `n_users` it can attack in the longest time.

    The first trial pays for compiling and is not counted.
    """
    limit = LONGEST if longest is None else longest
    attack(1)
    few = _seconds(attack, min(_FEW, n_users), clock)
    each = few / min(_FEW, n_users)
    if each * n_users > limit and few < _SHORT and n_users > _SOME:
        # What is done once, however many are attacked, must not count for each of them.
        each = max(_seconds(attack, _SOME, clock) - few, 0.0) / (_SOME - _FEW)
    whole = few + each * n_users
    if whole <= limit or each == 0:
        return Pace(n_targets=n_users, seconds=whole)
    return Pace(n_targets=max(_FEW, int((limit - few) / each)), seconds=whole)


def _seconds(attack: Callable[[int], object], n: int, clock: Callable[[], float]) -> float:
    start = clock()
    attack(n)
    return clock() - start
