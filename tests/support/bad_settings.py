"""Settings that somebody may give to every public callable, and whether each must be refused.

An argument has a domain, written down here by hand; a value outside it must be refused with an error of goodfence that
names the argument, a value inside it must be taken, and where only the data can tell (`either`) both are right, but
nothing else: no other error, no signal, no value in the message that is somebody's.
"""

from __future__ import annotations

import contextlib
import decimal
import fractions
import functools
import inspect
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import goodfence as gf
from goodfence.attack.exposure import rating_exposure
from goodfence.data.splits import sample_targets
from goodfence.errors import GoodfenceError, GoodfenceWarning
from goodfence.evaluation import Scores, learning_curve
from goodfence.neighbours.candidate_lists import profile_candidates
from goodfence.report.pages import save_result

TAKEN, REFUSED, EITHER, SKIPPED = "taken", "refused", "either", "skipped"
Judge = Callable[[Any], str]


class _Odd:
    """Something that is nothing."""


def values() -> list[Any]:
    """Return what is tried for every argument: types, then extremes."""
    numbers = [0, 1, 2, 3, 4, 5, 7, 8, 30, 100, -1, -7, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**70, -(2**70), 10**400]
    floats = [0.0, -0.0, 0.5, 1.0, 1.5, 2.0, -0.5, 1e-300, 5e-324, 1e300, math.nan, math.inf, -math.inf]
    texts = ["", "1", "user", "item", "rating", "cosine", "random", "all", "one", "raters", "\x00", "x" * 10_000, "é"]
    numpy = [
        np.int64(3),
        np.int8(1),
        np.uint64(2**63),
        np.float32(0.5),
        np.float64("nan"),
        np.bool_(True),
        np.str_("user"),
    ]
    arrays = [np.array([]), np.array([1, 2]), np.array(3), np.array([[1.0]]), np.array(["a"]), np.array([None])]
    others: list[Any] = [
        None,
        True,
        False,
        b"",
        b"user",
        1j,
        [],
        [1],
        [1, 1],
        ["a", 2],
        [None],
        (),
        (1, 5),
        (1, 5, 1),
        (5, 1),
    ]
    others += [{}, {1: 2}, {"a"}, frozenset(), range(3), object, _Odd, _Odd(), len, Ellipsis, Exception("x")]
    others += [decimal.Decimal(1), fractions.Fraction(1, 2), Path("x"), slice(1), iter([1]), memoryview(b"x")]
    return [*numbers, *floats, *texts, *numpy, *arrays, *others]


def is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    real = isinstance(value, int | float | np.integer | np.floating | fractions.Fraction)
    if not real or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def integer(least: int, most: int, *, optional: bool = False, beyond: str = REFUSED) -> Judge:
    """Return the judge of integers from `least` to `most`; what is above is `beyond`."""

    def judge(value: Any) -> str:
        if value is None:
            return TAKEN if optional else REFUSED
        if not is_integer(value) or value < least:
            return REFUSED
        return TAKEN if value <= most else beyond

    return judge


def number(above: float, below: float, *, optional: bool = False, ends: bool = False) -> Judge:
    """Return the judge of numbers between two ends; those far out may be refused by what is done with them."""

    def judge(value: Any) -> str:
        if value is None:
            return TAKEN if optional else REFUSED
        if not is_number(value):
            return REFUSED
        inside = above <= float(value) <= below if ends else above < float(value) < below
        return EITHER if inside else REFUSED

    return judge


def words(*known: str, optional: bool = False) -> Judge:
    """Return the judge of words."""

    def judge(value: Any) -> str:
        if value is None:
            return TAKEN if optional else REFUSED
        return TAKEN if isinstance(value, str) and value in known else REFUSED

    return judge


def either(value: Any) -> str:
    """Judge nothing: only the data can tell."""
    return EITHER


def switch(*, optional: bool = False) -> Judge:
    """Return the judge of True and False."""
    return lambda value: TAKEN if isinstance(value, bool) or (optional and value is None) else REFUSED


def nothing_else(kind: type) -> Judge:
    """Return the judge of an argument that none of the values can be."""
    return lambda value: EITHER if isinstance(value, kind) else REFUSED


@dataclass(frozen=True, kw_only=True)
class Public:
    """A public callable, a call of it that works, and the domain of each argument."""

    name: str
    call: Callable[..., Any]
    good: dict[str, Any]
    domains: dict[str, Judge] = field(default_factory=dict)


def _films() -> gf.Ratings:
    return gf.synthetic(users=30, items=20, ratings=240, rng=7)


FILE_ONLY = (
    *("user", "item", "rating", "time", "weight"),
    *("scale", "separator", "decimal", "encoding", "unrated", "dates"),
)
RNG: Judge = either
THREADS = integer(1, 8, optional=True, beyond=EITHER)
AXIS = words("user", "item")
SIMILARITY: Judge = either
PROGRESS = switch(optional=True)


