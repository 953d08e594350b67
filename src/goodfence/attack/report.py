"""`AttackReport`: what an attack found out, in total and for each target, beside what chance would have given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from goodfence.attack.outcomes import Outcomes
from goodfence.attack.scoring import Estimate, Tally, frequency, ratio, share
from goodfence.data.ratings import Ratings

if TYPE_CHECKING:
    import altair
    import pyarrow as pa

_SCORES = ("mae", "coverage", "recovery", "exact")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AttackReport:
    """What fake accounts learnt about some targets.

    Chance agreement is in both worlds, so only the advantage is leakage. Mind the sign of the paper's measure:
    a lower `mae` means more disclosure.
    """

    attack: str
    """The attack, with its settings."""
    attacked: str
    """The mechanism with its settings, or the name of the recommender."""
    n_left_out: int
    """How many users could not be attacked: too few ratings, or none of a named item."""
    n_fakes: int
    """How many fakes attacked each target."""
    with_target: Tally
    """What the answers got, for each target."""
    without_target: Tally
    """What they got in the world without her."""
    guessed: Tally
    """What guessing the mean of each item's other ratings got."""
    chosen: npt.NDArray[np.float64]
    """For each target the share of the asking fakes that had her as a neighbour; NaN where that is not known."""
    rows: npt.NDArray[np.int64]
    """The targets' rows in the ratings."""
    ratings: Ratings
    """What was attacked."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest of a saved report holds."""
    outcomes: Outcomes | None = None
    """What became of each hidden rating; None where only counts were kept. It is never saved."""

    @property
    def n_targets(self) -> int:
        """How many users were attacked."""
        return len(self.chosen)

    @property
    def n_hidden(self) -> int:
        """How many hidden ratings were asked for."""
        return int(self.with_target.hidden.sum())

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every number of the report with its 95% interval over targets."""
        inside, outside = self.with_target, self.without_target
        without = outside.estimates()
        gained = inside.recovered - outside.recovered
        return {
            **inside.estimates(),
            "target_chosen": frequency(self.chosen),
            "advantage": ratio(gained, inside.hidden, lowest=-1.0, highest=1.0),
            **{f"{name}_without": without[name] for name in _SCORES},
            "guess": share(self.guessed.recovered, self.guessed.hidden),
        }

    @property
    def mae(self) -> float:
        """Mean absolute error over the hidden ratings that got a prediction: lower is more disclosure."""
        return self.estimates["mae"].value

    @property
    def coverage(self) -> float:
        """The share of the hidden ratings that got a prediction."""
        return self.estimates["coverage"].value

    @property
    def recovery(self) -> float:
        """The share of all hidden ratings to which the prediction rounds."""
        return self.estimates["recovery"].value

    @property
    def exact(self) -> float:
        """The share of all hidden ratings that the prediction equals to 1e-6."""
        return self.estimates["exact"].value

    @property
    def target_chosen(self) -> float:
        """How often the target is among the neighbours of an asking fake."""
        return self.estimates["target_chosen"].value

    @property
    def advantage(self) -> float:
        """Recovery minus recovery in the world without the target: what her data gave away."""
        return self.estimates["advantage"].value

    @property
    def read_whole(self) -> Estimate:
        """Of how many targets every hidden rating was recovered."""
        tally = self.with_target
        return frequency((tally.recovered == tally.hidden).astype(float))

    @property
    def guess(self) -> float:
        """The recovery of guessing the mean of each item's other ratings."""
        return self.estimates["guess"].value

    def __repr__(self) -> str:
        head = (
            f"AttackReport({self.attack} on {self.attacked}: {self.n_targets:,} targets, "
            f"{self.n_hidden:,} hidden ratings, {self.n_left_out:,} users left out)"
        )
        lines = [f"  {name:<17} {estimate}" for name, estimate in self.estimates.items()]
        return "\n".join([head, *lines])

    def table(self, *, ids: bool = False) -> pa.Table:
        """Return one line for each target, numbered from 0; her own id only where it is asked for."""
        from goodfence.attack.tables import target_table

        return target_table(self, ids=ids)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write `targets.parquet` (no ids) and `manifest.json` to `folder`, whole or not at all."""
        from goodfence.attack.saving import save_report

        save_report(self, folder)

    def chart(self) -> altair.LayerChart:
        """Return a chart of recovery with and without the target, and by guessing."""
        from goodfence.attack.chart import recovery_chart

        return recovery_chart(self)
