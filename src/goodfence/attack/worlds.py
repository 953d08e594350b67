"""The two worlds of an attack: the data with the target and the fakes, and the same without the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from goodfence.attack.targets import WORLDS, Floats, Targets
from goodfence.rng import RNG, Streams


@dataclass(frozen=True, eq=False)
class Asked:
    """What the fakes were told, in both worlds."""

    with_target: Floats
    """(askers, hidden): the answers, NaN where there was none."""
    without_target: Floats
    """(askers, hidden): the answers in the world without the target."""
    chosen: Floats
    """(targets,): the share of the asking fakes that had the target among their neighbours; NaN if not known."""

    def __repr__(self) -> str:
        return f"Asked({self.with_target.shape[0]} askers, {self.with_target.shape[1]:,} hidden ratings)"


class Worlds(Protocol):
    """Builds the worlds of each target and asks in them."""

    @property
    def n_fakes(self) -> int:
        """How many fakes attack each target."""
        ...

    def at_once(self, n_askers: int) -> int:
        """Return how many targets are best asked about at once."""
        ...

    def ask(
        self,
        targets: Targets,
        seeds: Sequence[int],
        n_askers: int,
        helper_rating: float | None = None,
    ) -> Asked:
        """Return what the first `n_askers` fakes are told about the hidden items of each target.

        Parameters
        ----------
        seeds
            One for each target; both of her worlds use it.
        helper_rating
            Every fake but the first also gives this rating to the one hidden item of its target.
        """
        ...


def world_seed(rng: RNG | Streams, row: int, turn: int = 0) -> int:
    """Return the seed of the recommender in both worlds of the target in `row`, in round `turn`.

    Each target has her own: only then are targets independent of each other, as the intervals assume.

    Examples
    --------
    >>> world_seed(7, row=3) == world_seed(7, row=3), world_seed(7, row=3) == world_seed(7, row=4)
    (True, False)
    """
    streams = rng if isinstance(rng, Streams) else Streams(rng)
    return streams.key(WORLDS, row, turn)
