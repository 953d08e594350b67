"""The attacker who knows all ratings but one, and everything that a private model released: beside its bound.

The strongest there can be: everybody else's ratings are known, the target's other ratings too, and that the target
rated the item. Of what was released the exact likelihood under each possible value is computed, so no other use of
the predictions, the recommendations or the model can do better than the likeliest value.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

import goodfence as gf
from benchmarks.data import CACHE
from benchmarks.private_attack import DATA, SEED, eligible, fingerprint, shown
from benchmarks.results import write_table
from goodfence.arrays import Floats, Integers, row_numbers
from goodfence.attack.scoring import difference, ratio, share
from goodfence.auditing.dp_audit import Recorder, Replayer
from goodfence.data.files import atomic_write
from goodfence.models.private import cf, estimation
from goodfence.models.private.base import PrivateRecommender
from goodfence.privacy.accounting import total_mu
from goodfence.privacy.fixed_point import UserProfiles, centred
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import SIGMA, SystemNoise
from goodfence.rng import Streams

HIDDEN, PART = 10, 20
"""How many ratings of each target are hidden, one at a time; how many targets are written at once."""
BINS, DRAWS = 100, 1000
_STEPS = 120
SLOW = "PrivateCF, rating, epsilon 4"
"""It releases a covariance, of a million integers."""
GUARANTEES: tuple[tuple[Unit, float], ...] = (("rating", 1.0), ("rating", 4.0), ("user", 4.0))
PRIVATE: dict[str, PrivateRecommender] = {
    f"{name}, {unit}, epsilon {epsilon:g}": made(epsilon=epsilon, unit=unit, items="from ratings")
    for name, made in (("PrivateCF", gf.PrivateCF), ("PrivateMeans", gf.PrivateMeans))
    for unit, epsilon in GUARANTEES
}
POST_PROCESSING = {
    cf: ("choose_stages", "find_directions", "sharpen"),
    estimation: ("estimate_biases", "update_biases", "refine", "factorise"),
}
HEAD = ["attacked", "targets", "ratings", "guess", "recovery", "advantage"]
HEAD += ["advantage, expected", "bound here", "bound, any guess"]


class Prior:
    """What the attacker believes of a rating before anything is released: how often each value was given.

    Ratings are sorted by what item and user have in common with others (their means without the rating in question),
    into as many groups of the same size as `BINS`; the others of its group say how often each value is given.
    """

    def __init__(self, ratings: gf.Ratings) -> None:
        csr, scale = ratings.csr, ratings.scale
        step = scale.step or 1.0  # the scales of the catalogue have steps
        n_values = round((scale.highest - scale.lowest) / step) + 1
        self.values: Floats = scale.lowest + step * np.arange(n_values, dtype=np.float64)
        self._places = np.searchsorted(self.values, csr.data)
        expected = _expected(csr)
        edges = np.quantile(expected, np.linspace(0, 1, BINS + 1)[1:-1])
        self._groups = np.searchsorted(edges, expected)
        self._counts = np.zeros((BINS, len(self.values)))
        np.add.at(self._counts, (self._groups, self._places), 1)

    def of(self, cells: Integers) -> Floats:
        """Return the probability of each value, (cells, values); a rating does not count in its own."""
        counts = self._counts[self._groups[cells]]
        counts[np.arange(len(cells)), self._places[cells]] -= 1
        chances: Floats = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
        return chances

    def right(self, cells: Integers) -> Integers:
        """Return which value is the right one."""
        right: Integers = self._places[cells]
        return right


def _expected(csr: Any) -> Floats:
    """Return item mean plus user bias, for each rating from all others; few ratings are shrunk."""
    rows = row_numbers(csr.indptr)
    overall, shrunk = csr.data.mean(), 5.0

    def others_mean(groups: npt.NDArray[Any], values: Floats) -> Floats:
        sums, counts = np.bincount(groups, values), np.bincount(groups)
        mean: Floats = (sums[groups] - values) / (counts[groups] - 1 + shrunk)
        return mean

    of_items = others_mean(csr.indices, csr.data - overall)
    found: Floats = overall + of_items + others_mean(rows, csr.data - overall - of_items)
    return found


class Remembered:
    """A function of what was released alone: it is the same for all data sets to which the releases are handed back."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.known: dict[bytes, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Return what it returned to these arguments before."""
        key = pickle.dumps(arguments)
        if key not in self.known:
            self.known[key] = self.function(*arguments)
        return self.known[key]


