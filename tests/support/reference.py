"""Slow, obvious twins of what the package computes fast. Nothing here is clever."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

# --- similarities, the order of a candidate list, predictions ---------------------------------------------------


def fraction_cosine(first: dict[int, int], second: dict[int, int]) -> tuple[int, int, int]:
    """Return dot product and the two squared norms of two rows given as {column: whole rating}."""
    dot = sum(rating * second[column] for column, rating in first.items() if column in second)
    return dot, sum(r * r for r in first.values()), sum(r * r for r in second.values())


def similarity(
    first: dict[int, float],
    second: dict[int, float],
    name: str,
    centre: str = "all",
    shrinkage: float = 0.0,
    min_common: int = 1,
) -> float:
    """Return the similarity of two rows given as {column: rating}, by the textbook.

    Names that subtract a mean or a bias are the cosines of what `without_baseline` leaves.
    """
    n_common = len(first.keys() & second.keys())
    if n_common < min_common:
        return 0.0
    plain = _similarity(first, second, name, centre)
    return plain * (n_common - 1) / (n_common - 1 + shrinkage) if shrinkage else plain


def _similarity(first: dict[int, float], second: dict[int, float], name: str, centre: str) -> float:
    shared = sorted(first.keys() & second.keys())
    a, b = [first[column] for column in shared], [second[column] for column in shared]
    all_a, all_b = list(first.values()), list(second.values())
    if name in ("cosine", "centred_cosine"):
        return _ratio(_dot(a, b), _dot(all_a, all_a), _dot(all_b, all_b))
    if name in ("cosine_corated", "adjusted_cosine", "pearson_baseline"):
        return _ratio(_dot(a, b), _dot(a, a), _dot(b, b))
    if not shared:
        return 0.0
    if name == "jaccard":
        return len(shared) / len(first.keys() | second.keys())
    if name == "msd":
        return 1 / (1 + _mean([(x - y) ** 2 for x, y in zip(a, b, strict=True)]))
    mean_a = _mean(all_a if centre == "all" else a)
    mean_b = _mean(all_b if centre == "all" else b)
    centred_a, centred_b = [x - mean_a for x in a], [x - mean_b for x in b]
    return _ratio(_dot(centred_a, centred_b), _dot(centred_a, centred_a), _dot(centred_b, centred_b))


def baseline(users: list[dict[int, float]], n_items: int, base: str | None) -> list[list[float]]:
    """Return what is expected in each cell, users x items: a mean, regularised biases, or 0."""
    items = turned(users, n_items)
    every = [rating for user in users for rating in user.values()]
    overall = _mean(every)
    if base == "user_mean":
        return [[_mean(list(user.values())) if user else overall] * n_items for user in users]
    if base == "item_mean":
        return [[_mean(list(one.values())) if one else overall for one in items] for _ in users]
    if base == "global_mean":
        return [[overall] * n_items for _ in users]
    of_user, of_item = [0.0] * len(users), [0.0] * n_items
    for _ in range(10 if base == "bias" else 0):
        for i, one in enumerate(items):
            left = sum(rating - overall - of_user[u] for u, rating in one.items())
            of_item[i] = left / (10 + len(one))
        for u, user in enumerate(users):
            left = sum(rating - overall - of_item[i] for i, rating in user.items())
            of_user[u] = left / (15 + len(user))
    if base is None:
        overall = 0.0
    return [[overall + of_user[u] + of_item[i] for i in range(n_items)] for u in range(len(users))]


def without_baseline(users: list[dict[int, float]], expected: list[list[float]]) -> list[dict[int, float]]:
    """Return by how much each rating differs from what is expected."""
    left = [{i: rating - expected[u][i] for i, rating in row.items()} for u, row in enumerate(users)]
    return [{i: 0.0 if abs(d) < 1e-12 else d for i, d in row.items()} for row in left]


def turned(users: list[dict[int, float]], n_items: int) -> list[dict[int, float]]:
    """Return the ratings by item, {user: rating}."""
    return [{u: row[i] for u, row in enumerate(users) if i in row} for i in range(n_items)]


def compared_rows(users: list[dict[int, float]], n_items: int, axis: str, name: str) -> list[dict[int, float]]:
    """Return the rows that a similarity compares: users, or items, without means or biases where it says so."""
    own, other = ("user_mean", "item_mean") if axis == "user" else ("item_mean", "user_mean")
    bases = {"centred_cosine": own, "adjusted_cosine": other, "pearson_baseline": "bias"}
    left = without_baseline(users, baseline(users, n_items, bases.get(name)))
    return left if axis == "user" else turned(left, n_items)


def nearest_raters(similarities: list[float], raters: dict[int, float], own: int, k: int) -> list[tuple[float, float]]:
    """Return (similarity, value) of the k nearest who rated: similarity falling, ties by number; none below 1e-6."""
    found = [(similarities[row], row) for row in raters if row != own and similarities[row] >= 1e-6]
    ordered = sorted(found, key=lambda pair: (-pair[0], pair[1]))[:k]
    return [(similarity, raters[row]) for similarity, row in ordered]


def weighted_mean(pairs: list[tuple[float, float]], least: int = 1) -> float:
    """Return the mean weighted by similarity; NaN of fewer than `least`."""
    if len(pairs) < least:
        return math.nan
    return sum(s * value for s, value in pairs) / sum(abs(s) for s, _ in pairs)


def candidate_list(similarities: list[float], skip: int, n: int) -> list[int]:
    """Return the first n rows by descending similarity, ties by ascending row, without `skip`."""
    rows = [row for row in range(len(similarities)) if row != skip]
    return sorted(rows, key=lambda row: (-similarities[row], row))[:n]


def exact_candidate_list(rows: list[dict[int, int]], target: int, n: int) -> list[int]:
    """Return the cosine candidate list of whole-numbered, non-negative rows, compared as fractions."""

    def key(row: int) -> tuple[Fraction, int]:
        dot, own, other = fraction_cosine(rows[target], rows[row])
        return (-Fraction(dot * dot, own * other) if own * other else Fraction(0), row)

    return sorted((row for row in range(len(rows)) if row != target), key=key)[:n]


def prediction(
    neighbours: list[int], weights: list[float], rows: list[dict[int, float]], column: int, over_raters: bool = True
) -> float:
    """Return [PRED] for one column; NaN where its denominator is 0."""
    raters = [(w, rows[j][column]) for j, w in zip(neighbours, weights, strict=True) if column in rows[j]]
    size = sum(abs(weight) for weight, _ in raters)
    denominator = size if over_raters else sum(abs(weight) for weight in weights)
    if denominator == 0:
        return math.nan
    return sum(weight * rating for weight, rating in raters) / denominator


def _dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _ratio(dot: float, squared: float, other_squared: float) -> float:
    if squared * other_squared <= 0:
        return 0.0
    return math.copysign(math.sqrt(dot * dot / (squared * other_squared)), dot) if dot else 0.0


# --- made-up ratings --------------------------------------------------------------------------------


def counter_words(key: int, row: int, count: int) -> list[int]:
    """Return Philox4x32-10 of the counter (count, row, 0, 0), by the paper of Salmon and others."""
    c, k = [count, row, 0, 0], [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(second >> 32) ^ c[1] ^ k[0], second & 0xFFFFFFFF, (first >> 32) ^ c[3] ^ k[1], first & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def two_uniforms(key: int, row: int, count: int) -> tuple[float, float]:
    """Return two uniforms of 52 bits each."""
    c = counter_words(key, row, count)
    pair = [((c[0] << 32) | c[1]) >> 12, ((c[2] << 32) | c[3]) >> 12]
    return (pair[0] + 0.5) / 2**52, (pair[1] + 0.5) / 2**52


def choose_items(
    indptr: Any, groups: Any, starts: Any, cumulative: Any, columns: Any, own_share: float, key: int
) -> list[int]:
    """Return which columns each row rates: tries by weight, or a key for every item if many."""
    n_items = len(cumulative) - 1
    result: list[int] = []
    for row in range(len(groups)):
        n_wanted = int(indptr[row + 1] - indptr[row])
        own = range(int(starts[groups[row]]), int(starts[groups[row] + 1]))
        if n_wanted * 8 > n_items:
            chosen = _first_to_arrive(cumulative, own, own_share, key, row)[:n_wanted]
        else:
            chosen = []
            count = 0
            while len(chosen) < n_wanted:
                coin, place = two_uniforms(key, row, count)
                pool = own if coin < own_share else range(n_items)
                low, high = cumulative[pool.start], cumulative[pool.stop]
                wanted = low + place * (high - low)
                item = next(item for item in pool if cumulative[item + 1] > wanted)
                if item not in chosen:
                    chosen.append(item)
                count += 1
        result += sorted(int(columns[item]) for item in chosen)
    return result


def _first_to_arrive(cumulative: Any, own: range, own_share: float, key: int, row: int) -> list[int]:
    n_items = len(cumulative) - 1
    arrival = []
    for item in range(n_items):
        weight = cumulative[item + 1] - cumulative[item]
        rate = (1 - own_share) * weight / cumulative[-1]
        if item in own:
            rate += own_share * weight / (cumulative[own.stop] - cumulative[own.start])
        arrival.append(-math.log(two_uniforms(key, row, item)[0]) / rate)
    return sorted(range(n_items), key=arrival.__getitem__)


def rate_items(
    indptr: Any,
    items: Any,
    user_levels: Any,
    user_groups: Any,
    item_levels: Any,
    item_groups: Any,
    tastes: Any,
    noise: float,
    key: int,
) -> list[float]:
    """Return how much each row likes each of its items, from 0 to 1."""
    levels = []
    for row in range(len(user_groups)):
        for item in items[indptr[row] : indptr[row + 1]]:
            first, second, _, _ = counter_words(key, row, int(item))
            parts = [first & 0xFFFF, first >> 16, second & 0xFFFF, second >> 16]
            error = (sum(parts) - 2 * 65535) * math.sqrt(3) / 65536
            taste = tastes[user_groups[row], item_groups[item]]
            level = user_levels[row] + item_levels[item] + taste + noise * error
            levels.append(min(max(float(level), 0.0), 1.0))
    return levels


# --- chance, draws, inclusion probabilities, sensitivity ------------------------------------------


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Return the four words of Philox4x32-10, as its paper defines them."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        first, second = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = ((second >> 32) ^ c1 ^ k0, second % 2**32, (first >> 32) ^ c3 ^ k1, first % 2**32)
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [c0, c1, c2, c3]


def uniform(key: int, purpose: int, asker: int, candidate: int) -> float:
    """Return the uniform number of (key, purpose, asker, candidate)."""
    low, high, _, _ = philox([candidate, asker, purpose, 0], [key % 2**32, key >> 32])
    return ((high * 2**32 + low) // 2**12 + 0.5) / 2**52


def draw(
    log_weights: list[float], rows: list[int], pools: list[tuple[int, int, int]], key: int, asker: int
) -> list[int]:
    """Return the chosen positions: in each pool the first to fire, weight 0 last; all exact."""
    chosen = []
    for start, stop, take in pools:
        top = max(log_weights[start:stop], default=0.0)

        def fires(place: int, top: float = top) -> tuple[int, Fraction]:
            time = Fraction(math.log(-math.log1p(-uniform(key, 0, asker, rows[place]))))
            if log_weights[place] == -math.inf:
                return 1, time
            return 0, time - Fraction(log_weights[place] - top)

        chosen += sorted(range(start, stop), key=fires)[:take]
    return sorted(chosen)


def successive_sampling(weights: list[Fraction], take: int) -> dict[frozenset[int], Fraction]:
    """Return the probability of each set that `take` draws without replacement can give.

    Weight 0 is drawn last, uniformly.
    """
    distribution: dict[frozenset[int], Fraction] = {frozenset(): Fraction(1)}
    for _ in range(take):
        following: dict[frozenset[int], Fraction] = {}
        for drawn, probability in distribution.items():
            left = {place: weights[place] for place in range(len(weights)) if place not in drawn}
            if sum(left.values()) == 0:
                left = dict.fromkeys(left, Fraction(1))
            total = sum(left.values())
            for place, weight in left.items():
                if weight:
                    grown = drawn | {place}
                    share = probability * weight / total
                    following[grown] = following.get(grown, Fraction(0)) + share
        distribution = following
    return distribution


def inclusion(weights: list[Fraction], take: int) -> list[float]:
    """Return the inclusion probabilities of successive sampling, by going through every set."""
    distribution = successive_sampling(weights, take)
    return [
        float(sum(probability for chosen, probability in distribution.items() if place in chosen))
        for place in range(len(weights))
    ]


def pair_sensitivity(first: dict[int, float], second: dict[int, float], reading: str, clamp: bool) -> float:
    """Return RS of two rows given as {column: rating}, both terms written out."""
    shared = [s for s in first if s in second and first[s] * second[s] > 0]
    norms = _norm(first) * _norm(second)
    dot = sum(first[s] * second[s] for s in shared)
    terms = [0.0]
    for s in shared:
        rest = _norm(first, without=s) * _norm(second, without=s)
        if rest == 0:
            terms += [math.inf] if clamp else []
            continue
        product = first[s] * second[s]
        moved = product if reading == "printed" else dot
        terms += [product / rest, moved * (norms - rest) / (norms * rest)]
    return min(max(terms), 1.0) if clamp else max(terms)


def target_sensitivity(rows: list[dict[int, float]], target: int, reading: str, clamp: bool) -> float:
    """Return the largest RS of a row and any other."""
    return max(
        (pair_sensitivity(rows[target], row, reading, clamp) for other, row in enumerate(rows) if other != target),
        default=0.0,
    )


def _norm(row: dict[int, float], without: int | None = None) -> float:
    return math.sqrt(sum(rating**2 for column, rating in row.items() if column != without))


# --- attacks by fakes -----------------------------------------------------------------------------


def fake_candidates(
    similarities: list[float], fake_similarity: float, n_fakes: int, removed: int, asker: int
) -> list[tuple[int, float]]:
    """Return the whole list of fake `asker` as (row number in the attacked data, similarity).

    `similarities` are those of the asker to each real row; all fakes follow the real rows that are left.
    """
    left = [similarity for row, similarity in enumerate(similarities) if row != removed]
    numbered = list(enumerate([*left, *[fake_similarity] * n_fakes]))
    del numbered[len(left) + asker]
    return sorted(numbered, key=lambda one: (-one[1], one[0]))


def exposed(weights: list[Fraction], take: int, target: int, rivals: set[int]) -> Fraction:
    """Return the probability that `take` successive draws choose the target and none of the rivals."""
    distribution = successive_sampling(weights, take)
    alone = (p for chosen, p in distribution.items() if target in chosen and not chosen & rivals)
    return sum(alone, Fraction(0))


def attack_scores(answers: list[float], ratings: list[float], lowest: int, highest: int) -> tuple[int, float, int, int]:
    """Return how many were predicted, the sum of errors, how many were recovered, how many are exact."""
    predicted, error, recovered, exact = 0, 0.0, 0, 0
    for answer, rating in zip(answers, ratings, strict=True):
        if math.isnan(answer):
            continue
        predicted += 1
        error += abs(answer - rating)
        recovered += min(max(math.floor(answer + 0.5), lowest), highest) == rating
        exact += abs(answer - rating) < 1e-6
    return predicted, error, recovered, exact


# ---------------------------------------------------------------------------------------------------------------
# Private models: noise, item sums, pairs, half steps, local ridge
# ---------------------------------------------------------------------------------------------------------------


def integer_gaussian_distribution(sigma: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the integers within 12 sigma and their probabilities under the integer Gaussian."""
    values = np.arange(-12 * sigma - 12, 12 * sigma + 13)
    weights = np.exp(-(values**2) / (2 * sigma**2))
    return values, weights / weights.sum()


