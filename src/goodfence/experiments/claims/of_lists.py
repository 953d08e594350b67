"""Claims 12 to 14: what candidate lists look like, without an attack and to a fake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.data.ratings import Ratings
from goodfence.data.splits import sample_targets
from goodfence.engines.local.candidates import Axis, rows_of
from goodfence.engines.local.rows import RowsAgainstAll
from goodfence.experiments.attacked import Attacked
from goodfence.experiments.claims.counted import claim_of, settled
from goodfence.experiments.claims.verdict import Claim, Question
from goodfence.experiments.estimates import Estimate
from goodfence.experiments.reading import DEFAULT
from goodfence.experiments.tallies import Floats
from goodfence.experiments.unattacked import TARGETS, Seed
from goodfence.rng import Streams
from goodfence.selection.inclusion import inclusion_probabilities
from goodfence.selection.ppns import PPNS
from goodfence.selection.sensitivity import ItemPeaks, item_peaks, profile_sensitivity
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

KNOWN = 8
MECHANISM = PPNS(k=50, beta=7)
"""The setting of the paper's attacks."""


def partition_one(ratings: Ratings, seed: Seed, n_targets: int) -> Claim:
    """Claim 12: whether partition 1 of an asking fake is the fakes and the target, all of similarity 1."""
    seen = _fake_lists(ratings, seed, n_targets)
    similar = np.array([one.similarity for one in seen])
    first = np.array([one.place(MECHANISM.k) < MECHANISM.k for one in seen])
    numbers = {
        "targets": float(len(seen)),
        "share of similarity 1": float((similar == 1.0).mean()),
        "mean similarity": float(similar.mean()),
        "largest similarity": float(similar.max()),
        "share in partition 1": float(first.mean()),
    }
    return settled(
        12,
        holds=bool(first.all() and (similar == 1.0).all()),
        sentences=(
            "A fake's first partition is always its fellow fakes and the target, all of similarity 1.",
            (
                f"Only the fakes have similarity 1; the target has {similar.mean():.2f} on average, because she rated "
                f"more than the attacker knows, and for {1 - first.mean():.0%} of the targets a stranger takes her "
                "place."
            ),
        ),
        numbers=numbers,
    )


def second_half_is_zero(settings: Mapping[str, tuple[Ratings, Axis]], seed: Seed, n: int) -> Claim:
    """Claim 13: the share of zero similarities in the second halves of the lists, for each setting."""
    shares = {name: _zeros(*setting, seed, n) for name, setting in settings.items()}
    tests = []
    for name, values in shares.items():
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        over_half = Estimate(float(values.mean()) - 0.5, error, len(values))
        tests.append(Question(f"{name}: share of zeros, minus a half", over_half, "above"))
    told = ", ".join(f"{values.mean():.0%} ({name})" for name, values in shares.items())
    sentences = {
        "holds": f"Most similarities in the second half of a list are zero: {told}.",
        "fails": f"Not everywhere are most similarities in the second half of a list zero: {told}.",
    }
    numbers = {f"{name}: share of zeros": float(each.mean()) for name, each in shares.items()}
    return claim_of(13, settings, tests, sentences, numbers, directed=False)


def fakes_needed(ratings: Ratings, seed: Seed, n_targets: int) -> Claim:
    """Claim 14: how often the target is the only real neighbour, for several numbers of fakes."""
    k, beta = MECHANISM.k, MECHANISM.beta
    tried = (k, (beta - 1) * k + 1, beta * k)
    lists = _fake_lists(ratings, seed, n_targets)
    world = Attacked(ratings, DEFAULT)
    ids = world.sample(n_targets, seed, KNOWN)
    targets = world.targets(ids, KNOWN, seed)
    cells = world.cells(targets, np.arange(ratings.shape[0]))
    alone, numbers = {}, {}
    for n_fakes in tried:
        alone[n_fakes] = float(np.mean([one.alone(n_fakes) for one in lists]))
        told = world.answers(MECHANISM, targets, seed, fakes=n_fakes)
        gained = cells.recovered(told.with_target) - cells.recovered(told.without_target)
        numbers[f"{n_fakes} fakes: probability of being alone"] = alone[n_fakes]
        numbers[f"{n_fakes} fakes: advantage"] = float(gained.sum() / len(cells.ratings))
    fewer = tried[1]
    return settled(
        14,
        holds=not any(alone[n_fakes] > 0 for n_fakes in tried[:-1]),
        sentences=(
            "With fewer than beta * k fakes the target is never the only real neighbour.",
            (
                f"{fewer} fakes, fewer than beta * k = {tried[-1]}, make her the only real neighbour about as often "
                f"({alone[fewer]:.1%} against {alone[tried[-1]]:.1%}); and she need not be: {k} fakes already gain "
                f"{numbers[f'{k} fakes: advantage']:.0%} of what she hides."
            ),
        ),
        numbers=numbers,
    )


