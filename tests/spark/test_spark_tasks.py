"""What the tasks of the Spark engine do, without Spark: however rows are cut in blocks, the lists are the same."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodfence as gf
from goodfence.engines.local import tiles
from goodfence.engines.spark import comparing, parcels
from goodfence.engines.spark.blocks import Block, cut, small
from goodfence.engines.spark.lists import Merging, fill_up, merged
from goodfence.engines.spark.parcels import Arrays, Parcel, deposit, pack, unpack
from goodfence.engines.spark.running import Running
from goodfence.engines.spark.tiling import balanced
from goodfence.errors import SettingError
from goodfence.kernels.tiles.strips import WIDTH
from goodfence.selection.sensitivity import sensitivities
from tests import reference
from tests.spark import by_hand
from tests.strategies import from_rows, rated_rows


def same(ratings: gf.Ratings, n: int, block_rows: int, similarity: str = "cosine") -> int:
    local = gf.candidate_lists(ratings, n=n, similarity=similarity)
    how = by_hand.comparison(ratings, n, similarity)
    indices, similarities, again = by_hand.lists_by_hand(ratings, how, block_rows)
    assert (indices == local.indices).all()
    assert (similarities == local.similarities).all()
    return again


@settings(max_examples=40, deadline=None)
@given(rated_rows(), st.integers(1, 8), st.data())
def test_any_cut_gives_the_lists_of_one_machine(
    rated: tuple[list[dict[int, float]], int], block_rows: int, data: st.DataObject
) -> None:
    rows, n_columns = rated
    ratings = from_rows(rows, n_columns)
    n = data.draw(st.integers(1, len(rows) - 1))
    similarity = data.draw(st.sampled_from(["cosine", "cosine_corated", "pearson"]))
    same(ratings, n, block_rows, similarity)


@pytest.mark.parametrize("block_rows", [130, 300, 1000])
def test_films_in_blocks_of_any_size(block_rows: int) -> None:
    assert same(gf.load("movietweetings"), 40, block_rows) == 0


@pytest.mark.parametrize("block_rows", [300, 500])
def test_blocks_of_several_parts_meet_each_pair_once(
    block_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "BLOCK", WIDTH)
    assert same(gf.load("movietweetings"), 40, block_rows) == 0


@pytest.mark.parametrize("n_rows", [1, 64, 250])
def test_lists_are_sent_and_merged_slice_by_slice(
    n_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    films = gf.load("movietweetings")
    monkeypatch.setattr(comparing, "_SLICE", 40 * n_rows)
    assert comparing.rows_of_a_slice(40) == n_rows
    assert same(films, 40, 300) == 0
    how = replace(by_hand.comparison(films, 40), bounds=gf.Sensitivity())
    offers = by_hand.exchanged(by_hand.at_tiles(cut(films.csr, 300)), how.tile)
    assert len(offers) == sum(-(-own // n_rows) for own in [300] * 20 + [38] * 5)
    merging = Merging(n=40)
    found = sorted(by_hand.exchanged(offers, merging.merge, merging.shorten))
    bounds = np.concatenate([parcel.arrays["bounds"] for parcel in found])
    assert (bounds == sensitivities(films.csr, gf.Sensitivity())).all()


def test_what_is_set_aside_can_go_before_the_rest() -> None:
    with parcels.set_aside() as forget:
        assert parcels.DEPOT.get() is None
    forget()
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    with parcels.staying_here(session):
        depot = Path(parcels.DEPOT.get() or "")
        stays = deposit({"rows": np.arange(3)}, str(depot))
        with parcels.set_aside() as forget:
            goes = deposit({"rows": np.arange(4)}, parcels.DEPOT.get() or "")
        assert parcels.DEPOT.get() == str(depot)
        assert len(unpack(goes)["rows"]) == 4
        forget()
        assert len(unpack(stays)["rows"]) == 3
        assert len(list(depot.iterdir())) == 1
    assert not depot.exists()


def test_a_worker_takes_what_it_loaded_out_of_the_collectors_way_once() -> None:
    lines = (
        "import gc, sys",
        "from goodfence.engines.spark.parcels import settle_memory",
        "settle_memory()",
        "first = gc.get_freeze_count()",
        "held = [[] for _ in range(1000)]",
        "settle_memory()",
        "assert first > 10_000, first",
        "assert gc.get_freeze_count() <= first",
        "sys.modules['something_more'] = sys",
        "settle_memory()",
        "assert gc.get_freeze_count() > first",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_ratings_that_are_no_grid_are_compared_row_by_row() -> None:
    chance = np.random.default_rng(0)
    rows = [{c: float(chance.normal()) for c in range(6) if c % 3 != r % 3} for r in range(40)]
    same(from_rows(rows, 6), 12, 9)


def test_guessed_thresholds_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SAMPLE", WIDTH)
    assert same(gf.load("movietweetings"), 100, 400) < 50


def test_guesses_that_are_far_too_high_are_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SAMPLE", WIDTH)
    monkeypatch.setattr(tiles, "sample_rank", lambda *_, **__: 1)
    monkeypatch.setattr("goodfence.engines.spark.again.TOGETHER", 300)
    assert same(gf.load("movietweetings"), 100, 400) > 1000


def test_every_row_is_judged_by_its_own_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SAMPLE", WIDTH)
    monkeypatch.setattr(
        tiles, "sample_rank", lambda *_, **__: 10
    )  # too high for about every other row
    monkeypatch.setattr(comparing, "_SLICE", 100 * 90)
    assert 200 < same(gf.load("movietweetings"), 100, 400) < 1000


@pytest.mark.parametrize("n_cores", [1, 2, 3, 8, 100])
def test_blocks_keep_all_cores_busy(n_cores: int) -> None:
    n_blocks = balanced(n_cores)
    work = [2] * (n_blocks * (n_blocks - 1) // 2) + [1] * n_blocks
    ends = [0] * n_cores
    for tile in work:
        ends[ends.index(min(ends))] += tile
    assert max(ends) <= 1.15 * sum(work) / n_cores
    assert n_blocks == 1 or 2 * n_cores >= n_blocks  # and no more of them than that takes


def test_a_popular_item_is_in_every_block_and_no_block_is_larger_for_it() -> None:
    rows = [{0: 5.0, 1 + r % 7: 3.0} for r in range(1000)]
    sizes = [len(pack(parcel.arrays)) for parcel in cut(from_rows(rows, 8).csr, 100)]
    assert len(sizes) == 10
    assert max(sizes) == min(sizes)


@pytest.mark.kernel
@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 50), st.sampled_from([0.0, 0.5, 1.0])),
        max_size=60,
        unique_by=lambda one: one[:2],
    ),
    st.integers(1, 5),
    st.integers(1, 3),
)
def test_merged_lists_are_sorted_lists(
    offers: list[tuple[int, int, float]], n: int, n_parts: int
) -> None:
    parts = [sorted(offers[first::n_parts], key=lambda one: one[0]) for first in range(n_parts)]
    found: list[Arrays] = [
        {
            "lengths": np.bincount([one[0] for one in part], minlength=4).astype(np.int32),
            "rows": np.array([one[1] for one in part], dtype=np.int32),
            "similarities": np.array([one[2] for one in part], dtype=np.float64),
        }
        for part in parts
    ]
    indices, values, lengths = merged(found, 4, n)
    assert reference.merged_lists(offers, 4, n) == [
        list(zip(indices[i, :k].tolist(), values[i, :k].tolist(), strict=True))
        for i, k in enumerate(lengths)
    ]


def test_nearly_whole_ratings_count_as_whole_as_on_one_machine() -> None:
    rows = [{0: 3.0 + 1e-10, 1: 1.0}, {0: 3.0, 1: 1.0}, {0: 1.0, 1: 3.0}, {1: 2.0}]
    same(from_rows(rows, 2), 3, 2)


def test_a_parcel_in_a_file_is_the_same_parcel(tmp_path: Path) -> None:
    arrays = {"rows": np.arange(3), "empty": np.empty((0, 2)), "flags": np.array([True, False])}
    found = unpack(deposit(arrays, str(tmp_path)))
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())
    assert not found["rows"].flags.writeable


def test_a_short_list_goes_on_with_strangers_in_row_order() -> None:
    indices = np.array([[3, -1, -1], [0, -1, -1]], dtype=np.int32)
    similarities = np.array([[0.5, 9, 9], [0.25, 9, 9]])
    fill_up(indices, similarities, np.array([1, 1], dtype=np.int32), first=1)
    assert indices.tolist() == [[3, 0, 2], [0, 1, 3]]
    assert similarities.tolist() == [[0.5, 0, 0], [0.25, 0, 0]]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_small_numbers_are_the_same_numbers(values: list[float]) -> None:
    array = np.array(values)
    assert (small(array).astype(np.float64) == array).all()


def test_a_block_survives_its_parcel() -> None:
    plain = Block.of_rows(7, from_rows([{0: 0.5, 2: 0.0}, {}], 3).csr)
    block = replace(plain, thresholds=np.array([0.1, 0.2], np.float32))
    other = Block.of(unpack(pack(block.arrays())))
    assert other.first == 7
    assert (other.csr.toarray() == block.csr.toarray()).all()
    assert other.csr.nnz == 2
    assert (other.thresholds == block.thresholds).all()


def test_a_parcel_does_not_show_what_is_in_it() -> None:
    shown = repr(Parcel(1, 2, {"ratings": np.array([4.25])}))
    assert shown == "Parcel(place=1, part=2, ratings)"
    assert repr(Block.of_rows(0, from_rows([{0: 4.25}], 1).csr)) == "Block(1 rows)"


@pytest.mark.parametrize(("name", "value"), [("memory", 1000), ("block_rows", 0)])
def test_settings_outside_their_rule(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} must be at least"):
        Running(spark=None, **{name: value})  # type: ignore[arg-type]  # refused before it is used