@contextmanager
def remembering() -> Iterator[list[Remembered]]:
    """Let post-processing be computed once for a fit and all its replays: the same numbers, ten times as fast."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(mock.patch.object(module, name, Remembered(getattr(module, name))))
            for module, names in POST_PROCESSING.items()
            for name in names
        ]


class Fit:
    """A fit of a private model, and what its releases would have been under other values of one rating."""

    def __init__(self, ratings: gf.Ratings, model: PrivateRecommender) -> None:
        self.model, self.scale = model, ratings.scale
        self.profiles = UserProfiles.of(model.laid_out(ratings))
        n_items = self.profiles.n_items
        self.mu = total_mu(model.epsilon, model.delta, model._distance(n_items))
        self.noise = SystemNoise()
        self.recorder = Recorder(self.noise)
        self.model._learn(self.profiles, self.mu, self.recorder)
        self.drawn = _flat(self.recorder.noisy) - _flat(self.recorder.totals)

    def shifts(self, row: int, place: int, values: Floats) -> tuple[Floats, Floats]:
        """Return how far other values of one rating move the releases, and the noise that is on them, in sigmas.

        Parameters
        ----------
        row, place
            The user, and which of the user's ratings is the hidden one.
        values
            What it might be: (values, integers) and (integers,) are returned, of those integers that any value moves.
        """
        true = self._added(row, place, None)
        moved = np.stack([self._added(row, place, value) - true for value in values.tolist()])
        touched = moved.any(axis=0)
        return moved[:, touched] / SIGMA, self.drawn[touched] / SIGMA

    def _added(self, row: int, place: int, value: float | None) -> Integers:
        """Return what one user's row adds to the releases, their rating at `place` being `value`.

        All that is released is a sum over users, in integers, so that the rest of the data need not be added up again.
        """
        rows = self.profiles.rows(row, row + 1)
        part = slice(rows.starts[0], rows.starts[1])
        own = rows.values[part].copy()
        if value is not None:
            own[place] = centred(np.array([value]), self.scale)[0]
        alone = UserProfiles(rows.starts - rows.starts[0], rows.columns[part], own, self.profiles.n_items)
        replayer = Replayer(self.noise, released=self.recorder.noisy)
        self.model._learn(alone, self.mu, replayer)
        return _flat(replayer.totals)


def _flat(totals: list[Integers]) -> Integers:
    return np.concatenate([each.ravel() for each in totals])


def recovered(priors: Floats, right: int, moved: Floats, drawn: Floats) -> bool:
    """Return whether the likeliest value is the right one.

    With d_v the shift by the value v from the true one and z the noise, both in sigmas, the log-likelihood ratio of v
    is d_v z - |d_v|^2 / 2.
    """
    ratios = moved @ drawn - (moved**2).sum(axis=1) / 2
    return int((np.log(priors) + ratios).argmax()) == right


def expected_gain(priors: Floats, moved: Floats, chance: np.random.Generator) -> float:
    """Return how much more often than the best guess the likeliest value is right, if values are as likely as believed.

    Over the noise the log-likelihood ratios are jointly normal, with the products of the shifts as covariances.
    """
    gained = -float(priors.max())
    for value, likely in enumerate(priors.tolist()):
        apart = moved - moved[value]
        products = apart @ apart.T
        sizes, axes = np.linalg.eigh(products)
        root = axes * np.sqrt(np.maximum(sizes, 0.0))
        ratios = chance.standard_normal((DRAWS, len(priors))) @ root.T - np.diag(products) / 2
        gained += likely * float(((np.log(priors) + ratios).argmax(axis=1) == value).mean())
    return gained


def bound_of(priors: Floats, mu: float) -> Floats:
    """Return how much more than the best guess any attacker can be right, for each prior, (cells, values).

    Without the hidden rating (unit rating) or its owner (unit user) the releases have a distribution Q; with the value
    v they have one that mu-GDP keeps near it: what has probability q under Q has at most G(q) = Phi(Phi^-1(q) + mu).
    An attacker says v on an event of probability q_v, and these add up to 1; so they are right at most
    sum pi_v G(q_v) of the time. At its largest pi_v G'(q_v) is the same for all v, which gives
    Phi^-1(q_v) = log(pi_v / lambda) / mu - mu / 2 with the one lambda for which the q_v add up to 1.
    """
    logs = np.log(np.maximum(priors, 1e-300))
    low, high = (np.full((len(priors), 1), end) for end in (-700.0 * max(mu, 1.0), 1.0 + mu * 40))
    for _ in range(_STEPS):
        middle = (low + high) / 2  # log lambda
        too_many = ndtr((logs - middle) / mu - mu / 2).sum(axis=1, keepdims=True) > 1
        low, high = np.where(too_many, middle, low), np.where(too_many, high, middle)
    right = (priors * ndtr((logs - low) / mu + mu / 2)).sum(axis=1)
    bounds: Floats = right - priors.max(axis=1)
    return bounds


class Found(NamedTuple):
    """One entry for each hidden rating."""

    owners: Integers
    """Whose it is: the user's row."""
    guessed: npt.NDArray[np.bool_]
    recovered: npt.NDArray[np.bool_]
    gains: Floats
    """How much more often than by guessing it would be, if values are as likely as believed."""
    bounds: Floats


