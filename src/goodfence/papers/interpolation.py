"""Predictions from the nearest of a user's own items, with the weights of the best linear prediction (Bell, Koren)."""

from __future__ import annotations

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers
from goodfence.kernels import kernel


@kernel
def interpolate(
    columns: AnyIntegers,
    residuals: AnyFloats,
    wanted: AnyIntegers,
    factors: AnyFloats,
    unexplained: AnyFloats,
    k: int,
    out: AnyFloats,
) -> None:
    """Fill out[j] with what the user's residuals say about the residual of item wanted[j].

    The covariance of items i and j is factors[i]·factors[j], and unexplained[i] more where they are the same. Of the
    user's other items the k with the highest correlation are taken (ties: the first); their residuals count with the
    weights of the best linear prediction, (covariance among them)^-1 (covariance with the wanted item).
    """
    n_factors = factors.shape[1]
    closeness = np.empty(len(columns))
    for turn in range(len(wanted)):
        item = wanted[turn]
        own = unexplained[item]
        for factor in range(n_factors):
            own += factors[item, factor] ** 2
        n_others = 0
        for at in range(len(columns)):
            other = columns[at]
            product, variance = 0.0, unexplained[other]
            for factor in range(n_factors):
                product += factors[item, factor] * factors[other, factor]
                variance += factors[other, factor] ** 2
            closeness[at] = -product / np.sqrt(own * variance)
            if other == item:
                closeness[at] = np.inf
            else:
                n_others += 1
        nearest = np.argsort(closeness, kind="mergesort")[: min(k, n_others)]
        n = len(nearest)
        out[turn] = 0.0
        if n == 0:
            continue
        matrix, vector = np.zeros((n, n)), np.zeros(n)
        for one in range(n):
            first = columns[nearest[one]]
            for factor in range(n_factors):
                vector[one] += factors[first, factor] * factors[item, factor]
            for two in range(one + 1):
                second = columns[nearest[two]]
                product = 0.0
                for factor in range(n_factors):
                    product += factors[first, factor] * factors[second, factor]
                matrix[one, two] = product
                matrix[two, one] = product
            matrix[one, one] += unexplained[first]
        weights = np.linalg.solve(matrix, vector)
        for one in range(n):
            out[turn] += weights[one] * residuals[nearest[one]]
