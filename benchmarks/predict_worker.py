"""One library fitted and asked in bulk, in its own process: prints its times as JSON.

With one thread the times are those of the processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pandas as pd


def goodfence(train, users, items, axis, k, threads):
    import goodfence as gf

    model = gf.NeighbourCF(gf.KNN(k=k), axis=axis, threads=threads)
    return asked(model, train, users, items)


def raters(train, users, items, axis, k, threads):
    """Predict with the settings of LensKit's scorers."""
    import goodfence as gf

    settings = {"axis": axis, "similarity": "centred_cosine", "center": f"{axis}_mean"}
    settings |= {"among": "raters", "threads": threads}
    return asked(gf.NeighbourCF(gf.KNN(k=k), **settings), train, users, items)


def asked(model, train, users, items):
    """Load the machine code, on a hundred users of the same data, and return what is timed."""
    import goodfence as gf

    ratings = gf.Ratings.from_frame(train)
    few = gf.Ratings.from_frame(train[train["user"].isin(ratings.users[:100])])
    model.fit(few).predict(np.tile(few.users, 2), np.tile(few.items[:1], 2 * len(few.users)))
    model.recommend(few.users[0])

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
        train.rename(columns={"user": "user_id", "item": "item_id"}), user_col="user_id", item_col="item_id"
    )
    kind = UserKNNScorer if axis == "user" else ItemKNNScorer
    scorer = kind(max_nbrs=k, min_nbrs=1)
    by_user = pd.Series(items).groupby(users).apply(lambda wanted: ItemList(item_ids=wanted.to_numpy()))

    # What a pipeline's history look-up would add is prepared here, outside the measured time.
    queries = {user: RecQuery(user_id=user, user_items=data.user_row(user)) for user in by_user.index}

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
    model = KNNBasic(k=k, sim_options={"name": "cosine", "user_based": axis == "user"}, verbose=False)

    def predict():
        for user, item in zip(users, items, strict=True):
            model.predict(user, item)

    return lambda: model.fit(trainset), predict, None


SOME = 20_000
"""Of Surprise, which is asked one by one, about this many predictions are timed."""


def main() -> None:
    peer, train_file, test_file, axis, k, threads = sys.argv[1:7]
    train, test = pd.read_csv(train_file), pd.read_csv(test_file)
    users, items = test["user"].to_numpy(), test["item"].to_numpy()
    if peer == "surprise":
        step = -(-len(users) // SOME)
        users, items = users[::step], items[::step]
    library = {"goodfence": goodfence, "raters": raters, "lenskit": lenskit, "surprise": surprise}
    fit, predict, recommend = library[peer](train, users, items, axis, int(k), int(threads))
    clock = time.process_time if int(threads) == 1 else time.perf_counter

    def timed(work, *arguments):
        start = clock()
        work(*arguments)
        return clock() - start

    result = {"fit": timed(fit), "predict": timed(predict), "n": len(users)}
    result["again"] = timed(predict)
    if recommend is not None:
        asked = np.unique(users)[:200]
        recommend(asked[0])
        result["recommend_ms"] = 1000 * float(np.median([timed(recommend, user) for user in asked]))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
