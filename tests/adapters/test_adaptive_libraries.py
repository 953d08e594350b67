"""What real libraries give away to the adaptive attack: neighbours per item, with users' means taken away or not."""

from __future__ import annotations

from typing import Any

import pytest

import goodfence as gf
from goodfence.adapters import lenskit as lenskit_adapter
from goodfence.adapters import surprise as surprise_adapter
from goodfence.adapters.libraries import library

pytestmark = pytest.mark.real("ml-100k")
KNOWN, K = 16, 20


def user_knn() -> Any:
    scorer = library("lenskit.knn").UserKNNScorer(k=K)
    return lenskit_adapter.from_lenskit(library("lenskit.pipeline").predict_pipeline(scorer))


@pytest.mark.adapters("lenskit")
def test_the_audit_finds_what_lenskit_gives_away(peer: Any) -> None:
    """Plain fakes crowd nobody among the raters of an item: +.08. The centred equations read nearly everything."""
    ratings = gf.load("ml-100k")
    report = gf.audit(ratings, user_knn(), known=KNOWN, targets=20, trials=0, rng=7).leakage
    assert report.advantage >= 0.45
    assert report.estimates["recovery"].value >= 0.95
    assert "measured" in report.attack  # helpers of each item; the similarities are measured
    alone = [one for one in report.tried if "helping='none'" in one.attack and "decode='answer'" in one.attack]
    plain = [one.advantage.value for one in alone]
    assert max(plain) < 0.25


@pytest.mark.adapters("surprise")
@pytest.mark.parametrize(("algo", "measure"), [("KNNBasic", "cosine"), ("KNNWithMeans", "pearson")])
def test_surprise_with_a_support_of_ten_is_read(peer: Any, algo: str, measure: str) -> None:
    options = {"name": measure, "user_based": True, "min_support": 10}
    model = getattr(peer, algo)(k=K, sim_options=options, verbose=False)
    attack = gf.AdaptiveAttack(known=KNOWN, fakes=K, items=3, helpers="equal")  # means are probed
    box = surprise_adapter.from_surprise(model)
    report = attack.run(gf.load("ml-100k"), box, targets=6, rng=7)
    assert report.raw_recovery >= 0.95
    assert report.advantage > 0.3


@pytest.mark.adapters("surprise")
@pytest.mark.parametrize(("algo", "centred"), [("KNNBasic", False), ("KNNWithMeans", True)])
def test_surprise_by_default_is_told_for_what_it_is(peer: Any, algo: str, centred: bool) -> None:
    """Ties at similarity 1 dilute the target: the attack runs, says what it got, and knows about the means."""
    box = surprise_adapter.from_surprise(getattr(peer, algo)(verbose=False))
    attack = gf.AdaptiveAttack(known=KNOWN, fakes=40, items=3, helpers="equal")
    report = attack.run(gf.load("ml-100k"), box, targets=4, rng=7)
    told = gf.AdaptiveAttack(known=KNOWN, fakes=40, items=3, helpers="equal", centred=centred)
    assert report.table().equals(told.run(gf.load("ml-100k"), box, targets=4, rng=7).table())
    assert report.coverage > 0