def callables() -> list[Public]:
    """Return every public callable with the domains of its arguments."""
    films = _films()
    ratings = nothing_else(gf.Ratings)
    model = gf.NeighbourCF(gf.KNN(k=5), rng=7, progress=False).fit(films)
    mechanism = nothing_else(gf.KNN)
    sims, rs = np.linspace(0.9, 0.1, 12), 0.1
    ids: Judge = either
    weighed = {"mechanism": mechanism, "similarities": either, "sensitivity": either}
    weighed["method"] = words("exact", "manly")
    attack = {
        "known": integer(1, 7, beyond=EITHER),
        "choose": either,
        "fakes": integer(1, 50, optional=True, beyond=EITHER),
    }
    knn_attack = {
        **attack,
        "ask": words("one", "all"),
        "combine": words("mode", "mean"),
        "rounds": integer(1, 4, beyond=EITHER),
    }
    private = {"epsilon": number(0, math.inf), "delta": number(0, 1), "rng": RNG, "catalogue": ids}
    unit = words("rating", "user")
    return [
        Public(name="KNN", call=gf.KNN, good={"k": 5}, domains={"k": integer(1, 100, beyond=EITHER)}),
        Public(
            name="NPNS",
            call=gf.NPNS,
            good={"k": 5},
            domains={
                "k": integer(1, 100, beyond=EITHER),
                "weights": words("similarity", "uniform", "exponential", "weibull", "folded_normal"),
                "within": integer(1, 100, optional=True, beyond=EITHER),
                **dict.fromkeys(("rate", "shape", "scale", "mean", "deviation"), _only_none),
            },
        ),
        Public(
            name="PNCF",
            call=gf.PNCF,
            good={"k": 5},
            domains={
                "k": integer(1, 100, beyond=EITHER),
                "epsilon": number(0, math.inf),
                "rho": number(0, 1),
                "reading": words("band", "truncated"),
                "within": integer(1, 100, optional=True, beyond=EITHER),
                "sensitivity": _sensitivity,
                "noise": either,
            },
        ),
        Public(
            name="PPNS",
            call=gf.PPNS,
            good={"k": 5, "beta": 2},
            domains={
                "k": integer(1, 100, beyond=EITHER),
                "beta": integer(1, 100, beyond=EITHER),
                "epsilon": number(0, math.inf),
                "allocation": _only_none,
                "sensitivity": _sensitivity,
            },
        ),
        *published(films, attack),
        *of_lists(attack),
        Public(
            name="Sensitivity",
            call=gf.Sensitivity,
            good={},
            domains={"reading": words("printed", "derived"), "scope": words("target", "pair"), "clamp": switch()},
        ),
        Public(
            name="Similarity",
            call=gf.Similarity,
            good={},
            domains={"name": words("cosine", "cosine_corated", "pearson"), "centre": words("all", "corated")},
        ),
        Public(
            name="Scale",
            call=gf.Scale,
            good={"lowest": -7, "highest": 5},
            domains={
                "lowest": number(-math.inf, 5, ends=True),
                "highest": number(-7, math.inf, ends=True),
                "step": number(0, math.inf, optional=True),
                "declared": switch(),
            },
        ),
        Public(
            name="Ratings",
            call=gf.Ratings,
            good={"csr": films.csr, "users": films.users, "items": films.items, "scale": (1, 5)},
            domains={"csr": nothing_else(_Odd), "users": _no_ids, "items": _no_ids, "scale": _scale, "titles": either},
        ),
        Public(
            name="synthetic",
            call=gf.synthetic,
            good={"users": 30, "items": 20, "ratings": 100, "rng": 7},
            domains={
                "users": integer(5, 100),
                "items": integer(4, 100),
                "ratings": integer(1, 600),
                "rng": RNG,
                "scale": _scale,
                "feedback": words("explicit", "implicit"),
            },
        ),
        Public(
            name="holdout",
            call=gf.holdout,
            good={"ratings": films, "rng": 7},
            domains={
                "ratings": ratings,
                "fraction": number(0, 1, optional=True),
                "per_user": integer(1, 100, optional=True, beyond=EITHER),
                "by": words("chance"),
                "rng": RNG,
            },
        ),
        Public(
            name="folds",
            call=lambda **given: list(gf.folds(**given)),
            good={"ratings": films, "rng": 7},
            domains={"ratings": ratings, "n": integer(2, 240), "rng": RNG},
        ),
        Public(
            name="sample_targets",
            call=sample_targets,
            good={"ratings": films, "n": 3, "rng": 7},
            domains={
                "ratings": ratings,
                "n": integer(1, 100, beyond=EITHER),
                "more_than": integer(0, 100, beyond=EITHER),
                "rng": RNG,
            },
        ),
        Public(
            name="load",
            call=gf.load,
            good={"name": "movietweetings"},
            domains={
                "name": nothing_else(_Odd),
                "duplicates": words("error", "last", "first", "mean", optional=True),
                "feedback": words("explicit"),
                "likes": number(-(2.0**80), 10, optional=True, ends=True),
                "max_bytes": integer(2**30, 2**80, beyond=EITHER),
                **dict.fromkeys(FILE_ONLY, _only_none),
                "items": _no_ids_or_none,
            },
        ),
        Public(name="load_model", call=gf.load_model, good={"path": "none.gf"}, domains={"path": nothing_else(_Odd)}),
        Public(
            name="candidate_lists",
            call=gf.candidate_lists,
            good={"ratings": films, "n": 5, "progress": False},
            domains={
                "ratings": ratings,
                "n": integer(1, 19, beyond=EITHER),
                "axis": AXIS,
                "similarity": SIMILARITY,
                "short_lists": words("error", "shorten"),
                "threads": THREADS,
                "progress": PROGRESS,
            },
        ),
        Public(
            name="profile_candidates",
            call=profile_candidates,
            good={"ratings": films, "profile": {1: 5.0, 2: 3.0}},
            domains={
                "ratings": ratings,
                "profile": either,
                "n": integer(1, 19, optional=True, beyond=EITHER),
                "axis": AXIS,
                "similarity": SIMILARITY,
                "threads": THREADS,
            },
        ),
        Public(
            name="inclusion_probabilities",
            call=gf.inclusion_probabilities,
            good={"mechanism": gf.PPNS(k=3, beta=2), "similarities": sims, "sensitivity": rs},
            domains={**weighed},
        ),
        Public(
            name="alpha",
            call=gf.alpha,
            good={"mechanism": gf.PPNS(k=3, beta=2), "similarities": sims, "sensitivity": rs},
            domains={**weighed},
        ),
        Public(
            name="algorithm_1",
            call=gf.papers.algorithm_1,
            good={
                "ratings": films,
                "mechanism": gf.PPNS(k=3, beta=2),
                "user": films.users[0],
                "item": films.items[0],
                "rng": 7,
            },
            domains={
                "ratings": ratings,
                "mechanism": mechanism,
                "user": either,
                "item": either,
                "axis": AXIS,
                "similarity": SIMILARITY,
                "over": words("raters", "neighbours"),
                "rng": RNG,
            },
        ),
        Public(
            name="NeighbourCF",
            call=lambda **given: gf.NeighbourCF(**given).fit(films),
            good={"mechanism": gf.KNN(k=3), "rng": 7, "progress": False},
            domains={
                "mechanism": mechanism,
                "axis": AXIS,
                "similarity": SIMILARITY,
                "over": words("raters", "neighbours"),
                "fallback": words("item_mean", "user_mean", "global_mean", optional=True),
                "rng": RNG,
                "threads": THREADS,
                "progress": PROGRESS,
            },
        ),
        Public(
            name="PrivateMeans",
            call=lambda **given: gf.PrivateMeans(**given),
            good={"epsilon": 1.0},
            domains={**private, "unit": unit},
        ),
        Public(
            name="PrivateCF",
            call=lambda **given: gf.PrivateCF(**given),
            good={"epsilon": 1.0},
            domains={**private, "unit": unit, "plan": words("auto", "means", "covariance"), "features": either},
        ),
        Public(
            name="PrivateTopN",
            call=lambda **given: gf.PrivateTopN(**given),
            good={"epsilon": 1.0},
            domains={**private, "unit": words("event", "user")},
        ),
        Public(
            name="McSherryMironov",
            call=lambda **given: gf.papers.McSherryMironov(**given),
            good={"epsilon": 1.0},
            domains={
                **private,
                "clamp": number(0, math.inf),
                "item_prior": number(0, math.inf),
                "user_prior": integer(1, 100, beyond=EITHER),
                "covariance_items": integer(2, 1000, beyond=EITHER),
                "rank": integer(1, 100, beyond=EITHER),
            },
        ),
        Public(
            name="evaluate",
            call=gf.evaluate,
            good={"model": model, "test": films},
            domains={"model": either, "test": ratings, "n": integer(1, 20, optional=True, beyond=EITHER)},
        ),
        Public(
            name="tune",
            call=gf.tune,
            good={"make": "knn", "grid": {"k": [3]}, "data": films, "rng": 7},
            domains={
                "make": either,
                "grid": either,
                "data": either,
                "folds": integer(1, 9, beyond=EITHER),
                "tries": integer(1, 100, optional=True, beyond=EITHER),
                "figure": either,
                "rng": RNG,
            },
        ),
        Public(
            name="learning_curve",
            call=learning_curve,
            good={"recommender": gf.NeighbourCF(gf.KNN(k=3)), "data": films, "rng": 7},
            domains={
                "recommender": either,
                "data": either,
                "shares": either,
                "folds": integer(1, 9, beyond=EITHER),
                "figure": either,
                "rng": RNG,
            },
        ),
        Public(
            name="paper_protocol",
            call=gf.papers.paper_protocol,
            good={"ratings": films, "mechanism": gf.KNN(k=3), "targets": 5, "rng": 7},
            domains={
                "ratings": ratings,
                "mechanism": mechanism,
                "axis": AXIS,
                "targets": either,
                "similarity": SIMILARITY,
                "over": words("raters", "neighbours"),
                "rng": RNG,
            },
        ),
        *(
            Public(name=kind.__name__, call=kind, good={"known": 3}, domains=knn_attack)
            for kind in (gf.KNNAttack, gf.CoverAttack)
        ),
        Public(
            name="AdaptiveAttack",
            call=gf.AdaptiveAttack,
            good={"known": 3},
            domains={
                **attack,
                "fakes": integer(2, 50, optional=True, beyond=EITHER),
                "items": integer(1, 50, optional=True, beyond=EITHER),
            },
        ),
        Public(
            name="MembershipAttack",
            call=gf.MembershipAttack,
            good={"known": 8},
            domains={
                "known": integer(6, 7, beyond=EITHER),
                "left_out": integer(1, 8, beyond=EITHER),
                "choose": either,
                "fakes": integer(1, 50, optional=True, beyond=EITHER),
            },
        ),
        Public(
            name="RelatedItemsAttack",
            call=gf.RelatedItemsAttack,
            good={"known": 3},
            domains={"known": integer(1, 50, beyond=EITHER), "n": integer(1, 50, beyond=EITHER)},
        ),
        Public(
            name="rating_exposure",
            call=rating_exposure,
            good={
                "ratings": films,
                "attacked": gf.KNN(k=3),
                "user": int(films.users[np.argmax(np.diff(films.csr.indptr))]),
                "attack": gf.KNNAttack(known=3),
                "draws": 2,
                "rng": 7,
                "progress": False,
            },
            domains={
                "ratings": ratings,
                "attacked": nothing_else(gf.KNN),
                "attack": nothing_else(gf.KNNAttack),
                "draws": integer(1, 40, beyond=EITHER),
                "threads": THREADS,
                "progress": PROGRESS,
            },
        ),
        Public(
            name="exposure",
            call=gf.exposure,
            good={
                "ratings": films,
                "mechanism": gf.KNN(k=3),
                "attack": gf.KNNAttack(known=3),
                "targets": 2,
                "rng": 7,
                "progress": False,
            },
            domains={
                "ratings": ratings,
                "mechanism": mechanism,
                "attack": nothing_else(gf.KNNAttack),
                "targets": either,
                "rng": RNG,
                "similarity": SIMILARITY,
                "threads": THREADS,
                "progress": PROGRESS,
            },
        ),
        Public(
            name="audit",
            call=gf.audit,
            good={"ratings": films, "audited": gf.KNN(k=3), "targets": 2, "trials": 0, "rng": 7, "progress": False},
            domains={
                "ratings": ratings,
                "audited": nothing_else(gf.KNN),
                "attack": _only_none,
                "targets": either,
                "trials": _trials,
                "rng": RNG,
                "progress": PROGRESS,
            },
        ),
        Public(
            name="assert_leak_below",
            call=gf.assert_leak_below,
            good={"recommender": gf.KNN(k=3), "ratings": films, "limit": 100, "known": 3, "targets": 2},
            domains={
                "recommender": nothing_else(gf.KNN),
                "ratings": ratings,
                "limit": _limit,
                "known": integer(1, 3, beyond=EITHER),
                "attack": _no_list_or_none,
                "targets": either,
                "judged": words("value", "high"),
                "rng": RNG,
            },
        ),
        Public(
            name="frontier",
            call=gf.frontier,
            good={"ratings": films, "compared": [gf.KNN(k=3)], "known": 3, "targets": 2, "rng": 7, "progress": False},
            domains={
                "ratings": ratings,
                "compared": _no_list_but_none,
                "known": integer(1, 3, beyond=EITHER),
                "attacks": _no_list_or_none,
                "targets": either,
                "rng": RNG,
                "progress": PROGRESS,
            },
        ),
        Public(
            name="BlackBox",
            call=gf.BlackBox,
            good={"box": model},
            domains={"box": either, "asks": words("users", "profiles"), "rng": either},
        ),
        Public(
            name="Endpoint",
            call=gf.Endpoint,
            good={"url": "http://127.0.0.1:9"},
            domains={
                "url": nothing_else(_Odd),
                "timeout": number(0, math.inf),
                "max_bytes": integer(1, 2**80, beyond=EITHER),
                "headers": either,
            },
        ),
        Public(
            name="Guarantee",
            call=gf.Guarantee,
            good={
                "status": "proved",
                "unit": "rating",
                "adjacency": "add/remove",
                "epsilon": 1.0,
                "delta": 0.0,
                "reason": "so",
            },
            domains={
                "status": words("proved", "claimed", "refuted"),
                "unit": words("rating", "user"),
                "epsilon": _epsilon,
                "delta": number(0, 1, ends=True),
                "reason": lambda value: EITHER if isinstance(value, str) else REFUSED,
            },
        ),
    ]


