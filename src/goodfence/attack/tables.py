"""The lines of a report, one for each target, as an arrow table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goodfence.attack.scoring import Tally
from goodfence.attack.targets import Floats

if TYPE_CHECKING:
    from goodfence.attack.report import AttackReport


def target_table(report: AttackReport, *, ids: bool = False) -> pa.Table:
    """Return one line for each target of the report."""
    columns: dict[str, npt.NDArray[Any]] = {"target": np.arange(report.n_targets)}
    if ids:
        columns["user"] = report.ratings.users[report.rows]
    columns |= {"hidden": report.with_target.hidden.astype(np.int64)}
    columns |= _scores(report.with_target, "")
    columns |= _scores(report.without_target, "_without")
    columns["advantage"] = columns["recovery"] - columns["recovery_without"]
    columns["target_chosen"] = report.chosen
    columns["guess"] = report.guessed.recovered / report.guessed.hidden
    # What does not exist is null: no error without a prediction, no neighbours without a neighbourhood.
    return pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})


def _scores(tally: Tally, suffix: str) -> dict[str, Floats]:
    predicted = np.where(tally.predicted > 0, tally.predicted, np.nan)
    return {
        f"mae{suffix}": tally.error / predicted,
        f"coverage{suffix}": tally.predicted / tally.hidden,
        f"recovery{suffix}": tally.recovered / tally.hidden,
        f"exact{suffix}": tally.exact / tally.hidden,
    }
