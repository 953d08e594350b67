"""What the predictions of one point got, counted for each target: all that claims and charts need.

No prediction, rating or id is kept: targets are numbered in an order drawn by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.data.scale import Scale
from goodfence.experiments.definition import PRIVATE

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = dict[str, Floats]

EXACT = 1e-6
"""A prediction this near to the rating equals it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """The rated cells that are predicted: whose each one is, and its rating."""

    owners: Integers
    """(cells,): the position of the target."""
    ratings: Floats
    """(cells,): what she rated."""
    numbers: Integers
    """(targets,): an anonymous number for each target, the same at every point and seed of a figure."""
    scale: Scale

    def __repr__(self) -> str:
        return f"Cells({len(self.numbers):,} targets, {len(self.ratings):,} ratings)"

    def add_up(self, values: npt.NDArray[np.generic]) -> Floats:
        """Return the sum of `values`, one for each cell, over the cells of each target."""
        weights = np.asarray(values, dtype=np.float64)
        return np.asarray(
            np.bincount(self.owners, weights=weights, minlength=len(self.numbers)),
            dtype=np.float64,
        )

    def recovered(self, predictions: Floats) -> Floats:
        """Return for each target how many predictions round to the rating."""
        return self.add_up(np.abs(self.scale.round(predictions) - self.ratings) < EXACT)


def tallies(cells: Cells, predictions: Mapping[str, Floats]) -> dict[str, Counts]:
    """Return the counts of each series, each an array of shape (targets,).

    The common cells of a private series are those that all private series predict.
    """
    made = {series: ~np.isnan(values) for series, values in predictions.items()}
    shared = [made[series] for series in PRIVATE if series in made]
    common = np.logical_and.reduce(shared) if shared else np.zeros(len(cells.ratings), np.bool_)
    counts = {}
    for series, values in predictions.items():
        compared = common if series in PRIVATE else common & made[series]
        counts[series] = _counts(cells, values, made[series], compared)
    return counts


def _counts(
    cells: Cells, values: Floats, made: npt.NDArray[np.bool_], common: npt.NDArray[np.bool_]
) -> Counts:
    clipped = np.clip(values, cells.scale.lowest, cells.scale.highest)
    errors = np.where(made, np.abs(values - cells.ratings), 0.0)
    clipped_errors = np.where(made, np.abs(clipped - cells.ratings), 0.0)
    parts = {
        "cells": np.ones(len(values)),
        "predicted": made,
        "error": errors,
        "error_clipped": clipped_errors,
        "common": common,
        "error_common": np.where(common, errors, 0.0),
        "error_common_clipped": np.where(common, clipped_errors, 0.0),
        "exact": made & (errors < EXACT),
    }
    counted = {name: cells.add_up(part) for name, part in parts.items()}
    counted["recovered"] = cells.recovered(values)
    counted["targets"] = np.ones(len(cells.numbers))
    return counted


def anonymous_numbers(n_rows: int, order: Integers) -> Integers:
    """Return the number of each row: its place in an order drawn by chance.

    Examples
    --------
    >>> anonymous_numbers(3, np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    numbers = np.empty(n_rows, dtype=np.int64)
    numbers[order] = np.arange(n_rows)
    return numbers