def of_lists(attack: dict[str, Judge]) -> list[Public]:
    """Return what learns from events, and the attack on its lists."""
    regularised = number(0, math.inf)
    return [
        Public(name="Popularity", call=gf.Popularity, good={}),
        Public(
            name="EASE",
            call=gf.EASE,
            good={},
            domains={"regularisation": regularised, "items": integer(1, 10_000, optional=True)},
        ),
        Public(
            name="ListAttack",
            call=gf.ListAttack,
            good={},
            domains={
                **attack,
                "n": integer(1, 100, beyond=EITHER),
                "pages": integer(1, 100, beyond=EITHER),
                "ask": words("one", "all"),
                "adaptive": switch(),
            },
        ),
        Public(
            name="Lasting",
            call=gf.Lasting,
            good={},
            domains={
                "updates": integer(1, 1024),
                "pairs": words("batch", "history"),
                "half_life": number(1, 1024, ends=True, optional=True),
                "wait": integer(0, 1024),
            },
        ),
    ]


def published(films: gf.Ratings, attack: dict[str, Judge]) -> list[Public]:
    """Return the published systems; those with chance or data in their domains are fitted."""
    some = integer(1, 100, beyond=EITHER)
    epsilon, private = number(0, math.inf), {"epsilon": number(0, math.inf), "delta": number(0, 1)}
    percent = number(0, 100, ends=True)
    share = number(0, 1, ends=True)
    return [
        Public(
            name="NoisyAnswers",
            call=gf.papers.NoisyAnswers,
            good={},
            domains={
                "recommender": _only_none,
                "epsilon": epsilon,
                "sensitivity": number(0, math.inf, optional=True),
                "fallback": number(-math.inf, math.inf, optional=True),
                "clip": switch(),
                "fresh": switch(),
                "questions": integer(1, 100, optional=True, beyond=EITHER),
                "rng": RNG,
            },
        ),
        Public(
            name="Perturbed",
            call=gf.papers.Perturbed,
            good={"by": gf.papers.NeNDS()},
            domains={"recommender": _only_none, "by": nothing_else(gf.papers.NeNDS), "rng": RNG},
        ),
        Public(
            name="RandomisedPerturbation",
            call=gf.papers.RandomisedPerturbation,
            good={},
            domains={"sigma_max": percent, "beta_max": percent, "law": words("uniform", "gaussian", "coin")},
        ),
        Public(
            name="NeNDS",
            call=gf.papers.NeNDS,
            good={},
            domains={"within": words("column", "person"), "size": integer(2, 100, optional=True, beyond=EITHER)},
        ),
        Public(
            name="BlurMe",
            call=gf.papers.BlurMe,
            good={},
            domains={
                "attribute": lambda value: EITHER if isinstance(value, dict | None) else REFUSED,
                "extra": share,
                "strategy": words("random", "sampled", "greedy"),
            },
        ),
        Public(name="RandomisedResponse", call=gf.papers.RandomisedResponse, good={}, domains={"epsilon": epsilon}),
        Public(name="LocalLaplace", call=gf.papers.LocalLaplace, good={}, domains={"epsilon": epsilon}),
        Public(name="ItemSwap", call=gf.papers.ItemSwap, good={}, domains={"p": share, "group": some}),
        Public(
            name="SlopeOne",
            call=lambda **given: gf.papers.SlopeOne(**given).fit(films),
            good={"rng": 7},
            domains={"noise": number(0, 1e6, ends=True), "rng": RNG},
        ),
        Public(name="PairAttack", call=gf.papers.PairAttack, good={"known": 3}, domains=attack),
        Public(
            name="ThresholdNeighbours",
            call=lambda **given: gf.papers.ThresholdNeighbours(**given).fit(films),
            good={},
            domains={
                "threshold": number(-math.inf, math.inf),
                "dense": integer(1, 100, optional=True, beyond=EITHER),
                "bits": integer(1, 24, optional=True),
            },
        ),
        Public(
            name="MatrixFactorisation",
            call=gf.papers.MatrixFactorisation,
            good={},
            domains={"rank": integer(1, 256), "penalty": number(0, math.inf), "sweeps": some},
        ),
        Public(
            name="ReuseKNN",
            call=lambda **given: gf.papers.ReuseKNN(**given).fit(films),
            good={"rng": 7},
            domains={
                "k": some,
                "variant": words("userknn", "expect", "gain", "reuse"),
                "tau": number(0, 1e12, optional=True, ends=True),
                "rng": RNG,
            },
        ),
        Public(
            name="DPALS",
            call=gf.papers.DPALS,
            good={"epsilon": 1.0},
            domains={
                **private,
                "rank": integer(1, 64),
                "sweeps": integer(1, 100),
                "per_user": some,
                "catalogue": either,
                "rng": RNG,
            },
        ),
        Public(
            name="IndKNN",
            call=gf.papers.IndKNN,
            good={},
            domains={**private, "questions": some, "sigma": number(0, math.inf), "threshold": share, "rng": RNG},
        ),
        Public(
            name="McSherryMironovKNN",
            call=gf.papers.McSherryMironovKNN,
            good={"epsilon": 1.0},
            domains={
                "epsilon": private["epsilon"],
                "clamp": number(0, math.nextafter(4, 5)),
                "item_prior": number(0, math.inf),
                "user_prior": some,
                "covariance_items": integer(2, 4096),
                "rank": some,
                "k": some,
                "rng": RNG,
            },
        ),
    ]


