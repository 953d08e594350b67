"""The fast path, where no model is refitted, equals the long way to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.attack.attack import RatingAttack
from goodfence.attack.knn_attack import AdaptiveAttack, CoverAttack, KNNAttack
from goodfence.attack.refits import RefitWorlds
from goodfence.attack.report import AttackReport
from goodfence.attack.targets import find_targets, world_seed
from goodfence.neighbours.similarity import Similarity
from goodfence.rng import Streams
from tests.support.attack_worlds import tied_ratings

DERIVED = gf.Sensitivity(reading="derived")
PAIR = gf.Sensitivity(scope="pair")
UNCLAMPED = gf.Sensitivity(clamp=False)

MECHANISMS = [
    gf.KNN(k=4),
    gf.PPNS(k=4, beta=3),
    gf.PPNS(k=4, beta=1),
    gf.PPNS(k=4, beta=2, epsilon=50.0, sensitivity=DERIVED),
    gf.PPNS(k=4, beta=2, epsilon=50.0, sensitivity=PAIR),
    gf.PPNS(k=4, beta=2, epsilon=50.0, sensitivity=UNCLAMPED),
    gf.NPNS(k=4),
    gf.NPNS(k=4, within=2),
    gf.NPNS(k=4, weights="exponential"),
    gf.PNCF(k=4),
    gf.PNCF(k=4, within=3, epsilon=5.0),
    gf.PNCF(k=4, reading="truncated", epsilon=20.0, sensitivity=UNCLAMPED),
    gf.PNCF(k=4, epsilon=20.0, sensitivity=DERIVED),
    gf.PNCF(k=4, within=2, epsilon=20.0, sensitivity=PAIR),
]


class Refitted(gf.NeighbourCF):
    """Another class, of which an attack knows nothing but how to fit and ask it."""


def same(attack: RatingAttack, ratings: gf.Ratings, mechanism: Any, **settings: Any) -> AttackReport:
    """Attack both ways, require equal reports, and return one of them."""
    common: dict[str, Any] = {"targets": 5, "rng": 11}
    fast = attack.run(ratings, gf.NeighbourCF(mechanism, **settings), **common)
    slow = attack.run(ratings, Refitted(mechanism, **settings), **common)
    require_equal(fast, slow)
    assert isinstance(fast, AttackReport)
    return fast


def require_equal(fast: AttackReport, slow: AttackReport) -> None:
    for world in ("with_target", "without_target"):
        for part in ("hidden", "predicted", "error", "recovered", "exact"):
            for one, other in ((fast, slow), (fast.informed, slow.informed)):
                first, second = (getattr(getattr(each, world), part) for each in (one, other))
                np.testing.assert_array_equal(first, second, err_msg=f"{world} {part}")
    np.testing.assert_array_equal(fast.chosen, slow.chosen)


@pytest.mark.parametrize("mechanism", [gf.KNN(k=4), gf.PPNS(k=4, beta=3)], ids=repr)
def test_a_model_is_attacked_as_fast_as_its_mechanism(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fitted, and the report is the same; the model's own settings count."""

    def refused(*_: Any) -> None:
        raise AssertionError("nothing may be fitted")

    monkeypatch.setattr(gf.NeighbourCF, "fit", refused)
    attack, ratings = KNNAttack(known=3), tied_ratings(10)
    bare = attack.run(ratings, mechanism, targets=5, rng=11)
    model = attack.run(ratings, gf.NeighbourCF(mechanism), targets=5, rng=11)
    require_equal(bare, model)
    assert bare.settings == model.settings
    assert bare.attacked == model.attacked
    for own in ({"over": "neighbours"}, {"similarity": "cosine_corated"}):
        settings: dict[str, Any] = own
        other = attack.run(ratings, gf.NeighbourCF(mechanism, **settings), targets=5, rng=11)
        assert other.settings != bare.settings


