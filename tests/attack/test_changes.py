"""Two refits compared: new ratings that show at once, a recommender that shows nothing, and one that is all noise."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.attack.changes import ChangesAttack, claimed
from goodfence.errors import DataError, SettingError
from goodfence.report.serialize import plain
from tests.support.attack_worlds import OwnMean, tied_ratings
from tests.support.running import run, run_json

FILMS = "movietweetings"


def strangers(*, timed: bool = False) -> gf.Ratings:
    """Return twelve people of whom no two rated the same items; the later the higher the column, if `timed`."""
    n, each = 12, 10
    values = np.random.default_rng(5).integers(1, 6, size=n * each).astype(np.float64)
    csr = sparse.csr_array((values, np.arange(n * each), each * np.arange(n + 1)), shape=(n, n * each))
    times = np.arange(n * each) if timed else None
    return gf.Ratings(csr, range(n), range(n * each), scale=(1, 5), times=times)


def test_new_ratings_of_strangers_are_all_found() -> None:
    """Nobody else rated the new items: they have an answer after the refit, the rating itself, and had none before."""
    found = ChangesAttack(known=4, new=3).run(strangers(), gf.KNN(k=3), targets=12, rng=1)
    shares = found.estimates
    for name in ("found", "advantage", "precision", "recovery"):
        assert shares[name].value == 1
    for name in ("found_without", "recovery_without", "false_alarms"):
        assert shares[name].value == 0
    assert (found.n_targets, found.n_fakes, found.n_left_out) == (12, 3, 0)


def test_who_ignores_others_shows_no_change() -> None:
    found = ChangesAttack(known=4, new=2, fakes=2).run(tied_ratings(3), OwnMean(), targets=8, rng=1)
    assert not found.counts.any()
    assert found.estimates["advantage"].value == found.estimates["false_alarms"].value == 0
    assert math.isnan(found.estimates["precision"].value)


class Noise:
    """Answers with fresh noise after each fit."""

    def __init__(self, rng: int | None = None) -> None:
        self.rng = rng

    def fit(self, ratings: gf.Ratings) -> Noise:
        self.ratings_, self.answers_ = ratings, 1 + 4 * np.random.default_rng(self.rng).random(ratings.shape[1])
        return self

    def predict(self, users: Any, items: Any) -> Any:
        assert len(users) == len(items)
        return self.answers_[self.ratings_.columns(items)]


def test_noise_is_claimed_in_both_worlds_alike() -> None:
    """The same noise with new ratings and without: the claims are the same, and right by chance."""
    found = ChangesAttack(known=4, new=3, fakes=2).run(strangers(), Noise(), targets=12, rng=1)
    np.testing.assert_array_equal(found.counts[0], found.counts[1])
    assert found.estimates["false_alarms"].value == 1
    assert found.estimates["advantage"].value == 0
    assert found.estimates["found"].value < 0.3


class Watching(OwnMean):
    """Remembers the columns that it was fitted to."""

    seen: list[set[int]] = []  # noqa: RUF012 - shared on purpose

    def fit(self, ratings: gf.Ratings) -> Watching:
        Watching.seen.append(set(ratings.csr.indices.tolist()))
        OwnMean.fit(self, ratings)
        return self


def test_the_last_ratings_are_new_where_times_are_known() -> None:
    ratings = strangers(timed=True)
    Watching.seen = []
    ChangesAttack(known=4, new=3, fakes=1).run(ratings, Watching(), targets=[2], rng=1)
    before, after, control = Watching.seen
    assert after - before == {27, 28, 29}
    assert before == control


def test_claims_by_hand() -> None:
    before, after = np.array([1.0, np.nan, 3.0, 4.0, 5.0]), np.array([1.5, 2.0, np.nan, 4.0, 2.0])
    assert claimed(before, after, 9).tolist() == [1, 4, 0]
    assert claimed(before, after, 2).tolist() == [1, 4]
    assert claimed(before, before, 9).tolist() == []


def test_a_report_is_plain_and_repeatable() -> None:
    attack = ChangesAttack(known=3, new=2)
    first, second = (attack.run(tied_ratings(4), gf.PPNS(k=3, beta=2), targets=6, rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.counts, second.counts)
    told = json.loads(json.dumps(plain(first.to_dict())))
    assert told["settings"] == {"name": "ChangesAttack", "known": 3, "new": 2, "fakes": None}
    assert "user " not in repr(first) + json.dumps(told)


def test_refused() -> None:
    with pytest.raises(SettingError, match="new must be an integer of at least 1"):
        ChangesAttack(known=3, new=0)
    with pytest.raises(DataError, match="lower known"):
        ChangesAttack(known=8, new=3).run(strangers(), gf.KNN(k=3), targets=3, rng=1)
    with pytest.raises(SettingError, match="must be given ratings"):
        ChangesAttack(known=3).run(tied_ratings(3).likes(2), gf.KNN(k=3), rng=1)


@pytest.mark.slow
def test_the_command_is_what_python_finds() -> None:
    given = (FILMS, "--method", "knn k=20", "--attack", "refits known=8 new=2", "--targets", 5, "--seed", 7, "--quiet")
    told = run_json("audit", *given)
    found = ChangesAttack(known=8, new=2).run(gf.load(FILMS), gf.KNN(k=20), targets=5, rng=7)
    expected = plain(found.to_dict())
    assert told["attack"] == expected.pop("settings")
    assert {key: told[key] for key in expected} == expected
    assert found.estimates["found"].value > 0.8
    code, stdout, _ = run("audit", *given)
    assert code == 0
    assert "of new ratings, 0 (0-43)% if the target had added nothing" in stdout
    assert "5 users; 8 ratings of each known, 2 new" in stdout
