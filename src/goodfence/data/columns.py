"""Which columns of a table hold user, item, rating, weight and time, by name or by position."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from goodfence.errors import ColumnProblem, did_you_mean, warn

Feedback: TypeAlias = Literal["explicit", "implicit"]
"""Ratings that people gave, or events that happened: clicks, purchases, plays, likes."""
FEEDBACK: tuple[Feedback, ...] = ("explicit", "implicit")
Roles: TypeAlias = Mapping[str, str | None]
"""What is read (user, item, rating or weight, time), each with the caller's name for it; None is to be found."""
ROLES = ("user", "item", "rating")
"""What is read of a rating; of an event it is the user and the item, and a weight where one is named."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def _with_id(text: str) -> frozenset[str]:
    return frozenset(word + end for word in text.split() for end in ("", "id", "nr", "nummer"))


RATED: Roles = MappingProxyType(dict.fromkeys(ROLES))
NAMES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "user": _with_id(
            "user person customer member reviewer rater viewer reader client listener visitor account consumer voter "
            "player nutzer benutzer kunde kunden kaufer mitglied utilisateur usuario cliente utente gebruiker klant"
        )
        | {"uid"},
        "item": _with_id(
            "item movie film book product song track album artist game show anime joke recipe business article place "
            "restaurant hotel beer wine video course app venue manga paper artikel produkt buch lied spiel produit "
            "livre producto articulo libro pelicula prodotto articolo produto filme"
        )
        | {"iid", "isbn", "isbn13", "asin", "sku"},
        "rating": words(
            "rating ratings score scores star stars starrating grade userrating userscore itemrating movierating "
            "filmrating bookrating productrating reviewscore overall feedback rate vote preference myscore myrating "
            "ratingscore scorerating reviewrating reviewoverall ratingvalue overallrating stargiven bewertung sterne "
            "wertung evaluation calificacion puntuacion valoracion valutazione punteggio avaliacao beoordeling"
        ),
    }
)
"""The names that are known, without case, accents and punctuation."""

SECOND: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "user": words(
            "username useridx usercode userindex reviewername profilename reviewprofilename author profile profileid"
        ),
        "item": words(
            "title movietitle booktitle itemname itemidx itemcode itemindex moviename productname name parentasin "
            "beerbeerid titel titre titulo titolo"
        ),
        "rating": words("value points response label mark"),
    }
)
"""Names that count only where no column has one of `NAMES`: a title beside an id is not the item."""

TIMES = words(
    "timestamp timestamps time date datetime ts epoch unixtime unixtimestamp unixreviewtime reviewtime reviewdate "
    "ratingtime ratingdate ratingtimestamp eventtime eventdate eventtimestamp createdat ratedat datum zeit zeitpunkt "
    "zeitstempel fecha data horodatage tijd"
)
"""Names of when it was."""

COUNTS = words("weight count counts plays playcount listens clicks views purchases quantity hours")
"""Names of how often somebody did something, which is no rating."""

_TYPED = re.compile(r":(token|float|token_seq|float_seq)$")  # as RecBole writes behind a name
_EXAMPLES = {
    "user": "user, userId, user_id, uid",
    "item": "item, itemId, movie_id, book_id",
    "rating": "rating, score, stars",
}
POSITIONAL = (3, 4)  # how many columns a file of ratings without a header line has
FEWEST: Mapping[Feedback, int] = MappingProxyType({"explicit": 3, "implicit": 2})
"""How many fields a line has at least."""
DECLARE = "say so with feedback='implicit' (--feedback implicit)"  # what to do about a file of events
MOST_COLUMNS = 10_000  # a table has no more columns than this; one of users x items has
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that hold the user, the item and the rating, and those that are not used."""

    user: str
    item: str
    rating: str | None = None  # None for events
    weight: str | None = None  # how much an event counts, where a column says so
    time: str | None = None  # when it happened, where that is known
    where: str | None = None  # what says which rows are read
    unused: tuple[str, ...] = ()
    layout: str | None = None  # how a file is laid out that has not a row for each rating
    positional: bool = False
    """Whether the names are positions, counted from 1, of a file without a header line."""

    @property
    def by_role(self) -> dict[str, str]:
        """The columns that are read, by what they hold; the time last, where there is one."""
        given = {name: getattr(self, name) for name in ("user", "item", "rating", "weight", "where", "time")}
        return {role: name for role, name in given.items() if name is not None}

    @property
    def chosen(self) -> tuple[str, ...]:
        """The columns that every row must have, in the order user, item, rating or weight."""
        return tuple(name for role, name in self.by_role.items() if role not in ("where", "time"))

    @property
    def before(self) -> str:
        """What is said before a name: a position is one of a column."""
        return "column " if self.positional and not self.layout else ""

    def with_time(self, name: str) -> Columns:
        """Return the same, with one that was not used as the time."""
        return replace(self, time=name, unused=tuple(one for one in self.unused if one != name))

    def without_time(self) -> Columns:
        """Return the same, with the time not used."""
        unused = self.unused if self.time is None else (*self.unused, self.time)
        return replace(self, time=None, unused=unused)

    def label(self, role: str) -> str:
        """Return how an error names the column of this role."""
        if self.layout:
            return f"{role} (layout={self.layout}, counted cell by cell)"
        name = self.by_role[role]
        which = "" if self.where is None or role == "where" else ", in the rows of where="
        return f"{role} (column {name if self.positional else quote_name(name)}{which})"


