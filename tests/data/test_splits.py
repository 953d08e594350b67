"""Parts of ratings by chance and by time: known answers, and what each part keeps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.data.ratings import Ratings
from goodfence.data.splits import folds, holdout, sample_targets
from goodfence.errors import DataError, GoodfenceWarning, SettingError


@pytest.fixture
def ratings() -> Ratings:
    """Six users with 1 to 6 ratings; user "f" rated everything, one rating is 0."""
    rows, columns = np.nonzero(np.tri(6))
    values = (rows * 7 + columns) % 5 + 1.0
    values[4] = 0.0
    matrix = sparse.csr_array((values, (rows, columns)), shape=(6, 6))
    return Ratings(matrix, users=list("abcdef"), items=list(range(10, 16)), scale=(0, 5))


def cells(part: Ratings) -> dict[tuple[int, int], float]:
    coo = part.csr.tocoo()
    return {
        (int(row), int(column)): float(value) for row, column, value in zip(coo.row, coo.col, coo.data, strict=True)
    }


def test_holdout_of_a_fraction_is_the_known_one(ratings: Ratings) -> None:
    train, test = holdout(ratings, fraction=0.2, rng=7)
    assert sorted(cells(test)) == [(3, 2), (4, 2), (4, 3), (5, 0)]
    assert train.n_ratings == 17


def test_holdout_parts_make_up_the_whole(ratings: Ratings) -> None:
    train, test = holdout(ratings, fraction=0.5, rng=1)
    assert cells(train) | cells(test) == cells(ratings)
    assert not set(cells(train)) & set(cells(test))
    for part in (train, test):
        assert part.shape == ratings.shape
        assert part.users.tolist() == ratings.users.tolist()
        assert part.items.tolist() == ratings.items.tolist()
        assert part.scale == ratings.scale


def test_a_fifth_is_held_out_unless_told(ratings: Ratings) -> None:
    assert holdout(ratings, rng=3)[1].n_ratings == round(0.2 * 21)


def test_holdout_per_user_takes_that_many_of_each(ratings: Ratings) -> None:
    with pytest.warns(GoodfenceWarning, match="2 users have no more than 2 ratings"):
        train, test = holdout(ratings, per_user=2, rng=7)
    assert np.diff(test.csr.indptr).tolist() == [0, 0, 2, 2, 2, 2]
    assert np.diff(train.csr.indptr).tolist() == [1, 2, 1, 2, 3, 4]
    assert sorted(cells(test)) == [(2, 0), (2, 1), (3, 0), (3, 2), (4, 2), (4, 3), (5, 0), (5, 2)]
    assert cells(train) | cells(test) == cells(ratings)


def test_users_without_ratings_are_not_short_of_them() -> None:
    """Users with 0, 1, 2 and 3 ratings, two held out of each: two are short."""
    matrix = sparse.csr_array(np.tri(4, 3, -1))
    some = Ratings(matrix, users=list("abcd"), items=[10, 11, 12], scale=(0, 5))
    with pytest.warns(GoodfenceWarning, match=r"^2 users have no more than 2 ratings"):
        _, test = holdout(some, per_user=2, rng=7)
    assert np.diff(test.csr.indptr).tolist() == [0, 0, 0, 2]


def test_folds_are_the_known_ones(ratings: Ratings) -> None:
    parts = list(folds(ratings, n=4, rng=7))
    assert [test.n_ratings for _, test in parts] == [6, 5, 5, 5]
    assert sorted(cells(parts[3][1])) == [(0, 0), (3, 0), (4, 2), (5, 1), (5, 3)]
    assert all(cells(train) | cells(test) == cells(ratings) for train, test in parts)
    assert sorted(cell for _, test in parts for cell in cells(test)) == sorted(cells(ratings))


def test_targets_are_the_known_ones(ratings: Ratings) -> None:
    assert sample_targets(ratings, 3, rng=7).tolist() == ["e", "d", "c"]
    assert sample_targets(ratings, 2, rng=7).tolist() == ["e", "d", "c"][:2]


def test_targets_have_more_ratings_than_asked(ratings: Ratings) -> None:
    assert sorted(sample_targets(ratings, 200, more_than=4, rng=7).tolist()) == ["e", "f"]
    assert sample_targets(ratings, 200, more_than=6, rng=7).tolist() == []


def test_targets_of_items_come_from_the_transposed(ratings: Ratings) -> None:
    assert set(sample_targets(ratings.transposed, 9, more_than=4, rng=7).tolist()) == {10, 11}


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, float("nan")])
def test_a_fraction_is_between_0_and_1(ratings: Ratings, fraction: float) -> None:
    with pytest.raises(SettingError, match="fraction must be strictly between 0 and 1"):
        holdout(ratings, fraction=fraction)


def test_settings_are_checked(ratings: Ratings) -> None:
    with pytest.raises(SettingError, match="both"):
        holdout(ratings, fraction=0.2, per_user=2)
    with pytest.raises(SettingError, match="per_user must be"):
        holdout(ratings, per_user=0)
    with pytest.raises(SettingError, match="n must be"):
        folds(ratings, n=1)
    with pytest.raises(SettingError, match="n must be"):
        folds(ratings, n=22)
    with pytest.raises(SettingError, match="n must be"):
        sample_targets(ratings, 0)
    with pytest.raises(SettingError, match="more_than must be"):
        sample_targets(ratings, 1, more_than=-1)


def timed(counts: list[int], times: list[int]) -> gf.Ratings:
    """Return ratings of users who rated the first so many items each, with these times in order."""
    indptr = np.concatenate(([0], np.cumsum(counts)))
    columns = np.concatenate([np.arange(n) for n in counts])
    matrix = sparse.csr_array((np.ones(len(columns)), columns, indptr), shape=(len(counts), 10))
    return gf.Ratings(matrix, range(len(counts)), range(10), feedback="implicit", times=times)


def test_by_time_the_last_part_of_each_user_is_held_out() -> None:
    # by hand: ten, five, two, one and no events; the last two, one, one, none and none are held out
    ten, five = [5, 9, 1, 2, 3, 4, 8, 0, 6, 7], [3, 3, 3, 3, 3]
    events = timed([10, 5, 2, 1, 0], [*ten, *five, 7, 6, 1])
    train, test = gf.holdout(events, by="time")
    held = [test.csr.indices[a:b].tolist() for a, b in pairwise(test.csr.indptr.tolist())]
    assert held == [[1, 6], [4], [0], [], []]
    assert train.n_ratings + test.n_ratings == events.n_ratings
    assert test.times is not None
    assert test.times.tolist() == [9, 8, 3, 7]


def test_by_time_so_many_of_each_user() -> None:
    events = timed([3, 2], [3, 1, 2, 5, 5])
    with pytest.warns(GoodfenceWarning, match="1 users have no more than 2"):
        _, test = gf.holdout(events, by="time", per_user=2)
    assert test.csr.indices.tolist() == [0, 2]


@pytest.mark.parametrize("fraction", [0.001, 0.5, 0.999])
def test_by_time_everybody_keeps_one_and_gives_one(fraction: float) -> None:
    events = timed([10, 2, 1], list(range(13)))
    train, test = gf.holdout(events, by="time", fraction=fraction)
    assert np.diff(train.csr.indptr).min() >= 1
    assert np.diff(test.csr.indptr)[:2].min() >= 1
    assert np.diff(test.csr.indptr)[2] == 0


def test_without_times_there_is_no_split_by_time() -> None:
    table = pa.table({"user": [1, 1], "item": [1, 2], "rating": [1, 2]})
    with pytest.raises(DataError, match="must have times to be split by time"):
        gf.holdout(gf.Ratings.from_frame(table), by="time")
    with pytest.raises(SettingError, match="by must be"):
        gf.holdout(timed([2], [1, 2]), by="date")  # type: ignore[arg-type]  # the point