def integer_gaussians(words: list[int], bits: int, n: int) -> tuple[list[int], int]:
    """Canonne, Kamath and Steinke's sampler, written as they print it, reading one word a coin."""
    position = 0

    def bernoulli_exp(numerator: int, denominator: int) -> bool:
        nonlocal position
        trial = 1
        while True:
            word = words[position]
            position += 1
            side, fraction = word % 2**15, word >> 15
            if side >= 2**15 // trial * trial:
                continue
            if not (side % trial == 0 and fraction * denominator < numerator * 2**49):
                return trial % 2 == 1
            trial += 1

    def one() -> int:
        nonlocal position
        sigma = 1 << bits
        while True:
            word = words[position]
            position += 1
            low, negative = word % sigma, word >> 63 == 1
            if not bernoulli_exp(low, sigma):
                continue
            high = 0
            while bernoulli_exp(1, 1):
                high += 1
            if negative and high == low == 0:
                continue
            magnitude = high * sigma + low
            whole, rest = divmod((magnitude - sigma) ** 2, 2 * sigma**2)
            if all(bernoulli_exp(1, 1) for _ in range(whole)) and bernoulli_exp(rest, 2 * sigma**2):
                return -magnitude if negative else magnitude

    return [one() for _ in range(n)], position


def residuals(users: list[dict[int, int]], biases: list[int], near: int, prior: int, wide: int) -> list[dict[int, int]]:
    """Each rating less its item bias and its user bias, cut at ±wide; users are {item: rating}."""
    out = []
    for user in users:
        cut = [max(-near, min(near, rating - biases[item])) for item, rating in user.items()]
        user_bias = math.floor(Fraction(sum(cut), len(cut) + prior))
        left = {item: rating - biases[item] - user_bias for item, rating in user.items()}
        out.append({item: max(-wide, min(wide, value)) for item, value in left.items()})
    return out


