"""How `PrivateCF` learns from an update: item sums, item residuals, and the covariance once it is worth its cost.

Every stage is a running total over batches, and a record pays for its own batch only. Which stages a batch enters is
decided from noisy totals. The residuals of earlier batches were taken from the item biases known then, so their total
is read from the mean of these biases.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.models.private import estimation, history, releases
from goodfence.models.private.item_model import ItemBiases
from goodfence.models.private.releases import COVARIANCE_NAME, Noisy
from goodfence.privacy.fixed_point import Clamps, UserProfiles, integer_sensitivity
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.updates import Updater

USERS_NAME = "item residuals of users"
AHEAD = 8.0
"""The stages of a batch are chosen for this many times as much data: what a batch leaves out is not made up for."""
RESIDUAL_SHARES = {"rating": {releases.RESIDUALS_NAME: 0.1, "more item residuals": 0.7}, "user": {USERS_NAME: 0.5}}
"""Parts of the squared mu, by unit. Of the unit rating the second takes the place of the covariance until that is worth
its cost; of the unit user there are residuals where there is no covariance."""
COVARIANCE_SHARE, OVERLAP_SHARE = 0.7, 0.01
SUMS_SHARE = {("rating", False): 0.19, ("rating", True): 0.19, ("user", False): 0.5, ("user", True): 0.29}
"""What the item sums take, by unit and whether there may be a covariance."""


def ahead(items: ItemBiases) -> ItemBiases:
    """Return what would be known of the items with `AHEAD` times as much data."""
    return replace(items, counts=AHEAD * items.counts, variances=items.variances / AHEAD)


def grown(old: Integers, wanted: Integers) -> Integers:
    """Return a list of items with the wanted ones that it lacks at its end: pairs stay where they are."""
    return np.concatenate([old, wanted[~np.isin(wanted, old)]])


def residual_names(unit: Unit, covers: bool) -> list[str]:
    """Return which sums of residuals a batch enters: fewer where it enters a covariance."""
    names = [*RESIDUAL_SHARES[unit]]
    return names if not covers else names[: unit == "rating"]


def residual_sums(profiles: UserProfiles, name: str, item_bias: Floats, clamps: Clamps, mu: float) -> Integers:
    """Return the integers of one sum of residuals; `mu` is that of the whole batch."""
    if name == USERS_NAME:
        return releases.user_residual_totals(profiles, item_bias, integer_sensitivity(_cost(name, mu)))
    return releases.residual_totals(profiles, item_bias, clamps, _cost(name, mu))[0]


def _cost(name: str, mu: float) -> float:
    shares = RESIDUAL_SHARES["user" if name == USERS_NAME else "rating"]
    return mu * math.sqrt(shares[name])


def release_update_residuals(
    profiles: UserProfiles, items: ItemBiases, clamps: Clamps, mu: float, names: list[str], updater: Updater
) -> ItemBiases:
    """Publish these sums of item residuals, and return the biases after all that were."""
    known = updater.known
    known.setdefault("counted", np.array([float(items.counts.sum())]))
    known.setdefault("biases", _sharpened(profiles, items, clamps, mu, updater, updater.now).biases)
    for name in names:
        if name == USERS_NAME:
            totals = profiles.total(residual_sums, name, known["biases"], clamps, mu)
            updater.publish(name, totals, integer_sensitivity(_cost(name, mu)))
        else:
            releases.release_residuals(profiles, known["biases"], clamps, _cost(name, mu), updater, name)
    return _sharpened(profiles, items, clamps, mu, updater)


def _sharpened(
    profiles: UserProfiles, items: ItemBiases, clamps: Clamps, mu: float, updater: Updater, until: int | None = None
) -> ItemBiases:
    """Return the biases after the totals of all residuals that were published so far, or before an update."""
    every = [name for shares in RESIDUAL_SHARES.values() for name in shares if updater.covered(name, until)]
    for name in every:
        of_users, cost = name == USERS_NAME, _cost(name, mu)
        grid = integer_sensitivity(cost) if of_users else releases.residual_grid(clamps, profiles.most_items, cost)
        around, part = _taken_from(name, len(items.counts), updater, until)
        total = updater.total(name, until)
        values = np.zeros(len(items.counts))
        values[: len(total)] = total / grid
        seen = replace(items, counts=items.counts * part)
        wide = None if of_users else clamps.wide
        after = estimation.update_biases(Noisy(values, updater.sd / grid), seen, wide, around)
        items = replace(after, counts=items.counts)
    return items


def _taken_from(name: str, n_items: int, updater: Updater, until: int | None) -> tuple[Floats, float]:
    """Return the mean of the biases from which a series took residuals, and the part of all ratings it covers."""
    fade, begun, every = updater.terms.lasting.fade, updater.series[name].begun, [*updater.past, updater.known]
    totals = np.array([known["counted"][0] for known in every])
    before = np.concatenate([[0.0], totals[:-1]])
    sizes = np.maximum(totals - fade * before, 1e-3 * totals + 1e-12) * fade ** np.arange(len(every))[::-1]
    covered = slice(begun, begun + updater.covered(name, until))
    part = sizes[covered] / max(float(sizes[covered].sum()), 1e-12)
    around = np.zeros(n_items)
    for share, known in zip(part, every[covered], strict=True):
        around[: len(known["biases"])] += share * known["biases"]
    return around, float(sizes[covered].sum() / sizes.sum())


def release_update_pairs(
    profiles: UserProfiles, items: ItemBiases, clamps: Clamps, unit: Unit, mu: float, n_listed: int, updater: Updater
) -> Noisy:
    """Publish the covariance of a list of items that only grows, and return its running total."""
    known, past = updater.known, updater.past[-1] if updater.past else {}
    wanted = releases.most_rated(items.counts, n_listed)
    every = grown(past.get("listed", np.empty(0, dtype=np.int64)), wanted)
    listed = known.setdefault("listed", every[: updater.listed])
    biases = known.setdefault("pair biases", items.biases)
    cost = mu * math.sqrt(COVARIANCE_SHARE)
    if profiles.arrival is not None:
        return history.release_history_pairs(profiles, biases, listed, cost, updater)
    return releases.release_covariance(profiles, biases, listed, clamps, unit, cost, updater)


def covered_overlap(overlap: float, updater: Updater) -> float:
    """Return the overlap of the batches whose pairs were published."""
    begun = updater.series[COVARIANCE_NAME].begun
    if begun == 0:
        return overlap
    before = float(updater.past[begun - 1]["overlap"][0])
    return max(overlap - updater.terms.lasting.fade ** (updater.now - begun + 1) * before, 1.0)


def part_of(covariance: Noisy, listed: Integers, counts: Floats, n: int) -> tuple[Noisy, Integers]:
    """Return the covariance of the n most rated items of the list, and which they are."""
    best = np.sort(np.argsort(-counts[listed], kind="stable")[:n])
    return Noisy(covariance.values[np.ix_(best, best)], covariance.noise), listed[best]
