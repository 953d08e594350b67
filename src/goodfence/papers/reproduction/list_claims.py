"""Claims 10 to 16: how well neighbours are drawn from candidate lists, what these look like to a fake, and privacy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from goodfence.arrays import Floats, Integers, Rows
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.scoring import Statistic
from goodfence.attack.targets import find_targets
from goodfence.data.ratings import Ratings
from goodfence.data.splits import sample_targets
from goodfence.neighbours.candidate_lists import Axis, RowsAgainstAll, rows_along
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.papers.protocol import TARGETS
from goodfence.papers.reproduction.claims import MARGIN, Claim, Question, claim_of
from goodfence.papers.reproduction.definition import DEFAULT, Interpretation
from goodfence.papers.reproduction.runs import Seed, Unattacked
from goodfence.rng import Streams
from goodfence.selection.counterexample import answer_counterexample, ppns_counterexample
from goodfence.selection.inclusion import alpha, inclusion_probabilities, pool_inclusion
from goodfence.selection.mechanism import RS, Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import (
    ItemPeaks,
    Sensitivity,
    item_peaks,
    profile_pair_sensitivities,
    profile_sensitivity,
)

Settings: TypeAlias = Mapping[str, tuple[Ratings, Axis]]
"""The settings without an attack: the ratings, and whether users or items are compared."""

KNOWN = 8
PAIR = Sensitivity(scope="pair")
MECHANISM = PPNS(k=50, beta=7, sensitivity=PAIR)
"""The setting of the paper's attacks."""
_ALPHA = (100, 4)
"""k and beta of the lists without an attack whose alpha is compared."""
_EPSILONS = (0.01, 1.0, 100.0)
_GOOD, _EXACT = 0.01, 1e-9
_RANDOM = 77
"""The stream of random lists."""
_SMALL = (4, 3)
"""k and beta of the enumeration."""


def allocation_is_optimal(ratings: Ratings, seed: Seed, n_lists: int = 20) -> Claim:
    """Claim 10: no feasible allocation has a larger alpha than (k-1, 0, ..., 0, 1)."""
    k, beta = _SMALL
    n_tried, n_better, least = 0, 0, np.inf
    for similarities, rs in _small_lists(ratings, seed, n_lists):
        for epsilon in (1.0, 1000.0):
            best = PPNS(k=k, beta=beta, epsilon=epsilon)
            reached = alpha(best, similarities, rs)
            for counts in _allocations(k, beta):
                other = PPNS(k=k, beta=beta, epsilon=epsilon, allocation=counts)
                margin = reached - alpha(other, similarities, rs)
                n_tried += 1
                n_better += margin < -_EXACT
                least = min(least, margin)
    numbers = {"allocations tried": n_tried, "better ones": n_better, "least margin": least}
    return claim_of("10", n_better == 0, numbers)


