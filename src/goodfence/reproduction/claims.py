"""The rule by which a claim gets its verdict.

A claim is a set of comparisons. Each compares paired numbers (the same targets, all seeds added up for each) by
Student's t, two-sided; the false positive rate of 1% is divided by the number of comparisons (Bonferroni), so that it
holds for the claim as a whole. A comparison comes out

- as claimed: the interval lies on the side that the paper states;
- opposite: it lies on the other side;
- no difference: neither, and the interval lies within the margin, one hundredth of a star on a scale of 1 to 5
  (one hundredth for shares);
- open: none of these.

All as claimed: the claim holds. All opposite: reversed. Some opposite or without a difference: fails. Otherwise it
cannot be told, and the number of targets is stated that would tell. Statements without chance (an equality, a
theorem, "always") need no test: one counterexample refutes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from goodfence.attack.scoring import Statistic
from goodfence.data.scale import Scale
from goodfence.reproduction.definition import Definition, Number
from goodfence.reproduction.runs import Sums

FALSE_POSITIVE_RATE = 0.01
"""Of a claim, over all its comparisons."""
MARGIN = 0.01
"""Less than this is no difference: one hundredth of a star on a scale of 1 to 5, or of a share."""

ClaimVerdict: TypeAlias = Literal["holds", "fails", "reversed", "cannot tell"]
Outcome: TypeAlias = Literal["as claimed", "opposite", "no difference", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedComparison:
    """One comparison of a claim, judged."""

    what: str
    """What is compared, in words."""
    value: float
    low: float
    high: float
    n: int
    """On how many targets it rests."""
    outcome: Outcome
    needed: int | None = None
    """How many targets would settle an open one."""

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "what": self.what,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "targets": self.n,
            "outcome": self.outcome,
            "needed": self.needed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim of the paper with its verdict."""

    number: int
    """The number of the claim, 1 to 14."""
    text: str
    """What the paper says."""
    verdict: ClaimVerdict
    sentence: str
    """The finding in one sentence, for somebody who has not read the paper."""
    rule: str
    """How it was judged."""
    comparisons: tuple[JudgedComparison, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict)
    """What else was measured."""
    figures: tuple[str, ...] = ()
    """The figures it was judged by."""

    @property
    def needed(self) -> int | None:
        """How many targets it would take to tell; None if it can be told."""
        open_ = [one.needed for one in self.comparisons if one.needed is not None]
        return max(open_) if open_ and self.verdict == "cannot tell" else None

    def __repr__(self) -> str:
        return f"Claim({self.number}: {self.verdict}. {self.sentence})"

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as plain values."""
        return {
            "claim": self.number,
            "text": self.text,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "rule": self.rule,
            "figures": list(self.figures),
            "needed": self.needed,
            "numbers": dict(self.numbers),
            "comparisons": [one.to_dict() for one in self.comparisons],
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A comparison before it is judged: below or above zero is what the paper states."""

    what: str
    found: Statistic
    claimed: Literal["below", "above"]
    margin: float = MARGIN


def judged(tests: Sequence[Question]) -> tuple[JudgedComparison, ...]:
    """Return the comparisons with their outcomes; the false positive rate is shared among them.

    Examples
    --------
    >>> [one] = judged([Question("a - b", Statistic(-0.2, 0.01, 200), "below")])
    >>> one.outcome
    'as claimed'
    """
    return tuple(_judged(test, 1 - FALSE_POSITIVE_RATE / len(tests)) for test in tests)


def _judged(test: Question, confidence: float) -> JudgedComparison:
    found = test.found
    half = found.half_width(confidence)
    low, high = found.value - half, found.value + half
    outcome: Outcome = "open"
    if high < 0 or low > 0:
        outcome = "as claimed" if (high < 0) == (test.claimed == "below") else "opposite"
    elif low > -test.margin and high < test.margin:
        outcome = "no difference"
    return JudgedComparison(
        what=test.what,
        value=found.value,
        low=low,
        high=high,
        n=found.n,
        outcome=outcome,
        needed=_needed(found, half, test.margin) if outcome == "open" else None,
    )


def _needed(found: Statistic, half: float, margin: float) -> int | None:
    """Return how many targets would show the difference, or that there is none, if the estimate is right."""
    best = max(abs(found.value), margin - abs(found.value))
    if not np.isfinite(half) or best <= 0:
        return None
    return int(np.ceil(found.n * (half / best) ** 2))


def verdict_of(comparisons: Sequence[JudgedComparison]) -> ClaimVerdict:
    """Return the verdict of all comparisons together.

    Examples
    --------
    >>> verdict_of(judged([Question("a - b", Statistic(0.2, 0.01, 200), "below")]))
    'reversed'
    """
    outcomes = {one.outcome for one in comparisons}
    if outcomes == {"as claimed"}:
        return "holds"
    if outcomes == {"opposite"}:
        return "reversed"
    if outcomes & {"opposite", "no difference"}:
        return "fails"
    return "cannot tell"


TEXTS: dict[int, str] = {
    1: "Without an attack PPNS predicts better than nPNS and PNCF, in all three settings.",
    2: "The MAE of PPNS grows with beta, without an attack and under attack.",
    3: "With beta = 1 PPNS equals kNN.",
    4: "Under attack, at the same beta, PPNS has the lowest MAE of the three private methods.",
    5: "Under attack the MAE of kNN is zero from m = 8 on.",
    6: "Under attack a larger k lowers the MAE of PPNS.",
    7: "Under attack a larger epsilon lowers the MAE of PNCF and PPNS.",
    8: "Under attack a larger m lowers the MAE of every method.",
    9: "None of the three private methods gives the target's ratings away.",
    10: "The allocation (k-1, 0, ..., 0, 1) maximises alpha [FINAL].",
    11: "Manly's mean [approx] is a good approximation, and exact for equal weights.",
    12: 'Partition 1 is the fakes and the target, with similarity "absolutely one" [OBJ].',
    13: "In the second half of a candidate list most similarities are zero.",
    14: "To be the only real user among the neighbours the attacker needs beta * k fakes.",
}

