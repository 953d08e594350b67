"""The systems that the paper names: contracts, hand examples, and the statements about each."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import binomtest, kstest

import goodfence as gf
from goodfence.attack.refits import RefitWorlds
from goodfence.errors import DataError, ModelFileError, SettingError
from goodfence.neighbours.similarity import Similarity
from goodfence.papers.published.dp_als import CLAMP, DPALS
from goodfence.papers.published.ind_knn import IndKNN
from goodfence.papers.published.perturbations import _chained, indication
from goodfence.papers.published.perturbed import means_and_spreads
from goodfence.papers.published.published_recommender import require_few_items
from goodfence.papers.published.randomised_response import TOTAL, Channel, laplace, randomised_response
from goodfence.papers.published.reuse_knn import respond
from goodfence.privacy.fixed_point import UserProfiles
from goodfence.privacy.noise import SIGMA, Publisher, SystemNoise
from goodfence.rng import Streams
from tests.support.contracts import FALSE_ALARM, RecommenderContract

SMALL = gf.synthetic(users=60, items=40, ratings=900, rng=3)
KNN = gf.NeighbourCF(gf.KNN(k=5))


def of_rows(rows: list[dict[str, float]], scale: tuple[float, ...] = (1, 5)) -> gf.Ratings:
    items = sorted({item for row in rows for item in row})
    table = np.full((len(rows), len(items)), np.nan)
    for at, row in enumerate(rows):
        for item, value in row.items():
            table[at, items.index(item)] = value
    made = ~np.isnan(table)
    csr = sparse.csr_array((table[made], np.nonzero(made)), shape=table.shape)
    return gf.Ratings(csr, list(range(len(rows))), items, scale)


class TestNoisyAnswers(RecommenderContract):
    fresh = True

    def made(self) -> Any:
        return gf.papers.NoisyAnswers(KNN, epsilon=2.0, rng=1)


class TestFixedNoisyAnswers(RecommenderContract):
    from_profiles = False

    def made(self) -> Any:
        return gf.papers.NoisyAnswers(KNN, epsilon=2.0, fresh=False, rng=1)


PERTURBATIONS: list[Any] = [
    gf.papers.RandomisedPerturbation(),
    gf.papers.RandomisedPerturbation(law="coin", beta_max=0.0),
    gf.papers.NeNDS(),
    gf.papers.NeNDS(within="person"),
    gf.papers.BlurMe(attribute={user: user % 2 == 0 for user in SMALL.users.tolist()}, extra=0.1),
    gf.papers.RandomisedResponse(epsilon=2.0),
    gf.papers.LocalLaplace(),
    gf.papers.ItemSwap(),
]


@pytest.fixture(params=PERTURBATIONS, ids=lambda by: type(by).__name__)
def by(request: pytest.FixtureRequest) -> Any:
    return request.param


class TestPerturbed(RecommenderContract):
    from_profiles = False

    @pytest.fixture(autouse=True)
    def _by(self, by: Any) -> None:
        self.by = by

    def made(self) -> Any:
        return gf.papers.Perturbed(KNN, by=self.by, rng=1)


class TestSlopeOne(RecommenderContract):
    def made(self) -> Any:
        return gf.papers.SlopeOne(noise=1.0, rng=1)


class TestThresholdNeighbours(RecommenderContract):
    def made(self) -> Any:
        return gf.papers.ThresholdNeighbours(threshold=0.2, dense=30, bits=7)


class TestMatrixFactorisation(RecommenderContract):
    def made(self) -> Any:
        return gf.papers.MatrixFactorisation(rank=3, sweeps=3)


@pytest.mark.parametrize("variant", ["userknn", "expect", "gain", "reuse"])
class TestReuseKNN(RecommenderContract):
    fresh = True

    @pytest.fixture(autouse=True)
    def _variant(self, variant: Any) -> None:
        self.variant = variant

    def made(self) -> Any:
        return gf.papers.ReuseKNN(k=5, variant=self.variant, rng=1)


class TestIndKNN(RecommenderContract):
    fresh = True

    def made(self) -> Any:
        return gf.papers.IndKNN(epsilon=8.0, rng=1)


class TestDPALS(RecommenderContract):
    def made(self) -> Any:
        return gf.papers.DPALS(epsilon=8.0, items="from ratings", rng=1)


# Laplace noise on the answer.


def test_noise_on_the_answer_has_its_distribution_and_averages_out() -> None:
    model = gf.papers.NoisyAnswers(KNN, epsilon=2.0, clip=False, rng=5).fit(SMALL)
    plain = float(KNN.fit(SMALL).predict(SMALL.users[:1], SMALL.items[7:8])[0])
    users, items = np.repeat(SMALL.users[0], 20_000), np.repeat(SMALL.items[7], 20_000)
    noise = model.predict(users, items) - (3.0 if math.isnan(plain) else plain)
    assert kstest(noise, "laplace", args=(0, 4 / 2.0)).pvalue > FALSE_ALARM
    assert noise.var() == pytest.approx(2 * (4 / 2.0) ** 2, rel=0.1)


def test_without_noise_the_answers_are_the_recommenders() -> None:
    cells = np.repeat(np.arange(10), 20), np.tile(np.arange(20), 10)
    told = gf.papers.NoisyAnswers(KNN, epsilon=1e9, rng=1).fit(SMALL).predict_cells(*cells)
    plain = KNN.fit(SMALL).predict_cells(*cells)
    np.testing.assert_allclose(told, np.where(np.isnan(plain), 3.0, plain), atol=1e-6)


def test_one_answer_is_proved_and_endless_ones_are_not() -> None:
    assert gf.papers.NoisyAnswers(KNN, epsilon=1.0).guarantee().status == "none"
    limited = gf.papers.NoisyAnswers(KNN, epsilon=0.5, questions=3)
    stated = limited.guarantee()
    assert (stated.status, stated.unit, stated.epsilon) == ("proved", "rating", 1.5)
    assert gf.papers.NoisyAnswers(KNN, questions=3, sensitivity=0.1).guarantee().status == "none"
    limited.fit(SMALL).predict(SMALL.users[:3], SMALL.items[:3])
    with pytest.raises(SettingError, match="0 answers are left"):
        limited.predict(SMALL.users[:1], SMALL.items[:1])


def test_a_saved_model_has_given_its_answers(tmp_path: Path) -> None:
    model = gf.papers.NoisyAnswers(KNN, questions=3).fit(SMALL)
    model.predict(SMALL.users[:2], SMALL.items[:2])
    model.save(tmp_path / "model.gf")
    with pytest.raises(SettingError, match="answers are left"):
        gf.load_model(tmp_path / "model.gf").predict(SMALL.users[:2], SMALL.items[:2])


def test_fixed_noise_is_of_the_profile_and_the_item() -> None:
    model = gf.papers.NoisyAnswers(KNN, fresh=False, rng=1).fit(SMALL)
    profile = {SMALL.items[0]: 4.0, SMALL.items[3]: 2.0}
    turned = dict(reversed(profile.items()))
    first, again = model.predict(profile, SMALL.items[5:9]), model.predict(turned, SMALL.items[5:9])
    np.testing.assert_array_equal(first, again)
    other = model.predict({SMALL.items[0]: 4.0}, SMALL.items[5:9])
    assert (first != other).any()


# Exact channels.


@pytest.mark.parametrize(
    ("epsilon", "q", "p"), [(1.0, 0.404610, 0.148848), (2.0, 0.648786, 0.087804), (4.0, 0.931738, 0.017065)]
)
def test_randomised_response_keeps_the_value_as_often_as_it_says(epsilon: float, q: float, p: float) -> None:
    table = randomised_response(5, epsilon).counts / TOTAL
    assert np.diag(table) == pytest.approx(np.full(5, q), abs=1e-6)
    assert table[0, 1] == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("make", [randomised_response, lambda n, epsilon: laplace(n, 16, epsilon)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
def test_a_channel_keeps_its_epsilon(make: Callable[[int, float], Channel], epsilon: float) -> None:
    channel = make(5, epsilon)
    assert (channel.counts.sum(axis=1) == TOTAL).all()
    assert 0.99 * epsilon < channel.epsilon <= epsilon


def test_a_channel_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(SettingError, match="too coarse"):
        randomised_response(5, 60.0)
    assert Channel(np.array([[TOTAL, 0], [0, TOTAL]])).epsilon == math.inf


def test_what_is_sent_has_the_channels_distribution() -> None:
    channel, n = randomised_response(5, 1.0), 40_000
    sent = channel.send(np.full(n, 2), Streams(3).words(n, 0))
    for value in range(5):
        often = int((sent == value).sum())
        assert binomtest(often, n, channel.counts[2, value] / TOTAL).pvalue > FALSE_ALARM


def test_local_noise_is_proved_for_the_value_and_not_with_a_seed() -> None:
    for made in (gf.papers.RandomisedResponse(epsilon=2.0), gf.papers.LocalLaplace(epsilon=2.0)):
        stated = gf.papers.Perturbed(KNN, by=made).guarantee()
        assert (stated.status, stated.unit, stated.adjacency) == ("proved", "rating", "replace")
        assert stated.epsilon == 2.0
        assert gf.papers.Perturbed(KNN, by=made, rng=1).guarantee().status == "none"


def test_local_noise_needs_a_declared_scale_with_steps() -> None:
    observed = gf.Ratings(SMALL.csr, SMALL.users, SMALL.items)
    with pytest.raises(DataError, match="declared"):
        gf.papers.Perturbed(KNN, by=gf.papers.RandomisedResponse()).fit(observed)
    smooth = gf.Ratings(SMALL.csr, SMALL.users, SMALL.items, gf.Scale(1, 5, None))
    with pytest.raises(DataError, match="steps"):
        gf.papers.Perturbed(KNN, by=gf.papers.RandomisedResponse()).fit(smooth)


def test_unseeded_noise_is_never_the_same() -> None:
    model = gf.papers.Perturbed(KNN, by=gf.papers.RandomisedResponse(epsilon=1.0))
    first, second = (model.perturbed(SMALL).csr.data for _ in range(2))
    assert (first != second).any()


# What users send.


@pytest.mark.parametrize(
    "by",
    [
        gf.papers.RandomisedPerturbation(),
        gf.papers.RandomisedPerturbation(law="coin"),
        gf.papers.RandomisedResponse(),
        gf.papers.LocalLaplace(),
    ],
    ids=str,
)
def test_the_noise_of_a_user_is_theirs_whoever_else_is_there(by: Any) -> None:
    sent = gf.papers.Perturbed(KNN, by=by).perturbed(SMALL, 9)
    half = SMALL.csr[30:]
    rest = gf.Ratings(half, SMALL.users[30:], SMALL.items, SMALL.scale)
    alone = gf.papers.Perturbed(KNN, by=by).perturbed(rest, 9)
    np.testing.assert_allclose(sent.csr[30:].toarray(), alone.csr.toarray())


def test_fakes_send_what_they_like_and_the_others_the_same_in_both_worlds(by: Any) -> None:
    model = gf.papers.Perturbed(KNN, by=by)
    worlds = RefitWorlds(SMALL, model, 3, similarity=Similarity.of("cosine"))
    sent = worlds._sent(5)
    accounts: list[Any] = [(np.array([1, 4]), np.array([1.0, 5.0]))] * 3
    inside, _ = worlds._world(sent, accounts, 3, None, 5)
    outside, _ = worlds._world(sent, accounts, 3, 7, 5)
    others = np.delete(np.arange(60), 7)
    received, without = inside.ratings_.csr, outside.ratings_.csr
    assert (received[others] != without[:59]).nnz == 0
    assert (received[:60] != sent.csr).nnz == 0
    assert set(received[60:].data.tolist()) == {1.0, 5.0}


def test_fit_lets_users_change_their_ratings_once() -> None:
    model = gf.papers.Perturbed(KNN, by=gf.papers.RandomisedResponse(epsilon=1.0), rng=4)
    sent = model.perturbed(SMALL, 4)
    assert 0.3 < (sent.csr.data == SMALL.csr.data).mean() < 0.5
    np.testing.assert_array_equal(model.fit(SMALL).ratings_.csr.data, sent.csr.data)
    np.testing.assert_array_equal(model.fit_sent(sent).ratings_.csr.data, sent.csr.data)


def test_randomised_perturbation_moves_each_rating_by_bounded_noise_of_one_spread() -> None:
    many = gf.synthetic(users=40, items=400, ratings=12_000, rng=3)
    by = gf.papers.RandomisedPerturbation(sigma_max=2.0, beta_max=0.0)
    sent = by.perturb(many, Streams(3))
    means, spreads = means_and_spreads(many.csr)
    owners = np.repeat(np.arange(40), np.diff(many.csr.indptr))
    noise = (sent.ratings.csr.data - many.csr.data) / spreads[owners]
    for row in range(40):
        sigma = Streams(3).at(_person(many.users[row])).uniform(0, 2.0)
        own = noise[owners == row]
        assert np.abs(own).max() <= math.sqrt(3) * sigma + 1e-9
        assert own.std() == pytest.approx(sigma, rel=0.15)
    np.testing.assert_array_equal(sent.means, means)


def _person(user: Any) -> int:
    from goodfence.papers.published.published_recommender import person

    return person(user.item() if hasattr(user, "item") else user)


def test_filling_never_touches_what_was_rated() -> None:
    filled = gf.papers.RandomisedPerturbation(sigma_max=0.0, beta_max=50.0).perturb(SMALL, Streams(1))
    dense, plain = filled.ratings.csr.toarray(), SMALL.csr.toarray()
    np.testing.assert_allclose(dense[plain > 0], plain[plain > 0])
    assert filled.ratings.n_ratings > SMALL.n_ratings


def test_z_scores_are_undone_for_the_asker_alone() -> None:
    rows = [{"a": 1.0, "b": 5.0, "c": 3.0}, {"a": 2.0, "b": 4.0, "c": 4.0}]
    by = gf.papers.RandomisedPerturbation(sigma_max=0.0, beta_max=0.0)
    model = gf.papers.Perturbed(gf.NeighbourCF(gf.KNN(k=1)), by=by, rng=1).fit(of_rows(rows))
    mean, spread = 10 / 3, math.sqrt(8 / 9)
    wanted = 3 + math.sqrt(8 / 3) * (4.0 - mean) / spread
    assert model.predict([0], ["c"])[0] == pytest.approx(wanted)


def test_nends_only_exchanges() -> None:
    by_column = gf.papers.NeNDS(size=4).perturb(SMALL, Streams(1)).ratings.csr
    for column in range(SMALL.shape[1]):
        before, after = SMALL.csr[:, [column]], by_column[:, [column]]
        assert sorted(before.data.tolist()) == sorted(after.data.tolist())
    by_person = gf.papers.NeNDS(within="person").perturb(SMALL, Streams(1)).ratings.csr
    for row in range(SMALL.shape[0]):
        assert sorted(SMALL.csr[[row]].data.tolist()) == sorted(by_person[[row]].data.tolist())


@pytest.mark.parametrize("where", ["column", "person"])
def test_with_continuous_ratings_nobody_keeps_their_own(where: Any) -> None:
    values = np.random.default_rng(1).permutation(SMALL.csr.nnz) / SMALL.csr.nnz * 4 + 1
    csr = sparse.csr_array((values, SMALL.csr.indices, SMALL.csr.indptr), SMALL.shape)
    distinct = gf.Ratings(csr, SMALL.users, SMALL.items, gf.Scale(1, 5, None))
    sent = gf.papers.NeNDS(within=where).perturb(distinct, Streams(1)).ratings
    rows = np.repeat(np.arange(60), np.diff(distinct.csr.indptr))
    alone = np.bincount(rows)[rows] == 1 if where == "person" else np.bincount(csr.indices)[csr.indices] == 1
    assert ((sent.csr.data != distinct.csr.data) | alone).all()
    assert alone.mean() < 0.1


@pytest.mark.parametrize("strategy", ["random", "sampled", "greedy"])
def test_blurme_adds_and_changes_nothing(strategy: Any) -> None:
    sparse_ones = gf.synthetic(users=60, items=300, ratings=900, rng=3)
    kinds = {user: user % 3 == 0 for user in sparse_ones.users.tolist()}
    sent = gf.papers.BlurMe(attribute=kinds, extra=0.2, strategy=strategy).perturb(sparse_ones, Streams(1))
    dense, plain = sent.ratings.csr.toarray(), sparse_ones.csr.toarray()
    np.testing.assert_array_equal(dense[plain > 0], plain[plain > 0])
    added = np.diff(sent.ratings.csr.indptr) - np.diff(sparse_ones.csr.indptr)
    wanted = np.ceil(0.2 * np.diff(sparse_ones.csr.indptr))
    assert (added <= wanted).all()
    assert (added == wanted).mean() > 0.5


def test_blurme_adds_what_indicates_the_other_kind_most_to_everybody() -> None:
    """By hand: that somebody before rated the strongest item takes it from nobody after them."""
    rows: list[dict[str, float]] = [{"a": 5.0}, {"c": 2.0}, {"b": 4.0, "c": 2.0}, {"b": 2.0}]
    ratings = of_rows(rows)
    kinds, strength = np.array([False, False, True, False]), np.array([3.0, 2.0, -1.0])
    blurred = gf.papers.BlurMe(extra=1.0, strategy="greedy")
    sent = blurred.added(ratings, kinds, strength, Streams(1)).csr.toarray()
    # The first adds b, whose mean is 3; the second and the last a; the third, of the other kind, has what it could add.
    np.testing.assert_array_equal(sent, [[5, 3, 0], [5, 0, 2], [0, 4, 2], [5, 2, 0]])
    assert strength.tolist() == [3.0, 2.0, -1.0]


def test_what_indicates_a_kind_is_the_minimum_of_the_logistic_loss() -> None:
    """As scipy finds it without a gradient."""
    rated = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1.0]])
    kinds = np.array([True, True, False, False, True, False])

    def loss(at: Any) -> float:
        margin = np.where(kinds, 1, -1) * (rated @ at[:3] + at[3])
        return float(np.log1p(np.exp(-margin)).sum() + (at[:3] ** 2).sum() / 2)

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}
    wanted = minimize(loss, np.zeros(4), method="Nelder-Mead", options=options).x[:3]
    found = indication(sparse.csr_array(3.0 * rated), kinds)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_cells_are_grouped_with_the_most_similar_items_that_are_left() -> None:
    alike = np.array([[0, 0.1, 0.2, 0.9], [0.1, 0, 0.3, 0.8], [0.2, 0.3, 0, 0.7], [0.9, 0.8, 0.7, 0]])
    cells = np.arange(4)
    assert _chained(cells, cells, alike, 2).tolist() == [0, 3, 1, 2]
    assert _chained(cells[::-1], cells, alike, 3).tolist() == [3, 0, 1, 2]


@pytest.mark.parametrize("n_items", [8_000, 8_001])
def test_a_matrix_of_all_pairs_is_for_8000_items_at_most(n_items: int) -> None:
    many = gf.Ratings(sparse.csr_array((1, n_items)), range(1), range(n_items), (1, 5))
    if n_items == 8_000:
        require_few_items(many, "it")
        return
    with pytest.raises(SettingError, match="8,000"):
        require_few_items(many, "it")


def test_blurme_needs_its_attribute_and_does_not_show_it() -> None:
    with pytest.raises(DataError, match="attribute must be given to fit"):
        gf.papers.Perturbed(KNN, by=gf.papers.BlurMe()).fit(SMALL)
    with pytest.raises(DataError, match="for every user"):
        gf.papers.Perturbed(KNN, by=gf.papers.BlurMe(attribute={1: True})).fit(SMALL)
    assert "True" not in repr(gf.papers.BlurMe(attribute={1: True}))


def test_item_swapping_moves_about_as_many_as_it_says() -> None:
    sent = gf.papers.ItemSwap(p=0.5, group=3).perturb(SMALL, Streams(1)).ratings
    stayed = sent.csr.multiply(SMALL.csr > 0).nnz / SMALL.n_ratings
    assert 0.4 < stayed < 0.9
    nothing = gf.papers.ItemSwap(p=0.0).perturb(SMALL, Streams(1)).ratings
    assert (nothing.csr != SMALL.csr).nnz == 0


def test_a_perturbation_is_asked_for() -> None:
    with pytest.raises(SettingError, match="by must be a perturbation"):
        gf.papers.Perturbed(KNN, by=gf.KNN(k=5))  # type: ignore[arg-type]


# Slope One.


def test_slope_one_by_hand() -> None:
    ratings = of_rows([{"x": 4.0, "j": 2.0}, {"x": 5.0}])
    assert gf.papers.SlopeOne().fit(ratings).predict({"j": 2.0}, ["x"])[0] == 4.0


def test_differences_are_antisymmetric_and_one_user_moves_only_their_items() -> None:
    model = gf.papers.SlopeOne(noise=1.0, rng=1).fit(SMALL)
    np.testing.assert_allclose(model.differences_, -model.differences_.T, atol=1e-9)
    assert (np.diag(model.counts_) == 0).all()
    rest = gf.Ratings(SMALL.csr[1:], SMALL.users[1:], SMALL.items, SMALL.scale)
    changed = np.abs(gf.papers.SlopeOne(noise=1.0, rng=1).fit(rest).differences_ - model.differences_) > 1e-9
    own = np.zeros(SMALL.shape[1], dtype=bool)
    own[SMALL.csr[[0]].indices] = True
    assert not changed[~own].any()
    assert changed.any()


def test_a_constant_more_of_the_asker_is_a_constant_more_of_the_answer() -> None:
    model = gf.papers.SlopeOne().fit(SMALL)
    low = dict.fromkeys(SMALL.items[:4], 2.0)
    high = dict.fromkeys(SMALL.items[:4], 3.0)
    first, second = model.predict(low, SMALL.items[5:]), model.predict(high, SMALL.items[5:])
    np.testing.assert_allclose(second - first, np.where(np.isnan(first), np.nan, 1.0))


def test_noise_of_pairs_is_bounded_and_uniform() -> None:
    many = of_rows([{"a": 3.0, "b": 3.0} for _ in range(2_000)])
    alone = [
        gf.papers.SlopeOne(noise=2.0, rng=1).fit(gf.Ratings(many.csr[[row]], [row], many.items, (1, 5)))
        for row in range(300)
    ]
    noise = np.array([model.differences_[0, 1] for model in alone])
    assert np.abs(noise).max() <= 2
    assert kstest(noise, "uniform", args=(-2, 4)).pvalue > FALSE_ALARM
    whole = gf.papers.SlopeOne(noise=2.0, rng=1).fit(many).differences_[0, 1]
    assert abs(whole) < 6 * 2 * math.sqrt(2_000 / 3)


def test_whoever_attacks_adds_no_noise() -> None:
    model = gf.papers.SlopeOne(noise=2.0)
    model.perturbed(SMALL, 1)
    both = of_rows([{str(item): 5.0 for item in range(4)}])
    world = gf.Ratings(both.csr, [10_000], both.items, both.scale)
    assert gf.papers.SlopeOne(noise=2.0, rng=1).fit(world).differences_.max() != 0
    model.rng = 1
    assert model.fit_sent(world).differences_.max() == 0


def test_too_many_items_are_refused() -> None:
    wide = gf.Ratings(sparse.csr_array(([3.0], ([0], [0])), shape=(1, 9_000)), [1], list(range(9_000)), (1, 5))
    with pytest.raises(SettingError, match="at most 8,000 items for Slope One"):
        gf.papers.SlopeOne().fit(wide)


def test_the_pair_attack_reads_a_single_common_rater_for_certain() -> None:
    ratings = gf.synthetic(users=12, items=200, ratings=240, rng=2)
    report = gf.papers.PairAttack(known=5).run(ratings, gf.papers.SlopeOne(), targets=8, rng=1)
    assert report.estimates["confident_precision"].value == 1.0
    assert report.estimates["confident_coverage"].value > 0.1
    assert report.n_fakes == 6
    noisy = gf.papers.PairAttack(known=5).run(ratings, gf.papers.SlopeOne(noise=2.0), targets=8, rng=1)
    assert noisy.estimates["confident_precision"].value < 0.7
    with pytest.raises(SettingError, match="item differences"):
        gf.papers.PairAttack(known=5).run(ratings, gf.KNN(k=3), targets=2, rng=1)


def test_an_audit_of_slope_one_tries_the_pairs() -> None:
    from goodfence.attack.attack import Subject
    from goodfence.attack.strongest import usual_attackers

    tried = usual_attackers(Subject(SMALL, gf.papers.SlopeOne()), known=4)
    assert any(isinstance(one, gf.papers.PairAttack) for one in tried)


# Threshold neighbours.


def test_a_threshold_of_nothing_averages_everybody_who_shares_an_item() -> None:
    ratings = of_rows([{"a": 5.0, "b": 1.0}, {"a": 1.0, "b": 2.0}, {"b": 4.0}])
    model = gf.papers.ThresholdNeighbours(threshold=0.0).fit(ratings)
    assert model.predict({"a": 3.0}, ["b"])[0] == pytest.approx(1.5)
    assert model.predict([2], ["b"])[0] == pytest.approx(1.5)


def test_fewer_are_near_with_a_higher_threshold_and_nobody_beyond_one() -> None:
    counts = []
    for threshold in (0.0, 0.1, 0.3, 0.6, 1.01):
        model = gf.papers.ThresholdNeighbours(threshold=threshold).fit(SMALL)
        counts.append(model.sums(SMALL.csr[[0]].indices, SMALL.csr[[0]].data, 0)[1].sum())
    assert (np.diff(counts) <= 0).all()
    assert counts[0] > 0
    assert counts[-1] == 0


def test_integers_decide_as_their_real_values_do() -> None:
    fine = gf.papers.ThresholdNeighbours(threshold=0.3, bits=20).fit(SMALL)
    real = gf.papers.ThresholdNeighbours(threshold=0.3).fit(SMALL)
    cells = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
    np.testing.assert_allclose(fine.predict_cells(*cells), real.predict_cells(*cells))


# Matrix factorisation.


def test_the_factors_are_the_least_squares_of_each_side() -> None:
    model = gf.papers.MatrixFactorisation(rank=2, penalty=0.3, sweeps=200).fit(SMALL)
    users = np.array([model_row(model, row) for row in range(SMALL.shape[0])])
    csc, items = SMALL.transposed.csr, model.item_factors_
    for item in range(0, SMALL.shape[1], 7):
        part = slice(csc.indptr[item], csc.indptr[item + 1])
        own, rated = users[csc.indices[part]], csc.data[part]
        gram = own.T @ own + 0.3 * len(rated) * np.eye(2)
        np.testing.assert_allclose(items[item], np.linalg.solve(gram, own.T @ rated), atol=1e-3)


def model_row(model: gf.papers.MatrixFactorisation, row: int) -> Any:
    from goodfence.papers.published.encrypted import solve_rows

    return solve_rows(SMALL.csr[[row]], model.item_factors_, model.penalty)[0]


def test_a_user_in_the_data_is_answered_as_a_fold_in() -> None:
    model = gf.papers.MatrixFactorisation(rank=3, sweeps=2).fit(SMALL)
    columns, values = SMALL.csr[[0]].indices, SMALL.csr[[0]].data
    profile = dict(zip(SMALL.items[columns].tolist(), values.tolist(), strict=True))
    told = model.predict(profile, SMALL.items[:5])
    np.testing.assert_allclose(told, model.predict(np.repeat(SMALL.users[0], 5), SMALL.items[:5]))


# ReuseKNN.

HAND = of_rows([{"a": 5.0, "b": 3.0}, {"a": 4.0, "b": 2.0, "c": 1.0, "d": 5.0}, {"a": 5.0, "d": 1.0}])


def test_expect_and_gain_by_hand() -> None:
    model = gf.papers.ReuseKNN(variant="expect", rng=1).fit(HAND)
    # a was rated by 3 of 3, b and d by 2, c by 1.
    assert model.expected_ == pytest.approx([5 / 3, 8 / 3, 5 / 3])
    near = model.similarities(np.array([0, 1]), np.array([5.0, 3.0]))
    assert near == pytest.approx([1.0, 26 / math.sqrt(34 * 20), 1.0])
    gains = np.array([1.0, 1.0, 0.5])
    both = np.array([1, 2])
    assert gf.papers.ReuseKNN(variant="gain").fit(HAND).scores(near, gains, both, 0).tolist() == [1.5, 1.5]
    assert gf.papers.ReuseKNN().fit(HAND).scores(near, gains, both, 0).tolist() == [1.0, 2.0]


def test_without_a_limit_it_is_plain_knn_among_raters() -> None:
    free = gf.papers.ReuseKNN(k=5, tau=None, rng=1).fit(SMALL)
    similar = gf.Similarity(name="cosine_corated")
    plain = gf.NeighbourCF(gf.KNN(k=5), similarity=similar, among="raters", fallback="global_mean").fit(SMALL)
    cells = np.repeat(np.arange(20), 40), np.tile(np.arange(40), 20)
    told, wanted = free.predict_cells(*cells), plain.predict_cells(*cells)
    # Ties at similarity 1 are broken otherwise.
    assert (np.abs(told - wanted) < 1e-9).mean() > 0.6


def test_the_coins_tell_the_truth_three_times_in_four() -> None:
    told = respond(np.full(20_000, 5.0), 1.0, 5.0, np.random.default_rng(1))
    assert binomtest(int((told == 5).sum()), 20_000, 0.75).pvalue > FALSE_ALARM
    other = respond(np.full(20_000, 4.0), 1.0, 5.0, np.random.default_rng(1))
    assert not (other == 5).any()  # the counterexample: 3/4 against 0


def test_uses_count_and_are_kept(tmp_path: Path) -> None:
    model = gf.papers.ReuseKNN(k=3, tau=2, rng=1).fit(SMALL)
    model.predict(np.repeat(SMALL.users[0], 10), SMALL.items[:10])
    assert model.uses_.sum() == 30
    model.save(tmp_path / "model.gf")
    loaded: Any = gf.load_model(tmp_path / "model.gf")
    np.testing.assert_array_equal(loaded.uses_, model.uses_)
    assert gf.papers.ReuseKNN().guarantee().epsilon == pytest.approx(math.log(3))


# Ind-KNN.


def test_nobody_spends_more_than_their_budget_and_everybody_used_pays() -> None:
    model = IndKNN(epsilon=1.0, questions=200, sigma=0.2, rng=1).fit(SMALL)
    before = model.left_.copy()
    told = model.predict(np.repeat(SMALL.users[:20], 10), np.tile(SMALL.items[:10], 20))
    assert (model.left_ >= 0).all()
    assert (model.left_ <= before).all()
    assert (model.left_ < before).mean() > 0.8
    assert np.isfinite(told).all()
    assert np.isnan(model.predict(SMALL.users[:1], SMALL.items[:1])).all()


def test_what_is_charged_is_what_is_contributed() -> None:
    model = IndKNN(epsilon=50.0, questions=10, threshold=0.0, rng=1).fit(of_rows([{"a": 5.0, "b": 4.0}, {"a": 4.0}]))
    budget = model.budget
    draws = Streams(model.key_).at(0)
    counting = 3 * budget / 10
    n = max(1 + draws.normal(0, math.sqrt(1 / (2 * counting))), 1.0)
    model.predict([1], ["b"])
    near = 5 / math.sqrt(41)
    paid = near**2 * ((4.0 - 3.0) ** 2 + 1) / (2 * 0.49 * n)
    assert budget - model.left_[0] == pytest.approx(counting + paid)
    assert model.left_[1] == budget


def test_what_is_left_survives_a_file_and_cannot_grow_in_it(tmp_path: Path) -> None:
    model = IndKNN(rng=1).fit(SMALL)
    model.predict(SMALL.users[:5], SMALL.items[:5])
    model.save(tmp_path / "model.gf")
    loaded: Any = gf.load_model(tmp_path / "model.gf")
    np.testing.assert_array_equal(loaded.left_, model.left_)
    with pytest.raises(ModelFileError):
        loaded._restore_state({"left": model.left_ + 10, "asked": np.array([0])})
    assert gf.papers.IndKNN(rng=1).guarantee().status == "none"
    assert gf.papers.IndKNN().guarantee().status == "claimed"


# DP-ALS.


def test_a_user_moves_the_item_statistics_by_less_than_is_accounted() -> None:
    extreme = gf.Ratings(sparse.csr_array(np.where(np.arange(200) % 2, 5.0, 1.0)[None]), [1], list(range(200)), (1, 5))
    nobody = gf.Ratings(sparse.csr_array((1, 200)), [1], list(range(200)), (1, 5))
    model = DPALS(epsilon=4.0, items="from ratings", per_user=30)
    seen: list[Any] = []

    class Recorder(Publisher):
        def publish(self, name: str, totals: Any, sensitivity: int) -> Any:
            seen.append((name, totals.copy(), sensitivity))
            return totals

    for ratings in (extreme, nobody):
        recorder = Recorder(SystemNoise(), unit="user")
        model._learn(UserProfiles.of(ratings), 0.9, recorder)
    (_, with_user, bound), (_, without, _) = [one for one in seen if one[0] == "item factors"]
    moved = np.linalg.norm((with_user - without).astype(float))
    assert 0 < moved <= bound
    assert (with_user != without).any(axis=1).sum() <= 30


def test_the_grid_leaves_room_for_everything_a_user_may_add() -> None:
    model = DPALS(epsilon=4.0, rank=3, per_user=10)
    target = SIGMA // 3
    grid = model.grid(target)
    worst = grid * math.sqrt(10 * (1 + CLAMP**2)) + 0.5 * math.sqrt(10 * 9)
    assert 0.99 * target < worst <= target


def test_dp_als_is_proved_per_user_and_spends_what_it_says() -> None:
    model = DPALS(epsilon=4.0, items="from ratings", sweeps=2).fit(SMALL)
    stated = model.guarantee()
    assert (stated.status, stated.unit, stated.epsilon) == ("proved", "user", 4.0)
    assert [release.name for release in model.account_.releases][1:] == ["item factors"] * 2
    assert 3.9 < model.account_.epsilon(1e-5) <= 4.0


def test_what_is_not_said_is_as_documented() -> None:
    told = gf.papers.DPALS(epsilon=1.0).settings()
    assert (told["delta"], told["rank"], told["sweeps"], told["per_user"]) == (1e-5, 4, 1, 60)