def quote_name(name: str) -> str:
    """Return a column's name for an error: quoted, and cut where it is long."""
    return repr(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}...")


def fold_name(name: str) -> str:
    """Return a name without case, accents and punctuation: "userid" for " User-ID " and for "user_id:token"."""
    plain = unicodedata.normalize("NFKD", _TYPED.sub("", name).casefold())
    return "".join(letter for letter in plain if letter.isalnum())


def check_number(n_columns: int) -> None:
    """Raise `ColumnProblem` where there are too many columns to look at."""
    if n_columns > MOST_COLUMNS:
        raise ColumnProblem(
            f"a table must have at most {MOST_COLUMNS:,} columns; write a table of users x items as one rating a line"
        )


def are_known(names: Sequence[str]) -> bool:
    """Return whether any of the names is one that a header line has."""
    known = frozenset().union(*NAMES.values(), *SECOND.values(), COUNTS)
    return any(fold_name(name) in known for name in names)


def are_positions(roles: Roles) -> bool:
    """Return whether the caller names all columns by position: the file has no header line."""
    return all(name is not None and name.isdecimal() for name in roles.values())


def find_columns(names: Sequence[str], roles: Roles = RATED) -> Columns:
    """Return which of `names` have these roles: the one that the caller names, or that sounds like it.

    Without a rating among the roles these are events: a column that sounds like a rating is then an error.
    """
    check_number(len(names))
    if not all(isinstance(name, str) for name in names):
        raise ColumnProblem("the names of the columns must be text; name them before reading")
    guessed = _by_order(names, roles)
    chosen = {
        role: guessed.get(role) or (_recognised(role, names, roles) if name is None else _named(role, name, names))
        for role, name in roles.items()
    }
    columns = _columns(names, chosen, positional=False)
    if guessed:
        found = " and ".join(f"{role} in {quote_name(name)}" for role, name in guessed.items())
        asked = ", ".join(f"{role}= (--{role})" for role in guessed)
        warn(f"the columns are read in their order, {found}; if that is wrong, say which with {asked}")
    if "rating" not in roles:
        _check_events(columns)
    return columns


def _by_order(names: Sequence[str], roles: Roles) -> dict[str, str]:
    """Return what no name tells, where the user is named: the columns left over, in their order, one may stay over."""
    if roles.get("user") is None:
        return {}
    folded = {name: fold_name(name) for name in names if name not in roles.values()}
    known = {role: NAMES[role] | SECOND[role] for role in roles if role in NAMES}
    missing = [role for role in known if roles[role] is None and not any(one in known[role] for one in folded.values())]
    told = frozenset().union(*known.values(), TIMES, COUNTS, [""])
    left = [name for name, one in folded.items() if one not in told]
    return dict(zip(missing, left, strict=False)) if 0 <= len(left) - len(missing) <= 1 else {}


