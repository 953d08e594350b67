"""EASE beside LensKit's: the same weights, which it keeps in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.adapters.libraries import flatten, library

pytestmark = pytest.mark.adapters("lenskit")


@pytest.mark.parametrize("regularisation", [10.0, 500.0])
def test_its_weights_are_ours(peer: Any, films: gf.Ratings, regularisation: float) -> None:
    import pandas as pd

    likes = films.likes(7)
    kept = np.flatnonzero(np.bincount(likes.csr.indices, minlength=likes.shape[1]))
    events = gf.Ratings(likes.csr[:, kept], likes.users, likes.items[kept], feedback="implicit")
    users, items, _ = flatten(events)
    frame = pd.DataFrame({"user_id": users, "item_id": items})
    data = library("lenskit.data").from_interactions_df(frame)
    knn = library("lenskit.knn")
    scorer = knn.EASEScorer(knn.EASEConfig(regularization=regularisation))
    scorer.train(data)
    ours = gf.EASE(regularisation=regularisation).fit(events).weights_
    order = scorer.items.numbers(events.items)
    theirs = np.asarray(scorer.weights)[np.ix_(order, order)]
    assert np.abs(ours).max() > 0.01
    np.testing.assert_allclose(theirs, ours, atol=1e-5)