def methods() -> list[Public]:
    """Return what fitted models, ratings, scales, attacks and results are asked, with the domains of the arguments."""
    films = _films()
    user, item = films.users[0], films.items[0]
    ratings = nothing_else(gf.Ratings)
    few: dict[str, Any] = {"targets": 3, "progress": False}
    asked: dict[str, tuple[dict[str, Any], dict[str, Judge]]] = {
        "predict": ({"users": [user], "items": [item]}, {}),
        "recommend": ({"user": user, "n": 3}, {"n": integer(1, 100, beyond=EITHER)}),
        "fit": ({"ratings": films}, {"ratings": ratings}),
    }
    models: dict[str, Any] = {
        "NeighbourCF": gf.NeighbourCF(gf.KNN(k=5), rng=7, progress=False),
        "NeighbourCF among raters": gf.NeighbourCF(
            gf.PPNS(k=2, beta=2), among="raters", center="bias", rng=7, progress=False
        ),
        "PrivateMeans": gf.PrivateMeans(epsilon=1.0, items="from ratings", rng=7),
        "PrivateCF": gf.PrivateCF(epsilon=1.0, items="from ratings", rng=7),
        "McSherryMironov": gf.papers.McSherryMironov(epsilon=1.0, items="from ratings", rng=7),
        "NoisyAnswers": gf.papers.NoisyAnswers(gf.NeighbourCF(gf.KNN(k=5)), rng=7),
        "Perturbed": gf.papers.Perturbed(gf.NeighbourCF(gf.KNN(k=5)), by=gf.papers.NeNDS(), rng=7),
        "SlopeOne": gf.papers.SlopeOne(rng=7),
        "IndKNN": gf.papers.IndKNN(rng=7),
        "DPALS": gf.papers.DPALS(epsilon=1.0, rng=7),
        "MatrixFactorisation": gf.papers.MatrixFactorisation(rank=2, sweeps=2),
        "ReuseKNN": gf.papers.ReuseKNN(rng=7),
        "ThresholdNeighbours": gf.papers.ThresholdNeighbours(),
        "BlackBox": gf.BlackBox(gf.NeighbourCF(gf.KNN(k=5), rng=7, progress=False)),
    }
    found = []
    for name, model in models.items():
        model.fit(films)
        found += [
            Public(name=f"{name}.{method}", call=getattr(model, method), good=good, domains=domains)
            for method, (good, domains) in asked.items()
            if not (name == "BlackBox" and method in ("predict", "recommend"))
        ]
        if name != "BlackBox":
            saving = {"path": "model.gf"}
            found.append(Public(name=f"{name}.save", call=_elsewhere(model.save), good=saving))
    model = models["NeighbourCF"]
    run = {"ratings": ratings, "attacked": _neither, "targets": either, "rng": RNG}
    run |= {"threads": THREADS, "progress": PROGRESS, "over": words("raters", "neighbours")}
    for attack in (gf.KNNAttack(known=3), gf.AdaptiveAttack(known=3), gf.CoverAttack(known=3)):
        good = {"ratings": films, "attacked": model, **few}
        found.append(Public(name=f"{type(attack).__name__}.run", call=attack.run, good=good, domains=run))
    found.append(
        Public(
            name="MembershipAttack.run",
            call=gf.MembershipAttack(known=7, left_out=3).run,
            good={"ratings": films, "attacked": model, "targets": 5, "progress": False},
            domains=run,
        )
    )
    report = gf.KNNAttack(known=3).run(films, gf.KNN(k=5), rng=7, **few)
    scale = films.scale
    found += of_mechanisms()
    found += [
        Public(name="AttackReport.table", call=report.table, good={}, domains={"ids": switch()}),
        Public(name="AttackReport.above", call=report.above, good={"limit": 5}),
        Public(
            name="save_result",
            call=_elsewhere(save_result),
            good={"result": report, "path": "result"},
            domains={"result": _neither},
        ),
        Public(name="NeighbourCF.load", call=gf.NeighbourCF.load, good={"path": "none.gf"}),
        Public(
            name="RelatedItemsAttack.run",
            call=gf.RelatedItemsAttack(known=2).run,
            good={"ratings": _log(films), **few},
            domains={"ratings": ratings, "lists": lambda value: SKIPPED if callable(value) else EITHER},
        ),
        Public(
            name="Endpoint.train",
            call=gf.Endpoint(url="http://localhost:9").train,
            good={"ratings": films},
            domains={"ratings": ratings},
        ),
        Public(
            name="Perturbed.fit_sent",
            call=models["Perturbed"].fit_sent,
            good={"received": films},
            domains={"received": ratings},
        ),
        Public(name="Scores.of", call=Scores.of, good={"predictions": np.array([3.0]), "ratings": np.array([4.0])}),
        Public(name="Similarity.of", call=gf.Similarity.of, good={"similarity": "cosine"}),
        Public(name="Sensitivity.of", call=gf.Sensitivity.of, good={"options": {}}),
        Public(name="Scale.observed", call=gf.Scale.observed, good={"values": np.array([1.0])}),
        Public(name="Ratings.replaced", call=films.replaced, good={"csr": films.csr}),
        Public(name="Ratings.rows", call=films.rows, good={"users": [user]}),
        Public(name="Ratings.row", call=films.row, good={"user": user}),
        Public(name="Ratings.columns", call=films.columns, good={"items": [item]}),
        Public(name="Ratings.cells", call=films.cells, good={"rows": [0], "columns": [0]}),
        Public(name="Ratings.title", call=films.title, good={"item": item}),
        Public(name="Ratings.on_items", call=films.on_items, good={"items": films.items}),
        Public(name="Ratings.from_frame", call=gf.Ratings.from_frame, good={"frame": _frame()}),
        Public(name="Scale.of", call=gf.Scale.of, good={"scale": (1, 5)}),
        Public(name="Scale.holds", call=scale.holds, good={"values": [1.0]}),
        Public(name="Scale.on_grid", call=scale.on_grid, good={"values": [1.0]}),
        Public(name="Scale.round", call=scale.round, good={"values": [1.0]}),
    ]
    return found


