"""`NeighbourCF`: neighbourhood-based collaborative filtering with any selection mechanism.

The neighbours are drawn once, in `fit`: asking again reveals nothing new.
"""

from __future__ import annotations

import dataclasses
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import AnyIntegers, Flags, Floats
from goodfence.data.ratings import Ratings
from goodfence.errors import ModelFileError, require
from goodfence.models.persistence import Arrays, refusing
from goodfence.models.recommender import Among, Center, Fallback, FittedRecommender, Traits, rated_rows, row_of
from goodfence.neighbours.baseline import Baseline, without_noise
from goodfence.neighbours.candidate_lists import Axis, RowsAgainstAll, compared_rows, rows_along
from goodfence.neighbours.draw import Chosen, Draws, choose_from_lists
from goodfence.neighbours.lists import ItemVotes, Ranked, UserVotes
from goodfence.neighbours.predict import Neighbourhoods, Over
from goodfence.neighbours.raters import RaterNeighbourhoods
from goodfence.neighbours.similarity import Similarity
from goodfence.parallel import thread_count
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import made_of, register, settings_of
from goodfence.rng import RNG, Streams, seed_of
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Mechanism, is_mechanism
from goodfence.settings import Count, checked

_ON_EVENTS = {"center": None, "fallback": None, "over": "raters", "min_neighbours": 1}
"""What says how ratings are averaged, and must be left as it is for events."""
_PLAIN_SETTINGS = ("axis", "among", *_ON_EVENTS, "threads", "progress")
"""The settings that are saved as they are."""
_CHOSEN = ("neighbours", "similarities", "weights")
"""The arrays of a saved model, beside its ratings; a fitted model has them with an underscore."""
_OF_EVENTS = ("cosine", "jaccard")  # the similarities that say something of events, which are all alike


