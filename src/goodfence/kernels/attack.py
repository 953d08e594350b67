"""Candidate lists of fake profiles, their draws, and the answers they get: no refit, one list for each attack.

Rows are numbered as in the real data throughout, and a fake is `FAKE`. Only the draw sees the numbers of the
attacked data: real rows behind a removed one move up by one, and the fakes follow all real rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from goodfence.kernels.compiled import kernel
from goodfence.kernels.draw import draw, laplace
from goodfence.kernels.predict import divided, search
from goodfence.kernels.types import Floats, Ints

FAKE = -1
"""The number of every fake in a list of real rows."""

Keys = npt.NDArray[np.uint64]


@kernel
def insert_fakes(
    rows: Ints,
    similarities: Floats,
    fake_similarities: Floats,
    n_fakes: int,
    removed: Ints,
    all_rows: Ints,
    all_similarities: Floats,
) -> None:
    """Write candidate lists of real rows and `n_fakes` fakes, without the `removed` row (-1: nobody).

    A fake stands behind every real row that is as similar: its row number is larger.
    """
    for target in range(rows.shape[0]):
        source, fakes = 0, 0
        similarity = fake_similarities[target]
        for place in range(all_rows.shape[1]):
            if source < rows.shape[1] and rows[target, source] == removed[target]:
                source += 1
            real = source < rows.shape[1]
            if real and (fakes == n_fakes or similarities[target, source] >= similarity):
                all_rows[target, place] = rows[target, source]
                all_similarities[target, place] = similarities[target, source]
                source += 1
            else:
                all_rows[target, place] = FAKE
                all_similarities[target, place] = similarity
                fakes += 1


@kernel
def number_rows(rows: Ints, removed: int, n_real: int, asker: int, numbers: Ints) -> None:
    """Write the row numbers that the attacked data has for a list of real rows and fakes.

    `n_real` counts the rows before the fakes, without the removed one; fake `asker` (from 0) is not in the list.
    """
    fake = 0
    for place in range(rows.size):
        row = rows[place]
        if row == FAKE:
            numbers[place] = n_real + fake + (1 if fake >= asker else 0)
            fake += 1
        else:
            numbers[place] = row - (1 if 0 <= removed < row else 0)


@kernel
def draw_for_fakes(
    log_weights: Floats,
    rows: Ints,
    starts: Ints,
    stops: Ints,
    takes: Ints,
    keys: Keys,
    removed: Ints,
    n_rows: int,
    positions: Ints,
    numbers: Ints,
) -> None:
    """Draw the neighbours of each asking fake of each target.

    `positions` and `numbers`, (targets, askers, k), get where the chosen stand in the list, and their row
    numbers in the attacked data; `n_rows` counts the real rows with the target.
    """
    listed = np.empty(rows.shape[1], np.int32)
    for target in range(positions.shape[0]):
        n_real = n_rows - (1 if removed[target] >= 0 else 0)
        for asker in range(positions.shape[1]):
            number_rows(rows[target], removed[target], n_real, asker, listed)
            chosen = positions[target, asker]
            draw(
                log_weights[target],
                listed,
                starts[target],
                stops[target],
                takes[target],
                keys[target],
                np.uint64(n_real + asker),
                chosen,
            )
            for place in range(chosen.size):
                numbers[target, asker, place] = listed[chosen[place]]


@kernel
def noise_for_fakes(
    keys: Keys, removed: Ints, n_rows: int, numbers: Ints, scales: Floats, noise: Floats
) -> None:
    """Fill `noise` with Laplace noise for each (asking fake, neighbour): shapes (targets, askers, k)."""
    askers = np.empty(numbers.shape[1], np.int32)
    for target in range(numbers.shape[0]):
        n_real = n_rows - (1 if removed[target] >= 0 else 0)
        for asker in range(askers.size):
            askers[asker] = n_real + asker
        laplace(keys[target], askers, numbers[target], scales[target], noise[target])


@kernel
def predict_beside_helpers(
    cells: Ints,
    rating: float,
    neighbours: Ints,
    weights: Floats,
    starts: Ints,
    columns: Ints,
    ratings: Floats,
    over_raters: bool,
    predictions: Floats,
) -> None:
    """Predict column `cells[q]` for question q, where every fake neighbour gave that column `rating`.

    The sums are formed in the order of the neighbours, as for any other prediction.
    """
    for question in range(cells.size):
        near, weight = neighbours[question], weights[question]
        total, size = 0.0, 0.0
        for place in range(near.size):
            if near[place] == FAKE:
                total += weight[place] * rating
                size += abs(weight[place])
                continue
            entry = search(starts, columns, near[place], cells[question])
            if entry >= 0:
                total += weight[place] * ratings[entry]
                size += abs(weight[place])
        fixed = -1.0 if over_raters else np.abs(weight).sum()
        predictions[question] = divided(total, size, fixed)
