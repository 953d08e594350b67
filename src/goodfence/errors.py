"""What can go wrong, one tree.

    GoodfenceError
     ├── SettingError (ValueError)          a setting is outside its rule                     exit 2
     ├── DataError (ValueError)             ratings that cannot be read or used               exit 3
     │    ├── FileProblem                   missing, unreadable, not what its name says
     │    ├── ColumnProblem                 a column is missing, ambiguous or of the wrong kind
     │    ├── ValueProblem                  a null, a text, NaN, an infinity, outside the scale
     │    ├── DuplicateProblem              the same user rated the same item twice
     │    ├── SizeProblem                   larger than the stated limit
     │    ├── UnknownDataset                a name that is not in the catalogue
     │    ├── DownloadProblem               a data set could not be fetched
     │    └── UnknownId                     a user or an item that the ratings do not have
     ├── ModelFileError (ValueError)        a saved model that cannot be loaded               exit 3
     ├── NotFittedError (RuntimeError)      asked before `fit`                                exit 2
     ├── MissingExtra (ImportError)         an optional part is not installed                 exit 4
     ├── SparkProblem (RuntimeError)        a job failed on the cluster                       exit 4
     └── BlackBoxProblem (RuntimeError)     an audited recommender did not answer as it must  exit 3

Each has a code of its own, which `goodfence explain` explains. The command line adds three: GF100 (not understood),
GF130 (interrupted) and GF999 (a fault of goodfence).

A message is one sentence that names the rule, then what to do. No message holds a rating, a similarity, a
neighbour or somebody's id: errors end in logs, and logs are read by others.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class GoodfenceError(Exception):
    """The root of every error that goodfence raises on purpose."""

    code = "GF000"
    exit_code = 70


class SettingError(GoodfenceError, ValueError):
    """A setting is outside its rule."""

    code = "GF101"
    exit_code = 2


class DataError(GoodfenceError, ValueError):
    """Ratings that cannot be read or used."""

    code = "GF200"
    exit_code = 3


class FileProblem(DataError):
    """A file is missing, unreadable, or not what its name says."""

    code = "GF201"


class ColumnProblem(DataError):
    """A column is missing, ambiguous, or of the wrong kind."""

    code = "GF202"


class ValueProblem(DataError):
    """A value breaks its column's rule: null, text, NaN, infinite, outside the scale."""

    code = "GF203"


class DuplicateProblem(DataError):
    """The same user rated the same item more than once."""

    code = "GF204"


class SizeProblem(DataError):
    """The data is larger than the stated limit."""

    code = "GF205"


class UnknownDataset(DataError):
    """A name that is not in the catalogue."""

    code = "GF206"


class DownloadProblem(DataError):
    """A data set could not be fetched."""

    code = "GF207"


class UnknownId(DataError):
    """A user or an item that the ratings do not have."""

    code = "GF208"


class ModelFileError(GoodfenceError, ValueError):
    """A saved model that cannot be loaded."""

    code = "GF301"
    exit_code = 3


class NotFittedError(GoodfenceError, RuntimeError):
    """A model was asked before it was fitted."""

    code = "GF302"
    exit_code = 2


class MissingExtra(GoodfenceError, ImportError):
    """An optional part is not installed."""

    code = "GF401"
    exit_code = 4


class SparkProblem(GoodfenceError, RuntimeError):
    """A job failed on the cluster."""

    code = "GF402"
    exit_code = 4


class BlackBoxProblem(GoodfenceError, RuntimeError):
    """Somebody's recommender could not be reached, or did not answer as it must."""

    code = "GF501"
    exit_code = 3


class GoodfenceWarning(UserWarning):
    """Something odd but harmless was read; the message says what was done about it."""


def require(holds: bool, name: str, rule: str, got: object, hint: str = "") -> None:
    """Raise `SettingError` with "`name` must be `rule`, got `got`" and a hint unless `holds`.

    For settings only: never pass a rating, a similarity or somebody's id as `got`.

    Examples
    --------
    >>> require(0 >= 1, "k", "a positive integer", 0)
    Traceback (most recent call last):
    ...
    goodfence.errors.SettingError: k must be a positive integer, got 0
    """
    if not holds:
        raise SettingError(f"{name} must be {rule}, got {given(got)}{hint}")


_LONGEST_GIVEN = 80


def given(value: object) -> str:
    """Return how an error shows what a setting was given: numbers and short text as they are, else the type.

    Examples
    --------
    >>> given("x" * 200)[:8], given([0.1, 0.2]), given({"ann": 5}), given(True), given(range(10**9))
    ("'xxxxxxx", '[0.1, 0.2]', 'a dict', 'True', 'a range')
    """
    if isinstance(value, type):
        return f"a {value.__name__}"
    plain = (bool, int, float, str, bytes, type(None))
    items = value if isinstance(value, tuple | list) else (value,)
    if len(items) > _LONGEST_GIVEN or not all(isinstance(one, plain) for one in items):
        return f"a {type(value).__name__}"
    try:
        shown = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return f"a {type(value).__name__} of very many digits"
    return shown if len(shown) <= _LONGEST_GIVEN else f"{shown[: _LONGEST_GIVEN - 3]}..."


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest of `known`, or nothing if none is near.

    Examples
    --------
    >>> did_you_mean("movietweets", ["ml-100k", "movietweetings"])
    "; did you mean 'movietweetings'?"
    """
    near = get_close_matches(wrong.casefold(), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
