"""The rule by which a claim gets its verdict, and claims 1 to 9, which the counts behind the figures judge.

A claim is a set of comparisons of paired numbers (the same targets, all seeds added up) by Student's t, two-sided; the
false positive rate of 1% is shared among them (Bonferroni). A comparison comes out as claimed, or opposite, where its
interval lies on that side; as no difference where it lies within the margin; else open. Where the paper states that
there is no difference, it comes out as claimed within the margin, and as a difference outside of it.

All as claimed: the claim holds. All opposite: reversed. Some opposite, without a difference that was stated, or with
one that was denied: fails. Otherwise it cannot be told, and the number of targets is stated that would tell.
Statements without chance need no test: one counterexample refutes them. What the paper says, and each finding in words,
is in `definitions/claims.toml`; two claims have two parts, what the paper measures and what it takes that for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import numpy as np

from goodfence.attack.scoring import Statistic
from goodfence.data.scale import Scale
from goodfence.papers.reproduction.definition import COMPARED, PRIVATE, Definition, Number
from goodfence.papers.reproduction.runs import Sums

FALSE_POSITIVE_RATE = 0.01
"""Of a claim, over all its comparisons."""
MARGIN = 0.01
"""Less than this is no difference: one hundredth of a star on a scale of 1 to 5, or of a share."""
WITHOUT_ATTACK = ("item-movielens", "user-movielens", "user-douban")
_ENOUGH_KNOWN = 8
"""The number of known ratings from which on, says the paper, kNN gives everything away."""
_LEAKS = ("recovery", "exact", "advantage")
_UNKNOWN = "The difference is too small to be told with so few targets: {changes}."

ClaimVerdict: TypeAlias = Literal["holds", "fails", "reversed", "cannot tell"]
Outcome: TypeAlias = Literal["as claimed", "opposite", "no difference", "difference", "open"]
Side: TypeAlias = Literal["below", "above", "neither"]


@dataclass(frozen=True, slots=True)
class JudgedComparison:
    """One comparison of a claim, judged, with its interval and its number of targets."""

    what: str
    value: float
    low: float
    high: float
    targets: int
    outcome: Outcome
    needed: int | None = None
    """How many targets would settle an open one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim of the paper with its verdict."""

    number: int
    text: str
    """What the paper says."""
    verdict: ClaimVerdict
    sentence: str
    """The finding in one sentence, for somebody who has not read the paper."""
    rule: str
    """How it was judged."""
    comparisons: tuple[JudgedComparison, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict)
    figures: tuple[str, ...] = ()
    part: str = ""
    """a or b where a claim is judged in two parts."""

    @property
    def label(self) -> str:
        """The number with the part."""
        return f"{self.number}{self.part}"

    @property
    def needed(self) -> int | None:
        """How many targets it would take to tell; None if it can be told."""
        open_ = [one.needed for one in self.comparisons if one.needed is not None]
        return max(open_) if open_ and self.verdict == "cannot tell" else None

    def __repr__(self) -> str:
        return f"Claim({self.label}: {self.verdict}. {self.sentence})"

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as plain values."""
        told = asdict(self) | {"figures": list(self.figures), "needed": self.needed}
        return {"claim": told.pop("number"), **told, "comparisons": list(told["comparisons"])}


@dataclass(frozen=True, slots=True)
class Question:
    """A comparison before it is judged: below zero, above it, or neither is what the paper states."""

    what: str
    found: Statistic
    claimed: Side
    margin: float = MARGIN

    def judged(self, confidence: float) -> JudgedComparison:
        """Return the comparison with its outcome; of an open one, how many targets would settle it."""
        found, margin = self.found, self.margin
        half = found.half_width(confidence)
        low, high = found.value - half, found.value + half
        outcome: Outcome = "open"
        if self.claimed == "neither":
            if low > -margin and high < margin:
                outcome = "as claimed"
            elif high < -margin or low > margin:
                outcome = "difference"
        elif high < 0 or low > 0:
            outcome = "as claimed" if (high < 0) == (self.claimed == "below") else "opposite"
        elif low > -margin and high < margin:
            outcome = "no difference"
        # Settled is either the difference or that there is none, if the estimate is right.
        off = abs(found.value)
        best = abs(margin - off) if self.claimed == "neither" else max(off, margin - off)
        needed = None
        if outcome == "open" and np.isfinite(half) and best > 0:
            needed = int(np.ceil(found.n * (half / best) ** 2))
        return JudgedComparison(self.what, found.value, low, high, found.n, outcome, needed)


