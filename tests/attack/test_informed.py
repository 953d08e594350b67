"""The informed attacker: guesses by hand, the same in both worlds, chosen on one half; and figures that never fail."""

from __future__ import annotations

import json
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.attack.attack import Subject
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.scoring import (
    BELIEFS,
    GUESSES,
    Answers,
    Outcomes,
    all_guesses,
    first_half,
    informed,
    more_often,
    worst_tenth_loss,
)
from goodfence.attack.strongest import strongest
from goodfence.attack.targets import Targets, find_targets
from goodfence.report.serialize import to_json
from goodfence.rng import Streams
from tests.support.attack_worlds import tied_ratings


def small() -> gf.Ratings:
    """Return four users: a (A5 B4 C5 D1), b (A3 B2 C4), c (A3 C1), d (C4)."""
    cells = np.array([[5, 4, 5, 1], [3, 2, 4, 0], [3, 0, 1, 0], [0, 0, 4, 0]], dtype=float)
    return gf.Ratings(sparse.csr_array(cells), list("abcd"), list("ABCD"), scale=(1, 5))


def test_guesses_by_hand() -> None:
    """A and B of user a are known. The others rated C 4, 1, 4: mean 3, mode 4. Nobody else rated D.

    All others' ratings are 3 2 4 3 1 4: mean 17/6. User a rates A 5 where the others' mean is 3, and B 4 where it
    is 2: 2 above them. So the three rules say 3, 4, 5 for C and 17/6, 17/6, 17/6 + 2 for D.
    """
    ratings = small()
    targets, _ = find_targets(ratings, ["a"], 2, ("A", "B"), Streams(1))
    middle = 17 / 6
    expected = [[3, middle], [4, middle], [5, middle + 2]]
    np.testing.assert_allclose(all_guesses(targets, ratings), expected)


def test_guesses_do_not_depend_on_the_hidden_ratings() -> None:
    """Whatever the target rated, somebody without that data guesses the same."""
    ratings = tied_ratings(3, values=(1, 2, 3, 4, 5))
    targets, _ = find_targets(ratings, 6, 3, "random", Streams(2))
    before = all_guesses(targets, ratings)
    changed = ratings.csr.copy()
    for row, known in zip(targets.rows.tolist(), targets.known_columns, strict=True):
        cells = np.arange(changed.indptr[row], changed.indptr[row + 1])
        hidden = cells[~np.isin(changed.indices[cells], known)]
        one = gf.Ratings(_with(changed, hidden), ratings.users, ratings.items, ratings.scale)
        place = int(np.flatnonzero(targets.rows == row)[0])
        again, _ = find_targets(one, [ratings.users[row]], 3, tuple(ratings.items[known]), Streams(2))
        part = slice(targets.starts[place], targets.starts[place + 1])
        np.testing.assert_allclose(all_guesses(again, one), before[:, part])


def _with(csr: sparse.csr_array, cells: npt.NDArray[np.int64]) -> sparse.csr_array:
    """Return the ratings with those of some cells turned upside down."""
    data = csr.data.copy()
    data[cells] = 6 - data[cells]
    return sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)


def concluded(with_target: list[float], without: list[float], sure: list[bool]) -> Answers:
    known = np.array(sure)
    return Answers(np.array(with_target), np.array(without), np.zeros(len(sure)), known, known)


def one_hidden_each(ratings: list[float]) -> Targets:
    n = len(ratings)
    nothing = np.empty((n, 0))
    columns = np.zeros(n, dtype=np.int64)
    rows = np.arange(n)
    return Targets(rows, nothing.astype(np.int64), nothing, np.arange(n + 1), columns, np.array(ratings))


def test_what_is_believed_is_chosen_on_the_other_half_in_each_world() -> None:
    """Eight users rated the only item 5, so the guess is 5, and always right.

    With the target only the sure conclusions are right, and the others 1: believing what is sure, or guessing, is best.
    Without the target all conclusions are wrong, sure or not: guessing is best.
    """
    cells = np.full((8, 1), 5.0)
    ratings = gf.Ratings(sparse.csr_array(cells), range(8), ["A"], scale=(1, 5))
    targets = one_hidden_each([5.0] * 8)
    sure = [True, False] * 4
    answers = concluded([5.0, 1.0] * 4, [1.0, 1.0] * 4, sure)
    found, outcomes = informed(answers, targets, ratings, Streams(3))
    assert isinstance(outcomes, Outcomes)
    assert found.rules["with_target"] == (BELIEFS[1],) * 2
    assert found.rules["without_target"] == (BELIEFS[2],) * 2
    assert found.rules["guess"] == (GUESSES[0],) * 2
    assert found.with_target.recovered.sum() == found.without_target.recovered.sum() == 8
    assert found.sure.predicted.sum() == found.sure.recovered.sum() == 4
    assert found.sure_without.recovered.sum() == 0


def test_halves_are_by_the_seed() -> None:
    for n in (1, 2, 3, 10, 11):
        half = first_half(n, Streams(5))
        assert half.sum() == n // 2
    assert (first_half(40, Streams(5)) != first_half(40, Streams(6))).any()


