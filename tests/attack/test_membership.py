"""Membership by leaving known ratings out: known answers by hand, thresholds, and what a guarantee allows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

import goodfence as gf
from goodfence.attack.membership import MembershipReport, left_out_questions, likelihood_ratios
from goodfence.attack.roc import auc, roc_table, threshold_at, true_positive_bound, true_positives_at
from goodfence.attack.targets import find_targets, world_seed
from goodfence.errors import DataError, SettingError
from goodfence.report.serialize import plain
from goodfence.rng import Streams
from tests.support.attack_worlds import AnswersOnly, ItemMeans, OwnMean, tied_ratings


class Refitted(gf.NeighbourCF):
    """Another class, of which an attack knows nothing but how to fit and ask it."""


def strangers() -> gf.Ratings:
    """Return eight people of whom no two rated the same items: who is near to a fake is the target alone."""
    generator = np.random.default_rng(5)
    cells = np.zeros((8, 80))
    for row in range(8):
        cells[row, 10 * row : 10 * row + 10] = generator.integers(1, 6, size=10)
    return gf.Ratings(sparse.csr_array(cells), range(8), range(80), scale=(1, 5))


def test_strangers_are_all_told_apart() -> None:
    """Nobody else rated the left-out item: with the target the answer is right, without there is none."""
    found = gf.MembershipAttack(known=4, left_out=3).run(strangers(), gf.KNN(k=3), targets=8, rng=1)
    np.testing.assert_array_equal(found.scores, np.zeros(8))
    np.testing.assert_array_equal(found.scores_without, np.full(8, -3.0))
    assert found.auc.value == 1
    assert found.auc.high == 1
    assert 0.5 < found.auc.low < 1
    for point in found.points:
        assert point.threshold == -3
        assert (point.true_positives.value, point.false_positives.value) == (1, 0)
        assert (point.published.value, point.precision.value) == (1, 1)


def test_who_ignores_others_knows_nobody() -> None:
    """The worlds are the same, so the scores are, and the AUC is a half exactly."""
    attack = gf.MembershipAttack(known=4, left_out=3, fakes=3)
    found = attack.run(tied_ratings(3), OwnMean(), targets=12, rng=1)
    np.testing.assert_array_equal(found.scores, found.scores_without)
    assert found.auc.value == 0.5
    assert found.auc.low < 0.5 < found.auc.high


def slow_scores(ratings: gf.Ratings, model: Any, attack: gf.MembershipAttack, rng: int) -> Any:
    """Return the scores of everybody the long way: a dense matrix with the fakes below, fitted, and asked."""
    streams = Streams(rng)
    found, _ = find_targets(ratings, 6, attack.known, attack.choose, streams)
    questions = left_out_questions(found, attack.left_out, streams)
    dense = np.full(ratings.shape, np.nan)
    coordinates = ratings.csr.tocoo()
    dense[coordinates.row, coordinates.col] = coordinates.data
    scores = np.zeros((2, len(found)))
    for place, row in enumerate(questions.rows.tolist()):
        fake = np.full(ratings.shape[1], np.nan)
        fake[questions.known_columns[place]] = dense[row, questions.known_columns[place]]
        column = int(questions.columns[place])
        assert np.isnan(fake[column])
        for world, kept in enumerate((np.arange(len(dense)), np.delete(np.arange(len(dense)), row))):
            cells = np.vstack([dense[kept], *[fake] * model.mechanism.k])
            rows, columns = np.nonzero(~np.isnan(cells))
            starts = np.concatenate([[0], np.cumsum((~np.isnan(cells)).sum(axis=1))])
            csr = sparse.csr_array((cells[rows, columns], columns, starts), shape=cells.shape)
            seed = world_seed(rng, row, 1 + place % attack.left_out)
            users = [f"u{number}" for number in range(len(cells))]
            fitted = gf.NeighbourCF(model.mechanism, rng=seed)
            fitted.fit(gf.Ratings(csr, users, ratings.items, ratings.scale))
            (answer,) = fitted.predict([users[len(kept)]], ratings.items[[column]])
            error = 1.0 if np.isnan(answer) else min(abs(answer - dense[row, column]), 1.0)
            scores[world, place // attack.left_out] -= error
    return scores


@pytest.mark.parametrize("mechanism", [gf.KNN(k=4), gf.PPNS(k=4, beta=3), gf.NPNS(k=4), gf.PNCF(k=4)], ids=repr)
def test_scores_are_those_of_the_long_way(mechanism: Any) -> None:
    """Fast worlds, refitted worlds, and matrices written out by hand give the same scores."""
    ratings, attack = tied_ratings(2), gf.MembershipAttack(known=4, left_out=2)
    fast = attack.run(ratings, mechanism, targets=6, rng=11)
    slow = attack.run(ratings, Refitted(mechanism), targets=6, rng=11)
    by_hand = slow_scores(ratings, Refitted(mechanism), attack, 11)
    for found in (fast, slow):
        np.testing.assert_allclose(found.scores, by_hand[0], atol=1e-9)
        np.testing.assert_allclose(found.scores_without, by_hand[1], atol=1e-9)
    assert (by_hand[0] != by_hand[1]).any()
    np.testing.assert_array_equal(fast.scores, slow.scores)


def test_the_left_out_rating_is_no_part_of_what_fakes_know() -> None:
    ratings, streams = tied_ratings(4), Streams(3)
    found, _ = find_targets(ratings, 5, 4, "random", streams)
    asked = left_out_questions(found, 3, streams)
    assert (len(asked), asked.known_columns.shape) == (15, (15, 3))
    for place in range(15):
        owner = place // 3
        every = dict(zip(found.known_columns[owner], found.known_ratings[owner], strict=True))
        kept = dict(zip(asked.known_columns[place], asked.known_ratings[place], strict=True))
        assert {**kept, asked.columns[place]: asked.ratings[place]} == every
        assert asked.columns[place] not in kept
    for owner in range(5):
        assert len(set(asked.columns[3 * owner : 3 * owner + 3].tolist())) == 3


def run_on_twenty() -> MembershipReport:
    attack = gf.MembershipAttack(known=4, left_out=3)
    return attack.run(tied_ratings(5), gf.NPNS(k=4), targets=20, rng=2)


def test_the_half_that_is_measured_sets_no_threshold() -> None:
    """Whatever the measured half scores, the thresholds stay."""
    found = run_on_twenty()
    assert (found.measured.sum(), len(found.measured)) == (10, 20)
    again = replace(found, scores_without=np.where(found.measured, 9.0, found.scores_without))
    assert [p.threshold for p in again.points] == [p.threshold for p in found.points]
    assert [p.false_positives.value for p in again.points] == [1, 1]


def test_what_is_published_is_about_those_above_the_threshold() -> None:
    """Of the measured half the first three score high: their answers are published, and nobody else's."""
    found = run_on_twenty()
    above = np.flatnonzero(found.measured)[:3]
    scores = np.full(20, -9.0)
    scores[above] = 1.0
    scores[~found.measured] = 1.0  # they are not measured
    hidden, answered, right, *_ = found.recovery.counts
    for point in replace(found, scores=scores).points:
        assert point.true_positives.value == 0.3
        assert point.precision.value == pytest.approx(right[above].sum() / answered[above].sum())
        expected = right[above].sum() / hidden[found.measured].sum()
        assert point.published.value == pytest.approx(expected)
    assert found.precision_of_all.value == pytest.approx(right.sum() / answered.sum())
    assert 0 < right[above].sum() / answered[above].sum() != right.sum() / answered.sum()
    (nobody, _) = replace(found, scores=np.full(20, -9.0)).points
    assert (nobody.true_positives.value, nobody.published.value) == (0, 0)
    assert math.isnan(nobody.precision.value)


