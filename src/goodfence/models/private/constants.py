"""The public constants of the private models.

They were chosen on parts of ml-100k, ml-1m, douban-movie and netflix-tenth, one threshold of `auto` (plans.py) on
movietweetings too. On these sets a guarantee is conditional on the constants being public: choosing them looked at
ratings, and has no price in the account. From any other data nothing was learnt. How they were chosen:
`docs/mechanisms/private-cf.md`.
"""

from __future__ import annotations

from goodfence.models.private.item_sums import SumSettings
from goodfence.models.private.people import Clamps, Unit

SUMS = {
    "rating": SumSettings(clamps=Clamps(near=1.25, prior=15, wide=1.0), stretch=2.0, floor=1.0),
    "user": SumSettings(clamps=Clamps(near=2.0, prior=8, wide=2.0), stretch=1.5, floor=1.5),
}
"""The item sums, by unit."""
RESIDUALS = Clamps(near=1.0, prior=20, wide=0.5)
"""The residuals from effects that are known, unit rating."""
COVARIANCE = Clamps(near=1.0, prior=40, wide=0.5)
"""The residuals whose covariance is released."""


def weight_of(unit: Unit) -> float:
    """Return the typical weight of one rating in the item sums: 1, or that of somebody with some 80 ratings."""
    return 1.0 if unit == "rating" else 0.06


_LONGEST_OF_FEW = 0.6
_LONGEST_OF_MANY = 2.0


def longest_score(n_directions: int) -> float:
    """Return where a person's score is cut in the half step: with more directions scores are longer."""
    return _LONGEST_OF_FEW if n_directions <= 2 else _LONGEST_OF_MANY
