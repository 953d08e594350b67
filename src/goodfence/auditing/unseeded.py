"""A recommender as it is used in earnest: fitted with randomness that nobody can repeat."""

from __future__ import annotations

import copy
from typing import Any

from goodfence.data.ratings import Ratings
from goodfence.errors import NotFittedError
from goodfence.models.recommender import Recommender


class Unseeded:
    """A recipe whose every fit takes fresh randomness from the operating system.

    An attack seeds what it refits, so that its two worlds share their draws. A private model with a seed is another
    law, and has no guarantee; wrapped in this it has no `rng` that could be set.

    Examples
    --------
    >>> from goodfence.models.private_means import PrivateMeans
    >>> recipe = Unseeded(PrivateMeans(epsilon=1.0, rng=3))
    >>> recipe, hasattr(recipe, "rng")
    (PrivateMeans(epsilon=1, delta=1e-05, unit='rating'), False)
    """

    def __init__(self, recommender: Recommender) -> None:
        self.recommender = recommender

    def __repr__(self) -> str:
        return repr(self.recommender)

    def fit(self, ratings: Ratings) -> Any:
        """Return a copy of the recommender, fitted without a seed."""
        recommender: Any = copy.copy(self.recommender)
        if hasattr(recommender, "rng"):
            recommender.rng = None
        return recommender.fit(ratings)

    def predict(self, users: Any, items: Any) -> Any:  # noqa: ARG002 - as in Recommender
        """Refuse: only what `fit` returns can be asked.

        It is here because an attack looks at its recipe to know how to ask: one that predicts has its fakes inside.
        """
        raise NotFittedError("the recipe must be fitted before it is asked; ask what fit returns")
