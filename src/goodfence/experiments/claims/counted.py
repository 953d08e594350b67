"""A figure and its counts: what the claims about figures are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from goodfence.data.scale import Scale
from goodfence.experiments.claims.texts import RULES, TEXTS
from goodfence.experiments.claims.verdict import (
    MARGIN,
    Claim,
    Comparison,
    Question,
    judged,
    verdict_of,
)
from goodfence.experiments.definition import Definition, Number
from goodfence.experiments.estimates import Sums

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
        f"{name} {series} MAE at {figure.definition.x}={x:g}": figure.sums.estimate(
            "mae", series, x
        ).value
        for name, figure in figures.items()
        for x in figure.definition.values
    }


def changes(comparisons: Sequence[Comparison]) -> str:
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
    """Return a claim that no chance is in: it holds, or a counter-example refutes it."""
    return Claim(
        number=number,
        text=TEXTS[number],
        verdict="holds" if holds else "fails",
        sentence=sentences[0 if holds else 1],
        rule=RULES[number],
        numbers=dict(numbers),
        figures=tuple(figures),
    )