@pytest.mark.parametrize(
    "settings",
    [
        {"fallback": "item_mean"},
        {"axis": "item"},
        {"among": "raters"},
        {"center": "user_mean"},
        {"similarity": "centred_cosine"},
        {"shrinkage": 2.0},
    ],
    ids=str,
)
def test_what_candidate_lists_do_not_decide_is_fitted(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[gf.Ratings] = []
    plain = gf.NeighbourCF.fit

    def counted(model: gf.NeighbourCF, ratings: gf.Ratings) -> gf.NeighbourCF:
        fitted.append(ratings)
        return plain(model, ratings)

    monkeypatch.setattr(gf.NeighbourCF, "fit", counted)
    model = gf.NeighbourCF(gf.KNN(k=4), **settings)
    KNNAttack(known=3, fakes=4).run(tied_ratings(10), model, targets=5, rng=11)
    assert len(fitted) == 10


@pytest.mark.parametrize("over", ["raters", "neighbours"])
@pytest.mark.parametrize("ask", ["one", "all"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_fast_equals_refit(mechanism: Any, ask: Any, over: str) -> None:
    attack = KNNAttack(known=3, ask=ask, combine="mean")
    report = same(attack, tied_ratings(1), mechanism, over=over)
    assert report.coverage > 0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_fast_equals_refit_when_adaptive(mechanism: Any) -> None:
    same(AdaptiveAttack(known=3, items=2), tied_ratings(2), mechanism)


@pytest.mark.parametrize("mechanism", [gf.KNN(k=4), gf.PPNS(k=4, beta=3), gf.NPNS(k=4, within=2)], ids=repr)
def test_fast_equals_refit_when_covering(mechanism: Any) -> None:
    report = same(CoverAttack(known=3), tied_ratings(3), mechanism)
    assert report.n_fakes == mechanism.reach(10**6)


@pytest.mark.parametrize("fakes", [1, 2, 9, 40])
@pytest.mark.parametrize("mechanism", [gf.KNN(k=4), gf.PPNS(k=4, beta=3), gf.PNCF(k=4), gf.NPNS(k=4)], ids=repr)
def test_fast_equals_refit_for_any_number_of_fakes(mechanism: Any, fakes: int) -> None:
    attack = KNNAttack(known=3, fakes=fakes, ask="all", combine="mode", rounds=2)
    assert same(attack, tied_ratings(4), mechanism).n_fakes == fakes


@pytest.mark.parametrize("similarity", ["cosine_corated", "pearson"])
@pytest.mark.parametrize("mechanism", [gf.KNN(k=4), gf.NPNS(k=4)], ids=repr)
def test_fast_equals_refit_for_other_similarities(mechanism: Any, similarity: str) -> None:
    for attack in (KNNAttack(known=4, ask="all"), AdaptiveAttack(known=3, items=2)):
        same(attack, tied_ratings(5), mechanism, similarity=similarity)


@pytest.mark.parametrize("values", [(0, 1, 3), (0.5, 1, 4.5), (0,)])
@pytest.mark.parametrize("mechanism", [gf.KNN(k=4), gf.PPNS(k=4, beta=3), gf.PNCF(k=4), gf.NPNS(k=4)], ids=repr)
def test_fast_equals_refit_on_other_scales(mechanism: Any, values: tuple[float, ...]) -> None:
    same(KNNAttack(known=3, ask="all"), tied_ratings(6, values=values), mechanism)


@pytest.mark.parametrize("choose", ["rarest", "most_popular"])
def test_fast_equals_refit_for_other_knowledge(choose: Any) -> None:
    same(KNNAttack(known=5, choose=choose), tied_ratings(7), gf.PPNS(k=4, beta=3))


def test_one_world_by_hand_is_one_world_of_the_attack() -> None:
    """Append the fakes, fit with the published seed, ask: nothing else is in a report."""
    ratings, mechanism = tied_ratings(8), gf.PPNS(k=4, beta=3)
    user = "user 3"
    row = int(ratings.rows([user])[0])
    report = KNNAttack(known=3, choose="rarest").run(ratings, mechanism, targets=[user], rng=5)
    csr = ratings.csr[[row]]
    counts = np.bincount(ratings.csr.indices, minlength=ratings.shape[1])
    known = sorted(csr.indices.tolist(), key=lambda column: (counts[column], column))[:3]
    hidden = sorted(set(csr.indices.tolist()) - set(known))
    dense = ratings.csr.toarray()
    fake = np.zeros(ratings.shape[1])
    fake[known] = dense[row, known]
    from scipy import sparse

    world = sparse.csr_array(np.vstack([dense, *[fake] * 4]))
    users = [*ratings.users, "a", "b", "c", "d"]
    model = gf.NeighbourCF(mechanism, rng=world_seed(5, row))
    model.fit(gf.Ratings(world, users, ratings.items, ratings.scale))
    answers = model.predict(["a"] * len(hidden), ratings.items[hidden])
    made = ~np.isnan(answers)
    errors = np.abs(answers - dense[row, hidden])[made]
    assert report.with_target.predicted[0] == made.sum()
    assert report.with_target.error[0] == pytest.approx(errors.sum(), abs=1e-12)
    assert report.chosen[0] == (row in model.neighbours_[ratings.shape[0]])


def test_threads_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings, attack = tied_ratings(9), KNNAttack(known=3, ask="all")
    whole = attack.run(ratings, gf.PNCF(k=4), targets=12, rng=1, threads=1)
    monkeypatch.setattr("goodfence.attack.worlds._MOST", 3)
    monkeypatch.setattr("goodfence.attack.worlds._PIECE", 1)
    parts = attack.run(ratings, gf.PNCF(k=4), targets=12, rng=1, threads=2)
    assert whole.table().equals(parts.table())


def test_only_questions_about_one_target_share_a_release() -> None:
    films = gf.synthetic(users=30, items=20, ratings=240, rng=7)
    model = gf.PrivateMeans(epsilon=1.0, items="from ratings", rng=7)
    worlds = RefitWorlds(films, model, 3, similarity=Similarity.of("cosine"))
    two, _ = find_targets(films, 2, 3, "random", Streams(7))
    assert worlds._groups(two, [1, 2], 1.0) == [(0, 1), (1, 2)]
    asked_twice = replace(two, rows=np.repeat(two.rows[:1], 2))
    assert worlds._groups(asked_twice, [1, 1], 1.0) == [(0, 2)]
    assert worlds._groups(asked_twice, [1, 1], None) == [(0, 1), (1, 2)]
    assert worlds._groups(two.part(0, 1), [1], 1.0) == [(0, 1)]
