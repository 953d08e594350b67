"""`audit`: verdicts, exhibits, and that a report tells nobody's secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from scipy import sparse

from goodfence.attack.knn_attack import KNNAttack
from goodfence.auditing.audit import audit
from goodfence.auditing.outputs import bound_of_answers
from goodfence.auditing.unseeded import Unseeded
from goodfence.auditing.witnesses import settings_witness, witness_against
from goodfence.data.ratings import Ratings
from goodfence.errors import SettingError
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private_means import PrivateMeans
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS


def made_up() -> Ratings:
    """Return 60 users with telling ids, 25 items."""
    rng = np.random.default_rng(4)
    rated = rng.random((60, 25)) < 0.6
    values = rng.integers(1, 6, rated.shape) * rated
    users = [f"secret-{row}" for row in range(60)]
    csr = sparse.csr_array(values.astype(np.float64))
    return Ratings(csr, users=users, items=range(25), scale=(1, 5))


class Constant:
    """Knows nothing of anybody."""

    def fit(self, _: Ratings) -> Self:
        return self

    def predict(self, users: Any, _: Any) -> Any:
        return np.full(len(users), 3.0)


class Copier:
    """Hands out the largest rating of each item: as leaky as can be."""

    def fit(self, ratings: Ratings) -> Self:
        self.ratings = ratings
        self.largest = ratings.csr.max(axis=0).toarray().ravel()
        return self

    def predict(self, _: Any, items: Any) -> Any:
        return np.asarray(self.largest[self.ratings.columns(items)])


MECHANISMS: list[Mechanism] = [
    KNN(k=5),
    KNN(k=1),
    PPNS(k=5, beta=3),
    PPNS(k=1, beta=3),
    NPNS(k=5),
    NPNS(k=5, within=2),
    PNCF(k=5),
    PNCF(k=5, within=2),
    PPNS(k=50, beta=7, epsilon=0.01),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_mechanism_has_a_witness_at_its_own_settings(mechanism: Mechanism) -> None:
    """One candidate alone rated an item: no answer without that rating, whatever is drawn."""
    witness = settings_witness(mechanism)
    assert witness is not None
    with_it, without = witness.probabilities()
    assert without == 0.0
    assert with_it > 0.05
    assert (witness.ratings != witness.ratings_without).sum() == 1


def test_ppns_shows_a_rating_as_often_as_its_partition_draws_it() -> None:
    """The nearest of the first partition is left out about one time in fifty."""
    witness = settings_witness(PPNS(k=50, beta=7))
    assert witness is not None
    assert witness.probabilities()[0] == pytest.approx(0.98, abs=0.005)


@pytest.mark.parametrize("mechanism", [PPNS(k=5, beta=3), PNCF(k=5)], ids=repr)
def test_what_was_claimed_is_refuted(mechanism: Mechanism) -> None:
    report = audit(made_up(), mechanism, attack=KNNAttack(known=4), targets=20, trials=300, rng=1)
    assert report.verdict == "refuted"
    assert report.exhibit is not None
    assert report.exhibit.without == 0
    assert report.bound is not None
    # Runs on the same pair show it too: an answer in 8 of 10 runs or more, against none, is 2.5 or so.
    assert report.bound.epsilon > 0.5
    assert "does not hold" in report.summary
    assert report.leakage.n_targets == 20


def test_where_nothing_is_promised_the_audit_says_that_nothing_would_hold() -> None:
    report = audit(made_up(), KNN(k=5), attack=KNNAttack(known=4), targets=20, trials=60, rng=1)
    assert report.verdict == "no promise"
    assert "none would hold" in report.summary


def test_a_proved_model_is_not_broken() -> None:
    model = PrivateMeans(epsilon=4.0, unit="user")
    report = audit(
        made_up(),
        model,
        attack=KNNAttack(known=4, fakes=5),
        targets=3,
        trials=40,
        rng=1,
        confidence=1 - 1e-6,
    )
    assert report.verdict == "not broken"
    assert report.exhibit is None
    assert report.moved is not None
    assert 0.9 < report.moved <= 1
    assert report.bound is not None
    assert report.bound.epsilon < 4
    assert "mu at least" in repr(report)


def test_a_seeded_model_promises_nothing_and_is_fitted_without_its_seed() -> None:
    model = PrivateMeans(epsilon=1.0, rng=7)
    report = audit(made_up(), model, attack=KNNAttack(known=4, fakes=5), targets=2, trials=0)
    assert report.verdict == "no promise"
    assert report.guarantee.status == "none"
    assert report.bound is None
    fitted = [Unseeded(model).fit(made_up()).model_.effects for _ in range(2)]
    assert (fitted[0] != fitted[1]).any()


def test_strangers_are_judged_by_what_they_answer() -> None:
    attack = KNNAttack(known=4, fakes=5)
    leaky = audit(made_up(), Copier(), attack=attack, targets=3, trials=90, rng=1)  # type: ignore[arg-type]
    silent = audit(made_up(), Constant(), attack=attack, targets=3, trials=90, rng=1)  # type: ignore[arg-type]
    assert leaky.bound is not None
    assert silent.bound is not None
    assert leaky.bound.epsilon > 2
    assert silent.bound.epsilon == 0
    assert leaky.audited == "Copier"
    assert silent.leakage.advantage == 0


def test_item_based_lists_have_no_witness_and_no_runs() -> None:
    model = NeighbourCF(KNN(k=5), axis="item")
    attack = KNNAttack(known=4, fakes=5)
    report = audit(made_up(), model, attack=attack, targets=2, rng=1)
    assert witness_against(model) is None
    assert report.bound is None
    assert report.verdict == "no promise"


def test_a_report_has_no_ids_no_score_and_no_reassurance(tmp_path: Path) -> None:
    report = audit(made_up(), PPNS(k=5, beta=3), attack=KNNAttack(known=4), targets=9, trials=60)
    report.save(tmp_path / "audit.json")
    text = (tmp_path / "audit.json").read_text(encoding="utf-8")
    for shown in (text, repr(report)):
        assert "secret-" not in shown
        assert "safe" not in shown.lower()
        assert "/10" not in shown
        assert "out of ten" not in shown
    assert json.loads(text)["verdict"] == "refuted"
    assert [path.name for path in tmp_path.iterdir()] == ["audit.json"]


def test_missing_answers_are_answers_too() -> None:
    told = {0: np.array([np.nan]), 1: np.array([3.0])}
    assert bound_of_answers(lambda which: told[which], 300).epsilon > 3
    assert bound_of_answers(lambda _: np.array([np.nan]), 300).epsilon == 0


@pytest.mark.parametrize("wrong", [{"trials": 5}, {"confidence": 0.0}, {"confidence": 1.0}])
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        audit(made_up(), KNN(k=5), **wrong)
