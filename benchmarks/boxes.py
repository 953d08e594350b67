"""Black boxes of our own, each attacked by hand by somebody who knows its inside, and by a plain audit from outside.

The ratio is the audit's advantage over the advantage by hand. Both are about the same users, of whom the attackers know
the same ratings: those of the audit's second half, if there is an audit.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import goodfence as gf
from benchmarks.black_boxes import (
    AmongRaters,
    ColdStart,
    Delayed,
    Dissimilar,
    Everything,
    Factors,
    Finished,
    ItemKNN,
    ItemMean,
    Lagging,
    Mixed,
    Moved,
    Noisy,
    OnceEach,
    Shrunk,
    Supported,
    UserKNN,
)
from benchmarks.box_attackers import (
    KNOWN,
    SEED,
    Accompanied,
    Averaged,
    CalibratedOffset,
    CalibratedShare,
    Crowd,
    FoundShare,
    MovedBack,
    Rescaled,
    Unclipped,
    Views,
    attacked,
)
from benchmarks.box_decoders import CoRatings, Opposed, Pairs, Spectrum
from benchmarks.library_defaults import LIBRARIES, surprise_knn
from benchmarks.list_box_attackers import (
    AgainstControls,
    Boosted,
    Clicking,
    CoLikes,
    CrowdLists,
    Lifted,
    attacked_lists,
)
from benchmarks.list_boxes import (
    BPR,
    Because,
    ColdLists,
    Diverse,
    Ease,
    ImplicitALS,
    ItemLists,
    Novel,
    Pool,
    Popular,
    TopTen,
    UserLists,
)
from benchmarks.results import write_table
from goodfence.adapters.libraries import from_implicit, library
from goodfence.attack.scoring import Estimate
from goodfence.attack.targets import find_targets
from goodfence.rng import Streams

TARGETS, QUICK = 60, 20
HEAD = ["box", "by hand", "advantage by hand", "advantage of the audit", "verdict", "ratio", "seconds"]


@dataclass(frozen=True, kw_only=True)
class Box:
    """A black box, and the strongest recipe against it that we know."""

    train: Callable[..., Any]
    recipe: Any
    """A `Recipe`, or a `ListRecipe` for lists."""
    words: str
    """What the recipe does."""
    lists: bool = False
    """Whether it shows lists, learnt from ratings of 8 and more."""
    wait: float = 0.0
    fits: int = 1
    targets: int = TARGETS

    @property
    def data(self) -> gf.Ratings:
        """What it learns from."""
        films = gf.load("movietweetings")
        return films.likes(8) if self.lists else films

    def by_hand(self, ids: Sequence[Any]) -> Estimate:
        """Return the advantage of the recipe over these users."""
        if self.lists:
            return attacked_lists(self.data, self.train, self.recipe, targets=ids).estimates["advantage"]
        report = attacked(self.data, self.train, self.recipe, targets=ids, wait=self.wait, fits=self.fits)
        return report.estimates["advantage"]


LIFTED = Lifted(popularity=2.0)


def _again(fakes: int = 20) -> str:
    return f"{fakes} fake{'s' * (fakes > 1)} with the known ratings"


BOXES: dict[str, Box] = {
    "user kNN, k=20": Box(train=UserKNN().train, recipe=Crowd(), words=_again()),
    "user kNN, k=5": Box(train=UserKNN(k=5).train, recipe=Crowd(fakes=5), words=_again(5)),
    "user kNN, k=150": Box(train=UserKNN(k=150).train, recipe=Crowd(fakes=150), words=_again(150)),
    "cold start below 20 ratings": Box(
        train=ColdStart().train, recipe=Crowd(padding=12), words=f"{_again()} and 12 rare items, rated lowest"
    ),
    "cold start below 30 ratings": Box(
        train=ColdStart(least=30).train, recipe=Crowd(padding=22), words=f"{_again()} and 22 rare items, rated lowest"
    ),
    "mixed with the item mean, 0.7": Box(
        train=Mixed().train, recipe=Rescaled(share=0.7), words=f"{_again()}; a control account is told the item mean"
    ),
    "mixed with the item mean, 0.3": Box(
        train=Mixed(share=0.3).train,
        recipe=Rescaled(share=0.3),
        words=f"{_again()}; a control account is told the item mean",
    ),
    "shrunk by similarity, c=1": Box(
        train=Shrunk().train,
        recipe=CalibratedShare(),
        words=f"{_again()}; control; the share is found from known ratings left out",
    ),
    "shrunk by similarity, c=5": Box(
        train=Shrunk(constant=5.0).train,
        recipe=FoundShare(),
        words=f"{_again()}; control; the share that makes most answers integers",
    ),
    "identical profiles count once": Box(
        train=OnceEach().train, recipe=Crowd(own=1), words=f"{_again()}, each with one rare item of its own"
    ),
    "near-identical profiles filtered": Box(
        train=Dissimilar().train,
        recipe=Crowd(own=1, own_rating=10.0),
        words=f"{_again()}, each with one rare item of its own, rated highest",
    ),
    "Jaccard": Box(
        train=UserKNN(similarity="jaccard").train,
        recipe=Views(),
        words=f"{_again()}, or with the rarest 4, 3 and 2; the most frequent integer",
    ),
    "significance weighting": Box(train=UserKNN(similarity="significant").train, recipe=Crowd(), words=_again()),
    "three common items": Box(train=UserKNN(similarity="supported").train, recipe=Crowd(), words=_again()),
    "user means taken away": Box(
        train=UserKNN(centred=True).train,
        recipe=CalibratedOffset(),
        words=f"{_again()}; the target's mean is found from known ratings left out",
    ),
    "two neighbours must have rated": Box(
        train=Supported().train,
        recipe=Accompanied(),
        words=f"{_again()}; one of them rates everything lowest, then a step higher",
    ),
    "cold start, significance, shrunk, rounded, k=35": Box(
        train=Everything(k=35, similarity="significant", constant=0.5).train,
        recipe=Crowd(fakes=35, padding=7),
        words=f"{_again(35)} and 7 rare items, rated lowest",
    ),
    "rounded to integers": Box(train=Finished(step=1.0).train, recipe=Crowd(), words=_again()),
    "rounded to halves": Box(train=Finished(step=0.5).train, recipe=Crowd(), words=_again()),
    "clipped to 2 to 9": Box(
        train=Finished(lowest=2.0, highest=9.0).train,
        recipe=Unclipped(),
        words=f"{_again()}; again with one that rates all in the middle",
    ),
    "noise of deviation 1": Box(
        train=Noisy().train, recipe=Averaged(), words="20 fakes ask, four times under new names; the mean"
    ),
    "learns 0.02 s later": Box(train=Delayed().train, recipe=Crowd(), words=f"{_again()}; waits", wait=0.021),
    "answers of two fits ago": Box(train=Lagging().train, recipe=Crowd(), words=f"{_again()}; three fits", fits=3),
    "answers from 1 to 5, k=25": Box(
        train=Moved(k=25, factor=0.4, offset=1.0).train,
        recipe=MovedBack(factor=0.4, offset=1.0, crowd=Crowd(fakes=25)),
        words=f"{_again(25)}; 2.5 (answer - 1)",
    ),
    "half the asker's mean, k=25": Box(
        train=Moved(k=25, own=0.5).train,
        recipe=MovedBack(factor=0.5, own=0.5, crowd=Crowd(fakes=25)),
        words=f"{_again(25)}; twice the answer, less their mean",
    ),
    "cold start below 30, Pearson, significance, k=75": Box(
        train=ColdStart(k=75, similarity="pearson_significant", least=30).train,
        recipe=Crowd(fakes=75, padding=22),
        words=f"{_again(75)} and 22 rare items, rated lowest",
    ),
    "Pearson": Box(
        train=UserKNN(similarity="pearson").train,
        recipe=Pairs(),
        words="one account for each pair of known items; the likeliest rating, by how many may have rated both",
    ),
    "among raters, MSD, k=40": Box(
        train=AmongRaters().train,
        recipe=Spectrum(),
        words="one account for each known item and rating, a helper; the weights of raters are inverted",
        targets=30,
    ),
    "among raters, MSD, means taken away": Box(
        train=AmongRaters(centred=True).train,
        recipe=Spectrum(centred=True),
        words="the same; the target's mean is found from known ratings",
        targets=30,
    ),
    "among raters, centred cosine, k=20": Box(
        train=AmongRaters(centred=True, k=20, similarity="centred_cosine").train,
        recipe=Opposed(),
        words="one account for each known item, with a rare one at the other end of the scale",
    ),
    "item kNN": Box(
        train=ItemKNN().train,
        recipe=CoRatings(),
        words="accounts with a known item and a ruler; sums of products, and the likeliest rating",
    ),
    "matrix factorisation": Box(train=Factors().train, recipe=Crowd(fakes=1), words=_again(1)),
    "item mean (control)": Box(train=ItemMean().train, recipe=Crowd(), words=_again()),
    "lists, user kNN": Box(train=UserLists().train, recipe=CrowdLists(), words=_again(), lists=True),
    "lists, cold start below 30 items": Box(
        train=ColdLists().train, recipe=CrowdLists(padding=22), words=f"{_again()} and 22 rare items", lists=True
    ),
    "lists, rare items first, k=30": Box(
        train=Novel(k=30).train, recipe=CrowdLists(fakes=30), words=_again(30), lists=True
    ),
    "lists, of the 200 most popular": Box(
        train=Pool().train,
        recipe=Boosted(),
        words=f"{_again()}; 260 accounts make 200 other items popular, six times",
        lists=True,
    ),
    "lists, no two items alike": Box(
        train=Diverse().train, recipe=Clicking(), words=f"{_again()}; they click all and ask again", lists=True
    ),
    "lists, ten, mixed with popularity": Box(
        train=TopTen(k=30).train,
        recipe=LIFTED,
        words="one account for each known item and 20 controls; 5 fakes with these lift 40 items at a time",
        lists=True,
    ),
    "lists, item cosine, K=all": Box(
        train=ItemLists(k=None).train,
        recipe=CoLikes(),
        words="one account for each known item; how many have both is read off the order",
        lists=True,
    ),
    "lists, item cosine, K=20": Box(
        train=ItemLists().train,
        recipe=LIFTED,
        words="one account for each known item and 20 controls; 5 fakes with these lift 40 items at a time",
        lists=True,
    ),
    "lists, because you watched": Box(train=Because().train, recipe=LIFTED, words="the same", lists=True),
    "lists, EASE": Box(
        train=Ease().train,
        recipe=AgainstControls(),
        words="one account for each known item; what is higher than in the lists of 150 controls",
        lists=True,
        targets=30,
    ),
    "lists, ALS": Box(train=ImplicitALS().train, recipe=CrowdLists(fakes=1), words=_again(1), lists=True),
    "lists, BPR": Box(train=BPR().train, recipe=CrowdLists(fakes=1), words=_again(1), lists=True, targets=30),
    "lists, popularity (control)": Box(train=Popular().train, recipe=CrowdLists(), words=_again(), lists=True),
}


def measured(name: str, box: Box, most: int, *, by_hand_only: bool) -> list[str]:
    """Return one row of the table."""
    data = box.data
    found, _ = find_targets(data, min(box.targets, most), KNOWN, "random", Streams(SEED))
    ids, cells = data.users[found.rows].tolist(), ["", "", ""]
    began = time.process_time()
    if not by_hand_only:
        asked = gf.BlackBox(box.train, asks="lists" if box.lists else "users")
        audited = gf.audit(data, asked, known=KNOWN, targets=ids, trials=0, rng=SEED, progress=False).leakage
        ids, advantage = data.users[audited.rows].tolist(), audited.estimates["advantage"]
        cells = [signed(advantage), verdict(audited), f"{time.process_time() - began:.0f}"]
    hand = box.by_hand(ids)
    ratio = "" if by_hand_only or hand.low <= 0 else f"{advantage.value / hand.value:.2f}"
    return [name, box.words, signed(hand), *cells[:2], ratio, cells[2]]


def _train_of(box: Any) -> Callable[..., Any]:
    train: Callable[..., Any] = box.box
    return train


def library_boxes() -> dict[str, Box]:
    """Return boxes of other libraries with their defaults, where these are installed."""
    found: dict[str, Box] = {}
    if find_spec("surprise"):
        found["Surprise KNNBasic"] = Box(
            train=surprise_knn("KNNBasic").box, recipe=Spectrum(), words="as among raters, MSD", targets=QUICK
        )
        found["Surprise KNNWithMeans"] = Box(
            train=surprise_knn("KNNWithMeans").box,
            recipe=Opposed(agreeing=True),
            words="one account for each known item, rated alike, with a rare one",
            targets=QUICK,
        )
    if find_spec("lenskit"):
        found["LensKit UserKNNScorer"] = Box(
            train=LIBRARIES["LensKit UserKNNScorer"].made().box,
            recipe=Opposed(),
            words="as among raters, centred cosine",
            targets=QUICK,
        )
    if find_spec("implicit"):
        nearest, als = library("implicit.nearest_neighbours"), library("implicit.als")
        found["implicit CosineRecommender"] = Box(
            train=_train_of(from_implicit(nearest.CosineRecommender(K=20, num_threads=1))),
            recipe=LIFTED,
            words="as lists, item cosine, K=20",
            lists=True,
            targets=QUICK,
        )
        found["implicit AlternatingLeastSquares"] = Box(
            train=_train_of(from_implicit(als.AlternatingLeastSquares(num_threads=1, random_state=7))),
            recipe=CrowdLists(fakes=1),
            words=_again(1),
            lists=True,
            targets=QUICK,
        )
    return found


def verdict(leakage: Any) -> str:
    """Return what the audit finds, in its own words."""
    finding = getattr(leakage, "finding", None)
    return "" if finding is None else str(finding.verdict)


def signed(gained: Estimate) -> str:
    return f"{gained.value:+.3f} ({gained.low:+.3f} to {gained.high:+.3f})"


def chosen(only: Sequence[str]) -> dict[str, Box]:
    """Return the boxes with one of these words in their name, or all."""
    every = {**BOXES, **library_boxes()}
    return {name: box for name, box in every.items() if not only or any(word in name for word in only)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], help="boxes with one of these in their name")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} targets instead of {TARGETS}")
    parser.add_argument("--by-hand", action="store_true", help="no audit")
    options, n_targets = parser.parse_args(), TARGETS
    if options.quick:
        n_targets = QUICK
    rows = []
    for name, box in chosen(options.only).items():
        rows.append(measured(name, box, n_targets, by_hand_only=options.by_hand))
        print(*rows[-1], sep=" | ", flush=True)
    whole = not (options.only or options.quick or options.by_hand)
    write_table(
        "boxes" if whole else "boxes_part",
        "Black boxes of our own, attacked by hand and by the audit",
        HEAD,
        rows,
        command="boxes",
        known=KNOWN,
        targets=n_targets,
        seed=SEED,
        seconds="of one processor, the audit",
    )


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