def of_mechanisms() -> list[Public]:
    """Return what selection mechanisms are asked, with the domains of the arguments."""
    pair = gf.Sensitivity(scope="pair")
    mechanisms: dict[str, Any] = {
        "KNN": gf.KNN(k=3),
        "NPNS": gf.NPNS(k=3),
        "NPNS by rank": gf.NPNS(k=3, weights="exponential"),
        "PNCF": gf.PNCF(k=3),
        "PNCF, truncated": gf.PNCF(k=3, reading="truncated"),
        "PNCF of pairs": gf.PNCF(k=3, sensitivity=pair),
        "PNCF within": gf.PNCF(k=3, within=1),
        "PPNS": gf.PPNS(k=3, beta=1),
        "PPNS of pairs": gf.PPNS(k=3, beta=1, sensitivity=pair),
    }
    listed: dict[str, Any] = {"similarities": np.linspace(0.9, 0.1, 12), "sensitivity": 0.1}
    found = []
    for name, mechanism in mechanisms.items():
        rs: Judge = either if mechanism.sensitivity is None else _rs
        for method in ("log_weights", "pools"):
            # These draw from the same pools whatever RS is.
            same = ("PPNS", "PPNS of pairs", "PNCF within", "PNCF, truncated")
            fixed = method == "pools" and name in same
            domains = {"similarities": _similarities, "sensitivity": either if fixed else rs}
            call = getattr(mechanism, method)
            found.append(Public(name=f"{name}.{method}", call=call, good=listed, domains=domains))
        noisy = mechanism.noise_scale(0.1) is not None
        scale: dict[str, Judge] = {"sensitivity": _rs if noisy else either}
        reached = {"n_candidates": integer(3, 10**500)}
        found += [
            Public(name=f"{name}.noise_scale", call=mechanism.noise_scale, good={"sensitivity": 0.1}, domains=scale),
            Public(name=f"{name}.reach", call=mechanism.reach, good={"n_candidates": 12}, domains=reached),
        ]
    edges: dict[str, Judge] = {"similarities": _similarities, "sensitivity": _rs}
    band = mechanisms["PNCF"].edges
    return [*found, Public(name="PNCF.edges", call=band, good=listed, domains=edges)]