@pytest.mark.parametrize(
    ("scores", "rate", "threshold"),
    [
        ([5.0, 4.0, 3.0, 2.0, 1.0], 0.0, 5.0),
        ([5.0, 4.0, 3.0, 2.0, 1.0], 0.2, 4.0),
        ([5.0, 4.0, 3.0, 2.0, 1.0], 0.39, 4.0),
        ([5.0, 4.0, 3.0, 2.0, 1.0], 0.4, 3.0),
        ([5.0, 5.0, 5.0, 2.0, 1.0], 0.4, 5.0),
        ([0.0] * 100, 0.05, 0.0),
    ],
)
def test_thresholds_by_hand(scores: list[float], rate: float, threshold: float) -> None:
    found = threshold_at(np.array(scores), rate)
    assert found == threshold
    assert np.mean(np.array(scores) > found) <= rate


def test_a_threshold_of_a_rate_is_never_exceeded_by_more() -> None:
    generator = np.random.default_rng(4)
    for _ in range(200):
        scores = generator.integers(0, 9, size=generator.integers(1, 60)).astype(np.float64)
        rate = float(generator.random())
        found = threshold_at(scores, rate)
        assert np.mean(scores > found) <= rate
        lower = np.unique(scores)[np.unique(scores) < found]
        assert all(np.mean(scores > value) > rate for value in lower)


