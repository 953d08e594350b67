"""The n best of scores and of votes: the kernels do what sorting everything does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from goodfence.kernels.predict import limit_of_nearest
from goodfence.neighbours.lists import ItemVotes, Ranked, UserVotes, best_of, rank_alike, rank_in_blocks
from tests.support import reference

N_ITEMS = 9
SCORES = st.lists(st.sampled_from([0.0, 1.0, 1.5, -2.0, np.nan]), min_size=N_ITEMS, max_size=N_ITEMS)
COLUMNS = st.sets(st.integers(0, N_ITEMS - 1))


def listed(lists: Ranked, row: int) -> list[tuple[int, float]]:
    full = lists.columns[row] >= 0
    assert (np.diff(full.astype(int)) <= 0).all()  # nothing after the end of a list
    assert np.isnan(lists.scores[row][~full]).all()
    return list(zip(lists.columns[row][full].tolist(), lists.scores[row][full].tolist(), strict=True))


def flags(columns: Any) -> Any:
    found = np.zeros(N_ITEMS, dtype=bool)
    found[list(columns)] = True
    return found


@given(SCORES, COLUMNS, COLUMNS, st.integers(1, 12))
def test_the_best_of_scores_are_the_first_when_all_are_sorted(
    scores: list[float], seen: set[int], allowed: set[int], n: int
) -> None:
    own = np.array(sorted(seen), dtype=np.int32)
    found = best_of(np.array(scores), own, flags(allowed), n)
    pairs = list(zip(found.columns.tolist(), found.scores.tolist(), strict=True))
    assert pairs == reference.best_list(scores, sorted(seen), sorted(allowed), n)


@given(st.lists(st.tuples(SCORES, COLUMNS), min_size=1, max_size=4), COLUMNS, st.integers(1, 12))
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_blocks_of_rows_are_ranked_as_each_row_is(
    kind: Any, rows: list[tuple[list[float], set[int]]], allowed: set[int], n: int
) -> None:
    scores = np.array([one for one, _ in rows], dtype=kind)
    seen = sparse.csr_array(np.array([flags(own) for _, own in rows], dtype=np.float64))
    lists = rank_in_blocks(lambda first, last: scores[first:last], seen, flags(allowed), n)
    for row, (one, own) in enumerate(rows):
        assert listed(lists, row) == reference.best_list(one, sorted(own), sorted(allowed), n)


@given(SCORES, st.lists(COLUMNS, min_size=1, max_size=5), COLUMNS, st.integers(1, 12))
def test_the_same_order_for_everybody(scores: list[float], seen: list[set[int]], allowed: set[int], n: int) -> None:
    rows = sparse.csr_array(np.array([flags(own) for own in seen], dtype=np.float64))
    lists = rank_alike(np.array(scores), rows, flags(allowed), n)
    for row, own in enumerate(seen):
        assert listed(lists, row) == reference.best_list(scores, sorted(own), sorted(allowed), n)


@pytest.mark.parametrize("n", [1, 4, 30])
def test_user_votes_are_added_up_in_the_order_of_the_neighbours(n: int) -> None:
    chance = np.random.default_rng(5)
    table = np.where(chance.random((40, 25)) < 0.2, chance.integers(1, 4, (40, 25)), 0)
    events = sparse.csr_array(table.astype(np.float64))
    rows = [{int(c): float(v) for c, v in enumerate(own) if v} for own in table]
    neighbours = chance.integers(0, 40, (40, 6)).astype(np.int32)
    weights, allowed = chance.normal(size=(40, 6)), np.flatnonzero(chance.random(25) < 0.8)
    votes = UserVotes(events)
    may = np.zeros(25, dtype=bool)
    may[allowed] = True
    lists = votes.rank((neighbours, weights), events, may, n)
    for row in range(40):
        near = neighbours[row].tolist(), weights[row].tolist()
        scores = reference.votes(*near, rows, 25)
        np.testing.assert_array_equal(votes.scores(neighbours[row], weights[row]), scores)
        wanted = reference.best_list(scores, list(rows[row]), allowed.tolist(), n)
        assert listed(lists, row) == wanted


def test_item_votes_are_the_weights_of_the_neighbours_that_a_user_has() -> None:
    chance = np.random.default_rng(6)
    table = (chance.random((30, 20)) < 0.3).astype(np.float64)
    neighbours = np.stack([chance.permutation(20)[:4] for _ in range(20)]).astype(np.int32)
    weights = chance.normal(size=(20, 4))
    votes, events = ItemVotes.of(neighbours, weights, 20), sparse.csr_array(table)
    lists = votes.rank(events, np.ones(20, dtype=bool), 5)
    for row, own in enumerate(table):
        columns = np.flatnonzero(own)
        scores = np.full(20, np.nan)
        for item in range(20):
            have = [w for j, w in zip(neighbours[item], weights[item], strict=True) if own[j]]
            scores[item] = sum(have) if have else np.nan
        found = votes.scores(columns, own[columns])
        np.testing.assert_allclose(found, scores, atol=1e-15)
        wanted = reference.best_list(found, columns.tolist(), list(range(20)), 5)
        assert listed(lists, row) == wanted


@pytest.mark.kernel
@pytest.mark.parametrize("k", [1, 10, 50, 300])
@pytest.mark.parametrize("falls", [0.0, 6.0])
def test_a_limit_that_exactly_k_reach_is_found_where_there_are_no_ties(k: int, falls: float) -> None:
    ranks = (np.arange(1000) + 0.5) / 1000
    similarities = np.exp(-falls * ranks) if falls else ranks
    limit = limit_of_nearest(similarities, k)
    assert (similarities >= limit).sum() == k


@pytest.mark.kernel
def test_among_ties_no_limit_is_found() -> None:
    assert limit_of_nearest(np.full(50, 0.5), 3) == -1
