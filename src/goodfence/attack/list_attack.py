"""`ListAttack`: fakes with the items that the attacker knows are shown lists, and what is listed is the target's.

The kNN attack carries over from predicted ratings to recommended lists: with k fakes that hold exactly the known items,
the other fakes and the target are the neighbours of the one who asks, and whatever the list adds to the known items
comes from the target alone. A list needs no rounding, and no luck with the items that others rated too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from goodfence.arrays import Flags, Floats, Rows, as_csr
from goodfence.attack import DEFAULT_FAKES, DEFAULT_KNOWN
from goodfence.attack.attack import Attack, Worlds, seeds
from goodfence.attack.knn_attack import Ask
from goodfence.attack.report import ListAttackReport, ListHits, is_claimed
from goodfence.attack.scoring import Outcomes, first_half
from goodfence.attack.targets import Targets
from goodfence.attack.worlds import Accounts
from goodfence.data.columns import Feedback
from goodfence.data.ratings import Ratings
from goodfence.kernels.list_attack import fill, rank_popular, vote
from goodfence.models.method import traits_of
from goodfence.rng import Streams
from goodfence.settings import Count, at_least, checked

LISTED = 10
"""How many items a list has, unless it is said."""
LONGEST = 10_000
BELIEFS = ("the lists", "popularity alone")
_WORLDS = (True, False)
_CLEAR = 2.0
"""How many standard errors something must serve better, to be believed in one world only."""


class Claims(NamedTuple):
    """What the attacker claims of some targets, before guessing."""

    with_target: Rows
    """(targets, claimed): columns, best first, in the world with each target."""
    without_target: Rows
    """(targets, claimed): in the world without."""
    chosen: Floats
    """(targets,): as in `Shown`."""
    alone: Floats
    """(targets,): as in `Shown`."""


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class ListAttack(Attack):
    """Fakes with exactly the m known items ask for lists; whatever is listed is claimed to be the target's.

    Examples
    --------
    >>> import goodfence as gf
    >>> likes = gf.load("movietweetings").likes(8)
    >>> report = gf.ListAttack(known=8).run(likes, gf.KNN(k=20), targets=50, rng=7)
    >>> report.precision > 2 * report.precision_without
    True
    """

    feedback: ClassVar[Feedback] = "implicit"

    known: Count = DEFAULT_KNOWN
    """m: how many of the target's items the attacker knows."""
    n: Annotated[int, at_least(1, most=LONGEST)] = LISTED
    """How many items are on a page of a list."""
    pages: Annotated[int, at_least(1, most=LONGEST)] = 1
    """How many pages of its list each fake reads: `n * pages` items."""
    ask: Ask = "one"
    """Only the first fake asks, or every fake does, and the items that most of them were shown are claimed."""
    adaptive: bool = False
    """Whether the fakes click all that was listed and ask again, after a refit: twice as many items are claimed."""

    def describe(self, n_fakes: int = 2) -> str:
        """As in `Attack`."""
        alone = n_fakes == 1 or self.ask == "one"
        text = "one asks" if alone else "all ask; the items listed most often count"
        if self.adaptive:
            text += "; all click the listed items and ask again"
        return text if self.pages == 1 else f"{text}; {self.pages} pages are read"

    def judged(self, told: Claims, targets: Targets, ratings: Ratings, streams: Streams) -> ListAttackReport:
        """As in `Attack`."""
        popular = popular_lists(ratings, targets, self.n_claimed(ratings))
        filled = [_filled(one, popular) for one in (told.with_target, told.without_target)]
        informed, believed = _believed(filled, popular, targets, first_half(len(targets), streams))
        return ListAttackReport(
            attack=repr(self),
            hidden=np.diff(targets.starts).astype(np.float64),
            chosen=told.chosen,
            rows=targets.rows,
            ratings=ratings,
            n_claimed=self.n_claimed(ratings),
            with_target=ListHits.of(told.with_target, targets),
            without_target=ListHits.of(told.without_target, targets),
            informed=ListHits.of(informed[0], targets),
            informed_without=ListHits.of(informed[1], targets),
            popular=ListHits.of(popular, targets),
            alone=told.alone,
            beliefs=dict(zip(("with_target", "without_target"), believed, strict=True)),
            outcomes=Outcomes(
                owners=targets.owners,
                columns=targets.columns,
                recovered=is_claimed(informed[0], targets),
                recovered_without=is_claimed(informed[1], targets),
                guessed=is_claimed(popular, targets),
            ),
            attacker=self,
        )

    def n_fakes(self, attacked: object, n_users: int) -> int:
        """Return how many fake profiles attack each target: the k of the recommender, or 50, unless it is said."""
        if self.fakes is None and not traits_of(attacked).n_neighbours:
            return DEFAULT_FAKES
        return Attack.n_fakes(self, attacked, n_users)

    def n_claimed(self, events: Ratings) -> int:
        """Return how many items are claimed of each target: no more than there are beside the known ones."""
        rounds = 2 if self.adaptive else 1
        return min(self.n * self.pages * rounds, events.shape[1] - self.known)

    def _answers(self, worlds: Worlds, targets: Targets, streams: Streams) -> Claims:
        events, n_askers = worlds.ratings, self._n_askers(worlds)
        n_listed = min(self.n * self.pages, events.shape[1] - self.known)
        accounts = Accounts.knowing(targets, seeds(targets, streams))
        told, claimed = worlds.shown(accounts, n_askers, n_listed, _WORLDS), []
        for there, world in zip(_WORLDS, told, strict=True):
            lists = _combined(world.lists, events.shape[1])
            if self.adaptive:
                n_more = self.n_claimed(events) - n_listed
                clicked = accounts.clicking(lists, seeds(targets, streams, 1))
                (more,) = worlds.shown(clicked, n_askers, max(n_more, 1), (there,))
                lists = _joined(lists, _combined(more.lists, events.shape[1])[:, :n_more])
            claimed.append(lists)
        return Claims(claimed[0], claimed[1], told[0].chosen, told[0].alone)