def test_auc_is_the_share_of_pairs() -> None:
    generator = np.random.default_rng(3)
    for _ in range(30):
        members = generator.integers(0, 6, size=generator.integers(1, 20)).astype(np.float64)
        others = generator.integers(0, 5, size=generator.integers(1, 20)).astype(np.float64)
        wins = [(a > b) + 0.5 * (a == b) for a in members for b in others]
        value, low, high = auc(members, others)
        assert value == pytest.approx(np.mean(wins), abs=1e-12)
        assert 0 <= low <= value <= high <= 1


def test_auc_interval_solves_its_equation() -> None:
    """Newcombe's method 5, with the variance of Hanley and McNeil written out again."""
    members, others = np.arange(30.0) + 12, np.arange(30.0)
    value, low, high = auc(members, others)
    for end in (low, high):
        q1, q2 = end / (2 - end), 2 * end**2 / (1 + end)
        variance = (end * (1 - end) + 29 * (q1 - end**2) + 29 * (q2 - end**2)) / 900
        assert abs(value - end) == pytest.approx(stats.norm.ppf(0.975) * math.sqrt(variance))


def test_bound_of_differential_privacy() -> None:
    """Both inequalities, by hand: P(E) <= e^eps P'(E) + delta, and the same for what is not in E."""
    assert true_positive_bound(0.0, 0.0, 0.05) == 0.05
    assert true_positive_bound(math.log(2), 0.01, 0.05) == pytest.approx(0.11)
    assert true_positive_bound(math.log(4), 0.0, 0.9) == pytest.approx(1 - 0.1 / 4)
    assert true_positive_bound(800.0, 0.0, 0.01) == 1
    assert true_positive_bound(1.0, 1.0, 0.01) == 1
    for rate in np.linspace(0, 1, 21):
        assert rate <= true_positive_bound(0.3, 1e-5, rate) <= 1


