"""Noise sent once, and candidate lists: the same answers as refits in which all users send with the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf
from benchmarks.sent_worlds import SentOnce, SentWorlds
from goodfence.attack.refits import RefitWorlds
from goodfence.attack.targets import find_targets
from goodfence.neighbours.similarity import Similarity
from goodfence.rng import Streams

RATINGS = gf.synthetic(users=80, items=50, ratings=1500, rng=3)
SEED = 11


@pytest.mark.slow
@pytest.mark.parametrize(
    "by",
    [
        gf.papers.RandomisedResponse(epsilon=1.0),
        gf.papers.LocalLaplace(epsilon=2.0),
        gf.papers.RandomisedPerturbation(sigma_max=0.0, beta_max=0.0),
        gf.papers.RandomisedPerturbation(sigma_max=2.0),
        gf.papers.NeNDS(),
        gf.papers.NeNDS(within="person"),
        gf.papers.ItemSwap(p=0.5),
        gf.papers.BlurMe(attribute={user: user % 2 == 0 for user in RATINGS.users.tolist()}, extra=0.1),
    ],
    ids=lambda by: repr(by)[:24],
)
def test_answers_are_those_of_refits(by: Any) -> None:
    model = gf.papers.Perturbed(gf.NeighbourCF(gf.KNN(k=6)), by=by)
    targets, _ = find_targets(RATINGS, 12, 5, "random", Streams(2))
    seeds = [SEED] * len(targets)
    fast = SentWorlds(RATINGS, model, 6, SEED).ask(targets, seeds, 2)
    refits = RefitWorlds(RATINGS, model, 6, similarity=Similarity.of("cosine"))
    slow = refits.ask(targets, seeds, 2)
    for world in ("with_target", "without_target"):
        np.testing.assert_allclose(getattr(fast, world), getattr(slow, world), atol=1e-9)
    assert np.isfinite(fast.with_target).any()
    assert not np.array_equal(fast.with_target, fast.without_target, equal_nan=True)


def test_an_attack_runs_on_what_was_sent_once() -> None:
    model = gf.papers.Perturbed(gf.NeighbourCF(gf.KNN(k=6)), by=gf.papers.RandomisedResponse(epsilon=8.0))
    subject = SentOnce(RATINGS, model, SEED)
    report = gf.KNNAttack(known=8, fakes=6).run_on(subject, targets=20, rng=1, progress=False)
    assert report.n_targets == 20
    assert subject.worlds(6) is subject.worlds(6)
