"""What recommenders for events share that learn the same from the same events, so that a saved one learns it again."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Any, ClassVar, Self

from goodfence.arrays import AnyIntegers, Floats
from goodfence.data.ratings import Feedback, Ratings
from goodfence.models.persistence import (
    Arrays,
    pack_ratings,
    refusing,
    unpack_ratings,
    write_model,
)
from goodfence.models.recommender import FittedRecommender, Traits, require_feedback
from goodfence.settings import checked


class EventModel(FittedRecommender):
    """A recommender of events without any chance. Subclasses say what is learnt, and how a profile is scored."""

    name: ClassVar[str]
    label: ClassVar[str]
    learns_from: ClassVar[Feedback] = "implicit"
    """Ratings, or events."""
    _saved: ClassVar[tuple[str, ...]] = ()
    """The arguments that are saved."""

    @abstractmethod
    def _learn(self) -> None:
        """Make what lists need of `ratings_`."""

    def __repr__(self) -> str:
        stated = (f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({', '.join(stated)})"

    @property
    def traits(self) -> Traits:
        """What attack and audit must know: lists rest on sums over everybody."""
        stated = {name: value for name, value in self.settings().items() if value is not None}
        words = ", ".join(f"{name}={value:g}" for name, value in stated.items())
        own: dict[str, Any] = {"settings": words, "n_neighbours": 0, "fresh_answers": False}
        return Traits(family=self.label, title=repr(self), **own)

    def settings(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as they are saved."""
        return {name: getattr(self, name) for name in self._saved}

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Learn from events: `gf.load(..., feedback="implicit")`, or the likes among ratings, `ratings.likes(4)`."""
        require_feedback(ratings, self.learns_from, type(self).__name__)
        self.ratings_ = ratings
        self._learn()
        return self

    def predict_cells(self, rows: Any, columns: Any) -> Floats:
        """Return the scores of cells given by user row and item column, as lists are ranked by them."""
        return self._score_cells(rows, columns)

    def _fold_in(self, columns: AnyIntegers, values: Floats, wanted: AnyIntegers) -> Floats:
        return self._list_scores(columns, values)[wanted]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the events and the settings to the file `path`; loading learns the rest again."""
        self._require_fitted()
        stated, arrays = pack_ratings(self.ratings_)
        settings = {"arguments": self.settings(), "ratings": stated}
        write_model(path, type(self).__name__, settings, arrays)

    @classmethod
    def from_saved(cls, settings: dict[str, Any], arrays: Arrays) -> Self:
        """Return the fitted model of a manifest's settings and its arrays."""
        with refusing("the model's settings are not sound; save the model again"):
            return cls(**settings["arguments"]).fit(unpack_ratings(settings["ratings"], arrays))
