"""Who is attacked, what the attacker knows of them, and what is hidden from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats, Integers
from goodfence.data.ratings import Id, Ratings
from goodfence.data.splits import sample_targets
from goodfence.errors import DataError, require
from goodfence.rng import Streams
from goodfence.settings import is_listed

Wanted: TypeAlias = "int | Sequence[Id] | npt.NDArray[Any]"

RANDOM, RAREST, POPULAR = "random", "rarest", "most_popular"
RULES = (RANDOM, RAREST, POPULAR)

# The streams below one seed: the draws of an attack never share a number.
TARGETS, KNOWLEDGE, WORLDS, SAMPLES, HALVES = range(5)


@dataclass(frozen=True, eq=False)
class Targets:
    """Attacked users, in rows and columns of the ratings; the hidden ratings of all of them in one array."""

    rows: Integers
    """(targets,): their rows."""
    known_columns: Integers
    """(targets, m): what the attacker knows, ascending."""
    known_ratings: Floats
    """(targets, m): how they rated it."""
    starts: Integers
    """(targets + 1,): where the hidden ratings of each one begin."""
    columns: Integers
    """(hidden,): what they rated and the attacker does not know, ascending for each."""
    ratings: Floats
    """(hidden,): how they rated it."""

    def __repr__(self) -> str:
        return f"Targets({len(self):,} users, {len(self.columns):,} hidden ratings)"

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def owners(self) -> Integers:
        """(hidden,): whose each hidden rating is, as a position among the targets."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def part(self, first: int, last: int) -> Targets:
        """Return the targets from `first` to before `last`."""
        start, stop = self.starts[first], self.starts[last]
        return Targets(
            self.rows[first:last],
            self.known_columns[first:last],
            self.known_ratings[first:last],
            self.starts[first : last + 1] - start,
            self.columns[start:stop],
            self.ratings[start:stop],
        )

    def one_by_one(self) -> Targets:
        """Return one entry for each hidden rating: as many targets, each with one thing to find out."""
        owners = self.owners
        return Targets(
            self.rows[owners],
            self.known_columns[owners],
            self.known_ratings[owners],
            np.arange(len(owners) + 1),
            self.columns,
            self.ratings,
        )

    def sampled(self, n: int, streams: Streams) -> Targets:
        """Return the same targets with at most `n` of the hidden ratings of each, by chance."""
        kept = []
        for position, row in enumerate(self.rows.tolist()):
            start, stop = self.starts[position : position + 2]
            order = streams.order(int(stop - start), SAMPLES, row)[:n]
            kept.append(start + np.sort(order))
        counts = [len(part) for part in kept]
        inside = np.concatenate(kept)
        starts = np.concatenate([[0], np.cumsum(counts)])
        known = self.known_columns, self.known_ratings
        return Targets(self.rows, *known, starts, self.columns[inside], self.ratings[inside])


def find_targets(
    ratings: Ratings,
    wanted: Wanted,
    known: int,
    choose: str | Sequence[Id],
    streams: Streams,
) -> tuple[Targets, int]:
    """Return the targets with what is known of each, and how many users were left out.

    A number draws that many of the users who can be attacked: those with more than `known` ratings and, where
    the known items are named, with all of these among them. Named users must all be such.
    """
    columns = None if isinstance(choose, str) else ratings.columns(choose)
    eligible = _eligible(ratings, known, columns)
    if isinstance(wanted, int | np.integer) or not is_listed(wanted):
        n = wanted if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool) else 0
        require(n >= 1, "targets", "a positive integer, or ids", wanted)
        rows = _drawn(ratings, int(n), eligible, streams)
    else:
        rows = ratings.rows(wanted)
        _check_named(rows, eligible, known, columns is not None)
    return _knowledge(ratings, rows, known, choose, columns, streams), int((~eligible).sum())


def _eligible(ratings: Ratings, known: int, columns: Integers | None) -> npt.NDArray[np.bool_]:
    eligible: npt.NDArray[np.bool_] = np.diff(ratings.csr.indptr) > known
    if columns is None:
        return eligible
    csr = ratings.csr
    named = np.isin(csr.indices, columns)
    owners = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    n_named = np.bincount(owners[named], minlength=csr.shape[0])
    return np.asarray(eligible & (n_named == len(columns)))


def _drawn(ratings: Ratings, n: int, eligible: npt.NDArray[np.bool_], streams: Streams) -> Integers:
    if not eligible.any():
        raise DataError("no user can be attacked: nobody has more ratings than the attacker knows")
    order = ratings.rows(sample_targets(ratings, ratings.shape[0], rng=streams.at(TARGETS)))
    return order[eligible[order]][:n]


def _check_named(
    rows: Integers, eligible: npt.NDArray[np.bool_], known: int, named_items: bool
) -> None:
    if len(rows) == 0 or len(np.unique(rows)) != len(rows):
        raise DataError("targets must be different users, at least one")
    if not eligible[rows].all():
        also = ", the items named in choose among them" if named_items else ""
        raise DataError(f"every target must have more than known={known} ratings{also}")


def _knowledge(
    ratings: Ratings,
    rows: Integers,
    known: int,
    choose: str | Sequence[Id],
    columns: Integers | None,
    streams: Streams,
) -> Targets:
    csr = ratings.csr
    counts = np.bincount(csr.indices, minlength=csr.shape[1])
    lengths = csr.indptr[rows + 1] - csr.indptr[rows]
    starts = np.concatenate([[0], np.cumsum(lengths - known)]).astype(np.int64)
    known_cells = np.empty((len(rows), known), dtype=np.int64)
    hidden_cells = np.empty(starts[-1], dtype=np.int64)
    for position, row in enumerate(rows.tolist()):
        first, last = int(csr.indptr[row]), int(csr.indptr[row + 1])
        rated = csr.indices[first:last]
        if columns is not None:
            places = np.searchsorted(rated, columns)
        elif choose == RANDOM:
            places = streams.order(last - first, KNOWLEDGE, row)[:known]
        else:
            popularity = counts[rated] if choose == RAREST else -counts[rated]
            places = np.argsort(popularity, kind="stable")[:known]  # ties by column
        inside = np.zeros(last - first, dtype=np.bool_)
        inside[places] = True
        known_cells[position] = first + np.flatnonzero(inside)
        hidden_cells[starts[position] : starts[position + 1]] = first + np.flatnonzero(~inside)
    columns_of = csr.indices.astype(np.int64)
    return Targets(
        rows,
        columns_of[known_cells],
        csr.data[known_cells],
        starts,
        columns_of[hidden_cells],
        csr.data[hidden_cells],
    )
