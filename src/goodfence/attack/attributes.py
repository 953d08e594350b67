"""Attribute inference: a public class of users, such as their age group, from what fakes with their ratings are told.

Fakes with the known ratings of a target ask for the most popular items. The attacker knows the class of other users,
trains a classifier on the answers about these, and predicts the class of the target: in the world with the target's
data, and in the world without. The classifier is ridge regression on one indicator for each class, with the penalty of
the least leave-one-out error. It is cross-fitted: no user's own class helps to predict it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from goodfence.arrays import Flags, Floats, Integers
from goodfence.attack.attack import Attack, Subject, Worlds, seeds
from goodfence.attack.report import SharesReport
from goodfence.attack.scoring import Estimate, combination, difference, frequency
from goodfence.attack.targets import Targets, Wanted, find_targets
from goodfence.attack.trained import wider
from goodfence.data.ratings import Id, Ratings
from goodfence.errors import DataError
from goodfence.rng import RNG, Streams
from goodfence.settings import Count, checked, is_sequence

FOLDS = 18  # a stream below the seed of an attack, beside those of `targets` and `membership`
N_FOLDS = 5
_PENALTIES = (0.1, 1.0, 10.0, 100.0)  # times the mean squared length of a row
_MOST_CLASSES, _GROUPS = 12, 4


class Told(NamedTuple):
    """The answers about the asked items of all targets, in both worlds."""

    with_target: Floats
    without_target: Floats


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AttributeReport(SharesReport):
    """How well a class is predicted with the target's data and without."""

    classes: Integers
    """(targets,): the class of each, from 0."""
    right: Flags
    """(worlds, rules, targets): by the likeliest class, and by the one that is likelier than usual (balanced)."""
    majority: Flags
    """(targets,): whether the most frequent class of other users is right."""

    @property
    def n_targets(self) -> int:
        """As in `SharesReport`."""
        return len(self.classes)

    @property
    def estimates(self) -> dict[str, Estimate]:
        """As in `SharesReport`; both advantages are the leak."""
        (often, evenly), (often_without, evenly_without) = self.right.astype(np.float64)
        found = {
            "accuracy": frequency(often),
            "accuracy_without": frequency(often_without),
            "advantage": difference(often, often_without, np.ones(self.n_targets)),
            "majority": frequency(self.majority.astype(np.float64)),
            "balanced_accuracy": self._balanced(evenly, 0.0),
            "balanced_accuracy_without": self._balanced(evenly_without, 0.0),
            "balanced_advantage": self._balanced(evenly - evenly_without, -1.0),
        }
        return {name: wider(one, -1.0 if "advantage" in name else 0.0) for name, one in found.items()}

    def _balanced(self, values: Floats, lowest: float) -> Estimate:
        """Return the mean over classes of the mean over their users."""
        members = np.eye(self.classes.max() + 1)[self.classes].T
        terms = [(1 / len(members), values * one, one) for one in members]
        return combination(terms).estimate(lowest=lowest, highest=1.0)


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeAttack(Attack):
    """Fakes that copy known ratings ask for popular items; a classifier of the answers predicts a class of the user."""

    labels: Mapping[Id, Id] = field(repr=False)
    """The class of each user, by id; users without one are not attacked. See `goodfence.data.load.read_labels`."""
    items: Count = 400
    """For how many of the most popular items the fakes ask."""

    def describe(self, n_fakes: int = 2) -> str:  # noqa: ARG002 - as in `Attack`
        """As in `Attack`."""
        return f"one asks for {self.items:,} popular items"

    def stated(self) -> dict[str, Any]:
        """Return the name and the settings as plain values, without the classes."""
        kept = {name: getattr(self, name) for name in ("known", "fakes", "items")}
        return {"name": type(self).__name__, **kept, "choose": str(self.choose)}

    def run_on(self, subject: Subject, *, targets: Wanted, rng: RNG, progress: bool | None = None) -> Any:
        """As in `Attack`, on users of a known class."""
        users = subject.ratings.users
        every, _ = find_targets(subject.ratings, len(users), self.known, self.choose, Streams(rng))
        able = [user for user in users[every.rows].tolist() if user in self.labels]
        chosen: Any = targets if is_sequence(targets) else able[: int(np.asarray(targets))]
        if len(chosen) < 2 * N_FOLDS or not {*chosen} <= {*able}:
            rule = f"labels must hold a class of every target, and of {2 * N_FOLDS} or more"
            raise DataError(f"{rule} with enough ratings; are its ids those of the ratings?")
        return Attack.run_on(self, subject, targets=chosen, rng=rng, progress=progress)

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Told:
        asked, _ = _popular(targets, worlds.ratings, self.items)
        told = worlds.ask(asked, seeds(asked, streams), 1)
        return Told(told.with_target[0], told.without_target[0])

    def judged(self, told: Told, targets: Targets, ratings: Ratings, streams: Streams) -> Any:
        """Return how often each user's class is right, predicted from the answers about other users."""
        classes = _codes([self.labels[user] for user in ratings.users[targets.rows].tolist()])
        _, features = _popular(targets, ratings, self.items)
        right, unknown, priors = [], np.isnan(features), np.zeros((len(targets), 1))
        for answers in told:
            features[unknown] = answers
            # That an item has an answer tells that a neighbour rated it.
            scores, priors = cross_fitted(np.hstack([features, np.isnan(features)]), classes, streams)
            rules = scores, scores / np.maximum(priors, 1 / len(targets))
            right.append([rule.argmax(axis=1) == classes for rule in rules])
        guessed = priors.argmax(axis=1) == classes
        return AttributeReport(attack=repr(self), classes=classes, right=np.array(right), majority=guessed)