def _combined(lists: Rows, n_items: int) -> Rows:
    """Return one list for each target from those of its askers, (targets, askers, n)."""
    if lists.shape[1] == 1:
        return np.ascontiguousarray(lists[:, 0])
    voted = np.empty((lists.shape[0], lists.shape[2]), dtype=np.int32)
    vote(lists, n_items, voted)
    return voted


def _joined(first: Rows, second: Rows) -> Rows:
    """Return each list followed by the second, what is free at the end; no item is in both."""
    both = np.hstack([first, second])
    order = np.argsort(both < 0, axis=1, kind="stable")
    return np.take_along_axis(both, order, axis=1)


def popular_lists(events: Ratings, targets: Targets, n: int) -> Rows:
    """Return for each target the n most popular items of everybody else, without what the attacker knows."""
    csr = events.csr
    counts = np.bincount(csr.indices, minlength=csr.shape[1]).astype(np.float64)
    lists = np.empty((len(targets), n), dtype=np.int32)
    order = np.argsort(-counts, kind="stable")
    rank_popular(counts, order, targets.rows, targets.known_columns, as_csr(csr), lists)
    return lists


def _filled(lists: Rows, guesses: Rows) -> Rows:
    filled = np.empty(guesses.shape, dtype=np.int32)
    fill(lists, guesses, filled)
    return filled


def _believed(
    lists: list[Rows], popular: Rows, targets: Targets, first: Flags
) -> tuple[list[Rows], list[tuple[str, str]]]:
    """Return what is claimed in both worlds, lists or popularity, for one half of the targets by what serves the other.

    Without the target something else is believed than with it only if it serves clearly better: else a choice between
    two that are about equal would differ by chance, and pass for an advantage.
    """
    possible = np.minimum(np.diff(targets.starts), popular.shape[1])
    options = [(told, popular) for told in lists]
    precision = np.array([[ListHits.of(one, targets).hits / possible for one in world] for world in options])
    chosen = [_served(precision[:, :, half]) for half in (~first, first)]
    claimed, believed = [], []
    for world, (ours, others) in enumerate(zip(*chosen, strict=True)):
        rows = np.where(first[:, np.newaxis], options[world][ours], options[world][others])
        claimed.append(rows)
        believed.append((BELIEFS[ours], BELIEFS[others]))
    return claimed, believed


def _served(precision: Floats) -> tuple[int, int]:
    """Return which option serves best with the target in the data, and without: of (worlds, options, targets)."""
    inside, outside = (int(world.sum(axis=1).argmax()) for world in precision)
    more = precision[1, outside] - precision[1, inside]
    clear = len(more) > 1 and more.mean() > _CLEAR * more.std(ddof=1) / np.sqrt(len(more))
    return inside, outside if clear else inside
