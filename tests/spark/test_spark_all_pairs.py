"""Tiles and thresholds without Spark: however rows are cut in blocks, the lists are the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodfence as gf
from goodfence.kernels.tiles.strips import WIDTH
from goodfence.neighbours import all_pairs as tiles
from goodfence.selection.sensitivity import sensitivities
from goodfence.spark import all_pairs
from goodfence.spark.all_pairs import combine_waiting, merge_block
from goodfence.spark.messages import BlockLists
from goodfence.spark.ratings import cut_in_blocks
from tests.support import by_hand
from tests.support.strategies import from_rows, rated_rows


def same(ratings: gf.Ratings, n: int, block_rows: int, similarity: str = "cosine") -> int:
    """Compare with the local engine, and return how many rows were recomputed."""
    local = gf.candidate_lists(ratings, n=n, similarity=similarity)
    how = by_hand.settings_of(ratings, n, block_rows, similarity)
    indices, similarities, recomputed = by_hand.lists_by_hand(ratings, how)
    assert (indices == local.indices).all()
    assert (similarities == local.similarities).all()
    return recomputed


@settings(max_examples=40, deadline=None)
@given(rated_rows(), st.integers(1, 8), st.data())
def test_any_cut_gives_the_lists_of_one_machine(
    rated: tuple[list[dict[int, float]], int], block_rows: int, data: st.DataObject
) -> None:
    rows, n_columns = rated
    ratings = from_rows(rows, n_columns)
    n = data.draw(st.integers(1, len(rows) - 1))
    similarity = data.draw(st.sampled_from(["cosine", "cosine_corated", "pearson", "jaccard", "msd"]))
    same(ratings, n, block_rows, similarity)


@pytest.mark.parametrize("block_rows", [130, 300, 1000])
def test_films_in_blocks_of_any_size(block_rows: int) -> None:
    assert same(gf.load("movietweetings"), 40, block_rows) == 0


@pytest.mark.parametrize("block_rows", [300, 500])
def test_blocks_of_several_parts_meet_each_pair_once(block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "BLOCK", WIDTH)
    assert same(gf.load("movietweetings"), 40, block_rows) == 0


@pytest.mark.parametrize("n_rows", [1, 64, 250])
def test_lists_are_sent_and_merged_slice_by_slice(n_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    films = gf.synthetic(users=330, items=120, ratings=9_000, rng=1)
    monkeypatch.setattr(all_pairs, "_SLICE", 40 * n_rows)
    how = replace(by_hand.settings_of(films, 40, 100), bounds=gf.Sensitivity())
    assert same(films, 40, 100) == 0
    tiled = by_hand.at_tiles(cut_in_blocks(films.csr, 100))
    offers = by_hand.shuffled(tiled, partial(all_pairs.compare_tile, how))
    assert len(offers) == sum(-(-own // n_rows) for own in [100] * 12 + [30] * 4)
    merging = (partial(merge_block, 40), partial(combine_waiting, 40))
    found = by_hand.in_order(by_hand.shuffled(offers, *merging))
    bounds = [one.bounds for one in found if isinstance(one, BlockLists) and one.bounds is not None]
    assert (np.concatenate(bounds) == sensitivities(films.csr, gf.Sensitivity())).all()


def test_ratings_that_are_no_grid_are_compared_row_by_row() -> None:
    chance = np.random.default_rng(0)
    rows = [{c: float(chance.normal()) for c in range(6) if c % 3 != r % 3} for r in range(40)]
    same(from_rows(rows, 6), 12, 9)


def test_nearly_whole_ratings_count_as_whole_as_on_one_machine() -> None:
    rows = [{0: 3.0 + 1e-10, 1: 1.0}, {0: 3.0, 1: 1.0}, {0: 1.0, 1: 3.0}, {1: 2.0}]
    same(from_rows(rows, 2), 3, 2)


def test_sampled_thresholds_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SAMPLE", WIDTH)
    assert same(gf.load("movietweetings"), 100, 400) < 50


def test_thresholds_that_are_far_too_high_are_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SAMPLE", WIDTH)
    monkeypatch.setattr(tiles, "sample_rank", lambda *_, **__: 1)
    monkeypatch.setattr(all_pairs, "ROWS_TOGETHER", 300)
    assert same(gf.load("movietweetings"), 100, 400) > 1000


def test_every_row_is_judged_by_its_own_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SAMPLE", WIDTH)
    monkeypatch.setattr(tiles, "sample_rank", lambda *_, **__: 10)  # too high for about every other row
    monkeypatch.setattr(all_pairs, "_SLICE", 100 * 90)
    assert 200 < same(gf.load("movietweetings"), 100, 400) < 1000