def manly_is_good(ratings: Ratings, seed: Seed, n_lists: int = 10) -> Claim:
    """Claim 11: Manly's approximation of the inclusion probabilities, at the settings of the figures."""
    numbers: dict[str, float] = {}
    axes: tuple[Axis, ...] = ("user", "item")
    for axis in axes:
        lists = Unattacked.of(ratings, n_lists, seed, axis=axis)
        k = min(100, lists.rows.shape[0] // 8)
        mechanisms: tuple[Mechanism, ...] = (
            PPNS(k=k, beta=4),
            PPNS(k=k, beta=4, epsilon=100.0),
            NPNS(k=k),
            PNCF(k=k),
            PNCF(k=k, epsilon=100.0),
        )
        for mechanism in mechanisms:
            rs = lists.sensitivities(mechanism)
            errors = [
                _manly_errors(mechanism, listed, None if rs is None else float(rs[position]))
                for position, listed in enumerate(lists.similarities)
            ]
            name = f"{axis}-based {type(mechanism).__name__} epsilon={getattr(mechanism, 'epsilon', 1):g}"
            probability, relative = (max(part) for part in zip(*errors, strict=True))
            numbers[f"{name}: largest error of a probability"] = probability
            numbers[f"{name}: largest relative error of alpha"] = relative
    equal = [
        float(np.abs(pool_inclusion(np.zeros(n), take, method="exact") - manly).max())
        for n, take in ((50, 49), (100, 99), (700, 50), (50, 1))
        for manly in [pool_inclusion(np.zeros(n), take, method="manly")]
    ]
    numbers["equal weights: largest error of a probability"] = max(equal)
    largest = max(value for name, value in numbers.items() if name.endswith("probability"))
    holds = largest <= _GOOD and max(equal) <= _EXACT
    return claim_of("11", holds, numbers, largest=largest)


def _manly_errors(mechanism: Mechanism, similarities: Floats, rs: float | None) -> tuple[float, float]:
    exact = inclusion_probabilities(mechanism, similarities, rs)
    manly = inclusion_probabilities(mechanism, similarities, rs, method="manly")
    true_alpha = float(similarities @ exact)
    off = abs(float(similarities @ manly) - true_alpha)
    return float(np.abs(exact - manly).max()), off / true_alpha if true_alpha else 0.0


def _small_lists(ratings: Ratings, seed: Seed, n_lists: int) -> Iterator[tuple[Floats, float]]:
    """Hand out short lists: stretches of real ones, near and far, and random ones."""
    k, beta = _SMALL
    lists = Unattacked.of(ratings, n_lists, seed)
    sensitivities = lists.sensitivities(PPNS(k=k, beta=beta))
    assert sensitivities is not None, "PPNS has a sensitivity"  # noqa: S101 - for the type checker
    for rs, listed in zip(sensitivities.tolist(), lists.similarities, strict=True):
        yield listed[: k * beta], rs
        yield listed[:: len(listed) // (k * beta)][: k * beta], rs
    generator = Streams(seed).at(_RANDOM)
    for _ in range(n_lists):
        yield np.sort(generator.random(k * beta))[::-1], 0.01 + float(generator.random())


def _allocations(k: int, beta: int) -> Iterator[tuple[int, ...]]:
    """Hand out every feasible allocation of [FINAL]: at least one from the last partition."""
    for counts in product(range(k), repeat=beta - 1):
        last = k - sum(counts)
        if last >= 1:
            yield (*counts, last)


def partition_one(ratings: Ratings, seed: Seed, n_targets: int, interpretation: Interpretation = DEFAULT) -> Claim:
    """Claim 12: whether partition 1 of an asking fake is the fakes and the target, all of similarity 1."""
    seen = _fake_lists(ratings, seed, n_targets, interpretation)
    similar = np.array([one.similarity for one in seen])
    first = np.array([one.place(MECHANISM.k) < MECHANISM.k for one in seen])
    numbers = {
        "targets": float(len(seen)),
        "share of similarity 1": float((similar == 1.0).mean()),
        "mean similarity": float(similar.mean()),
        "largest similarity": float(similar.max()),
        "share in partition 1": float(first.mean()),
    }
    holds = bool(first.all() and (similar == 1.0).all())
    outside = 1 - first.mean()
    return claim_of("12", holds, numbers, similar=similar.mean(), outside=outside)


def second_half_is_zero(settings: Settings, seed: Seed, n: int, interpretation: Interpretation = DEFAULT) -> Claim:
    """Claim 13: the share of zero similarities in the second halves of the lists, for each setting."""
    shares = {name: _zeros(*setting, seed, n, interpretation.similarity) for name, setting in settings.items()}
    tests = []
    for name, values in shares.items():
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        more = Statistic(float(values.mean()) - MARGIN, error, len(values))
        tests.append(Question(f"{name}: share of zeros, minus {MARGIN}", more, "above"))
    told = ", ".join(f"{values.mean():.0%} ({name})" for name, values in shares.items())
    numbers = {f"{name}: share of zeros": float(each.mean()) for name, each in shares.items()}
    return claim_of("13", tests, numbers, settings, shares=told)


def fakes_to_cover(ratings: Ratings, seed: Seed, n_targets: int, interpretation: Interpretation = DEFAULT) -> Claim:
    """Claim 14, the count: how many strangers are in the top beta partitions of an asking fake."""
    lists = _fake_lists(ratings, seed, n_targets, interpretation)
    most = MECHANISM.beta * MECHANISM.k
    free = {n: np.array([one.strangers(n) == 0 for one in lists]).mean() for n in (most - 1, most)}
    numbers = {f"{n_fakes} fakes: share of targets with no stranger": float(share) for n_fakes, share in free.items()}
    counts: dict[str, Any] = {"fewer": most - 1, "all": most, "beta": MECHANISM.beta}
    early = free[most - 1]
    return claim_of("14a", early == 0, numbers, **counts, covered=free[most], early=early)


def fakes_needed(ratings: Ratings, seed: Seed, n_targets: int) -> Claim:
    """Claim 14, its meaning: how often the target is the only real neighbour, for several numbers of fakes."""
    k, beta = MECHANISM.k, MECHANISM.beta
    tried = (k, (beta - 1) * k + 1, beta * k)
    lists = _fake_lists(ratings, seed, n_targets)
    alone, numbers = {}, {}
    for n_fakes in tried:
        alone[n_fakes] = float(np.mean([one.alone(n_fakes) for one in lists]))
        attack = KNNAttack(known=KNOWN, fakes=n_fakes)
        found = attack.run(ratings, MECHANISM, targets=n_targets, rng=seed, progress=False)
        numbers[f"{n_fakes} fakes: probability of being alone"] = alone[n_fakes]
        numbers[f"{n_fakes} fakes: advantage"] = found.raw_advantage
    _, fewer, most = tried
    holds = not any(alone[n_fakes] > 0 for n_fakes in tried[:-1])
    words: dict[str, Any] = {"fewer": fewer, "all": most, "k": k, "alone": alone[fewer]}
    words |= {"alone_of_all": alone[most], "gain": numbers[f"{k} fakes: advantage"]}
    return claim_of("14b", holds, numbers, **words)


def largest_alpha(
    settings: Settings, attacked: Ratings, seed: Seed, n_lists: int, interpretation: Interpretation = DEFAULT
) -> Claim:
    """Claim 15: alpha of PPNS beside that of the other randomised methods, at the same beta, list by list."""
    alphas: dict[str, dict[str, Floats]] = {}
    for name, (ratings, axis) in settings.items():
        lists = Unattacked.of(ratings, n_lists, seed, axis=axis, interpretation=interpretation)
        k = min(_ALPHA[0], lists.rows.shape[0] // 8)
        alphas[name] = {}
        for series, mechanism in _rivals(k, _ALPHA[1], interpretation).items():
            rs = lists.sensitivities(mechanism)
            bounds = [None] * n_lists if rs is None else rs
            pairs = zip(lists.similarities, bounds, strict=True)
            alphas[name][series] = _alphas(mechanism, pairs)
    k, beta = MECHANISM.k, MECHANISM.beta
    seen = _fake_lists(attacked, seed, n_lists, interpretation)
    alphas["lists of fakes"] = {
        series: _alphas(mechanism, (one.listed(k, mechanism) for one in seen))
        for series, mechanism in _rivals(k, beta, interpretation).items()
    }
    numbers: dict[str, float] = {}
    larger = []
    for name, found in alphas.items():
        numbers |= {f"{name}: alpha of {series}": each.mean() for series, each in found.items()}
        for series in ("nPNS", "PNCF"):
            share = float((found[series] > found["PPNS"] + _EXACT).mean())
            numbers[f"{name}: share on which {series} has more"] = share
            if share:
                larger.append(f"{series} has more on {share:.0%} ({name})")
    means = "; ".join(
        f"{name}: " + ", ".join(f"{series} {each.mean():.1f}" for series, each in found.items())
        for name, found in alphas.items()
    )
    return claim_of("15", not larger, numbers, settings, means=means, shares=", ".join(larger))


def _rivals(k: int, beta: int, interpretation: Interpretation) -> dict[str, Mechanism]:
    mechanisms: dict[str, Mechanism] = {
        "PPNS": PPNS(k=k, beta=beta, sensitivity=PAIR),
        "PNCF": PNCF(k=k, within=beta, sensitivity=PAIR),
        "nPNS": NPNS(k=k, within=beta),
    }
    return {series: interpretation.applied(one) for series, one in mechanisms.items()}


def _alphas(mechanism: Mechanism, lists: Iterable[tuple[Floats, RS]]) -> Floats:
    return np.array([alpha(mechanism, listed, rs) for listed, rs in lists])


def differentially_private() -> Claim:
    """Claim 16: the ratio of the probabilities of one choice in two data sets that differ in one rating."""
    numbers, worst = {}, 0.0
    for epsilon in _EPSILONS:
        found = ppns_counterexample(epsilon).probabilities()
        answers = answer_counterexample(PPNS(k=2, beta=2, epsilon=epsilon)).probabilities()
        for what, (with_it, without) in (("choice", found), ("answer", answers)):
            numbers[f"epsilon={epsilon:g}: probability of the {what}, with the rating"] = with_it
            numbers[f"epsilon={epsilon:g}: probability of the {what}, without it"] = without
            least, most = sorted((with_it, without))
            ratio = np.inf if least == 0 < most else most / least
            worst = max(worst, ratio / np.exp(epsilon))
    without, answer = (
        numbers[f"epsilon=1: probability of the {what}"] for what in ("choice, without it", "answer, with the rating")
    )
    return claim_of("16", worst <= 1, numbers, without=without, answer=answer)


@dataclass(frozen=True, eq=False, repr=False)
class _FakeList:
    """The real part of an asking fake's candidate list, and the target's position in it."""

    similarities: Floats
    rows: Integers
    rank: int
    """How many real users are before the target."""
    peaks: ItemPeaks
    columns: Rows
    values: Floats

    @property
    def similarity(self) -> float:
        return float(self.similarities[self.rank])

    def place(self, n_fakes: int) -> int:
        """Return the target's place in the list with the n_fakes - 1 fellow fakes, which follow equals."""
        before = 0 if self.similarity == 1.0 else n_fakes - 1
        return self.rank + before

    @property
    def _n_equal(self) -> int:
        return int((self.similarities == 1.0).sum())

    def strangers(self, n_fakes: int) -> int:
        """Return how many real users other than the target are in the top beta partitions."""
        top = MECHANISM.beta * MECHANISM.k
        n_real = max(min(self._n_equal, top), top - (n_fakes - 1))
        return n_real - int(self.place(n_fakes) < top)

    def listed(self, n_fakes: int, mechanism: Mechanism) -> tuple[Floats, RS]:
        """Return the similarities of the list with the fellow fakes, and RS of the asker or of each pair."""
        at, copies = self._n_equal, n_fakes - 1
        listed = np.insert(self.similarities, at, np.ones(copies))
        options = mechanism.sensitivity
        if options is None:
            return listed, None
        peaks = replace(self.peaks, options=options)
        if options.scope == "target":
            return listed, profile_sensitivity(peaks, self.columns, self.values, n_copies=n_fakes)
        pairs, copy = profile_pair_sensitivities(peaks, self.columns, self.values)
        return listed, np.insert(pairs[self.rows], at, np.full(copies, copy))

    def alone(self, n_fakes: int) -> float:
        """Return the exact probability that the target is the only real neighbour of the asking fake."""
        k, beta = MECHANISM.k, MECHANISM.beta
        fakes = slice(self._n_equal, self._n_equal + n_fakes - 1)
        fake = np.zeros(beta * k, dtype=np.bool_)
        fake[fakes] = True
        place = self.place(n_fakes)
        if place >= beta * k or k <= place < (beta - 1) * k:
            return 0.0
        listed, rs = self.listed(n_fakes, MECHANISM)
        bounds = rs[: beta * k] if isinstance(rs, np.ndarray) else rs
        included = inclusion_probabilities(MECHANISM, listed[: beta * k], bounds)
        last = slice((beta - 1) * k, beta * k)
        strangers = ~fake
        strangers[place] = False
        near = np.flatnonzero(strangers[:k])
        if len(near) > 1:  # k - 1 of k are taken: two strangers cannot both be left out
            return 0.0
        left_out = float(1.0 - included[near[0]]) if len(near) else 1.0
        if place < k:
            chosen = left_out if len(near) else float(included[place])
            return chosen * float(included[last][fake[last]].sum())
        return left_out * float(included[place])


def _fake_lists(
    ratings: Ratings, seed: Seed, n_targets: int, interpretation: Interpretation = DEFAULT
) -> list[_FakeList]:
    streams = Streams(seed)
    whom: Any = n_targets
    if more_than := interpretation.more_than:
        whom = sample_targets(ratings, n_targets, rng=streams.at(TARGETS), more_than=more_than)
    targets, _ = find_targets(ratings, whom, KNOWN, interpretation.choose, streams)
    profiles = Profiles.of(ratings.csr)
    fakes = profiles.lay_out(list(targets.known_columns), list(targets.known_ratings))
    engine = RowsAgainstAll(profiles, Similarity.of(interpretation.similarity))
    peaks = item_peaks(profiles.rows, interpretation.applied(MECHANISM).sensitivity)
    found = []
    for place, row in enumerate(targets.rows.tolist()):
        part = slice(fakes.rows.indptr[place], fakes.rows.indptr[place + 1])
        similarities = engine.similarities(fakes, place)
        order = np.argsort(-similarities, kind="stable")
        rank = int(np.flatnonzero(order == row)[0])
        profile = fakes.rows.indices[part], fakes.rows.data[part]
        found.append(_FakeList(similarities[order], order, rank, peaks, *profile))
    return found


def _zeros(ratings: Ratings, axis: Axis, seed: Seed, n: int, similarity: str) -> Floats:
    rows = rows_along(ratings, axis)
    askers = rows.rows(sample_targets(rows, n, rng=Streams(seed).at(TARGETS)))
    profiles = Profiles.of(rows.csr)
    engine = RowsAgainstAll(profiles, Similarity.of(similarity))
    n_candidates = profiles.n_rows - 1
    half = n_candidates - n_candidates // 2
    shares = np.empty(len(askers))
    for place, asker in enumerate(askers.tolist()):
        similarities = np.delete(engine.similarities(profiles, asker), asker)
        shares[place] = min(int((similarities == 0).sum()), half) / half
    return shares