def methods_of_lists() -> list[Public]:
    """Return what models of events, their lists, and the attack on them are asked."""
    clicks = gf.synthetic(users=30, items=20, ratings=240, rng=7, feedback="implicit")
    user, item, n = clicks.users[0], clicks.items[0], integer(1, 100, beyond=EITHER)
    events = nothing_else(gf.Ratings)
    asked: dict[str, tuple[dict[str, Any], dict[str, Judge]]] = {
        "predict": ({"users": [user], "items": [item]}, {}),
        "recommend": ({"user": user, "n": 3}, {"n": n}),
        "recommend_many": ({"users": [user], "n": 3}, {"n": n}),
        "fit": ({"ratings": clicks}, {"ratings": events}),
    }
    models: dict[str, Any] = {
        "NeighbourCF": gf.NeighbourCF(gf.KNN(k=5), rng=7, progress=False),
        "EASE": gf.EASE(),
        "Popularity": gf.Popularity(),
        "PrivateTopN": gf.PrivateTopN(epsilon=1.0, items="from ratings", rng=7),
    }
    found = []
    for name, model in models.items():
        model.fit(clicks)
        found += [
            Public(name=f"{name} of events, {method}", call=getattr(model, method), good=good, domains=domains)
            for method, (good, domains) in asked.items()
        ]
    report = gf.ListAttack(known=3).run(clicks, gf.KNN(k=5), targets=3, rng=7)
    run = {"ratings": events, "attacked": _neither, "threads": THREADS, "progress": PROGRESS}
    good = {"ratings": clicks, "attacked": gf.KNN(k=5), "targets": 3, "progress": False}
    return [
        *found,
        Public(name="ListAttack.run", call=gf.ListAttack(known=3).run, good=good, domains=run),
        Public(name="ListAttackReport.above", call=report.above, good={"limit": 5}),
        Public(
            name="RecommendedLists.save",
            call=_elsewhere(models["EASE"].recommend_many(n=3).save),
            good={"path": "lists.csv"},
        ),
        Public(name="Ratings.likes", call=_films().likes, good={"at": 4}),
    ]


