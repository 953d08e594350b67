"""Ratings cannot be changed, keep their zeros, and show nobody."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from goodfence.data.problems import summarise
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, SettingError, UnknownId


@pytest.fixture
def ratings() -> Ratings:
    table = pa.table({"user": ["b", "a", "a"], "item": [2, 1, 2], "rating": [0.0, 3.0, 5.0]})
    return Ratings.from_frame(table, scale=(0, 5))


def test_nothing_can_be_written(ratings: Ratings) -> None:
    for array in (ratings.csr.data, ratings.csr.indices, ratings.csr.indptr, ratings.users):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_caller_s_matrix_is_left_alone() -> None:
    matrix = sparse.csr_array(np.array([[1.0, 2.0]]))
    ratings = Ratings(matrix, users=[1], items=[1, 2])
    matrix.data[0] = 99
    assert ratings.csr.data[0] == 1


def test_a_zero_is_a_rating(ratings: Ratings) -> None:
    assert ratings.n_ratings == 3
    assert ratings.csr.nnz == 3
    assert ratings.transposed.csr.nnz == 3


def test_transposed_twice_is_the_same(ratings: Ratings) -> None:
    other = ratings.transposed
    assert other.transposed is ratings
    assert ratings.transposed is other
    assert np.array_equal(other.csr.toarray(), ratings.csr.toarray().T)
    assert other.users.tolist() == [1, 2]


def test_repr_shows_sizes_and_scale_only(ratings: Ratings) -> None:
    assert repr(ratings) == "Ratings(2 users x 2 items, 3 ratings, integers 0-5)"


def test_ids_lead_to_rows_and_columns(ratings: Ratings) -> None:
    assert ratings.rows(["b"]).tolist() == [1]
    assert ratings.columns([2, 1]).tolist() == [1, 0]
    with pytest.raises(UnknownId):
        ratings.rows([1])


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        (np.zeros((1, 1)), "must be a scipy sparse array"),
        (sparse.csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 1)), "each cell at most once"),
        (sparse.csr_array(([np.nan], [0], [0, 1]), shape=(1, 1)), "finite ratings only"),
        (sparse.csr_array((1, 1)), "must not be empty"),
    ],
)
def test_matrices_that_are_refused(matrix: object, says: str) -> None:
    with pytest.raises(DataError, match=says):
        Ratings(matrix, users=[1], items=[1])


def test_a_matrix_of_another_shape_is_refused() -> None:
    with pytest.raises(SettingError, match="csr must be of shape"):
        Ratings(sparse.csr_array(np.ones((2, 2))), users=[1], items=[1, 2])


def test_a_matrix_off_its_scale_is_refused() -> None:
    with pytest.raises(DataError, match="every rating must be on the scale") as caught:
        Ratings(sparse.csr_array(np.array([[66.6667]])), users=[1], items=[1], scale=(1, 5))
    assert "66.6667" not in str(caught.value)


def test_a_given_list_of_items_makes_the_columns() -> None:
    table = pa.table({"user": ["b", "a", "a"], "item": [2, 1, 2], "rating": [0.0, 3.0, 5.0]})
    laid = Ratings.from_frame(table, scale=(0, 5), items=[3, 2, 1])
    assert laid.items.tolist() == [3, 2, 1]
    assert laid.users.tolist() == ["a", "b"]
    assert laid.n_ratings == 3  # a 0 stays a rating
    assert laid.csr.toarray().tolist() == [[0, 5, 3], [0, 0, 0]]
    assert laid.csr.indices.tolist() == [1, 2, 1]
    assert laid.scale.declared


def test_the_columns_do_not_tell_what_was_rated() -> None:
    one = pa.table({"user": [1, 1], "item": ["x", "y"], "rating": [1, 2]})
    more = pa.table({"user": [1, 1, 1], "item": ["x", "y", "z"], "rating": [1, 2, 5]})
    laid = [Ratings.from_frame(each, scale=(1, 5), items=["z", "y", "x"]) for each in (one, more)]
    assert laid[0].items.tolist() == laid[1].items.tolist()
    assert laid[0].shape == laid[1].shape


def test_an_observed_scale_stays_observed_on_other_columns(ratings: Ratings) -> None:
    observed = Ratings(ratings.csr, ratings.users, ratings.items).on_items([1, 2, 3])
    assert not observed.scale.declared


@pytest.mark.parametrize(
    ("items", "problem", "says"),
    [
        ([1, 3], DataError, "list every item that was rated"),
        ([1, 2, 2], DataError, "different"),
        (["1", "2"], SettingError, "same kind"),
    ],
)
def test_a_list_of_items_is_checked(ratings: Ratings, items: list[Any], problem: type[Exception], says: str) -> None:
    with pytest.raises(problem, match=says) as caught:
        ratings.on_items(items)
    assert not any(character.isdigit() for character in str(caught.value))


def test_an_item_that_nobody_rated_may_be_left_out(ratings: Ratings) -> None:
    longer = ratings.on_items([1, 2, 3])
    assert longer.on_items([2, 1]).items.tolist() == [2, 1]


def test_titles(ratings: Ratings) -> None:
    named = Ratings(ratings.csr, ratings.users, ratings.items, titles={1: "Heat"})
    assert (named.title(1), named.title(2)) == ("Heat", "2")
    assert named.replaced(named.csr).titles == {1: "Heat"}


def test_summary(ratings: Ratings) -> None:
    summary = summarise(ratings, n_titles=1)
    assert summary["density"] == 0.75
    assert summary["per_user"] == (1.25, 1.5, 1.75)
    assert summary["most_rated"] == (("2", 2),)


def broken(form: str, part: str, value: Any) -> Any:
    """Return a sparse array of 3 x 2 whose arrays were changed behind scipy's back, as any caller can."""
    matrix = getattr(sparse, f"{form}_array")(np.array([[5.0, 3.0], [0.0, 4.0], [2.0, 0.0]]))
    if form == "coo":
        matrix.coords = tuple(np.asarray(value) if i == int(part) else c for i, c in enumerate(matrix.coords))
    else:
        setattr(matrix, part, np.asarray(value))
    return matrix


