"""The fast path to candidate lists gives what one row against all gives, and its parts do what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import goodfence as gf
from goodfence.kernels.order import sort_candidates
from goodfence.kernels.tiles import buffers
from goodfence.kernels.tiles.buffers import cut_near, dot_of, pack_entry, position_of
from goodfence.kernels.tiles.strips import WIDTH, add_strips
from goodfence.kernels.tiles.tile import dot_tile
from goodfence.neighbours import all_pairs as layout
from goodfence.neighbours import all_pairs as tiles
from goodfence.neighbours.all_pairs import ItemNumbers, lay_out_blocks
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.parallel import run_pairs
from tests.support import reference

COSINE = Similarity()


def random_profiles(seed: int, n_rows: int, n_columns: int, share: float, highest: int) -> Profiles:
    chance = np.random.default_rng(seed)
    rated = chance.random((n_rows, n_columns)) < share * chance.random(n_columns)
    values = chance.integers(0, highest + 1, rated.shape)
    rows, columns = np.nonzero(rated)
    csr = sparse.csr_array((values[rated].astype(float), (rows, columns)), shape=rated.shape)
    return Profiles.of(csr)


def both(profiles: Profiles, n: int) -> None:
    assert tiles.fits(profiles, COSINE)
    engine = RowsAgainstAll(profiles, COSINE)
    slow = engine.nearest(profiles, np.arange(profiles.n_rows), n, themselves=True)
    for way, in_common in ((tiles.nearest_by_tiles, 3.0), (tiles.nearest_by_rows, 0.0), (tiles.nearest_by_rows, 1e9)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tiles, "IN_COMMON", in_common)
            fast = way(profiles, n, threads=2)
        assert (fast[0] == slow[0]).all()
        assert (fast[1] == slow[1]).all()


@pytest.mark.parametrize("highest", [1, 5, 10, 31, 32, 255, 300])
def test_tiles_equal_rows_on_every_scale(highest: int) -> None:
    both(random_profiles(highest, 260, 40, 0.9, highest), 30)


@pytest.mark.parametrize("n", [1, 7, 63, 259])
def test_tiles_equal_rows_for_every_length(n: int) -> None:
    both(random_profiles(n, 260, 60, 0.4, 5), n)


@pytest.mark.parametrize("border", [0.0, 0.2, 1.0])
def test_lists_are_the_same_wherever_the_border_is(border: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "POPULAR", border)
    profiles = random_profiles(2, 260, 60, 0.4, 5)
    raters = np.diff(profiles.rows.tocsc().indptr)
    assert ItemNumbers.of(profiles).n_popular == (raters / 260 > border).sum()
    both(profiles, 30)


@pytest.mark.parametrize("other", [1.0, 0.3])
@pytest.mark.parametrize("huge", [1e16, 1e200, 1.5e308])
def test_ratings_too_large_to_be_exact_are_no_whole_numbers(huge: float, other: float) -> None:
    assert Profiles.of(sparse.csr_array([[huge, 0.0], [other, 2.0]])).factor == 0


@pytest.mark.kernel
def test_masses_of_ties_fill_the_buffers() -> None:
    """Four kinds of users only: every list is one long tie, and row numbers decide."""
    kinds = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 2]], dtype=float)
    both(Profiles.of(sparse.csr_array(kinds[np.arange(400) % 4])), 20)


@pytest.mark.kernel
def test_thresholds_from_a_sample_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, a small sample and hardly any spare room: each path through the buffers is taken."""
    monkeypatch.setattr(tiles, "SAMPLE", WIDTH)
    monkeypatch.setattr(tiles, "BLOCK", WIDTH)
    monkeypatch.setattr(tiles, "EXTRA_BYTES", 0)
    both(random_profiles(3, 600, 30, 0.5, 5), 40)


@pytest.mark.parametrize("n", [1, 5, 50, 149])
def test_similarities_that_hardly_differ_are_in_order(n: int) -> None:
    """They differ by less than a key can hold, and less than float32 by far; rows are in the opposite order."""
    larger = 46_140 - np.arange(150.0)
    near = np.stack([larger, larger + 1], axis=1)
    both(Profiles.of(sparse.csr_array(np.concatenate([near[::-1], [[1, 1], [1, 2], [3, 3]], near]))), n)


