"""With the corresponding settings our predictions are those of LensKit and of Surprise, to 1e-6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.adapters.libraries import flatten, library

Split = tuple[gf.Ratings, gf.Ratings]

CLOSE = 1e-6
"""How far two predictions may be apart, relative to the rating."""
SINGLE, DOUBLE = 1e-5, 1e-14
"""Where the k-th nearest rater is nearer than the next by less than this, rounding decides who is taken: LensKit
compares in single precision. Exact ties Surprise decides as we do, by the order of the rows."""


@pytest.fixture(scope="module")
def small() -> Split:
    """Ratings of 1 to 5, with users and items few enough for Surprise."""
    return gf.holdout(gf.synthetic(users=180, items=120, ratings=5_000, rng=4), fraction=0.2, rng=1)


def margins(model: gf.NeighbourCF, rows: Any, columns: Any) -> Any:
    """Return by how much the k-th nearest rater of each cell is nearer than the next; infinite where there is none."""
    profiles, k = model._draws.profiles, model.mechanism.k
    n = profiles.n_rows - 1
    lists = gf.candidate_lists(model.ratings_, n=n, axis=model.axis, similarity=model.similarity, short_lists="shorten")
    rated = [set(row.indices.tolist()) for row in profiles.columns]
    found = []
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        near = zip(lists.indices[row].tolist(), lists.similarities[row].tolist(), strict=True)
        similar = [s for j, s in near if j in rated[column] and s > 0]
        found.append(similar[k - 1] - similar[k] if len(similar) > k else np.inf)
    return np.array(found)


def assert_same(model: gf.NeighbourCF, test: gf.Ratings, theirs: Any, rounding: float) -> None:
    """Compare the predictions of all held-out ratings, but where rounding decides who is taken."""
    users, items, _ = flatten(test)
    ours = model.predict(users, items)
    rows, columns = model.ratings_.rows(users), model.ratings_.columns(items)
    cells = (rows, columns) if model.axis == "user" else (columns, rows)
    apart = margins(model, *cells)
    clear = (apart > rounding) | ((apart == 0) & (rounding == DOUBLE))
    assert clear.mean() > 0.95
    assert (np.isnan(ours) == np.isnan(theirs)).all()
    assert ours[clear] == pytest.approx(theirs[clear], rel=CLOSE, abs=CLOSE, nan_ok=True)
    assert np.isfinite(ours).mean() > 0.5


def of_lenskit(scorer: Any, train: gf.Ratings, test: gf.Ratings) -> Any:
    """Return what a LensKit scorer predicts for the held-out ratings, each user's history looked up."""
    data = library("lenskit.data")
    pandas = library("pandas")
    names = ("user_id", "item_id", "rating")
    frame = pandas.DataFrame(dict(zip(names, flatten(train), strict=True)))
    dataset = data.from_interactions_df(frame)
    scorer.train(dataset)
    users, items, _ = flatten(test)
    found = np.full(len(users), np.nan)
    for user in np.unique(users).tolist():
        own = np.flatnonzero(users == user)
        query = data.RecQuery(user_id=user, history_items=dataset.user_row(user))
        found[own] = scorer(query, data.ItemList(item_ids=items[own])).scores("numpy")
    return found


@pytest.mark.adapters("lenskit")
@pytest.mark.parametrize(("k", "least"), [(20, 1), (5, 3)])
@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("data", ["split", "small"])
def test_the_predictions_of_lenskit(
    peer: Any, request: pytest.FixtureRequest, data: str, axis: Any, k: int, least: int
) -> None:
    train, test = request.getfixturevalue(data)
    knn = library("lenskit.knn")
    kind = knn.UserKNNScorer if axis == "user" else knn.ItemKNNScorer
    theirs = of_lenskit(kind(max_nbrs=k, min_nbrs=least), train, test)
    center: Any = f"{axis}_mean"
    ours = gf.NeighbourCF(
        gf.KNN(k=k), axis=axis, similarity="centred_cosine", center=center, among="raters", min_neighbours=least
    )
    assert_same(ours.fit(train), test, theirs, SINGLE)


SIMILARITIES = [
    ({"name": "msd"}, gf.Similarity(name="msd")),
    ({"name": "cosine"}, gf.Similarity(name="cosine_corated")),
    ({"name": "pearson"}, gf.Similarity(name="pearson", centre="corated")),
    ({"name": "pearson", "min_support": 4}, gf.Similarity(name="pearson", centre="corated", min_common=4)),
    ({"name": "pearson_baseline"}, gf.Similarity(name="pearson_baseline")),
    (
        {"name": "pearson_baseline", "shrinkage": 7, "min_support": 3},
        gf.Similarity(name="pearson_baseline", shrinkage=7.0, min_common=3),
    ),
]


@pytest.mark.adapters("surprise")
@pytest.mark.parametrize(("options", "similarity"), SIMILARITIES, ids=lambda one: str(one))
@pytest.mark.parametrize("axis", ["user", "item"])
@pytest.mark.parametrize("kind", ["KNNBasic", "KNNWithMeans", "KNNBaseline"])
def test_the_predictions_of_surprise(
    peer: Any, small: Split, kind: str, axis: Any, options: Any, similarity: gf.Similarity
) -> None:
    train, test = small
    users, items, _ = flatten(test)
    reader = peer.Reader(rating_scale=(1, 5))
    pandas = library("pandas")
    frame = pandas.DataFrame(dict(zip(("users", "items", "values"), flatten(train), strict=True)))
    whole = peer.Dataset.load_from_df(frame, reader).build_full_trainset()
    least = 2 if kind == "KNNBasic" else 1  # below min_k the other two divide what they have not added up
    algo = getattr(peer, kind)(k=10, min_k=least, sim_options={"user_based": axis == "user", **options}, verbose=False)
    algo.fit(whole)
    pairs = zip(users.tolist(), items.tolist(), strict=True)
    told = [algo.predict(user, item, clip=False) for user, item in pairs]
    theirs = np.array([np.nan if one.details["was_impossible"] else one.est for one in told])
    center: Any = {"KNNBasic": None, "KNNWithMeans": f"{axis}_mean", "KNNBaseline": "bias"}[kind]
    ours = gf.NeighbourCF(
        gf.KNN(k=10),
        axis=axis,
        similarity=similarity,
        center=center,
        among="raters",
        min_neighbours=least,
        fallback=center,
    )
    assert_same(ours.fit(train), test, theirs, DOUBLE)
