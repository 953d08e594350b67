"""The private models, user by user: clamped residuals, integers to be released, and predictions on a user's own side.

What a user adds to a release is a vector of integers, whose norm, where it is bounded, is tested in integers too.
Nothing here raises, whatever the numbers: an error would tell something of the user at whom it occurred.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from goodfence.arrays import AnyFloats, AnyIntegers, Csr, Flags, Floats
from goodfence.kernels import inner, kernel
from goodfence.kernels.lists import NO_ITEM, insert

# Far beyond what features within their bounds give; below it the matrix is safely inverted.
_LARGEST_TRACE = 1e9
_HIGHEST_LEVERAGE = 1 - 1e-9
# How often a prediction's regression is solved again, with less weight for ratings far from it.
_REWEIGHTED = 2


class ItemFeatures(NamedTuple):
    """What is known of the items, one row each, and the ridge penalty of every feature."""

    bias: Floats
    features: Floats
    """The first is 1: its coefficient is the user bias."""
    weights: Floats
    penalties: Floats
    cut: float = np.inf
    """Where a rating's error begins to count by its size alone, and no longer by its square, in a prediction."""


class HalfStepLimits(NamedTuple):
    """The public bounds of a half step."""

    residual: float
    """Where residuals are clamped."""
    score: float
    """The longest score."""
    items: int
    """The norm of one user's integers in the sums by item."""
    scores: int
    """The same in the moments of the scores."""


@kernel
def residuals(
    starts: AnyIntegers,
    columns: AnyIntegers,
    ratings: AnyIntegers,
    biases: AnyIntegers,
    near: int,
    prior: int,
    wide: int,
) -> AnyIntegers:
    """Return each rating less its item bias and its user bias, clamped to ±`wide`, in integers.

    The user bias is the sum of the ratings less their item biases, clamped to ±`near`, over `prior` more than their
    number.
    """
    out = np.empty(len(ratings), dtype=np.int64)
    for row in range(len(starts) - 1):
        total = np.int64(0)
        for at in range(starts[row], starts[row + 1]):
            value = ratings[at] - biases[columns[at]]
            total += min(max(value, -near), near)
        user_bias = total // np.int64(starts[row + 1] - starts[row] + prior)
        for at in range(starts[row], starts[row + 1]):
            value = ratings[at] - biases[columns[at]] - user_bias
            out[at] = min(max(value, -wide), wide)
    return out


@kernel
def add_by_item(columns: AnyIntegers, values: AnyIntegers, weight: int, sums: AnyIntegers, counts: AnyIntegers) -> None:
    """Add each value to the sum of its item, and `weight` to its count."""
    for at in range(len(columns)):
        sums[columns[at]] += values[at]
        counts[columns[at]] += weight


@kernel
def add_normalised(
    rows: Csr, grid: int, stretch: float, floor: float, limit: int, sums: AnyIntegers, counts: AnyIntegers
) -> None:
    """Add each user's values and ones, scaled so that all of theirs together have a norm of at most `limit`.

    A value x (in units of 1/grid) enters as `stretch`·x beside its one. The vector of a user is divided by its norm, at
    least `floor`, times `limit`, and cut to integers toward zero. A user whose integers fail the test is left out.
    """
    for row in range(len(rows.starts) - 1):
        begin, end = rows.starts[row], rows.starts[row + 1]
        squares = 0.0
        for at in range(begin, end):
            scaled = stretch * rows.values[at] / grid
            squares += scaled * scaled + 1.0
        size = limit / max(np.sqrt(squares), floor)
        one = np.int64(size)
        spent = np.int64(0)
        for at in range(begin, end):
            integer = np.int64(size * (stretch * rows.values[at] / grid))
            spent += integer * integer + one * one
        if spent > limit * limit:
            continue
        for at in range(begin, end):
            sums[rows.columns[at]] += np.int64(size * (stretch * rows.values[at] / grid))
            counts[rows.columns[at]] += one


