"""The rule of the verdicts, and the estimates it rests on, by hand."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

import goodfence as gf
from goodfence.arrays import Floats
from goodfence.attack.scoring import Statistic
from goodfence.papers.reproduction import claims
from goodfence.papers.reproduction.claims import Claim, Counted, Question, Side, judged, verdict_of
from goodfence.papers.reproduction.definition import PRIVATE, Number
from goodfence.papers.reproduction.figures import Reproduction
from goodfence.papers.reproduction.runs import Sums

Counts = dict[tuple[Number, str], dict[str, Floats]]

N = 400


def outcome(value: float, error: float, claimed: str = "below", margin: float = 0.01) -> str:
    sides: dict[str, Side] = {"below": "below", "above": "above", "neither": "neither"}
    test = Question("a", Statistic(value, error, N), sides[claimed], margin)
    return judged([test])[0].outcome


def test_a_comparison_has_four_outcomes() -> None:
    assert outcome(-0.1, 0.01) == "as claimed"
    assert outcome(0.1, 0.01) == "opposite"
    assert outcome(0.1, 0.01, claimed="above") == "as claimed"
    assert outcome(0.001, 0.001) == "no difference"
    assert outcome(0.02, 0.02) == "open"


def test_where_no_difference_is_claimed_there_is_no_other_side() -> None:
    assert outcome(0.001, 0.001, claimed="neither") == "as claimed"
    assert outcome(0.1, 0.01, claimed="neither") == "difference"
    assert outcome(-0.1, 0.01, claimed="neither") == "difference"
    assert outcome(0.005, 0.01, claimed="neither") == "open"
    apart = [Question("a", Statistic(0.1, 0.01, N), "neither")] * 2
    assert verdict_of(judged(apart)) == "fails", "a claim of nothing cannot be reversed"


def test_every_claim_has_a_sentence_for_every_verdict_it_can_get() -> None:
    told = tomllib.loads((files("goodfence.papers.reproduction") / "definitions" / "claims.toml").read_text())
    assert list(told) == [*map(str, range(1, 9)), "9a", "9b", *map(str, range(10, 14)), "14a", "14b", "15", "16"]
    directional = {"1", "2", "4", "6", "7", "8", "13"}
    for label, texts in told.items():
        assert {"text", "rule", "holds", "fails"} <= texts.keys()
        assert ("reversed" in texts) == (label in directional), label


def test_the_false_positive_rate_is_shared_among_the_comparisons() -> None:
    found = Statistic(-0.028, 0.01, N)
    alone = judged([Question("a", found, "below")])
    shared = judged([Question("a", found, "below")] * 10)
    assert alone[0].outcome == "as claimed"
    assert shared[0].outcome == "open"
    half = stats.t.ppf(1 - 0.01 / 2, N - 1) * 0.01
    assert alone[0].low == pytest.approx(-0.028 - half)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((-1.0, -1.0), "holds"),
        ((1.0, 1.0), "reversed"),
        ((-1.0, 1.0), "fails"),
        ((-1.0, 0.0), "fails"),
        ((0.0, 0.0), "fails"),
        ((-1.0, 0.02), "cannot tell"),
        ((1.0, 0.02), "fails"),
    ],
)
def test_the_verdict_of_two_comparisons(values: tuple[float, ...], verdict: str) -> None:
    errors = {0.0: 1e-4, 0.02: 0.02}
    tests = [Question("a", Statistic(value, errors.get(value, 0.01), N), "below") for value in values]
    assert verdict_of(judged(tests)) == verdict


def test_an_open_comparison_says_what_it_would_take() -> None:
    [one] = judged([Question("a", Statistic(0.02, 0.02, N), "below")])
    assert one.needed is not None
    enough = Statistic(0.02, 0.02 * np.sqrt(N / one.needed), one.needed)
    assert judged([Question("a", enough, "below")])[0].outcome == "opposite"
    claim = Claim(number=1, text="", verdict="cannot tell", sentence="", rule="", comparisons=(one,))
    assert claim.needed == one.needed
    assert claim.to_dict()["needed"] == one.needed


def sums(first: list[float], second: list[float], below: list[float]) -> Sums:
    def counts(errors: list[float]) -> dict[str, Floats]:
        return {"error": np.array(errors), "predicted": np.array(below)}

    return Sums({(1, "a"): counts(first), (1, "b"): counts(second), (2, "a"): counts(second)})


def test_an_estimate_is_a_ratio_of_sums_and_a_difference_is_paired() -> None:
    found = sums([1.0, 2.0, 6.0], [2.0, 2.0, 8.0], [1.0, 2.0, 3.0])
    assert found.value("mae", "a", 1) == 1.5
    difference = found.difference("mae", "a", "b", [1])
    assert difference.value == pytest.approx(-0.5)
    # Residuals of the difference: (a - b) - (-0.5) * cells, over 6 cells.
    rests = np.array([-1.0 + 0.5, 0.0 + 1.0, -2.0 + 1.5]) / 6
    assert difference.error == pytest.approx(np.sqrt((rests**2).sum() * 3 / 2))


def test_with_one_cell_a_target_the_difference_is_the_paired_t_test() -> None:
    generator = np.random.default_rng(7)
    first, second = generator.random(50), generator.random(50)
    found = sums(first.tolist(), second.tolist(), [1.0] * 50).difference("mae", "a", "b", [1])
    test = stats.ttest_rel(first, second)
    assert found.value / found.error == pytest.approx(test.statistic)


def test_a_trend_is_the_rise_of_the_straight_line() -> None:
    counts: Counts = {(x, "a"): {"error": np.array([3.0 + 0.5 * x] * 2), "predicted": np.ones(2)} for x in (1, 2, 4, 8)}
    rise = Sums(counts).trend("mae", "a", [1, 2, 4, 8])
    assert rise.value == pytest.approx(3.5)
    assert rise.error == pytest.approx(0.0)
    logs = Sums(counts).trend("mae", "a", [1, 2, 4, 8], log=True)
    slope = stats.linregress(np.log([1, 2, 4, 8]), [3.5, 4.0, 5.0, 7.0]).slope
    assert logs.value == pytest.approx(slope * np.log(8))


def test_nothing_to_count_is_no_number() -> None:
    counts: Counts = {(1, "a"): {"error": np.zeros(2), "predicted": np.zeros(2)}}
    assert np.isnan(Sums(counts).value("mae", "a", 1))


def test_a_reproduction_is_plain_values_of_its_claims_and_its_manifest() -> None:
    claim = Claim(number=3, text="said", verdict="holds", sentence="so", rule="is", numbers={"a": 1})
    told = Reproduction(figures=(), claims=(claim,), manifest={"seed": 7}).to_dict()
    assert told["manifest"] == {"seed": 7}
    assert [one["verdict"] for one in told["claims"]] == ["holds"]
    assert told["claims"][0]["numbers"] == {"a": 1}


def figure_of(errors: dict[tuple[str, int], list[float]], scale: str = "linear") -> Any:
    """Return a figure of these errors, of one cell a target, as far as a claim looks at it."""
    xs = sorted({x for _, x in errors})
    counts = {
        (x, series): {"error": np.array(each), "predicted": np.ones(len(each))} for (series, x), each in errors.items()
    }
    definition = SimpleNamespace(scale=scale, judged=tuple(xs), values=tuple(xs))
    return Counted(cast("Any", definition), Sums(cast("Any", counts)), gf.Scale(1, 5))


@pytest.mark.parametrize(("least", "verdict"), [(0.25, "holds"), (0.0, "fails")])
def test_the_error_of_no_private_method_is_zero_where_all_is_known(least: float, verdict: str) -> None:
    known = max(claims._ENOUGH_KNOWN, 8)
    errors = {(series, known): [1.0, 2.0] for series in PRIVATE}
    errors[PRIVATE[1], known] = [least, least]
    found = claims._error_is_not_zero({"attack-m": figure_of(errors)})
    assert (found.label, found.verdict) == ("9a", verdict)
    assert found.numbers[f"{PRIVATE[1]} m={known}: MAE"] == least
    assert found.numbers[f"{PRIVATE[0]} m={known}: MAE"] == 1.5


def test_a_rise_is_along_the_axis_as_it_is_drawn() -> None:
    """An error that grows by one with each tenfold x: by two from 1 to 100, on a log axis exactly."""
    errors = {("a", x): [float(at), float(at)] for at, x in enumerate((1, 10, 100))}
    assert figure_of(errors, "log").rise("a", "above", "").found.value == pytest.approx(2.0)
    x = np.array([1.0, 10.0, 100.0])
    slope = np.polyfit(x, [0.0, 1.0, 2.0], 1)[0]
    found = figure_of(errors).rise("a", "above", "").found.value
    assert found == pytest.approx(99 * slope)
