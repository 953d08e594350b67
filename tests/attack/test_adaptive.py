"""The adaptive attack reads neighbourhoods that are chosen per item, centred or not, and not item means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.attack.attack import Subject
from goodfence.attack.designed import DesignedAttack
from goodfence.attack.fakes import Design
from goodfence.attack.knn_attack import AdaptiveAttack, Helping, KNNAttack, solve
from goodfence.attack.refits import RefitWorlds
from goodfence.attack.strongest import probed, strongest, usual_attackers
from goodfence.errors import SettingError
from tests.support.attack_worlds import ItemMeans, OwnMean
from tests.support.toy_recommenders import Flattened, NoisyAnswers, PerItemKNN

K = 12


def tastes(seed: int = 3, n_users: int = 90, n_items: int = 40) -> gf.Ratings:
    """Return ratings by taste and chance, about two thirds of all items each: every item has many raters."""
    rng = np.random.default_rng(seed)
    kind, liked = rng.normal(size=(n_users, 2)), rng.normal(size=(2, n_items))
    values = 3 + rng.normal(0, 0.6, (n_users, 1)) + kind @ liked + rng.normal(0, 0.8, (n_users, n_items))
    rated = rng.random((n_users, n_items)) < 0.65
    cells = np.clip(np.rint(values), 1, 5) * rated
    return gf.Ratings(sparse.csr_array(cells), range(n_users), range(n_items), scale=(1, 5))


@pytest.mark.parametrize(
    ("box", "settings"),
    [
        (PerItemKNN(K), {"centred": False}),
        (PerItemKNN(K, centred=True), {"centred": True}),
        (PerItemKNN(K), {}),
        (PerItemKNN(K, centred=True), {}),
    ],
    ids=["uncentred", "centred", "uncentred, probed", "centred, probed"],
)
def test_neighbours_per_item_are_read_exactly(box: Any, settings: dict[str, Any]) -> None:
    """Knowing nearly everything of somebody, that person is nearest after the helpers, and their rating is decoded.

    Without users' means it is the rating itself, to rounding. With them it is less their mean, of which the mean of
    the known ratings is nearly all.
    """
    ratings = tastes()
    attack = AdaptiveAttack(known=16, fakes=K, items=4, **settings)
    report = attack.run(ratings, box, targets=15, rng=1)
    plain = KNNAttack(known=16, fakes=K).run(ratings, box, targets=15, rng=1)
    assert report.raw_recovery > 0.95
    if not box.centred:
        assert report.exact == report.raw_recovery
    assert report.raw_recovery > plain.raw_recovery + 0.3
    assert report.recovery - report.estimates["recovery_without"].value > 0.3
    assert report.estimates["confident_precision"].value > 0.95
    assert report.estimates["confident_coverage"].value > 0.9


def test_similarities_over_common_items_weigh_helpers_equally() -> None:
    ratings, box = tastes(), PerItemKNN(K, corated=True)
    settings: dict[str, Any] = {"known": 16, "fakes": K, "items": 4, "centred": False}
    equal = AdaptiveAttack(**settings, helpers="equal").run(ratings, box, targets=10, rng=1)
    assert equal.mae < 1e-6


def test_the_equations_hold() -> None:
    """Any helpers, any target: what they would be answered is solved for the target's rating."""
    rng = np.random.default_rng(2)
    weight, similarity, rating = (rng.uniform(1, 40, (2, 50)), rng.uniform(0.05, 1, 50), rng.uniform(-2, 5, 50))
    helped = [Helping(weight[turn], rng.uniform(-3, 5, 50)) for turn in (0, 1)]
    answers = [(one.weights * one.ratings + similarity * rating) / (one.weights + similarity) for one in helped]
    np.testing.assert_allclose(solve(helped, *answers), rating, atol=1e-7)


def test_nothing_is_concluded_where_the_answers_hold_nothing() -> None:
    low, high = (Helping(np.array([9.0]), np.array([rated])) for rated in (1.0, 2.0))
    own = solve([low, high], np.array([1.0]), np.array([2.0]))  # the helpers' own ratings: s = 0
    deaf = solve([low, high], np.array([3.4]), np.array([3.4]))  # helpers do not matter: x = x'
    silent = solve([low, high], np.array([np.nan]), np.array([2.0]))
    assert np.isnan([own, deaf, silent]).all()


@pytest.mark.slow
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(
    "box", [ItemMeans(), OwnMean(), gf.PrivateMeans(epsilon=1.0), gf.PrivateCF(epsilon=1.0)], ids=repr
)
def test_what_adds_everybody_up_is_not_read(box: Any, centred: bool) -> None:
    attack = AdaptiveAttack(known=16, fakes=K, items=4, centred=centred)
    report = attack.run(tastes(), box, targets=40, rng=1)
    assert report.estimates["advantage"].low < 0.1
    assert report.estimates["fully_recovered"].value < 0.5


@pytest.mark.parametrize("mechanism", [gf.KNN(k=6), gf.PPNS(k=6, beta=2)], ids=repr)
def test_a_selection_mechanism_has_no_means_and_none_are_taken_away(mechanism: Any) -> None:
    probed = AdaptiveAttack(known=8, items=3).run(tastes(), mechanism, targets=8, rng=1)
    told = AdaptiveAttack(known=8, items=3, centred=False).run(tastes(), mechanism, targets=8, rng=1)
    assert probed.table().equals(told.table())


