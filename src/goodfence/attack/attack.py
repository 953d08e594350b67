"""What every attack has in common: what the attacker knows, how many fakes he makes, and the two worlds."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from goodfence.attack.neighbour_worlds import NeighbourWorlds
from goodfence.attack.outcomes import Outcomes
from goodfence.attack.refit_worlds import Attackable, RefitWorlds
from goodfence.attack.report import AttackReport
from goodfence.attack.scoring import Tally, item_mean_guesses
from goodfence.attack.targets import RULES, Floats, Targets, Wanted, find_targets
from goodfence.attack.worlds import Worlds, world_seed
from goodfence.data.ratings import Id, Ratings
from goodfence.engines.local.threads import ranges
from goodfence.engines.progress import bar
from goodfence.errors import SettingError, did_you_mean, require
from goodfence.models.neighbour_cf import NeighbourCF, Over
from goodfence.rng import RNG, Streams, seed_of
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.rules import whole
from goodfence.similarity.measure import Similarity

Choose: TypeAlias = "Literal['random', 'rarest', 'most_popular'] | Sequence[Id]"
Answers: TypeAlias = "tuple[Floats, Floats, Floats]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack(ABC):
    """Fakes with exactly the ratings that the attacker knows of the target ask for the others."""

    known: int
    """m: how many of the target's ratings the attacker knows."""
    choose: Choose = "random"
    """Which ones: `random`, the `rarest` or the `most_popular` items she rated (ties by column), or these items."""
    fakes: int | None = None
    """How many fakes are made; None for the k of the attacked mechanism."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", whole(self.known, "known", least=1))
        if self.fakes is not None:
            object.__setattr__(self, "fakes", whole(self.fakes, "fakes", least=1))
        if isinstance(self.choose, str):
            rule = f"one of {', '.join(RULES)}, or items{did_you_mean(self.choose, RULES)}"
            require(self.choose in RULES, "choose", rule, self.choose)
            return
        items = tuple(self.choose)
        object.__setattr__(self, "choose", items)
        different = len(set(items)) == len(items) == self.known
        require(different, "choose", f"known={self.known} different items", f"{len(items)} items")

    def run(
        self,
        ratings: Ratings,
        attacked: Mechanism | Attackable,
        *,
        targets: Wanted = 200,
        rng: RNG = None,
        similarity: Similarity | str = "cosine",
        over: Over = "raters",
        threads: int | None = None,
        progress: bool | None = None,
    ) -> AttackReport:
        """Attack some users, one after the other, each in worlds of her own.

        Parameters
        ----------
        ratings
            Who rated what how.
        attacked
            A selection mechanism, which means `NeighbourCF` with it, user-based; or any recommender. Its instance
            is the recipe: a copy is fitted in each world, with its `rng`, if it has one, set to the target's seed.
        targets
            How many users to draw at random among those with more than `known` ratings, or their ids.
        rng
            A seed for a repeatable experiment; None for fresh randomness. Targets and what is known of them
            depend on it alone, so every mechanism is attacked with the same knowledge.
        similarity, over
            As in `NeighbourCF`; of no effect on a recommender, which has its own.
        threads
            How many threads to use; None for as many as there are cores.
        progress
            Show a bar on standard error; None for a terminal only.
        """
        streams, measure = Streams(rng), Similarity.of(similarity)
        require(over in ("raters", "neighbours"), "over", "'raters' or 'neighbours'", over)
        n_fakes = self.n_fakes(attacked, ratings.shape[0])
        worlds: Worlds
        if is_mechanism(attacked):
            worlds = NeighbourWorlds(
                ratings,
                attacked,
                n_fakes,
                similarity=measure,
                over_raters=over == "raters",
                threads=threads,
            )
        else:
            worlds = RefitWorlds(ratings, attacked, n_fakes)
        found, n_left_out = find_targets(ratings, targets, self.known, self.choose, streams)
        asked_for = self._asked_for(found, streams)
        answers = self._all_answers(worlds, asked_for, ratings, measure, streams, progress)
        with_target, without_target, chosen = answers
        return AttackReport(
            attack=repr(self),
            attacked=_name(attacked),
            n_left_out=n_left_out,
            n_fakes=n_fakes,
            with_target=Tally.of(with_target, asked_for, ratings),
            without_target=Tally.of(without_target, asked_for, ratings),
            guessed=Tally.of(item_mean_guesses(asked_for, ratings), asked_for, ratings),
            chosen=chosen,
            rows=found.rows,
            ratings=ratings,
            outcomes=Outcomes.of(with_target, without_target, asked_for, ratings),
            settings={
                "settings": _settings(self),
                "similarity": dataclasses.asdict(measure),
                "over": over,
                "seed": seed_of(rng),
            },
        )

    def n_fakes(self, attacked: object, n_users: int) -> int:
        """Return how many fakes attack each target of `n_users` users."""
        mechanism = mechanism_in(attacked)
        if mechanism is not None:
            # Fakes make the lists longer, but what cannot serve the real data is never attacked.
            mechanism.reach(n_users - 1)
        if self.fakes is not None:
            return self.fakes
        if mechanism is None:
            raise SettingError("fakes must be given: the attacked recommender has no k to go by")
        return mechanism.k

    def _asked_for(self, targets: Targets, streams: Streams) -> Targets:  # noqa: ARG002 - for others
        """Return the targets with the hidden ratings that are asked for: all."""
        return targets

    def _all_answers(
        self,
        worlds: Worlds,
        targets: Targets,
        ratings: Ratings,
        similarity: Similarity,
        streams: Streams,
        progress: bool | None,
    ) -> Answers:
        """Return the attacker's answers in both worlds, (hidden,), and how near the target was, (targets,)."""
        parts = []
        blocks = ranges(len(targets), worlds.at_once(self._n_askers(targets, worlds)))
        with bar("attack", len(blocks), show=progress) as advance:
            for first, last in blocks:
                block = targets.part(first, last)
                parts.append(self._answers(worlds, block, ratings, similarity, streams))
                advance(1)
        told, counterfactual, chosen = (np.concatenate(part) for part in zip(*parts, strict=True))
        return told, counterfactual, chosen

    def _n_askers(self, targets: Targets, worlds: Worlds) -> int:  # noqa: ARG002 - for others
        """Return how many fakes ask about one target."""
        return 1

    @abstractmethod
    def _answers(
        self,
        worlds: Worlds,
        targets: Targets,
        ratings: Ratings,
        similarity: Similarity,
        streams: Streams,
    ) -> Answers:
        """Return what this attacker makes of what a block of targets' fakes are told."""


