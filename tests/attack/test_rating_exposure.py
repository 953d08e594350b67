"""Which of a user's ratings are the risky ones."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.attack.exposure import rating_exposure
from goodfence.errors import DataError, SettingError
from tests.support.attack_worlds import ItemMeans, OwnMean, tied_ratings

ALONE, SHARED, COMMON, RARE = range(8), range(8, 12), range(12, 20), range(20, 24)


def made_up() -> gf.Ratings:
    """Return a target, user 0, who alone rated items 0-7, rated 8-11 unlike everybody else, and 12-23 like most.

    The last four user 1 rated otherwise, who is the nearest where the target is not.
    """
    cells = np.zeros((30, 24))
    cells[1:, 12:20] = 3.0
    cells[1:, 8:12] = 1.0
    cells[0, :12] = 5.0
    cells[0, 12:20] = 3.0
    cells[:, 20:] = 4.0
    cells[1, 20:] = 1.0
    return gf.Ratings(sparse.csr_array(cells), range(30), [f"item {i}" for i in range(24)], (1, 5))


def test_what_only_the_user_rated_is_at_risk_and_what_all_think_is_not() -> None:
    """With one neighbour, who is the target, everything is recovered; what the mean gives away is no loss."""
    attack = gf.KNNAttack(known=6, fakes=1)
    found = rating_exposure(made_up(), gf.KNN(k=1), 0, attack=attack, draws=30, rng=3)
    by_item = dict(zip(found.items.tolist(), range(24), strict=True))
    for column in (*ALONE, *SHARED):
        assert found.risk[by_item[f"item {column}"]] > 0.5
        assert not found.guessed[by_item[f"item {column}"]]
    for column in (*COMMON, *RARE):
        place = by_item[f"item {column}"]
        assert found.guessed[place]
        assert found.risk[place] == 0
        assert place >= 12
    rare = [by_item[f"item {column}"] for column in RARE]
    assert (found.recovered[rare] > found.without[rare]).all()  # and yet guessing does as well
    assert (np.diff(found.risk) <= 0).all()
    np.testing.assert_array_equal(found.draws.sum(), 30 * 18)


def slow_exposure(ratings: gf.Ratings, user: Any, attack: gf.KNNAttack, keys: list[int]) -> Any:
    """Return the same counts one attack at a time, by item."""
    counts: dict[Any, list[int]] = {}
    for key in keys:
        told = attack.run(ratings, gf.PPNS(k=4, beta=3), targets=[user], rng=key).outcomes
        assert told is not None
        rows = zip(told.columns, told.recovered, told.recovered_without, strict=True)
        for column, read, without in rows:
            one = counts.setdefault(ratings.items[column], [0, 0, 0])
            one[0] += 1
            one[1] += int(read)
            one[2] += int(without)
    return counts


def test_shares_are_counts_over_the_draws_in_which_it_was_hidden() -> None:
    from goodfence.rng import Streams

    ratings, attack = tied_ratings(12), gf.KNNAttack(known=3)
    found = rating_exposure(ratings, gf.PPNS(k=4, beta=3), "user 2", attack=attack, draws=9, rng=5)
    expected = slow_exposure(ratings, "user 2", attack, [Streams(5).key(turn) for turn in range(9)])
    assert set(found.items.tolist()) == set(expected)
    for place, item in enumerate(found.items.tolist()):
        hidden, read, without = expected[item]
        assert found.draws[place] == hidden
        assert found.recovered[place] == pytest.approx(read / hidden)
        assert found.without[place] == pytest.approx(without / hidden)
        gained = 0.0 if found.guessed[place] else max(0.0, (read - without) / hidden)
        assert found.risk[place] == pytest.approx(gained)


@pytest.mark.parametrize("model", [OwnMean()], ids=repr)
def test_who_ignores_others_puts_nothing_at_risk(model: Any) -> None:
    attack = gf.KNNAttack(known=3, fakes=2)
    found = rating_exposure(tied_ratings(13), model, "user 1", attack=attack, draws=5, rng=1)
    assert not found.risk[found.draws > 0].any()


def test_what_was_never_hidden_is_not_known_and_comes_last() -> None:
    ratings = tied_ratings(14)
    n_rated = int(np.diff(ratings.csr.indptr)[4])
    attack = gf.KNNAttack(known=n_rated - 1, fakes=2)
    found = rating_exposure(ratings, ItemMeans(), "user 4", attack=attack, draws=2, rng=1)
    never = found.draws == 0
    assert never.sum() >= n_rated - 2
    assert np.isnan(found.recovered[never]).all()
    assert np.isnan(found.risk[never]).all()
    assert never[-1]
    assert not never[0]


def test_repr_holds_no_rating_and_no_item() -> None:
    attack = gf.KNNAttack(known=6, fakes=1)
    found = rating_exposure(made_up(), gf.KNN(k=1), 0, attack=attack, draws=3, rng=3)
    assert repr(found).startswith("RatingExposure(24 ratings, ")
    assert "item" not in repr(found)


def test_refused() -> None:
    attack = gf.KNNAttack(known=3, choose="rarest")
    with pytest.raises(SettingError, match="choose must be 'random'"):
        rating_exposure(made_up(), gf.KNN(k=1), 0, attack=attack)
    with pytest.raises(SettingError, match="draws must be an integer of at least 1"):
        rating_exposure(made_up(), gf.KNN(k=1), 0, attack=gf.KNNAttack(known=3), draws=0)
    with pytest.raises(DataError, match="more than known=24 ratings"):
        rating_exposure(made_up(), gf.KNN(k=1), 0, attack=gf.KNNAttack(known=24))


def test_a_recommender_brings_its_similarity() -> None:
    """With the usual similarity it is as exposed as its mechanism; with another one, otherwise."""
    films, draws = gf.synthetic(users=40, items=20, ratings=400, rng=7), gf.NPNS(k=5)
    models: list[Any] = [gf.NeighbourCF(draws, similarity=name) for name in ("cosine", "jaccard")]
    attack = gf.KNNAttack(known=3)
    alone, same, other = (gf.exposure(films, one, attack=attack, targets=9, rng=7).chosen for one in (draws, *models))
    assert (same == alone).all()
    assert (other != alone).any()


def test_what_is_found_becomes_plain_values() -> None:
    """Shares of many targets without ids; the ratings of one user, for that user."""
    films = gf.synthetic(users=40, items=20, ratings=400, rng=7)
    told = gf.exposure(films, gf.KNN(k=5), attack=gf.KNNAttack(known=3), targets=9, rng=7)
    shown = told.to_dict()
    assert shown["n_targets"] == 9
    assert shown["n_hidden"] == len(told.alone)
    assert shown["share"]["value"] == told.share.value
    busiest = films.users[np.argmax(np.diff(films.csr.indptr))]
    own = rating_exposure(films, gf.KNN(k=5), busiest, attack=gf.KNNAttack(known=3), draws=4, rng=7)
    assert own.to_dict()["risk"] == own.risk.tolist()
    assert json.loads(json.dumps(own.to_dict()))["items"] == own.items.tolist()
