"""How well a recommender predicts and lists: `evaluate`, on what was held out, and `tune` and `learning_curve`."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from goodfence.arrays import Flags, Floats, Integers, row_numbers
from goodfence.data import splits
from goodfence.data.ids import Ids
from goodfence.data.ratings import Ratings, positions_among
from goodfence.errors import SettingError, require, warn
from goodfence.markup import Backend, data_frame, html_table
from goodfence.models.method import parsed
from goodfence.privacy.accounting import FitRecord, total_epsilon, total_mu
from goodfence.rng import RNG, Streams
from goodfence.settings import Count, Share, checked, integer, is_number

_USUAL_LENGTH = 10  # of lists of events
_LIST_FIGURES = ["ndcg", "recall", "precision", "hit_rate", "mrr", "map", "catalogue_coverage", "mean_popularity"]


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How far predictions are from ratings, over the rated cells only, pooled [MAE]; and how good the lists are.

    Figures of lists are means over the users of whom something was held out, except `catalogue_coverage`. Whatever was
    held out of a user counts as relevant, and all of it alike.
    """

    mae: float
    """Mean absolute error over the cells that got a prediction; NaN if none did, and for events."""
    rmse: float
    """Root of the mean squared error over the same cells."""
    coverage: float
    """The share of the cells that got a prediction; NaN for events."""
    n: int
    """The number of cells."""
    top: int | None = None
    """The length of the recommended lists that all figures below speak of."""
    ndcg: float | None = None
    """Normalised discounted cumulative gain."""
    recall: float | None = None
    """The share of a user's held-out items that are in the list."""
    precision: float | None = None
    """The share of the list's places that hold a held-out item."""
    hit_rate: float | None = None
    """The share of the users whose list holds at least one."""
    mrr: float | None = None
    """One over the rank of the first held-out item; 0 where there is none."""
    map: float | None = None
    """Average precision: the precision at the rank of each held-out item, over the number of them."""
    catalogue_coverage: float | None = None
    """The share of all items that are in somebody's list."""
    mean_popularity: float | None = None
    """The share of the users fitted to who have the listed items."""
    intervals: Mapping[str, tuple[float, float]] | None = None
    """Of each of these means the interval over users at 95%, by Student's t."""

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:.4g}") for name, value in self.figures().items()]
        return html_table(["figure", "value"], rows, title="Scores")

    @classmethod
    @checked
    def of(cls, predictions: Floats, ratings: Floats) -> Scores:
        """Return the scores of predictions, NaN for none, against the ratings that they predict."""
        predicted, rated = np.asarray(predictions), np.asarray(ratings)
        same = predicted.ndim == 1 and predicted.shape == rated.shape
        require(same, "predictions", "a list of as many numbers as ratings", predicted.shape)
        made = ~np.isnan(predicted)
        errors = np.abs(predicted[made] - rated[made])
        n_made = int(made.sum())
        return cls(
            mae=float(errors.mean()) if n_made else np.nan,
            rmse=float(np.sqrt((errors**2).mean())) if n_made else np.nan,
            coverage=n_made / len(ratings) if len(ratings) else np.nan,
            n=len(ratings),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values."""
        return asdict(self)

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return the figures as a data frame of one row: of pandas, polars or pyarrow."""
        return data_frame([self.figures()], backend)

    def figures(self) -> dict[str, float]:
        """Return the figures that there are, by name."""
        told = asdict(self)
        return {name: told[name] for name in told if told[name] is not None and name != "intervals"}

    def __repr__(self) -> str:
        errors = f"mae={self.mae:.4g}, rmse={self.rmse:.4g}, coverage={self.coverage:.4g}, "
        text = f"Scores({'' if np.isnan(self.coverage) else errors}n={self.n}"
        if self.top is not None:
            text += f", ndcg@{self.top}={self.ndcg:.4g}, recall@{self.top}={self.recall:.4g}"
        return text + ")"


@checked
def evaluate(model: Any, test: Ratings, *, n: int | None = None) -> Scores:
    """Return how well a fitted model predicts ratings it has not seen, and how good its lists are.

    Parameters
    ----------
    model : recommender
        Any fitted recommender.
    test : Ratings
        The held-out ratings or events, with the ids the model was fitted with.
    n : int, optional
        Also compare lists of this length with the held-out items: NDCG, recall, precision, hit rate, MRR, MAP, how
        much of the catalogue is listed, and how popular it is. None for no lists, and of events for lists of 10.

    Examples
    --------
    >>> import goodfence as gf
    >>> train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=7)
    >>> scores = gf.evaluate(gf.NeighbourCF(gf.KNN(k=30)).fit(train), test)
    >>> scores.mae < 2
    True
    >>> gf.evaluate(gf.Popularity().fit(train.likes(8)), test.likes(8), n=10).hit_rate > 0.1
    True
    """
    able = any(callable(getattr(model, name, None)) for name in ("predict", "recommend"))
    require(able, "model", "a fitted recommender", type(model))
    csr = test.csr
    fitted: Ratings | None = getattr(model, "ratings_", None)
    events = "implicit" in (test.feedback, "explicit" if fitted is None else fitted.feedback)
    if events:
        scores = Scores(mae=np.nan, rmse=np.nan, coverage=np.nan, n=csr.nnz)
    else:
        rows = row_numbers(csr.indptr)
        predictions = np.asarray(model.predict(test.users[rows], test.items[csr.indices]))
        scores = Scores.of(predictions, csr.data)
    if n is None and not events:
        return scores
    most = max(1, test.shape[1])
    length = min(_USUAL_LENGTH, most) if n is None else integer(n, "n", least=1, most=most)
    rows = np.flatnonzero(np.diff(csr.indptr))
    listed = _listed(model, test, rows, length)
    return replace(scores, top=length, **list_figures(listed, test, rows, fitted))


def _listed(model: Any, test: Ratings, rows: Integers, n: int) -> Integers:
    """Return the lists of these users of `test`, by its columns: -1 for no item, -2 for one that is not in `test`."""
    found = np.full((len(rows), n), -1, dtype=np.int64)
    if callable(getattr(model, "recommend_many", None)):
        lists = model.recommend_many(test.users[rows], n)
        known = Ids.of_sorted(lists.catalogue, "items"), Ids.of_sorted(test.items, "items")
        places = np.append(np.where((at := positions_among(*known)) < 0, -2, at), -1)
        found[:, : lists.columns.shape[1]] = places[lists.columns]
        return found
    place = {item: at for at, item in enumerate(test.items.tolist())}
    for row, user in enumerate(test.users[rows]):
        items = np.asarray(model.recommend(user, n).items).tolist()[:n]
        found[row, : len(items)] = [place.get(item, -2) for item in items]
    return found


def list_figures(listed: Integers, test: Ratings, rows: Integers, fitted: Ratings | None = None) -> dict[str, Any]:
    """Return the figures of lists, as `Scores` names them, with their intervals.

    `listed` is (users, n) columns of `test`, best first, below 0 for none; `rows` are the users' rows in `test`. What
    the model was `fitted` to says how popular an item is.
    """
    if not len(rows):
        return dict.fromkeys(_LIST_FIGURES, float(np.nan))
    by_user = _figures_by_user(listed, test, rows)
    if fitted is not None:
        by_user["mean_popularity"] = _popularity(listed, test, fitted)
    means = {name: float(np.nanmean(each)) for name, each in by_user.items()}
    distinct = np.unique(listed[listed >= 0])
    means["catalogue_coverage"] = len(distinct) / test.shape[1]
    return {**means, "intervals": {name: _interval(each) for name, each in by_user.items()}}


def _figures_by_user(listed: Integers, test: Ratings, rows: Integers) -> dict[str, Floats]:
    n, hits = listed.shape[1], _hits(listed, test, rows)
    held_out = np.diff(test.csr.indptr)[rows]
    ranks = np.arange(1, n + 1)
    gains = 1.0 / np.log2(ranks + 1)
    ideal = np.cumsum(gains)[np.minimum(held_out, n) - 1]
    precisions, n_hits = np.cumsum(hits, axis=1) / ranks, np.asarray(hits.sum(axis=1))
    return {
        "ndcg": hits @ gains / ideal,
        "recall": n_hits / held_out,
        "precision": n_hits / n,
        "hit_rate": np.asarray(n_hits > 0, dtype=np.float64),
        "mrr": np.where(n_hits > 0, 1.0 / (hits.argmax(axis=1) + 1), 0.0),
        "map": (hits * precisions).sum(axis=1) / held_out,
    }


def evaluate_there(
    model: Any, ratings: Any, config: Any, *, held_out: Mapping[str, Any], n: int | None, rng: int, **how: Any
) -> Scores:
    """Fit a private model on a cluster to a part of each block of users, and score it on the rest, as `evaluate` does.

    Of block b the part `holdout(ratings of the block, **held_out, rng=[rng, b])` is held out. No rating comes to the
    driver, and popularity is not told.
    """
    from goodfence.spark.private import score_there

    require(
        held_out.get("by", "chance") == "chance", "by", "'chance' on Spark, which reads no times", held_out.get("by")
    )
    events = model.learns_from == "implicit"
    length = _USUAL_LENGTH if n is None and events else n
    split, score = partial(_split, dict(held_out), rng), partial(_moments, events, length)
    parts = score_there(model, ratings, split, score, config, **how)
    sums: dict[str, Any] = {
        name: sum(np.asarray(part[name]) for part in parts) for name in parts[0] if name != "listed"
    }
    scores = _scores_of(*sums.pop("cells"), events=events)
    if length is None:
        return scores
    distinct = np.unique(np.concatenate([part["listed"] for part in parts]))
    means: dict[str, Any] = {name: float(total / max(count, 1)) for name, (count, total, _) in sums.items()}
    means["intervals"] = {name: _interval_of(*map(float, each)) for name, each in sums.items()}
    return replace(scores, top=length, catalogue_coverage=len(distinct) / model.ratings_.shape[1], **means)


def evaluate_neighbours(chosen: Any, ratings: Any, test: Any, config: Any) -> Scores:
    """Return the errors of neighbours on a cluster for held-out ratings (`user`, `item`, `rating`), which stay there.

    `chosen` is what `goodfence.spark.choose_neighbours` returned for `ratings`, or the folder in which `fit` left it.
    """
    from goodfence.spark.predict import errors_of

    return _scores_of(*errors_of(ratings, chosen, test, config), events=False)


def _scores_of(n_cells: float, n_made: float, sizes: float, squares: float, *, events: bool) -> Scores:
    made = max(n_made, 1)
    errors = [np.nan] * 3 if events else [sizes / made, math.sqrt(squares / made), n_made / max(n_cells, 1)]
    mae, rmse, coverage = map(float, errors)
    return Scores(mae=mae, rmse=rmse, coverage=coverage, n=int(n_cells))


def _split(held_out: dict[str, Any], seed: int, ratings: Ratings, block: int) -> tuple[Ratings, Ratings]:
    return splits.holdout(ratings, **held_out, rng=[seed, block])


def _moments(events: bool, n: int | None, model: Any, test: Ratings) -> dict[str, Any]:
    """Return number, sum and sum of squares of each figure over the users of a block, and of the errors over cells."""
    csr, found = test.csr, {"cells": np.array([test.n_ratings, 0.0, 0.0, 0.0])}
    if not events:
        off = model.predict_cells(row_numbers(csr.indptr), csr.indices) - csr.data
        off = np.abs(off[~np.isnan(off)])
        found["cells"][1:] = len(off), off.sum(), off @ off
    if n is not None:
        rows = np.flatnonzero(np.diff(csr.indptr))
        listed = model.recommend_many(test.users[rows], n).columns.astype(np.int64)
        each = _figures_by_user(listed, test, rows) if len(rows) else {}
        named = set(_LIST_FIGURES) - {"catalogue_coverage", "mean_popularity"}
        own = ((name, each.get(name, np.empty(0))) for name in sorted(named))
        found |= {name: np.array([len(values), values.sum(), values @ values]) for name, values in own}
        found["listed"] = np.unique(listed[listed >= 0])
    return found


def _hits(listed: Integers, test: Ratings, rows: Integers) -> Flags:
    """Return which of the listed items were held out of the very user."""
    csr, n_items = test.csr, test.shape[1]
    held_out = row_numbers(csr.indptr) * n_items + csr.indices  # ascending
    asked = np.where(listed >= 0, rows[:, np.newaxis] * n_items + listed, -1)
    places = np.minimum(np.searchsorted(held_out, asked), len(held_out) - 1)
    return np.asarray(held_out[places] == asked)


def _popularity(listed: Integers, test: Ratings, fitted: Ratings) -> Floats:
    """Return for each list the mean share of users who have its items; NaN of an empty list."""
    counts = np.bincount(fitted.csr.indices, minlength=fitted.shape[1]) / max(fitted.shape[0], 1)
    known = Ids.of_sorted(test.items, "items"), Ids.of_sorted(fitted.items, "items")
    places = positions_among(*known)
    shares = np.append(np.where(places < 0, 0.0, counts[places]), 0.0)
    full = listed >= 0
    totals = np.where(full, shares[listed], 0.0).sum(axis=1)
    lengths = full.sum(axis=1)
    return np.where(lengths > 0, totals / np.maximum(lengths, 1), np.nan)


def _interval(values: Floats) -> tuple[float, float]:
    """Return the 95% interval of a mean over users, within 0 and 1."""
    known = values[~np.isnan(values)]
    return _interval_of(len(known), float(known.sum()), float(known @ known))


def _interval_of(n: float, total: float, squares: float) -> tuple[float, float]:
    if n < 2:
        return 0.0, 1.0
    mean = total / n
    reach = stats.t.ppf(0.975, n - 1) * math.sqrt(max(squares - n * mean**2, 0.0) / (n - 1) / n)
    low, high = np.clip([mean - reach, mean + reach], 0.0, 1.0)
    return float(low), float(high)


_ERRORS = ("mae", "rmse")  # the figures that are better if they are lower


@dataclass(kw_only=True, repr=False)
class TrialTable:
    """What was tried, with its figures, and what all fits together cost in privacy."""

    figure: str
    """What is compared."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Of each trial its settings, the means of its figures over the folds, `spread` (the standard deviation of what is
    compared; NaN for one fold), and `seconds` to fit and ask once."""
    settings: list[dict[str, Any]] = field(default_factory=list)
    """The settings of each."""
    records: list[FitRecord] = field(default_factory=list)
    """What the fits of private models asked and released."""

    @property
    def best(self) -> dict[str, Any]:
        """The settings with the best mean; of equals the first."""
        values = np.array([row[self.figure] for row in self.rows], dtype=np.float64)
        require(not np.isnan(values).all(), "figure", "one that at least one trial has", self.figure)
        return self.settings[int(np.nanargmin(values) if self.figure in _ERRORS else np.nanargmax(values))]

    @property
    def spent(self) -> dict[str, Any]:
        """What all fits of private models cost together: unit, epsilon and delta, unless a seed is known; else nothing.

        Where some protect a rating and others all of a user, a rating is what all of them protect.
        """
        fits = self.records
        if not fits:
            return {}
        unit = next((one.unit for one in fits if one.unit != "user"), "user")
        distance, delta = sum(one.account.distance for one in fits), max(one.delta for one in fits)
        mus = (max(one.account.mu, total_mu(one.epsilon, one.delta, one.account.distance)) for one in fits)
        together = total_epsilon(math.sqrt(math.fsum(mu**2 for mu in mus)) * (1 + 1e-12), distance, delta)
        return {"unit": unit, "epsilon": max([together, *(one.stated_epsilon for one in fits)]), "delta": delta}

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return the rows as a data frame of pandas, polars or pyarrow."""
        return data_frame(self.rows, backend)

    def __repr__(self) -> str:
        return f"TrialTable({len(self.rows)} by {self.figure})"

    def _repr_html_(self) -> str:
        shown = [[f"{one:.4g}" if isinstance(one, float) else one for one in row.values()] for row in self.rows]
        return html_table(list(self.rows[0]) if self.rows else [], shown, title=repr(self))

    def add(self, settings: Mapping[str, Any], measured: list[dict[str, float]], seconds: float) -> None:
        """Take down one trial, with its figures in each fold."""
        means = {name: float(np.mean([one[name] for one in measured])) for name in measured[0]}
        compared = [one[self.figure] for one in measured]
        spread = float(np.std(compared, ddof=1)) if len(compared) > 1 else math.nan
        self.settings.append(dict(settings))
        self.rows.append({**settings, **means, "spread": spread, "seconds": seconds / len(measured)})

    def warn(self) -> None:
        """Say what it costs to fit private models so often."""
        if not self.records:
            return
        seeded = "" if all(one.private for one in self.records) else "; a seed voids even that"
        cost = "epsilon {epsilon:.3g} at delta {delta:g} per {unit}".format(**self.spent)
        warn(
            f"{len(self.records)} private models were fitted to these data: together they cost {cost}{seeded}. The "
            "scores behind a choice are exact figures of what was held out, which no epsilon covers. Tune on public "
            "data where data must be protected."
        )


@checked
def tune(
    make: Callable[..., Any] | str,
    grid: Mapping[str, Sequence[Any]],
    data: Any,
    *,
    folds: Count = 1,
    tries: Count | None = None,
    figure: str | None = None,
    rng: RNG = None,
) -> TrialTable:
    """Try settings of a recommender, and return the figures of each, the `best`, and what was `spent`.

    A private model that is tuned on the data it protects spends its budget in every fit; a warning states the sum.

    Parameters
    ----------
    make : callable or str
        What makes an unfitted recommender of settings, or a method as on the command line, "ppns k=50", to add them to.
    grid : mapping of str to sequence
        The values of each setting; all combinations are tried.
    data : Ratings or (Ratings, Ratings)
        Ratings to be split, or train and test: `gf.holdout(ratings, by="time", per_user=1)`.
    folds : int, default 1
        How often to split ratings: 1 holds a fifth out, more are cross-validation.
    tries : int, optional
        Try only so many combinations, at random.
    figure : str, optional
        What to compare: "mae", "rmse", or a figure of lists with their length, "ndcg@10"; None is "mae", and of events
        "ndcg@10".
    rng : int, sequence of int, Generator or None, default None
        Where the chance of splits and of `tries` comes from.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> found = gf.tune("knn", {"k": [5, 20], "fallback": ["item_mean"]}, films, rng=7)
    >>> found.best
    {'k': 20, 'fallback': 'item_mean'}
    >>> found.to_frame("pyarrow").column_names
    ['k', 'fallback', 'mae', 'rmse', 'coverage', 'n', 'spread', 'seconds']
    """
    require(bool(grid) and all(grid.values()), "grid", "settings with a value each at least", dict(grid))
    tried = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if tries is not None:
        tried = [tried[at] for at in sorted(Streams(rng).order(len(tried), 1)[:tries])]
    pairs = list(_pairs(data, folds, rng))
    trials, length = _begun(figure, pairs[0][1])
    for settings in tried:
        started, measured = time.perf_counter(), []
        for train, test in pairs:
            measured.append(_measured(_made(make, settings), train, test, length, trials))
        trials.add(settings, measured, time.perf_counter() - started)
    trials.warn()
    return trials


@checked
def learning_curve(
    recommender: Any,
    data: Any,
    *,
    shares: Sequence[Share] = (0.1, 0.2, 0.5, 1.0),
    folds: Count = 1,
    figure: str | None = None,
    rng: RNG = None,
) -> TrialTable:
    """Fit to growing shares of the training part, each within the next, and return the figures of each.

    Parameters
    ----------
    recommender : recommender
        Unfitted; copies are fitted.
    data, folds, figure, rng
        As in `tune`.
    shares : sequence of float, default (0.1, 0.2, 0.5, 1.0)
        The shares of the training part.

    Examples
    --------
    >>> import goodfence as gf
    >>> from goodfence.evaluation import learning_curve
    >>> curve = learning_curve(gf.Popularity(), gf.load("movietweetings", likes=8), shares=(0.1, 1.0), rng=7)
    >>> curve.rows[0]["ndcg"] < curve.rows[1]["ndcg"]
    True
    """
    pairs = list(_pairs(data, folds, rng))
    trials, length = _begun(figure, pairs[0][1])
    for share in shares:
        require(is_number(share) and share > 0, "shares", "more than 0 each", share)
        started, measured = time.perf_counter(), []
        for at, (train, test) in enumerate(pairs):
            order = Streams(rng).order(train.n_ratings, 2, at)
            part = splits.subset(train, order.argsort() < max(1, round(share * train.n_ratings)))
            measured.append(_measured(copy.copy(recommender), part, test, length, trials))
        trials.add({"share": share, "n_train": part.n_ratings}, measured, time.perf_counter() - started)
    trials.warn()
    return trials


def _pairs(data: Any, folds: int, rng: RNG) -> Iterator[tuple[Ratings, Ratings]]:
    if isinstance(data, Ratings):
        yield from [splits.holdout(data, rng=rng)] if folds == 1 else splits.folds(data, n=folds, rng=rng)
        return
    parts = isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, Ratings) for part in data)
    require(parts, "data", "Ratings, or train and test as gf.holdout returns them", type(data))
    require(folds == 1, "folds", "left out where train and test are given", folds)
    yield data


def _begun(figure: str | None, test: Ratings) -> tuple[TrialTable, int | None]:
    """Return trials that compare by the figure, and the length of lists; None for no lists."""
    events = test.feedback == "implicit"
    name, at, length = (figure or (f"ndcg@{_USUAL_LENGTH}" if events else "mae")).partition("@")
    listed = name in _LIST_FIGURES
    good = (listed and length.isdecimal()) or (name in _ERRORS and not at and not events)
    rule = f"one of {', '.join(_LIST_FIGURES)} with a length, as in ndcg@10, or of ratings mae or rmse"
    require(good, "figure", rule, figure)
    return TrialTable(figure=name), min(int(length), test.shape[1]) if listed else None


def _made(make: Callable[..., Any] | str, settings: Mapping[str, Any]) -> Any:
    if not isinstance(make, str):
        try:
            return make(**settings)
        except TypeError as error:
            raise SettingError("make must take the settings of the grid, by name") from error
    words = {True: "yes", False: "no"}
    stated = [f"{name}={words[one] if isinstance(one, bool) else one}" for name, one in settings.items()]
    return parsed(" ".join([make, *stated]), public={"items": "from ratings"}).recommender


def _measured(
    recommender: Any, train: Ratings, test: Ratings, length: int | None, trials: TrialTable
) -> dict[str, float]:
    require(callable(getattr(recommender, "fit", None)), "make", "what makes a recommender", type(recommender))
    model = recommender.fit(train)
    record = getattr(model, "record_", None)
    trials.records += [record] if isinstance(record, FitRecord) else []
    return evaluate(model, test, n=length).figures()
