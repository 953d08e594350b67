"""The caller's own ids in row order, and the way back from an id to its position."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from goodfence.errors import DataError, UnknownId


class Ids:
    """Different ids in a fixed order.

    Text is kept as it was given: two spellings that differ only by Unicode normalisation are two
    ids.

    Examples
    --------
    >>> ids = Ids.of(["ann", "bob", "Zoë"], "users")
    >>> ids.positions(["Zoë", "ann"])
    array([2, 0])
    """

    def __init__(self, values: npt.NDArray[Any], kind: str) -> None:
        self.values = values
        self.kind = kind

    @classmethod
    def of(cls, values: Sequence[str | int] | npt.NDArray[Any] | Ids, kind: str) -> Ids:
        """Return `values` as ids of this kind ("users", "items").

        They must be all integers or all text, and no two equal.
        """
        if isinstance(values, Ids):
            return values
        array = _as_ids(values, kind)
        n_different = len(set(array.tolist())) if array.dtype == object else len(np.unique(array))
        if n_different != len(array):
            raise DataError(f"the ids of the {kind} must all be different")
        array.flags.writeable = False
        return cls(array, kind)

    @classmethod
    def of_sorted(cls, values: npt.NDArray[Any], kind: str) -> Ids:
        """Return int64 or text ids that are known to be different, without looking again."""
        values.flags.writeable = False
        return cls(values, kind)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Ids({len(self):,} {self.kind})"

    @property
    def are_text(self) -> bool:
        """Whether the ids are text rather than integers."""
        return bool(self.values.dtype == object)

    def positions(self, wanted: Sequence[str | int] | npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the position of each of `wanted`.

        One that is not there is an error that does not name it.
        """
        if not self.are_text and isinstance(wanted, np.ndarray) and wanted.dtype.kind in "iu":
            return self._positions_of_integers(wanted)
        position = self._position
        keys = wanted.tolist() if isinstance(wanted, np.ndarray) else list(wanted)
        try:
            return np.fromiter((position[key] for key in keys), dtype=np.int64, count=len(keys))
        except (KeyError, TypeError):
            raise self._unknown() from None

    def _positions_of_integers(self, wanted: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Look up a whole array at once, by bisection."""
        ordered, places = self._sorted
        if wanted.dtype == np.uint64 and wanted.size and wanted.max() > np.iinfo(np.int64).max:
            raise self._unknown()
        wanted = wanted.astype(np.int64, copy=False)
        found = np.searchsorted(ordered, wanted)
        inside = found < len(ordered)
        if not inside.all() or (ordered[found] != wanted).any():
            raise self._unknown()
        return found if places is None else places[found]

    def _unknown(self) -> UnknownId:
        expected = "text" if self.are_text else "integers"
        return UnknownId(
            f"at least one of the {self.kind} asked for is not in the ratings (ids here are {expected})"
        )

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
        """The ids in ascending order and where each stands; None where they stand in order already."""
        if (self.values[1:] > self.values[:-1]).all():
            return self.values, None
        places = np.argsort(self.values)
        return self.values[places], places

    @cached_property
    def _position(self) -> dict[Any, int]:
        return {value: position for position, value in enumerate(self.values.tolist())}


def _as_ids(values: Sequence[str | int] | npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim == 1 and array.dtype.kind in "iu":
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise DataError(f"the ids of the {kind} must fit in signed 64-bit integers")
        return array.astype(np.int64)
    listed = list(values)
    if listed and not all(isinstance(value, str) for value in listed):
        raise DataError(f"the ids of the {kind} must be all integers or all text")
    text = np.empty(len(listed), dtype=object)
    text[:] = [str(value) for value in listed]
    return text