def normalised_sums(
    users: list[dict[int, int]], grid: int, stretch: float, floor: float, limit: int, n_items: int
) -> tuple[list[int], list[int]]:
    """Sums and counts of users whose vectors are scaled to `limit` and cut toward zero."""
    sums, counts = [0] * n_items, [0] * n_items
    for user in users:
        scaled = {item: stretch * value / grid for item, value in user.items()}
        size = limit / max(math.sqrt(sum(value**2 + 1 for value in scaled.values())), floor)
        for item, value in scaled.items():
            sums[item] += int(size * value)
            counts[item] += int(size)
    return sums, counts


def pair_sums(users: list[dict[int, int]], power: int, size: float, n_items: int, toward_zero: bool) -> list[list[int]]:
    """For each pair i < j the sum over users of size x_i x_j/|x|^power, each rounded by itself."""
    out = [[0] * n_items for _ in range(n_items)]
    for user in users:
        norm = math.sqrt(sum(value**2 for value in user.values()))
        for one in user:
            for two in user:
                if one < two and norm > 0:
                    exact = size * user[one] * user[two] / norm**power
                    out[one][two] += int(exact) if toward_zero else round(exact)
    return out


def ridge(
    user: dict[int, float],
    bias: npt.NDArray[np.float64],
    features: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    penalties: npt.NDArray[np.float64],
    cut: float = math.inf,
) -> npt.NDArray[np.float64]:
    """One user's weighted ridge coefficients, as least squares with the penalties as further rows.

    Where errors are to count by their size beyond `cut`: twice more, with less weight for ratings beyond it.
    """
    items = list(user)
    targets = np.array([user[item] - bias[item] for item in items])
    trust = np.ones(len(items))
    for _ in range(1 if cut == math.inf else 3):
        root = np.sqrt(weights[items] * trust)[:, None]
        table = np.concatenate([root * features[items], np.diag(np.sqrt(penalties))])
        padded = np.concatenate([root[:, 0] * targets, np.zeros(len(penalties))])
        found = np.asarray(np.linalg.lstsq(table, padded, rcond=None)[0])
        errors = targets - features[items] @ found
        trust = np.array([1.0 if abs(error) <= cut else cut / abs(error) for error in errors])
    return found


