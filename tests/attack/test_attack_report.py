"""The report, derived by hand; what it shows, what it hides, and how it is kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.attack.knn_attack import AdaptiveAttack, KNNAttack, combined
from goodfence.attack.report import AttackReport
from goodfence.errors import FileProblem, MissingExtra
from goodfence.report.charts import recovery_chart
from goodfence.report.pages import save_result
from tests.support import reference
from tests.support.attack_worlds import AnswersOnly, ItemMeans, OwnMean, WithSupport, tied_ratings

STUDENT = 12.706204736  # the 97.5% point of Student's t with one degree of freedom
NORMAL = 1.959963985  # the 97.5% point of the normal distribution


def by_hand() -> gf.Ratings:
    """Return the ratings of the example; see `test_report_derived_by_hand`."""
    cells = {
        "tess": {"A": 3, "B": 4, "C": 5, "D": 1},
        "theo": {"A": 4, "B": 3, "C": 2},
        "una": {"A": 3, "C": 2},
        "wilma": {"D": 1, "E": 1},
        "will": {"C": 4, "E": 5},
    }
    items = "ABCDE"
    dense = np.array([[float(rated.get(item, 0)) for item in items] for rated in cells.values()])
    return gf.Ratings(sparse.csr_array(dense), list(cells), list(items), scale=(1, 5))


def test_report_derived_by_hand() -> None:
    """Two targets, known items A and B, kNN with k = 2, so two fakes: one asks, one helps.

    Target tess (A3 B4 C5 D1). The asking fake has (A3 B4), norm 5. Similarities: the helper 1; theo
    (12+12)/(5 sqrt 29) = 0.891; tess 25/(5 sqrt 51) = 0.700; una 9/(5 sqrt 13) = 0.499; wilma, will 0. The two
    nearest are the helper and theo: tess is not chosen. Hidden are C and D. C: of the two only theo rated it, 2,
    error 3. D: no answer. Without tess nothing changes: the same two, C error 3, D no answer.

    Target theo (A4 B3 C2). The asking fake has (A4 B3). Similarities: the helper 1; theo 25/(5 sqrt 29) = 0.928;
    tess 24/(5 sqrt 51) = 0.672; una 12/(5 sqrt 13) = 0.666. The two nearest are the helper and theo, so C is
    answered 2: exact. Without theo they are the helper and tess: C is answered 5, error 3.

    Hidden 3. With the targets: predicted 2, errors 3 + 0, recovered and exact 1 (theo's C), chosen 1 of 2.
    Without: predicted 2, errors 3 + 3, recovered 0. So mae 1.5 and 3, coverage 2/3 twice, raw recovery 1/3 and 0,
    raw advantage 1/3. Guessing the mean of the others: tess' C (2+2+4)/3 rounds to 3, not 5; D is 1, right;
    theo's C (5+2+4)/3 rounds to 4, not 2. So guess 1/3. Una, wilma and will lack A or B: 3 left out.

    The other rules guess no better (mode: 2, 1 and 4; bias .25 and 0), and neither target says that something else
    than what was told should be believed. So tess' D is guessed in both worlds, and recovery is 2/3 and 1/3,
    advantage 1/3; theo is fully recovered with theo in the data. The worst-off tenth is one person: theo, all, and
    without the target tess, half. Guesses err by 7/3 + 0 + 5/3 = 4, the attacker by 3 with and 6 without. Two answers
    are ratings, and believed to be right: one of them is, without the targets none.

    Interval of the advantage: gains (0, 1) of (2, 1) hidden, rests -2/3 and 2/3, spread
    sqrt((4/9 + 4/9) / 1 * 2) / 3 = 4/9, times t = 12.7: beyond -1 and 1. Of the mae: errors (3, 0) of (1, 1), rests
    1.5 and -1.5, spread sqrt(4.5 / 1 * 2) / 2 = 1.5: from 0, the least, to 1.5 + 1.5 t. None of two targets, with 2 and
    1 hidden, which say as much as 3^2 / (4 + 1) = 1.8 that count alike: Wilson's upper end is z^2 / (1.8 + z^2).
    """
    none_of = NORMAL**2 / (1.8 + NORMAL**2)
    attack = KNNAttack(known=2, choose=["A", "B"])
    for attacked in (gf.KNN(k=2), gf.NeighbourCF(gf.KNN(k=2))):
        report = attack.run(by_hand(), attacked, targets=["tess", "theo"], rng=1)
        assert report.n_targets == 2
        assert report.n_hidden == 3
        assert report.n_fakes == 2
        assert report.n_left_out == 3
        expected = {
            "recovery": (2 / 3, 0.0, 1.0),
            "recovery_without": (1 / 3, 0.0, 1.0),
            "advantage": (1 / 3, -1.0, 1.0),
            "fully_recovered": (0.5, None, None),
            "fully_recovered_without": (0.0, 0.0, None),
            "worst_tenth_loss": (1.0, None, None),
            "guess": (1 / 3, None, None),
            "within_one_step": (2 / 3, None, None),
            "within_one_step_without": (1 / 3, None, None),
            "mae_gain": (1 / 3, None, None),
            "mae_gain_without": (-2 / 3, None, None),
            "confident_precision": (0.5, None, None),
            "confident_coverage": (2 / 3, None, None),
            "confident_precision_without": (0.0, None, None),
            "confident_coverage_without": (2 / 3, None, None),
            "raw_recovery": (1 / 3, 0.0, 1.0),
            "raw_recovery_without": (0.0, 0.0, none_of),
            "raw_advantage": (1 / 3, -1.0, 1.0),
            "mae": (1.5, 0.0, 1.5 + 1.5 * STUDENT),
            "coverage": (2 / 3, None, None),
            "exact": (1 / 3, 0.0, 1.0),
            "mae_without": (3.0, 3.0, 3.0),
            "coverage_without": (2 / 3, None, None),
            "exact_without": (0.0, 0.0, none_of),
            "target_chosen": (0.5, None, None),
        }
        assert list(report.estimates) == list(expected)
        for name, numbers in expected.items():
            for number, estimate in zip(numbers, report.estimates[name], strict=True):
                assert number is None or estimate == pytest.approx(number), name
        assert report.mae == pytest.approx(1.5)
        assert report.coverage == pytest.approx(2 / 3)
        assert report.raw_recovery == report.exact == report.raw_advantage == report.guess
        assert (report.recovery, report.advantage) == pytest.approx((2 / 3, 1 / 3))
        assert report.target_chosen == 0.5
        assert report.table().to_pydict() == {
            "target": [0, 1],
            "hidden": [2, 1],
            "recovery": [0.5, 1.0],
            "recovery_without": [0.5, 0.0],
            "advantage": [0.0, 1.0],
            "mae": [3.0, 0.0],
            "coverage": [0.5, 1.0],
            "raw_recovery": [0.0, 1.0],
            "exact": [0.0, 1.0],
            "mae_without": [3.0, 3.0],
            "coverage_without": [0.5, 1.0],
            "raw_recovery_without": [0.0, 0.0],
            "exact_without": [0.0, 0.0],
            "guess": [0.5, 0.0],
            "target_chosen": [0.0, 1.0],
        }


def small_report() -> AttackReport:
    attack = KNNAttack(known=2, choose=["A", "B"])
    report: AttackReport = attack.run(by_hand(), gf.KNN(k=2), targets=2, rng=1)
    return report


def test_ids_only_where_asked_for(tmp_path: Path) -> None:
    report = small_report()
    assert "user" not in report.table().column_names
    assert sorted(report.table(ids=True)["user"].to_pylist()) == ["tess", "theo"]
    save_result(report, tmp_path / "report")
    written = (tmp_path / "report" / "manifest.json").read_text() + repr(report)
    written += str(pq.read_table(tmp_path / "report" / "targets.parquet"))
    for name in by_hand().users:
        assert name not in written


def test_saved_whole_with_a_manifest(tmp_path: Path) -> None:
    report, folder = small_report(), tmp_path / "deep" / "report"
    save_result(report, folder)
    save_result(report, folder)  # replaces its like
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "targets.parquet"]
    assert [path.name for path in folder.parent.iterdir()] == ["report"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["goodfence"] == gf.__version__
    assert manifest["seed"] == 1
    assert manifest["settings"]["choose"] == "named items"
    assert "2 named items" in manifest["attack"]
    # No digest of the ratings: whoever knows all but one of them could read the last one from it.
    assert "ratings" not in manifest
    assert manifest["estimates"]["mae"]["value"] == report.mae
    assert pq.read_table(folder / "targets.parquet").equals(report.table())


@pytest.mark.parametrize("killed", ["targets.parquet", "manifest.json"])
def test_an_interrupted_overwrite_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str) -> None:
    report, folder = small_report(), tmp_path / "report"
    save_result(report, folder)
    replace = Path.replace

    def stop(self: Path, target: Path) -> Path:
        if target.name == killed:
            (folder / f".{killed}.0123456789ab").write_bytes(b"half")  # as a killed process leaves it
            raise KeyboardInterrupt
        return replace(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            save_result(report, folder)
    assert not (folder / "manifest.json").exists()
    save_result(report, folder)
    assert json.loads((folder / "manifest.json").read_text())["seed"] == 1


def test_another_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(FileProblem, match="not a saved report"):
        save_result(small_report(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_nothing_is_left_when_saving_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", fail)
    with pytest.raises(FileProblem, match="folder could not be written: no space"):
        save_result(small_report(), tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_chart_has_every_share() -> None:
    pytest.importorskip("altair")
    drawn = json.dumps(recovery_chart(small_report()).to_dict())
    for label in ("with the target", "without the target", "guessing"):
        assert label in drawn


def test_chart_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "altair", None)
    with pytest.raises(MissingExtra, match="install altair"):
        recovery_chart(small_report())


def test_scores_are_those_of_the_reference() -> None:
    from goodfence.attack.scoring import Tally
    from goodfence.attack.targets import Targets

    ratings, generator = tied_ratings(3, values=(1, 2, 3, 4, 5)), np.random.default_rng(5)
    answers = generator.choice([0.2, 1.0, 2.5, 3.4999, 4.0000001, 5.7, np.nan], size=40)
    hidden = generator.integers(1, 6, size=40).astype(float)
    nothing = np.empty((2, 0))
    targets = Targets(np.arange(2), nothing.astype(int), nothing, np.array([0, 25, 40]), np.zeros(40, int), hidden)
    tally = Tally.of(answers, targets, ratings)
    for target, part in enumerate((slice(0, 25), slice(25, 40))):
        expected = reference.attack_scores(answers[part].tolist(), hidden[part].tolist(), 1, 5)
        found = (tally.predicted, tally.error, tally.recovered, tally.exact)
        assert [float(each[target]) for each in found] == pytest.approx(list(expected))


def test_combining_takes_the_most_frequent_or_the_mean() -> None:
    told = np.array([[1.2, 4.6, np.nan, 2.0], [0.9, 1.0, np.nan, 3.0], [5.0, np.nan, np.nan, np.nan]])
    scale = gf.Scale(1, 5)
    np.testing.assert_array_equal(combined(told, "mode", scale), [1, 1, np.nan, 2])
    np.testing.assert_allclose(combined(told, "mean", scale), [7.1 / 3, 2.8, np.nan, 2.5])
    np.testing.assert_array_equal(combined(told[:1], "mode", scale), told[0])


def test_knn_recovers_the_last_unknown_rating() -> None:
    """Knowing all but one of a target's ratings, that row is nearest after the fakes, and answers alone."""
    films = gf.load("movietweetings")
    counts = np.diff(films.csr.indptr)
    for row in range(0, 200, 20):
        attack = KNNAttack(known=int(counts[row]) - 1)
        report = attack.run(films, gf.KNN(k=10), targets=[films.users[row]], rng=row)
        assert report.n_hidden == 1
        assert (report.recovery, report.exact, report.target_chosen) == (1.0, 1.0, 1.0)


def test_a_recommender_that_only_answers_is_attacked_too() -> None:
    ratings = tied_ratings(4)
    attack = KNNAttack(known=4, fakes=4, ask="all")
    report = attack.run(ratings, AnswersOnly(gf.KNN(k=4)), targets=6, rng=2)
    assert report.coverage > 0
    assert np.isnan(report.target_chosen)
    assert report.table()["target_chosen"].null_count == 6


@pytest.mark.slow
def test_helpers_meet_a_rule_of_minimum_support() -> None:
    """A rule that needs five raters stops plain fakes, and not those who rate the item themselves."""
    films, rule = gf.load("movietweetings"), WithSupport(gf.KNN(k=6))
    plain = KNNAttack(known=15).run(films, rule, targets=4, rng=3)
    adaptive = AdaptiveAttack(known=15, items=2).run(films, rule, targets=4, rng=3)
    assert plain.raw_recovery < 0.1
    assert adaptive.exact > 0.7
    assert adaptive.raw_advantage > 0.5


def test_item_means_have_no_advantage() -> None:
    """Nobody's neighbours matter; one rating more moves a mean of many too little to show."""
    ratings = gf.synthetic(users=400, items=60, ratings=8000, rng=3)
    report = KNNAttack(known=4, fakes=5).run(ratings, ItemMeans(), targets=150, rng=3)
    low, high = report.estimates["advantage"][1:]
    assert low <= 0 <= high
    assert report.coverage == 1.0


def test_who_ignores_other_people_gives_no_advantage_at_all() -> None:
    report = KNNAttack(known=4, fakes=5).run(tied_ratings(2), OwnMean(), targets=10, rng=3)
    assert report.coverage == 1.0
    assert report.estimates["advantage"] == (0.0, 0.0, 0.0)


def test_targets_and_knowledge_depend_on_the_seed_alone() -> None:
    ratings = tied_ratings(6)
    reports = [
        KNNAttack(known=3).run(ratings, attacked, targets=7, rng=9)
        for attacked in (gf.KNN(k=4), gf.PPNS(k=3, beta=2), gf.NPNS(k=5))
    ]
    for report in reports[1:]:
        np.testing.assert_array_equal(report.rows, reports[0].rows)
        one, other = (each.informed.guessed.error for each in (report, reports[0]))
        np.testing.assert_array_equal(one, other)


def test_rounds_and_fresh_entropy() -> None:
    ratings = tied_ratings(6)
    once = KNNAttack(known=3).run(ratings, gf.NPNS(k=4), targets=7, rng=9)
    often = KNNAttack(known=3, rounds=20).run(ratings, gf.NPNS(k=4), targets=7, rng=9)
    assert often.coverage >= once.coverage
    assert len(np.unique(often.chosen)) > 2
    unseeded = KNNAttack(known=3).run(ratings, gf.NPNS(k=4))
    assert unseeded.settings["seed"] is None


def test_every_interval_holds_its_value_and_a_loss_may_be_below_zero() -> None:
    films = gf.synthetic(users=60, items=40, ratings=900, rng=3)
    found = gf.KNNAttack(known=4).run(films, gf.KNN(k=5), targets=20, rng=0, progress=False)
    for name, (value, low, high) in found.estimates.items():
        assert low <= value <= high, name
    worse = found.estimates["mae_gain_without"]
    assert worse.low < worse.value < 0 < worse.high  # without the target a guess is better
