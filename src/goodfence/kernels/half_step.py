"""One person's part of a half step of alternating least squares: her residuals times her scores, as integers."""

from __future__ import annotations

import numpy as np

from goodfence.kernels.compiled import kernel
from goodfence.kernels.types import Floats, Ints

# Far beyond what features within their bounds give; below it the matrix is safely inverted.
_LARGEST_TRACE = 1e9
_HIGHEST_LEVERAGE = 1 - 1e-9


@kernel
def _shortened(coefficients: Floats, longest: float) -> float:
    """Return the factor that shortens a score, the coefficients but the first, to `longest` where it is longer."""
    squares = 0.0
    for one in range(1, len(coefficients)):
        squares += coefficients[one] * coefficients[one]
    length = np.sqrt(squares)
    return longest / length if length > longest else 1.0


@kernel
def _leave_out(
    inverse: Floats, feature: Floats, weight: float, target: float, answer: Floats, without: Floats
) -> float:
    """Fill `without` with the coefficients that the other ratings alone give, and return this one's leverage.

    Where the leverage is nearly 1 or no number, `without` is not to be used. Plain loops: an array for each rating
    takes longer to make than to fill.
    """
    n_features = len(feature)
    leverage, fitted = 0.0, 0.0
    for one in range(n_features):
        pulled = 0.0
        for two in range(n_features):
            pulled += inverse[one, two] * feature[two]
        without[one] = pulled
        leverage += feature[one] * pulled
        fitted += feature[one] * answer[one]
    leverage *= weight
    if leverage < _HIGHEST_LEVERAGE:
        step = weight * (target - fitted) / (1 - leverage)
        for one in range(n_features):
            without[one] = answer[one] - without[one] * step
    return leverage


@kernel
def add_half_steps(
    indptr: Ints,
    indices: Ints,
    ratings: Floats,
    effects: Floats,
    features: Floats,
    weights: Floats,
    penalties: Floats,
    wide: float,
    longest: float,
    item_limit: int,
    score_limit: int,
    items_out: Ints,
    scores_out: Ints,
) -> None:
    """Add every person's integers to items_out[i] = sum of x_i (1, p) and scores_out = sum of (1, p)(1, p)ᵀ.

    A person's score p is her ridge coefficients on the features but the constant one; for item i it is computed
    without her rating of i, and x_i is what the prediction made so misses. Her residuals x are scaled to a norm of
    at most 1, (1, p) to one of at most sqrt(1 + longest²), and all is cut to integers toward zero. That her
    integers have norms of at most `item_limit` and `score_limit` is tested in integers, whatever the
    floating-point numbers did; who fails the test, or is not a finite number, is left out. Somebody without ratings
    adds nothing. Nothing here raises, whatever the numbers: an error would tell something of the person at whom it
    occurred. So who would divide by zero, or invert a matrix that is nearly singular, is left out too.
    """
    n_features = features.shape[1]
    whole = np.sqrt(1 + longest * longest)
    for row in range(len(indptr) - 1):
        items = indices[indptr[row] : indptr[row + 1]]
        count = len(items)
        if count == 0:
            continue
        targets = ratings[indptr[row] : indptr[row + 1]] - effects[items]
        matrix = np.diag(penalties)
        vector = np.zeros(n_features)
        for at in range(count):
            item = items[at]
            for one in range(n_features):
                weighted = weights[item] * features[item, one]
                vector[one] += weighted * targets[at]
                for two in range(n_features):
                    matrix[one, two] += weighted * features[item, two]
        # Not `>=`: NaN and infinities, which the inversion refuses by raising, fail this test too.
        if not np.trace(matrix) < _LARGEST_TRACE:
            continue
        inverse = np.linalg.inv(matrix)
        answer = inverse @ vector
        parts = np.empty((count, n_features))
        residuals = np.empty(count)
        without = np.empty(n_features)
        sound = True
        for at in range(count):
            feature = features[items[at]]
            weight = weights[items[at]]
            # Not `>=`: a NaN fails this test too.
            if not _leave_out(inverse, feature, weight, targets[at], answer, without) < (
                _HIGHEST_LEVERAGE
            ):
                sound = False
                break
            predicted = 0.0
            for one in range(n_features):
                predicted += feature[one] * without[one]
            residuals[at] = min(max(targets[at] - predicted, -wide), wide)
            factor = _shortened(without, longest)
            parts[at, 0] = 1.0
            for one in range(1, n_features):
                parts[at, one] = without[one] * factor
        if not sound:
            continue
        size = item_limit / (whole * max(np.sqrt((residuals * residuals).sum()), 1.0))
        contribution = np.empty((count, n_features), dtype=np.int64)
        spent = 0.0
        for at in range(count):
            for one in range(n_features):
                scaled = np.trunc(size * residuals[at] * parts[at, one])
                spent += scaled * scaled
        score = answer * _shortened(answer, longest)
        score[0] = 1.0
        spent_score = 0.0
        unit = score_limit / (whole * whole)
        for one in range(n_features):
            for two in range(n_features):
                scaled = np.trunc(unit * score[one] * score[two])
                spent_score += scaled * scaled
        # Not `>`: a NaN fails this test too. A bound on floats first, so that the integers cannot overflow.
        if not (
            spent < 2.0 * item_limit * item_limit and spent_score < 2.0 * score_limit * score_limit
        ):
            continue
        exact, exact_score = np.int64(0), np.int64(0)
        outer = np.empty((n_features, n_features), dtype=np.int64)
        for at in range(count):
            for one in range(n_features):
                contribution[at, one] = np.int64(size * residuals[at] * parts[at, one])
                exact += contribution[at, one] * contribution[at, one]
        for one in range(n_features):
            for two in range(n_features):
                outer[one, two] = np.int64(unit * score[one] * score[two])
                exact_score += outer[one, two] * outer[one, two]
        if exact > item_limit * item_limit or exact_score > score_limit * score_limit:
            continue
        scores_out += outer
        for at in range(count):
            items_out[items[at]] += contribution[at]
