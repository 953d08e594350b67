"""Which column of a table holds the user, which the item and which the rating.

Columns are found by name, whatever the case and the punctuation, or by position where a file has
no header line. Two columns that could both be meant are an error, not a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from goodfence.errors import ColumnProblem, did_you_mean

ROLES = ("user", "item", "rating")


def _with_id(words: str) -> frozenset[str]:
    return frozenset(name for word in words.split() for name in (word, f"{word}id"))


NAMES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "user": _with_id(
            "user person customer member reviewer rater viewer reader client listener visitor "
            "account consumer voter player"
        )
        | {"uid"},
        "item": _with_id(
            "item movie film book product song track album artist game show anime joke recipe "
            "business article place restaurant hotel beer wine video course app venue manga paper"
        )
        | {"iid", "isbn", "isbn13", "asin", "sku"},
        "rating": frozenset({"rating", "ratings", "score", "scores", "star", "stars"})
        | {"starrating", "grade", "userrating", "userscore", "itemrating", "movierating"}
        | {"filmrating", "bookrating", "productrating", "reviewscore", "overall", "feedback"}
        | {"rate", "vote", "preference", "myscore", "myrating", "ratingscore", "scorerating"}
        | {
            "reviewrating",
            "reviewoverall",
            "ratingvalue",
            "overallrating",
            "stargiven",
            "bewertung",
        },
    }
)
"""The names that are known, without case and punctuation."""

SECOND: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "user": frozenset({"username", "useridx", "usercode", "userindex", "reviewername"})
        | {"profilename", "reviewprofilename", "author", "profile", "profileid"},
        "item": frozenset({"title", "movietitle", "booktitle", "itemname", "itemidx", "itemcode"})
        | {"itemindex", "moviename", "productname", "name", "parentasin", "beerbeerid"},
        "rating": frozenset({"value", "points", "response", "label", "mark"}),
    }
)
"""Names that count only where no column has one of `NAMES`: a title beside an id is not the item."""

COUNTS = frozenset(
    [
        "weight",
        "count",
        "counts",
        "plays",
        "playcount",
        "listens",
        "clicks",
        "views",
        "purchases",
        "quantity",
        "hours",
    ]
)
"""Names of how often somebody did something, which is no rating."""

_TYPED = re.compile(r":(token|float|token_seq|float_seq)$")  # as RecBole writes behind a name
_EXAMPLES = {
    "user": "user, userId, user_id, uid",
    "item": "item, itemId, movie_id, book_id",
    "rating": "rating, score, stars",
}
_POSITIONAL = (3, 4)
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that hold the user, the item and the rating, and those that are not used."""

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
    >>> plain(" User-ID "), plain("user_id:token")
    ('userid', 'userid')
    """
    return "".join(letter for letter in _TYPED.sub("", name).casefold() if letter.isalnum())


def are_known(names: Sequence[str]) -> bool:
    """Return whether any of the names is one that a header line has."""
    known = frozenset().union(*NAMES.values(), *SECOND.values(), COUNTS)
    return any(plain(name) in known for name in names)


def are_positions(user: str | None, item: str | None, rating: str | None) -> bool:
    """Return whether the caller names all three columns by position: the file has no header line."""
    return all(name is not None and name.isdecimal() for name in (user, item, rating))


def find_columns(
    names: Sequence[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
) -> Columns:
    """Return which of `names` are the user, the item and the rating.

    The column of a role is the one that the caller names; None finds it by its name.

    Examples
    --------
    >>> find_columns(["userId", "movieId", "rating", "timestamp"]).unused
    ('timestamp',)
    """
    given = {"user": user, "item": item, "rating": rating}
    if not all(isinstance(name, str) for name in names):
        raise ColumnProblem("the names of the columns must be text; name them before reading")
    chosen = {
        role: _named(role, name, names) if name is not None else _recognised(role, names, given)
        for role, name in given.items()
    }
    _check_different(chosen)
    return Columns(**chosen, unused=_unused(names, chosen), positional=False)


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
    return Columns(**chosen, unused=_unused(names, chosen), positional=True)


def _named(role: str, name: str, names: Sequence[str]) -> str:
    found = [known for known in names if known == name]
    if len(found) > 1:
        raise ColumnProblem(f"{role} must name one column, and {shown(name)} names {len(found)}")
    if not found:
        # Names are suggested where one of them is known: in a file without a header line they are somebody's ids.
        known = names if any(are_known([one]) for one in names) else []
        raise ColumnProblem(
            f"{role} must name a column, and there is none called "
            f"{shown(name)}{did_you_mean(name, known)}"
        )
    return name


def _recognised(role: str, names: Sequence[str], given: Mapping[str, str | None]) -> str:
    taken = set(given.values())
    found = [name for name in names if plain(name) in NAMES[role] and name not in taken]
    found = found or [name for name in names if plain(name) in SECOND[role] and name not in taken]
    if len(found) > 1:
        listed = " and ".join(shown(name) for name in found[:3])
        raise ColumnProblem(
            f"{role} must be one column, and {listed} could each be it; say which with {role}= "
            f"(--{role})"
        )
    if not found:
        count = next((n for n in names if plain(n) in COUNTS and n not in taken), None)
        if role == "rating" and count is not None:
            raise ColumnProblem(
                f"rating must be a column of ratings, and {shown(count)} sounds like a count, which is none; "
                "if it is meant, name it with rating= (--rating)"
            )
        # The names that are there are not listed: in a file without a header line they are
        # somebody's rating.
        raise ColumnProblem(
            f"{role} must be a column called {_EXAMPLES[role]} or the like, and none of the "
            f"{len(names)} is; name it with {role}= (--{role}), or give positions if the file has no header line "
            "(user='1', item='2', rating='3')"
        )
    return found[0]


def _check_different(chosen: Mapping[str, str]) -> None:
    if len(set(chosen.values())) < len(chosen):
        raise ColumnProblem("user, item and rating must be three different columns; name all three")


def _unused(names: Sequence[str], chosen: Mapping[str, str]) -> tuple[str, ...]:
    taken = set(chosen.values())
    return tuple(name for name in names if name not in taken)
