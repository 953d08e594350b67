"""The bundled ratings are what they say they are, and the real sets are what the catalogue says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.data.catalogue import BUNDLED, DATASETS
from goodfence.data.splits import core
from goodfence.errors import DataError, GoodfenceWarning, SettingError


@pytest.mark.real("movietweetings")
def test_the_bundled_ratings_are_the_core_of_the_whole() -> None:
    bundled = gf.load("movietweetings")
    computed = core(gf.load("movietweetings-full"), per_user=20, per_item=10)
    assert bundled.users.tolist() == computed.users.tolist()
    assert bundled.items.tolist() == computed.items.tolist()
    assert bundled.titles == computed.titles
    assert bundled.scale == computed.scale
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(bundled.csr, part), getattr(computed.csr, part))


def test_the_bundled_ratings_are_a_core_with_zeros_kept() -> None:
    bundled = gf.load("movietweetings")
    assert np.diff(bundled.csr.indptr).min() >= 20
    assert np.bincount(bundled.csr.indices).min() >= 10
    assert (bundled.csr.data == 0).any(), "a rating of 0 is a rating"


def test_the_bundled_ratings_come_with_their_licence() -> None:
    text = (BUNDLED / "LICENSE-movietweetings").read_text(encoding="utf-8")
    assert "Permission is hereby granted, free of charge" in text
    assert "Simon Dooms" in text


REAL = [name for name, dataset in DATASETS.items() if not dataset.bundled]


@pytest.mark.real
@pytest.mark.parametrize("name", [name for name in REAL if name != "goodbooks"])
def test_every_real_set_has_the_size_the_catalogue_states(name: str) -> None:
    ratings = gf.load(name)
    assert (ratings.shape, ratings.n_ratings) == (DATASETS[name].shape, DATASETS[name].n_ratings)
    assert ratings.scale == DATASETS[name].scale


@pytest.mark.real("goodbooks")
def test_goodbooks_says_that_it_leaves_out_repeated_ratings() -> None:
    with pytest.warns(GoodfenceWarning, match="2,278"):
        ratings = gf.load("goodbooks")
    assert ratings.n_ratings == 981_756 - 2_278
    assert ratings.title(1).startswith("The Hunger Games")


@pytest.mark.real("ml-100k")
def test_titles_of_ml_100k_are_read_in_their_own_encoding(real_data: Path) -> None:
    ratings = gf.load("ml-100k")
    assert ratings.title(1) == "Toy Story (1995)"
    assert ratings.title(543) == "Misérables, Les (1995)"
    assert (real_data / "ml-100k" / "u.item").exists()


@pytest.fixture
def chain() -> gf.Ratings:
    """Item z goes, then e, y, d, x and c, one after the other; the block of a and b stays."""
    matrix = [[1, 2, 0, 0, 0], [3, 4, 0, 0, 0], [5, 0, 1, 0, 0], [0, 0, 2, 3, 0], [0, 0, 0, 4, 5]]
    titles = {"v": "First", "x": "Third"}
    return gf.Ratings(sparse.csr_array(matrix), list("abcde"), list("vwxyz"), (1, 5), titles)


def test_the_core_is_the_known_one(chain: gf.Ratings) -> None:
    left = core(chain, per_user=2, per_item=2)
    assert left.users.tolist() == ["a", "b"]
    assert left.items.tolist() == ["v", "w"]
    assert left.csr.toarray().tolist() == [[1, 2], [3, 4]]
    assert left.titles == {"v": "First"}


def test_no_core_is_an_error(chain: gf.Ratings) -> None:
    with pytest.raises(DataError, match="no part of the ratings has 3 a user and 2 an item"):
        core(chain, per_user=3, per_item=2)
    with pytest.raises(SettingError, match="per_item must be"):
        core(chain, per_user=1, per_item=0)