@pytest.mark.parametrize("rank", [1, 3, 40])
def test_a_threshold_within_ties_loses_nothing(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few different rows, so that many similarities tie wherever the threshold is guessed to be."""
    monkeypatch.setattr(tiles, "sample_rank", lambda *_: rank)
    monkeypatch.setattr(tiles, "FEW_SAMPLED", 64)
    for seed in range(6):
        kinds = random_profiles(seed, 2 + 5 * seed, 12, 0.9, 5).rows.toarray()
        chosen = np.random.default_rng(seed).integers(0, len(kinds), 300)
        scaled = kinds[chosen] * (1 + chosen % 3)[:, np.newaxis]
        both(Profiles.of(sparse.csr_array(scaled)), 40)


def test_rows_that_share_few_items_are_the_same_by_every_way() -> None:
    """Hundreds of columns with an item of the row: the threshold is guessed from a part of them, and ties are many."""
    for seed, n in ((1, 3), (2, 60)):
        profiles = random_profiles(seed, 1_400, 300, 0.07, 2)
        assert tiles.are_apart(profiles)
        both(profiles, n)
        few = profiles.rows.toarray()[np.random.default_rng(seed).integers(0, 40, 1_200)]
        both(Profiles.of(sparse.csr_array(few)), n)


def test_a_guess_that_is_too_high_loses_nothing_where_few_items_are_shared() -> None:
    """Each third of the first 420 rows is near to all, and each third row is looked at for the guess."""
    rows = np.zeros((1_000, 8_001))
    for row in range(1_000):
        rows[row, 0] = shared = 80 if row < 420 and row % 3 == 0 else 10
        rest, place = 10_000 + row - shared**2, 1 + 8 * row
        while rest:  # items of nobody else make the norms ascend
            rows[row, place] = part = int(np.sqrt(rest))
            rest, place = rest - part**2, place + 1
    both(Profiles.of(sparse.csr_array(rows)), 300)


def test_rows_guessed_too_high_are_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SAMPLE", WIDTH)
    monkeypatch.setattr(tiles, "sample_rank", lambda *_: 1)
    repeated: list[int] = []
    repeat = tiles.AllPairs.repeat_unsure

    def counted(self: tiles.AllPairs, guesses: np.ndarray) -> None:
        before = self.buffers.counts.copy()
        repeat(self, guesses)
        repeated.append(int((before != self.buffers.counts).sum()))

    monkeypatch.setattr(tiles.AllPairs, "repeat_unsure", counted)
    both(random_profiles(4, 700, 50, 0.5, 5), 40)
    assert repeated[0] > 100


def test_rows_of_nothing_and_of_zeros() -> None:
    rows = sparse.csr_array((np.array([0.0, 0.0, 3.0]), np.array([0, 1, 1]), np.array([0, 0, 2, 3, 3])), shape=(4, 2))
    both(Profiles.of(rows), 3)


def test_what_the_tiles_leave_to_the_rows() -> None:
    whole = random_profiles(1, 20, 10, 0.9, 5)
    assert not tiles.fits(whole, Similarity(name="pearson"))
    assert not tiles.fits(Profiles.of(sparse.csr_array(np.array([[0.123], [1.0]]))), COSINE)
    assert not tiles.fits(Profiles.of(sparse.csr_array(np.array([[-1.0], [1.0]]))), COSINE)
    assert not tiles.fits(Profiles.of(sparse.csr_array(np.array([[70_000.0], [1.0]]))), COSINE)


@pytest.mark.kernel
def test_a_strip_sum_is_the_plain_sum() -> None:
    chance = np.random.default_rng(0)
    strips = chance.integers(0, 6, (3, 9, WIDTH)).astype(np.uint8)
    items = chance.integers(0, 9, 24).astype(np.uint16)
    for element in (np.uint16, np.uint32):
        sums: Any = chance.integers(0, 100, (2, 3 * WIDTH)).astype(element)
        expected = sums.copy()
        dense = strips[1, items[4:16]].sum(axis=0, dtype=element)
        expected[1, WIDTH : 2 * WIDTH] += element(5) * dense
        call_add_strips(sums[1], strips, items, element(5))
        assert (sums == expected).all()


def call_add_strips(sums: np.ndarray, strips: np.ndarray, items: np.ndarray, value: object) -> None:
    from goodfence.kernels import kernel

    def call(sums, strips, items, value):  # type: ignore[no-untyped-def]  # compiled
        add_strips(sums, strips, 1, items, 4, 12, value)

    kernel(call)(sums, strips, items, value)


@pytest.mark.kernel
@pytest.mark.parametrize("highest", [5, 40])
def test_a_tile_is_a_matrix_product(highest: int) -> None:
    profiles = random_profiles(9, 300, 30, 0.8, highest)
    rows = np.random.default_rng(1).permutation(300).astype(np.int32)
    items = ItemNumbers.of(profiles)
    assert (items.n_popular > 0) == (highest <= 31)
    laid = lay_out_blocks(profiles, rows, items, WIDTH, threads=2)
    dense = profiles.rows.toarray()[rows]
    for block, (first, last) in enumerate(laid.blocks):
        tile = np.empty((40, laid.width(block)), dtype=np.uint32)
        dot_tile(tile, 7, 40, laid.row_side, laid.columns(block))
        assert (tile[:, : last - first] == dense[7:47] @ dense[first:last].T).all()
        assert (tile[:, last - first :] == 0).all()


@pytest.mark.kernel
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 99)), max_size=60))
def test_candidates_are_sorted_as_a_list_is(pairs: list[tuple[float, int]]) -> None:
    similarities = np.array([similarity for similarity, _ in pairs])
    rows = np.array([row for _, row in pairs], dtype=np.int32)
    order = sort_candidates(similarities, rows)
    found = [(float(-similarities[slot]), int(rows[slot])) for slot in order]
    assert found == sorted((-similarity, row) for similarity, row in pairs)


@pytest.mark.kernel
@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=80), st.data())
def test_a_cut_keeps_at_least_n(values: list[float], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(values)))
    array = np.array(values, dtype=np.float32)
    assert (array >= cut_near(array, n)).sum() >= n


@pytest.mark.kernel
def test_an_entry_keeps_position_and_dot() -> None:
    for position, dot in ((0, 0), (1, 2**32 - 1), (2**32 - 1, 7)):
        entry = np.uint64(pack_entry(np.uint32(position), np.uint32(dot)))
        assert int(position_of(entry)) == position
        assert int(dot_of(entry)) == dot


def test_every_pair_of_blocks_once_and_none_shared() -> None:
    done: list[tuple[int, int]] = []
    busy: set[int] = set()

    def work(a: int, b: int) -> None:
        assert busy.isdisjoint((a, b))
        busy.update((a, b))
        done.append((a, b))
        busy.difference_update((a, b))

    run_pairs(work, 7, threads=3)
    assert sorted(done) == [(a, b) for a in range(7) for b in range(a, 7)]


@pytest.mark.real("ml-1m")
def test_tiles_equal_the_reference_on_movielens() -> None:
    ratings = gf.load("ml-1m")
    lists = gf.candidate_lists(ratings, n=350)
    csr = ratings.csr
    rows = [
        dict(zip(csr.indices[a:b].tolist(), csr.data[a:b].astype(int).tolist(), strict=True))
        for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)
    ]
    for target in (0, 1448, 4168, 6039):
        assert lists.indices[target].tolist() == reference.exact_candidate_list(rows, target, 350)


def test_a_first_threshold_right_at_the_last_of_a_list_turns_nobody_away() -> None:
    """Three large ratings make cosines that single precision puts in the wrong order; the guess lies among them."""
    chance = np.random.default_rng(3)
    values = chance.integers(200, 251, (1500, 3)).astype(float)
    profiles = Profiles.of(sparse.csr_array(values))
    n = 300
    pairs = tiles.AllPairs.of(profiles, n, 1)
    unit = pairs.buffers.inverses[: len(values)].astype(np.float32)
    dots = (values @ values.T).astype(np.float32)[np.ix_(pairs.layout.rows, pairs.layout.rows)]
    rough = dots * (unit[np.newaxis, :] * unit[:, np.newaxis])
    np.fill_diagonal(rough, 0.0)
    pairs.buffers.thresholds[: len(values)] = -np.sort(-rough, axis=1)[:, n - 1]
    guesses = pairs.buffers.thresholds.copy()
    run_pairs(pairs.compare, len(pairs.layout.blocks), threads=1)
    pairs.repeat_unsure(guesses)
    indices, similarities = pairs.finish()
    engine = RowsAgainstAll(profiles, COSINE)
    expected = engine.nearest(profiles, np.arange(len(values)), n, themselves=True)
    assert (similarities == expected[1]).all()
    assert (indices == expected[0]).all()


@pytest.mark.kernel
def test_columns_are_offered_in_chunks_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile is as wide as several chunks, the last of them shorter."""
    monkeypatch.setattr(buffers, "CHUNK", WIDTH - 8)
    both(random_profiles(3, WIDTH, 5, 0.8, 5), 3)
