"""What stands around an audit: other knowledge, other attackers, other ways, each once."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

import goodfence as gf
from goodfence.attack.attack import Attack, Subject
from goodfence.attack.knn_attack import KNNAttack
from goodfence.auditing.audit import audit
from goodfence.auditing.frontier import Compared, name_of
from goodfence.auditing.survey import Survey, _knowing, _strategies, survey
from goodfence.models.method import default_recommenders

SURVEY = import_module("goodfence.auditing.survey")
FILMS = gf.load("movietweetings")


@pytest.fixture(scope="module")
def around() -> Survey:
    fence, attack = gf.NeighbourCF(gf.KNN(k=20)), gf.KNNAttack(known=5)
    report = audit(FILMS, fence, attack=attack, targets=60, trials=0, rng=7)
    listed: list[Compared] = [gf.KNN(k=20), gf.PPNS(k=20, beta=3)]
    return survey(report, compared=listed, targets=15, progress=False)


@pytest.mark.slow
def test_the_audit_itself_is_among_what_is_shown(around: Survey) -> None:
    own = around.audit.leakage
    assert around.by_strategy[0] is own
    assert own in around.by_known
    assert [report.known for report in around.by_known] == [1, 2, 4, 5, 8, 16]


def test_others_attack_as_many_as_they_are_told(around: Survey) -> None:
    others = {report.n_targets for report in around.by_strategy[1:]}
    assert others == {15}
    own, *rest = (point.n_targets for point in around.frontier.points)
    assert own == around.audit.leakage.n_targets  # the same question has the same answer
    assert rest == [15]


def test_more_knowledge_reads_more(around: Survey) -> None:
    read = [report.found.value for report in around.by_known]
    assert read[0] < read[2] < read[-1]


def test_what_is_audited_stands_on_the_frontier_once(around: Survey) -> None:
    assert [point.family for point in around.frontier.points] == ["kNN", "PPNS"]
    assert [guarantee.status for guarantee in around.guarantees] == ["none", "refuted"]


@pytest.mark.parametrize(
    ("attack", "audited", "n_expected"),
    [
        # One account, all ask (a cover of k accounts is that), adaptive, the rarest, the most popular.
        (gf.KNNAttack(known=8), gf.KNN(k=20), 5),
        (gf.KNNAttack(known=8), gf.PPNS(k=20, beta=3), 6),
        (gf.KNNAttack(known=8), gf.NPNS(k=20), 5),  # nobody covers a whole list
        (gf.KNNAttack(known=8, ask="all"), gf.PPNS(k=20, beta=3), 6),
        (gf.KNNAttack(known=1, choose=[int(FILMS.items[0])]), gf.KNN(k=20), 0),
    ],
)
def test_other_attackers_are_those_that_apply_each_once(attack: Attack, audited: Compared, n_expected: int) -> None:
    subject = Subject(FILMS, audited)
    report = gf.KNNAttack(known=8).run(FILMS, gf.KNN(k=20), targets=2, rng=7)
    others = _strategies(replace(report, attacker=attack), subject)
    assert len(others) == n_expected
    assert len({repr(other) for other in others}) == n_expected
    assert {other.known for other in others} <= {attack.known}


def test_attackers_whom_the_audit_tried_are_not_tried_again() -> None:
    found = audit(FILMS, gf.KNN(k=20), targets=10, trials=0, rng=7).leakage
    others = _strategies(found, Subject(FILMS, gf.KNN(k=20)))
    assert [other.choose for other in others] == ["rarest", "most_popular"]


@pytest.mark.slow
def test_what_needs_fits_is_attacked_on_as_many_as_are_asked_for() -> None:
    """However fast the machine is: a page does not depend on the clock."""
    films = gf.synthetic(users=60, items=30, ratings=900, rng=3)
    report = audit(films, gf.KNN(k=3), known=3, targets=30, trials=0, rng=7)
    private: list[Compared] = [gf.PrivateMeans(epsilon=1.0, items="from ratings"), gf.NPNS(k=3)]
    found = survey(report, compared=private, targets=20, progress=False).frontier
    assert [one.n_targets for one in found.points] == [30, 20, 20]


def test_knowledge_goes_as_far_as_half_of_the_people(around: Survey) -> None:
    assert [plan.known for plan in _knowing(gf.KNNAttack(known=16), FILMS)] == [1, 2, 4, 8]
    named = gf.KNNAttack(known=1, choose=[int(FILMS.items[0])])
    assert _knowing(named, FILMS) == []


def test_the_short_list_has_every_kind_that_fits() -> None:
    assert [name_of(way) for way in default_recommenders("page", 1_000)] == [
        "kNN k=50",
        "PPNS k=50, β=7",
        "nPNS k=50, whole list",
        "PNCF k=50, β=7, ε=1",
        "PrivateMeans, per rating ε=1",
        "PrivateCF, per rating ε=1",
    ]
    assert [name_of(way) for way in default_recommenders("page", 30, k=20)][:2] == ["kNN k=20", "nPNS k=20, whole list"]


def test_what_is_known_doubles_from_one_to_sixty_four() -> None:
    assert tuple(2**power for power in range(7)) == SURVEY.KNOWN


def test_knowledge_doubles_as_long_as_half_of_the_users_have_more() -> None:
    attack = gf.KNNAttack(known=8)
    full = gf.synthetic(users=30, items=65, ratings=30 * 65, rng=7)  # everybody rated everything
    known = [one.known for one in _knowing(attack, full) if isinstance(one, KNNAttack)]
    assert known == [1, 2, 4, 16, 32, 64]
    one_less = gf.synthetic(users=30, items=64, ratings=30 * 64, rng=7)
    assert len(_knowing(attack, one_less)) == 5
