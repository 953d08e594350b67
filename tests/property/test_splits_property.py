"""Whatever the ratings: parts make up the whole, and a core is a core and the largest."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from goodfence.data.ratings import Ratings
from goodfence.data.splits import core, folds, holdout, sample_targets
from goodfence.errors import DataError

Cells = dict[tuple[int, int], float]


@st.composite
def ratings(draw: st.DrawFn) -> Ratings:
    """Up to 8 users and 8 items, at least two ratings, zeros among them."""
    n_users, n_items = draw(st.integers(2, 8)), draw(st.integers(2, 8))
    places = st.tuples(st.integers(0, n_users - 1), st.integers(0, n_items - 1))
    cells = draw(st.dictionaries(places, st.integers(0, 5), min_size=2))
    rows, columns = zip(*cells, strict=True)
    values = np.array(list(cells.values()), dtype=np.float64)
    matrix = sparse.csr_array((values, (rows, columns)), shape=(n_users, n_items))
    return Ratings(matrix, range(n_users), range(n_items), scale=(0, 5))


def cells_of(part: Ratings) -> Cells:
    coo = part.csr.tocoo()
    places = zip(coo.row.tolist(), coo.col.tolist(), strict=True)
    return dict(zip(places, coo.data.tolist(), strict=True))


@given(ratings(), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_a_holdout_makes_up_the_whole(whole: Ratings, fraction: float, seed: int) -> None:
    train, test = holdout(whole, fraction=fraction, rng=seed)
    assert test.n_ratings == round(fraction * whole.n_ratings)
    assert train.n_ratings + test.n_ratings == whole.n_ratings
    assert cells_of(train) | cells_of(test) == cells_of(whole)


@given(ratings(), st.integers(1, 4), st.integers(0, 2**32))
def test_a_holdout_per_user_leaves_everybody_something(whole: Ratings, per_user: int, seed: int) -> None:
    with warnings.catch_warnings(action="ignore"):
        train, test = holdout(whole, per_user=per_user, rng=seed)
    before, held = np.diff(whole.csr.indptr), np.diff(test.csr.indptr)
    assert np.array_equal(held, np.where(before > per_user, per_user, 0))
    assert cells_of(train) | cells_of(test) == cells_of(whole)


@given(ratings(), st.integers(0, 2**32), st.data())
def test_every_rating_is_tested_once(whole: Ratings, seed: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(2, whole.n_ratings))
    tested: list[tuple[int, int]] = []
    for train, test in folds(whole, n=n, rng=seed):
        assert cells_of(train) | cells_of(test) == cells_of(whole)
        assert test.n_ratings in (whole.n_ratings // n, -(-whole.n_ratings // n))
        tested += cells_of(test)
    assert sorted(tested) == sorted(cells_of(whole))


@given(ratings(), st.integers(1, 10), st.integers(0, 6), st.integers(0, 2**32))
def test_targets_are_different_and_have_enough(whole: Ratings, n: int, more_than: int, seed: int) -> None:
    targets = sample_targets(whole, n, more_than=more_than, rng=seed).tolist()
    enough = np.flatnonzero(np.diff(whole.csr.indptr) > more_than).tolist()
    assert len(set(targets)) == len(targets) == min(n, len(enough))
    assert set(targets) <= set(enough)


@given(ratings(), st.integers(1, 3), st.integers(1, 3))
def test_a_core_is_what_is_left_when_one_goes_at_a_time(whole: Ratings, per_user: int, per_item: int) -> None:
    left = cells_of(whole)
    while weak := _first_weak(left, per_user, per_item):
        axis, place = weak
        left = {cell: value for cell, value in left.items() if cell[axis] != place}
    try:
        found = core(whole, per_user=per_user, per_item=per_item)
    except DataError:
        assert not left
        return
    users, items = found.users.tolist(), found.items.tolist()
    assert {(users[u], items[i]): value for (u, i), value in cells_of(found).items()} == left


def _first_weak(cells: Cells, per_user: int, per_item: int) -> tuple[int, int] | None:
    for axis, least in ((1, per_item), (0, per_user)):
        places = [cell[axis] for cell in cells]
        for place in places:
            if places.count(place) < least:
                return axis, place
    return None


@given(ratings(), st.floats(0.01, 0.99), st.data())
def test_by_time_each_user_s_last_are_held_out(whole: Ratings, fraction: float, data: st.DataObject) -> None:
    stamps = st.lists(st.integers(0, 4), min_size=whole.n_ratings, max_size=whole.n_ratings)
    timed = whole.replaced(whole.csr, np.array(data.draw(stamps)))
    train, test = holdout(timed, by="time", fraction=fraction)
    assert cells_of(train).keys().isdisjoint(cells_of(test).keys())
    assert cells_of(train) | cells_of(test) == cells_of(timed)
    assert timed.times is not None
    for row in range(whole.shape[0]):
        own = slice(timed.csr.indptr[row], timed.csr.indptr[row + 1])
        # by hand: in the order of time, then of the columns
        order = sorted(zip(timed.times[own].tolist(), timed.csr.indices[own].tolist(), strict=True))
        n_held = min(max(1, round(fraction * len(order))), max(len(order) - 1, 0))
        held = [column for _, column in order[len(order) - n_held :]]
        found = test.csr.indices[test.csr.indptr[row] : test.csr.indptr[row + 1]]
        assert sorted(held) == found.tolist()
