"""How `PrivateCF` learns from an update: item sums, item residuals, and the covariance once it is worth its cost.

Every stage is a running total over batches, and a record pays for its own batch only. Which stages a batch enters is
decided from noisy totals. The residuals of earlier batches were taken from the item biases known then, so their total
is read from the mean of these biases.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from goodfence.arrays import AnyIntegers, Floats, Integers
from goodfence.models.private import estimation, history, releases
from goodfence.models.private.item_model import ItemBiases
from goodfence.models.private.life import MOST_DIRECTIONS, Known
from goodfence.models.private.projected import (
    DIRECTION_GRID,
    LONGEST,
    PROJECTED,
    PROJECTED_NAME,
    FactorPosterior,
    Projected,
    find_directions,
    projected_size,
    projected_totals,
    read_projected,
    sharpen,
    turned,
)
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
COVARIANCE_SHARE, HALF_STEP_SHARE, OVERLAP_SHARE = 0.7, 0.3, 0.01
"""What the covariance takes, and the part of that which half steps take where there are any."""
SUMS_SHARE = {("rating", False): 0.19, ("rating", True): 0.19, ("user", False): 0.5, ("user", True): 0.29}
"""What the item sums take, by unit and whether there may be a covariance."""

SIZED = {None: (releases.SUMS_NAME, slice(1, None, 2)), COVARIANCE_NAME: (releases.OVERLAP_NAME, slice(None))}
"""Which noisy integers tell how large a batch is: the counts, or for pairs the overlap."""


def growth_of(updater: Updater) -> float:
    """Return how many times the data so far will enter a stage that begins now, in batches like those so far."""
    lasting = updater.terms.lasting
    left = lasting.updates - updater.now if lasting.half_life is None else 1 / (1 - lasting.fade)
    return min(AHEAD, max(1.0, left / (updater.now + 1)))


def ahead(items: ItemBiases, growth: float) -> ItemBiases:
    """Return what would be known of the items with so many times as much data."""
    return replace(items, counts=growth * items.counts, variances=items.variances / growth)


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
    parts, covered = updater.parts(name, until)
    around = np.zeros(n_items)
    for part, known in zip(parts, [*updater.past, updater.known][updater.series[name].begun :], strict=False):
        around[: len(known["biases"])] += part * known["biases"]
    return around, covered


def covariance_share(*, half_steps: bool) -> float:
    """Return which part of the squared mu the covariance takes."""
    return COVARIANCE_SHARE - HALF_STEP_SHARE * half_steps


def release_update_half_step(
    profiles: UserProfiles, items: ItemBiases, found: FactorPosterior, mu: float, updater: Updater
) -> Floats:
    """Publish the covariance along the factors known so far, and return the factors after all half steps."""
    known, past, n_items = updater.known, updater.past[-1] if updater.past else {}, len(items.counts)
    target = integer_sensitivity(mu * math.sqrt(HALF_STEP_SHARE))
    if "projected size" not in known:
        wanted = find_directions(sharpen(found, _half_steps(updater, n_items, updater.now), items), items.counts)
        directions = turned(wanted, directions_of(past), MOST_DIRECTIONS)
        known["directions"] = directions.ravel()
        known["projected size"] = np.array(
            [projected_size(PROJECTED, profiles.most_items, directions, LONGEST, target)]
        )
    totals = profiles.total(projected_totals, known["pair biases"], *half_step_of(known))
    updater.publish(PROJECTED_NAME, totals.T, target)
    return sharpen(found, _half_steps(updater, n_items), items)


def directions_of(known: Known) -> AnyIntegers:
    """Return the directions of a batch, one row an item; none where it takes no half step."""
    return known.get("directions", np.empty(0, dtype=np.int32)).reshape(-1, MOST_DIRECTIONS)


def half_step_of(known: Known) -> tuple[AnyIntegers, Clamps, float, float]:
    """Return the public constants of a batch's half step."""
    return directions_of(known), PROJECTED, LONGEST, float(known["projected size"][0])


def _half_steps(updater: Updater, n_items: int, until: int | None = None) -> list[Projected]:
    """Return the running total of the projections: along the mean of the directions, as much as batches count."""
    if not updater.covered(PROJECTED_NAME, until):
        return []
    parts, _ = updater.parts(PROJECTED_NAME, until)
    every = [*updater.past, updater.known][updater.series[PROJECTED_NAME].begun :][: len(parts)]
    size, mean = half_step_of(every[-1])[-1], np.zeros((n_items, MOST_DIRECTIONS))
    for part, known in zip(parts, every, strict=True):
        directions, _, _, own = half_step_of(known)
        mean[: len(directions)] += part * own / max(size, 1e-300) * directions / DIRECTION_GRID
    rows, total = np.zeros(mean.size), updater.total(PROJECTED_NAME, until)
    rows[: len(total)] = total
    used = mean.any(axis=0)
    return [read_projected(rows.reshape(mean.shape)[:, used], updater.sd, size, mean[:, used])]


def release_update_pairs(
    profiles: UserProfiles, items: ItemBiases, clamps: Clamps, unit: Unit, mu: float, n_listed: int, updater: Updater
) -> Noisy:
    """Publish the covariance of a list of items that only grows, and return its running total."""
    known, past = updater.known, updater.past[-1] if updater.past else {}
    wanted = releases.most_rated(items.counts, n_listed)
    every = grown(past.get("listed", np.empty(0, dtype=np.int64)), wanted)
    listed = known.setdefault("listed", every[: updater.listed])
    biases = known.setdefault("pair biases", items.biases)
    if profiles.arrival is not None:
        return history.release_history_pairs(profiles, biases, listed, mu, updater)
    return releases.release_covariance(profiles, biases, listed, clamps, unit, mu, updater)


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
