"""Fakes that rate the item in question themselves, and an attacker who takes their share out of the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodfence.attack.attack import Answers, Attack, seeds
from goodfence.attack.fakes import fake_profiles, fake_similarities
from goodfence.attack.targets import Floats, Targets
from goodfence.attack.worlds import Asked, Worlds
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.engines.local.threads import ranges
from goodfence.errors import SettingError, require
from goodfence.rng import Streams
from goodfence.selection.rules import whole
from goodfence.similarity.measure import Similarity
from goodfence.similarity.profiles import Profiles

_NO_SHARE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveAttack(Attack):
    """All fakes but the one who asks also rate the hidden item, so that any rule of minimum support is met.

    For each hidden item the attacker asks twice, after the helpers rated it with the lowest value of the scale
    and after they rated it with the next. He knows how similar his helpers are to the one who asks (together H)
    and assumes that all of them and the target are the neighbours. The answers a and a' to ratings v and v' are
    two equations, `a (H + s) = H v + s r` and `a' (H' + s) = H' v' + s r`, for the target's similarity s and her
    rating r. What he solves for is right whenever a fixed share of the helpers is chosen both times, and the other
    neighbours who rated the item agree with the target.
    """

    items: int | None = 10
    """How many hidden items of each target are asked for, drawn by chance; None for all. Each needs its own worlds."""

    def __post_init__(self) -> None:
        Attack.__post_init__(self)
        enough = self.fakes is None or self.fakes >= 2
        require(enough, "fakes", "at least 2: one asks and the others help", self.fakes)
        if self.items is not None:
            object.__setattr__(self, "items", whole(self.items, "items", least=1))

    def _asked_for(self, targets: Targets, streams: Streams) -> Targets:
        return targets if self.items is None else targets.sampled(self.items, streams)

    def _answers(
        self,
        worlds: Worlds,
        targets: Targets,
        ratings: Ratings,
        similarity: Similarity,
        streams: Streams,
    ) -> Answers:
        if worlds.n_fakes < 2:
            raise SettingError("fakes must be at least 2: one asks and the others help")
        questions = targets.one_by_one()
        told, shares = [], []
        for turn, rating in enumerate(helper_ratings(ratings.scale)):
            # What the fakes rate changes with every question, so each needs a fit, and a fit draws again.
            fresh = seeds(questions, streams, 2 * questions.columns + turn)
            told.append(_ask(worlds, questions, fresh, rating))
            profiles = fake_profiles(Profiles.of(ratings.csr), questions, rating)
            shares.append((worlds.n_fakes - 1) * fake_similarities(*profiles, similarity))
        first, second = told
        with_target = solve(ratings.scale, shares, first.with_target[0], second.with_target[0])
        without = solve(ratings.scale, shares, first.without_target[0], second.without_target[0])
        near = np.bincount(targets.owners, weights=(first.chosen + second.chosen) / 2)
        return with_target, without, near / np.diff(targets.starts)


def _ask(worlds: Worlds, questions: Targets, fresh: list[int], rating: float) -> Asked:
    """Ask every question, as many at once as is best."""
    parts = [
        worlds.ask(questions.part(first, last), fresh[first:last], 1, rating)
        for first, last in ranges(len(questions), worlds.at_once(1))
    ]
    return Asked(
        np.concatenate([part.with_target for part in parts], axis=1),
        np.concatenate([part.without_target for part in parts], axis=1),
        np.concatenate([part.chosen for part in parts]),
    )


def helper_ratings(scale: Scale) -> tuple[float, float]:
    """Return the two ratings that helpers give: the lowest of the scale, and the next.

    Low ratings move a helper least away from the one who asks.

    Examples
    --------
    >>> helper_ratings(Scale(1, 5))
    (1.0, 2.0)
    """
    require(scale.lowest < scale.highest, "scale", "of at least two values", str(scale))
    step = (scale.highest - scale.lowest) / 4 if scale.step is None else scale.step
    return float(scale.lowest), float(scale.lowest + step)


def solve(scale: Scale, shares: list[Floats], first: Floats, second: Floats) -> Floats:
    """Return the target's rating from two answers; NaN where they hold nothing but the helpers' own.

    Parameters
    ----------
    scale
        What can be rated; it says how the helpers rated.
    shares
        The sum of the helpers' similarities, H and H'.
    first, second
        The answers, a and a'.

    Examples
    --------
    >>> shares = [np.array([2.0]), np.array([2.0])]  # two helpers, and a target of similarity 1 who rated 5
    >>> solve(Scale(1, 5), shares, np.array([7 / 3]), np.array([3.0])).round(9)
    array([5.])
    """
    low, high = helper_ratings(scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        similarity = (shares[0] * (low - first) - shares[1] * (high - second)) / (first - second)
        rating = first + shares[0] * (first - low) / similarity
    inside = np.clip(rating, scale.lowest, scale.highest)  # the attacker knows what can be rated
    return np.where(np.abs(similarity) > _NO_SHARE, inside, np.nan)
