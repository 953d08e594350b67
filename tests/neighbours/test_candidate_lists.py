from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.kernels.order import descending_order, kth_largest
from goodfence.neighbours.candidate_lists import profile_candidates
from goodfence.parallel import ranges, run
from tests.support.strategies import from_rows

pytestmark = pytest.mark.kernel

# Three users who rated alike, one who rated something else, one who rated nothing.
ROWS: list[dict[int, float]] = [{0: 1, 1: 1}, {0: 2, 1: 2}, {0: 1}, {2: 5}, {}]


def test_a_list_derived_by_hand() -> None:
    """cos(0,1) = 4/(√2·√8) = 1; cos(0,2) = 1/√2; the others share nothing with 0 and stand in row order."""
    lists = gf.candidate_lists(from_rows(ROWS, 3), n=4)
    assert lists.indices[0].tolist() == [1, 2, 3, 4]
    assert lists.similarities[0].tolist() == [1.0, np.sqrt(0.5), 0.0, 0.0]
    assert lists.indices[4].tolist() == [0, 1, 2, 3]


def test_item_lists_are_user_lists_of_the_transposed() -> None:
    ratings = from_rows(ROWS, 3)
    by_item = gf.candidate_lists(ratings, n=2, axis="item")
    turned = gf.candidate_lists(ratings.transposed, n=2)
    assert (by_item.indices == turned.indices).all()
    assert (by_item.similarities == turned.similarities).all()


def test_too_few_rows_is_an_error_or_a_shorter_list() -> None:
    with pytest.raises(gf.SettingError, match="n must be at most 4"):
        gf.candidate_lists(from_rows(ROWS, 3), n=5)
    assert gf.candidate_lists(from_rows(ROWS, 3), n=5, short_lists="shorten").indices.shape == (5, 4)


def test_an_unknown_similarity_gets_a_hint() -> None:
    with pytest.raises(gf.SettingError, match="got 'pearsons'; did you mean 'pearson'"):
        gf.candidate_lists(from_rows(ROWS, 3), n=2, similarity="pearsons")


def test_a_profile_with_an_unknown_item_is_refused_without_naming_it() -> None:
    with pytest.raises(gf.DataError) as caught:
        profile_candidates(from_rows(ROWS, 3), {77: 5.0})
    assert "77" not in str(caught.value)


def test_a_batch_of_profiles_equals_one_at_a_time() -> None:
    ratings = from_rows(ROWS, 3)
    batch = profile_candidates(ratings, [{0: 1.0}, {2: 3.0}], n=3)
    for position, profile in enumerate([{0: 1.0}, {2: 3.0}]):
        one = profile_candidates(ratings, profile, n=3)
        assert (batch.indices[position] == one.indices).all()


def test_negative_ratings_can_give_negative_cosines() -> None:
    lists = gf.candidate_lists(from_rows([{0: 1.0}, {0: -1.0}, {1: 1.0}], 2), n=2)
    assert lists.indices[0].tolist() == [2, 1]
    assert lists.similarities[0].tolist() == [0.0, -1.0]


def test_threads_do_not_matter() -> None:
    ratings = gf.synthetic(users=200, items=40, ratings=2_000, rng=3)
    one, two = (gf.candidate_lists(ratings, n=50, threads=threads) for threads in (1, 2))
    assert (one.indices == two.indices).all()
    assert (one.similarities == two.similarities).all()


def test_the_repr_shows_sizes_only() -> None:
    assert repr(gf.candidate_lists(from_rows(ROWS, 3), n=2)) == "CandidateLists(5 x 2)"


def test_every_piece_of_work_is_done_once() -> None:
    for n_pieces in (0, 1, 2, 3, 7):
        done: list[tuple[int, int]] = []
        run(done.append, ranges(n_pieces, 1), threads=2)
        assert sorted(done) == ranges(n_pieces, 1)


def test_an_error_in_a_piece_stops_the_work_and_leaves_no_thread() -> None:
    def work(piece: int) -> None:
        time.sleep(0.01)
        if piece == 3:
            raise KeyboardInterrupt

    before = threading.active_count()
    started = []

    def counted(piece: int) -> None:
        started.append(piece)
        work(piece)

    with pytest.raises(KeyboardInterrupt):
        run(counted, range(1000), threads=2)
    assert len(started) < 20
    assert threading.active_count() == before


def test_whole_numbers_too_large_to_be_exact_are_treated_as_real() -> None:
    csr = sparse.csr_array(np.array([[1e9, 1.0], [1e9, 2.0], [1.0, 0.0]]))
    ratings = gf.Ratings(csr, [0, 1, 2], [0, 1], scale=gf.Scale(0, 1e9, None))
    assert gf.candidate_lists(ratings, n=2).indices[0].tolist() in ([1, 2], [2, 1])


@pytest.mark.parametrize("n", [1, 511, 512, 3000])
def test_the_radix_order_is_the_stable_order(n: int) -> None:
    chance = np.random.default_rng(n)
    cases = [
        chance.random(n),
        chance.integers(-3, 4, n) / 3.0,
        np.where(chance.random(n) < 0.5, -0.0, 0.0),
        chance.normal(size=n) * 1e-300,
        # Equal in the upper half of their bits: long stretches, and short ones.
        0.5 + 1e-12 * chance.random(n),
        np.repeat(chance.random(n // 4 + 1), 4)[:n] * (1 + 1e-12 * chance.integers(0, 3, n)),
    ]
    for values in cases:
        assert (descending_order(values) == np.argsort(-values, kind="stable")).all()


def test_the_kth_largest() -> None:
    chance = np.random.default_rng(1)
    for n in (1, 2, 9, 100):
        values = chance.integers(0, 5, n).astype(np.float64)
        for k in range(1, n + 1):
            assert kth_largest(values.copy(), k) == np.sort(values)[::-1][k - 1]


@pytest.mark.parametrize("axis", ["user", "item"])
def test_where_nobody_rated_anything_all_are_equally_far(axis: Any) -> None:
    nothing = gf.Ratings(sparse.csr_array((4, 4)), range(4), range(4), (1, 5))
    lists = gf.candidate_lists(nothing, n=2, axis=axis)
    assert lists.indices.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]
    assert not lists.similarities.any()


def test_a_bar_is_shown_when_asked_for_and_else_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    films = gf.synthetic(users=30, items=20, ratings=240, rng=7)
    for progress, told in ((True, True), (False, False), (None, False)):
        gf.candidate_lists(films, n=3, progress=progress)
        assert bool(capsys.readouterr().err) == told, progress
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    gf.candidate_lists(films, n=3)
    assert capsys.readouterr().err