@kernel
def add_half_steps(
    profiles: Csr, known: ItemFeatures, limits: HalfStepLimits, items_out: AnyIntegers, scores_out: AnyIntegers
) -> None:
    """Add every user's integers to items_out[i] = sum of x_i (1, p) and scores_out = sum of (1, p)(1, p)ᵀ.

    A user's score p is their ridge coefficients but the first; for item i it is computed without their rating of i, and
    x_i is the error of the prediction made so. The residuals x are scaled to a norm of at most 1, (1, p) to one of at
    most sqrt(1 + limits.score²), and all is cut to integers toward zero. A user whose integers exceed the limits or are
    not finite, or whose matrix is nearly singular, is left out.
    """
    longest = np.sqrt(1 + limits.score * limits.score)
    n_features = known.features.shape[1]
    for row in range(len(profiles.starts) - 1):
        begin, end = profiles.starts[row], profiles.starts[row + 1]
        if begin == end:
            continue
        items = profiles.columns[begin:end]
        targets = profiles.values[begin:end] - known.bias[items]
        matrix, vector = _normal_equations(items, targets, known)
        # Not `>=`: NaN and infinities, which the inversion refuses by raising, fail this test too.
        if not np.trace(matrix) < _LARGEST_TRACE:
            continue
        inverse, coefficients = np.eye(n_features), np.zeros(n_features)
        if not _invert(matrix, vector, inverse, coefficients):
            continue
        errors, parts = np.empty(end - begin), np.empty((end - begin, n_features))
        if not _leave_each_out(items, targets, known, (inverse, coefficients), limits, errors, parts):
            continue
        size = limits.items / (longest * max(np.sqrt((errors * errors).sum()), 1.0))
        sound, of_items = _as_integers(size, errors, parts, limits.items)
        score = coefficients * _shortening(coefficients, limits.score)
        score[0] = 1.0
        repeated = np.empty((n_features, n_features))
        repeated[:] = score
        unit = limits.scores / (longest * longest)
        sound_score, of_scores = _as_integers(unit, score, repeated, limits.scores)
        if not (sound and sound_score):
            continue
        scores_out += of_scores
        for at in range(end - begin):
            items_out[items[at]] += of_items[at]


@inner
def _normal_equations(items: AnyIntegers, targets: AnyFloats, known: ItemFeatures) -> tuple[AnyFloats, AnyFloats]:
    """Return matrix and vector of a user's ridge regression."""
    n_features = known.features.shape[1]
    matrix = np.diag(known.penalties)
    vector = np.zeros(n_features)
    for at in range(len(items)):
        item = items[at]
        for one in range(n_features):
            weighted = known.weights[item] * known.features[item, one]
            vector[one] += weighted * targets[at]
            for two in range(n_features):
                matrix[one, two] += weighted * known.features[item, two]
    return matrix, vector


@inner
def _invert(matrix: AnyFloats, vector: AnyFloats, inverse: AnyFloats, coefficients: AnyFloats) -> bool:
    """Turn `inverse`, the identity, into the inverse, and `coefficients`, zero, into its product with the vector.

    Return whether every pivot is positive. Plain loops and no library: what a library of linear algebra returns may
    depend on where in memory its arguments lie, and a user's numbers must be the same whoever else is in the data.
    """
    size = len(matrix)
    for one in range(size):
        pivot = matrix[one, one]
        if not pivot > 0:  # not `<=`: a NaN fails this test too
            return False
        for column in range(size):
            matrix[one, column] /= pivot
            inverse[one, column] /= pivot
        for row in range(size):
            factor = matrix[row, one]
            if row != one:
                for column in range(size):
                    matrix[row, column] -= factor * matrix[one, column]
                    inverse[row, column] -= factor * inverse[one, column]
    for row in range(size):
        for column in range(size):
            coefficients[row] += inverse[row, column] * vector[column]
    return True


@inner
def _leave_each_out(
    items: AnyIntegers,
    targets: AnyFloats,
    known: ItemFeatures,
    solved: tuple[AnyFloats, AnyFloats],
    limits: HalfStepLimits,
    errors: AnyFloats,
    parts: AnyFloats,
) -> bool:
    """Fill in the error of each prediction from the other ratings, and (1, score); return whether all is sound."""
    inverse, coefficients = solved
    n_features = len(coefficients)
    without = np.empty(n_features)
    for at in range(len(items)):
        feature, weight = known.features[items[at]], known.weights[items[at]]
        leverage, fitted = 0.0, 0.0
        for one in range(n_features):
            pulled = 0.0
            for two in range(n_features):
                pulled += inverse[one, two] * feature[two]
            without[one] = pulled
            leverage += feature[one] * pulled
            fitted += feature[one] * coefficients[one]
        leverage *= weight
        if not leverage < _HIGHEST_LEVERAGE:  # not `>=`: a NaN fails this test too
            return False
        step = weight * (targets[at] - fitted) / (1 - leverage)
        predicted = 0.0
        for one in range(n_features):
            without[one] = coefficients[one] - without[one] * step
            predicted += feature[one] * without[one]
        errors[at] = min(max(targets[at] - predicted, -limits.residual), limits.residual)
        factor = _shortening(without, limits.score)
        parts[at, 0] = 1.0
        for one in range(1, n_features):
            parts[at, one] = without[one] * factor
    return True


@inner
def _shortening(coefficients: AnyFloats, longest: float) -> float:
    """Return the factor that shortens a score, the coefficients but the first, to `longest` where it is longer."""
    squares = 0.0
    for one in range(1, len(coefficients)):
        squares += coefficients[one] * coefficients[one]
    length = np.sqrt(squares)
    return longest / length if length > longest else 1.0


