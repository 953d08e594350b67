"""`NoisyAnswers`: Laplace noise on every prediction, the idea that the paper rejects (Sarathy & Muralidhar 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from goodfence.arrays import Floats
from goodfence.errors import ModelFileError, SettingError, require
from goodfence.models.persistence import Arrays
from goodfence.models.recommender import Traits
from goodfence.papers.published.published_recommender import Items, Wrapper, middle, person
from goodfence.papers.published.randomised_response import laplace, words_for
from goodfence.privacy.guarantee import Guarantee
from goodfence.registry import register
from goodfence.rng import Streams
from goodfence.settings import Count, Finite, Positive, checked

_FINER = 256
"""A limited number of answers is given on this many steps of the scale, so that their distribution is exact."""


@checked
@register
@dataclass(eq=False, kw_only=True, repr=False)
class NoisyAnswers(Wrapper):
    """Another recommender's predictions with Laplace noise of scale `sensitivity / epsilon` on each answer.

    Parameters
    ----------
    recommender : recommender, optional
        Whose predictions; None for `NeighbourCF(KNN(k=50))`.
    epsilon : float, default 1.0
        Of differential privacy, for **one** answer.
    sensitivity : float, optional
        How far one rating moves a prediction at most; None for the length of the scale, which is right: where one
        neighbour alone rated the item, the prediction is their rating.
    fallback : float, optional
        What stands for no prediction, since whether there is one depends on single users; None for the middle of the
        scale. It must not depend on the data.
    clip : bool, default True
        Whether noisy answers are clipped to the scale.
    fresh : bool, default True
        New noise for each question, or noise that is fixed by the asker's profile and the item.
    questions : int, optional
        After so many answers there are no more; None for no end, and then for no guarantee.
    rng : RNG, optional
        As in `NeighbourCF`.

    Examples
    --------
    >>> import goodfence as gf
    >>> films = gf.load("movietweetings")
    >>> model = gf.papers.NoisyAnswers(gf.NeighbourCF(gf.KNN(k=30)), epsilon=4.0, rng=7).fit(films)
    >>> first, second = (model.predict({films.items[0]: 8.0}, films.items[1:2]) for _ in range(2))
    >>> bool(first != second), model.guarantee().status
    (True, 'none')
    """

    name: ClassVar[str] = "noisy-answers"
    label: ClassVar[str] = "Noisy answers"

    epsilon: Positive = 1.0
    sensitivity: Positive | None = None
    fallback: Finite | None = None
    clip: bool = True
    fresh: bool = True
    questions: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        limited = self.questions is not None
        require(not limited or self.clip, "clip", "True where questions are limited", self.clip)

    @property
    def traits(self) -> Traits:
        """What attack and audit must know: the same question gets another answer each time."""
        return self._traits(f"ε={self.epsilon:g} per answer", fresh_answers=self.fresh)

    def _learn(self, streams: Streams) -> None:
        super()._learn(streams)
        self._restore_state({})

    def _restore_state(self, arrays: Arrays) -> None:
        """Begin to count the answers; a saved model has given those of `asked`."""
        self._draws = Streams(self.key_).at(0)
        self.asked_ = int(arrays["asked"][0]) if "asked" in arrays else 0
        if self.asked_ < 0:
            raise ModelFileError("the model must say how many answers it gave")

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"asked": np.array([self.asked_], dtype=np.int64)}

    def _told(self, told: Floats, columns: Items, values: Floats, wanted: Items, row: int) -> Floats:
        del row
        scale = self.ratings_.scale
        instead = middle(self.ratings_) if self.fallback is None else self.fallback
        plain = np.where(np.isnan(told), instead, told)
        if self.questions is not None:
            return self._limited(np.clip(plain, scale.lowest, scale.highest))
        width = (self.sensitivity or scale.highest - scale.lowest) / self.epsilon
        if self.fresh:
            noise = self._draws.laplace(0.0, width, len(told))
        else:
            own = Streams(self.key_).at(1, person([columns.tolist(), values.tolist()]))
            noise = own.laplace(0.0, width, self.ratings_.shape[1])[wanted]
        noisy: Floats = plain + noise
        return np.clip(noisy, scale.lowest, scale.highest) if self.clip else noisy

    def _limited(self, plain: Floats) -> Floats:
        """Return answers by an exact channel, as long as there are any left."""
        left = (self.questions or 0) - self.asked_
        if len(plain) > left:
            raise SettingError(f"questions must be fewer: {left} answers are left")
        scale = self.ratings_.scale
        step = (scale.highest - scale.lowest) / _FINER
        held = np.rint((plain - scale.lowest) / step).astype(np.int64)
        channel = laplace(_FINER + 1, 1, self.epsilon)
        words = words_for(Streams(self.rng), len(plain), self.asked_)
        self.asked_ += len(plain)
        return np.asarray(scale.lowest + step * channel.send(held, words))

    def guarantee(self) -> Guarantee:
        """Return what holds: epsilon for each answer, so nothing where their number has no end."""
        if self.questions is None or self.sensitivity is not None or self.seeded:
            return Guarantee(
                status="none",
                reason="Each answer has its own epsilon, and there is no end to the answers: noise averages out.",
            )
        return Guarantee(
            status="proved",
            unit="rating",
            adjacency="add/remove",
            epsilon=self.epsilon * self.questions,
            delta=0.0,
            reason=f"Every answer lies on the scale and gets Laplace noise of its length; at most {self.questions} "
            "are given, and their epsilons add up.",
        )