@dataclass(frozen=True, eq=False, repr=False)
class _FakeList:
    """The real part of an asking fake's candidate list, and where the target stands in it."""

    similarities: Floats
    rank: int
    """How many real users stand before the target."""
    peaks: ItemPeaks
    columns: npt.NDArray[np.int32]
    values: Floats

    @property
    def similarity(self) -> float:
        return float(self.similarities[self.rank])

    def place(self, n_fakes: int) -> int:
        """Return the target's place in the list with the n_fakes - 1 fellow fakes, which follow equals."""
        before = 0 if self.similarity == 1.0 else n_fakes - 1
        return self.rank + before

    def alone(self, n_fakes: int) -> float:
        """Return the exact probability that the target is the only real neighbour of the asking fake."""
        k, beta = MECHANISM.k, MECHANISM.beta
        n_equal = int((self.similarities == 1.0).sum())
        fakes = slice(n_equal, n_equal + n_fakes - 1)
        listed = np.insert(self.similarities, n_equal, np.ones(n_fakes - 1))[: beta * k]
        fake = np.zeros(beta * k, dtype=np.bool_)
        fake[fakes] = True
        place = self.place(n_fakes)
        if place >= beta * k or k <= place < (beta - 1) * k:
            return 0.0
        rs = profile_sensitivity(self.peaks, self.columns, self.values, n_copies=n_fakes)
        included = inclusion_probabilities(MECHANISM, listed, rs)
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


def _fake_lists(ratings: Ratings, seed: Seed, n_targets: int) -> list[_FakeList]:
    """Return the list of the fakes of each target."""
    world = Attacked(ratings, DEFAULT)
    targets = world.targets(world.sample(n_targets, seed, KNOWN), KNOWN, seed)
    profiles = Profiles.of(ratings.csr)
    fakes = profiles.lay_out(list(targets.known_columns), list(targets.known_ratings))
    engine = RowsAgainstAll(profiles, Similarity.of(DEFAULT.similarity))
    peaks = item_peaks(profiles.rows, MECHANISM.sensitivity)
    found = []
    for place, row in enumerate(targets.rows.tolist()):
        part = slice(fakes.rows.indptr[place], fakes.rows.indptr[place + 1])
        similarities = engine.similarities(fakes, place)
        order = np.argsort(-similarities, kind="stable")
        rank = int(np.flatnonzero(order == row)[0])
        profile = fakes.rows.indices[part], fakes.rows.data[part]
        found.append(_FakeList(similarities[order], rank, peaks, *profile))
    return found


def _zeros(ratings: Ratings, axis: Axis, seed: Seed, n: int) -> Floats:
    """Return the share of zeros in the second half of the list, for each of `n` rows."""
    rows = rows_of(ratings, axis)
    askers = rows.rows(sample_targets(rows, n, rng=Streams(seed).at(TARGETS)))
    profiles = Profiles.of(rows.csr)
    engine = RowsAgainstAll(profiles, Similarity.of(DEFAULT.similarity))
    n_candidates = profiles.n_rows - 1
    half = n_candidates - n_candidates // 2
    shares = np.empty(len(askers))
    for place, asker in enumerate(askers.tolist()):
        similarities = np.delete(engine.similarities(profiles, asker), asker)
        shares[place] = min(int((similarities == 0).sum()), half) / half
    return shares