@pytest.mark.parametrize(
    ("box", "centred", "differ"),
    [
        (PerItemKNN(K), False, False),
        (PerItemKNN(K, centred=True), True, False),
        (ItemMeans(), False, False),
        (OwnMean(), True, False),
        (NoisyAnswers(gf.KNN(k=6), epsilon=4.0), False, True),
        (gf.BlackBox(NoisyAnswers(gf.KNN(k=6), epsilon=4.0)), False, True),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, bool) else str(value),
)
def test_a_few_questions_tell_what_a_box_is(box: Any, centred: bool, differ: bool) -> None:
    subject = Subject(tastes(), box)
    assert subject.answers_differ is differ
    if not differ:
        assert subject.centred is centred


def test_questions_share_a_fit_where_helpers_do_not_disturb_each_other() -> None:
    """The answers are those of one question at a time, for a fifth of the fits."""
    counted: dict[bool, int] = {}
    reports = []
    for alone in (True, False):
        fits = 0

        class Counting(PerItemKNN):
            def fit(self, ratings: gf.Ratings) -> Any:
                nonlocal fits
                fits += 1
                return super().fit(ratings)

        subject = Subject(tastes(), Counting(K))
        worlds = subject.worlds(K)
        assert isinstance(worlds, RefitWorlds)
        worlds._together = False if alone else None
        attack = AdaptiveAttack(known=16, fakes=K, items=5, centred=False)
        reports.append(attack.run_on(subject, targets=6, rng=1))
        counted[alone] = fits
    assert reports[0].table().equals(reports[1].table())
    assert counted[True] == 6 * 5 * 2 * 2
    assert counted[False] == 6 * 2 * 2 + 5 * 2  # the first questions are also asked one by one, to see


def test_fixed_neighbourhoods_do_not_share() -> None:
    box = gf.BlackBox(gf.NeighbourCF(gf.KNN(k=K), progress=False))
    subject = Subject(tastes(), box)
    worlds = subject.worlds(K)
    assert isinstance(worlds, RefitWorlds)
    AdaptiveAttack(known=16, fakes=K, items=3, centred=False).run_on(subject, targets=2, rng=1)
    assert worlds._together is False


@pytest.mark.slow
@pytest.mark.parametrize("centred", [False, True])
def test_the_usual_attackers_find_the_right_equations(centred: bool) -> None:
    """Nothing is known of the box; of ten neighbours ten fakes take all places but the target's."""
    subject = Subject(tastes(), gf.BlackBox(PerItemKNN(10, centred=centred)))
    report = strongest(subject, usual_attackers(subject, known=16), targets=32, rng=1)
    assert Design(fakes=10, helping="each") in probed(subject, 16).designs
    assert report.found.value > 0.9
    assert report.finding.verdict == "leaks"
    assert sum(one.strongest for one in report.tried) == 1
    attackers = [one for one in usual_attackers(subject, known=16) if isinstance(one, DesignedAttack)]
    decoded = {one.decode: one for one in attackers if one.designs[0].helping == "each"}
    solved = {name: decoded[name].run_on(subject, targets=32, rng=1) for name in ("solved", "solved_centred")}
    right, wrong = solved["solved_centred" if centred else "solved"], solved["solved" if centred else "solved_centred"]
    assert right.advantage > 0.5
    assert right.advantage > wrong.advantage


def test_client_side_noise_leaves_the_fakes_alone() -> None:
    ratings = tastes()
    fits: list[gf.Ratings] = []
    KNNAttack(known=5, fakes=3).run(ratings, Flattened(fits), targets=2, rng=1)
    assert [world.shape[0] for world in fits] == [93, 92] * 2
    for world in fits:
        n_real = world.shape[0] - 3
        assert set(world.csr[:n_real].data.tolist()) == {3.0}
        assert len(set(world.csr[n_real:].data.tolist())) > 1


def test_client_side_noise_is_the_same_in_both_worlds() -> None:
    class Shaken(Flattened):
        def perturbed(self, ratings: gf.Ratings, rng: Any) -> gf.Ratings:
            csr = ratings.csr
            moved = np.random.default_rng(rng).integers(1, 6, csr.nnz).astype(float)
            shaken = sparse.csr_array((moved, csr.indices, csr.indptr), shape=csr.shape)
            return gf.Ratings(shaken, ratings.users, ratings.items, ratings.scale)

    ratings = tastes()
    fits: list[gf.Ratings] = []
    report = KNNAttack(known=5, fakes=3).run(ratings, Shaken(fits), targets=2, rng=1)
    for position, row in enumerate(report.rows.tolist()):
        with_target, without = fits[2 * position : 2 * position + 2]
        others = np.delete(np.arange(90), row)
        np.testing.assert_array_equal(with_target.csr[others].toarray(), without.csr[:89].toarray())


def test_settings() -> None:
    with pytest.raises(SettingError, match="helpers must be"):
        AdaptiveAttack(known=3, helpers="near")  # type: ignore[arg-type]
