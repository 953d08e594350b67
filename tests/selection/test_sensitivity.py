"""RS [RS]: against the terms written out, by hand, and with rows appended and deleted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from goodfence.data.load import load
from goodfence.errors import DataError
from goodfence.selection.sensitivity import (
    Sensitivity,
    item_peaks,
    pair_sensitivities,
    profile_pair_sensitivities,
    profile_sensitivity,
    row_sensitivity,
    sensitivities,
)
from tests.support import reference

Floats = npt.NDArray[np.float64]
OPTIONS = [Sensitivity(reading=reading, clamp=clamp) for reading in ("printed", "derived") for clamp in (True, False)]


def some_ratings(seed: int, n_rows: int = 9, n_items: int = 7) -> sparse.csr_array:
    """Return whole ratings; some rows are empty or have one rating, some ratings are 0."""
    generator = np.random.default_rng(seed)
    rated = generator.random((n_rows, n_items)) < generator.random((n_rows, 1))
    rows, columns = np.nonzero(rated)
    values = generator.integers(0, 6, rows.size).astype(np.float64)
    return sparse.csr_array((values, (rows, columns)), shape=(n_rows, n_items))


def as_dicts(csr: sparse.csr_array) -> list[dict[int, float]]:
    return [
        dict(zip(csr.indices[a:b].tolist(), csr.data[a:b].tolist(), strict=True))
        for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)
    ]


def targets_by_hand(csr: sparse.csr_array, options: Sensitivity) -> list[float]:
    rows = as_dicts(csr)
    return [reference.target_sensitivity(rows, row, options.reading, options.clamp) for row in range(len(rows))]


@pytest.mark.kernel
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(6))
def test_targets_have_the_largest_of_their_pairs(seed: int, options: Sensitivity) -> None:
    csr = some_ratings(seed)
    wanted = targets_by_hand(csr, options)
    assert sensitivities(csr, options) == pytest.approx(wanted, rel=1e-12)
    peaks = item_peaks(csr, options)
    alone = [row_sensitivity(peaks, row) for row in range(csr.shape[0])]
    assert alone == pytest.approx(wanted, rel=1e-12)


@pytest.mark.kernel
@pytest.mark.parametrize("options", OPTIONS)
def test_pairs_are_the_terms_written_out(options: Sensitivity) -> None:
    csr = some_ratings(7)
    rows = as_dicts(csr)
    targets = np.array([0, 3, 8])
    candidates = np.array([[1, 2, 3], [0, 1, 2], [0, 4, 5]])
    wanted = [
        [reference.pair_sensitivity(rows[a], rows[i], options.reading, options.clamp) for i in others]
        for a, others in zip(targets, candidates, strict=True)
    ]
    assert pair_sensitivities(csr, targets, candidates, options) == pytest.approx(np.array(wanted))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("n_copies", [1, 2, 5])
@pytest.mark.parametrize("without", [None, 0, 4])
def test_a_profile_beside_the_data_is_a_row_of_the_longer_matrix(
    options: Sensitivity, n_copies: int, without: int | None
) -> None:
    for seed in range(5):
        csr = some_ratings(seed)
        dense_row = some_ratings(seed + 50, n_rows=1)
        columns, values = dense_row.indices, dense_row.data
        kept = [row for row in range(csr.shape[0]) if row != without]
        appended = sparse.csr_array(sparse.vstack([csr[kept], *[dense_row] * n_copies]))
        wanted = sensitivities(appended, options)[len(kept)]
        got = profile_sensitivity(item_peaks(csr, options), columns, values, n_copies=n_copies, without=without)
        assert got == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_row_in_the_data_without_another(options: Sensitivity) -> None:
    csr = some_ratings(3)
    peaks = item_peaks(csr, options)
    for without in range(csr.shape[0]):
        kept = [row for row in range(csr.shape[0]) if row != without]
        wanted = sensitivities(csr[kept], options)
        got = [row_sensitivity(peaks, row, without=without) for row in kept]
        assert got == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_profile_and_each_row(options: Sensitivity) -> None:
    csr = some_ratings(5)
    profile = some_ratings(60, n_rows=1)
    rows, copy = profile_pair_sensitivities(item_peaks(csr, options), profile.indices, profile.data)
    own = as_dicts(profile)[0]
    wanted = [reference.pair_sensitivity(own, row, options.reading, options.clamp) for row in as_dicts(csr)]
    assert rows == pytest.approx(wanted)
    itself = reference.pair_sensitivity(own, own, options.reading, options.clamp)
    assert copy == pytest.approx(itself)


def test_by_hand() -> None:
    """(3,4,12) and (0,4,3): strength of item 1 is 4/sqrt(153) and 4/3, of item 2 12/5 and 3/4."""
    csr = sparse.csr_array(np.array([[3.0, 4.0, 12.0], [0.0, 4.0, 3.0]]))
    options = Sensitivity(clamp=False)
    assert sensitivities(csr, options) == pytest.approx([1.8, 1.8])
    assert sensitivities(csr).tolist() == [1.0, 1.0]


def test_one_rating_only_is_infinitely_sensitive_so_it_is_1_or_left_out() -> None:
    csr = sparse.csr_array(np.array([[3.0, 4.0], [2.0, 0.0], [1.0, 2.0]]))
    assert sensitivities(csr).tolist() == [1.0, 1.0, 1.0]
    left_out = sensitivities(csr, Sensitivity(clamp=False))
    assert left_out[1] == 0.0
    assert left_out[0] == pytest.approx(max(3 * 1 / (4 * 2), 4 * 2 / (3 * 1)))


def test_nothing_co_rated_is_0() -> None:
    csr = sparse.csr_array(np.diag([5.0, 4.0, 3.0]))
    for options in OPTIONS:
        assert sensitivities(csr, options).tolist() == [0.0, 0.0, 0.0]


def test_an_item_nobody_else_rated_does_not_count() -> None:
    csr = sparse.csr_array(np.array([[1.0, 2.0, 2.0, 0.0], [1.0, 2.0, 2.0, 5.0]]))
    shared = sensitivities(csr, Sensitivity(clamp=False))[0]
    assert shared == pytest.approx((2 / np.sqrt(5)) * (2 / np.sqrt(30)))


def test_the_second_term_as_printed_never_binds() -> None:
    """Term 2 is term 1 times (1 - N'/N), so leaving it out changes nothing."""
    for seed in range(20):
        first, second = as_dicts(some_ratings(seed, n_rows=2, n_items=12))
        printed = reference.pair_sensitivity(first, second, "printed", clamp=False)
        shared = [s for s in first if s in second and first[s] * second[s] > 0]
        terms = [0.0]
        for s in shared:
            rest = [sum(r * r for c, r in row.items() if c != s) for row in (first, second)]
            if rest[0] * rest[1] > 0:
                terms.append(first[s] * second[s] / np.sqrt(rest[0] * rest[1]))
        assert printed == pytest.approx(max(terms))


def test_negative_ratings_are_refused_without_showing_them() -> None:
    with pytest.raises(DataError, match="must not be negative") as error:
        sensitivities(sparse.csr_array(np.array([[-7.0, 1.0]])))
    assert "7" not in str(error.value)


def test_peaks_do_not_show_what_they_hold() -> None:
    peaks = item_peaks(some_ratings(1))
    assert "array" not in repr(peaks)


@pytest.mark.real("ml-100k")
def test_item_based_rs_of_ml_100k_is_1_for_nearly_every_film() -> None:
    """Somebody who rated one film only does not exist there, yet films with one rater do."""
    csr = load("ml-100k").transposed.csr
    by_item = sensitivities(csr)
    assert (by_item == 1.0).mean() > 0.9
    by_user = sensitivities(load("ml-100k").csr)
    assert 0.0 < by_user.min() < by_user.max() < 1.0


@pytest.mark.real("ml-1m")
@pytest.mark.parametrize("reading", ["printed", "derived"])
def test_ml_1m_agrees_with_its_pairs(reading: Any) -> None:
    csr = load("ml-1m").csr
    options = Sensitivity(reading=reading)
    target = np.array([17])
    others = np.delete(np.arange(csr.shape[0]), 17)[np.newaxis, :]
    largest = pair_sensitivities(csr, target, others, options).max()
    assert row_sensitivity(item_peaks(csr, options), 17) == pytest.approx(largest, rel=1e-12)
