"""Drawing: the same as the plain twin, whatever the order, the tiles and the threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

from goodfence.errors import SettingError
from goodfence.kernels.draw import PoolArrays, _later, draw, draw_rows, fill_laplace
from goodfence.neighbours.draw import draw_neighbours, laplace_noise
from goodfence.selection.npns import NPNS
from goodfence.selection.ppns import PPNS
from tests.support import reference

Floats = npt.NDArray[np.float64]
KEY = 0x0123456789ABCDEF


def drawn(log_weights: Floats, rows: npt.NDArray[np.int32], pools: list[tuple[int, int, int]], asker: int) -> list[int]:
    arrays = PoolArrays(*(np.array(part, dtype=np.int64) for part in zip(*pools, strict=True)))
    out = np.empty(int(arrays.takes.sum()), dtype=np.int64)
    draw(log_weights, rows, arrays, np.uint64(KEY), np.uint64(asker), out)
    return [int(place) for place in out]


def some_weights(kind: str, n: int) -> Floats:
    steps = np.random.default_rng(3).random(n)
    if kind == "equal":
        return np.zeros(n)
    if kind == "some zero":
        return np.where(steps < 0.4, -np.inf, np.log(steps))
    if kind == "mostly zero":
        return np.where(steps < 0.97, -np.inf, np.log(steps))
    scale = {"mild": 1.0, "steep": 50.0, "extreme": 2.5e14}[kind]
    return np.round(steps, 1) * scale


KINDS = ["equal", "mild", "steep", "extreme", "some zero", "mostly zero"]


@pytest.mark.kernel
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pools", [[(0, 40, 3)], [(0, 10, 9), (30, 40, 1)], [(0, 0, 0), (2, 6, 4), (6, 39, 20)]])
def test_it_draws_what_the_plain_twin_draws(kind: str, pools: list[tuple[int, int, int]]) -> None:
    log_weights = some_weights(kind, 40)
    rows = np.random.default_rng(1).permutation(1000)[:40].astype(np.int32)
    for asker in range(5):
        wanted = reference.draw(log_weights.tolist(), rows.tolist(), pools, KEY, asker)
        assert drawn(log_weights, rows, pools, asker) == wanted


@pytest.mark.kernel
@pytest.mark.parametrize("kind", ["equal", "steep"])
def test_a_batch_of_lists_of_several_blocks(kind: str) -> None:
    n = 300
    log_weights = -np.sort(-some_weights(kind, n))
    rows = np.random.default_rng(2).permutation(n).astype(np.int32)
    out = np.empty((2, 8), dtype=np.int64)
    arrays = PoolArrays(*(np.array([part, part]) for part in ([0, 250], [200, 300], [3, 5])))
    askers = np.array([4, 9], dtype=np.int32)
    weights, candidates = np.stack([log_weights, log_weights]), np.stack([rows, rows])
    draw_rows(weights, candidates, arrays, np.uint64(KEY), askers, out)
    for asker, chosen in zip(askers.tolist(), out.tolist(), strict=True):
        pools = [(0, 200, 3), (250, 300, 5)]
        wanted = reference.draw(log_weights.tolist(), rows.tolist(), pools, KEY, asker)
        assert chosen == wanted


@pytest.mark.kernel
def test_a_row_listed_twice_is_a_tie_and_the_first_is_taken() -> None:
    rows = np.array([5, 6, 7, 5, 6, 7], dtype=np.int32)
    for asker in range(6):
        chosen = drawn(np.zeros(6), rows, [(0, 6, 3)], asker)
        wanted = reference.draw([0.0] * 6, rows.tolist(), [(0, 6, 3)], KEY, asker)
        assert chosen == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_skipping_logarithms_changes_nothing_in_long_lists(kind: str) -> None:
    n = 3000
    log_weights = -np.sort(-some_weights(kind, n))
    rows = np.random.default_rng(2).permutation(n).astype(np.int32)
    for asker, take in ((0, 1), (1, 60), (2, 2500)):
        pools = [(0, n, take)]
        wanted = reference.draw(log_weights.tolist(), rows.tolist(), pools, KEY, asker)
        assert drawn(log_weights, rows, pools, asker) == wanted


def test_equal_weights_stay_equal_chances_far_from_0() -> None:
    """Two groups 1e14 apart: the lower one is drawn as if the upper one were not there."""
    rows = np.arange(40, dtype=np.int32)
    two_groups = np.where(np.arange(40) < 10, 1e14, 0.0)
    for asker in range(50):
        both = drawn(two_groups, rows, [(0, 40, 15)], asker)
        alone = drawn(np.zeros(40), rows, [(10, 40, 5)], asker)
        assert both == [*range(10), *alone]


def lists(n_targets: int = 60, n: int = 30) -> tuple[Floats, npt.NDArray[np.int32]]:
    generator = np.random.default_rng(5)
    similarities = -np.sort(-generator.random((n_targets, n)))
    rows = np.stack([generator.permutation(500)[:n] for _ in range(n_targets)])
    return similarities, rows.astype(np.int32)


@pytest.mark.parametrize("mechanism", [PPNS(k=5, beta=3), NPNS(k=5)])
def test_any_order_any_part_and_any_threads_give_the_same(mechanism: PPNS | NPNS) -> None:
    similarities, rows = lists()
    askers = np.arange(60, dtype=np.int32) * 7
    rs = np.full(60, 0.01)
    whole = draw_neighbours(mechanism, similarities, rows, askers, KEY, rs)

    def part(picked: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return draw_neighbours(mechanism, similarities[picked], rows[picked], askers[picked], KEY, rs[picked])

    backwards = np.arange(60)[::-1]
    assert np.array_equal(part(backwards), whole[::-1])
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(part, np.array_split(np.arange(60), 13)))
    assert np.array_equal(np.concatenate(parts), whole)


def test_candidates_in_another_order_are_drawn_the_same() -> None:
    rows = np.arange(50, dtype=np.int32)
    log_weights = np.linspace(2, 0, 50)
    order = np.random.default_rng(9).permutation(50)
    straight = {int(rows[place]) for place in drawn(log_weights, rows, [(0, 50, 7)], 3)}
    places = drawn(log_weights[order], rows[order], [(0, 50, 7)], 3)
    assert {int(rows[order][place]) for place in places} == straight


def test_another_seed_or_asker_draws_otherwise() -> None:
    similarities, rows = lists(n_targets=1)
    mechanism = NPNS(k=5)
    draws = {
        tuple(draw_neighbours(mechanism, similarities, rows, np.array([asker]), key)[0].tolist())
        for asker in range(10)
        for key in (1, 2)
    }
    assert len(draws) > 15


def test_shapes_that_do_not_fit_are_refused() -> None:
    similarities, rows = lists()
    with pytest.raises(SettingError, match="similarities and rows"):
        draw_neighbours(NPNS(k=5), similarities, rows[:, 1:], np.arange(60), KEY)
    with pytest.raises(SettingError, match="askers"):
        draw_neighbours(NPNS(k=5), similarities, rows, np.arange(59), KEY)


@pytest.mark.kernel
def test_noise_depends_on_its_place_only_and_scales() -> None:
    rows = np.array([[3, 9], [9, 3]], dtype=np.int32)
    noise = laplace_noise(rows, np.array([0, 0]), KEY, 1.0)
    assert np.array_equal(noise[0], noise[1, ::-1])
    assert noise[0, 0] != noise[0, 1]
    rescaled = laplace_noise(rows, np.array([0, 0]), KEY, np.array([2.0, 4.0]))
    assert rescaled == pytest.approx(noise * [[2.0], [4.0]])
    out = np.empty((2, 2))
    fill_laplace(np.uint64(KEY), np.zeros(2, np.int32), rows, np.full((2, 2), 3.0), out)
    assert out == pytest.approx(3 * noise)


def test_a_scale_below_0_is_refused() -> None:
    with pytest.raises(SettingError, match="scale must be finite and at least 0"):
        laplace_noise(np.array([[1]]), np.array([0]), KEY, -1.0)


@pytest.mark.kernel
def test_of_equal_rounded_times_the_one_with_the_larger_remainder_is_later() -> None:
    times, places = np.zeros(2), np.arange(2)
    for rests in (np.array([2e-17, 1e-17]), np.array([-1e-17, -2e-17])):
        assert _later(times, rests, places, 0, 1)
        assert not _later(times, rests, places, 1, 0)
    equal = np.zeros(2)
    assert _later(times, equal, places, 1, 0)  # and of equal ones the one listed later
    assert not _later(times, equal, places, 0, 1)


@pytest.mark.kernel
def test_from_a_pool_of_which_none_are_taken_nobody_is_drawn() -> None:
    log_weights, rows = some_weights("mild", 8), np.arange(8, dtype=np.int32)
    found = drawn(log_weights, rows, [(0, 4, 0), (4, 8, 2)], 3)
    assert found == drawn(log_weights, rows, [(4, 8, 2)], 3)
    assert drawn(log_weights, rows, [(0, 4, 0)], 3) == []
