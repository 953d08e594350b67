"""Libraries that goodfence speaks to and does not need."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.arrays import Floats, row_numbers
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale, ScaleLike
from goodfence.errors import MissingExtra

_PACKAGES = {"sklearn": "scikit-learn", "surprise": "scikit-surprise", "lenskit": "lenskit"}
"""What the libraries are called where they are installed from."""


def library(module: str) -> Any:
    """Return a module of an optional library; where the library is missing, say how to get it."""
    name = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name:
            raise  # the library is there, and misses something of its own
        raise _missing(name) from None


def base_class(module: str, name: str) -> Any:
    """Return a class of an optional library to derive from.

    Where the library is missing, that is a class of which no instance can be made: the module that derives from
    it can be read and documented everywhere, and used where the library is.
    """
    try:
        return getattr(library(module), name)
    except MissingExtra:
        return type(name, (), {"__new__": _refuse_instance, "missing": module.partition(".")[0]})


def _refuse_instance(cls: Any, *_arguments: object, **_settings: object) -> NoReturn:
    raise _missing(cls.missing)


def _missing(name: str) -> MissingExtra:
    package = _PACKAGES.get(name, name)
    extra = "lenskit" if package == "lenskit" else "adapters"  # LensKit brings PyTorch
    install = f"pip install 'goodfence[{extra}]'"
    return MissingExtra(f"{package} must be installed for this adapter; {install}")


class Flat(NamedTuple):
    """One entry for each rating, in row order."""

    users: npt.NDArray[Any]
    """The users' own ids."""
    items: npt.NDArray[Any]
    """The items' own ids."""
    values: Floats
    """The ratings."""

    def __repr__(self) -> str:
        return f"Flat({len(self.values):,} ratings)"


def flatten(ratings: Ratings) -> Flat:
    """Return who rated what how, one entry for each rating."""
    csr = ratings.csr
    rows = row_numbers(csr.indptr)
    return Flat(ratings.users[rows], ratings.items[csr.indices], np.array(csr.data))


def gather(users: Any, items: Any, values: Any, *, scale: ScaleLike | None = None) -> Ratings:
    """Return ratings from three columns, checked as those of a file are; the inverse of `flatten`.

    Examples
    --------
    >>> gather(["ann", "bob"], [10, 10], [4, 5], scale=(1, 5))
    Ratings(2 users x 1 items, 2 ratings, integers 1-5)
    """
    columns = {"user": _column(users), "item": _column(items), "rating": _column(values)}
    return Ratings.from_frame(pa.table(columns), scale=scale)


def within(values: Floats, ends: tuple[float, float]) -> Scale:
    """Return the scale between `ends` with the step that the values show: observed, for nobody stated the step.

    Examples
    --------
    >>> print(within(np.array([2.0, 4.0]), (1, 5)))
    integers 1-5 (observed)
    """
    lowest, highest = float(ends[0]), float(ends[1])
    seen = Scale.observed(np.append(values, (lowest, highest)))
    return Scale(lowest, highest, seen.step, declared=False)


def _column(values: Any) -> pa.Array:
    """Return one column; numpy keeps text as objects, of which arrow is told to make text."""
    array = np.asarray(values)
    return pa.array(array.tolist() if array.dtype.kind in "OU" else array)


def predict_known(
    recommender: Any, ratings: Ratings, users: npt.NDArray[Any], items: npt.NDArray[Any]
) -> Floats:
    """Return predictions where both the user and the item are in `ratings`, NaN elsewhere.

    The libraries around us split ratings without regard for who is left; goodfence itself calls an id that is not
    in the ratings a mistake.
    """
    known = among(users, ratings.users) & among(items, ratings.items)
    predictions = np.full(len(known), np.nan)
    if known.any():
        # As the ratings hold them: integers, or text as objects.
        known_users = users[known].astype(ratings.users.dtype)
        known_items = items[known].astype(ratings.items.dtype)
        predictions[known] = recommender.predict(known_users, known_items)
    return predictions


def among(wanted: npt.NDArray[Any], ids: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which of `wanted` are among the ids; text and numbers are never the same."""
    if ids.dtype != object and wanted.dtype.kind in "iu":
        return np.isin(wanted, ids)
    known = set(ids.tolist())
    return np.fromiter((one in known for one in wanted.tolist()), np.bool_, len(wanted))