def _elsewhere(save: Callable[..., None]) -> Callable[..., None]:
    """Return what saves in a folder that goes away: some of the values are names."""

    @functools.wraps(save)
    def saved(*given: Any, **named: Any) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            save(*given, **named)

    return saved


def _log(films: gf.Ratings) -> Any:
    return films.replaced(films.csr, times=np.arange(films.n_ratings))


def _frame() -> Any:
    return pa.table({"user": [1, 2], "item": [3, 4], "rating": [1.0, 5.0]})


def _neither(value: Any) -> str:
    """Judge what is attacked: none of the values is a mechanism or a recommender."""
    return REFUSED


def _only_none(value: Any) -> str:
    return EITHER if value is None else REFUSED


_LISTED = (range, list, tuple, np.ndarray, memoryview)


def _similarities(value: Any) -> str:
    """Judge lists of similarities: how long they are, and of what, is seen later."""
    return EITHER if isinstance(value, _LISTED) else REFUSED


def _rs(value: Any) -> str:
    """Judge a sensitivity: a number of at least 0, or several."""
    return EITHER if isinstance(value, _LISTED) else number(0, math.inf, ends=True)(value)


def _scale(value: Any) -> str:
    listed = isinstance(value, tuple | list) and len(value) in (2, 3) and all(map(is_number, value))
    return EITHER if listed or value is None else REFUSED


