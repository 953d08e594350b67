"""`Perturbed`: users change their ratings on their own side, once, and the server learns from what they sent.

Whoever attacks volunteers nothing: fake accounts send what they like (`attack/worlds.py` asks `perturbed` what
real users send, appends the fakes, and fits by `fit_sent`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from goodfence.arrays import AnyIntegers, Floats, Words, row_numbers
from goodfence.data.ratings import Ratings
from goodfence.data.scale import Scale
from goodfence.errors import ModelFileError, require
from goodfence.models.persistence import Arrays
from goodfence.models.recommender import Traits, row_of, unfitted_copy
from goodfence.papers.published.published_recommender import Items, Wrapper, person
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import made_of, register, settings_of
from goodfence.rng import RNG, Streams
from goodfence.settings import checked

SEEDED = "The noise came from a seed, so whoever knows the seed can take it away; use rng=None."


class Sent(NamedTuple):
    """What users send, and what they keep."""

    ratings: Ratings
    """The changed ratings, of the same users and items."""
    means: Floats | None = None
    """Each user's own mean, where only deviations are sent; the ratings then are mean + spread * sent."""
    spreads: Floats | None = None


class Perturbation(Protocol):
    """How users change their ratings: a frozen value with a name, a `perturb` and a `guarantee`."""

    label: ClassVar[str]

    def perturb(self, ratings: Ratings, streams: Streams) -> Sent:
        """Return what users send; the noise of a user depends on the seed and on who they are."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what is guaranteed where there is no seed."""
        ...


@checked
@register
@dataclass(eq=False, kw_only=True, repr=False)
class Perturbed(Wrapper):
    """A recommender that learns from ratings which users changed before they sent them.

    Parameters
    ----------
    recommender : recommender or None
        What the server runs; None for `NeighbourCF(KNN(k=50))`.
    by : Perturbation
        How users change their ratings: `RandomisedPerturbation`, `NeNDS`, `BlurMe`, `RandomisedResponse`,
        `LocalLaplace`, `ItemSwap`, or your own.
    rng : RNG, optional
        None for randomness from the operating system; a seed makes an experiment repeatable, and its guarantee `none`.

    Notes
    -----
    A profile that is only asked with (`answer`) is not stored, and not changed.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> noise = gf.papers.RandomisedResponse(epsilon=2.0)
    >>> model = gf.papers.Perturbed(gf.NeighbourCF(gf.KNN(k=30)), by=noise).fit(films)
    >>> model.guarantee().status, model.guarantee().adjacency
    ('proved', 'replace')
    """

    by: Perturbation
    _kept: tuple[npt.NDArray[Any], Sent] | None = field(default=None, init=False)
    """Whose ratings were changed last, and what these users keep."""

    @property
    def label(self) -> str:  # type: ignore[override]
        """The name of the perturbation, for tables."""
        return self.by.label

    def __post_init__(self) -> None:
        super().__post_init__()
        able = all(callable(getattr(self.by, name, None)) for name in ("perturb", "guarantee"))
        require(able, "by", "a perturbation, as in RandomisedResponse(epsilon=1.0)", type(self.by))

    def settings(self) -> dict[str, Any]:
        """Return the perturbation, but for what it knows of users."""
        stated = settings_of(self.by)
        stated.pop("attribute", None)
        return {"by": stated}

    @property
    def epsilon(self) -> float | None:
        """The epsilon of the perturbation, if it has one."""
        return getattr(self.by, "epsilon", None)

    @property
    def traits(self) -> Traits:
        """What attack and audit must know: noise is drawn once, before the server sees anything."""
        stated = {name: value for name, value in self.settings()["by"].items() if value is not None}
        stated.pop("mechanism")
        words = ", ".join(f"{name}={value}" for name, value in stated.items())
        return self._traits(words, fresh_answers=False)

    def __repr__(self) -> str:
        return f"Perturbed({self.recommender!r}, by={self.by!r})"

    @checked
    def perturbed(self, ratings: Ratings, rng: RNG = None) -> Ratings:
        """Return what the users of these ratings send; what they keep for themselves stays with this object."""
        sent = self.by.perturb(ratings, Streams(rng))
        self._kept = ratings.users, sent
        return sent.ratings

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Let all users change their ratings, and learn from what they send."""
        return self.fit_sent(self.perturbed(ratings, self.rng))

    @checked
    def fit_sent(self, received: Ratings) -> Self:
        """Learn from what was sent; accounts that `perturbed` did not see have sent theirs unchanged."""
        return self._take(received, Streams(self.rng).key())

    def _learn(self, streams: Streams) -> None:
        self.means_, self.spreads_ = self._own(self.ratings_)
        learnt = self.ratings_ if self.means_ is None else self._deviations()
        self.inner_ = unfitted_copy(self.recommender, streams.key(1)).fit(learnt)

    def _own(self, received: Ratings) -> tuple[Floats | None, Floats | None]:
        """Return each account's own mean and spread: what users kept, or what an unknown account's ratings have."""
        users, sent = self._kept or (received.users, Sent(received))
        if sent.means is None or sent.spreads is None:
            return None, None
        means, spreads = means_and_spreads(received.csr)
        place = {user: at for at, user in enumerate(users.tolist())}
        for row, user in enumerate(received.users.tolist()):
            if user in place:
                means[row], spreads[row] = sent.means[place[user]], sent.spreads[place[user]]
        return means, spreads

    def _deviations(self) -> Ratings:
        csr = self.ratings_.csr
        owners = row_numbers(csr.indptr)
        left = (csr.data - self.means_[owners]) / self.spreads_[owners]  # type: ignore[index]
        moved = sparse.csr_array((left, csr.indices, csr.indptr), csr.shape)
        return on_wide_scale(self.ratings_, moved)

    def _told(self, told: Floats, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        del columns, wanted
        if self.means_ is None or self.spreads_ is None:
            return told
        if row >= 0:
            mean, spread = self.means_[row], self.spreads_[row]
        else:
            mean, spread = float(values.mean()), float(values.std()) or 1.0
        return np.asarray(mean + spread * told)

    def _answer(self, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        if self.means_ is None or row >= 0:
            return super()._answer(columns, values, wanted, row)
        if not len(values):
            return np.full(len(wanted), np.nan)
        asked = (values - values.mean()) / (float(values.std()) or 1.0)
        items = self.ratings_.items
        profile = dict(zip(items[columns].tolist(), asked.tolist(), strict=True))
        return self._told(self.inner_.predict(profile, items[wanted]), columns, values, wanted, row)

    def guarantee(self) -> Guarantee:
        """Return what the perturbation guarantees, whatever the server does with what it gets."""
        stated = self.by.guarantee()
        if self.seeded and stated.status != "none":
            return Guarantee(status="none", reason=SEEDED)
        return stated

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        if self.means_ is None or self.spreads_ is None:
            return {}
        return {"means": self.means_, "spreads": self.spreads_}

    def _restore_state(self, arrays: Arrays) -> None:
        self.means_, self.spreads_ = arrays.get("means"), arrays.get("spreads")
        shape = (self.ratings_.shape[0],)
        for kept in (self.means_, self.spreads_):
            if kept is not None and not (kept.shape == shape and np.isfinite(kept).all()):
                raise ModelFileError("what users keep must be one finite number each")

    @classmethod
    def _made_of(cls, recommender: Any, arguments: dict[str, Any]) -> Self:
        return cls(recommender, by=made_of(arguments["by"]))


def each_user(ratings: Ratings, streams: Streams) -> Iterator[tuple[int, AnyIntegers, Floats, np.random.Generator]]:
    """Hand out each user's row number, items, ratings, and own random stream."""
    for row, user in enumerate(ratings.users.tolist()):
        yield row, *row_of(ratings.csr, row), streams.at(person(user))