def seeds(targets: Targets, streams: Streams, turns: npt.ArrayLike = 0) -> list[int]:
    """Return the seed of each target's worlds; `turns` counts the fits that she has seen, one for each or for all."""
    each = np.broadcast_to(turns, targets.rows.shape).tolist()
    pairs = zip(targets.rows.tolist(), each, strict=True)
    return [world_seed(streams, row, turn) for row, turn in pairs]


def is_mechanism(attacked: object) -> TypeGuard[Mechanism]:
    """Return whether this is a selection mechanism rather than a recommender."""
    return callable(getattr(attacked, "pools", None)) and not hasattr(attacked, "fit")


def mechanism_in(attacked: object) -> Mechanism | None:
    """Return the mechanism that chooses among users, if there is one."""
    if isinstance(attacked, NeighbourCF):
        return attacked.mechanism if attacked.axis == "user" else None
    return attacked if is_mechanism(attacked) else None


def _name(attacked: object) -> str:
    """Return a name without data: settings of a mechanism, and no more than the kind of a stranger."""
    own = is_mechanism(attacked) or isinstance(attacked, NeighbourCF)
    return repr(attacked) if own else type(attacked).__name__


def _settings(attack: Attack) -> dict[str, Any]:
    stated = {"name": type(attack).__name__, **dataclasses.asdict(attack)}
    if isinstance(attack.choose, tuple):
        stated["choose"] = [
            item.item() if isinstance(item, np.generic) else item for item in attack.choose
        ]
    return stated
