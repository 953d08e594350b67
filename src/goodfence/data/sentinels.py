"""Numbers that stand for "not rated": what the caller says of them, and a warning where they seem to be there."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.arrays import Floats
from goodfence.data.frame import rating_values
from goodfence.errors import DataError, GoodfenceWarning
from goodfence.settings import finite

_USUAL = (-1.0, 0.0, 99.0, -99.0, 98.0, 100.0, 127.0, 255.0, 999.0, -999.0, 9999.0, -9999.0)
_MANY = 0.2
_FEWEST = 3


def without_unrated(
    table: pa.Table, unrated: float | Sequence[float] | None, label: str
) -> pa.Table:
    """Return the rows of a table whose rating is none of `unrated`; a warning counts the others."""
    if unrated is None:
        return table
    listed = unrated if isinstance(unrated, list | tuple) else [unrated]
    wanted = [finite(one, "unrated") for one in listed]
    out = np.isin(rating_values(table["rating"], label), wanted)
    if out.all():
        raise DataError(f"{label} must hold a rating, and every row says that there is none")
    if out.any():
        message = (
            f"{int(out.sum()):,} rows say that there is no rating (unrated=, --unrated); left out"
        )
        warnings.warn(message, GoodfenceWarning, stacklevel=2)
    return table.filter(pa.array(~out))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentinel:
    """A number among ratings that may mean "not rated"."""

    value: float
    share: float
    """The part of all rows that says it."""
    why: str

    def __str__(self) -> str:
        share = f"{100 * self.share:.2g} of 100 ratings"
        return f'{self.value:g} ({share}) may mean "not rated": {self.why}'


def find_sentinels(values: Floats) -> list[Sentinel]:
    """Return which of the lowest and the highest rating may mean "not rated".

    One of the usual numbers (-1, 0, 99, ...) that is twice as far from the rest as these are from each other, any
    number that is farther than all of their range, or a 0 that is a fifth of all and three times as frequent as the
    rating next to it.

    Examples
    --------
    >>> [one.value for one in find_sentinels(np.array([-1, 7, 8, 9, 6, 10, 8.0]))]
    [-1.0]
    >>> find_sentinels(np.array([1, 2, 3, 4, 5.0]))
    []
    """
    grades, counts = _counted(values)
    found = []
    if len(grades) > _FEWEST:
        for at, rest in ((0, slice(1, None)), (-1, slice(None, -1))):
            others = grades[rest]
            gap = float(np.abs(grades[at] - others).min())
            why = _far(float(grades[at]), gap, others) or _many(float(grades[at]), at, counts)
            if why:
                share = float(counts[at] / counts.sum())
                found.append(Sentinel(value=float(grades[at]), share=share, why=why))
    return found


_MOST_COUNTED = 1000
_BLOCK = 2**16


def _counted(values: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the different ratings in order and how often each was given; half steps need no sorting."""
    lowest, width = float(values.min()), float(values.max() - values.min())
    if width > _MOST_COUNTED:
        return np.unique(values, return_counts=True)
    counts = np.zeros(int(2 * width) + 1, dtype=np.int64)
    for start in range(0, len(values), _BLOCK):  # blocks stay in the processor's cache
        steps = 2 * (values[start : start + _BLOCK] - lowest)
        if bool((steps != np.floor(steps)).any()):
            return np.unique(values, return_counts=True)
        counts += np.bincount(steps.astype(np.int64), minlength=len(counts))
    given = np.flatnonzero(counts)
    return lowest + given / 2, counts[given]


def _far(value: float, gap: float, others: Floats) -> str:
    apart = float(np.diff(others).max())
    width = float(others[-1] - others[0])
    if gap > width or (value in _USUAL and gap >= 2 * apart):
        return f"it is far from the others, {others[0]:g} to {others[-1]:g}"
    return ""


def _many(value: float, at: int, counts: npt.NDArray[np.int64]) -> str:
    others = np.delete(counts, at)
    if value == 0 and counts[at] >= _MANY * counts.sum() and counts[at] > 3 * others[0]:
        return "it is frequent, and the rating next to it is rare"
    return ""


def warn_of_sentinels(values: Floats, label: str) -> None:
    """Warn of a number that may mean "not rated", with the setting that leaves it out."""
    for one in find_sentinels(values):
        advice = f"leave it out with unrated={one.value:g} (--unrated {one.value:g})"
        warnings.warn(
            f"{label} holds {one}; {advice}, or declare the scale",
            GoodfenceWarning,
            stacklevel=3,
        )
