"""Ids and scales: what they hold, and what they refuse."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from goodfence.data.ids import Ids, are_dense
from goodfence.data.scale import Scale
from goodfence.errors import DataError, SettingError, UnknownId


def test_ids_keep_their_order_and_kind() -> None:
    ids = Ids.of([30, 10, 20], "users")
    assert ids.positions([10, 30]).tolist() == [1, 0]
    assert not ids.are_text
    assert Ids.of(["b", "a"], "items").are_text
    assert Ids.of(ids, "users") is ids


@pytest.mark.parametrize("order", [[10, 20, 30], [30, 10, 20]])
@pytest.mark.parametrize("kind", ["int64", "uint16"])
def test_arrays_of_ids(order: list[int], kind: str) -> None:
    ids = Ids.of(order, "users")
    assert ids.positions(np.array([20, 10, 20], dtype=kind)).tolist() == [
        order.index(wanted) for wanted in (20, 10, 20)
    ]
    for unknown in (5, 15, 40):
        with pytest.raises(UnknownId):
            ids.positions(np.array([10, unknown], dtype=kind))
    assert ids.positions(np.array([], dtype=kind)).tolist() == []


def test_ids_are_dense_where_a_table_of_all_is_small() -> None:
    """Three ids may lie 2 * 3 + 1023 apart, and no farther."""
    near, far = ([7, 8, 7 + distance] for distance in (1029, 1030))
    assert are_dense(pa.chunked_array([near]))
    assert not are_dense(pa.chunked_array([far]))
    assert are_dense(pa.chunked_array([pa.array([], pa.int64())]))


def test_ids_cannot_be_changed() -> None:
    ids = Ids.of([1, 2], "users")
    with pytest.raises(ValueError, match="read-only"):
        ids.values[0] = 3


def test_the_caller_s_array_is_left_alone() -> None:
    mine = np.array([1, 2])
    Ids.of(mine, "users")
    mine[0] = 5
    assert mine.flags.writeable


@pytest.mark.parametrize(
    "values", [[1, 1], ["a", "a"], [1, "a"], [1.5, 2], [True, False], [None], np.array([2**64 - 1], "u8")]
)
def test_ids_that_are_refused(values: list[object]) -> None:
    with pytest.raises(DataError, match="the ids of the users must"):
        Ids.of(values, "users")  # type: ignore[arg-type]  # the wrong kinds are the point


@pytest.mark.parametrize("wanted", [["Undine Quark"], [4711], [None], [["a"]]])
def test_an_unknown_id_is_not_repeated(wanted: list[object]) -> None:
    with pytest.raises(UnknownId) as caught:
        Ids.of(["ann"], "users").positions(wanted)  # type: ignore[arg-type]  # as above
    assert "Undine" not in str(caught.value)
    assert "4711" not in str(caught.value)


def test_repr_shows_no_id() -> None:
    assert repr(Ids.of(["Undine Quark"], "users")) == "Ids(1 users)"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1, 5, 3], "integers 1-5 (observed)"),
        ([0.5, 4], "0.5-4 in steps of 0.5 (observed)"),
        ([0.25, 1], "0.25-1 in steps of 0.25 (observed)"),
        ([0.3, 0.7], "0.3-0.7 in steps of 0.1 (observed)"),
        ([0.123, 4.5], "any value 0.123-4.5 (observed)"),
        ([7], "integers 7-7 (observed)"),
        ([-10, 10], "integers -10 to 10 (observed)"),
    ],
)
def test_observed_scales(values: list[float], text: str) -> None:
    assert str(Scale.observed(np.array(values, dtype=float))) == text


@pytest.mark.parametrize("values", [[-1.7e308, 1.7e308], [1e-300, 1e300], [1e16, 0.1]])
def test_extreme_values_have_an_observed_scale(values: list[float]) -> None:
    scale = Scale.observed(np.array(values))
    assert scale.holds(np.array(values)).all()


def test_a_late_odd_value_is_seen() -> None:
    values = np.full(200_000, 3.0)
    values[-1] = 3.25
    assert Scale.observed(values).step == 0.25


def test_what_a_scale_holds() -> None:
    values = np.array([0.5, 1, 1.25, 5, 5.5, np.nan, np.inf])
    assert Scale(0.5, 5, 0.5).holds(values).tolist() == [1, 1, 0, 1, 0, 0, 0]
    assert Scale(0.5, 5, None).holds(values).tolist() == [1, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    "scale", [(5, 1), (1,), (1, 5, 0), (1, 5, -1), (1, 5, 3), (1, np.inf), (1, 2, 3, 4), ("1", "5"), 5, "15"]
)
def test_scales_that_are_refused(scale: object) -> None:
    with pytest.raises(SettingError, match=r"^(scale|step) must be"):
        Scale.of(scale)  # type: ignore[arg-type]  # the wrong kinds are the point


def test_a_scale_of_two_numbers_has_whole_steps() -> None:
    assert Scale.of((1, 5)) == Scale(1, 5, 1.0, declared=True)
    assert Scale.of([1, 5, 0.5]).step == 0.5


def test_rounding() -> None:
    values = np.array([-3, 0.2, 2.5, 3.49, 9, np.nan])
    rounded = Scale(1, 5).round(values)
    assert np.array_equal(rounded, [1, 1, 3, 3, 5, np.nan], equal_nan=True)
    assert Scale(0.5, 5, 0.5).round(np.array([1.2, 4.9])).tolist() == [1.0, 5.0]
    assert Scale(1, 5, None).round(np.array([1.2, 7])).tolist() == [1.2, 5.0]