def projected_rows(
    users: list[dict[int, int]], directions: list[list[int]], longest: float, size: float
) -> list[list[int]]:
    """For each item the sum over users of size x_i s, rounded; s is Zᵀx/|x| without item i, at most `longest` long."""
    n_directions = len(directions[0])
    out = [[0] * n_directions for _ in directions]
    for user in users:
        norm = math.sqrt(sum(value**2 for value in user.values()))
        for item, value in user.items():
            if norm == 0:
                continue
            score = [
                sum(x * directions[other][one] for other, x in user.items() if other != item) / norm
                for one in range(n_directions)
            ]
            length = math.sqrt(sum(part**2 for part in score))
            short = min(1.0, longest / length) if length else 1.0
            for one in range(n_directions):
                out[item][one] += round(size * value * short * score[one])
    return out


def half_step(
    user: dict[int, float],
    bias: npt.NDArray[np.float64],
    features: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    penalties: npt.NDArray[np.float64],
    wide: float,
    longest: float,
) -> tuple[dict[int, npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """One user's part before rounding: {item: x_i (1, p)/norm}, and (1, p)(1, p)ᵀ; each p without item i."""

    def scored(coefficients: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        score = coefficients[1:]
        length = float(np.linalg.norm(score))
        return np.concatenate([[1.0], score * min(1.0, longest / length) if length else score])

    known = (bias, features, weights, penalties)
    residual, parts = {}, {}
    for item, rating in user.items():
        without = ridge({i: r for i, r in user.items() if i != item}, *known)
        missed = rating - bias[item] - features[item] @ without
        residual[item] = max(-wide, min(wide, missed))
        parts[item] = scored(without)
    norm = max(1.0, math.sqrt(sum(value**2 for value in residual.values())))
    score = scored(ridge(user, *known))
    return {i: residual[i] * parts[i] / norm for i in user}, np.outer(score, score)


# Lists put together from what tiles found


def merged_lists(offers: list[tuple[int, int, float]], n_owners: int, n: int) -> list[list[tuple[int, float]]]:
    """Return for each owner the n best of (owner, row, similarity), most similar first, then by row."""
    lists = []
    for owner in range(n_owners):
        own = [(row, similarity) for one, row, similarity in offers if one == owner]
        lists.append(sorted(own, key=lambda entry: (-entry[1], entry[0]))[:n])
    return lists


# --- McSherry and Mironov: weighted sums over users, and predictions from the nearest items ----------------------


def weighted_pairs(
    ratings: npt.NDArray[Any], values: npt.NDArray[Any], averages: npt.NDArray[Any], prior: int, clamp: float
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the sums over users of x xᵀ/c and e eᵀ/c; `ratings` is 0 where nothing was rated."""
    n_items = ratings.shape[1]
    products, weights = np.zeros((n_items, n_items)), np.zeros((n_items, n_items))
    for user in range(len(ratings)):
        rated = [item for item in range(n_items) if ratings[user, item] != 0]
        left = {item: values[user, item] - averages[item] for item in rated}
        bias = sum(left.values()) / (len(rated) + prior)
        x = {item: min(max(left[item] - bias, -clamp), clamp) for item in rated}
        for one in rated:
            for two in rated:
                products[one, two] += x[one] * x[two] / len(rated)
                weights[one, two] += 1 / len(rated)
    return products, weights


def interpolated(
    columns: npt.NDArray[Any],
    residuals: npt.NDArray[Any],
    item: int,
    factors: npt.NDArray[Any],
    unexplained: npt.NDArray[Any],
    k: int,
) -> float:
    """Return the best linear prediction of an item's residual from those of the k most correlated others."""
    covariance = factors @ factors.T + np.diag(unexplained)
    spread = np.sqrt(np.diag(covariance))
    others = [at for at in range(len(columns)) if columns[at] != item]
    others.sort(key=lambda at: -round(covariance[item, columns[at]] / (spread[item] * spread[columns[at]]), 12))
    nearest = others[:k]
    if not nearest:
        return 0.0
    near = columns[nearest]
    weights = np.linalg.inv(covariance[np.ix_(near, near)]) @ covariance[near, item]
    return float(weights @ residuals[nearest])


# --- which items go together -------------------------------------------------------------------------------------


def event_weights(
    users: list[list[int]], centre: list[int], unit: int, spare: int, size: float, power: int
) -> list[list[int]]:
    """Return for each user the integers nearest to b, b a and b a²/64, b = size/(n - a² + spare/unit²)^(power/2)."""
    found = []
    for items in users:
        total = sum(centre[item] for item in items)
        left = (len(items) * unit**2 + spare - total**2) / unit**2
        weight = size / (math.sqrt(left) if power == 1 else left)
        along = total / unit
        each = (weight, weight * along, weight * along * along / 64)
        found.append([round(one) if items else 0 for one in each])
    return found


def co_occurrence(users: list[list[int]], centre: list[float], unit: str) -> list[list[float]]:
    """Return the sum over users of y yᵀ over the root (unit user: without it) of n - a² + 1/4, where y = x - a v."""
    n_items = len(centre)
    out = [[0.0] * n_items for _ in range(n_items)]
    for items in users:
        along = sum(centre[item] for item in items)
        left = len(items) - along**2 + 0.25
        rest = [(item in items) - along * centre[item] for item in range(n_items)]
        for one in range(n_items):
            for two in range(n_items):
                product = rest[one] * rest[two]
                out[one][two] += product / (math.sqrt(left) if unit == "event" else left)
    return out


# --- lists of the best items ----------------------------------------------------------------------------------


def best_list(scores: npt.ArrayLike, seen: Sequence[int], allowed: Sequence[int], n: int) -> list[tuple[int, float]]:
    """Return the n best columns with their scores: sort all that may be listed, the lower column first of equals."""
    may = [
        (-float(score), column)
        for column, score in enumerate(np.asarray(scores).tolist())
        if column in set(allowed) and column not in set(seen) and not math.isnan(score)
    ]
    return [(column, -score) for score, column in sorted(may)[:n]]


def votes(
    neighbours: Sequence[int], weights: Sequence[float], rows: Sequence[dict[int, float]], n_items: int
) -> list[float]:
    """Return for each item the weights of the neighbours who have it times how much, added up; NaN where none has."""
    scores = [math.nan] * n_items
    for neighbour, weight in zip(neighbours, weights, strict=True):
        for column, value in rows[neighbour].items():
            before = 0.0 if math.isnan(scores[column]) else scores[column]
            scores[column] = before + weight * value
    return scores


def popular_list(
    users: Sequence[dict[int, float]], target: int, known: Sequence[int], n_items: int, n: int
) -> list[int]:
    """Return the most popular items of everybody but the target, without the known ones."""
    others = [held for row, held in enumerate(users) if row != target]
    counts = [float(sum(column in held for held in others)) for column in range(n_items)]
    return [column for column, _ in best_list(counts, known, range(n_items), n)]


def voted_list(lists: Sequence[Sequence[int]], n: int) -> list[int]:
    """Return the items on most lists; of as many votes the better sum of places counts, then the lower column."""
    every = {column for one in lists for column in one}
    on = {column: sum(column in one for one in lists) for column in every}
    places = {column: sum(one.index(column) for one in lists if column in one) for column in every}
    return sorted(every, key=lambda column: (-on[column], places[column], column))[:n]


def weighted_scores(
    profile: Sequence[int],
    popularity: Sequence[float],
    chosen: Sequence[int],
    partial: Sequence[Sequence[float]],
    scale: Sequence[float],
) -> list[float]:
    """Return the scores of all items for a profile: the formulas of `PrivateTopN`'s page."""
    places = {item: place for place, item in enumerate(chosen)}
    held = [places[item] for item in profile if item in places]
    along = 1e-4 + sum(max(popularity[chosen[place]], 0.0) for place in held)
    scores = [along * each for each in popularity]
    for item, place in places.items():
        weights = sum(partial[one][place] * scale[one] / scale[place] for one in held)
        scores[item] = 1e-4 * max(popularity[item], 0.0) + weights
    return scores
