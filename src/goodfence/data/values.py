"""A column of ratings as numbers, each of them there, finite and on the scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.data.coding import describe, first_row
from goodfence.data.scale import Scale
from goodfence.errors import ValueProblem


def rating_values(column: pa.ChunkedArray, label: str) -> npt.NDArray[np.float64]:
    """Return the ratings as float64.

    A missing, textual or infinite one is an error that names its row.

    Examples
    --------
    >>> rating_values(pa.chunked_array([[4, None]]), "rating (column 'stars')")
    Traceback (most recent call last):
    ...
    goodfence.errors.ValueProblem: rating (column 'stars') must not be missing, row 2 is
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if column.null_count:
        missing = np.asarray(column.is_null().to_numpy())
        raise ValueProblem(f"{label} must not be missing, row {first_row(missing)} is")
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not numeric:
        raise ValueProblem(f"{label} must be a number, row 1 is not: it holds {describe(kind)}")
    try:
        values = np.asarray(column.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        raise ValueProblem(
            f"{label} must be exact as a 64-bit float, at least one is not"
        ) from None
    broken = ~np.isfinite(values)
    if broken.any():
        raise ValueProblem(f"{label} must be a finite number, row {first_row(broken)} is not")
    return values


def check_scale(values: npt.NDArray[np.float64], scale: Scale, label: str) -> None:
    """Raise `ValueProblem` with the first row whose rating is not on the scale.

    Examples
    --------
    >>> check_scale(np.array([4.0, 99.0]), Scale(1, 5), "rating")
    Traceback (most recent call last):
    ...
    goodfence.errors.ValueProblem: rating must be on the scale (whole numbers 1-5), row 2 is not
    """
    outside = ~scale.holds(values)
    if outside.any():
        raise ValueProblem(
            f"{label} must be on the scale ({scale}), row {first_row(outside)} is not"
        )
