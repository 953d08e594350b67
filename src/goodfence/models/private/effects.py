"""A further round on the item effects alone: residuals from what is known are released, and the effects corrected."""

from __future__ import annotations

import numpy as np

from goodfence.models.private.constants import RESIDUALS
from goodfence.models.private.empirical_bayes import ItemEffects
from goodfence.models.private.half_step import release_half_step
from goodfence.models.private.half_step_posterior import refine
from goodfence.models.private.item_residuals import release_residuals, update_effects
from goodfence.models.private.local_ridge import ItemModel
from goodfence.models.private.people import People, Unit
from goodfence.privacy.fixed_point import Publisher


def better_effects(
    people: People, items: ItemEffects, unit: Unit, mu: float, publisher: Publisher
) -> ItemEffects:
    """Return the effects after one more release at the price mu.

    For the unit user this is the half step with no score but the constant one.
    """
    if unit == "rating":
        found = release_residuals(people, items.effects, RESIDUALS, mu, publisher)
        return update_effects(found, items, RESIDUALS.wide)
    no_directions = np.zeros((people.n_items, 0))
    step = release_half_step(people, ItemModel.of(items, no_directions), 0.0, mu, publisher)
    return refine(step, items, no_directions)[0]
