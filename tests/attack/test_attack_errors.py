"""What cannot be attacked is refused in one sentence, and no message holds an id or a rating."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.attack.attack import Attack
from goodfence.attack.exposure import exposure
from goodfence.attack.knn_attack import AdaptiveAttack, CoverAttack, KNNAttack
from goodfence.attack.targets import find_targets
from goodfence.errors import DataError, SettingError
from goodfence.rng import Streams
from tests.support.attack_worlds import ItemMeans, tied_ratings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"known": 0}, "known must be an integer of at least 1, got 0"),
        ({"known": True}, "known must be an integer"),
        ({"known": 3, "fakes": 0}, "fakes must be an integer of at least 1, got 0"),
        ({"known": 3, "choose": "rarely"}, "got 'rarely'; did you mean 'rarest'"),
        ({"known": 3, "choose": [1, 2]}, "choose must be known=3 different items, got '2 items'"),
        ({"known": 2, "choose": [1, 1]}, "choose must be known=2 different items"),
        ({"known": 3, "ask": "two"}, "ask must be one of one, all, got 'two'"),
        ({"known": 3, "combine": "median"}, "combine must be one of mode, mean"),
        ({"known": 3, "rounds": 0}, "rounds must be an integer of at least 1"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        KNNAttack(**settings)


def test_what_attacks_have_in_common_is_no_attack() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Attack(known=3)  # type: ignore[abstract] # that is what is refused


def test_settings_are_a_frozen_keyword_only_value() -> None:
    attack = KNNAttack(known=8)
    assert attack == KNNAttack(known=8, choose="random", fakes=None, ask="one")
    with pytest.raises(AttributeError):
        attack.known = 9  # type: ignore[misc]  # that is the point
    with pytest.raises(TypeError):
        KNNAttack(8)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        KNNAttack(known=8, beta=7)  # type: ignore[call-arg]
    assert "choose=2 named items" in repr(KNNAttack(known=2, choose=["a", "b"]))


def test_adaptive_settings() -> None:
    with pytest.raises(SettingError, match="fakes must be at least 2"):
        AdaptiveAttack(known=3, fakes=1)
    with pytest.raises(SettingError, match="items must be an integer of at least 1"):
        AdaptiveAttack(known=3, items=0)
    with pytest.raises(SettingError, match="fakes must be at least 2"):
        AdaptiveAttack(known=3).run(tied_ratings(1), gf.KNN(k=1), targets=2, rng=1)


def secret_ratings() -> gf.Ratings:
    cells = np.array([[4.0, 2.0, 0.0], [4.0, 2.0, 5.0], [0.0, 4.0, 3.0], [1.0, 1.0, 1.0]])
    users = ["secret one", "secret two", "secret three", "secret four"]
    return gf.Ratings(sparse.csr_array(cells), users, ["p", "q", "r"], scale=(1, 5))


@pytest.mark.parametrize(
    ("attack", "mechanism", "targets", "error", "message"),
    [
        (KNNAttack(known=2), gf.KNN(k=2), ["secret one"], DataError, "more than known=2 ratings"),
        (
            KNNAttack(known=2, choose=["p", "q"]),
            gf.KNN(k=2),
            ["secret three"],
            DataError,
            "items named in choose among them",
        ),
        (KNNAttack(known=1, choose=["p"]), gf.KNN(k=2), ["secret three"], DataError, "named in"),
        (KNNAttack(known=1, choose=["z"]), gf.KNN(k=2), 2, DataError, "items asked for"),
        (KNNAttack(known=1), gf.KNN(k=2), ["secret five"], DataError, "users asked for"),
        (KNNAttack(known=1), gf.KNN(k=2), ["secret two"] * 2, DataError, "different users"),
        (KNNAttack(known=1), gf.KNN(k=2), [], DataError, "different users, at least one"),
        (KNNAttack(known=3), gf.KNN(k=2), 2, DataError, "nobody has more ratings"),
        (KNNAttack(known=1), gf.KNN(k=2), 0, SettingError, "targets must be a positive integer"),
        (KNNAttack(known=1), gf.KNN(k=4), 2, SettingError, "k must be at most .* 3, got"),
        (KNNAttack(known=1), gf.PPNS(k=2, beta=2), 2, SettingError, "got beta=2, k=2"),
        (KNNAttack(known=1, fakes=50), gf.KNN(k=4), 2, SettingError, "k must be at most"),
        (KNNAttack(known=1), gf.NeighbourCF(gf.KNN(k=4)), 2, SettingError, "k must be at most"),
        (KNNAttack(known=1), ItemMeans(), 2, SettingError, "fakes must be given"),
        (KNNAttack(known=1, fakes=2), object(), 2, SettingError, "with fit and predict"),
        (CoverAttack(known=1), gf.NPNS(k=2), 2, SettingError, "whole list"),
        (CoverAttack(known=1), ItemMeans(), 2, SettingError, "fakes must be given"),
    ],
)
def test_refused(attack: KNNAttack, mechanism: Any, targets: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        attack.run(secret_ratings(), mechanism, targets=targets, rng=1)
    assert "secret" not in str(caught.value)


def test_run_settings() -> None:
    attack = KNNAttack(known=1)
    with pytest.raises(SettingError, match="RS is not defined for pearson"):
        attack.run(secret_ratings(), gf.NeighbourCF(gf.PNCF(k=2), similarity="pearson"))
    with pytest.raises(SettingError, match="must be a selection mechanism"):
        exposure(secret_ratings(), gf.NeighbourCF(gf.KNN(k=2), axis="item"), attack=attack)


def test_drawn_targets_are_those_that_can_be_attacked() -> None:
    found, n_left_out = find_targets(secret_ratings(), 10, 2, "random", Streams(1))
    assert (sorted(found.rows.tolist()), n_left_out) == ([1, 3], 2)
    found, n_left_out = find_targets(secret_ratings(), 10, 1, ("p",), Streams(1))
    assert (sorted(found.rows.tolist()), n_left_out) == ([0, 1, 3], 1)
    assert found.known_columns.tolist() == [[0]] * 3


def test_rarest_and_most_popular_break_ties_by_column() -> None:
    ratings = secret_ratings()  # p and r have three ratings each, q has four
    for choose, columns in (("rarest", [0, 2]), ("most_popular", [0, 1])):
        found, _ = find_targets(ratings, ["secret two"], 2, choose, Streams(1))
        assert found.known_columns.tolist() == [columns]
        assert found.known_ratings.tolist() == [ratings.csr.toarray()[1, columns].tolist()]
        assert found.columns.tolist() == sorted({0, 1, 2} - set(columns))


def test_fakes_have_new_ids() -> None:
    from goodfence.attack.targets import new_ids

    top = np.iinfo(np.int64).max
    assert new_ids(np.array([0, 2, top]), 2).tolist() == [1, 3]
    assert new_ids(np.array(["fake 1", "b"], dtype=object), 2).tolist() == ["fake' 0", "fake' 1"]