@checked
@register
class NeighbourCF(FittedRecommender):
    """Predict from the ratings of chosen neighbours [PRED], or from their events.

    Lists are ranked by the weighted sum of the neighbours' ratings of the item, which [PRED] divides by the sum of the
    weights (item-based: of the user's ratings of the item's neighbours). Events count 1 each, and `predict` returns
    these sums for them.

    Parameters
    ----------
    mechanism : Mechanism
        Who becomes a neighbour: `KNN`, `NPNS`, `PNCF`, `PPNS`, or your own.
    axis : {"user", "item"}, default "user"
        User-based, or item-based.
    similarity : str or Similarity, default "cosine"
        `cosine` [COS], `cosine_corated`, `pearson`, `centred_cosine`, `adjusted_cosine`, `pearson_baseline`,
        `jaccard`, `msd`, or a `Similarity`.
    center : {"user_mean", "item_mean", "bias"}, optional
        Average by how much the neighbours' ratings differ from these, and add the target's own [CENTER]; None averages
        the ratings.
    among : {"all", "raters"}, default "all"
        Choose a row's neighbours once, among all rows, as the paper does; or for each item among those who rated it
        (item-based: among the items that the user rated), as LensKit and Surprise do.
    shrinkage, min_common : float and int, optional
        As in `Similarity`; None leaves it as it is there.
    min_neighbours : int, default 1
        With fewer neighbours who rated the item there is no prediction.
    over : {"raters", "neighbours"}, default "raters"
        Divide by the similarities of the neighbours who rated the item, or of all of them, as [PRED] is printed: then
        an item that no neighbour rated is predicted as 0.
    fallback : {"item_mean", "user_mean", "global_mean", "bias"}, optional
        What to predict where there would be no prediction; None for NaN.
    rng : RNG, optional
        None for randomness from the operating system; a seed makes an experiment repeatable.
    threads : int, optional
        How many threads to use; None for as many as there are cores.
    progress : bool, optional
        Show a bar on standard error during `fit`; None for a terminal only.

    Notes
    -----
    With `among="raters"` there is no `neighbours_`: the choice depends on the item. Chance is still fixed by `fit`.
    Events are not averaged: their similarity is `cosine` or `jaccard`, and `center`, `fallback`, `over` and
    `min_neighbours` keep their defaults.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> model = gf.NeighbourCF(gf.KNN(k=30)).fit(films)
    >>> len(model.recommend(films.users[0], n=5).items)
    5
    """

    _saved_as = "NeighbourCF"  # a subclass too
    computes_ahead = True
    """Whether `fit` computes all item similarities where neighbours are chosen among raters, as LensKit does."""

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        axis: Axis = "user",
        similarity: Similarity | str = "cosine",
        center: Center | None = None,
        among: Among = "all",
        shrinkage: float | None = None,
        min_common: int | None = None,
        min_neighbours: Count = 1,
        over: Over = "raters",
        fallback: Fallback | None = None,
        rng: RNG = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        named = type(mechanism).__name__
        require(is_mechanism(mechanism), "mechanism", "a selection mechanism, as in KNN(k=50)", named)
        alike = among == "raters" and over == "neighbours"
        require(not alike, "over", "'raters' with among='raters': all neighbours rated", over)
        few = min_neighbours <= mechanism.k
        require(few, "min_neighbours", f"at most k={mechanism.k}", min_neighbours)
        thread_count(threads)
        self.mechanism = mechanism
        self.axis, self.center, self.among, self.over = axis, center, among, over
        self.similarity = Similarity.of(similarity, shrinkage=shrinkage, min_common=min_common)
        self.min_neighbours, self.fallback = min_neighbours, fallback
        self.rng, self.threads, self.progress = rng, threads, progress

    @classmethod
    def accurate(
        cls,
        mechanism: Mechanism | None = None,
        *,
        rng: RNG = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Return an item-based neighbourhood with settings for accuracy, not fitted yet.

        Items are compared without their means. The nearest 20 of those the user rated answer (`KNN(k=20)`, unless
        `mechanism` is given); if they are fewer than 3, the user and item biases do.

        Examples
        --------
        >>> import goodfence as gf
        >>> train, test = gf.holdout(gf.load("movietweetings"), fraction=0.2, rng=7)
        >>> accurate, paper = gf.NeighbourCF.accurate(), gf.NeighbourCF(gf.KNN(k=20))
        >>> gf.evaluate(accurate.fit(train), test).mae < gf.evaluate(paper.fit(train), test).mae
        True
        """
        chosen = KNN(k=20) if mechanism is None else mechanism
        return cls(
            chosen,
            axis="item",
            similarity="centred_cosine",
            center="item_mean",
            among="raters",
            min_neighbours=min(3, chosen.k),
            fallback="bias",
            rng=rng,
            threads=threads,
            progress=progress,
        )

    def __repr__(self) -> str:
        usual = {"center": None, "among": "all", "min_neighbours": 1}
        others = [name for name, value in usual.items() if getattr(self, name) != value]
        words = (f", {name}={getattr(self, name)!r}" for name in others)
        own = f"{self.mechanism}, axis={self.axis!r}, similarity='{self.similarity}'"
        return f"NeighbourCF({own}{''.join(words)})"

    @property
    def traits(self) -> Traits:
        """What attack and audit must know: its neighbours are users, or it says nothing of them."""
        mechanism = self.mechanism
        own = type(self) is NeighbourCF  # a subclass may answer otherwise
        label = getattr(mechanism, "label", type(mechanism).__name__)
        settings = _settings_in_words(mechanism)
        if self.among == "raters":
            label += ", among raters"
        if self.center is not None:
            settings += f", center={self.center}"
        how: dict[str, Any] = {"among": self.among, "center": self.center, "fresh_answers": False}
        if self.axis == "item":
            return Traits(family=f"{label}, item-based", settings=settings, title=repr(self), **how)
        usual = (Similarity.of("cosine"), "raters", None)
        plain = own and (self.similarity, self.over, self.fallback) == usual and self._by_lists
        return Traits(
            family=label,
            settings=settings,
            title=repr(mechanism) if plain else repr(self),
            mechanism=mechanism,
            similarity=self.similarity,
            n_neighbours=mechanism.k,
            needs_refits=not own or self.fallback is not None or not self._by_lists,
            answers_alike=False,
            **how,
        )

    @property
    def _by_lists(self) -> bool:
        """Whether candidate lists of plain ratings alone decide what is predicted."""
        plain = self.center is None and self.among == "all" and self.min_neighbours == 1
        return plain and not self.similarity.counts_common and self.similarity.base("user") is None

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Choose the neighbours of every row, once."""
        self._prepare(ratings, Streams(self.rng).key())
        if self._raters is not None:
            if self.axis == "item" and self.computes_ahead:
                self._raters.similarities.keep_all(self.threads)
            return self
        return self._take(self._draws.choose(threads=self.threads, progress=self.progress))

    def restore(self, ratings: Ratings, key: int, chosen: Chosen | None) -> Self:
        """Take over what another fit chose; None where neighbours are chosen for each item."""
        self._prepare(ratings, key)
        return self if chosen is None else self._take(chosen)

    def _prepare(self, ratings: Ratings, key: int) -> None:
        self._events = ratings.feedback == "implicit"
        if self._events:
            named = self.similarity.name
            require(named in _OF_EVENTS, "similarity", "cosine or jaccard on events", named)
            for name, usual in _ON_EVENTS.items():
                stated = getattr(self, name)
                require(stated == usual, name, f"{usual!r} on events: nothing is averaged", stated)
        profiles = compared_rows(ratings, self.axis, self.similarity)
        self._draws = Draws(profiles, self.mechanism, self.similarity, key)
        self.ratings_, self.key_ = ratings, key
        self._center = Baseline.of(ratings, self.center) if self.center else None
        self._fallback = Baseline.of(ratings, self.fallback) if self.fallback else None
        self._alike: RowsAgainstAll | None = None
        self._raters: RaterNeighbourhoods | None = None
        self._voters: RaterNeighbourhoods | None = None
        self._other_axis: Axis = "item" if self.axis == "user" else "user"
        if self.among == "raters":
            rated = self._averaged(self._other_axis)
            self._raters = RaterNeighbourhoods(self._draws, rated, self.min_neighbours)
        else:
            self._rated = self._averaged(self.axis)

    def _averaged(self, axis: Axis) -> sparse.csr_array:
        """Return what is averaged over neighbours, with the users or the items as rows."""
        csr = rows_along(self.ratings_, axis).csr
        if self._center is None:
            return csr
        return (self._center if axis == "user" else self._center.transposed).deviations(csr)

    def _take(self, chosen: Chosen) -> Self:
        self.neighbours_, self.weights_ = chosen.neighbours, chosen.weights
        self.similarities_ = chosen.similarities
        self._near = self._around(chosen)
        self._item_votes: ItemVotes | None = None
        if self.axis == "item":
            n_items = self.ratings_.shape[1]
            self._item_votes = ItemVotes.of(chosen.neighbours, chosen.weights, n_items)
        return self

    def _around(self, chosen: Chosen) -> Neighbourhoods:
        over_raters = self.over == "raters"
        return Neighbourhoods(chosen.neighbours, chosen.weights, over_raters, self.min_neighbours)

    def predict_cells(self, rows: AnyIntegers, columns: AnyIntegers) -> Floats:
        """Return predictions for cells given by user row and item column, as `predict` does."""
        self._require_fitted()
        rows, columns = self.ratings_.cells(rows, columns)
        if self._events:
            return super().predict_cells(rows, columns)
        cells = (rows, columns) if self.axis == "user" else (columns, rows)
        if self._raters is not None:
            found = self._raters.predict(*cells, threads=self.threads)
        else:
            found = self._near.predict(self._rated, *cells, threads=self.threads)
        if self._center is not None:
            found = self._center.at(rows, columns) + found
        if self._fallback is not None:
            found = np.where(np.isnan(found), self._fallback.at(rows, columns), found)
        return found

    def _row_list_scores(self, row: int) -> Floats:
        if self.axis == "item":
            return self._list_scores(*row_of(self.ratings_.csr, row))
        if self._raters is not None:
            every = np.arange(self.ratings_.shape[1])
            return self._voting(self._raters).predict(np.full(len(every), row), every)
        return UserVotes(self.ratings_.csr).scores(self.neighbours_[row], self.weights_[row])

    def _list_scores(self, columns: AnyIntegers, values: Floats) -> Floats:
        if self._raters is not None:
            every, voters = np.arange(self.ratings_.shape[1]), self._voting(self._raters)
            if self.axis == "item":
                return voters.predict_column(columns, values, every)
            return self._from_raters(voters, columns, values, every)
        if self._item_votes is not None:
            return self._item_votes.scores(columns, values)
        chosen = self._chosen_for(columns, values)
        return UserVotes(self.ratings_.csr).scores(chosen.neighbours[0], chosen.weights[0])

    def _voting(self, raters: RaterNeighbourhoods) -> RaterNeighbourhoods:
        """Return what adds up the ratings of neighbours who are chosen for each item."""
        if self._voters is None:
            self._voters = raters.voting(rows_along(self.ratings_, self._other_axis).csr)
        return self._voters

    def _rank_rows(self, rows: AnyIntegers, n: int, allowed: Flags) -> Ranked:
        if self._raters is not None:
            return super()._rank_rows(rows, n, allowed)
        csr = self.ratings_.csr
        own = rated_rows(csr, rows)
        if self._item_votes is not None:
            return self._item_votes.rank(own, allowed, n, self.threads)
        near = self.neighbours_[rows], self.weights_[rows]
        return UserVotes(csr).rank(near, own, allowed, n, self.threads)

    def _similarities(self, column: int) -> Floats | None:
        """Return the weights of the item's neighbours; where they depend on who asks, of the nearest, if all may be."""
        if self.axis == "user":
            # Which users are chosen says nothing of items: these are compared by all who rated them.
            if self._alike is None:
                self._alike = RowsAgainstAll(compared_rows(self.ratings_, "item", self.similarity), self.similarity)
            return _or_unknown(self._alike.block(np.array([column]))[0])
        if self._raters is not None:
            known = isinstance(self.mechanism, KNN)
            return _or_unknown(self._raters.similarities.of(np.array([column]))[0]) if known else None
        found = np.full(self.ratings_.shape[1], np.nan)
        found[self.neighbours_[column]] = self.weights_[column]
        return found

    def guarantee(self) -> Guarantee:
        """Return what the mechanism guarantees."""
        return self.mechanism.guarantee()

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as they are saved."""
        plain = {name: getattr(self, name) for name in _PLAIN_SETTINGS}
        made = {"mechanism": settings_of(self.mechanism), "rng": seed_of(self.rng)}
        return {**made, "similarity": dataclasses.asdict(self.similarity), **plain}

    def _stated(self) -> dict[str, Any]:
        return {**self.settings(), "key": self.key_}

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, f"{name}_") for name in _CHOSEN if self.among == "all"}

    @classmethod
    def _restored(cls, ratings: Ratings, settings: dict[str, Any], arrays: Arrays) -> Self:
        stated = {name: value for name, value in settings.items() if name != "ratings"}
        described, key = stated.pop("mechanism"), stated.pop("key")
        with refusing("the model's mechanism or a setting of it is not one of this goodfence"):
            mechanism: Mechanism = made_of(described)
        if type(key) is not int or not 0 <= key < 1 << 64:
            raise ModelFileError("the key of the model must be a 64-bit integer")
        model = cls(mechanism, similarity=Similarity(**stated.pop("similarity")), **stated)
        if model.among == "raters":
            return model.restore(ratings, key, None)
        chosen = Chosen(*(arrays[name] for name in _CHOSEN))
        _check_chosen(chosen, ratings.shape[0 if model.axis == "user" else 1], mechanism.k)
        return model.restore(ratings, key, chosen)

    def _fold_in(self, columns: AnyIntegers, values: Floats, wanted: AnyIntegers) -> Floats:
        """Return predictions of `wanted` for a user with these ratings, whether in the data or not."""
        if self._events:
            return self._list_scores(columns, values)[wanted]
        averaged, center, fallback = values, self._center, self._fallback
        own = 0.0 if center is None else center.own(columns, values)
        if center is not None:
            averaged = without_noise(values - center.for_own(own, columns))
        if self.axis == "item":
            found = (self._raters or self._near).predict_column(columns, averaged, wanted)
        elif self._raters is not None:
            found = self._from_raters(self._raters, columns, values, wanted)
        else:  # the candidate list, the draw, then [PRED]
            near = self._around(self._chosen_for(columns, values))
            found = near.predict(self._rated, np.zeros(len(wanted), dtype=np.int64), wanted)
        if center is not None:
            found = center.for_own(own, wanted) + found
        if fallback is not None:
            expected = fallback.for_own(fallback.own(columns, values), wanted)
            found = np.where(np.isnan(found), expected, found)
        return found

    def _from_raters(
        self, raters: RaterNeighbourhoods, columns: AnyIntegers, values: Floats, wanted: AnyIntegers
    ) -> Floats:
        others = self._draws.profiles.lay_out([columns], [values])
        return raters.predict_fold_in(others, _profile_key(self.key_, columns, values), wanted)

    def _chosen_for(self, columns: AnyIntegers, values: Floats) -> Chosen:
        """Return the neighbours of a fold-in among the users: its candidate list, and its draw."""
        draws, others = self._draws, self._draws.profiles.lay_out([columns], [values])
        key, n_rows = _profile_key(self.key_, columns, values), draws.profiles.n_rows
        engine, row = RowsAgainstAll(draws.profiles, self.similarity), np.zeros(1, dtype=np.int64)
        lists = engine.nearest(others, row, self.mechanism.reach(n_rows), themselves=False)
        bounds = draws.profile_bounds(others)
        if bounds is not None and bounds.ndim == 2:
            bounds = np.take_along_axis(bounds, lists[0].astype(np.int64), axis=1)
        return Chosen(*choose_from_lists(self.mechanism, key, np.array([n_rows]), *lists, bounds))


def _or_unknown(similarities: Floats) -> Floats:
    """Return the similarities with NaN in place of 0."""
    return np.where(similarities == 0, np.nan, similarities)


def _settings_in_words(mechanism: Any) -> str:
    """Return the settings that tell members of one family apart; an epsilon of 1 where it is usual is not said."""
    words, bounded = [f"k={mechanism.k}"], hasattr(mechanism, "within")
    beta = getattr(mechanism, "beta", None) or getattr(mechanism, "within", None)
    if beta is not None or bounded:
        words.append("whole list" if beta is None else f"β={beta}")
    epsilon = getattr(mechanism, "epsilon", None)
    if epsilon is not None and (bounded or epsilon != 1):
        words.append(f"ε={epsilon:g}")
    return ", ".join(words)


def _profile_key(key: int, columns: AnyIntegers, values: Floats) -> int:
    """Return a key for the draw of a profile: the same profile, in any order, gets the same one."""
    order = np.argsort(columns)
    digest = blake2b(key.to_bytes(8, "little"), digest_size=8)
    digest.update(np.ascontiguousarray(columns[order], dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(values[order], dtype="<f8").tobytes())
    return int.from_bytes(digest.digest(), "little")


def _check_chosen(chosen: Chosen, n_rows: int, k: int) -> None:
    """Raise unless a saved model's neighbours are k rows of its own for each row."""
    near, values = chosen.neighbours, (chosen.similarities, chosen.weights)
    if not (
        all(array.shape == (n_rows, k) for array in (near, *values))
        and all(array.dtype == np.float64 and np.isfinite(array).all() for array in values)
        and near.dtype == np.int32
        and ((near >= 0) & (near < n_rows)).all()
    ):
        shape = f"of the shape ({n_rows}, {k}), with finite similarities and weights"
        raise ModelFileError(f"the model's neighbours must be rows of its ratings {shape}")
