"""The experiments' own predictions are those of the public functions, cell by cell and in sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goodfence as gf
from goodfence.attack.knn_attack import KNNAttack
from goodfence.neighbours.candidate_lists import Axis
from goodfence.papers.reproduction.definition import DEFAULT, Interpretation, definition
from goodfence.papers.reproduction.runs import Experiment, Sums, Unattacked
from goodfence.selection.mechanism import Mechanism

SEED = [7, 0]
PAIR = gf.Sensitivity(scope="pair")
MECHANISMS = [
    gf.KNN(k=20),
    gf.NPNS(k=20),
    gf.PNCF(k=20),
    gf.PNCF(k=20, sensitivity=PAIR),
    gf.PPNS(k=20, beta=3),
    gf.PPNS(k=20, beta=3, sensitivity=PAIR),
]


@pytest.fixture(scope="module")
def films() -> gf.Ratings:
    return gf.load("movietweetings")


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("axis", ["user", "item"])
def test_predictions_are_those_of_the_papers_protocol(films: gf.Ratings, axis: Axis, mechanism: Mechanism) -> None:
    other = Interpretation(similarity="cosine_corated", over="neighbours")
    interpretation = other if axis == "item" else DEFAULT
    lists = Unattacked.of(films, 40, SEED, axis=axis, interpretation=interpretation)
    predictions = lists.predict(mechanism).with_target
    scores = gf.papers.paper_protocol(
        films,
        mechanism,
        axis=axis,
        targets=40,
        rng=SEED,
        similarity=interpretation.similarity,
        over=interpretation.over,
    )
    made = ~np.isnan(predictions)
    assert scores.n == len(predictions)
    assert scores.coverage == made.mean()
    assert scores.mae == np.abs(predictions - lists.targets.ratings)[made].mean()


def test_predictions_of_held_out_ratings_are_those_of_the_model(films: gf.Ratings) -> None:
    train, test = gf.holdout(films, fraction=0.2, rng=SEED)
    mechanism = gf.PPNS(k=20, beta=3)
    lists = Unattacked.of(train, 30, SEED, held_out=test)
    targets = lists.targets
    # `Unattacked` draws with the stream of the paper's protocol; the model is given the same key.
    model = gf.NeighbourCF(mechanism).fit(train)
    chosen = replace(model._draws, key=lists.key).choose()
    model.restore(train, lists.key, chosen)
    expected = model.predict(films.users[targets.rows[targets.owners]], films.items[targets.columns])
    np.testing.assert_array_equal(lists.predict(mechanism).with_target, expected)
    assert (test.csr[targets.rows].data == targets.ratings).all()


@pytest.mark.parametrize("series", ["kNN", "nPNS", "PNCF", "PPNS"])
def test_an_attacked_point_is_what_the_attack_reports(films: gf.Ratings, series: str) -> None:
    figure = definition("attack-beta", bundled=True, quick=True)
    experiment = Experiment(definition=figure, ratings=films, n_seeds=1, n_targets=25, rng=7)
    points = [(x, seed, table) for x, seed, table, _ in experiment.points()]
    sums = Sums.of(points)
    report = KNNAttack(known=8).run(films, figure.mechanism(series, 7), targets=25, rng=experiment.seed(0))
    # The paper's attacker does not guess: no prediction is not recovered.
    informed = {"recovery": "raw_recovery", "advantage": "raw_advantage"}
    for metric in ("mae", "coverage", "recovery", "advantage", "exact", "target_chosen"):
        found = sums.estimate(metric, series, 7)
        wanted = report.estimates[informed.get(metric, metric)]
        assert found.value == pytest.approx(wanted.value, rel=1e-12), metric
        if metric == "advantage":
            assert found == pytest.approx(wanted, rel=1e-9)


def test_common_cells_are_those_that_all_private_methods_predict(films: gf.Ratings) -> None:
    figure = definition("attack-beta", bundled=True, quick=True)
    experiment = Experiment(definition=figure, ratings=films, n_seeds=1, n_targets=25, rng=7)
    points = [(x, seed, table) for x, seed, table, _ in experiment.points()]
    counts = Sums.of(points).counts
    for x in figure.values:
        private = [counts[x, series] for series in ("nPNS", "PNCF", "PPNS")]
        for one in private:
            np.testing.assert_array_equal(one["common"], private[0]["common"])
            assert (one["common"] <= one["predicted"]).all()
        assert private[0]["common"].sum() > 0


@pytest.mark.slow
def test_targets_are_the_same_at_every_point_and_carry_no_ids(films: gf.Ratings) -> None:
    figure = definition("attack-m", bundled=True, quick=True)
    experiment = Experiment(definition=figure, ratings=films, n_seeds=2, n_targets=25, rng=7)
    numbers: dict[int, list[list[int]]] = {}
    for _, seed, table, _ in experiment.points():
        numbers.setdefault(seed, []).append(sorted(set(table["target"].to_pylist())))
        assert "user" not in table.column_names
    for lists in numbers.values():
        assert all(one == lists[0] for one in lists)
    assert numbers[0][0] != numbers[1][0]
