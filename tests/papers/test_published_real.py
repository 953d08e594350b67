"""Golden values of published systems on MovieLens 100K: errors, what changes, and what an attack reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.arrays import Flags, Floats
from goodfence.evaluation import Scores
from goodfence.models.recommender import unfitted_copy
from goodfence.papers.published.perturbations import indication
from goodfence.papers.published.published_recommender import indicators
from goodfence.rng import Streams

pytestmark = pytest.mark.real("ml-100k")

KNN = gf.NeighbourCF(gf.KNN(k=50))
SEED = Streams(7).key(1)


@pytest.fixture(scope="module")
def films() -> gf.Ratings:
    return gf.load("ml-100k")


@pytest.fixture(scope="module")
def split(films: gf.Ratings) -> tuple[gf.Ratings, gf.Ratings]:
    return gf.holdout(films, fraction=0.2, rng=Streams(7).at(0))


def sent(by: Any) -> gf.papers.Perturbed:
    return gf.papers.Perturbed(KNN, by=by)


@pytest.mark.parametrize(
    ("model", "mae", "coverage", "within"),
    [
        (gf.papers.NoisyAnswers(KNN, epsilon=1.0), 1.640, 1.0, 0.02),
        (gf.papers.NoisyAnswers(KNN, epsilon=4.0), 1.155, 1.0, 0.02),
        (sent(gf.papers.RandomisedResponse(epsilon=1.0)), 1.017, 0.98, 0.01),
        (sent(gf.papers.RandomisedResponse(epsilon=4.0)), 0.831, 0.98, 0.01),
        (sent(gf.papers.RandomisedPerturbation(sigma_max=0.0, beta_max=0.0)), 0.742, 0.968, 0.001),
        (sent(gf.papers.RandomisedPerturbation(sigma_max=2.0, beta_max=0.0)), 0.819, 0.96, 0.01),
        (sent(gf.papers.NeNDS()), 0.820, 0.98, 0.005),
        (sent(gf.papers.ItemSwap()), 0.847, 0.97, 0.01),
        (gf.papers.SlopeOne(), 0.738, 1.0, 0.001),
        (gf.papers.ThresholdNeighbours(threshold=0.2), 0.818, 0.99, 0.001),
        (gf.papers.ThresholdNeighbours(threshold=0.3), 0.818, 0.94, 0.001),
        (gf.papers.MatrixFactorisation(), 0.731, 1.0, 0.01),
    ],
    ids=lambda one: repr(one)[:60] if hasattr(one, "fit") else "",
)
def test_the_error_is_that_of_the_specification(
    model: Any, mae: float, coverage: float, within: float, split: tuple[gf.Ratings, gf.Ratings]
) -> None:
    train, test = split
    fitted = unfitted_copy(model, SEED).fit(train)
    rows = np.repeat(np.arange(test.shape[0]), np.diff(test.csr.indptr))
    told = fitted.predict(test.users[rows], test.items[test.csr.indices])
    scores = Scores.of(np.clip(told, test.scale.lowest, test.scale.highest), test.csr.data)
    assert scores.mae == pytest.approx(mae, abs=within)
    assert scores.coverage == pytest.approx(coverage, abs=0.006)


@pytest.mark.parametrize(
    ("by", "share", "within"),
    [(gf.papers.NeNDS(), 0.080, 0.003), (gf.papers.NeNDS(within="person"), 0.64, 0.01)],
    ids=["column", "person"],
)
def test_how_many_ratings_nends_changes(by: gf.papers.NeNDS, share: float, within: float, films: gf.Ratings) -> None:
    changed = by.perturb(films, Streams(1)).ratings.csr.data != films.csr.data
    assert changed.mean() == pytest.approx(share, abs=within)


def test_blurme_announces_what_it_hides(films: gf.Ratings, real_data: Path) -> None:
    lines = (real_data / "ml-100k" / "u.user").read_text(encoding="latin-1").splitlines()
    men = {int(line.split("|")[0]): line.split("|")[2] == "M" for line in lines}
    kinds = np.array([men[user] for user in films.users.tolist()])
    # The classifier, and the lists, are learnt on clean ratings of nine tenths and tried on the others.
    tried = np.arange(len(kinds)) % 10 == 0
    learnt = indication(sparse.csr_array(films.csr[~tried]), kinds[~tried])
    rest = gf.Ratings(films.csr[tried], films.users[tried], films.items, films.scale)
    assert area(indicators(rest.csr) @ learnt, kinds[tried]) > 0.6
    blurred = gf.papers.BlurMe(extra=0.1, strategy="greedy").added(rest, kinds[tried], learnt, Streams(1))
    hidden = area(indicators(blurred.csr) @ learnt, kinds[tried])
    assert hidden < 0.05
    assert 1 - hidden > 0.95  # turned round


def area(scores: Floats, kinds: Flags) -> float:
    """Return how often somebody of the one kind scores higher than somebody of the other."""
    return float((scores[kinds][:, None] > scores[~kinds][None]).mean())


def test_all_asking_average_the_noise_away(films: gf.Ratings) -> None:
    model = gf.papers.NoisyAnswers(KNN, epsilon=4.0, clip=False)  # clipped answers have a biased mean
    attack = {"known": 16, "fakes": 50}
    one = gf.KNNAttack(**attack).run(films, model, targets=8, rng=SEED)  # type: ignore[arg-type]
    everybody = gf.KNNAttack(**attack, ask="all", combine="mean")  # type: ignore[arg-type]
    together = everybody.run(films, model, targets=8, rng=SEED)
    assert one.raw_recovery == pytest.approx(0.454, abs=0.06)
    assert together.raw_recovery > 0.9


def test_the_pair_attack_on_slope_one_is_right_wherever_it_is_certain(films: gf.Ratings) -> None:
    report = gf.papers.PairAttack(known=16).run(films, gf.papers.SlopeOne(), targets=8, rng=7)
    assert report.estimates["confident_precision"].value == 1.0
    assert 0.03 < report.estimates["confident_coverage"].value < 0.4
