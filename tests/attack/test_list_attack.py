"""Lists under attack: known answers, the fast worlds against refits, and what strangers may return."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.attack.list_attack import _served, popular_lists
from goodfence.attack.refits import listed_columns
from goodfence.attack.report import ListAttackReport, ListHits
from goodfence.attack.targets import find_targets
from goodfence.errors import BlackBoxProblem, SettingError
from goodfence.kernels.list_attack import fill, vote
from goodfence.report.pages import save_result
from goodfence.rng import Streams
from tests.support import reference
from tests.support.list_recommenders import MostPopular, NaiveLists, Tells, make_events, profiles_of

MECHANISMS: list[Any] = [
    gf.KNN(k=4),
    gf.PPNS(k=4, beta=3),
    gf.PPNS(k=4, beta=2, epsilon=50.0, sensitivity=gf.Sensitivity(scope="pair")),
    gf.NPNS(k=4),
    gf.NPNS(k=4, within=2),
    gf.PNCF(k=4),
    gf.PNCF(k=4, within=3, epsilon=5.0),
]
ATTACKS = [
    gf.ListAttack(known=3, n=4),
    gf.ListAttack(known=3, n=2, pages=2, fakes=2, choose="rarest"),
    gf.ListAttack(known=3, n=4, ask="all", choose="most_popular"),
    gf.ListAttack(known=3, n=3, adaptive=True),
    gf.ListAttack(known=3, n=3, adaptive=True, ask="all", fakes=3),
]


def require_same(first: ListAttackReport, second: ListAttackReport) -> None:
    """Require equal tables, but for what nobody sees of a stranger: its neighbours."""
    one, other = (report.table().drop_columns(["target_chosen", "target_alone"]) for report in (first, second))
    assert one.equals(other)
    assert first.rules == second.rules


@pytest.mark.parametrize("attack", ATTACKS, ids=repr)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_fast_worlds_equal_refits(mechanism: Any, attack: gf.ListAttack) -> None:
    """Every list is the same, whether candidate lists say it or a model is fitted in each world."""
    events = make_events(10)
    fast = attack.run(events, mechanism, targets=6, rng=11)
    as_many = replace(attack, fakes=attack.fakes or mechanism.k)  # a stranger has no k to go by
    require_same(fast, as_many.run(events, NaiveLists(mechanism), targets=6, rng=11))


class Refitted(gf.NeighbourCF):
    """Another class, of which an attack knows nothing but how to fit and ask it."""


@pytest.mark.parametrize("attack", ATTACKS, ids=repr)
@pytest.mark.parametrize(
    ("mechanism", "similarity"),
    [
        *((one, "cosine") for one in MECHANISMS),
        *((one, "jaccard") for one in MECHANISMS if one.sensitivity is None),  # RS is the cosine's
    ],
    ids=repr,
)
def test_fast_worlds_equal_refits_of_our_own_model(mechanism: Any, similarity: str, attack: gf.ListAttack) -> None:
    events = make_events(10)
    model = gf.NeighbourCF(mechanism, similarity=similarity)
    fast = attack.run(events, model, targets=6, rng=11)
    slow = attack.run(events, Refitted(mechanism, similarity=similarity), targets=6, rng=11)
    assert fast.table().equals(slow.table())


@pytest.mark.parametrize("mechanism", [gf.KNN(k=4), gf.NPNS(k=4)], ids=repr)
def test_fast_worlds_equal_refits_by_jaccard(mechanism: Any) -> None:
    events, attack = make_events(12), gf.ListAttack(known=3, n=4, fakes=4)
    model = gf.NeighbourCF(mechanism, similarity="jaccard")
    fast = attack.run(events, model, targets=6, rng=11)
    slow = attack.run(events, NaiveLists(mechanism, "jaccard"), targets=6, rng=11)
    require_same(fast, slow)


@pytest.mark.parametrize("attack", ATTACKS[:4:3], ids=repr)
def test_fast_worlds_equal_refits_where_events_count_more_than_once(attack: gf.ListAttack) -> None:
    plain = make_events(14)
    counts = np.random.default_rng(14).integers(1, 4, size=plain.n_ratings).astype(np.float64)
    csr = sparse.csr_array((counts, plain.csr.indices, plain.csr.indptr), shape=plain.shape)
    events = gf.Ratings(csr, plain.users, plain.items, feedback="implicit")
    fast = attack.run(events, gf.NPNS(k=4), targets=6, rng=11)
    assert fast.table().equals(attack.run(events, Refitted(gf.NPNS(k=4)), targets=6, rng=11).table())


def test_two_threads_say_the_same() -> None:
    events, attack = make_events(13, n_users=90), gf.ListAttack(known=3, n=4, ask="all")
    one, two = (attack.run(events, gf.NPNS(k=4), targets=90, rng=3, threads=threads) for threads in (1, 2))
    require_same(one, two)


def _one_target() -> gf.Ratings:
    """Return five users; the first has items 0 to 5, and shares 0 to 2 with nobody."""
    held = np.zeros((5, 12))
    held[0, :6] = 1
    held[1:, 6:9] = 1
    held[1, 9] = held[2, 10] = 1
    users = ["target", "b", "c", "d", "e"]
    return gf.Ratings(sparse.csr_array(held), users, range(12), feedback="implicit")


def test_known_answer() -> None:
    """Two fakes with three of six items: the target is the one real neighbour, and its three others are listed."""
    report = gf.ListAttack(known=3, n=3).run(_one_target(), gf.KNN(k=2), targets=["target"], rng=1)
    assert (report.n_fakes, report.n_hidden, report.n_targets) == (2, 3, 1)
    assert (report.precision, report.recall, report.fully_recovered.value) == (1.0, 1.0, 1.0)
    assert (report.target_chosen, report.target_alone) == (1.0, 1.0)
    # Without the target everybody else has 6 to 8, and no neighbour has any of the hidden items.
    assert (report.precision_without, report.popularity, report.advantage) == (0.0, 0.0, 1.0)


def test_a_short_list_is_filled_in_both_worlds_and_counted_by_what_is_possible() -> None:
    """Of ten items at most three are hidden: with all three listed the person is fully recovered."""
    report = gf.ListAttack(known=3, n=7).run(_one_target(), gf.KNN(k=2), targets=["target"], rng=1)
    assert report.possible.tolist() == [3.0]
    assert report.with_target.listed.tolist() == [3.0]
    assert report.informed.listed.tolist() == [7.0]
    assert (report.precision, report.estimates["raw_precision"].value) == (1.0, 1.0)
    assert report.fully.all()


def test_no_more_is_claimed_than_there_is() -> None:
    report = gf.ListAttack(known=3, n=10, pages=5, adaptive=True).run(
        _one_target(), gf.KNN(k=2), targets=["target"], rng=1
    )
    assert report.n_claimed == 9
    assert report.precision_without == 1.0  # everything there is was claimed
    assert report.advantage == 0.0


def test_a_list_that_ignores_people_gives_nothing_away() -> None:
    events = make_events(3, n_users=40, n_items=30)
    report = gf.ListAttack(known=4, n=5, fakes=3).run(events, MostPopular(), targets=30, rng=5)
    assert abs(report.advantage) < 0.05
    assert np.isnan(report.target_chosen)


class LeastPopular(MostPopular):
    """Lists what fewest have."""

    def fit(self, events: gf.Ratings) -> Any:
        super().fit(events)
        self.counts_ = self.counts_.max() - self.counts_
        return self


def test_the_informed_attacker_believes_a_list_only_where_it_serves() -> None:
    """What lists the rarest items tells less than popularity does, which is then believed in both worlds."""
    held = np.random.default_rng(5).random((60, 40)) < np.linspace(0.9, 0.1, 40)
    users, items = range(60), range(40)
    events = gf.Ratings(sparse.csr_array(held * 1.0), users, items, feedback="implicit")
    report = gf.ListAttack(known=3, n=6, fakes=2).run(events, LeastPopular(), targets=40, rng=5)
    assert {belief for each in report.rules.values() for belief in each} == {"popularity alone"}
    assert report.precision == report.precision_without == report.popularity
    assert report.estimates["raw_precision"].value < report.popularity


def test_a_recommender_that_tells_of_one_user_is_seen_through() -> None:
    events = make_events(5, n_users=60, n_items=40, density=0.3)
    attack, user = gf.ListAttack(known=3, n=6, fakes=2), events.users[0]
    report = attack.run(events, Tells(user), targets=[user], rng=5)
    assert report.estimates["raw_precision"].value == 1.0
    assert report.without_target.listed.tolist() == [0.0]


@pytest.mark.parametrize("seed", range(4))
def test_popularity_is_that_of_everybody_else(seed: int) -> None:
    events = make_events(seed)
    targets, _ = find_targets(events, 10, 3, "random", Streams(seed))
    found = popular_lists(events, targets, 9)
    users = profiles_of(events)
    for row, known, listed in zip(targets.rows, targets.known_columns, found, strict=True):
        expected = reference.popular_list(users, int(row), known.tolist(), 18, 9)
        assert listed.tolist() == expected


def test_votes_equal_the_reference() -> None:
    generator = np.random.default_rng(2)
    told = np.full((20, 5, 4), -1, dtype=np.int32)
    for target in range(20):
        for fake in range(5):
            n = generator.integers(0, 5)
            told[target, fake, :n] = generator.permutation(7)[:n]
    voted = np.empty((20, 4), dtype=np.int32)
    vote(told, 7, voted)
    for lists, found in zip(told.tolist(), voted.tolist(), strict=True):
        short = [[column for column in one if column >= 0] for one in lists]
        expected = reference.voted_list(short, 4)
        assert found == expected + [-1] * (4 - len(expected))


def test_free_places_are_filled_with_guesses_that_are_not_listed() -> None:
    filled = np.empty((2, 4), dtype=np.int32)
    lists = np.array([[5, -1], [2, 3]], dtype=np.int32)
    guesses = np.array([[2, 5, 7, 9], [3, 2, 1, -1]], dtype=np.int32)
    fill(lists, guesses, filled)
    assert filled.tolist() == [[5, 2, 7, 9], [2, 3, 1, -1]]


def test_hits_are_hidden_items_only() -> None:
    events = make_events(1)
    targets, _ = find_targets(events, 5, 3, "random", Streams(1))
    lists = np.tile(np.arange(18, dtype=np.int32), (5, 1))
    counted = ListHits.of(lists, targets)
    assert counted.hits.tolist() == np.diff(targets.starts).tolist()  # everything listed: all hidden are hit
    assert counted.listed.tolist() == [18.0] * 5


@pytest.mark.parametrize(
    "answer",
    ["item 01", {"item 01": 1.0}, [["item 01"]], ["nothing of the kind"], 7],
    ids=["text", "mapping", "nested", "unknown id", "number"],
)
def test_what_is_no_list_is_an_error_that_shows_nothing(answer: Any) -> None:
    with pytest.raises(BlackBoxProblem) as caught:
        listed_columns(answer, make_events(1), np.array([0]), 3)
    assert "item 01" not in str(caught.value)


def test_what_cannot_be_asked_for_lists_is_told() -> None:
    class Mute:
        def fit(self, _: gf.Ratings) -> Any:
            return self

        def predict(self, _: Any, items: Any) -> Any:
            return np.ones(len(items))

    with pytest.raises(SettingError, match="must have recommend"):
        gf.ListAttack(known=3).run(make_events(1), Mute(), targets=2, rng=1)


def test_each_attack_names_the_other_where_the_data_are_of_the_other_kind() -> None:
    events = make_events(1)
    with pytest.raises(SettingError, match=r"KNNAttack must be given ratings, got events: .*ListAttack"):
        gf.KNNAttack(known=3).run(events, gf.KNN(k=4), targets=2, rng=1)
    with pytest.raises(SettingError, match=r"ListAttack must be given events, got ratings: .*KNNAttack"):
        gf.ListAttack(known=3).run(gf.load("movietweetings"), gf.KNN(k=4), targets=2, rng=1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n": 0}, "n must be"),
        ({"pages": 0}, "pages must be"),
        ({"ask": "some"}, "ask must be"),
        ({"adaptive": 2}, "adaptive must be"),
        ({"known": 0}, "known must be"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        gf.ListAttack(**settings)


def test_a_report_is_saved_without_ids(tmp_path: Path) -> None:
    events = make_events(1)
    report = gf.ListAttack(known=3, n=4).run(events, gf.KNN(k=4), targets=6, rng=1)
    save_result(report, tmp_path / "found")
    manifest = json.loads((tmp_path / "found" / "manifest.json").read_text())
    assert manifest["kind"] == "ListAttackReport"
    assert manifest["estimates"]["precision"]["value"] == report.precision
    for text in (repr(report), json.dumps(manifest), str(report.table())):
        assert "user " not in text.replace("user left", "")
        assert "item 0" not in text
    assert report.table(ids=True).column("user").to_pylist() == events.users[report.rows].tolist()


def test_another_belief_without_the_target_must_serve_clearly_better() -> None:
    lists, popular = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.4, 0.4, 0.6, 0.4])
    chance, clearly = popular + np.array([0.4, -0.1, -0.1, 0.1]), popular + 0.2
    with_target = [lists, popular]
    assert _served(np.array([with_target, [lists, chance]])) == (0, 0)  # mean 0.025 more, s.e. 0.12
    assert _served(np.array([with_target, [lists, clearly]])) == (0, 1)
    assert _served(np.array([with_target, [lists, chance]])[:, :, :1]) == (0, 0)  # of one target nothing is clear