def words_of_users(ratings: Ratings, draw: Callable[[int, int], Words]) -> Words:
    """Return a random word for every rating, those of a user by `draw(number of ratings, person)`."""
    counts = zip(ratings.users.tolist(), np.diff(ratings.csr.indptr), strict=True)
    words = [draw(int(n), person(user)) for user, n in counts]
    return np.concatenate([*words, np.empty(0, dtype=np.uint64)])


def of_rows(ratings: Ratings, rows: Sequence[tuple[AnyIntegers, Floats]]) -> sparse.csr_array:
    """Return the matrix of what each user sends: columns and values."""
    columns, values = zip(*rows, strict=True)
    starts = np.cumsum([0, *map(len, columns)])
    parts = (np.concatenate(values), np.concatenate(columns), starts)
    csr = sparse.csr_array(parts, shape=ratings.shape)
    csr.sort_indices()
    return csr


def means_and_spreads(csr: sparse.csr_array) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each row; 0 and 1 where there is nothing to have any."""
    n_rows, counts, owners = csr.shape[0], np.diff(csr.indptr), row_numbers(csr.indptr)
    means = np.bincount(owners, csr.data, n_rows) / np.maximum(counts, 1)
    squares = np.bincount(owners, (csr.data - means[owners]) ** 2, n_rows)
    spreads = np.sqrt(squares / np.maximum(counts, 1))
    return means, np.where(spreads > 0, spreads, 1.0)


def on_wide_scale(ratings: Ratings, csr: sparse.csr_array) -> Ratings:
    """Return ratings of the same users and items with values off their scale, on one that holds these and those."""
    scale = ratings.scale
    lowest = min(scale.lowest, float(csr.data.min(initial=0.0)))
    highest = max(scale.highest, float(csr.data.max(initial=0.0)))
    wide = Scale(lowest, highest, None, declared=scale.declared)
    declared = ratings.items_declared
    return Ratings(csr, ratings.users, ratings.items, wide, ratings.titles, items_declared=declared)
