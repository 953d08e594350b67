"""`audit`: verdicts, exhibits, and that a report tells nobody's secrets."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from scipy import sparse, stats

import goodfence as gf
from benchmarks.release_audit import audit_release
from goodfence.adapters.black_box import BlackBox
from goodfence.attack.knn_attack import KNNAttack
from goodfence.auditing.audit import audit, counterexample_against
from goodfence.auditing.dp_audit import Stage, Transcripts
from goodfence.auditing.pairs import Trials, bound_of_answers, for_made_up_items, made_pair
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import BlackBoxProblem, NotFittedError, SettingError
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private.cf import PrivateCF, PrivateMeans
from goodfence.models.recommender import unfitted_copy
from goodfence.privacy.noise import SIGMA
from goodfence.report.pages import save_result
from goodfence.selection.counterexample import settings_counterexample
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
    witness = settings_counterexample(mechanism)
    assert witness is not None
    with_it, without = witness.probabilities()
    assert without == 0.0
    assert with_it > 0.05
    assert (witness.ratings != witness.ratings_without).sum() == 1


def test_ppns_shows_a_rating_as_often_as_its_partition_draws_it() -> None:
    """The nearest of the first partition is left out about one time in fifty."""
    witness = settings_counterexample(PPNS(k=50, beta=7))
    assert witness is not None
    assert witness.probabilities()[0] == pytest.approx(0.98, abs=0.005)


@pytest.mark.slow
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
    assert report.verdict == "no guarantee"
    assert "no epsilon can hold" in report.summary


def test_a_proved_model_is_not_broken() -> None:
    model = PrivateMeans(epsilon=4.0, unit="user", items="from ratings")
    report = audit(made_up(), model, attack=KNNAttack(known=4, fakes=5), targets=3, trials=Trials(40, 1 - 1e-6), rng=1)
    assert report.verdict == "not broken"
    assert report.exhibit is None
    assert report.moved is not None
    assert 0.9 < report.moved <= 1
    assert report.bound is not None
    assert report.bound.epsilon < 4
    assert "mu at least" in repr(report)


def test_a_seeded_model_promises_nothing_and_is_fitted_without_its_seed() -> None:
    model = PrivateMeans(epsilon=1.0, rng=7, items="from ratings")
    report = audit(made_up(), model, attack=KNNAttack(known=4, fakes=5), targets=2, trials=0)
    assert report.verdict == "no guarantee"
    assert report.guarantee.status == "none"
    assert report.bound is None
    fitted = [unfitted_copy(model, None).fit(made_up()).model_.bias for _ in range(2)]
    assert (fitted[0] != fitted[1]).any()


def test_what_is_tested_is_copied_and_never_fitted_itself() -> None:
    model = PrivateMeans(epsilon=1.0, rng=3, items="from ratings")
    KNNAttack(known=4, fakes=5).run(made_up(), model, targets=1, rng=1)
    with pytest.raises(NotFittedError, match="must be fitted before it is asked"):
        model.predict(["secret-1"], [1])
    assert model.rng == 3


def test_strangers_are_judged_by_what_they_answer() -> None:
    attack = KNNAttack(known=4, fakes=5)
    leaky = audit(made_up(), Copier(), attack=attack, targets=3, trials=90, rng=1)
    silent = audit(made_up(), Constant(), attack=attack, targets=3, trials=90, rng=1)
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
    assert counterexample_against(model) is None
    assert report.bound is None
    assert report.verdict == "no guarantee"


def test_a_report_has_no_ids_no_score_and_no_reassurance(tmp_path: Path) -> None:
    report = audit(made_up(), PPNS(k=5, beta=3), attack=KNNAttack(known=4), targets=9, trials=60)
    save_result(report, tmp_path / "audit.json")
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


@pytest.mark.parametrize(("trials", "named"), [(5, "trials"), (Trials(30, 0.0), "conf"), (Trials(30, 1.0), "conf")])
def test_settings_are_checked(trials: int | Trials, named: str) -> None:
    with pytest.raises(SettingError, match=named):
        audit(made_up(), KNN(k=5), trials=trials)


def needing(k: int) -> BlackBox:
    """Return a black box with k neighbours, which it tells nobody, and which fewer than k people make fail."""

    def train(ratings: Ratings, rng: int) -> Any:
        return NeighbourCF(KNN(k=k), rng=rng, progress=False).fit(ratings).predict

    return BlackBox(train)


@pytest.mark.slow
def test_where_k_is_unknown_the_strongest_of_several_attackers_is_reported() -> None:
    """Fifty fakes crowd the target out of ten neighbours; ten fakes and the target fill them."""
    films = gf.load("movietweetings")
    found = audit(films, needing(10), targets=30, trials=0, rng=3).leakage
    assert found.n_fakes == 10
    assert found.finding.verdict == "leaks"
    assert [one.attack for one in found.tried if one.strongest] == [found.attack]
    # Each half is judged by the attacker that is strongest on the other, so all are judged.
    assert {one.n_targets for one in found.tried} == {30}
    assert found.n_targets == 30
    assert {one.attack for one in found.not_tried} > {"membership", "recommended lists"}


@pytest.mark.parametrize("rng", [None, np.random.default_rng(5)])
def test_all_attackers_attack_the_same_people(rng: Any) -> None:
    found: list[tuple[int, ...]] = []

    class Seen(Constant):
        def fit(self, ratings: Ratings) -> Self:
            found.append(tuple(np.diff(ratings.csr.indptr)[:60].tolist()))
            return self

    audit(made_up(), Seen(), targets=6, trials=0, rng=rng)
    # Seven fits to probe it; then each of the four plain attackers fits two worlds for each of three targets.
    worlds = [found[start : start + 6] for start in (7, 13, 19, 25)]
    assert worlds[0] == worlds[1] == worlds[2] == worlds[3]


@pytest.mark.parametrize(("k", "people"), [(5, 20), (19, 20), (25, 60), (59, 60), (61, 70)])
def test_a_box_that_needs_many_neighbours_gets_as_many_people(k: int, people: int) -> None:
    csr = sparse.csr_array(np.tile(made_up().csr.toarray(), (2, 1))[:70])
    ratings = Ratings(csr, users=range(70), items=range(25), scale=(1, 5))
    attack = KNNAttack(known=4, fakes=5)
    report = audit(ratings, needing(k), attack=attack, targets=2, trials=30, rng=1)
    assert report.pair == f"{people} made-up users, 4 items"
    assert report.bound is not None
    assert report.bound.epsilon > 0.5  # one user alone rated the item, whatever k


class Refusing(Constant):
    """Cannot learn from made-up data of four items."""

    def fit(self, ratings: Ratings) -> Self:
        if ratings.shape[1] == 4:
            raise ZeroDivisionError("of its own")
        return self


def test_a_box_that_fails_on_made_up_data_loses_nothing_that_was_found() -> None:
    attack = KNNAttack(known=4, fakes=5)
    report = audit(made_up(), Refusing(), attack=attack, targets=2, trials=30)
    assert report.leakage.n_targets == 2
    assert report.bound is None
    assert report.pair.endswith("failed with its own ZeroDivisionError")


def test_without_trials_nothing_is_fitted_on_made_up_data() -> None:
    shapes: set[int] = set()

    class Seen(Constant):
        def fit(self, ratings: Ratings) -> Self:
            shapes.add(ratings.shape[1])
            return self

    report = audit(made_up(), Seen(), targets=2, trials=0)
    assert shapes == {25}
    assert report.bound is None


def test_an_error_of_the_box_is_told_as_its_own_and_what_others_found_is_kept() -> None:
    class Crowded(Constant):
        """Cannot hold more than 75 users."""

        def fit(self, ratings: Ratings) -> Self:
            if ratings.shape[0] > 75:
                raise ZeroDivisionError("secret")
            return self

    found = audit(made_up(), Crowded(), targets=4, trials=0, rng=1).leakage
    failed = [one for one in found.tried if one.failed]
    assert all(one.n_fakes <= 15 for one in found.tried if not one.failed)
    assert failed
    assert found.finding.verdict == "cannot tell"
    for one in failed:
        assert "its own ZeroDivisionError" in str(one.failed)
        assert "secret" not in str(one.failed)
    with pytest.raises(BlackBoxProblem, match="failed in fit with its own ZeroDivisionError"):
        audit(made_up(), Crowded(), attack=KNNAttack(known=4, fakes=20), targets=2, trials=0)


@pytest.mark.slow
@pytest.mark.parametrize("n_items", [3, 25, 80])
def test_a_catalogue_and_features_of_any_length_are_audited(n_items: int) -> None:
    catalogue = [f"film {item}" for item in range(n_items)]
    model = PrivateCF(epsilon=4.0, features=np.eye(n_items, 2), catalogue=catalogue)
    csr = sparse.csr_array(np.resize([3.0, 4.0, 5.0, 1.0], (20, 25)))
    items = [f"film {item}" for item in range(25)]
    ratings = Ratings(csr, users=range(20), items=items, scale=(1, 5))
    if n_items < 25:  # what is not in the catalogue cannot be asked for
        ratings = Ratings(csr[:, :n_items], range(20), items[:n_items], scale=(1, 5))
    attack = KNNAttack(known=2, fakes=5)
    report = audit(ratings, model, attack=attack, targets=1, trials=30, rng=1)
    assert report.pair == f"21 made-up users, {min(n_items, 60)} items"
    assert report.moved is not None
    assert 0.5 < report.moved <= 1


def test_a_transcript_is_laid_out_on_the_catalogue_as_a_fit_is() -> None:
    """A rating of an item that is not in the catalogue is in no release."""
    pair = made_pair(np.array([5.0, 1.0]), "rating", Scale(1, 5))
    moved = {
        last: Transcripts(PrivateMeans(epsilon=1.0, catalogue=[*range(10, 60), last]), pair.without, pair.with_it)
        for last in (1, 9)
    }
    assert moved[9].moved() == 0
    assert moved[1].moved() > 0
    assert moved[1].profiles[0].n_items == 51


@pytest.mark.slow
def test_the_name_at_the_top_is_the_function_whatever_was_imported_before() -> None:
    code = "import goodfence.auditing.leak_limit, goodfence as gf; print(type(gf.audit).__name__)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "function"


def test_what_both_data_sets_hold_does_not_hide_what_moves() -> None:
    """A shift of 4 sigma, stated as a quarter of one, beside a total that is large in both."""
    alike, moved = np.array([2**40, 0]), np.array([2**40, 2**26])
    settings: dict[str, Any] = {"trials": 2000, "confidence": 1 - 1e-6}
    assert audit_release("two sums", alike, moved, 2**22, **settings).broken
    assert not audit_release("two sums", alike, moved, 2**26, **settings).broken


def test_without_a_catalogue_the_made_up_items_are_those_of_the_ratings() -> None:
    model = gf.PrivateMeans(epsilon=1.0, items="from ratings")
    small = for_made_up_items(model)
    assert (small.catalogue, small.items) == (None, "from ratings")
    features = np.ones((100, 2))
    plain = for_made_up_items(gf.PrivateCF(epsilon=1.0, items="from ratings", features=features))
    assert (plain.catalogue, plain.items) == (None, "from ratings")
    few = for_made_up_items(gf.PrivateCF(epsilon=1.0, items="from ratings", features=features[:50]))
    assert few.catalogue == range(50)


def test_a_score_is_the_log_likelihood_ratio_of_what_was_released() -> None:
    """As scipy has the normal density, stage by stage; on the second data set the signs are turned."""
    own, other = np.array([0, 3 * SIGMA, SIGMA]), np.array([SIGMA, 2 * SIGMA, SIGMA])
    noisy = np.array([2 * SIGMA, -SIGMA, 7])
    release: Any = SimpleNamespace(sensitivity=2 * SIGMA)
    stages = [Stage(release, own, other, noisy), Stage(release, own[:1], other[:1], noisy[:1])]
    fits: Any = SimpleNamespace(stages=lambda _: stages, largest_ratio=0.0)
    wanted = sum(
        float((stats.norm(one.other, SIGMA).logpdf(one.noisy)).sum())
        - float((stats.norm(one.own, SIGMA).logpdf(one.noisy)).sum())
        for one in stages
    )
    for which, sign in ((0, 1), (1, -1)):
        score, shift = Transcripts._one(fits, which)
        assert score == pytest.approx(sign * wanted)
        assert shift == pytest.approx(math.sqrt(3))
    assert fits.largest_ratio == pytest.approx(math.sqrt(2) / 2)
