"""Claims about candidate lists: the count of fakes by brute force, alpha at a given beta, the counterexample."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.attack.scoring import Statistic
from goodfence.attack.targets import find_targets, with_fakes
from goodfence.neighbours.candidate_lists import Axis, RowsAgainstAll
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.papers.reproduction import list_claims as of_lists
from goodfence.papers.reproduction.claims import FALSE_POSITIVE_RATE, MARGIN
from goodfence.papers.reproduction.definition import Interpretation
from goodfence.papers.reproduction.runs import Unattacked
from goodfence.rng import Streams
from goodfence.selection.sensitivity import pair_sensitivities, sensitivities

SEED, N = [7, 0], 12
SMALL = gf.synthetic(users=60, items=30, ratings=600, rng=7)


@pytest.fixture
def small_setting(monkeypatch: pytest.MonkeyPatch) -> gf.PPNS:
    mechanism = gf.PPNS(k=4, beta=3, sensitivity=of_lists.PAIR)
    monkeypatch.setattr(of_lists, "MECHANISM", mechanism)
    monkeypatch.setattr(of_lists, "KNOWN", 3)
    return mechanism


@pytest.mark.parametrize("n_fakes", [4, 11, 12, 13])
def test_strangers_are_those_of_the_data_with_the_fakes(n_fakes: int, small_setting: gf.PPNS) -> None:
    lists = of_lists._fake_lists(SMALL, SEED, N)
    targets, _ = find_targets(SMALL, N, 3, "random", Streams(SEED))
    n_users, top = SMALL.shape[0], small_setting.k * small_setting.beta
    for place, row in enumerate(targets.rows.tolist()):
        fake = targets.known_columns[place], targets.known_ratings[place]
        data, _ = with_fakes(SMALL, None, [fake[0]] * n_fakes, [fake[1]] * n_fakes)
        profiles = Profiles.of(data.csr)
        asker = np.array([n_users])
        near = RowsAgainstAll(profiles, Similarity()).nearest(profiles, asker, top, themselves=True)
        real = set(near[0][0].tolist()) - {row} - set(range(n_users, n_users + n_fakes))
        assert lists[place].strangers(n_fakes) == len(real)


def test_the_count_of_fakes_is_exact(small_setting: gf.PPNS) -> None:
    claim = of_lists.fakes_to_cover(SMALL, SEED, N)
    assert (claim.label, claim.verdict) == ("14a", "holds")
    assert claim.numbers["11 fakes: share of targets with no stranger"] == 0
    assert claim.numbers["12 fakes: share of targets with no stranger"] > 0


def test_on_the_lists_of_fakes_another_method_has_the_larger_alpha(small_setting: gf.PPNS) -> None:
    claim = of_lists.largest_alpha({"small": (SMALL, "user")}, SMALL, SEED, N)
    assert (claim.label, claim.verdict) == ("15", "fails")
    assert claim.numbers["lists of fakes: share on which PNCF has more"] > 0.5
    assert claim.numbers["lists of fakes: share on which nPNS has more"] < 0.5
    seen = of_lists._fake_lists(SMALL, SEED, N)
    k, beta = small_setting.k, small_setting.beta
    by_hand = [gf.alpha(gf.NPNS(k=k, within=beta), one.listed(k, gf.KNN(k=k))[0]) for one in seen]
    assert claim.numbers["lists of fakes: alpha of nPNS"] == pytest.approx(np.mean(by_hand))


def test_no_epsilon_bounds_the_counterexample() -> None:
    claim = of_lists.differentially_private()
    assert (claim.number, claim.verdict) == (16, "fails")
    for epsilon in ("0.01", "1", "100"):
        assert claim.numbers[f"epsilon={epsilon}: probability of the choice, with the rating"] == 0
        assert claim.numbers[f"epsilon={epsilon}: probability of the choice, without it"] > 0.2


def test_with_the_co_rated_cosine_the_target_has_similarity_one() -> None:
    films = gf.load("movietweetings")
    corated = Interpretation(similarity="cosine_corated")
    found = of_lists.partition_one(films, SEED, 30, corated)
    assert found.numbers["share of similarity 1"] == 1.0
    assert of_lists.partition_one(films, SEED, 30).numbers["share of similarity 1"] < 0.5


@pytest.mark.parametrize("scope", ["target", "pair"])
def test_rs_of_a_fakes_list_is_that_of_the_data_with_the_fakes(scope: Any, small_setting: gf.PPNS) -> None:
    options, n_fakes = gf.Sensitivity(scope=scope), 4
    mechanism = gf.PPNS(k=4, beta=3, sensitivity=options)
    lists = of_lists._fake_lists(SMALL, SEED, N)
    targets, _ = find_targets(SMALL, N, 3, "random", Streams(SEED))
    for place in range(3):
        fake = targets.known_columns[place], targets.known_ratings[place]
        data, _ = with_fakes(SMALL, None, [fake[0]] * n_fakes, [fake[1]] * n_fakes)
        one, first = lists[place], SMALL.shape[0]
        listed, rs = one.listed(n_fakes, mechanism)
        assert len(listed) == data.shape[0] - 1
        order = np.insert(one.rows, one._n_equal, np.arange(first + 1, first + n_fakes))
        asker = np.array([first])
        wanted = (
            sensitivities(data.csr, options)[first]
            if scope == "target"
            else pair_sensitivities(data.csr, asker, order[None], options)[0]
        )
        np.testing.assert_allclose(np.asarray(rs), wanted)


def test_the_share_of_zeros_has_the_standard_error_of_a_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Python's own statistics: three lists of which 20%, 40% and 90% are zeros."""
    shares = [0.2, 0.4, 0.9]
    monkeypatch.setattr(of_lists, "_zeros", lambda *_: np.array(shares))
    found = of_lists.second_half_is_zero({"here": (SMALL, "user")}, SEED, 3)
    [comparison] = found.comparisons
    error = statistics.stdev(shares) / math.sqrt(3)
    more = Statistic(0.5 - MARGIN, error, 3)
    assert comparison.value == pytest.approx(0.5 - MARGIN)
    half = more.half_width(1 - FALSE_POSITIVE_RATE)
    assert (comparison.high - comparison.low) / 2 == pytest.approx(half)
    assert found.numbers == {"here: share of zeros": pytest.approx(0.5)}


