"""A witness against a selection mechanism at its own settings: two data sets, and an answer that tells them apart."""

from __future__ import annotations

import numpy as np

from goodfence.errors import SettingError
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.selection.mechanism import Floats, Mechanism
from goodfence.selection.witness import Witness

_EVENT = "a prediction is made for an item that nobody but one candidate rated"
_ASKER = (5.0, 4.0, 0.0, 0.0, 0.0)
_TARGET = (5.0, 4.0, 5.0, 0.0, 0.0)  # her third rating is in one data set only
_NEARER = (5.0, 4.0, 0.0, 0.0, 0.0)
_FARTHER = (0.0, 1.0, 0.0, 5.0, 2.0)
_COLUMN = 2
_LONGEST = 1 << 14


def settings_witness(mechanism: Mechanism) -> Witness | None:
    """Return the likeliest witness against the mechanism, as it is set; None if none was found.

    One candidate alone rated an item. If she is chosen the asker gets an answer for it; without that rating there is
    never one. The candidate is tried as the nearest of all, and as the last that the mechanism looks at.

    Examples
    --------
    >>> from goodfence.selection.ppns import PPNS
    >>> with_it, without = settings_witness(PPNS(k=50, beta=7)).probabilities()
    >>> round(with_it, 2), without
    (0.98, 0.0)
    """
    needed = shortest_list(mechanism)
    if needed is None:
        return None
    found = [_witness(mechanism, n_nearer, needed) for n_nearer in (0, needed - 1)]
    best = max(found, key=lambda witness: witness.probabilities()[0])
    with_it, without = best.probabilities()
    return best if with_it > 0 and without == 0 else None


def witness_against(model: NeighbourCF) -> Witness | None:
    """Return the witness against a neighbourhood model, where its law is the one that witnesses are computed by."""
    plain = model.axis == "user" and model.similarity.name == "cosine" and model.fallback is None
    return settings_witness(model.mechanism) if plain else None


def shortest_list(mechanism: Mechanism) -> int | None:
    """Return how many candidates the mechanism needs at least, in steps of k; None if that is more than is tried."""
    for n_candidates in range(max(mechanism.k, 2), _LONGEST, mechanism.k):
        try:
            mechanism.reach(n_candidates)
        except SettingError:
            continue
        return n_candidates
    return None


def _witness(mechanism: Mechanism, n_nearer: int, needed: int) -> Witness:
    """Return a witness in whose list the candidate stands after so many, and which is k longer than needed."""
    farther = [_FARTHER] * (needed + mechanism.k - n_nearer - 1)
    ratings: Floats = np.array([_ASKER, *[_NEARER] * n_nearer, _TARGET, *farther])
    rating = (n_nearer + 1, _COLUMN)
    return Witness(mechanism, ratings, rating=rating, event=_EVENT, chosen=None)