def _check_events(columns: Columns) -> None:
    """Refuse a column of ratings among events: a low rating is no like; and tell of a count that is not used."""
    called = NAMES["rating"] | SECOND["rating"]
    rated = next((one for one in columns.unused if fold_name(one) in called), None)
    if rated is not None:
        raise ColumnProblem(
            f"events must have no ratings, and {quote_name(rated)} sounds like some; say which of them "
            "count as likes with likes= (--likes), 4 for example, or name it with read='weight=...' (--read) if it "
            "says how much an event counts"
        )
    count = next((one for one in columns.unused if fold_name(one) in COUNTS), None)
    if count is not None and columns.weight is None:
        message = (
            f"{quote_name(count)} sounds like a count and is not used: each row is one event; if it is how much "
            "an event counts, name it with read='weight=...' (--read)"
        )
        warn(message)


def find_positions(n_columns: int, roles: Roles = RATED) -> Columns:
    """Return which positions hold what in a file without a header line, counted from 1.

    They are the first three of three or four, of events the first two, unless the caller says otherwise.
    """
    names = tuple(str(position) for position in range(1, n_columns + 1))
    rated, unnamed = "rating" in roles, None in roles.values()
    if rated and unnamed and n_columns not in POSITIONAL:
        raise ColumnProblem(
            f"a file without a header line must have 3 or 4 columns, this one has {n_columns}; for a table of users "
            "x items say read='layout=wide' (--read), or give the positions of user, item and rating (for example "
            "user='1', item='2', rating='3')"
        )
    if not rated and unnamed and n_columns != len(roles):
        raise ColumnProblem(
            f"a file of events without a header line must have 2 columns, this one has {n_columns}; say what the "
            "others are with read='time=... weight=...' (--read), or likes= (--likes) if there are ratings, or give "
            "the positions of user and item (user='1', item='2'); if each line lists the items of a user, say "
            "read='layout=lists' (--read)"
        )
    for role, name in roles.items():
        if name is not None and name not in names:
            raise ColumnProblem(
                f"{role} must be a position from 1 to {n_columns}: the file has no header line with names"
            )
    left = (name for name in names if name not in roles.values())
    chosen = {role: name or next(left) for role, name in roles.items()}
    return _columns(names, chosen, positional=True)


def _named(role: str, name: str, names: Sequence[str]) -> str:
    n_found = list(names).count(name)
    if n_found > 1:
        raise ColumnProblem(f"{role} must name one column, and {quote_name(name)} names {n_found}")
    if not n_found:
        # Names are suggested where one of them is known: in a file without a header line they are somebody's ids.
        known = names if any(are_known([one]) for one in names) else []
        raise ColumnProblem(
            f"{role} must name a column, and there is none called {quote_name(name)}{did_you_mean(name, known)}"
        )
    return name


def _recognised(role: str, names: Sequence[str], given: Roles) -> str:
    folded = {name: fold_name(name) for name in names if name not in given.values()}
    found = [name for name in names if folded.get(name) in NAMES[role]]
    found = found or [name for name in names if folded.get(name) in SECOND[role]]
    if len(found) > 1:
        listed = " and ".join(quote_name(name) for name in found[:3])
        raise ColumnProblem(
            f"{role} must be one column, and {listed} could each be it; say which with {role}= (--{role})"
        )
    if not found:
        count = next((name for name, known in folded.items() if known in COUNTS), None)
        if role == "rating" and count is not None:
            raise ColumnProblem(
                f"rating must be a column of ratings, and {quote_name(count)} sounds like a count, which is none; "
                f"if it is meant, name it with rating= (--rating); if these are events, {DECLARE}"
            )
        positions = ", ".join(f"{one}='{at}'" for at, one in enumerate(ROLES, 1) if one in given)
        events = f"; if these are events, without ratings, {DECLARE}" if role == "rating" else ""
        events = events or "; for a table of users x items say read='layout=wide' (--read)" * (role == "item")
        # The names that are there are not listed: in a file without a header line they are
        # somebody's rating.
        raise ColumnProblem(
            f"none of the {len(names)} columns is called {_EXAMPLES[role]} or the like; "
            f"name the column with {role}= (--{role}), or give positions if the file has no header line "
            f"({positions}){events}"
        )
    return found[0]


def _columns(names: Sequence[str], chosen: Mapping[str, str], *, positional: bool) -> Columns:
    taken = set(chosen.values())
    if len(taken) < len(chosen):
        raise ColumnProblem(f"{', '.join(chosen)} must be different columns; name all of them")
    unused = tuple(name for name in names if name not in taken)
    return Columns(**chosen, unused=unused, positional=positional)
