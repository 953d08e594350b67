"""The ratings of the figures: those of the paper where they are at hand, the bundled ones where not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

from goodfence.data.catalogue import load
from goodfence.data.ratings import Ratings
from goodfence.errors import DownloadProblem, GoodfenceWarning
from goodfence.experiments.definition import BUNDLED, Definition, definition


@dataclass(frozen=True, eq=False, repr=False)
class Sources:
    """Loads each set of ratings once."""

    data: str | None = None
    """Take these ratings for every figure: a catalogue name, or a path; None for those of the paper."""
    _loaded: dict[str, Ratings | None] = field(default_factory=dict)

    def figure(self, name: str, *, quick: bool) -> tuple[Definition, Ratings]:
        """Return a figure with the points that its ratings can hold, and the ratings."""
        if self.data == BUNDLED:
            wanted = definition(name, quick=quick, bundled=True)
        else:
            wanted = definition(name, quick=quick, data=self.data)
        ratings = self.ratings(wanted.data)
        if ratings is None:
            wanted = definition(name, quick=quick, bundled=True)
            ratings = self.ratings(BUNDLED)
        assert ratings is not None, "the bundled ratings are always there"  # noqa: S101 - types
        return wanted.fitted(ratings), ratings

    def ratings(self, name: str) -> Ratings | None:
        """Return the ratings of this name; None, with a warning, where they cannot be had."""
        if name not in self._loaded:
            self._loaded[name] = _load(name, asked_for=name == self.data)
        return self._loaded[name]


def _load(name: str, *, asked_for: bool) -> Ratings | None:
    try:
        return load(name)
    except DownloadProblem as problem:
        if asked_for:
            raise
        warnings.warn(
            f"{problem}; until then the figures that need it are drawn from the bundled ratings",
            GoodfenceWarning,
            stacklevel=2,
        )
        return None
