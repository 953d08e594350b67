"""The points of a figure: computed one by one, kept on disk whole or not at all, never computed twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import goodfence
from goodfence.attack.saving import ratings_checksum
from goodfence.data.ratings import Ratings
from goodfence.data.whole import written_whole
from goodfence.experiments.definition import Definition, Number
from goodfence.experiments.reading import DEFAULT, Reading
from goodfence.experiments.seed_runs import AttackSeed, PaperSeed
from goodfence.experiments.tallies import Counts, Integers
from goodfence.experiments.unattacked import Seed
from goodfence.rng import Streams

_NUMBERING = 99
"""The stream that numbers the targets, apart from those of the experiments."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """A figure with its data, its seeds and its number of targets."""

    definition: Definition
    ratings: Ratings
    n_seeds: int
    n_targets: int
    rng: int
    reading: Reading = DEFAULT
    threads: int | None = None
    keep: Path | None = None
    """Where finished points are kept; None keeps none."""

    def __repr__(self) -> str:
        return f"Experiment({self.definition.id}, {self.n_seeds} seeds x {self.n_targets} targets)"

    @property
    def n_points(self) -> int:
        """How many points there are to compute."""
        return len(self.definition.values) * self.n_seeds

    @cached_property
    def checksum(self) -> str:
        """The checksum of the ratings."""
        return ratings_checksum(self.ratings)

    def points(self) -> Iterator[tuple[Number, int, pa.Table, bool]]:
        """Hand out (x, seed number, table of counts, whether it was computed now) of each point."""
        for number in range(self.n_seeds):
            one = self._of_seed(number)
            for x in self.definition.values:
                kept = self._kept(x, number)
                if kept is not None:
                    yield x, number, kept, False
                    continue
                table = _table(*one.counts(x))
                self._write(x, number, table)
                yield x, number, table, True

    def seed(self, number: int) -> Seed:
        """Return the seed of the run with this number: what `rng=` takes to repeat it by hand."""
        return [self.rng, number]

    def _of_seed(self, number: int) -> PaperSeed | AttackSeed:
        kind = AttackSeed if self.definition.protocol == "attack" else PaperSeed
        order = Streams(self.rng).order(self._n_rows, _NUMBERING)
        return kind(
            definition=self.definition,
            ratings=self.ratings,
            reading=self.reading,
            n_targets=self.n_targets,
            seed=self.seed(number),
            numbering=order,
            threads=self.threads,
        )

    @property
    def _n_rows(self) -> int:
        return self.ratings.shape[0 if self.definition.axis == "user" else 1]

    def _kept(self, x: Number, number: int) -> pa.Table | None:
        path = self._path(x, number)
        if path is None or not path.is_file():
            return None
        try:
            return pq.read_table(path)
        except (pa.ArrowException, OSError):  # not whole: it is computed again
            return None

    def _write(self, x: Number, number: int, table: pa.Table) -> None:
        path = self._path(x, number)
        if path is not None:
            with written_whole(path) as file:
                pq.write_table(table, file, compression="zstd")

    def _path(self, x: Number, number: int) -> Path | None:
        """Return where a point is kept: the name tells every setting, so a changed one is another file."""
        if self.keep is None:
            return None
        definition = self.definition
        stated = {
            "version": goodfence.__version__,
            "figure": definition.id,
            "protocol": definition.protocol,
            "axis": definition.axis,
            "series": {name: repr(definition.mechanism(name, x)) for name in definition.series},
            "parameters": definition.parameters(x),
            "most_known": definition.most_known,
            "reading": asdict(self.reading),
            "n_targets": self.n_targets,
            "seed": self.seed(number),
            "ratings": self.checksum,
        }
        text = json.dumps(stated, sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.keep / f"{definition.id}-{definition.x}-{x:g}-seed-{number}-{name}.parquet"


def _table(counts: dict[str, Counts], numbers: Integers) -> pa.Table:
    """Return one line for each series and target."""
    n_targets = len(numbers)
    names = list(next(iter(counts.values())))
    columns: dict[str, object] = {
        "series": np.repeat(list(counts), n_targets),
        "target": np.tile(numbers, len(counts)),
    }
    for name in names:
        columns[name] = np.concatenate([counts[series][name] for series in counts])
    return pa.table(columns)