def _codes(labels: list[Any]) -> Integers:
    """Return classes from 0; many different numbers, such as ages, in four groups of about equal size."""
    values, codes = np.unique(np.array(labels), return_inverse=True)
    if len(values) > _MOST_CLASSES and values.dtype.kind in "iuf":
        ends = np.quantile(np.array(labels), np.arange(1, _GROUPS) / _GROUPS)
        codes = np.unique(np.searchsorted(ends, np.array(labels)), return_inverse=True)[1]
    if not 1 <= codes.max() < _MOST_CLASSES:
        raise DataError(
            f"labels must have 2 to {_MOST_CLASSES} classes, or numbers; the targets have {codes.max() + 1:,}"
        )
    return codes.astype(np.int64)


def _popular(targets: Targets, ratings: Ratings, n: int) -> tuple[Targets, Floats]:
    """Return the targets with the `n` most popular items as hidden, and the ratings known of these, (targets, n)."""
    counts = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
    items = np.sort(np.argsort(-counts, kind="stable")[:n])
    held = np.full((len(targets), ratings.shape[1]), np.nan)
    np.put_along_axis(held, targets.known_columns, targets.known_ratings, axis=1)
    known = held[:, items]
    owners, places = np.nonzero(np.isnan(known))
    starts = np.searchsorted(owners, np.arange(len(targets) + 1))
    return dataclasses.replace(targets, starts=starts, columns=items[places], ratings=np.zeros(len(places))), known


def cross_fitted(features: Floats, classes: Integers, streams: Streams) -> tuple[Floats, Floats]:
    """Return the score of each class and its share in the training data, (targets, classes), from other folds.

    Every fold has its share of each class: else a class that is rare in training would be frequent in the rest.
    """
    order, fold_of = streams.order(len(classes), FOLDS), np.arange(len(classes)) % N_FOLDS
    fold_of[order[np.argsort(classes[order], kind="stable")]] = fold_of.copy()
    hot = np.eye(int(classes.max()) + 1)[classes]
    scores, priors = np.empty(hot.shape), np.empty(hot.shape)
    for fold in np.unique(fold_of):
        out = fold_of == fold
        n_made = np.maximum((~np.isnan(features[~out])).sum(axis=0), 1)
        rows = np.nan_to_num(features - np.nansum(features[~out], axis=0) / n_made)
        priors[out] = prior = hot[~out].mean(axis=0)
        scores[out] = prior + _ridge(rows[~out], hot[~out] - prior, rows[out])
    return scores, priors


def _ridge(rows: Floats, values: Floats, asked: Floats) -> Floats:
    """Return the predictions of ridge regression for `asked`; alpha_i / K_ii is the leave-one-out error of row i."""
    lengths, vectors = np.linalg.eigh(rows @ rows.T)
    penalties = np.array(_PENALTIES) * max(float(lengths.mean()), 1e-9)
    inverses = [(vectors / (np.maximum(lengths, 0.0) + penalty)) @ vectors.T for penalty in penalties]
    fits = [inverse @ values for inverse in inverses]
    errors = [((fit.T / np.diag(inverse)) ** 2).sum() for fit, inverse in zip(fits, inverses, strict=True)]
    return np.asarray(asked @ rows.T @ fits[int(np.argmin(errors))])
