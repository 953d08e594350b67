"""Claims 1 to 9: judged by the counts behind the figures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goodfence.attack.scoring import Statistic
from goodfence.reproduction.claims import (
    MARGIN,
    Claim,
    Counted,
    Figures,
    Question,
    against_others,
    claim_of,
    errors_along,
    own_numbers,
    settled,
)
from goodfence.reproduction.definition import PRIVATE, Number

WITHOUT_ATTACK = ("item-movielens", "user-movielens", "user-douban")
ENOUGH_KNOWN = 8
"""The number of known ratings from which on, says the paper, kNN gives everything away."""


def claims_of_figures(figures: Figures) -> tuple[Claim, ...]:
    """Return the claims that these figures can judge, by number."""
    judges: tuple[tuple[tuple[str, ...], Callable[[Figures], Claim]], ...] = (
        (WITHOUT_ATTACK, _ppns_is_best),
        ((*WITHOUT_ATTACK, "attack-beta"), _grows_with_beta),
        ((*WITHOUT_ATTACK, "attack-beta"), _one_partition),
        (("attack-beta",), _lowest_under_attack),
        (("attack-m",), _knn_is_zero),
        (("attack-k",), _larger_k),
        (("attack-epsilon",), _larger_epsilon),
        (("attack-m",), _larger_m),
        (("attack-m",), _nothing_given_away),
    )
    telling = {name: figure for name, figure in figures.items() if _tells(figure)}
    found = []
    for names, judge in judges:
        there = {name: telling[name] for name in names if name in telling}
        if there:
            found.append(judge(there))
    return tuple(found)


def _tells(figure: Counted) -> bool:
    """Return whether a figure has the points to judge by; small data leaves too few."""
    if figure.definition.x == "known" and not _enough(figure):
        return False
    return len(figure.definition.values) > 1 and len(figure.several) > 0


def _ppns_is_best(figures: Figures) -> Claim:
    tests = against_others(figures)
    least = -max(test.found.value for test in tests)
    sentences = {
        "holds": "Without an attack PPNS predicts better than both rivals in every setting, by at least "
        f"{least:.3f}; it owes that to being almost kNN.",
        "reversed": "Without an attack PPNS predicts worse than both rivals in every setting: {changes}.",
        "fails": "Without an attack PPNS does not beat both rivals in every setting: {changes}.",
    }
    numbers = own_numbers(figures, ("mae", "mae_clipped", "coverage"))
    return claim_of(1, figures, tests, sentences, numbers)


def _grows_with_beta(figures: Figures) -> Claim:
    tests = []
    for name, figure in figures.items():
        values, several = figure.definition.values, figure.several
        tests.append(figure.rise("PPNS", values, "above", name))
        if name == "attack-beta" and len(several) > 2:
            tests.append(figure.rise("PPNS", several, "above", f"{name} beyond beta = 1"))
    sentences = {
        "holds": "More partitions always raise the error of PPNS: {changes}.",
        "reversed": "More partitions lower the error of PPNS everywhere: {changes}.",
        "fails": "More partitions do not always raise the error of PPNS, so beta is no dial between accuracy and "
        "security; from the fewest to the most the error changes by: {changes}.",
    }
    return claim_of(2, figures, tests, sentences, errors_along(figures, "PPNS"))


def _one_partition(figures: Figures) -> Claim:
    numbers = {}
    for name, figure in figures.items():
        if 1 in figure.definition.values:
            first, second = (figure.sums.counts[1, series] for series in ("kNN", "PPNS"))
            same = ("predicted", "error", "exact", "recovered")
            apart = np.logical_or.reduce([first[part] != second[part] for part in same])
            numbers[f"{name}: targets that differ"] = float(apart.sum())
            numbers[f"{name}: targets"] = float(len(apart))
    return settled(
        3,
        holds=not any(value for name, value in numbers.items() if name.endswith("differ")),
        sentences=(
            "With one partition PPNS is plain kNN, prediction for prediction.",
            "With one partition PPNS does not predict what kNN predicts.",
        ),
        numbers=numbers,
        figures=tuple(figures),
    )


def _lowest_under_attack(figures: Figures) -> Claim:
    tests = against_others(figures)
    least = -max(test.found.value for test in tests)
    metrics = ("mae", "mae_clipped", "coverage", "recovery", "exact", "advantage")
    numbers = own_numbers(figures, metrics)
    leaks = numbers["attack-beta PPNS advantage"]
    sentences = {
        "holds": f"Fakes get the lowest error from PPNS, by at least {least:.2f}; the paper counts that as accuracy, "
        f"but an attacker's low error is disclosure, and {leaks:.0%} of the hidden ratings leak.",
        "reversed": "Fakes get the highest error from PPNS: {changes}.",
        "fails": "Fakes do not get a lower error from PPNS than from both rivals: {changes}.",
    }
    return claim_of(4, figures, tests, sentences, numbers)


def _knn_is_zero(figures: Figures) -> Claim:
    figure = figures["attack-m"]
    enough = _enough(figure)
    numbers = {
        f"m={x}: {metric}": figure.sums.statistic(metric, "kNN", x).value
        for x in enough
        for metric in ("mae", "coverage", "recovery", "target_chosen")
    }
    for x in enough:
        counts = figure.sums.counts[x, "kNN"]
        numbers[f"m={x}: wrong predictions"] = float((counts["predicted"] - counts["exact"]).sum())
    first = enough[0]
    return settled(
        5,
        holds=not any(numbers[f"m={x}: wrong predictions"] for x in enough),
        sentences=(
            "From 8 known ratings on plain kNN never errs about what it predicts for a fake.",
            (
                f"With {first} known ratings plain kNN hands over {numbers[f'm={first}: recovery']:.0%} of the hidden "
                f"ratings, not all, because for {1 - numbers[f'm={first}: target_chosen']:.0%} of the targets "
                "somebody else is nearer to the fake."
            ),
        ),
        numbers=numbers,
        figures=tuple(figures),
    )


def _larger_k(figures: Figures) -> Claim:
    figure = figures["attack-k"]
    tests = [figure.rise("PPNS", figure.definition.values, "below", "PPNS")]
    sentences = {
        "holds": "A larger k lowers the error that fakes get, which helps the attacker: {changes}.",
        "reversed": "A larger k raises the error that fakes get from PPNS: {changes}.",
        "fails": "k makes no difference to the error that fakes get from PPNS: {changes}.",
    }
    return claim_of(6, figures, tests, sentences, errors_along(figures, "PPNS"))


def _larger_epsilon(figures: Figures) -> Claim:
    figure = figures["attack-epsilon"]
    values = figure.definition.values
    tests = [figure.rise(series, values, "below", series) for series in ("PNCF", "PPNS")]
    sentences = {
        "holds": "A larger epsilon lowers the error that fakes get from both methods: {changes}.",
        "reversed": "A larger epsilon raises the error that fakes get from both methods: {changes}.",
        "fails": "A larger epsilon does not lower the error that fakes get from both; over the whole range it changes "
        "by: {changes}.",
    }
    numbers = errors_along(figures, "PNCF") | errors_along(figures, "PPNS")
    return claim_of(7, figures, tests, sentences, numbers)


def _larger_m(figures: Figures) -> Claim:
    figure = figures["attack-m"]
    every = tuple(figure.definition.series)
    tests = [figure.rise(series, figure.definition.values, "below", series) for series in every]
    numbers: dict[str, float] = {}
    for series in every:
        numbers |= errors_along(figures, series)
    sentences = {
        "holds": "The more the attacker knows, the nearer every method's predictions come to the hidden ratings: "
        "{changes}.",
        "reversed": "The more the attacker knows, the farther off the predictions are: {changes}.",
        "fails": "More knowledge does not bring every method's predictions nearer: {changes}.",
    }
    return claim_of(8, figures, tests, sentences, numbers)


def _nothing_given_away(figures: Figures) -> Claim:
    figure = figures["attack-m"]
    enough = _enough(figure)
    means = {series: figure.sums.mean("advantage", series, enough) for series in PRIVATE}
    tests = [
        Question(
            f"{series}, minus {MARGIN}", Statistic(one.value - MARGIN, one.error, one.n), "below"
        )
        for series, one in means.items()
    ]
    shares = ", ".join(f"{one.value:.0%} from {series}" for series, one in means.items())
    first = enough[0]
    sentences = {
        "holds": f"The target's presence tells fakes nothing about the hidden ratings: {shares}.",
        "fails": f"The target's ratings are given away: fakes that know {first} or more of them recover this share of "
        f"the others only because the target is in the data: {shares}.",
    }
    metrics = ("recovery", "recovery_without", "advantage", "exact", "guess")
    numbers = {
        f"{series} m={x}: {metric}": figure.sums.statistic(metric, series, x).value
        for series in PRIVATE
        for x in enough
        for metric in metrics
    }
    return claim_of(9, figures, tests, sentences, numbers, directed=False)


def _enough(figure: Counted) -> tuple[Number, ...]:
    return tuple(x for x in figure.definition.values if x >= ENOUGH_KNOWN)
