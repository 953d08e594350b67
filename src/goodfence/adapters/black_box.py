"""`BlackBox`: any recommender, seen from outside only, for the same attack and audit as ours."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from goodfence.adapters.http import Endpoint
from goodfence.arrays import Floats
from goodfence.data.ratings import Ratings
from goodfence.errors import BlackBoxProblem, NotFittedError, SettingError, require
from goodfence.privacy.guarantee import Guarantee
from goodfence.settings import checked

Asks: TypeAlias = Literal["users", "profile", "lists", "profile_lists"]

_METHOD = {"users": "predict", "profile": "predict", "lists": "recommend", "profile_lists": "recommend"}


@checked
class BlackBox:
    """Any recommender, seen from outside: it learns from ratings and it answers.

    An attack compares two worlds, the data with the target and without, so the box must be able to learn: a recommender
    that is already fitted cannot be audited.

    Parameters
    ----------
    box : callable, object or str
        A function `train(ratings)` that returns what can be asked; or an object with `fit(ratings)`, of which a deep
        copy is fitted in each world; or the address of a service, "https://..." (see `Endpoint`). What can be asked is
        an object with the method below, or a function. A `train` with a parameter `rng`, or an object with an attribute
        `rng`, gets a seed, the same in both worlds.
    asks : {"users", "profile", "lists", "profile_lists"}, default "users"
        `users`: ask by `predict(users, items)`, for pairs of users in the data and items. `profile`: ask by
        `predict({item: rating}, items)`, for an out-of-sample user. Both return one number for each item, or NaN or
        None. For events, `lists`: ask by `recommend(user, n)`; `profile_lists`: by `recommend({item: value}, n)`.
        Both return ids, best first, or ids and scores.
    rng : int, optional
        The seed of the box; an attack sets it for each target.

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

    def __init__(self, box: Callable[..., Any] | object, *, asks: Asks = "users", rng: int | None = None) -> None:
        self.box = Endpoint(url=box) if isinstance(box, str) else box
        self.asks: Asks = asks
        self.profiles_only = asks.startswith("profile")
        self.rng = rng
        _check_box(self.box, _METHOD[asks])

    def __repr__(self) -> str:
        box = self.box  # its name, and nothing of what is in it
        name = box if isinstance(box, Endpoint) else getattr(box, "__name__", type(box).__name__)
        return f"BlackBox({name!s}, asks={self.asks!r})"

    @checked
    def fit(self, ratings: Ratings) -> Self:
        """Let the box learn from these ratings."""
        trained, name = _trained(self.box, ratings, self.rng), _METHOD[self.asks]
        method = getattr(trained, name, trained)
        if not callable(method):
            rule = f"must be a function or have {name}, got {type(trained).__name__}"
            raise BlackBoxProblem(f"what the black box trained {rule}")
        self.trained_: Callable[..., Any] = method
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the one method by which this box is asked: an attack looks for `predict` to see which it is."""
        if name in _METHOD.values() and name == _METHOD[self.asks]:
            return self._ask
        hint = f"; use {_METHOD[self.asks]}" if name in _METHOD.values() else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def guarantee(self) -> Guarantee:
        """Return that there is none: a guarantee is a property of what is inside."""
        return Guarantee(status="none", reason="Nothing is known of what is inside a black box.")

    def _ask(self, whom: Any, wanted: Any) -> Any:
        """Ask for the ratings of some items, or for a list of so many."""
        if not hasattr(self, "trained_"):
            raise NotFittedError("the model must be fitted before it is asked; call fit(ratings)")
        if self.asks in ("lists", "profile_lists"):
            return self.trained_(whom, wanted)
        if self.asks == "users":
            require(len(whom) == len(wanted), "items", "as many as users", len(wanted))
        return _numbers(self.trained_(whom, wanted), len(wanted))


def _check_box(box: object, method: str) -> None:
    learns, asked = (callable(getattr(box, name, None)) for name in ("fit", method))
    if isinstance(box, type) and learns:
        raise SettingError(f"box must be an instance, got the class {box.__name__}")
    if learns and not asked:
        raise SettingError(f"box must have {method} as well as fit (see asks=), got {type(box).__name__}")
    if not learns and (asked or not (callable(box) or isinstance(box, Endpoint))):
        raise SettingError(
            "box must be able to learn, because an attack compares two worlds: give a function train(ratings), an "
            f"object with fit, or the address of a service; got {type(box).__name__}"
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
    try:
        takes_rng = "rng" in inspect.signature(box).parameters
    except ValueError:  # a function written in C need not have a signature
        takes_rng = False
    return box(ratings, rng=rng) if takes_rng else box(ratings)


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