@pytest.mark.parametrize(
    ("model", "fits", "says", "bound"),
    [
        (gf.PrivateMeans(epsilon=1.0, unit="user"), None, "sees one fit: 0.027 at 1%", 0.136),
        (gf.PrivateMeans(epsilon=0.5, unit="user"), "each", "sees 2 fits, which add up", 0.136),
        (gf.PrivateMeans(epsilon=1.0, unit="rating"), None, "for one rating", None),
        (gf.PrivateMeans(epsilon=1.0, unit="user", rng=7), None, "No guarantee", None),
        (gf.KNN(k=3), None, "No guarantee", None),
        (gf.PPNS(k=3, beta=2), None, "No guarantee", None),
        (ItemMeans(), None, "No guarantee", None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_a_guarantee_bounds(model: Any, fits: Any, says: str, bound: float | None) -> None:
    attack = gf.MembershipAttack(known=3, left_out=2, fakes=3, fits=fits)
    found = attack.run(tied_ratings(6), model, targets=4, rng=1)
    assert says in found.bound_in_words
    assert found.points[1].bound == (None if bound is None else pytest.approx(bound, abs=5e-4))


class Counting(ItemMeans):
    """Counts its fits, and what it is fitted to."""

    worlds: list[tuple[int, int]] = []  # noqa: RUF012 - shared on purpose

    def fit(self, ratings: gf.Ratings) -> Counting:
        Counting.worlds.append((ratings.shape[0], ratings.n_ratings))
        ItemMeans.fit(self, ratings)
        return self


def test_how_many_fits_a_score_rests_on() -> None:
    ratings = tied_ratings(7)
    n_users, n_ratings = ratings.shape[0], ratings.n_ratings
    for fits, n_score in (("one", 1), ("each", 3), (None, 3)):
        Counting.worlds = []
        attack = gf.MembershipAttack(known=4, left_out=3, fakes=2, fits=fits)  # type: ignore[arg-type]
        found = attack.run(ratings, Counting(), targets=5, rng=1)
        assert found.n_fits == n_score
        assert len(Counting.worlds) == 5 * 2 * (n_score + 1)  # and one for the hidden ratings
        if fits == "one":  # three fakes with three ratings each
            assert Counting.worlds[0] == (n_users + 3, n_ratings + 9)
            assert Counting.worlds[1][0] == n_users + 2


def test_one_fit_asks_the_same_of_who_ignores_fakes() -> None:
    """The mean of an item that no fake rated is the same in one fit as in several."""
    ratings = tied_ratings(8)
    common: dict[str, Any] = {"known": 4, "left_out": 4, "fakes": 1}
    one, each = (
        gf.MembershipAttack(**common, fits=fits).run(ratings, OwnMean(), targets=6, rng=1) for fits in ("one", "each")
    )
    np.testing.assert_array_equal(one.scores, each.scores)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"known": 1}, "known must be an integer of at least 2, got 1"),
        ({"known": 4, "left_out": 0}, "left_out must be an integer of at least 1"),
        ({"known": 4, "left_out": 5}, "left_out must be at most known, got 5"),
        ({"known": 8, "fakes": 0}, "fakes must be an integer of at least 1"),
        ({"known": 8, "choose": "rarely"}, "did you mean 'rarest'"),
        ({"known": 8, "fits": "all"}, "fits must be one of each, one or None"),
        ({"known": 8, "score": "lria"}, "score must be one of gap, lira"),
        ({"known": 8, "shadows": 1}, "shadows must be an integer of at least 2"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        gf.MembershipAttack(**settings)


def test_refused() -> None:
    ratings = tied_ratings(9)
    attack = gf.MembershipAttack(known=3, left_out=2)
    with pytest.raises(DataError, match="at least 4 targets"):
        attack.run(ratings, gf.KNN(k=3), targets=3, rng=1)
    with pytest.raises(SettingError, match="fakes must be given"):
        attack.run(ratings, ItemMeans(), targets=4, rng=1)
    once = gf.MembershipAttack(known=3, left_out=2, fits="one", fakes=2)
    with pytest.raises(SettingError, match="cannot predict for its users"):
        once.run(ratings, AnswersOnly(gf.KNN(k=3)), targets=4, rng=1)
    found = gf.MembershipAttack(known=3, left_out=2, fakes=3).run(ratings, AnswersOnly(gf.KNN(k=3)), targets=4, rng=1)
    assert found.n_fits == 2


def test_a_report_is_plain_and_holds_no_id() -> None:
    found = gf.MembershipAttack(known=3, left_out=2, choose="rarest").run(
        tied_ratings(10), gf.KNN(k=3), targets=8, rng=4
    )
    told = json.dumps(plain(found.to_dict()))
    assert "user " not in told + repr(found)
    assert repr(found).startswith("MembershipReport(MembershipAttack(known=3, left_out=2")
    assert json.loads(told)["auc"]["value"] == found.auc.value
    assert [point["rate"] for point in json.loads(told)["points"]] == [0.01, 0.05]
    named = gf.MembershipAttack(known=2, left_out=1, choose=[0, 3])
    assert named._stated()["choose"] == "named items"


@pytest.mark.parametrize("rng", [5, [5, 6], np.random.SeedSequence(5)], ids=str)
def test_a_seed_repeats_it(rng: Any) -> None:
    attack = gf.MembershipAttack(known=3, left_out=2)
    first, second = (attack.run(tied_ratings(11), gf.PPNS(k=3, beta=2), targets=8, rng=rng) for _ in range(2))
    np.testing.assert_array_equal(first.scores, second.scores)
    np.testing.assert_array_equal(first.measured, second.measured)


def test_a_generator_gives_one_set_of_targets() -> None:
    """What is published is about the targets that were scored, whatever randomness is given."""
    for rng in (np.random.default_rng(3), None):
        found = gf.MembershipAttack(known=4, left_out=3).run(strangers(), gf.KNN(k=3), targets=5, rng=rng)
        assert found.recovery.n_targets == 5
        assert found.recovery.found.value == 1


@pytest.mark.real("ml-100k")
def test_members_of_real_data_are_told_apart() -> None:
    """An independent trial measured 0.990 on the same data; 0.97 to 0.998 is the 95% interval for 200 targets."""
    train, _ = gf.holdout(gf.load("ml-100k"), fraction=0.2, rng=7)
    found = gf.MembershipAttack(known=16, left_out=6).run(train, gf.KNN(k=50), targets=200, rng=7)
    assert 0.97 < found.auc.value < 0.999
    at_five = found.points[1]
    assert at_five.true_positives.value > 0.9
    assert at_five.precision.value > found.precision_of_all.value


def many_strangers(n: int) -> gf.Ratings:
    """Return `n` people of whom no two rated the same items."""
    values = np.random.default_rng(6).integers(1, 6, size=6 * n).astype(np.float64)
    csr = sparse.csr_array((values, np.arange(6 * n), 6 * np.arange(n + 1)), shape=(n, 6 * n))
    return gf.Ratings(csr, range(n), range(6 * n), scale=(1, 5))


@pytest.mark.parametrize("score", ["gap", "lira"])
def test_a_recommender_that_leaks_membership_entirely(score: Any) -> None:
    attack = gf.MembershipAttack(known=4, left_out=2, score=score, shadows=2)
    found = attack.run(many_strangers(120), gf.KNN(k=3), targets=120, rng=1)
    assert found.low_rates[0.01].value == found.auc.value == found.low_rates[0.01].high == 1
    assert math.isnan(found.low_rates[0.001].value)
    says = "cannot be measured with 120 non-members (1,000 or more are needed)"
    assert found.in_words(0.001) == says
    assert f"TPR at 0.1% FPR: {says}" in repr(found)
    curve = found.roc()
    above = np.asarray(curve["true_positive_rate"]) < 1  # every member is above all others
    assert set(np.asarray(curve["false_positive_rate"])[above].tolist()) == {0.0}


@pytest.mark.parametrize("score", ["gap", "lira"])
def test_a_recommender_that_leaks_nothing(score: Any) -> None:
    """The worlds are the same, in shadow fits too: the ROC curve is the diagonal."""
    attack = gf.MembershipAttack(known=4, left_out=3, fakes=3, score=score, shadows=3)
    found = attack.run(tied_ratings(3, n_users=140), OwnMean(), targets=110, rng=1)
    curve = found.roc()
    assert curve["false_positive_rate"].equals(curve["true_positive_rate"])
    assert found.low_rates[0.01].value <= 0.01
    assert found.low_rates[0.01].high < 0.1
    if score == "lira":  # in equals out in every shadow fit, so that no answer tells anything
        np.testing.assert_array_equal(found.scores, np.zeros(found.n_targets))


class NoisyNearest:
    """Answers with the rating of the rater nearest to the asker, behind noise: little on even items, much on odd."""

    def __init__(self, rng: int | None = None) -> None:
        self.rng = rng

    def fit(self, ratings: gf.Ratings) -> NoisyNearest:
        self.ratings_, self.cells_ = ratings, ratings.csr.toarray()
        spread = np.where(np.arange(ratings.shape[1]) % 2, 3.0, 0.1)
        self.noise_ = np.random.default_rng(self.rng).normal(size=ratings.shape[1]) * spread
        return self

    def predict(self, users: Any, items: Any) -> Any:
        told = []
        for row, column in zip(self.ratings_.rows(users), self.ratings_.columns(items), strict=True):
            alike = (self.cells_ == self.cells_[row]).sum(axis=1) * (self.cells_[:, column] > 0)
            told.append(self.cells_[alike.argmax(), column] + self.noise_[column])
        return np.array(told)


def test_likelihood_ratios_beat_errors_where_some_answers_are_noise() -> None:
    """The errors on noisy items count as much as the others; the ratios leave them out."""
    cells = np.random.default_rng(8).integers(1, 6, size=(60, 16)).astype(np.float64)
    ratings = gf.Ratings(sparse.csr_array(cells), range(60), range(16), scale=(1, 5))
    gap, lira = (
        gf.MembershipAttack(known=10, left_out=3, fakes=1, score=score, shadows=8).run(
            ratings, NoisyNearest(), targets=40, rng=3
        )
        for score in ("gap", "lira")
    )
    assert 0.6 < gap.auc.value < lira.auc.value
    assert lira.at(0.05).true_positives.value >= gap.at(0.05).true_positives.value


def test_likelihood_ratios_by_hand() -> None:
    """One question, four shadow fits: the variance of all questions is its own."""
    shadows = np.array([[0.0, -1.0], [-0.2, -0.6], [0.0, -1.0], [-0.2, -0.6]])[:, :, np.newaxis]
    variances = shadows.var(axis=0, ddof=1)[:, 0] + 0.03**2
    for part in (0.0, -0.5):
        inside, outside = (
            stats.norm.logpdf(part, mean, np.sqrt(variance))
            for mean, variance in zip((-0.1, -0.8), variances, strict=True)
        )
        (ratio,) = likelihood_ratios(np.array([[part], [part]]), shadows)[0]
        assert ratio == pytest.approx(inside - outside)


def test_shadow_fits_hold_half_of_the_users_and_the_target() -> None:
    ratings = tied_ratings(7)
    Counting.worlds = []
    attack = gf.MembershipAttack(known=4, left_out=2, fakes=2, score="lira", shadows=3)
    attack.run(ratings, Counting(), targets=5, rng=1)
    sizes = [n_users for n_users, _ in Counting.worlds]
    whole, half = ratings.shape[0] + 2, ratings.shape[0] // 2 + 2
    assert sizes.count(whole) == sizes.count(whole - 1) == 5 * 3  # two questions and the hidden ratings
    assert sizes.count(half) == sizes.count(half - 1) == 5 * 2 * 3
    assert len(sizes) == 2 * (15 + 30)


def test_roc_by_hand() -> None:
    curve = roc_table(np.array([3.0, 2.0, 2.0, 0.0]), np.array([2.0, 1.0, 1.0, 0.0]))
    assert curve["false_positive_rate"].to_pylist() == [0, 0, 0.25, 0.75, 1]
    assert curve["true_positive_rate"].to_pylist() == [0, 0.25, 0.75, 0.75, 1]


def test_low_rates_need_enough_non_members() -> None:
    members, others = np.arange(999.0) + 900, np.arange(999.0)
    assert math.isnan(true_positives_at(members, others, 0.001).value)
    one_more = true_positives_at(members, np.arange(1000.0), 0.001)
    assert one_more.value == pytest.approx(900 / 999)  # above 998, which one of a thousand exceeds
    assert one_more.low == 0  # by chance no non-member may be above the true threshold


@pytest.mark.real("ml-100k")
def test_likelihood_ratios_find_more_members_in_real_data() -> None:
    """With 8 known ratings of all 943 users the errors gave 0.888, the ratios 0.977."""
    ratings, common = gf.load("ml-100k"), {"targets": 300, "rng": 7}
    gap, lira = (
        gf.MembershipAttack(known=8, score=score).run(ratings, gf.KNN(k=50), **common)  # type: ignore[arg-type]
        for score in ("gap", "lira")
    )
    assert lira.auc.low > gap.auc.high
    assert lira.low_rates[0.01].value > gap.low_rates[0.01].value