def test_the_most_exposed_tenth_is_that_of_the_losses_less_that_of_the_gains() -> None:
    """Of twenty people two lose 1.0 and 0.9, and other two gain 0.4 and 0.2 by chance."""
    recovered = np.array([1.0, 0.9, *[0.1] * 18])
    without = np.array([0.0, 0.0, 0.5, 0.3, *[0.1] * 16])
    found = worst_tenth_loss(recovered, without)
    assert found.value == pytest.approx(0.95 - 0.3)
    assert found.low < found.value < found.high
    nothing = worst_tenth_loss(recovered, recovered)
    assert (nothing.value, nothing.low, nothing.high) == (0, -1, 1)  # of twenty nobody, and that says little
    many = worst_tenth_loss(np.zeros(2000), np.zeros(2000))
    assert -0.02 < many.low < 0 < many.high < 0.02
    few = np.array([0.8, *[0.2] * 4])  # of five people the tenth is one
    assert worst_tenth_loss(few, np.zeros(5)).value == pytest.approx(0.8)


def test_more_often_is_a_sign_test() -> None:
    """Six of six differences point one way: 1/64, below 2.5%. Five of five: 1/32, above. Eight of nine: 10/512."""
    nobody = np.zeros(30, dtype=np.bool_)
    for n, expected in ((6, True), (5, False), (0, False)):
        happened = np.arange(30) < n
        assert more_often(happened, nobody) is expected
        assert more_often(nobody, happened) is False
    eight, one = np.arange(30) < 8, np.arange(30) == 8
    assert more_often(eight, one) is True
    assert more_often(eight, np.arange(30) > 27) is False  # eight of ten: 56/1024


class Silent:
    """Never answers."""

    def fit(self, _: gf.Ratings) -> Self:
        return self

    def predict(self, _: Any, items: Any) -> Any:
        return np.full(len(items), np.nan)


class Open:
    """Hands out the mean rating of whoever rated the item and is no copy of the asker: everything, if that is one."""

    def fit(self, ratings: gf.Ratings) -> Self:
        self.ratings = ratings
        self.largest = ratings.csr.max(axis=0).toarray().ravel()
        return self

    def predict(self, _: Any, items: Any) -> Any:
        return self.largest[self.ratings.columns(items)]


def alone() -> gf.Ratings:
    """Return twelve users, each the only one with four of their six ratings."""
    rng = np.random.default_rng(1)
    cells = np.zeros((12, 50))
    for user in range(12):
        cells[user, :2] = rng.integers(1, 6, 2)
        cells[user, 2 + 4 * user : 6 + 4 * user] = rng.integers(1, 6, 4)
    return gf.Ratings(sparse.csr_array(cells), range(12), range(50), scale=(1, 5))


@pytest.mark.parametrize("n_targets", [1, 2, 12])
@pytest.mark.parametrize("box", [Silent(), Open()], ids=["absent", "total"])
def test_no_figure_fails_because_a_leak_is_absent_or_total(box: Any, n_targets: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attack = KNNAttack(known=2, choose=(0, 1), fakes=3)
        report = attack.run(alone(), box, targets=n_targets, rng=1)
        told = json.loads(to_json(report))
        assert str(report)
        assert report.above(0.5) == (() if isinstance(box, Silent) else report.above(0.2))
    if isinstance(box, Silent):
        assert report.estimates["advantage"].value == 0
        assert told["estimates"]["mae"]["value"] is None
    else:
        assert report.recovery == report.fully_recovered.value == 1.0
        assert report.estimates["fully_recovered"].high == 1.0


class Dice:
    """Answers by chance, otherwise in each world: there is nothing to learn."""

    rng: int | None = None

    def fit(self, ratings: gf.Ratings) -> Self:
        self.drawn = np.random.default_rng([self.rng or 0, ratings.shape[0]])
        return self

    def predict(self, _: Any, items: Any) -> Any:
        return self.drawn.integers(1, 6, len(items)).astype(float)


@pytest.mark.slow
def test_the_strongest_of_many_who_learn_nothing_gains_nothing() -> None:
    """Somebody is always the luckiest on the half that chooses; on the other half nobody is lucky."""
    ratings = tied_ratings(4, n_users=60, n_items=20, values=(1, 2, 3, 4, 5))
    attackers = [KNNAttack(known=4, fakes=fakes) for fakes in range(1, 9)]
    reports = [strongest(Subject(ratings, Dice()), attackers, targets=24, rng=seed) for seed in range(40)]
    luck = np.mean([max(one.advantage.value for one in report.tried) for report in reports])
    found = np.array([report.advantage for report in reports])
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert luck > 8 * error
    assert abs(found.mean()) < 4.9 * error  # one false alarm in a million


def test_kinds_of_attackers_that_were_not_tried_are_named() -> None:
    subject = Subject(tied_ratings(3, values=(1, 2, 3, 4, 5)), gf.KNN(k=3))
    attackers = {"one": KNNAttack(known=3), "all": KNNAttack(known=3, ask="all")}
    named = {
        asks: [one.attack for one in strongest(subject, [each], targets=3, rng=1).not_tried]
        for asks, each in attackers.items()
    }
    assert named["one"][:3] == ["all fakes ask", "adaptive", "repeated refits"]
    assert named["all"] == named["one"][1:]
    both = strongest(subject, list(attackers.values()), targets=4, rng=1)
    assert [one.attack for one in both.not_tried] == named["all"]
    assert [one.attack for one in both.tried] == [repr(each) for each in attackers.values()]
