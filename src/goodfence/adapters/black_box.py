"""`BlackBox`: any recommender, seen from outside only, for the same attack and audit as ours."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from goodfence.adapters.http import Endpoint
from goodfence.arrays import Floats
from goodfence.data.ratings import Profile, Ratings
from goodfence.errors import BlackBoxProblem, NotFittedError, SettingError, require
from goodfence.models.recommender import IdsLike
from goodfence.privacy.guarantee import Guarantee
from goodfence.settings import checked, one_of

Asks: TypeAlias = Literal["users", "profile", "lists", "profile_lists"]

_METHOD = {
    "users": "predict",
    "profile": "answer",
    "lists": "recommend",
    "profile_lists": "answer_list",
}


@checked
class BlackBox:
    """Somebody's recommender: it learns from ratings, it answers, and nothing else is known of it.

    An attack compares two worlds, the data with the target and without, so the box must be able to learn: a
    recommender that was fitted once and for all can be asked, but not audited.

    Parameters
    ----------
    box : callable, object or str
        How it learns. A function `train(ratings)` that returns what can be asked; or an object with
        `fit(ratings)`, of which a deep copy is fitted in each world; or the address of a service, "https://..."
        (see `Endpoint`). What can be asked is an object with the method below, or the function itself. A `train`
        with a parameter `rng` gets a seed, the same in both worlds; so does an attribute `rng` of an object.
    asks : {"users", "profile", "lists", "profile_lists"}, default "users"
        `users`: asked by `predict(users, items)` for pairs of users in the data and items; the asking fake is
        in the data. `profile`: asked by `answer({item: rating}, items)` for one who is out of sample. Both return one
        number for each item, NaN or None where there is none. `lists` and `profile_lists` are for events: asked by
        `recommend(user, n)` or `answer_list({item: value}, n)`, which return ids, best first, or ids and scores.
    rng : int, optional
        The seed that is handed on; an attack sets it for each target.

    Examples
    --------
    >>> import goodfence as gf
    >>> def train(ratings):
    ...     means = ratings.csr.sum(axis=0) / np.maximum(np.diff(ratings.transposed.csr.indptr), 1)
    ...     return lambda users, items: means[ratings.columns(items)]
    >>> films = gf.load("movietweetings")
    >>> report = gf.KNNAttack(known=8, fakes=20).run(films, BlackBox(train), targets=5, rng=7)
    >>> report.coverage
    1.0
    """

    def __init__(
        self,
        box: Callable[..., Any] | object,
        *,
        asks: Asks = "users",
        rng: int | None = None,
    ) -> None:
        one_of(asks, "asks", get_args(Asks))
        self.box = Endpoint(url=box) if isinstance(box, str) else box
        self.asks: Asks = asks
        self.rng = rng
        _check_box(self.box, _METHOD[asks])

    def __repr__(self) -> str:
        return f"BlackBox({_name(self.box)}, asks={self.asks!r})"

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Let the box learn from these ratings."""
        trained = _trained(self.box, ratings, self.rng)
        method = getattr(trained, _METHOD[self.asks], trained)
        if not callable(method):
            raise BlackBoxProblem(
                f"what the black box trained must be a function or have {_METHOD[self.asks]}, "
                f"got {type(trained).__name__}"
            )
        self.trained_: Callable[..., Any] = method
        return self

    # An attack asks from inside whom it can ask from inside, and looks for `predict` to see.
    @property
    def predict(self) -> Callable[[IdsLike, IdsLike], Floats]:
        """`predict(users, items)`: the predicted rating of users[j] for items[j]; not there if `asks="profile"`."""
        if self.asks != "users":
            raise AttributeError(f"this black box is asked otherwise: use {_METHOD[self.asks]}")
        return self._ask

    @property
    def answer(self) -> Callable[[Profile, IdsLike], Floats]:
        """`answer(profile, items)`: predictions for an out-of-sample user; not there if `asks="users"`."""
        if self.asks != "profile":
            raise AttributeError(f"this black box is asked otherwise: use {_METHOD[self.asks]}")
        return self._ask

    @property
    def recommend(self) -> Callable[[Any, int], Any]:
        """`recommend(user, n)`: the n best items of a user; there if `asks="lists"`."""
        if self.asks != "lists":
            raise AttributeError(f"this black box is asked otherwise: use {_METHOD[self.asks]}")
        return self._ask_list

    @property
    def answer_list(self) -> Callable[[Any, int], Any]:
        """`answer_list(profile, n)`: the n best items of an out-of-sample user; there if `asks="profile_lists"`."""
        if self.asks != "profile_lists":
            raise AttributeError(f"this black box is asked otherwise: use {_METHOD[self.asks]}")
        return self._ask_list

    def guarantee(self) -> Guarantee:
        """Return that there is none: a guarantee is a property of what is inside."""
        return Guarantee(status="none", reason="Nothing is known of what is inside a black box.")

    def _ask_list(self, whom: Any, n: int) -> Any:
        self._require_trained()
        return self.trained_(whom, n)

    def _require_trained(self) -> None:
        if not hasattr(self, "trained_"):
            raise NotFittedError("the model must be fitted before it is asked; call fit(ratings)")

    def _ask(self, whom: Any, items: IdsLike) -> Floats:
        self._require_trained()
        if self.asks == "users":
            require(len(whom) == len(items), "items", "as many as users", len(items))
        return _numbers(self.trained_(whom, items), len(items))


def _check_box(box: object, method: str) -> None:
    learns = callable(getattr(box, "fit", None))
    asked = callable(getattr(box, method, None))
    if isinstance(box, type) and learns:
        raise SettingError(f"box must be an instance, got the class {box.__name__}")
    if learns and not asked:
        raise SettingError(
            f"box must have {method} as well as fit (see asks=), got {type(box).__name__}"
        )
    if not learns and asked:
        raise SettingError(
            "box must be able to learn, for an attack compares two worlds: give an object with fit, or a "
            f"function train(ratings) that returns what can be asked, got {type(box).__name__}"
        )
    if not (learns or callable(box) or isinstance(box, Endpoint)):
        raise SettingError(
            "box must be a function train(ratings), an object with fit, or the address of a service, "
            f"got {type(box).__name__}"
        )


def _trained(box: Any, ratings: Ratings, rng: int | None) -> Any:
    if isinstance(box, Endpoint):
        return box.train(ratings, rng=rng)
    if callable(getattr(box, "fit", None)):
        model = copy.deepcopy(box)
        if rng is not None and hasattr(model, "rng"):
            model.rng = rng
        returned = model.fit(ratings)
        return model if returned is None else returned
    return box(ratings, rng=rng) if _takes_rng(box) else box(ratings)


def _takes_rng(function: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(function).parameters
    except ValueError:  # a function written in C need not have one
        return False


def _numbers(answers: Any, n: int) -> Floats:
    """Return the answers as one number for each question; what they are is told to nobody."""
    try:
        numbers = np.array(answers, dtype=np.float64)
    except (TypeError, ValueError):
        raise BlackBoxProblem("the black box must answer with numbers, and did not") from None
    if numbers.shape != (n,):
        raise BlackBoxProblem(
            f"the black box must answer each question once: {n} were asked, and the answers have "
            f"the shape {numbers.shape}"
        )
    if np.isinf(numbers).any():
        raise BlackBoxProblem("the black box must answer with finite numbers, NaN or None")
    return numbers


def _name(box: object) -> str:
    """Return what kind of box this is, and nothing of what is in it."""
    if isinstance(box, Endpoint):
        return repr(box)
    return str(getattr(box, "__name__", type(box).__name__))
