"""Item-kNN and a biased matrix factorisation of LensKit on one split: prints their errors as JSON."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
from lenskit.als import BiasedMFScorer
from lenskit.basic import BiasScorer
from lenskit.data import ItemList, RecQuery, from_interactions_df
from lenskit.knn import ItemKNNScorer
from lenskit.training import TrainingOptions


def main() -> None:
    _, train_file, test_file, lowest, highest = sys.argv[1:6]
    train, test = pd.read_csv(train_file), pd.read_csv(test_file)
    names = {"user": "user_id", "item": "item_id"}
    data = from_interactions_df(train.rename(columns=names), user_col="user_id", item_col="item_id")
    bias = BiasScorer(damping=5.0)
    scorers = {
        "item-kNN, LensKit (k=20)": ItemKNNScorer(max_nbrs=20, min_nbrs=1),
        "matrix factorisation, LensKit (ALS, 64)": BiasedMFScorer(embedding_size=64, epochs=15),
    }
    bias.train(data, TrainingOptions())
    errors = {}
    for name, scorer in scorers.items():
        scorer.train(data, TrainingOptions())
        wrong = []
        for user, part in test.groupby("user"):
            query = RecQuery(user_id=user, user_items=data.user_row(user))
            wanted = ItemList(item_ids=part["item"].to_numpy())
            found = scorer(query, wanted).scores("numpy")
            missing = ~np.isfinite(found)
            if missing.any():  # as its own pipelines do: bias where there is no neighbour
                found = np.where(missing, bias(query, wanted).scores("numpy"), found)
            found = np.clip(found, float(lowest), float(highest))
            wrong.append(np.abs(found - part["rating"].to_numpy()))
        errors[name] = float(np.concatenate(wrong).mean())
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
