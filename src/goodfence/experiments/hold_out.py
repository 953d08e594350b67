"""The honest protocol: neighbours are found without the ratings that are then predicted."""

from __future__ import annotations

import numpy as np

from goodfence.data.ratings import Ratings
from goodfence.data.splits import holdout
from goodfence.experiments.definition import definition
from goodfence.experiments.estimates import Sums
from goodfence.experiments.reading import DEFAULT
from goodfence.experiments.tallies import Floats, tallies
from goodfence.experiments.unattacked import Unattacked
from goodfence.rng import Streams

FRACTION = 0.2
BETA = 4
"""The partitions of PPNS, as in the last point of `user-movielens`."""


def hold_out(ratings: Ratings, *, n_seeds: int, n_targets: int, rng: int) -> Sums:
    """Return the counts of the four methods at beta = 4: a fifth of all ratings held out, 200 targets a seed."""
    figure = definition("user-movielens")
    order = Streams(rng).order(ratings.shape[0])
    counts: dict[str, dict[str, Floats]] = {series: {} for series in figure.series}
    for number in range(n_seeds):
        seed = [rng, number]
        train, test = holdout(ratings, fraction=FRACTION, rng=seed)
        lists = Unattacked(train, test, "user", DEFAULT).targets(n_targets, seed)
        cells, columns = lists.cells(order)
        predictions = {
            series: lists.predict(figure.mechanism(series, BETA), cells, columns)
            for series in figure.series
        }
        for series, found in tallies(cells, predictions).items():
            for name, values in found.items():
                into = counts[series].setdefault(name, np.zeros(ratings.shape[0]))
                np.add.at(into, cells.numbers, values)
    asked = counts["PPNS"]["targets"] > 0
    return Sums(
        {
            (BETA, series): {name: values[asked] for name, values in found.items()}
            for series, found in counts.items()
        }
    )
