"""`PairAttack`: what a recommender of item differences (Slope One) says where two items have one rater in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodfence.arrays import Flags, Floats
from goodfence.attack.attack import RatingAttack, Worlds, seeds
from goodfence.attack.fakes import AccountPlan
from goodfence.attack.refits import RefitWorlds
from goodfence.attack.scoring import Answers
from goodfence.attack.targets import Targets
from goodfence.data.scale import Scale
from goodfence.errors import SettingError
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import checked

_ONE = 0.05
"""A count this near to 1 is one rater."""
_SAME = 1e-9


@register
@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class PairAttack(RatingAttack):
    """One account for each known item rates only that; one more account makes the number of common raters visible.

    An account that rated only item j with r is told r + dev(i, j), the mean difference of those who rated i and j.
    Then a helper rates the known items lowest and all others highest: dev becomes dev' = (n dev + L)/(n + 1), so that
    n = (L - dev')/(dev' - dev). Where n is 1 the one common rater is the target, and what was told is their rating.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> report = gf.papers.PairAttack(known=8).run(films, gf.papers.SlopeOne(), targets=3, rng=7)
    >>> report.estimates["confident_precision"].value
    1.0
    """

    def n_fakes(self, attacked: object, n_users: int) -> int:  # noqa: ARG002 - protocol
        """Return one account for each known item, and the helper."""
        return self.known + 1

    def describe(self, n_fakes: int = 2) -> str:  # noqa: ARG002 - as many as are known, and one
        """As in `Attack`."""
        return "each asks with one known rating; one more rates every item"

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Answers:
        if not isinstance(worlds, RefitWorlds):
            raise SettingError("the pair attack is on a recommender of item differences, as SlopeOne")
        parts = [
            self._of_one(worlds, targets.part(at, at + 1), seed) for at, seed in enumerate(seeds(targets, streams))
        ]
        values, sure = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        unknown = np.full(len(targets), np.nan)
        return Answers(values[0], values[1], unknown, sure[0], sure[1])

    def _of_one(self, worlds: RefitWorlds, target: Targets, seed: int) -> tuple[Floats, Flags]:
        """Return what is concluded about each hidden rating in both worlds, (2, hidden), and which of it is sure."""
        scale, known = worlds.ratings.scale, target.known_columns[0]
        accounts = [(known[at : at + 1], target.known_ratings[0][at : at + 1]) for at in range(len(known))]
        every = np.arange(worlds.ratings.shape[1])
        helper = every, np.where(np.isin(every, known), scale.lowest, scale.highest)
        values, sure = [], []
        plain = AccountPlan(int(target.rows[0]), accounts, len(accounts), target.columns)
        plans = plain, plain._replace(accounts=[*accounts, helper])
        for there in (True, False):
            told = [worlds.told_in([plan], seed, there)[0] for plan in plans]
            found, certain = single_raters(told[0], told[1], target.known_ratings[0], scale)
            values.append(found)
            sure.append(certain)
        return np.stack(values), np.stack(sure)


def single_raters(before: Floats, after: Floats, known: Floats, scale: Scale) -> tuple[Floats, Flags]:
    """Return the rating of the one common rater of each item and a known one, NaN where there is none or are several.

    Parameters
    ----------
    before, after : array of shape (accounts, items)
        What each account was told, without the helper and with it.
    known : array of shape (accounts,)
        What each account rated its item.
    """
    dev, moved = before - known[:, np.newaxis], after - known[:, np.newaxis]
    change = moved - dev
    with np.errstate(divide="ignore", invalid="ignore"):
        raters = (scale.highest - scale.lowest - moved) / change
    one = (np.abs(raters - 1) < _ONE) & (np.abs(change) > _SAME)
    counts = one.sum(axis=0)
    sums = np.where(one, before, 0.0).sum(axis=0)
    found = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return found, counts > 0
