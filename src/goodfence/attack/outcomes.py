"""What became of each hidden rating: read or not, with the target, without her, and by guessing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodfence.attack.scoring import is_recovered, item_mean_guesses
from goodfence.attack.targets import Floats, Integers, Targets
from goodfence.data.ratings import Ratings

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcomes:
    """One entry for each hidden rating: whose it is, of which item, and who read it. The rating is not in it."""

    owners: Integers
    """(hidden,): the position among the targets."""
    columns: Integers
    """(hidden,): the item's column."""
    read: Booleans
    """(hidden,): whether the answer rounds to the rating."""
    read_without: Booleans
    """(hidden,): the same in the world without the target."""
    guessed: Booleans
    """(hidden,): whether the mean of the item's other ratings does."""

    def __repr__(self) -> str:
        return f"Outcomes({len(self.owners):,} hidden ratings)"

    @classmethod
    def of(cls, answers: Floats, without: Floats, targets: Targets, ratings: Ratings) -> Outcomes:
        """Compare the answers of both worlds, and the guesses, with the hidden ratings."""
        guesses = item_mean_guesses(targets, ratings)
        return cls(
            owners=targets.owners,
            columns=targets.columns,
            read=is_recovered(answers, targets, ratings),
            read_without=is_recovered(without, targets, ratings),
            guessed=is_recovered(guesses, targets, ratings),
        )
