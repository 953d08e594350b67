"""What tests of the same kind share: the false-alarm rate, and contracts that parts inherit."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import FrozenInstanceError, asdict, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chisquare

import goodfence as gf
from goodfence.errors import DataError, GoodfenceWarning, NotFittedError, SettingError
from goodfence.neighbours.draw import draw_neighbours
from goodfence.registry import made_of, settings_of
from goodfence.selection.inclusion import alpha, choice_probability, inclusion_probabilities
from goodfence.selection.mechanism import pool_arrays
from tests.support import reference
from tests.support.running import run_json

Floats: TypeAlias = npt.NDArray[np.float64]

FALSE_ALARM = 1e-6
"""How often a statistical test may fail by chance; such a test is never run again."""


class MechanismContract:
    """What holds for every selection mechanism; a test class inherits it and names a small one."""

    mechanism: ClassVar[Any]
    lists: ClassVar[Floats] = np.array(
        [
            [0.95, 0.81, 0.80, 0.62, 0.44, 0.30, 0.11, 0.05],
            [1.00, 1.00, 0.50, 0.50, 0.50, 0.20, 0.00, 0.00],
            [0.90, 0.20, 0.15, 0.12, 0.10, 0.00, 0.00, 0.00],
            [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00],
        ]
    )
    rs: ClassVar[Floats] = np.array([0.02, 0.1, 1.0, 0.0])

    def sensitivity(self) -> Floats | None:
        options = self.mechanism.sensitivity
        if options is None:
            return None
        if options.scope == "pair":
            return np.where(self.lists > 0, 0.1 + self.lists / 2, 0.0)
        return self.rs

    def of_row(self, row: int) -> Any:
        values = self.sensitivity()
        return None if values is None else values[row]

    def test_it_is_a_frozen_value(self) -> None:
        with pytest.raises(FrozenInstanceError):
            self.mechanism.k = 3
        assert self.mechanism == type(self.mechanism)(**vars_of(self.mechanism))
        assert hash(self.mechanism) == hash(type(self.mechanism)(**vars_of(self.mechanism)))

    def test_settings_go_by_name_only(self) -> None:
        with pytest.raises(TypeError):
            type(self.mechanism)(self.mechanism.k)

    def test_unknown_settings_are_refused(self) -> None:
        with pytest.raises(TypeError):
            type(self.mechanism)(**vars_of(self.mechanism), kk=3)

    def test_settings_survive_a_file(self) -> None:
        kept = json.loads(json.dumps(settings_of(self.mechanism)))
        assert made_of(kept) == self.mechanism
        assert type(self.mechanism)(**asdict(self.mechanism)) == self.mechanism

    def test_repr_holds_settings_and_no_data(self) -> None:
        shown = repr(self.mechanism)
        self.mechanism.pools(self.lists, self.sensitivity())
        assert repr(self.mechanism) == shown
        assert shown.startswith(type(self.mechanism).__name__ + "(k=")
        assert "array" not in shown

    def test_pools_are_inside_the_list_and_sum_to_k(self) -> None:
        pools = self.mechanism.pools(self.lists, self.sensitivity())
        starts, stops, takes = pool_arrays(pools, len(self.lists))
        assert (takes.sum(axis=1) == self.mechanism.k).all()
        assert (starts >= 0).all()
        assert (stops <= self.lists.shape[1]).all()
        assert (takes <= stops - starts).all()
        assert (starts[:, 1:] >= stops[:, :-1]).all()
        assert (stops <= self.mechanism.reach(self.lists.shape[1])).all()

    def test_a_batch_is_its_rows_one_by_one(self) -> None:
        pools = self.mechanism.pools(self.lists, self.sensitivity())
        together = np.stack(pool_arrays(pools, len(self.lists)))
        weights = self.mechanism.log_weights(self.lists, self.sensitivity())
        for row, similarities in enumerate(self.lists):
            alone = self.mechanism.pools(similarities, self.of_row(row))
            assert all(isinstance(part, int) for pool in alone for part in pool)
            assert np.array_equal(np.stack(pool_arrays(alone, 1))[:, 0], together[:, row])
            own = self.mechanism.log_weights(similarities, self.of_row(row))
            assert np.array_equal(own, weights[row])

    def test_log_weights_are_finite_or_minus_infinity(self) -> None:
        weights = self.mechanism.log_weights(self.lists, self.sensitivity())
        assert weights.shape == self.lists.shape
        assert (np.isfinite(weights) | (weights == -np.inf)).all()

    def test_nothing_co_rated_gives_equal_chances(self) -> None:
        nothing = self.lists[3]
        for pool in self.mechanism.pools(nothing, self.of_row(3)):
            weights = self.mechanism.log_weights(nothing, self.of_row(3))[pool.start : pool.stop]
            if getattr(self.mechanism, "weights", "similarity") in ("similarity", "uniform"):
                assert len(set(weights.tolist())) <= 1

    def test_a_list_too_short_is_refused_with_its_length(self) -> None:
        short = self.mechanism.k - 1
        with pytest.raises(SettingError, match=rf"length {short}, got (beta=.*k=)?{self.mechanism.k}\b"):
            self.mechanism.reach(short)

    @pytest.mark.parametrize("row", [0, 1, 2, 3])
    def test_the_distribution_of_the_draw(self, row: int) -> None:
        n_draws = 10_000
        similarities, rs = self.lists[row], self.of_row(row)
        repeated = np.tile(similarities, (n_draws, 1))
        every = None if rs is None else np.tile(rs, (n_draws, *[1] * np.ndim(rs)))
        rows = np.tile(np.arange(10, 10 + similarities.size), (n_draws, 1))
        chosen = draw_neighbours(self.mechanism, repeated, rows, np.arange(n_draws), 2026, every)
        assert (np.diff(chosen, axis=1) > 0).all()
        seen = Counter(frozenset(one) for one in chosen.tolist())
        distribution = choice_distribution(self.mechanism, similarities, rs)
        assert set(seen) <= set(distribution)
        assert chi_squared(seen, distribution, n_draws) > FALSE_ALARM

    def test_inclusion_probabilities_are_those_of_the_distribution(self) -> None:
        for row, similarities in enumerate(self.lists):
            rs = self.of_row(row)
            distribution = choice_distribution(self.mechanism, similarities, rs)
            wanted = [
                sum(p for chosen, p in distribution.items() if place in chosen) for place in range(similarities.size)
            ]
            included = inclusion_probabilities(self.mechanism, similarities, rs)
            assert included == pytest.approx(wanted, abs=1e-12)
            assert alpha(self.mechanism, similarities, rs) == pytest.approx(
                float(similarities @ np.array(wanted)), abs=1e-12
            )
            for chosen, probability in distribution.items():
                exact = choice_probability(self.mechanism, similarities, sorted(chosen), rs)
                assert exact == pytest.approx(probability, abs=1e-12)

    def test_the_guarantee_says_what_it_is(self) -> None:
        guarantee = self.mechanism.guarantee()
        assert guarantee.status in ("none", "refuted", "claimed", "proved")
        assert guarantee.reason.endswith(".")


def vars_of(mechanism: Any) -> dict[str, Any]:
    """Return the settings of a mechanism by name, as they are."""
    return {one.name: getattr(mechanism, one.name) for one in fields(mechanism)}


def choice_distribution(mechanism: Any, similarities: Floats, rs: Any) -> dict[frozenset[int], float]:
    """Return the probability of each choice, from pools and log-weights, through all of them."""
    log_weights = mechanism.log_weights(similarities, rs)
    distribution = {frozenset[int](): 1.0}
    for pool in mechanism.pools(similarities, rs):
        own = log_weights[pool.start : pool.stop]
        top = own.max(initial=-np.inf)
        weights = [Fraction(float(np.exp(one - top))) if one > -np.inf else 0 for one in own]
        part = reference.successive_sampling([Fraction(w) for w in weights], pool.take)
        distribution = {
            chosen | {place + pool.start for place in drawn}: probability * float(share)
            for chosen, probability in distribution.items()
            for drawn, share in part.items()
        }
    return distribution


def chi_squared(seen: Counter[frozenset[int]], distribution: dict[frozenset[int], float], n: int) -> float:
    """Return the p-value of what was seen; outcomes expected less than five times are one."""
    often = [one for one, probability in distribution.items() if probability * n >= 5]
    observed = [seen[one] for one in often]
    expected = [distribution[one] * n for one in often]
    if n - sum(expected) >= 5:
        observed.append(n - sum(observed))
        expected.append(n - sum(expected))
    if len(expected) == 1:
        return 1.0 if observed[0] >= n - 60 else 0.0
    scaled = np.array(expected) * (sum(observed) / sum(expected))
    return float(chisquare(observed, scaled).pvalue)


class RecommenderContract:
    """What holds for every recommender with a name; a test class inherits it and makes one."""

    fresh: ClassVar[bool] = False
    """Whether the same question gets another answer each time."""
    from_profiles: bool = True
    """Whether a list rests on the profile that asks alone, beside what was learnt of all users."""
    ratings: ClassVar[gf.Ratings] = gf.synthetic(users=60, items=40, ratings=900, rng=3)

    def made(self) -> Any:
        """Return the recommender, not fitted, with a seed where it has one."""
        raise NotImplementedError

    def test_fit_returns_itself_and_predicts_for_its_users(self) -> None:
        model = self.made()
        assert model.fit(self.ratings) is model
        users, items = self.ratings.users[[3, 1, 3]], self.ratings.items[[5, 2, 7]]
        told = model.predict(users, items)
        assert told.dtype == np.float64
        assert told.shape == (3,)
        cells = np.repeat(np.arange(9), 9), np.tile(np.arange(9), 9)
        assert np.isfinite(model.predict_cells(*cells)).any()
        if not self.fresh:
            cells = model.predict_cells(self.ratings.rows(users), self.ratings.columns(items))
            np.testing.assert_array_equal(told, cells)
            assert model.predict(users[:1], items[:1])[0] == pytest.approx(told[0], nan_ok=True)

    def test_recommended_items_are_unseen_and_best_first(self) -> None:
        model = self.made().fit(self.ratings)
        ratings = model.ratings_  # what was received, where users change it
        csr, n_rated = ratings.csr, np.diff(ratings.csr.indptr)
        few, most = int(n_rated.argmin()), int(n_rated.argmax())
        unseen = csr.shape[1] - n_rated[most]
        assert len(model.recommend(ratings.users[most], n=5).items) <= unseen  # none, who rated all
        found = model.recommend(ratings.users[few], n=5)
        rated = ratings.items[csr.indices[csr.indptr[few] : csr.indptr[few + 1]]]
        assert len(found.items) > 0
        assert not set(found.items.tolist()) & set(rated.tolist())
        if not self.fresh:
            longer = model.recommend(ratings.users[few], n=9)
            assert longer.items[: len(found.items)].tolist() == found.items.tolist()
            told = model.predict(ratings.users[few], found.items)
            np.testing.assert_allclose(found.scores, told, rtol=1e-9)
        if ratings.feedback == "implicit":
            assert (np.diff(found.scores) <= 0).all()

    def test_the_lists_of_many_are_those_of_each(self) -> None:
        model = self.made().fit(self.ratings)
        few = np.argsort(np.diff(model.ratings_.csr.indptr), kind="stable")[[7, 2, 4]]
        users, allowed = model.ratings_.users[few], model.ratings_.items[::2]
        many = model.recommend_many(users, n=4, allowed=allowed)
        assert many.columns.shape == many.scores.shape == many.items.shape == (3, 4)
        assert set(many.table().column("user").to_pylist()) <= set(users.tolist())
        for user, listed in zip(users, many, strict=True):
            assert set(listed.items.tolist()) <= set(allowed.tolist())
            if not self.fresh:
                alone = model.recommend(user, n=4, allowed=allowed)
                np.testing.assert_array_equal(listed.items, alone.items)
                np.testing.assert_array_equal(listed.scores, alone.scores)
        assert len(model.recommend_many(n=2)) == model.ratings_.shape[0]

    def test_a_profile_gets_a_list_of_what_is_not_in_it(self) -> None:
        model, items = self.made().fit(self.ratings), self.ratings.items
        profile, allowed = {item: 1.0 + item % 4 for item in items[:30:3].tolist()}, items[:20]
        assert 0 < len(model.recommend(profile, n=5).items) <= 5
        found = model.recommend(profile, n=5, allowed=allowed)
        assert set(found.items.tolist()) <= set(allowed.tolist()) - set(profile)
        with pytest.raises(SettingError, match="allowed must be items of the data"):
            model.recommend(profile, allowed=[10**9])
        with pytest.raises(SettingError, match="n must be an integer of at least 1"):
            model.recommend(profile, n=0)

    def test_a_fold_in_is_answered(self) -> None:
        model, items = self.made().fit(self.ratings), self.ratings.items
        told = model.predict({items[0]: 4.0, items[3]: 2.0}, items[5:9])
        assert told.shape == (4,)
        if self.ratings.feedback == "implicit":
            alike = model.predict({items[0]: 1.0, items[3]: 1.0}, items[5:9])
            np.testing.assert_array_equal(model.predict([[items[3], items[0]]] * 4, items[5:9]), alike)
            with pytest.raises(DataError, match="more than 0"):
                model.recommend({items[0]: 0.0})
        with pytest.raises(DataError, match="each item once"):
            model.recommend([items[0], items[0]])
        with pytest.raises(DataError, match="none of the items of the profile is known"):
            model.predict({"nothing of the kind": 3.0}, items[:1])

    def test_a_list_is_the_same_whichever_way_it_is_asked_for(self, tmp_path: Path) -> None:
        if self.fresh:
            return
        model, items = self.made().fit(self.ratings), self.ratings.items
        best = 1.0 if self.ratings.feedback == "implicit" else self.ratings.scale.highest
        one = {int(items[at]): value for at, value in ((2, best), (9, 1.0), (4, best))}
        other, alone = dict.fromkeys(items[[1, 5]].tolist(), best), items[[1, 5]]
        found, of_other = model.recommend(one, n=5), model.recommend(other, n=5)
        assert len(found.items) > 0
        model.save(tmp_path / "model.gf")
        loaded: Any = gf.load_model(tmp_path / "model.gf")
        typed = " ".join(f"{item}={value}" for item, value in one.items())
        told = run_json("recommend", tmp_path / "model.gf", "-n", 5, "--profile", typed, "-q")
        assert [each["item"] for each in told["items"]] == found.items.tolist()
        with pytest.warns(GoodfenceWarning, match="does not know 2 of the 5 items of the profile") as warned:
            with_unknown = model.recommend({**one, 10**8: 1.0, 10**9: 1.0}, n=5)
        assert len(warned) == 1
        for alike, wanted in (
            (model.recommend(dict(reversed(one.items())), n=5), found),
            ([*model.recommend_many([other, one], n=5)][1], found),
            (loaded.recommend(one, n=5), found),
            (with_unknown, found),
            (model.recommend(alone, n=5), of_other),
            (model.recommend(alone.tolist(), n=5), of_other),
            ([*model.recommend_many([one, alone], n=5)][1], of_other),
        ):
            np.testing.assert_array_equal(alike.items, wanted.items)
            np.testing.assert_array_equal(alike.scores, wanted.scores)
        np.testing.assert_allclose(model.predict(one, found.items), found.scores, rtol=1e-9)
        pairs = model.predict([one, other, one], items[[6, 7, 8]])
        for whom, item, value in zip((one, other, one), items[[6, 7, 8]], pairs, strict=True):
            assert model.predict(whom, [item])[0] == pytest.approx(value, nan_ok=True)

    def test_a_user_gets_the_list_of_their_profile(self) -> None:
        model = self.made().fit(self.ratings)
        ratings = model.ratings_
        if self.fresh or not self.from_profiles:
            return
        for row in np.argsort(np.diff(ratings.csr.indptr), kind="stable")[:3]:
            part = slice(*ratings.csr.indptr[[row, row + 1]])
            columns, values = ratings.csr.indices[part], ratings.csr.data[part]
            profile = dict(zip(ratings.items[columns].tolist(), values.tolist(), strict=True))
            known, guest = model.recommend(ratings.users[row], n=5), model.recommend(profile, n=5)
            np.testing.assert_array_equal(known.items, guest.items)
            np.testing.assert_allclose(known.scores, guest.scores, rtol=1e-9)

    def test_it_must_be_fitted_first(self) -> None:
        with pytest.raises(NotFittedError):
            self.made().predict([1], [1])

    def test_a_seed_repeats_it(self) -> None:
        cells = np.repeat(np.arange(4), 10), np.tile(np.arange(10), 4)
        first, second = (self.made().fit(self.ratings).predict_cells(*cells) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_a_saved_model_is_the_same(self, tmp_path: Path) -> None:
        model = self.made().fit(self.ratings)
        model.save(tmp_path / "model.gf")
        loaded: Any = gf.load_model(tmp_path / "model.gf")
        assert type(loaded) is type(model)
        assert loaded.settings() == model.settings()
        assert loaded.guarantee() == model.guarantee()  # a seed is not forgotten in a file
        assert loaded.ratings_.n_ratings == model.ratings_.n_ratings
        if not self.fresh:
            cells = np.repeat(np.arange(4), 10), np.tile(np.arange(10), 4)
            np.testing.assert_array_equal(loaded.predict_cells(*cells), model.predict_cells(*cells))
        again = type(model).load(tmp_path / "model.gf")
        assert again.settings() == model.settings()

    def test_it_says_what_it_guarantees_and_shows_no_data(self) -> None:
        model = self.made()
        shown, stated = repr(model), model.guarantee()
        assert stated.reason.endswith(".")
        assert model.fit(self.ratings).traits.family
        assert repr(model) == shown
        assert "array" not in shown
