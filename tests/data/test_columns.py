"""Columns are found by name or position, and never guessed."""

from __future__ import annotations

import pytest

from goodfence.data.columns import NAMES, are_positions, find_columns, find_positions, fold_name
from goodfence.errors import ColumnProblem, GoodfenceWarning


def named(**names: str) -> dict[str, str | None]:
    return {"user": None, "item": None, "rating": None, **names}


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["user", "item", "rating"], ("user", "item", "rating")),
        (["userId", "movieId", "rating", "timestamp"], ("userId", "movieId", "rating")),
        (["User-ID", "ISBN", "Book-Rating"], ("User-ID", "ISBN", "Book-Rating")),
        (["reviewerID", "asin", "overall", "unixReviewTime"], ("reviewerID", "asin", "overall")),
        (["stars", "time", "BUSINESS_ID", "user_id"], ("user_id", "BUSINESS_ID", "stars")),
        (["uid", "iid", "score"], ("uid", "iid", "score")),
    ],
)
def test_known_names(names: list[str], chosen: tuple[str, ...]) -> None:
    columns = find_columns(names)
    assert columns.chosen == chosen
    assert set(columns.unused) == set(names) - set(chosen)
    assert not columns.positional


def test_no_name_means_two_things() -> None:
    user, item, rating = NAMES.values()
    assert not user & item
    assert not user & rating
    assert not item & rating
    assert all(fold_name(name) == name for names in NAMES.values() for name in names)


def test_a_named_column_settles_what_is_ambiguous() -> None:
    names = ["user", "user_id", "item", "rating"]
    with pytest.raises(ColumnProblem, match="'user' and 'user_id' could each be it"):
        find_columns(names)
    columns = find_columns(names, named(user="user_id"))
    assert columns.user == "user_id"
    assert columns.unused == ("user",)


def test_a_column_that_is_named_for_one_role_is_not_taken_for_another() -> None:
    columns = find_columns(["film", "book", "rating"], named(user="film"))
    assert columns.chosen == ("film", "book", "rating")


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(ColumnProblem, match="none called 'usr'; did you mean 'user'"):
        find_columns(["user", "item", "rating"], named(user="usr"))
    with pytest.raises(ColumnProblem) as caught:
        find_columns(["user", "item", "rating"], named(user="something else"))
    assert "did you mean" not in str(caught.value)


def test_a_header_that_may_be_somebody_s_rating_is_not_repeated() -> None:
    with pytest.raises(ColumnProblem) as caught:
        find_columns(["Undine Quark", "Casablanca", "3.14159"])
    assert "none of the 3 columns" in str(caught.value)
    assert not any(text in str(caught.value) for text in ("Undine", "Casablanca", "3.14159"))


def test_names_that_are_not_text_are_refused() -> None:
    with pytest.raises(ColumnProblem, match="must be text"):
        find_columns([0, 1, 2])  # type: ignore[list-item]  # as pandas names them without a header


def test_a_long_name_is_cut() -> None:
    with pytest.raises(ColumnProblem) as caught:
        find_columns(["user", "item", "rating"], named(user="x" * 1000))
    assert len(str(caught.value)) < 200


def test_positions() -> None:
    assert find_positions(3).chosen == ("1", "2", "3")
    assert find_positions(4).unused == ("4",)
    assert find_positions(4, named(user="2", item="1")).chosen == ("2", "1", "3")
    assert find_positions(4, named(user="2")).chosen == ("2", "1", "3")
    assert find_positions(9, named(user="9", item="8", rating="7")).chosen == ("9", "8", "7")
    assert find_positions(4).label("rating") == "rating (column 3)"


@pytest.mark.parametrize("n_columns", [1, 2, 5, 100])
def test_other_numbers_of_columns_need_positions(n_columns: int) -> None:
    with pytest.raises(ColumnProblem, match="must have 3 or 4 columns"):
        find_positions(n_columns)


@pytest.mark.parametrize("position", ["0", "5", "-1", "user", "1.0", "01"])
def test_a_position_must_be_there(position: str) -> None:
    with pytest.raises(ColumnProblem, match="user must be a position from 1 to 4"):
        find_positions(4, named(user=position))


def test_roles_are_three_columns() -> None:
    with pytest.raises(ColumnProblem, match="different columns"):
        find_positions(4, named(user="3", item="3"))
    with pytest.raises(ColumnProblem, match="different columns"):
        find_columns(["user", "item", "rating"], named(user="item", item="item"))


def test_are_positions_only_if_all_three_are() -> None:
    assert are_positions(named(user="1", item="2", rating="3"))
    assert not are_positions(named(user="1", item="2"))
    assert not are_positions(named(user="1", item="2", rating="rating"))


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["Kunden-Nr", "Artikelnummer", "Bewertung", "Datum"], ("Kunden-Nr", "Artikelnummer", "Bewertung")),
        (["Käufer", "Artikel", "Wertung"], ("Käufer", "Artikel", "Wertung")),
        (["id_usuario", "usuario", "película", "puntuación"], ("usuario", "película", "puntuación")),
        (["utilisateur", "titre", "produit", "évaluation"], ("utilisateur", "produit", "évaluation")),
        (["utente", "articolo", "valutazione", "data"], ("utente", "articolo", "valutazione")),
    ],
)
def test_names_of_other_languages(names: list[str], chosen: tuple[str, ...]) -> None:
    assert find_columns(names).chosen == chosen


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["klient", "towar", "ocena", "data"], ("klient", "towar", "ocena")),
        (["", "towar", "klient", "ocena"], ("klient", "towar", "ocena")),
        (["ocena", "klient", "movie"], ("klient", "movie", "ocena")),
        (["klient", "towar", "ocena", "uwagi"], ("klient", "towar", "ocena")),
    ],
)
def test_to_name_the_user_is_enough_and_a_note_says_what_was_taken(names: list[str], chosen: tuple[str, ...]) -> None:
    with pytest.warns(GoodfenceWarning, match=r"read in their order, .*say which with .*rating= \(--rating\)"):
        assert find_columns(names, named(user="klient")).chosen == chosen
    with pytest.raises(ColumnProblem, match="is called user"):
        find_columns(names)


def test_too_many_columns_are_not_guessed_nor_is_a_count_a_rating() -> None:
    with pytest.raises(ColumnProblem, match="none of the 5 columns is called item"):
        find_columns(["klient", "a", "b", "c", "d"], named(user="klient"))
    with pytest.raises(ColumnProblem, match="'plays' sounds like a count"):
        find_columns(["klient", "towar", "plays"], named(user="klient", item="towar"))
    with pytest.warns(GoodfenceWarning, match="item in 'towar'; if"):
        events = find_columns(["klient", "towar", "data"], {"user": "klient", "item": None})
    assert events.chosen == ("klient", "towar")
