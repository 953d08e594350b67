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
     ├── BlackBoxProblem (RuntimeError)     an audited recommender did not answer as it must  exit 3
     ├── LedgerProblem (RuntimeError)       the privacy ledger cannot do what was asked       exit 3
     │    ├── CapExceeded                   the release would exceed a cap
     │    ├── KeyReused                     the key belongs to another release
     │    ├── RolledBack                    ledger, anchor or data were put back, or forked
     │    ├── ReleaseInProgress             another process is making the release
     │    ├── UnsafeDatabase                the database could lose a charge in a crash
     │    ├── DamagedLedger                 chain, sums or an artefact are not what was written
     │    └── LedgerUnavailable             the database or a file could not be read or written
     └── ServiceProblem (RuntimeError)      `goodfence serve` cannot do what is asked         exit 4
          ├── StoreProblem                  its database cannot be used
          ├── NotAllowed                    the key is missing, or has no right to this
          ├── TooManyRequests               beyond the rate limit
          ├── BadRequest                    the request is not understood, or too large
          ├── NotThere                      no such item, job or model
          ├── Conflict                      it contradicts what was done before
          ├── WouldLeak                     refused: it shows other users' data
          ├── NotReady                      no model is active
          └── BrokenPromise                 the certificate of a service does not hold

`goodfence explain` explains their codes. The command line adds GF100 (not understood), GF130 (interrupted) and GF999
(a fault of goodfence). No message holds a rating, a similarity, a neighbour or an id: errors end in logs.
"""

from __future__ import annotations

import warnings
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class GoodfenceError(Exception):
    """The root of every error that goodfence raises on purpose."""

    code = "GF000"
    exit_code = 70

    def __init_subclass__(cls, *, code: str = "", exit_code: int = 0) -> None:
        cls.code, cls.exit_code = code or cls.code, exit_code or cls.exit_code


class SettingError(GoodfenceError, ValueError, code="GF101", exit_code=2):
    """A setting is outside its rule."""


class DataError(GoodfenceError, ValueError, code="GF200", exit_code=3):
    """Ratings that cannot be read or used."""


class FileProblem(DataError, code="GF201"):
    """A file is missing, unreadable, or not what its name says."""


class ColumnProblem(DataError, code="GF202"):
    """A column is missing, ambiguous, or of the wrong kind."""


class ValueProblem(DataError, code="GF203"):
    """A value breaks its column's rule: null, text, NaN, infinite, outside the scale."""


class DuplicateProblem(DataError, code="GF204"):
    """The same user rated the same item more than once."""


class SizeProblem(DataError, code="GF205"):
    """The data is larger than the stated limit."""


class UnknownDataset(DataError, code="GF206"):
    """A name that is not in the catalogue."""


class DownloadProblem(DataError, code="GF207"):
    """A data set could not be fetched."""


class UnknownId(DataError, code="GF208"):
    """A user or an item that the ratings do not have."""


class ModelFileError(GoodfenceError, ValueError, code="GF301", exit_code=3):
    """A saved model that cannot be loaded."""


class NotFittedError(GoodfenceError, RuntimeError, code="GF302", exit_code=2):
    """A model was asked before it was fitted."""


class MissingExtra(GoodfenceError, ImportError, code="GF401", exit_code=4):
    """An optional part is not installed."""


class SparkProblem(GoodfenceError, RuntimeError, code="GF402", exit_code=4):
    """A job failed on the cluster."""


class BlackBoxProblem(GoodfenceError, RuntimeError, code="GF501", exit_code=3):
    """Somebody's recommender could not be reached, or did not answer as it must."""


class LedgerProblem(GoodfenceError, RuntimeError, code="GF600", exit_code=3):
    """The privacy ledger cannot do what was asked; nothing was released."""


class CapExceeded(LedgerProblem, code="GF601"):
    """The release would exceed a cap."""


class KeyReused(LedgerProblem, code="GF602"):
    """The key belongs to a release of something else."""


class RolledBack(LedgerProblem, code="GF603"):
    """The ledger, its anchor or the data were put back to an older state, or belong to different histories."""


class ReleaseInProgress(LedgerProblem, code="GF604"):
    """Another process is making this release."""


class UnsafeDatabase(LedgerProblem, code="GF605"):
    """The database could lose a charge in a crash."""


class DamagedLedger(LedgerProblem, code="GF606"):
    """The chain, the sums, the schema or an artefact are not what the ledger wrote."""


class LedgerUnavailable(LedgerProblem, code="GF607"):
    """The database or a file of the ledger could not be read or written."""


class ServiceProblem(GoodfenceError, RuntimeError, code="GF700", exit_code=4):
    """`goodfence serve` cannot do what is asked; `status` is that of the answer."""

    status = 500

    def __init_subclass__(cls, *, status: int = 500, **stated: Any) -> None:
        super().__init_subclass__(**stated)
        cls.status = status


class StoreProblem(ServiceProblem, code="GF701", status=503):
    """The database of a service cannot be used."""


class NotAllowed(ServiceProblem, code="GF702", status=403):
    """The key is missing or has no right to what is asked."""


class TooManyRequests(ServiceProblem, code="GF703", status=429):
    """More requests than the rate limit allows; `wait` is in seconds."""

    def __init__(self, wait: float = 1.0) -> None:
        super().__init__("too many requests; wait as long as Retry-After says")
        self.wait = wait


class BadRequest(ServiceProblem, code="GF704", status=422):
    """The request is not understood, or too large."""


class NotThere(ServiceProblem, code="GF705", status=404):
    """There is no such item, job or model."""


class Conflict(ServiceProblem, code="GF706", status=409):
    """The request contradicts what was done before."""


class WouldLeak(ServiceProblem, code="GF707", status=410):
    """Refused, because the answer would show other users' data."""


class NotReady(ServiceProblem, code="GF708", status=503):
    """No model is active yet."""


class BrokenPromise(ServiceProblem, code="GF709", exit_code=1):
    """The certificate of a service does not hold: a wrong signature, a broken chain, or a roll-back."""


class GoodfenceWarning(UserWarning):
    """Something odd but harmless was read; the message says what was done about it."""


def warn(message: str) -> None:
    """Give a `GoodfenceWarning`, attributed to the caller of the function that noticed."""
    warnings.warn(message, GoodfenceWarning, stacklevel=3)


def require(holds: bool, name: str, rule: str, got: object, hint: str = "") -> None:
    """Raise `SettingError` with "`name` must be `rule`, got `got`" and a hint unless `holds`.

    For settings only: never pass a rating, a similarity or somebody's id as `got`.
    """
    if not holds:
        raise SettingError(f"{name} must be {rule}, got {given(got)}{hint}")


_LONGEST_GIVEN = 80


def given(value: object) -> str:
    """Return how an error shows what a setting was given: numbers and short text as they are, else the type."""
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
    """Return "; did you mean 'x'?" for the nearest of `known`, or nothing if none is near."""
    near = get_close_matches(wrong.casefold(), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
