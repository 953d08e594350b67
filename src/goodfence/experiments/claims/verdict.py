"""The rule by which a claim gets its verdict.

A claim is a set of comparisons. Each compares paired numbers (the same targets, all seeds added up for each) by
Student's t, two-sided; the false alarm of 1% is divided by the number of comparisons, so that it holds for the whole
claim. A comparison comes out

- as claimed: the interval lies on the side that the paper states;
- opposite: it lies on the other side;
- no difference: neither, and the interval lies within the margin, one hundredth of a star on a scale of 1 to 5
  (one hundredth for shares);
- open: none of these.

All as claimed: the claim holds. All opposite: reversed. Some opposite or without a difference: fails. Otherwise it
cannot be told, and the number of targets is stated that would tell. Statements without chance (an equality, a
theorem, "always") need no test: one counter-example refutes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from goodfence.experiments.estimates import Estimate, critical

FALSE_ALARM = 0.01
"""Of a claim, over all its comparisons."""
MARGIN = 0.01
"""Less than this is no difference: one hundredth of a star on a scale of 1 to 5, or of a share."""

Verdict: TypeAlias = Literal["holds", "fails", "reversed", "cannot tell"]
Outcome: TypeAlias = Literal["as claimed", "opposite", "no difference", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim of the paper with its verdict."""

    number: int
    """The number of the claim, 1 to 14."""
    text: str
    """What the paper says."""
    verdict: Verdict
    sentence: str
    """The finding in one sentence, for somebody who has not read the paper."""
    rule: str
    """How it was judged."""
    comparisons: tuple[Comparison, ...] = ()
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

    def as_json(self) -> dict[str, Any]:
        """Return what a file of claims holds; what is not a number becomes null."""
        return {
            "claim": self.number,
            "text": self.text,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "rule": self.rule,
            "figures": list(self.figures),
            "needed": self.needed,
            "numbers": {name: _written(value) for name, value in self.numbers.items()},
            "comparisons": [
                {
                    "what": one.what,
                    "value": _written(one.value),
                    "low": _written(one.low),
                    "high": _written(one.high),
                    "targets": one.n,
                    "outcome": one.outcome,
                    "needed": one.needed,
                }
                for one in self.comparisons
            ],
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A comparison before it is judged: below or above zero is what the paper states."""

    what: str
    estimate: Estimate
    claimed: Literal["below", "above"]
    margin: float = MARGIN


def judged(tests: Sequence[Question], false_alarm: float = FALSE_ALARM) -> tuple[Comparison, ...]:
    """Return the comparisons with their outcomes; the false alarm is shared among them.

    Examples
    --------
    >>> [one] = judged([Question("a - b", Estimate(-0.2, 0.01, 200), "below")])
    >>> one.outcome
    'as claimed'
    """
    return tuple(_judged(test, false_alarm / len(tests)) for test in tests)


def _judged(test: Question, false_alarm: float) -> Comparison:
    found = test.estimate
    half = critical(found.n, false_alarm) * found.error
    low, high = found.value - half, found.value + half
    outcome: Outcome = "open"
    if high < 0 or low > 0:
        outcome = "as claimed" if (high < 0) == (test.claimed == "below") else "opposite"
    elif low > -test.margin and high < test.margin:
        outcome = "no difference"
    return Comparison(
        what=test.what,
        value=found.value,
        low=low,
        high=high,
        n=found.n,
        outcome=outcome,
        needed=_needed(found, half, test.margin) if outcome == "open" else None,
    )


def _needed(found: Estimate, half: float, margin: float) -> int | None:
    """Return how many targets would show the difference, or that there is none, if the estimate is right."""
    distances = [abs(found.value), margin - abs(found.value)]
    best = max(distances)
    return (
        None if not np.isfinite(half) or best <= 0 else int(np.ceil(found.n * (half / best) ** 2))
    )


def verdict_of(comparisons: Sequence[Comparison]) -> Verdict:
    """Return the verdict of all comparisons together.

    Examples
    --------
    >>> verdict_of(judged([Question("a - b", Estimate(0.2, 0.01, 200), "below")]))
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


def _written(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
