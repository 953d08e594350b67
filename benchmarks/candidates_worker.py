"""One library making candidate lists in its own process: prints seconds and peak memory as JSON.

A job of less than SHORT seconds runs again, and the best time counts: what the first call loads is not measured here.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
from scipy import sparse

SHORT, CALLS = 1.0, 5


def goodfence(csr, n, threads):
    import goodfence as gf

    n_users, n_items = csr.shape
    ratings = gf.Ratings(csr, np.arange(n_users), np.arange(n_items))
    small = gf.synthetic(users=60, items=40, ratings=600, rng=1)
    gf.candidate_lists(small, n=10, threads=threads)

    def job():
        lists = gf.candidate_lists(ratings, n=n, threads=threads)
        return lists.indices, lists.similarities

    return job


def normalised(csr):
    norms = np.sqrt(np.asarray(csr.multiply(csr).sum(axis=1)).ravel())
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return sparse.csr_matrix(sparse.diags_array(scale) @ csr)


def dense_lists(found, n):
    """Drop each row from its own list, and lay the others out as arrays (-1 where there are fewer)."""
    found = sparse.csr_matrix(found)
    n_rows = found.shape[0]
    indices = np.full((n_rows, n), -1, dtype=np.int32)
    values = np.zeros((n_rows, n))
    for row in range(n_rows):
        part = slice(found.indptr[row], found.indptr[row + 1])
        others = found.indices[part] != row
        near, similarity = found.indices[part][others], found.data[part][others]
        order = np.lexsort((near, -similarity))[:n]
        indices[row, : len(order)], values[row, : len(order)] = near[order], similarity[order]
    return indices, values


def similaripy(csr, n, threads):
    import similaripy

    rows = sparse.csr_matrix(csr, copy=True)

    def job():
        # Its block size is chosen by itself, which is the fastest; "csr" saves a conversion.
        return similaripy.cosine(rows, k=n + 1, num_threads=threads, format_output="csr", verbose=False)

    return job


def sparse_dot_topn(csr, n, threads):
    from sparse_dot_topn import sp_matmul_topn

    def job():
        rows = normalised(csr)
        return sp_matmul_topn(rows, rows.T.tocsr(), top_n=n + 1, sort=True, n_threads=threads)

    return job


def implicit(csr, n, threads):
    from implicit.nearest_neighbours import CosineRecommender

    # It compares the columns of what it is given: the transposed matrix compares users.
    matrix = sparse.csr_matrix(csr.T.tocsr())

    def job():
        model = CosineRecommender(K=n + 1, num_threads=threads)
        model.fit(matrix, show_progress=False)
        return model.similarity

    return job


def scikit_learn(csr, n, threads):
    from sklearn.neighbors import NearestNeighbors

    def job():
        model = NearestNeighbors(n_neighbors=n + 1, metric="cosine", algorithm="brute", n_jobs=threads)
        distances, near = model.fit(csr).kneighbors(csr)
        n_rows = csr.shape[0]
        starts = np.arange(0, n_rows * (n + 1) + 1, n + 1)
        return sparse.csr_matrix((1 - distances.ravel(), near.ravel(), starts), shape=(n_rows, n_rows))

    return job


def surprise(csr, n, _threads):
    import pandas
    from surprise import Dataset, KNNBasic, Reader

    coo = csr.tocoo()
    frame = pandas.DataFrame({"user": coo.row, "item": coo.col, "rating": coo.data})
    reader = Reader(rating_scale=(csr.data.min(), csr.data.max()))
    trainset = Dataset.load_from_df(frame, reader).build_full_trainset()

    def job():
        # Its cosine is over co-rated items only, and it keeps the whole users x users matrix: not the same lists.
        model = KNNBasic(k=n, sim_options={"name": "cosine", "user_based": True}, verbose=False)
        model.fit(trainset)
        np.argsort(-model.sim, axis=1)[:, : n + 1]

    return job


WORKERS = {
    "goodfence": goodfence,
    "similaripy": similaripy,
    "sparse-dot-topn": sparse_dot_topn,
    "implicit": implicit,
    "scikit-learn": scikit_learn,
    "surprise": surprise,
}


def result_bytes(found):
    """Return the bytes of the lists themselves: sparse ones have three arrays."""
    if found is None:
        return 0
    if not isinstance(found, tuple):
        found = (found.data, found.indices, found.indptr)
    return sum(part.nbytes for part in found)


def main() -> None:
    peer, path, axis, n, threads, out = sys.argv[1:7]
    with np.load(path) as arrays:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        csr = sparse.csr_array(parts, shape=tuple(arrays["shape"]))
    if axis == "item":
        csr = sparse.csr_array(csr.T.tocsr())
    job = WORKERS[peer](csr, int(n), int(threads))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = job()
    seconds = time.perf_counter() - start
    for _ in range(CALLS - 1 if seconds < SHORT else 0):
        start = time.perf_counter()
        job()
        seconds = min(seconds, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if out != "-" and found is not None:
        indices, values = found if isinstance(found, tuple) else dense_lists(found, int(n))
        np.savez(out, indices=indices, values=values)
    beyond = (peak - before) / 1024 - result_bytes(found) / 2**20
    print(json.dumps({"seconds": seconds, "beyond_mib": beyond, "peak_mib": peak / 1024}))


if __name__ == "__main__":
    main()