_COMMON = "on the cells that all three private methods predict"
RULES: dict[int, str] = {
    1: f"PPNS minus each other private method, mean over beta > 1, {_COMMON}; below zero in every setting.",
    2: "The rise of the straight line through PPNS' MAE over beta; above zero in every figure, and under attack "
    "also over beta > 1 alone.",
    3: "Every target's predictions at beta = 1 under every seed; one difference refutes it.",
    4: f"PPNS minus each other private method, mean over beta > 1, {_COMMON}; below zero.",
    5: "kNN is not random: one prediction that errs by more than 1e-6 at m >= 8 refutes it.",
    6: "The rise of the straight line through PPNS' MAE over k; below zero.",
    7: "The rise of the straight line through each MAE over log epsilon; below zero for both.",
    8: "The rise of the straight line through each MAE over log m; below zero for all four.",
    9: "Advantage (recovery minus recovery in a world without the target) minus one hundredth, mean over m >= 8; "
    "below zero for all three.",
    10: "All feasible allocations are enumerated on real and on random lists; one better allocation refutes it. "
    "It is also a theorem: a draw moved to partition 1 replaces a candidate by one at least as similar.",
    11: "The largest error of an inclusion probability on the lists and settings of the figures; good means at most "
    "0.01, exact at most 1e-9.",
    12: "The lists of asking fakes (k = 50, m = 8 random items); one target below similarity 1, or outside "
    "partition 1, refutes it.",
    13: "The share of zeros in the second half of the lists, in the three settings of the figures; above a half.",
    14: "The exact probability that the target is the only real neighbour of the asking fake, for several numbers of "
    "fakes; a positive one below beta * k refutes it.",
}


OTHERS = ("nPNS", "PNCF")


@dataclass(frozen=True, eq=False, repr=False)
class Counted:
    """A figure and its counts."""

    definition: Definition
    sums: Sums
    scale: Scale

    @property
    def margin(self) -> float:
        """What counts as no difference of an error, in the units of the scale."""
        return MARGIN * (self.scale.highest - self.scale.lowest) / 4

    @property
    def several(self) -> tuple[Number, ...]:
        """The points with more than one partition."""
        values = self.definition.values
        return tuple(x for x in values if self.definition.parameters(x)["beta"] > 1)

    def rise(
        self,
        series: str,
        values: tuple[Number, ...],
        claimed: Literal["below", "above"],
        what: str,
    ) -> Question:
        """Return the test of how much the error rises over `values`, by their logarithms on a log axis."""
        log = self.definition.scale == "log"
        found = self.sums.trend("mae", series, values, log=log)
        return Question(what, found, claimed, self.margin)


Figures: TypeAlias = Mapping[str, Counted]


def against_others(figures: Figures) -> list[Question]:
    """Return PPNS minus each other private method, on common cells, mean over more than one partition."""
    return [
        Question(
            f"{name}: PPNS - {other}",
            figure.sums.difference("mae_common", "PPNS", other, figure.several),
            "below",
            figure.margin,
        )
        for name, figure in figures.items()
        for other in OTHERS
    ]


def own_numbers(figures: Figures, metrics: Sequence[str]) -> dict[str, float]:
    """Return each method's own numbers, on its own cells: means over more than one partition."""
    return {
        f"{name} {series} {metric}": figure.sums.mean(metric, series, figure.several).value
        for name, figure in figures.items()
        for series in figure.definition.series
        for metric in metrics
    }


def errors_along(figures: Figures, series: str) -> dict[str, float]:
    """Return the error of a series at each point."""
    return {
        f"{name} {series} MAE at {figure.definition.x}={x:g}": figure.sums.statistic(
            "mae", series, x
        ).value
        for name, figure in figures.items()
        for x in figure.definition.values
    }


def changes(comparisons: Sequence[JudgedComparison]) -> str:
    """Return what changed by how much, in words."""
    # Adding 0 makes a rounded -0 positive.
    return "; ".join(f"{one.what} {round(one.value, 3) + 0.0:+.3f}" for one in comparisons)


def claim_of(
    number: int,
    figures: Iterable[str],
    tests: Sequence[Question],
    sentences: Mapping[str, str],
    numbers: Mapping[str, float],
    *,
    directed: bool = True,
) -> Claim:
    """Return the claim with the verdict of its tests; a sentence may use {changes}.

    Only a claim about a direction can be reversed; one that something is so, or is not, can only fail.
    """
    comparisons = judged(tests)
    verdict = verdict_of(comparisons)
    if verdict == "reversed" and not directed:
        verdict = "fails"
    unknown = "The difference is too small to be told with so few targets: {changes}."
    sentence = sentences.get(verdict, unknown).format(changes=changes(comparisons))
    return Claim(
        number=number,
        text=TEXTS[number],
        verdict=verdict,
        sentence=sentence,
        rule=RULES[number],
        comparisons=comparisons,
        numbers=dict(numbers),
        figures=tuple(figures),
    )


def settled(
    number: int,
    *,
    holds: bool,
    sentences: tuple[str, str],
    numbers: Mapping[str, float],
    figures: Sequence[str] = (),
) -> Claim:
    """Return a claim that no chance is in: it holds, or a counterexample refutes it."""
    return Claim(
        number=number,
        text=TEXTS[number],
        verdict="holds" if holds else "fails",
        sentence=sentences[0 if holds else 1],
        rule=RULES[number],
        numbers=dict(numbers),
        figures=tuple(figures),
    )