def judged(tests: Sequence[Question]) -> tuple[JudgedComparison, ...]:
    """Return the comparisons with their outcomes; the false positive rate is shared among them."""
    return tuple(test.judged(1 - FALSE_POSITIVE_RATE / len(tests)) for test in tests)


def verdict_of(comparisons: Sequence[JudgedComparison]) -> ClaimVerdict:
    """Return the verdict of all comparisons together."""
    outcomes = {one.outcome for one in comparisons}
    if outcomes == {"as claimed"}:
        return "holds"
    if outcomes == {"opposite"}:
        return "reversed"
    if outcomes & {"opposite", "no difference", "difference"}:
        return "fails"
    return "cannot tell"


@cache
def _texts() -> dict[str, dict[str, str]]:
    file = files("goodfence.papers.reproduction") / "definitions" / "claims.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def claim_of(
    label: str,
    tests: Sequence[Question] | bool,
    numbers: Mapping[str, float],
    figures: Iterable[str] = (),
    **words: object,
) -> Claim:
    """Return the claim with the verdict of its tests, or whether it holds where no chance is in it.

    `words` are what its sentences name.
    """
    comparisons = judged(tests) if isinstance(tests, Sequence) else ()
    verdict: ClaimVerdict = "holds" if tests else "fails"
    if comparisons:
        verdict = verdict_of(comparisons)
    # Adding 0 makes a rounded -0 positive.
    changes = "; ".join(f"{one.what} {round(one.value, 3) + 0.0:+.3f}" for one in comparisons)
    stated, digits = _texts()[label], label.rstrip("ab")
    return Claim(
        number=int(digits),
        part=label.removeprefix(digits),
        text=stated["text"],
        verdict=verdict,
        sentence=stated.get(verdict, _UNKNOWN).format(changes=changes, **words),
        rule=stated["rule"],
        comparisons=comparisons,
        numbers=dict(numbers),
        figures=tuple(figures),
    )


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
        values = self.definition.judged
        return tuple(x for x in values if self.definition.parameters(x)["beta"] > 1)

    @property
    def enough(self) -> tuple[Number, ...]:
        """The points at which as many ratings are known as give everything away."""
        return tuple(x for x in self.definition.values if x >= _ENOUGH_KNOWN)

    @property
    def tells(self) -> bool:
        """Whether there are enough points to judge by."""
        enough = self.definition.x != "known" or bool(self.enough)
        return len(self.definition.judged) > 1 and bool(self.several) and enough

    def rise(self, series: str, claimed: Side, what: str, values: tuple[Number, ...] | None = None) -> Question:
        """Return the test of how much the error rises over `values`, by their logarithms on a log axis."""
        log = self.definition.scale == "log"
        found = self.sums.trend("mae", series, values or self.definition.judged, log=log)
        return Question(what, found, claimed, self.margin)


Figures: TypeAlias = Mapping[str, Counted]


def claims_of_figures(figures: Figures) -> tuple[Claim, ...]:
    """Return the claims that these figures can judge, by number; small data leaves some too few points."""
    telling = {name: figure for name, figure in figures.items() if figure.tells}
    judges: tuple[tuple[tuple[str, ...], Callable[[Figures], Claim]], ...] = (
        (WITHOUT_ATTACK, lambda there: _ppns_is_best("1", there)),
        ((*WITHOUT_ATTACK, "attack-beta"), _grows_with_beta),
        ((*WITHOUT_ATTACK, "attack-beta"), _one_partition),
        (("attack-beta",), lambda there: _ppns_is_best("4", there, *_LEAKS)),
        (("attack-m",), _knn_is_zero),
        (("attack-k",), lambda there: _error_falls("6", there, ("PPNS",))),
        (("attack-epsilon",), lambda there: _error_falls("7", there, ("PNCF", "PPNS"))),
        (("attack-m",), lambda there: _error_falls("8", there, COMPARED)),
        (("attack-m",), _error_is_not_zero),
        (("attack-m",), _nothing_given_away),
    )
    found = []
    for names, judge in judges:
        there = {name: telling[name] for name in names if name in telling}
        if there:
            found.append(judge(there))
    return tuple(found)


def against_others(figures: Figures) -> list[Question]:
    """Return PPNS minus each other private method, on common cells, mean over more than one partition."""
    tests = []
    for name, figure in figures.items():
        for other in ("nPNS", "PNCF"):
            found = figure.sums.difference("mae_common", "PPNS", other, figure.several)
            tests.append(Question(f"{name}: PPNS - {other}", found, "below", figure.margin))
    return tests


