"""Audit, frontier, limit and page on events: the same functions, in words about lists."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.attack.attack import Subject
from goodfence.attack.designed_lists import DesignedListAttack
from goodfence.attack.report import ListAttackReport
from goodfence.attack.strongest import NEVER_TRIED, probed, usual_attackers
from goodfence.auditing.frontier import Frontier, frontier
from goodfence.errors import SettingError
from goodfence.models.method import default_recommenders, traits_of
from goodfence.report.pages import audit_page
from goodfence.report.wording import recovered, verdict
from goodfence.selection.counterexample import settings_counterexample
from tests.support.list_recommenders import MostPopular

LIKES = gf.load("movietweetings").likes(8)


@pytest.fixture(scope="module")
def found() -> Frontier:
    compared: list[Any] = [gf.KNN(k=20), gf.Popularity()]
    return frontier(LIKES, compared, targets=12, rng=7)


def test_an_audit_of_events_attacks_lists() -> None:
    report = gf.audit(LIKES, gf.PPNS(k=20, beta=3), targets=40, rng=7)
    leakage = report.leakage
    assert isinstance(leakage, ListAttackReport)
    assert leakage.leaks
    assert report.verdict == "refuted"
    assert report.exhibit is not None
    assert (report.exhibit.unit, report.exhibit.without) == ("event", 0.0)
    assert "one event" in report.summary
    assert len(leakage.tried) == 5
    never = NEVER_TRIED["implicit"]
    assert leakage.not_tried[-len(never) :] == never
    told = report.to_dict()["leakage"]
    assert {"precision", "precision_without"} <= set(told["tried"][0])
    assert "recovery" not in json.dumps(told["tried"])


def test_of_ten_items_so_many_are_the_targets_own() -> None:
    report = gf.ListAttack(known=8).run(LIKES, gf.KNN(k=20), targets=40, rng=7)
    assert recovered(report).startswith(f"Of ten listed items {10 * report.precision:.1f} (95%")
    assert "listed items" in verdict(report, "kNN")
    assert "ratings" not in recovered(report) + verdict(report, "kNN")


def test_a_counterexample_on_events_is_made_of_events() -> None:
    example = settings_counterexample(gf.PPNS(k=5, beta=3), "implicit")
    assert example is not None
    assert set(np.unique(example.ratings)) == {0.0, 1.0}
    with_it, without = example.probabilities()
    assert with_it > 0.5
    assert without == 0.0


def test_the_strongest_covers_what_draws_from_far_down_the_list() -> None:
    """nPNS draws from 7 k candidates: as many fakes as that make it as leaky as kNN."""
    subject = Subject(LIKES, gf.NPNS(k=10, within=4))
    attackers = usual_attackers(subject, known=8)
    assert max(one.fakes or 0 for one in attackers) == 40
    report = gf.audit(LIKES, gf.NPNS(k=10, within=4), targets=60, rng=7).leakage
    assert report.n_fakes == 40
    assert report.advantage > 0.5


def test_a_stranger_meets_the_designs_that_probing_found() -> None:
    subject = Subject(LIKES, MostPopular())
    attackers = usual_attackers(subject)
    assert [one.decode for one in attackers if isinstance(one, DesignedListAttack)].count("trained") == 1
    designs = {design for one in attackers if isinstance(one, DesignedListAttack) for design in one.designs}
    assert designs == set(probed(subject, 8).designs)
    assert {1, 50} <= {design.fakes for design in designs}


def test_a_leak_above_the_limit_fails_and_names_the_list() -> None:
    with pytest.raises(AssertionError, match=r"knows 8 items .* precision \d+\.\d%"):
        gf.assert_leak_below(gf.KNN(k=20), LIKES, 10, targets=40)
    report = gf.assert_leak_below(gf.Popularity(), LIKES, 20, attack=gf.ListAttack(known=8, fakes=5), targets=40)
    assert report.advantage < 0.2


def test_a_frontier_of_lists_measures_them_by_ndcg(found: Frontier) -> None:
    knn, popular = found.points
    assert found.feedback == "implicit"
    assert 0 < popular.ndcg < 1
    assert np.isnan(knn.mae)
    assert knn.loss == 1 - knn.ndcg
    assert knn.advantage.value > 0.4 > popular.advantage.value
    line = found.to_dict()["points"][0]
    assert {"ndcg", "recovery", "guess", "fully_recovered", "raw_recovery_without"} <= set(line)
    assert (line["feedback"], "mae" in line) == ("implicit", False)
    for shown in (repr(found), found._repr_html_()):
        assert "NDCG@10" in shown
        assert "MAE" not in shown
        assert "nan" not in shown
    assert "NDCG@10" in repr(found)


def test_what_stops_the_attackers_and_lists_best_is_recommended(found: Frontier) -> None:
    best = found.recommended()
    assert best in (None, found.points[1])  # kNN never is
    assert found.recommended(min_ndcg=0.99) is None
    with pytest.raises(SettingError, match="max_mae must be None for lists"):
        found.recommended(max_mae=0.5)


def test_what_is_compared_by_default_is_made_for_events() -> None:
    families = [traits_of(one).family for one in default_recommenders("page", LIKES.shape[0], "implicit", 20)]
    wanted = ["kNN", "PPNS", "nPNS", "PNCF", "kNN, item-based", "EASE", "Popularity"]
    assert families == [*wanted, "PrivateTopN, per event", "PrivateTopN, per user"]
    assert len(default_recommenders("full", LIKES.shape[0], "implicit")) == 18


@pytest.mark.slow
def test_a_page_about_lists_speaks_of_lists() -> None:
    report = gf.audit(LIKES, gf.KNN(k=20), targets=40, trials=0, rng=7)
    page = audit_page(report, compared=[gf.Popularity()], others=12, data="clicks")
    text = page.html
    for words in ("listed items are the target", "NDCG@10", "knows 8 items", "items known"):
        assert words in text
    for words in ("hidden ratings", "predicted ratings", "stars", "MAE"):
        assert words not in text.replace("&#39;", "'")
    for user in LIKES.users[:3]:
        assert f">{user}<" not in text
