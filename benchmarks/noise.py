"""How long one draw of integer Gaussian noise takes, here and in OpenDP."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp

from benchmarks.results import write_table
from goodfence.privacy.noise import SIGMA, WORDS_A_DRAW, SystemNoise, system_words

DRAWS, REPEATS = 100_000, 7
MATRIX = 3200 * 3199 // 2
"""The draws that the covariance of 3,200 items needs."""


def opendp_draws(n: int) -> object:
    """Draw n integers of the same distribution with OpenDP."""
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    return dp.m.make_gaussian(*space, scale=float(SIGMA))([0] * n)


def microseconds(draw: Callable[[int], object]) -> list[float]:
    """Return the processor time of one draw, in each repetition: what else the machine does is not in it."""
    draw(DRAWS // 10)
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        draw(DRAWS)
        taken.append(1e6 * (time.process_time() - began) / DRAWS)
    return taken


def main() -> None:
    dp.enable_features("contrib")
    timed: dict[str, Callable[[int], object]] = {
        "goodfence": SystemNoise().draw,
        "goodfence, the operating system's random bytes alone": lambda n: system_words(WORDS_A_DRAW * n),
        "OpenDP": opendp_draws,
    }
    rows = []
    for name, draw in timed.items():
        taken = microseconds(draw)
        usual = float(np.median(taken))
        row = [name, f"{usual:.2f}", f"{min(taken):.2f}", f"{max(taken):.2f}"]
        rows.append([*row, f"{usual * MATRIX / 1e6:.0f}"])
    write_table(
        "noise",
        "One draw of integer Gaussian noise",
        ["drawn by", "microseconds a draw, median", "least", "most", f"seconds for {MATRIX:,}"],
        rows,
        time="of one processor, by its own clock",
        draws=f"{DRAWS:,}",
        repetitions=REPEATS,
        sigma="2^24",
        OpenDP=version("opendp"),
    )


if __name__ == "__main__":
    main()
