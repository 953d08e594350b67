"""What private models release, with the noise left out: each number once more in plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.arrays import Floats, Integers
from goodfence.models.private.cf import better_biases
from goodfence.models.private.item_model import ItemBiases, ItemModel
from goodfence.models.private.releases import (
    MOST_COUNTED,
    SCORES_SHARE,
    SumSettings,
    overlap_totals,
    pairs_bound,
    release_half_step,
    release_residuals,
    release_sums,
)
from goodfence.privacy.fixed_point import Clamps, UserProfiles
from goodfence.privacy.noise import SIGMA, Publisher

ROWS = [
    {0: 5, 1: 4, 2: 1, 3: 3},
    {0: 4, 1: 5, 3: 2, 4: 1},
    {1: 1, 2: 5, 3: 4},
    {0: 2, 2: 4, 4: 5},
    {0: 5, 1: 5, 2: 2, 3: 1, 4: 1},
    {2: 3, 4: 4},
    {0: 1},
]
N_ITEMS = 5


class Silent:
    """No noise at all: what is released is what was computed."""

    private = False

    def draw(self, n: int) -> Integers:
        return np.zeros(n, dtype=np.int64)


@pytest.fixture
def profiles() -> UserProfiles:
    cells = np.zeros((len(ROWS), N_ITEMS))
    for number, row in enumerate(ROWS):
        cells[number, list(row)] = list(row.values())
    ids = range(len(ROWS)), range(N_ITEMS)
    return UserProfiles.of(gf.Ratings(sparse.csr_array(cells), *ids, scale=(1, 5)))


def residuals_of(row: dict[int, int], biases: Floats, clamps: Clamps) -> dict[int, float]:
    """Return a user's residuals: from item bias and user bias, both clamped as the constants say."""
    off = {item: value - 3.5 - biases[item] for item, value in row.items()}
    own = sum(float(np.clip(each, -clamps.near, clamps.near)) for each in off.values())
    own /= len(row) + clamps.prior
    return {item: float(np.clip(each - own, -clamps.wide, clamps.wide)) for item, each in off.items()}


def test_item_sums_and_counts(profiles: UserProfiles) -> None:
    clamps = Clamps(near=1.25, prior=15, wide=1.0)
    settings = SumSettings(clamps=clamps, stretch=2.0, floor=1.0)
    found = release_sums(profiles, settings, "rating", 1.0, Publisher(Silent()))
    sums, counts = np.zeros(N_ITEMS), np.zeros(N_ITEMS)
    for row in ROWS:
        for item, residual in residuals_of(row, np.zeros(N_ITEMS), clamps).items():
            sums[item] += residual
            counts[item] += 1
    assert found.sums == pytest.approx(sums, abs=1e-5)
    assert found.counts == pytest.approx(counts, abs=1e-5)
    # Noise of sigma 1 on integers of which one rating moves sums by 1 and counts by 1/2: and the others by a little.
    assert found.counts_noise == pytest.approx(2 * found.sums_noise, rel=1e-6)
    assert math.hypot(1.0, 0.5) < found.sums_noise < 1.5


def test_residuals_from_known_biases(profiles: UserProfiles) -> None:
    clamps = Clamps(near=1.0, prior=20, wide=0.5)
    biases = np.array([0.2, -0.1, 0.4, -0.8, 0.0])
    found = release_residuals(profiles, biases, clamps, 1.0, Publisher(Silent()))
    sums = np.zeros(N_ITEMS)
    for row in ROWS:
        for item, residual in residuals_of(row, biases, clamps).items():
            sums[item] += residual
    assert found.values == pytest.approx(sums, abs=1e-5)


def test_the_overlap_counts_no_more_than_so_many_ratings() -> None:
    """One rating more moves c^1.5 by 1.5 sqrt(most); a whole user the number itself by most."""
    target = 1 << 40
    counts = np.array([4, 9, 10**6])
    most = MOST_COUNTED["rating"]
    by_rating = overlap_totals(counts, "rating", target)[0] * 1.5 * math.sqrt(most) / target
    assert by_rating == pytest.approx(4**1.5 + 9**1.5 + most**1.5)
    most = MOST_COUNTED["user"]
    assert overlap_totals(counts, "user", target)[0] * most / target == pytest.approx(13 + most)
    assert (MOST_COUNTED["rating"], most) == (1000, 400)


@pytest.mark.parametrize(("wide", "move"), [(1.0, 0.0), (2.0, 0.5), (0.5, 3.0)])
def test_the_bound_of_a_covariance_is_the_largest_over_all_angles(wide: float, move: float) -> None:
    largest = 0.0
    for angle in np.linspace(0.0, math.pi / 2, 2001):
        sine, cosine = math.sin(angle), math.cos(angle)
        other = move + wide * sine * cosine / (1 + sine) / math.sqrt(2)
        largest = max(largest, (wide * sine) ** 2 + other**2)
    found = pairs_bound(wide, move)
    assert math.sqrt(largest) <= found < math.sqrt(largest) * 1.001