@pytest.mark.parametrize(
    ("form", "part", "value"),
    [
        ("csr", "indptr", [0, 2, 3, 0]),
        ("csr", "indptr", [0, 9, 3, 4]),
        ("csr", "indptr", [1, 2, 3, 4]),
        ("csr", "indptr", [0, 2, 3, 400_000]),
        ("csr", "indptr", [0, 2, 4]),
        ("csr", "indptr", [0.0, 2.0, 3.0, 4.0]),
        ("csr", "indices", [0, 1, 2, 0]),
        ("csr", "indices", [0, 10**9, 1, 0]),
        ("csr", "indices", [0, -10_000_000, 1, 0]),
        ("csr", "indices", [[0, 1, 1, 0]]),
        ("csr", "indices", [0, 1, 1]),
        ("csr", "data", [5.0, np.nan, 4.0, 2.0]),
        ("csr", "data", [5.0, 3.0]),
        ("csc", "indptr", [0, 2, 0]),
        ("csc", "indices", [0, 3, 0, 1]),
        ("coo", "0", [0, 0, 1, 10**9]),
        ("coo", "1", [0, 1, 1, -7]),
    ],
)
def test_a_matrix_with_a_bad_index_is_refused(form: str, part: str, value: Any) -> None:
    """scipy's compiled code would read and write wherever the index points."""
    with pytest.raises(DataError, match="csr must"):
        Ratings(broken(form, part, value), [1, 2, 3], [1, 2], scale=(1, 5))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_the_usual_formats_are_the_same_ratings(form: str) -> None:
    matrix = getattr(sparse, f"{form}_array")(np.array([[5.0, 3.0], [0.0, 4.0]]))
    assert (Ratings(matrix, [1, 2], [1, 2]).csr.toarray() == matrix.toarray()).all()
    with pytest.raises(DataError, match="csr, csc or coo"):
        Ratings(sparse.lil_array(matrix), [1, 2], [1, 2])
    with pytest.raises(DataError, match="csr, csc or coo"):
        Ratings(matrix.toarray(), [1, 2], [1, 2])