def _own_numbers(figures: Figures, *metrics: str) -> dict[str, float]:
    """Return each method's own numbers, on its own cells: means over more than one partition."""
    return {
        f"{name} {series} {metric}": figure.sums.mean(metric, series, figure.several).value
        for name, figure in figures.items()
        for series in figure.definition.series
        for metric in metrics
    }


def _errors_along(figures: Figures, series: Iterable[str]) -> dict[str, float]:
    return {
        f"{name} {one} MAE at {figure.definition.x}={x:g}": figure.sums.value("mae", one, x)
        for one in series
        for name, figure in figures.items()
        for x in figure.definition.values
    }


def _ppns_is_best(label: str, figures: Figures, *metrics: str) -> Claim:
    tests = against_others(figures)
    numbers = _own_numbers(figures, "mae", "mae_clipped", "coverage", *metrics)
    least = -max(test.found.value for test in tests)
    leaks = numbers.get("attack-beta PPNS advantage")
    return claim_of(label, tests, numbers, figures, least=least, leaks=leaks)


def _grows_with_beta(figures: Figures) -> Claim:
    tests = []
    for name, figure in figures.items():
        tests.append(figure.rise("PPNS", "above", name))
        if name == "attack-beta" and len(figure.several) > 2:
            beyond = f"{name} beyond beta = 1"
            tests.append(figure.rise("PPNS", "above", beyond, figure.several))
    return claim_of("2", tests, _errors_along(figures, ["PPNS"]), figures)


def _one_partition(figures: Figures) -> Claim:
    numbers = {}
    for name, figure in figures.items():
        if 1 in figure.definition.values:
            first, second = (figure.sums.counts[1, series] for series in ("kNN", "PPNS"))
            same = ("predicted", "error", "exact", "recovered")
            apart = np.logical_or.reduce([first[part] != second[part] for part in same])
            numbers[f"{name}: targets that differ"] = float(apart.sum())
            numbers[f"{name}: targets"] = float(len(apart))
    differ = any(value for name, value in numbers.items() if name.endswith("differ"))
    return claim_of("3", not differ, numbers, figures)


def _knn_is_zero(figures: Figures) -> Claim:
    figure = figures["attack-m"]
    numbers = {
        f"m={x}: {metric}": figure.sums.value(metric, "kNN", x)
        for x in figure.enough
        for metric in ("mae", "coverage", "recovery", "target_chosen")
    }
    for x in figure.enough:
        counts = figure.sums.counts[x, "kNN"]
        numbers[f"m={x}: wrong predictions"] = float((counts["predicted"] - counts["exact"]).sum())
    first = figure.enough[0]
    holds = not any(numbers[f"m={x}: wrong predictions"] for x in figure.enough)
    recovery, missed = numbers[f"m={first}: recovery"], 1 - numbers[f"m={first}: target_chosen"]
    return claim_of("5", holds, numbers, figures, first=first, recovery=recovery, missed=missed)


def _error_falls(label: str, figures: Figures, series: Sequence[str]) -> Claim:
    (figure,) = figures.values()
    tests = [figure.rise(one, "below", one) for one in series]
    return claim_of(label, tests, _errors_along(figures, series), figures)


def _error_is_not_zero(figures: Figures) -> Claim:
    figure = figures["attack-m"]
    errors = {(series, x): figure.sums.value("mae", series, x) for series in PRIVATE for x in figure.enough}
    numbers = {f"{series} m={x}: MAE": error for (series, x), error in errors.items()}
    (series, x), least = min(errors.items(), key=lambda one: one[1])
    return claim_of("9a", least > 0, numbers, figures, least=least, series=series, known=x)


def _nothing_given_away(figures: Figures) -> Claim:
    figure = figures["attack-m"]
    means = {series: figure.sums.mean("advantage", series, figure.enough) for series in PRIVATE}
    tests = [Question(series, one, "neither") for series, one in means.items()]
    numbers = {
        f"{series} m={x}: {metric}": figure.sums.value(metric, series, x)
        for series in PRIVATE
        for x in figure.enough
        for metric in ("recovery", "recovery_without", "advantage", "exact", "guess")
    }
    shares = ", ".join(f"{one.value:.0%} from {series}" for series, one in means.items())
    return claim_of("9b", tests, numbers, figures, first=figure.enough[0], shares=shares)