@pytest.mark.parametrize("clamp", [None, 0.6, 1.5])
def test_mcsherry_and_mironov_s_steps(clamp: float | None, profiles: UserProfiles) -> None:
    """Averages with a prior of 15, residuals clamped to 1 unless told, weights 1/sqrt(c), clean-up, best rank."""
    settings: dict[str, Any] = {} if clamp is None else {"clamp": clamp}
    model = gf.papers.McSherryMironov(epsilon=1.0, rank=2, items="from ratings", **settings)
    found = model._learn(profiles, 60.0, Publisher(Silent()))

    every = [value - 3.5 for row in ROWS for value in row.values()]
    centre = sum(every) / len(every)
    counts = np.array([sum(item in row for row in ROWS) for item in range(N_ITEMS)], dtype=float)
    sums = np.array([sum(row[i] - 3.5 for row in ROWS if i in row) for i in range(N_ITEMS)])
    biases = (sums + 15 * centre) / (counts + 15)
    assert found.bias == pytest.approx(biases, abs=1e-5)

    wide = 1.0 if clamp is None else clamp
    products, weights = np.zeros((N_ITEMS, N_ITEMS)), np.zeros((N_ITEMS, N_ITEMS))
    for row in ROWS:
        own = residuals_of(row, biases, Clamps(near=4.0, prior=20, wide=wide))
        for one in own:
            for two in own:
                products[one, two] += own[one] * own[two] / math.sqrt(len(row))
                weights[one, two] += 1 / math.sqrt(len(row))
    above = np.triu_indices(N_ITEMS, 1)
    p, w = products[above], weights[above]
    strength = 2 * w.std()
    cleaned = np.zeros((N_ITEMS, N_ITEMS))
    cleaned[above] = (p + strength * p.mean() / w.mean()) / (w + strength)
    cleaned += cleaned.T
    root = np.sqrt(counts)
    values, vectors = np.linalg.eigh(cleaned * np.outer(root, root))
    best = sum(max(values[-k], 0.0) * np.outer(vectors[:, -k], vectors[:, -k]) for k in (1, 2))
    factors = found.features[:, 1:]
    assert factors.shape == (N_ITEMS, 2)
    assert factors @ factors.T == pytest.approx(best / np.outer(root, root), abs=1e-4)
    assert found.weights.tolist() == [1.0] * N_ITEMS


class Recording(Publisher):
    """Publishes without noise, and remembers what."""

    def __init__(self) -> None:
        super().__init__(Silent())
        self.released: dict[str, Integers] = {}

    def publish(self, name: str, totals: Integers, sensitivity: int) -> Integers:
        self.released[name] = totals
        return super().publish(name, totals, sensitivity)


def test_better_biases_for_the_unit_user_release_one_number_for_each_item(profiles: UserProfiles) -> None:
    """No factors, no scores: the constant alone is released, and nothing else is paid for."""
    publisher, known = Recording(), ItemBiases(np.zeros(N_ITEMS), *np.ones((2, N_ITEMS)))
    better_biases(profiles, known, "user", 1.0, publisher)
    shapes = {name: totals.shape for name, totals in publisher.released.items()}
    assert shapes == {"half step, items": (N_ITEMS, 1), "half step, scores": (1, 1)}


@pytest.mark.parametrize(("target", "grid"), [(9, 1), (13, 2), (41_232, 9_999)])
def test_the_grid_of_a_rating_and_its_count(target: int, grid: int) -> None:
    """(4, 1) on the grid is sqrt(17) = 4.12... of its units long; one unit is left for rounding."""
    assert gf.papers.McSherryMironov(epsilon=1.0)._grid(target) == grid
    assert (grid + 1) * math.sqrt(17) <= target


@pytest.mark.parametrize("target", [0, 4, 8])
def test_without_room_for_one_unit_epsilon_is_too_small(target: int) -> None:
    with pytest.raises(gf.SettingError, match="epsilon must be larger"):
        gf.papers.McSherryMironov(epsilon=1.0)._grid(target)


def test_the_integers_of_a_covariance_leave_room_for_their_rounding() -> None:
    """One user of 20 items: two matrices of 380 entries, each rounded by half a unit at most.

    One rating changes them by (1 + 2 sqrt 2) sqrt 2 of their size and by what rounding adds: by sqrt(380) units for
    each of both, by the triangle inequality.
    """
    values, target = np.resize([0.5, -0.25, 1.0], 20), 1000
    ids = range(1), range(20)
    stated = gf.Ratings(sparse.csr_array((values + 3.5)[None]), *ids, scale=(1, 5, 0.25))
    profiles, publisher = UserProfiles.of(stated), Recording()
    model = gf.papers.McSherryMironov(epsilon=1.0, clamp=2.0, user_prior=10**9)  # no user bias
    chosen = np.arange(20)
    mu = (target + 0.5) / SIGMA
    model._covariance(profiles, np.zeros(20), chosen, mu, publisher)
    size = (target - 2 * math.sqrt(380)) / ((1 + 2 * math.sqrt(2)) * math.sqrt(2))
    products, weights = publisher.released["covariance and weights"]
    assert weights.tolist() == [round(size / math.sqrt(20))] * 190
    above = np.triu_indices(20, 1)
    exact = size / math.sqrt(20) * np.outer(values, values)[above] / 4
    assert products.tolist() == np.rint(exact).tolist()  # to the nearest, and not toward zero


@pytest.mark.parametrize("limit", [1, 2**30 - 1])
def test_a_half_step_at_the_ends_of_its_integers(limit: int, profiles: UserProfiles) -> None:
    model = ItemModel.of(ItemBiases(*np.zeros((3, N_ITEMS))), np.zeros((N_ITEMS, 0)))
    mu = (limit + 0.01) / SIGMA / math.sqrt(max(SCORES_SHARE, 1 - SCORES_SHARE))
    if limit == 1:  # the smaller share has the smaller limit
        mu = (limit + 0.01) / SIGMA / math.sqrt(min(SCORES_SHARE, 1 - SCORES_SHARE))
    release_half_step(profiles, model, 0.0, mu, Recording())
    beyond = mu * (limit + 1.5) / limit if limit > 1 else mu / 1.02
    with pytest.raises(gf.SettingError, match="epsilon must be smaller, or larger"):
        release_half_step(profiles, model, 0.0, beyond, Recording())
