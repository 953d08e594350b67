"""Statistics behind the verdicts: how likely the target is alone, and how often the rule is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import goodfence as gf
from goodfence.arrays import Floats
from goodfence.attack.targets import find_targets, with_fakes
from goodfence.neighbours.candidate_lists import RowsAgainstAll
from goodfence.neighbours.draw import choose_from_lists
from goodfence.neighbours.similarity import Profiles, Similarity
from goodfence.papers.reproduction import list_claims as of_lists
from goodfence.papers.reproduction.claims import FALSE_POSITIVE_RATE, Question, judged
from goodfence.papers.reproduction.definition import Number
from goodfence.papers.reproduction.runs import Sums
from goodfence.rng import Streams
from goodfence.selection.sensitivity import sensitivities
from tests.support.contracts import FALSE_ALARM

N_DRAWS = 3_000


@pytest.mark.parametrize("n_fakes", [3, 5, 9])
def test_the_probability_of_being_alone_is_that_of_refitted_models(
    n_fakes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """k = 4, beta = 2: 3 fakes leave strangers in partition 1, 5 fill it, 9 cover both partitions."""
    mechanism = gf.PPNS(k=4, beta=2, epsilon=8.0)
    monkeypatch.setattr(of_lists, "MECHANISM", mechanism)
    monkeypatch.setattr(of_lists, "KNOWN", 3)
    films = gf.synthetic(users=40, items=30, ratings=400, rng=7)
    seed, n_targets = [7, 0], 3
    lists = of_lists._fake_lists(films, seed, n_targets)
    targets, _ = find_targets(films, n_targets, 3, "random", Streams(seed))
    for place, row in enumerate(targets.rows.tolist()):
        columns, values = targets.known_columns[place], targets.known_ratings[place]
        data, _ = with_fakes(films, None, [columns] * n_fakes, [values] * n_fakes)
        profiles, asker = Profiles.of(data.csr), np.array([films.shape[0]])
        engine = RowsAgainstAll(profiles, Similarity())
        listed = engine.nearest(profiles, asker, mechanism.reach(1_000), themselves=True)
        bounds = sensitivities(profiles.rows, mechanism.sensitivity)[asker]
        n_alone = 0
        for draw in range(N_DRAWS):
            near = choose_from_lists(mechanism, Streams([7, draw]).key(), asker, *listed, bounds)[0][0]
            n_alone += near[near < films.shape[0]].tolist() == [row]
        expected = lists[place].alone(n_fakes)
        if expected == 0.0:
            assert n_alone == 0
        else:
            assert stats.binomtest(n_alone, N_DRAWS, expected).pvalue > FALSE_ALARM


def test_the_rule_is_wrong_no_more_often_than_it_says() -> None:
    """Two methods without a difference, compared in six settings: a directional outcome is a false positive."""
    generator = np.random.default_rng(7)
    n_runs, n_targets, wrong = 800, 200, 0
    for _ in range(n_runs):
        questions = []
        for _ in range(6):
            cells = generator.integers(1, 60, n_targets).astype(float)
            shared = generator.gamma(2.0, 0.4, n_targets)
            counts: dict[tuple[Number, str], dict[str, Floats]] = {
                (1, series): {"error": cells * shared + generator.normal(0, np.sqrt(cells)), "predicted": cells}
                for series in ("a", "b")
            }
            found = Sums(counts).difference("mae", "a", "b", [1])
            questions.append(Question("a - b", found, "below"))
        wrong += any(one.outcome in ("as claimed", "opposite") for one in judged(questions))
    test = stats.binomtest(wrong, n_runs, FALSE_POSITIVE_RATE, alternative="greater")
    assert test.pvalue > FALSE_ALARM
    assert wrong > 0, "a rule that never fires would tell nothing"
