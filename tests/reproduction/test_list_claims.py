"""Claims about candidate lists: the count of fakes by brute force, alpha at a given beta, the counterexample."""

from __future__ import annotations

import numpy as np
import pytest

import goodfence as gf
from goodfence.attack.targets import attacked, find_targets
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.reproduction import list_claims as of_lists
from goodfence.reproduction.definition import Interpretation
from goodfence.rng import Streams

SEED, N = [7, 0], 12
SMALL = gf.synthetic(users=60, items=30, ratings=600, rng=7)


@pytest.fixture
def small_setting(monkeypatch: pytest.MonkeyPatch) -> gf.PPNS:
    mechanism = gf.PPNS(k=4, beta=3, sensitivity=of_lists.PAIR)
    monkeypatch.setattr(of_lists, "MECHANISM", mechanism)
    monkeypatch.setattr(of_lists, "KNOWN", 3)
    return mechanism


@pytest.mark.parametrize("n_fakes", [4, 11, 12, 13])
def test_strangers_are_those_of_the_data_with_the_fakes(
    n_fakes: int, small_setting: gf.PPNS
) -> None:
    lists = of_lists._fake_lists(SMALL, SEED, N)
    targets, _ = find_targets(SMALL, N, 3, "random", Streams(SEED))
    n_users, top = SMALL.shape[0], small_setting.k * small_setting.beta
    for place, row in enumerate(targets.rows.tolist()):
        fake = targets.known_columns[place], targets.known_ratings[place]
        data, _ = attacked(SMALL, None, [fake[0]] * n_fakes, [fake[1]] * n_fakes)
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
