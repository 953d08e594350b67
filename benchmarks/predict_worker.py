"""One library fitted and asked in bulk, in its own process: prints its times as JSON."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pandas as pd


def goodfence(train, users, items, axis, k, threads):
    import goodfence as gf

    ratings = gf.Ratings.from_frame(train)
    small = gf.synthetic(users=60, items=40, ratings=600, rng=1)
    warm = gf.NeighbourCF(gf.KNN(k=k % 30 + 1), axis=axis, threads=threads).fit(small)
    warm.predict(np.repeat(small.users, 40), np.tile(small.items, 60))
    warm.recommend(small.users[0])
    model = gf.NeighbourCF(gf.KNN(k=k), axis=axis, threads=threads)

    def recommend(user):
        return model.recommend(user, n=10)

    return lambda: model.fit(ratings), lambda: model.predict(users, items), recommend


def raters(train, users, items, axis, k, threads):
    """Predict with the settings of LensKit's scorers."""
    import goodfence as gf

    ratings = gf.Ratings.from_frame(train)
    settings = {"axis": axis, "similarity": "centred_cosine", "center": f"{axis}_mean"}
    settings |= {"among": "raters", "threads": threads}
    small = gf.synthetic(users=60, items=40, ratings=600, rng=1)
    warm = gf.NeighbourCF(gf.KNN(k=3), **settings).fit(small)
    warm.predict(np.repeat(small.users, 40), np.tile(small.items, 60))
    warm.recommend(small.users[0])
    model = gf.NeighbourCF(gf.KNN(k=k), **settings)

    def recommend(user):
        return model.recommend(user, n=10)

    return lambda: model.fit(ratings), lambda: model.predict(users, items), recommend


def lenskit(train, users, items, axis, k, threads):
    import torch
    from lenskit.data import ItemList, RecQuery, from_interactions_df
    from lenskit.knn import ItemKNNScorer, UserKNNScorer
    from lenskit.training import TrainingOptions

    torch.set_num_threads(threads)
    data = from_interactions_df(
        train.rename(columns={"user": "user_id", "item": "item_id"}),
        user_col="user_id",
        item_col="item_id",
    )
    kind = UserKNNScorer if axis == "user" else ItemKNNScorer
    scorer = kind(max_nbrs=k, min_nbrs=1)
    by_user = (
        pd.Series(items).groupby(users).apply(lambda wanted: ItemList(item_ids=wanted.to_numpy()))
    )

    # What a pipeline's history look-up would add is prepared here, outside the measured time.
    queries = {
        user: RecQuery(user_id=user, user_items=data.user_row(user)) for user in by_user.index
    }

    def predict():
        for user, wanted in by_user.items():
            scorer(queries[user], wanted)

    everything = ItemList(item_ids=np.unique(train["item"]))

    def recommend(user):
        return scorer(queries[user], everything).top_n(10)

    return lambda: scorer.train(data, TrainingOptions()), predict, recommend


def surprise(train, users, items, axis, k, _threads):
    from surprise import Dataset, KNNBasic, Reader

    reader = Reader(rating_scale=(train["rating"].min(), train["rating"].max()))
    trainset = Dataset.load_from_df(train[["user", "item", "rating"]], reader).build_full_trainset()
    model = KNNBasic(
        k=k, sim_options={"name": "cosine", "user_based": axis == "user"}, verbose=False
    )

    def predict():
        for user, item in zip(users, items, strict=True):
            model.predict(user, item)

    return lambda: model.fit(trainset), predict, None


def timed(work, *arguments):
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def main() -> None:
    peer, train_file, test_file, axis, k, threads = sys.argv[1:7]
    train, test = pd.read_csv(train_file), pd.read_csv(test_file)
    users, items = test["user"].to_numpy(), test["item"].to_numpy()
    library = {"goodfence": goodfence, "raters": raters, "lenskit": lenskit, "surprise": surprise}[
        peer
    ]
    fit, predict, recommend = library(train, users, items, axis, int(k), int(threads))
    result = {"fit": timed(fit), "predict": min(timed(predict) for _ in range(2)), "n": len(users)}
    if recommend is not None:
        asked = np.unique(users)[:200]
        recommend(asked[0])
        result["recommend_ms"] = 1000 * float(np.median([timed(recommend, user) for user in asked]))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