def _no_ids(value: Any) -> str:
    return EITHER if isinstance(value, range | list | np.ndarray) else REFUSED


def _no_ids_or_none(value: Any) -> str:
    return EITHER if value is None else _no_ids(value)


def _no_list(value: Any) -> str:
    return EITHER if isinstance(value, range | list | tuple | np.ndarray | memoryview) or value is None else REFUSED


def _no_list_but_none(value: Any) -> str:
    return EITHER if value is not None and _no_list(value) == EITHER else REFUSED if value is not None else SKIPPED


def _no_list_or_none(value: Any) -> str:
    return EITHER if value is None else _no_list(value)


def _epsilon(value: Any) -> str:
    endless = isinstance(value, float) and value == math.inf
    return EITHER if endless else number(0, math.inf, ends=True)(value)


def _sensitivity(value: Any) -> str:
    return TAKEN if isinstance(value, dict) and not value else REFUSED  # as it is read from a file


def _trials(value: Any) -> str:
    if not is_integer(value) or 0 < value < 30 or value < 0:
        return REFUSED
    return EITHER if value <= 1000 else REFUSED if value > 10**7 else EITHER


def _limit(value: Any) -> str:
    return EITHER if is_number(value) and 0 <= float(value) <= 100 else REFUSED


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one setting came to, where that is not right."""

    callable: str
    argument: str
    value: str
    wrong: str


def cases() -> Iterator[tuple[Public, str, int]]:
    """Yield every callable with each argument and the number of each value."""
    n_values = len(values())
    for one in [*callables(), *methods(), *methods_of_lists()]:
        public: Any = getattr(gf, one.name, None) or getattr(gf.papers, one.name, one.call)
        for argument in inspect.signature(public).parameters:
            for at in range(n_values):
                yield one, argument, at


SLOW = ("trials", "rounds", "targets", "draws", "known")
_MOST_RUN = 1000


def tried(one: Public, argument: str, value: Any) -> str:
    """Return what is wrong with the outcome of one setting, or nothing."""
    expected = one.domains.get(argument, either)(value)
    if expected == SKIPPED:  # allowed, and it takes minutes
        return ""
    if expected == EITHER and is_integer(value) and value > _MOST_RUN and argument in SLOW:
        return ""  # allowed, and longer than anybody waits
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GoodfenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            one.call(**{**one.good, argument: value})
    except GoodfenceError as problem:
        if expected == TAKEN and "path" not in one.good:
            return f"refused: {problem}"[:200]
        if expected == REFUSED and not str(problem).strip():
            return "an error without a word"
        return ""
    except AssertionError as problem:  # what `assert_leak_below` is for
        return "" if one.name == "assert_leak_below" else f"raw {type(problem).__name__}"
    except Exception as problem:
        return f"raw {type(problem).__name__}: {problem}"[:200]
    return "taken" if expected == REFUSED else ""
