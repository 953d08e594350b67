"""Which column of a table holds the person, which the item and which the rating.

Columns are found by name, whatever the case and the punctuation, or by position where a file has
no header line. Two columns that could both be meant are an error, not a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from goodfence.errors import ColumnProblem, did_you_mean

ROLES = ("user", "item", "rating")


def _with_id(words: str) -> frozenset[str]:
    return frozenset(name for word in words.split() for name in (word, f"{word}id"))


NAMES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "user": _with_id("user person customer member reviewer rater viewer reader") | {"uid"},
        "item": _with_id(
            "item movie film book product song track album artist game show anime joke recipe "
            "business"
        )
        | {"iid", "isbn", "asin"},
        "rating": frozenset({"rating", "ratings", "score", "scores", "star", "stars"})
        | {"starrating", "grade", "userrating", "userscore", "itemrating", "movierating"}
        | {"filmrating", "bookrating", "productrating", "reviewscore", "overall"},
    }
)
"""The names that are known, without case and punctuation."""

_EXAMPLES = {
    "user": "user, userId, user_id, uid",
    "item": "item, itemId, movie_id, book_id",
    "rating": "rating, score, stars",
}
_POSITIONAL = (3, 4)
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that hold the person, the item and the rating, and those that are not used."""

    user: str
    item: str
    rating: str
    unused: tuple[str, ...] = ()
    positional: bool = False
    """Whether the names are positions, counted from 1, of a file without a header line."""

    @property
    def chosen(self) -> tuple[str, str, str]:
        """The three columns that are read, in the order user, item, rating."""
        return self.user, self.item, self.rating

    def label(self, role: str) -> str:
        """Return how an error names the column of this role.

        Examples
        --------
        >>> Columns(user="userId", item="movieId", rating="stars").label("rating")
        "rating (column 'stars')"
        """
        name = dict(zip(ROLES, self.chosen, strict=True))[role]
        return f"{role} (column {name if self.positional else shown(name)})"


def shown(name: str) -> str:
    """Return a column's name for an error: quoted, and cut where it is long."""
    return repr(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}...")


def plain(name: str) -> str:
    """Return a name without case and punctuation.

    Examples
    --------
    >>> plain(" User-ID ")
    'userid'
    """
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def are_positions(user: str | None, item: str | None, rating: str | None) -> bool:
    """Return whether the caller names all three columns by position.

    That is the way to read a file that has no header line.
    """
    return all(name is not None and name.isdecimal() for name in (user, item, rating))


def find_columns(
    names: Sequence[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
) -> Columns:
    """Return which of `names` are the person, the item and the rating.

    Parameters
    ----------
    names
        The names of all columns, in their order.
    user, item, rating
        The column of that role where the caller names it; None finds it by its name.

    Examples
    --------
    >>> find_columns(["userId", "movieId", "rating", "timestamp"]).unused
    ('timestamp',)
    """
    given = {"user": user, "item": item, "rating": rating}
    _check_names(names)
    chosen = {
        role: _named(role, name, names) if name is not None else _recognised(role, names, given)
        for role, name in given.items()
    }
    _check_different(chosen)
    return Columns(
        user=chosen["user"],
        item=chosen["item"],
        rating=chosen["rating"],
        unused=_unused(names, chosen),
    )


def find_positions(
    n_columns: int,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
) -> Columns:
    """Return which positions hold what in a file without a header line, counted from 1.

    They are the first, the second and the third of three or four, as in the MovieLens files,
    unless the caller says otherwise.

    Examples
    --------
    >>> find_positions(4).chosen
    ('1', '2', '3')
    >>> find_positions(5, user="2", item="1", rating="5").chosen
    ('2', '1', '5')
    """
    names = tuple(str(position) for position in range(1, n_columns + 1))
    given = {"user": user, "item": item, "rating": rating}
    if None in given.values() and n_columns not in _POSITIONAL:
        raise ColumnProblem(
            f"a file without a header line must have 3 or 4 columns, this one has {n_columns}; "
            "give the positions of user, item and rating (for example user='1', item='2', "
            "rating='3')"
        )
    chosen: dict[str, str] = {}
    for position, (role, name) in enumerate(given.items(), start=1):
        if name is not None and name not in names:
            raise ColumnProblem(
                f"{role} must be a position from 1 to {n_columns}: the file has no header line "
                "with names"
            )
        chosen[role] = str(position) if name is None else name
    _check_different(chosen)
    return Columns(
        user=chosen["user"],
        item=chosen["item"],
        rating=chosen["rating"],
        unused=_unused(names, chosen),
        positional=True,
    )


def _check_names(names: Sequence[str]) -> None:
    if not all(isinstance(name, str) for name in names):
        raise ColumnProblem("the names of the columns must be text; name them before reading")


def _named(role: str, name: str, names: Sequence[str]) -> str:
    found = [known for known in names if known == name]
    if len(found) > 1:
        raise ColumnProblem(f"{role} must name one column, and {shown(name)} names {len(found)}")
    if not found:
        raise ColumnProblem(
            f"{role} must name a column, and there is none called "
            f"{shown(name)}{did_you_mean(name, names)}"
        )
    return name


def _recognised(role: str, names: Sequence[str], given: Mapping[str, str | None]) -> str:
    taken = set(given.values())
    found = [name for name in names if plain(name) in NAMES[role] and name not in taken]
    if len(found) > 1:
        listed = " and ".join(shown(name) for name in found[:3])
        raise ColumnProblem(
            f"{role} must be one column, and {listed} could each be it; say which with {role}= "
            f"(--{role})"
        )
    if not found:
        # The names that are there are not listed: in a file without a header line they are
        # somebody's rating.
        raise ColumnProblem(
            f"{role} must be a column called {_EXAMPLES[role]} or the like, and none of the "
            f"{len(names)} is; "
            f"name it with {role}= (--{role}), or give positions if the file has no header line "
            "(user='1', item='2', rating='3')"
        )
    return found[0]


def _check_different(chosen: Mapping[str, str]) -> None:
    if len(set(chosen.values())) < len(chosen):
        raise ColumnProblem("user, item and rating must be three different columns; name all three")


def _unused(names: Sequence[str], chosen: Mapping[str, str]) -> tuple[str, ...]:
    taken = set(chosen.values())
    return tuple(name for name in names if name not in taken)
