"""One recommender fitted to events, then asked for everybody's list, in its own process: prints its times as JSON."""

from __future__ import annotations

import json
import os
import sys
import time

if sys.argv[1:2] == ["implicit"]:  # which has threads of its own, and asks for this
    os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from scipy import sparse

FACTORS = 64
BATCHES = (None, 1_000)
"""implicit is asked for everybody at once, and for so many at a time; the faster counts."""


def implicit(events, n, _settings, threads):
    from implicit.als import AlternatingLeastSquares

    # How long lists take depends on the number of factors, and not on how often these were improved.
    model = AlternatingLeastSquares(factors=FACTORS, iterations=1, num_threads=threads, random_state=7)
    liked = sparse.csr_matrix(events.astype(np.float32))
    model.fit(liked, show_progress=False)
    users = np.arange(liked.shape[0])

    def everybody():
        best = []
        for batch in BATCHES:
            start = time.perf_counter()
            for first in range(0, len(users), batch or len(users)):
                some = users[first : first + (batch or len(users))]
                model.recommend(some, liked[some], N=n)
            best.append(time.perf_counter() - start)
        return min(best)

    return everybody


def goodfence(events, n, settings, _threads):
    import goodfence as gf
    from goodfence.models.method import configured

    ids = [np.arange(size) for size in events.shape]
    model = configured(json.loads(settings), progress=False, public={"items": "from ratings"})
    fitted = model.recommender.fit(gf.Ratings(events, *ids, feedback="implicit"))
    fitted.recommend_many(ids[0][:600], n)  # the machine code is compiled, or loaded

    def everybody():
        start = time.perf_counter()
        fitted.recommend_many(n=n)
        return time.perf_counter() - start

    return everybody


def main() -> None:
    peer, file, n, rounds, settings, threads = sys.argv[1:7]
    with np.load(file) as arrays:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        events = sparse.csr_array(parts, shape=tuple(arrays["shape"]))
    start = time.perf_counter()
    library = {"goodfence": goodfence, "implicit": implicit}[peer]
    everybody = library(events, int(n), settings, int(threads))
    made = time.perf_counter() - start
    seconds = [everybody() for _ in range(int(rounds))]
    print(json.dumps({"made": made, "seconds": min(seconds), "users": events.shape[0]}))


if __name__ == "__main__":
    main()
