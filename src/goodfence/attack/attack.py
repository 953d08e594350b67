"""What every attack has in common: what the attacker knows, how many fake profiles, and the two worlds."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from goodfence.attack import DEFAULT_TARGETS
from goodfence.attack.refits import RefitWorlds
from goodfence.attack.report import AttackReport, LeakReport
from goodfence.attack.scoring import Answers, Tally, informed
from goodfence.attack.targets import RULES, WORLDS, Targets, Wanted, find_targets
from goodfence.attack.worlds import NeighbourWorlds
from goodfence.data.columns import Feedback
from goodfence.data.ratings import Id, Ratings
from goodfence.errors import SettingError, require
from goodfence.models.method import as_recommender, traits_of
from goodfence.models.recommender import Recommender
from goodfence.neighbours.similarity import Similarity
from goodfence.parallel import bar, run
from goodfence.rng import RNG, Streams, seed_of
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import Count, at_least, checked

Worlds: TypeAlias = NeighbourWorlds | RefitWorlds
"""How the two worlds of each target are computed; `ask` asks in them."""
Choose: TypeAlias = Literal["random", "rarest", "most_popular"] | Sequence[Id]

MOST_FAKES = 10**6
"""More fake profiles than any service would let somebody open."""
_PROFILE, _QUESTIONS = 6, 20
_SEED = 0
_OTHER = {
    "implicit": "lists learnt from events are attacked by ListAttack",
    "explicit": "predicted ratings are attacked by KNNAttack; ratings.likes(at) makes events of ratings",
}
"""What to do about data of each kind that another attack is for."""


class Subject:
    """A recommender on some ratings; its worlds remember what was asked in them, so attackers can share answers.

    Parameters as in `Attack.run`.
    """

    def __init__(self, ratings: Ratings, attacked: object, *, threads: int | None = None) -> None:
        self.ratings = ratings
        self.recommender: Any = as_recommender(attacked, threads=threads)
        self.threads = getattr(self.recommender, "threads", None) if threads is None else threads
        self.traits = traits_of(self.recommender)
        self.similarity = self.traits.similarity or Similarity.of("cosine")
        self._worlds: dict[int, Worlds] = {}
        self.memory: dict[Any, Any] = {}
        """What was asked, for all attackers."""

    def __repr__(self) -> str:
        return f"Subject({self.traits.title})"

    def worlds(self, n_fakes: int) -> Worlds:
        """Return the worlds in which `n_fakes` fake profiles ask."""
        given = self.ratings, self.recommender, n_fakes
        if n_fakes not in self._worlds:
            self._worlds[n_fakes] = (
                RefitWorlds(*given, similarity=self.similarity, memory=self.memory)
                if self.traits.needs_refits
                else NeighbourWorlds(*given, threads=self.threads)
            )
        return self._worlds[n_fakes]

    @cached_property
    def answers_differ(self) -> bool:
        """Whether several fakes are told more than one: equal profiles, or equal questions, get different answers."""
        if not self.traits.answers_alike or self.traits.fresh_answers:
            return True
        if not self.traits.needs_refits or self.traits.fresh_answers is False:
            return False
        return self.probed[0]

    @cached_property
    def centred(self) -> bool:
        """Whether answers move with the asker's mean: profiles that differ by a constant get answers that do."""
        return self.traits.needs_refits and self.probed[1]

    @cached_property
    def probed(self) -> tuple[bool, bool]:
        """Whether equal profiles, or equal questions, get other answers; and whether those of a moved profile move.

        One fit answers two equal profiles, of which one asks twice, and one that is moved by half the scale.
        """
        scale, csr = self.ratings.scale, self.ratings.csr
        popular = np.argsort(-np.bincount(csr.indices, minlength=csr.shape[1]), kind="stable")
        rated, asked = np.sort(popular[:_PROFILE]), popular[_PROFILE : _PROFILE + _QUESTIONS]
        if len(asked) == 0:
            return False, False
        half = float(scale.round(np.array([(scale.lowest + scale.highest) / 2]))[0]) - scale.lowest
        low = scale.lowest + np.where(np.arange(len(rated)) % 2, half, 0.0)
        up = scale.highest - float(low.max())
        worlds = RefitWorlds(self.ratings, self.recommender, 1, similarity=self.similarity, memory=self.memory)
        told = worlds.answers_to([(rated, low), (rated, low), (rated, low + up)], asked, _SEED)
        differ = not all(np.allclose(told[0], told[number], rtol=0, atol=1e-9, equal_nan=True) for number in (1, 2))
        moved = told[3] - told[0]
        if up == 0 or np.isnan(moved).all():
            return differ, False
        return differ, bool(np.nanmedian(moved) > up / 2)