def attack(ratings: gf.Ratings, model: PrivateRecommender, prior: Prior, rows: Integers) -> Found:
    """Fit anew for every target, and guess some of their ratings, each as if it alone were not known."""
    with remembering() as functions:
        parts = [_one_target(ratings, model, prior, row, functions) for row in rows.tolist()]
    return Found(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _one_target(
    ratings: gf.Ratings, model: PrivateRecommender, prior: Prior, row: int, functions: list[Remembered]
) -> Found:
    for function in functions:
        function.known.clear()
    fit, first = Fit(ratings, model), int(ratings.csr.indptr[row])
    n_rated = int(ratings.csr.indptr[row + 1]) - first
    places = np.sort(Streams(SEED).order(n_rated, row)[:HIDDEN])
    cells = first + places
    priors, right = prior.of(cells), prior.right(cells)
    chance = Streams(SEED).at(row)
    shifts = [fit.shifts(row, place, prior.values) for place in places.tolist()]
    each = zip(priors, right.tolist(), shifts, strict=True)
    return Found(
        owners=np.full(len(cells), row),
        guessed=priors.argmax(axis=1) == right,
        recovered=np.array([recovered(one, value, *shift) for one, value, shift in each]),
        gains=np.array([expected_gain(one, moved, chance) for one, (moved, _) in zip(priors, shifts, strict=True)]),
        bounds=bound_of(priors, fit.mu),
    )


def line(name: str, model: PrivateRecommender, found: Found, n_items: int) -> list[str]:
    owners = np.unique(found.owners, return_inverse=True)[1]

    def sums(values: npt.NDArray[Any]) -> Floats:
        return np.bincount(owners, weights=values).astype(np.float64)

    ones, guessed = np.ones(len(owners)), sums(found.guessed)
    hidden, with_releases = sums(ones), sums(found.recovered)
    distance = model._distance(n_items)
    mu = total_mu(model.epsilon, model.delta, distance)
    return [
        name,
        f"{len(hidden)}",
        f"{len(owners):,}",
        f"{share(guessed, hidden).value:.3f}",
        f"{share(with_releases, hidden).value:.3f}",
        shown(difference(with_releases, guessed, hidden)),
        shown(ratio(sums(found.gains), hidden, lowest=-1.0, highest=1.0)),
        f"{found.bounds.mean() + 2 * distance:.3f}",
        f"{2 * ndtr(mu / 2) - 1 + 2 * distance:.3f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--targets", type=int, default=None, help="fewer than all")
    parser.add_argument("--slow", type=int, default=60, help=f"targets of {SLOW}")
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished parts")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin nothing after this")
    options, code, began = parser.parse_args(), fingerprint(), time.monotonic()
    keep = options.keep or CACHE / "last_rating" / code
    ratings = gf.load(DATA)
    prior = Prior(ratings)
    rows = ratings.rows(eligible(ratings, HIDDEN, options.targets))
    # All models get on together: what was not finished has fewer targets, and says so.
    for start in range(0, len(rows), PART):
        for name, model in PRIVATE.items():
            path = keep / f"{name.replace(', ', '-').replace(' ', '-')}-{start}.npz"
            if (
                (name == SLOW and start >= options.slow)
                or path.is_file()
                or time.monotonic() - began > 60 * options.minutes
            ):
                continue
            found = attack(ratings, model, prior, rows[start : start + PART])
            with atomic_write(path) as file:
                np.savez(file, **found._asdict())
        print(f"{time.monotonic() - began:6.0f} s, {start + PART} of {len(rows)}", flush=True)
    table = []
    for name, model in PRIVATE.items():
        stem = name.replace(", ", "-").replace(" ", "-")
        parts = [dict(np.load(path)) for path in sorted(keep.glob(f"{stem}-*.npz"))]
        if parts:
            joined = {field: np.concatenate([part[field] for part in parts]) for field in parts[0]}
            table.append(line(name, model, Found(**joined), ratings.shape[1]))
    write_table(
        "last_rating",
        "The attacker who knows all ratings but one, and everything released",
        HEAD,
        table,
        data=DATA,
        hidden=f"{HIDDEN} ratings of each target, one at a time, by chance (seed {SEED})",
        delta="1e-5",
        noise="from the operating system, a fit for each target",
        code=code,
    )


if __name__ == "__main__":
    main()