@kernel
def _as_integers(size: float, factors: AnyFloats, rows: AnyFloats, limit: int) -> tuple[bool, AnyIntegers]:
    """Return whether the integers size·factors[i]·rows[i], cut toward zero, are within the limit; and they."""
    out = np.empty(rows.shape, dtype=np.int64)
    spent = 0.0
    for at in range(len(rows)):
        for one in range(rows.shape[1]):
            scaled = np.trunc(size * factors[at] * rows[at, one])
            spent += scaled * scaled
    # Not `>=`: a NaN fails this test too. A bound on floats first, so that the integers cannot overflow.
    if not spent < 2.0 * limit * limit:
        return False, out
    exact = np.int64(0)
    for at in range(len(rows)):
        for one in range(rows.shape[1]):
            out[at, one] = np.int64(size * factors[at] * rows[at, one])
            exact += out[at, one] * out[at, one]
    return bool(exact <= limit * limit), out


@kernel
def predict_rows(
    users: AnyIntegers, ends: AnyIntegers, columns: AnyIntegers, profiles: Csr, known: ItemFeatures, out: AnyFloats
) -> None:
    """Predict columns[ends[j]:ends[j + 1]] for the user in row users[j], measured from the centre of the scale."""
    for turn in range(len(users)):
        begin, end = profiles.starts[users[turn]], profiles.starts[users[turn] + 1]
        coefficients = solve_user(profiles.columns[begin:end], profiles.values[begin:end], known)
        for at in range(ends[turn], ends[turn + 1]):
            out[at] = _predicted(columns[at], coefficients, known)


@kernel
def rank_profile(
    own: tuple[AnyIntegers, AnyFloats],
    known: ItemFeatures,
    popularity: tuple[AnyFloats, AnyIntegers],
    spread: float,
    listable: Flags,
    columns: AnyIntegers,
    best: AnyFloats,
) -> None:
    """Write the best listable items that are not in a profile of columns and values, and what is predicted of them.

    An item's score is its count times the root of Phi(prediction / `spread`). `popularity` is the counts and the items
    by falling count. No score exceeds its count, so what comes after a count below the worst listed score is not read.
    """
    coefficients = solve_user(own[0], own[1], known)
    counts, order = popularity
    mine = listable.copy()
    mine[own[0]] = False
    n_listed, n = 0, columns.size
    for item in order:
        if n_listed == n and max(counts[item], 0.0) < best[n - 1]:
            break
        if mine[item]:
            liked = math.erfc(-_predicted(item, coefficients, known) / (spread * math.sqrt(2.0))) / 2
            n_listed = insert(item, counts[item] * math.sqrt(liked), columns, best, n_listed)
    columns[n_listed:] = NO_ITEM
    for place in range(n_listed):
        best[place] = _predicted(columns[place], coefficients, known)


@inner
def _predicted(item: int, coefficients: AnyFloats, known: ItemFeatures) -> float:
    value = known.bias[item]
    for feature in range(len(coefficients)):
        value += known.features[item, feature] * coefficients[feature]
    return float(value)


@kernel
def solve_user(items: AnyIntegers, ratings: AnyFloats, known: ItemFeatures) -> AnyFloats:
    """Return a user's ridge coefficients; errors beyond `known.cut` count by their size (Huber 1964)."""
    trust = np.ones(len(items))
    coefficients = _ridge(items, ratings, known, trust)
    if known.cut == np.inf:
        return coefficients
    for _ in range(_REWEIGHTED):
        for at in range(len(items)):
            error = ratings[at] - known.bias[items[at]]
            for one in range(len(coefficients)):
                error -= known.features[items[at], one] * coefficients[one]
            trust[at] = min(1.0, known.cut / max(abs(error), known.cut))
        coefficients = _ridge(items, ratings, known, trust)
    return coefficients


@inner
def _ridge(items: AnyIntegers, ratings: AnyFloats, known: ItemFeatures, trust: AnyFloats) -> AnyFloats:
    """Return the coefficients of least squared error, each rating weighted by its item's weight and its trust."""
    n_features = known.features.shape[1]
    matrix = np.zeros((n_features, n_features))
    vector = np.zeros(n_features)
    for at in range(len(items)):
        item = items[at]
        target = ratings[at] - known.bias[item]
        weight = known.weights[item] * trust[at]
        for row in range(n_features):
            weighted = weight * known.features[item, row]
            vector[row] += weighted * target
            for column in range(row + 1):
                matrix[row, column] += weighted * known.features[item, column]
    for row in range(n_features):
        for column in range(row):
            matrix[column, row] = matrix[row, column]
        matrix[row, row] += known.penalties[row]
    return np.linalg.solve(matrix, vector)
