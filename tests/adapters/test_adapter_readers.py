"""Data of other libraries that needs none of them to be read, and what is said where one is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.adapters.libraries import (
    base_class,
    flatten,
    library,
    predict_known,
    ratings_from_columns,
    ratings_from_inter,
    ratings_from_matrix,
)
from goodfence.adapters.surprise import observed_within
from goodfence.data.frame import ReadOptions
from goodfence.errors import ColumnProblem, DataError, MissingExtra, SettingError
from tests.support.attack_worlds import tied_ratings

MATRIX = sparse.csr_matrix(np.array([[5, 0, 1], [0, 0, 3]]))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_a_matrix_is_read_in_any_form(kind: str, dtype: Any) -> None:
    ratings = ratings_from_matrix(MATRIX.astype(dtype).asformat(kind), scale=(1, 5))
    assert ratings.users.tolist() == [0, 1]
    assert ratings.items.tolist() == [0, 1, 2]
    assert ratings.csr.toarray().tolist() == MATRIX.toarray().tolist()


def test_a_matrix_with_ids() -> None:
    ratings = ratings_from_matrix(MATRIX, users=["ann", "bob"], items=[7, 8, 9])
    assert ratings.csr[ratings.rows(["bob"])[0], ratings.columns([9])[0]] == 3
    assert not ratings.scale.declared


def test_stored_zeros_are_settled_by_the_caller_and_never_by_us() -> None:
    stored = sparse.csr_matrix(([5.0, 0.0], ([0, 1], [0, 1])))
    with pytest.raises(DataError, match="1 stored zeros"):
        ratings_from_matrix(stored)
    assert ratings_from_matrix(stored, zeros="keep").n_ratings == 2
    assert ratings_from_matrix(stored, zeros="drop").n_ratings == 1
    assert stored.nnz == 2  # the caller's own is left alone
    with pytest.raises(SettingError, match="zeros must be one of"):
        ratings_from_matrix(stored, zeros="skip")  # type: ignore[arg-type]


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(DataError, match="scipy sparse matrix, got ndarray"):
        ratings_from_matrix(np.ones((2, 2)))
    with pytest.raises(SettingError, match="csr must be of shape"):
        ratings_from_matrix(MATRIX, users=["ann"])


INTER = (
    "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    "7\ta b\t4\t881250949\n"
    "7\tb\t3.5\t881250950\n"
    "9\ta b\t0.5\t881250951\n"
)


def test_an_inter_file(tmp_path: Path) -> None:
    path = tmp_path / "tiny.inter"
    path.write_text(INTER, encoding="utf-8")
    ratings = ratings_from_inter(path, ReadOptions(scale=(0.5, 5, 0.5)))
    assert flatten(ratings)[0].tolist() == [7, 7, 9]
    assert flatten(ratings)[1].tolist() == ["a b", "b", "a b"]
    assert flatten(ratings)[2].tolist() == [4, 3.5, 0.5]


def test_an_inter_file_with_other_fields_and_separator(tmp_path: Path) -> None:
    path = tmp_path / "tiny.inter"
    text = INTER.replace("user_id", "uid").replace("item_id", "mid").replace("\t", "|")
    path.write_text(text, encoding="utf-8")
    assert ratings_from_inter(path, ReadOptions(separator="|"), fields=("uid", "mid", "rating")).n_ratings == 3


def test_an_inter_file_without_ratings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clicks.inter"
    path.write_text("user_id:token\titem_id:token\n7\ta\n", encoding="utf-8")
    with pytest.raises(DataError):
        ratings_from_inter(path)
    path.write_text("user_id:token\titem_id:token\tlabel:float\n7\ta\t1\n", encoding="utf-8")
    with pytest.raises(ColumnProblem, match="'rating:float'"):
        ratings_from_inter(path)


def test_flat_columns_come_back() -> None:
    ratings = tied_ratings(1)
    again = ratings_from_columns(*flatten(ratings), scale=ratings.scale)
    order = again.rows(ratings.users)
    assert (again.csr[order] != ratings.csr).nnz == 0


def test_repeated_pairs_are_refused() -> None:
    with pytest.raises(DataError, match="must rate an item once"):
        ratings_from_columns([1, 1], [2, 2], [3.0, 4.0])


@pytest.mark.parametrize(
    ("values", "ends", "step"), [([2.0, 4.0], (1, 5), 1.0), ([2.5, 4.0], (1, 5), 0.5), ([2.33, 4.0], (1, 5), None)]
)
def test_ends_are_stated_and_the_step_is_seen(values: Any, ends: Any, step: Any) -> None:
    scale = observed_within(np.array(values), ends)
    assert (scale.lowest, scale.highest, scale.step, scale.declared) == (*ends, step, False)


def test_strangers_get_nan() -> None:
    ratings = tied_ratings(2)
    model = gf.NeighbourCF(gf.KNN(k=3), progress=False).fit(ratings)
    users = np.array(["user 1", "nobody", "user 1"], dtype=object)
    told = predict_known(model, ratings, users, np.array([0, 0, 99]))
    assert np.isfinite(told).tolist() == [True, False, False]
    assert np.isnan(predict_known(model, ratings, users[1:2], np.array([0]))).all()


def test_a_missing_library_says_how_to_get_it() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'goodfence\[adapters\]'"):
        library("no_such_library.of_anybody")
    stand_in: Any = base_class("no_such_library", "Base")

    class Derived(stand_in):  # type: ignore[misc]  # made on the spot
        def __init__(self, setting: int) -> None:
            self.setting = setting

    with pytest.raises(MissingExtra, match="no_such_library must be installed"):
        Derived(3)


def test_a_library_that_misses_something_itself_is_no_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_library.py").write_text("import no_such_part\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_part") as caught:
        library("broken_library")
    assert not isinstance(caught.value, MissingExtra)


@pytest.mark.adapters("implicit")
def test_implicit_and_we_split_and_read_the_same_matrix(peer: Any, films: gf.Ratings) -> None:
    train_test_split = library("implicit.evaluation").train_test_split

    matrix = sparse.csr_matrix(films.csr.astype(np.float32))
    kept, held_out = train_test_split(matrix, train_percentage=0.8, random_state=1)
    for part in (kept, held_out):
        read = ratings_from_matrix(part, scale=(0, 10))
        assert read.shape == films.shape
        assert (read.csr != part.astype(np.float64)).nnz == 0
    assert kept.nnz + held_out.nnz == matrix.nnz


def test_events_of_a_matrix() -> None:
    counts = sparse.csr_array(np.array([[2.0, 0.0], [1.0, 5.0]]))
    once = ratings_from_matrix(counts, feedback="implicit")
    assert (once.feedback, once.csr.data.tolist()) == ("implicit", [1, 1, 1])
    assert ratings_from_matrix(counts, feedback="implicit", weights=True).csr.data.tolist() == [2, 1, 5]
    with pytest.raises(DataError, match="must count more than 0"):
        ratings_from_matrix(-counts, feedback="implicit")
    with pytest.raises(SettingError, match="weights must be left out for ratings"):
        ratings_from_matrix(counts, weights=True)
    with pytest.raises(SettingError, match="scale must be left out for events"):
        ratings_from_matrix(counts, feedback="implicit", scale=(1, 5))


def test_events_of_an_inter_file(tmp_path: Path) -> None:
    path = tmp_path / "clicks.inter"
    path.write_text("user_id:token\titem_id:token\ttimestamp:float\n7\ta\t5.0\n8\ta\t4\n7\ta\t3\n")
    found = ratings_from_inter(path, ReadOptions(feedback="implicit"))
    assert repr(found) == "Ratings(2 users x 1 items, 2 events)"
    assert found.times is not None
    assert found.times.tolist() == [3, 4]
    path.write_text("user_id:token\titem_id:token\trating:float\n7\ta\t5\n8\ta\t2\n")
    with pytest.raises(ColumnProblem, match="likes="):
        ratings_from_inter(path, ReadOptions(feedback="implicit"))
    assert ratings_from_inter(path, ReadOptions(likes=3)).n_ratings == 1
    with pytest.raises(SettingError, match="fields must be the names of 3 columns"):
        ratings_from_inter(path, fields=("user_id", "item_id"))
