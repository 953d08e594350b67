"""The difference between two refits: fakes ask, the target adds ratings, the service refits, the fakes ask again.

The fakes hold known ratings of the target and ask for all other items. The attacker claims the items whose answer
changed most, `new` of them at most; an item that had no answer before comes first. The last ratings of the target are
the new ones (random ones where there are no times), and nobody else adds any between the two fits. The comparison is a
world in which the target adds nothing, and the service refits with fresh randomness all the same.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from goodfence.arrays import Floats, Integers
from goodfence.attack import DEFAULT_TARGETS_REFITTED
from goodfence.attack.attack import Subject
from goodfence.attack.fakes import AccountPlan
from goodfence.attack.knn_attack import KNNAttack
from goodfence.attack.refits import RefitWorlds
from goodfence.attack.report import SharesReport
from goodfence.attack.scoring import EXACT, Estimate, difference, frequency, share
from goodfence.attack.targets import KNOWLEDGE, Wanted, find_targets, world_seed
from goodfence.data.matrix import cells_inside
from goodfence.data.ratings import Ratings
from goodfence.models.recommender import Recommender
from goodfence.parallel import bar
from goodfence.rng import RNG, Streams, seed_of
from goodfence.selection.mechanism import Mechanism
from goodfence.settings import Count, checked


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ChangesReport(SharesReport):
    """What changed answers told about some targets."""

    counts: Floats
    """(worlds, 3, targets): how many items were claimed, how many of these are new, and with the right rating; in the
    world in which the target adds ratings, and in the world in which it adds nothing."""

    @property
    def n_targets(self) -> int:
        """As in `SharesReport`."""
        return int(self.counts.shape[2])

    @property
    def estimates(self) -> dict[str, Estimate]:
        """As in `SharesReport`."""
        (claimed, found, rated), (claimed_without, found_without, rated_without) = self.counts
        new = np.full(self.n_targets, float(self.settings["settings"]["new"]))
        return {
            "found": share(found, new),
            "found_without": share(found_without, new),
            "advantage": difference(found, found_without, new),
            "precision": share(found, claimed),
            "recovery": share(rated, new),
            "recovery_without": share(rated_without, new),
            "false_alarms": frequency((claimed_without > 0).astype(np.float64)),
        }


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesAttack:
    """Fakes with the known ratings ask before and after a refit; what changed most is claimed to be new."""

    known: Count
    """m: how many of the target's earlier ratings the attacker knows, drawn by chance."""
    new: Count = 3
    """How many ratings the target adds between the two fits; the attacker claims no more."""
    fakes: int | None = None
    """How many fake profiles are made; None for the k of the attacked mechanism."""

    @checked
    def run(
        self,
        ratings: Ratings,
        attacked: Mechanism | Recommender,
        *,
        targets: Wanted = DEFAULT_TARGETS_REFITTED,
        rng: RNG = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> ChangesReport:
        """Attack some users with three fits each; parameters as in `KNNAttack.run`."""
        plain = KNNAttack(known=self.known, fakes=self.fakes)
        plain.require_feedback(ratings)
        streams, subject = Streams(rng), Subject(ratings, attacked, threads=threads)
        n_fakes = plain.n_fakes(subject.recommender, ratings.shape[0])
        found, n_left_out = find_targets(ratings, targets, self.known + self.new, "random", streams)
        counts = np.zeros((2, 3, len(found)))
        with bar("refits", len(found), show=progress) as advance:
            for place, row in enumerate(found.rows.tolist()):
                counts[:, :, place] = self._counted(subject, row, n_fakes, streams)
                advance(1)
        return ChangesReport(
            attack=repr(self),
            attacked=subject.traits.title,
            n_fakes=n_fakes,
            n_left_out=n_left_out,
            counts=counts,
            settings={"settings": {"name": type(self).__name__, **dataclasses.asdict(self)}, "seed": seed_of(rng)},
        )

    def _counted(self, subject: Subject, row: int, n_fakes: int, streams: Streams) -> list[list[float]]:
        """Return claims, new items among them, and right ratings of these, in both worlds of one target."""
        ratings, csr = subject.ratings, subject.ratings.csr
        first, last = csr.indptr[row : row + 2].tolist()
        cells = first + streams.order(last - first, KNOWLEDGE, row)
        in_time = cells if ratings.times is None else cells[np.argsort(ratings.times[cells], kind="stable")]
        new = in_time[-self.new :]
        known = np.sort(cells[~np.isin(cells, new)][: self.known])
        profile = csr.indices[known].astype(np.int64), csr.data[known]
        kept = np.ones(ratings.n_ratings, dtype=np.bool_)
        kept[new] = False
        earlier = ratings.replaced(cells_inside(csr, kept))
        asked, told = np.setdiff1d(np.arange(csr.shape[1]), profile[0]), []
        for data, turn in ((earlier, 0), (ratings, 1), (earlier, 1)):
            worlds = RefitWorlds(data, subject.recommender, n_fakes, similarity=subject.similarity)
            plan = AccountPlan(-1, [profile] * n_fakes, 1, asked)
            told.append(worlds.told_in([plan], world_seed(streams, row, turn), True)[0][0])
        truth = np.full(csr.shape[1], np.nan)
        truth[csr.indices[new]] = csr.data[new]
        counts = []
        for answers in told[1:]:
            claims = claimed(told[0], answers, self.new)
            is_new = ~np.isnan(truth[asked[claims]])
            right = np.abs(ratings.scale.round(answers[claims]) - truth[asked[claims]]) < EXACT
            counts.append([float(len(claims)), float(is_new.sum()), float(right.sum())])
        return counts


def claimed(before: Floats, after: Floats, n: int) -> Integers:
    """Return the positions of the at most `n` answers that changed most; what had no answer before comes first.

    Examples
    --------
    >>> claimed(np.array([3.0, np.nan, 2.0, 4.0]), np.array([3.0, 5.0, 2.5, 4.1]), 2)
    array([1, 2])
    """
    changes = np.where(np.isnan(before) & ~np.isnan(after), np.inf, np.nan_to_num(np.abs(after - before)))
    largest = np.argsort(-changes, kind="stable")[:n]
    return largest[changes[largest] > EXACT]