def test_on_lists_without_an_attack_partitions_are_an_eighth_of_short_data(small_setting: gf.PPNS) -> None:
    """Of 60 users k is 7, and not the figures' 100: four partitions are half of the list."""
    claim = of_lists.largest_alpha({"small": (SMALL, "user")}, SMALL, SEED, N)
    lists = Unattacked.of(SMALL, N, SEED).similarities
    by_hand = [gf.alpha(gf.NPNS(k=7, within=4), listed) for listed in lists]
    assert claim.numbers["small: alpha of nPNS"] == pytest.approx(np.mean(by_hand))


def test_manlys_error_is_that_of_the_mechanisms_with_an_eighth_of_short_data() -> None:
    claim = of_lists.manly_is_good(SMALL, SEED, 3)
    expected: tuple[tuple[Axis, int], ...] = (("user", 60 // 8), ("item", 30 // 8))
    for axis, k in expected:
        errors = []
        for listed in Unattacked.of(SMALL, 3, SEED, axis=axis).similarities:
            exact = gf.inclusion_probabilities(gf.NPNS(k=k), listed)
            manly = gf.inclusion_probabilities(gf.NPNS(k=k), listed, method="manly")
            errors.append(np.abs(exact - manly).max())
        name = f"{axis}-based NPNS epsilon=1: largest error of a probability"
        assert claim.numbers[name] == pytest.approx(max(errors))


def test_where_fakes_fill_both_partitions_to_be_alone_is_to_be_chosen(small_setting: gf.PPNS) -> None:
    k, beta = small_setting.k, small_setting.beta
    n_fakes, tried = (beta - 1) * k + 1, 0
    for one in of_lists._fake_lists(SMALL, SEED, N):
        place = one.place(n_fakes)
        if one._n_equal or place >= beta * k:
            continue  # somebody equals the fakes, or the target is beyond the last partition
        listed, rs = one.listed(n_fakes, small_setting)
        assert isinstance(rs, np.ndarray)
        included = gf.inclusion_probabilities(small_setting, listed, rs)
        assert one.alone(n_fakes) == pytest.approx(included[place])
        tried += 1
    assert tried
