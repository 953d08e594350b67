"""A share as a square of a hundred small ones, which needs no scale to be read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from goodfence.attack.scoring import Estimate
from goodfence.report.wording import dashed, interval, of_100

_SIDE, _STEP, _ROW = 9, 11, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Waffle:
    """A hundred squares, some of them full."""

    kind: str
    """`read`, `without` or `guess`: its colour."""
    caption: str
    number: str
    """How many of a hundred."""
    interval: str
    full: str
    """The path of the full squares."""
    empty: str
    """The path of the others."""


def waffle(kind: str, caption: str, share: Estimate) -> Waffle:
    """Return the squares of a share, full ones from below.

    Examples
    --------
    >>> made = waffle("read", "With her", Estimate(0.02, 0.01, 0.03))
    >>> made.number, made.full, made.empty.count("M")
    ('2.0', 'M0 99h9v9h-9zM11 99h9v9h-9z', 98)
    """
    n_full = 0 if math.isnan(share.value) else round(100 * share.value)
    squares = [
        f"M{_STEP * (place % _ROW)} {_STEP * (_ROW - 1 - place // _ROW)}h{_SIDE}v{_SIDE}h-{_SIDE}z"
        for place in range(100)
    ]
    return Waffle(
        kind=kind,
        caption=caption,
        number=of_100(share.value),
        interval=dashed(interval(share)),
        full="".join(squares[:n_full]),
        empty="".join(squares[n_full:]),
    )