class NamedItems(tuple[Id, ...]):
    """Items that an attacker names: a result that is handed on must not, so only their number is shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{len(self)} named items"


def named_items(value: Any, name: str) -> Any:
    """Return a rule as it is, and a sequence of items as `NamedItems`."""
    if isinstance(value, str):
        return value
    holds = all(isinstance(one, str | Integral) for one in value)
    require(holds, name, f"one of {', '.join(RULES)}, or items", type(value))
    return NamedItems(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack(ABC):
    """Fake profiles with exactly what the attacker knows of the target ask for the rest.

    `run_on` is the walk of every attack: draw the targets, ask in both worlds of each, and judge what is concluded. A
    new attacker derives from `RatingAttack` or `ListAttack` and overrides `_answers`: what the fakes ask in `worlds`,
    and what is concluded. `usual_attackers` says where it is tried; a recommender can name it in its traits.
    """

    feedback: ClassVar[Feedback] = "explicit"
    """Whether what is attacked learns from ratings or from events."""

    known: Count
    """m: how many of the target's ratings the attacker knows."""
    choose: Annotated[Choose, named_items] = "random"
    """Which: `random`, the `rarest` or the `most_popular` items the target rated (ties by column), or these items."""
    fakes: Annotated[int, at_least(1, most=MOST_FAKES)] | None = None
    """How many fake profiles are made; None for the k of the attacked mechanism."""

    def __post_init__(self) -> None:
        items = self.choose
        if not isinstance(items, str):
            different = len(set(items)) == len(items) == self.known
            got = f"{len(items)} items"
            require(different, "choose", f"known={self.known} different items", got)

    @abstractmethod
    def describe(self, n_fakes: int = 2) -> str:
        """Return in words what the fake accounts do, without naming an item."""

    @abstractmethod
    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Any:
        """Return what is concluded from what the fakes of a block of targets are told, as a named tuple."""

    @abstractmethod
    def judged(self, told: Any, targets: Targets, ratings: Ratings, streams: Streams) -> LeakReport:
        """Return what these conclusions got: a report that does not say yet what was attacked."""

    @checked
    def run(
        self,
        ratings: Ratings,
        attacked: Mechanism | Recommender,
        *,
        targets: Wanted = DEFAULT_TARGETS,
        rng: RNG = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> Any:
        """Attack some users, one after the other, each in two worlds: with the target's data and without.

        Where candidate lists decide what fake profiles are told (a user-based `NeighbourCF` without fallback), nothing
        is fitted. Any other recommender is fitted in each world.

        Parameters
        ----------
        ratings : Ratings
            The user-item rating matrix; for `ListAttack`, events.
        attacked : Mechanism or recommender
            A selection mechanism, which means `NeighbourCF` with it, user-based; or any recommender, which need not be
            fitted: copies of it are, each with its `rng`, if it has one, set to the target's seed. Private models are
            never given a seed.
        targets : int or sequence of ids, default 200
            How many users to draw at random among those with more than `known` ratings, or their ids.
        rng : RNG, optional
            A seed for a repeatable experiment; None for fresh randomness. Targets and what is known of them
            depend on it alone, so every mechanism is attacked with the same knowledge.
        threads : int, optional
            How many threads to use; None for as many as there are cores.
        progress : bool, optional
            Show a bar on standard error; None for a terminal only.

        Returns
        -------
        AttackReport or ListAttackReport
        """
        self.require_feedback(ratings)
        subject = Subject(ratings, attacked, threads=threads)
        return self.run_on(subject, targets=targets, rng=rng, progress=progress)

    def run_on(self, subject: Subject, *, targets: Wanted, rng: RNG, progress: bool | None = None) -> LeakReport:
        """Attack as `run` does; attackers of the same `Subject` share what it was asked."""
        self.require_feedback(subject.ratings)
        streams, ratings = Streams(rng), subject.ratings
        n_fakes = self.n_fakes(subject.recommender, ratings.shape[0])
        worlds = subject.worlds(n_fakes)
        found, n_left_out = find_targets(ratings, targets, self.known, self.choose, streams)
        asked_for = self._asked_for(found, streams)
        told = self._fitting(subject).answers(worlds, asked_for, streams, progress=progress)
        report = self.reported(told, asked_for, subject, streams)
        return dataclasses.replace(report, n_left_out=n_left_out, settings={**report.settings, "seed": seed_of(rng)})

    def reported(self, told: Any, targets: Targets, subject: Subject, streams: Streams) -> LeakReport:
        """Return what these conclusions got from a recommender."""
        ratings = subject.ratings
        judged = self.judged(told, targets, ratings, streams)
        few: dict[str, Any] = {}
        if isinstance(judged, LeakReport):
            few["n_few"] = int((targets.n_known < self.known).sum())
        return dataclasses.replace(
            judged,
            attacked=subject.traits.title,
            n_fakes=self.n_fakes(subject.recommender, ratings.shape[0]),
            **few,
            settings={
                "settings": self.stated(),
                "similarity": dataclasses.asdict(subject.similarity),
                "over": getattr(subject.recommender, "over", "raters"),
                "liked_from": ratings.liked_from,
                "seed": None,
            },
        )

    def answers(self, worlds: Worlds, targets: Targets, streams: Streams, *, progress: bool | None = None) -> Any:
        """Return what this attacker concludes about all targets, block by block."""
        blocks = targets.blocks(worlds.at_once(self._n_askers(worlds)))
        parts: list[Any] = [None] * len(blocks)

        def work(number: int) -> None:
            parts[number] = self._answers(worlds, targets.part(*blocks[number]), streams)

        with bar("attack", len(blocks), show=progress) as advance:
            run(work, range(len(blocks)), threads=worlds.asking, advance=advance)
        return type(parts[0])(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _fitting(self, subject: Subject) -> Self:  # noqa: ARG002 - for others
        """Return this attack with what it leaves open decided by what the recommender shows of itself."""
        return self

    def _asked_for(self, targets: Targets, streams: Streams) -> Targets:  # noqa: ARG002 - for others
        """Return the targets with the hidden ratings that are asked for: all."""
        return targets

    def _n_askers(self, worlds: Worlds) -> int:
        """Return how many fakes ask about one target."""
        return worlds.n_fakes if getattr(self, "ask", "one") == "all" else 1

    def require_feedback(self, ratings: Ratings) -> None:
        """Refuse data of the other kind, before anything is computed."""
        if ratings.feedback != self.feedback:
            kinds = {"explicit": "ratings", "implicit": "events"}
            raise SettingError(
                f"{type(self).__name__} must be given {kinds[self.feedback]}, got {kinds[ratings.feedback]}: "
                f"{_OTHER[ratings.feedback]}"
            )

    def n_fakes(self, attacked: object, n_users: int) -> int:
        """Return how many fake profiles attack each target of `n_users` users."""
        traits = traits_of(attacked)
        if traits.mechanism is not None:
            # Fakes make the lists longer, but what cannot serve the real data is never attacked.
            traits.mechanism.reach(n_users - 1)
        n_fakes = self.fakes or traits.n_neighbours
        if not n_fakes:
            raise SettingError("fakes must be given: the attacked recommender has no k to go by")
        return n_fakes

    def stated(self) -> dict[str, Any]:
        """Return the name and the settings as plain values."""
        stated = {"name": type(self).__name__, **dataclasses.asdict(self)}
        if isinstance(self.choose, tuple):
            stated["choose"] = [item.item() if isinstance(item, np.generic) else item for item in self.choose]
        return stated


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingAttack(Attack):
    """An attack on predicted ratings: fakes ask for the hidden ones, and `_answers` returns `Answers`."""

    def judged(self, told: Answers, targets: Targets, ratings: Ratings, streams: Streams) -> AttackReport:
        """As in `Attack`."""
        counted, outcomes = informed(told, targets, ratings, streams)
        raw = Tally.of(told.with_target, targets, ratings)
        return AttackReport(
            attack=repr(self),
            hidden=raw.hidden,
            chosen=told.chosen,
            rows=targets.rows,
            ratings=ratings,
            with_target=raw,
            without_target=Tally.of(told.without_target, targets, ratings),
            informed=counted,
            outcomes=outcomes,
            attacker=self,
        )


def seeds(targets: Targets, streams: Streams, turns: npt.ArrayLike = 0) -> list[int]:
    """Return the seed of each target's worlds; `turns` counts the fits before, one for each target or for all."""
    found: list[int] = streams.keys(WORLDS, targets.rows, turns).tolist()
    return found
