"""`PrivateTopN`: what it guarantees, what it lists, what it refuses."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.arrays import Integers
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, ModelFileError, NotFittedError, SettingError, UnknownId
from goodfence.models.persistence import read_model
from goodfence.models.private.co_occurrence import EventProfiles, release_co_occurrence, release_counts
from goodfence.models.private.releases import Noisy
from goodfence.models.private.top_n import COUNTS_SHARE, MOST_FACTORS, ListModel, PrivateTopN, how_many, list_factors
from goodfence.privacy.guarantee import Unit
from goodfence.privacy.noise import Publisher
from tests.support import reference

UNITS: tuple[Unit, Unit] = ("event", "user")
N_ITEMS = 80


def made_up(n_users: int = 600, counts: bool = False) -> Ratings:
    """Return events of two kinds of users: of the first or of the second half of the items, early items more often."""
    rng = np.random.default_rng(1)
    popular = np.tile(np.linspace(0.6, 0.2, N_ITEMS // 2), 2)
    own_half = (np.arange(n_users)[:, None] % 2) == (np.arange(N_ITEMS) >= N_ITEMS // 2)
    has = rng.random((n_users, N_ITEMS)) < popular * np.where(own_half, 1.0, 0.1)
    values = np.where(has, rng.integers(1, 9, has.shape) if counts else 1.0, 0.0)
    ids = range(n_users), [f"i{item}" for item in range(N_ITEMS)]
    return Ratings(sparse.csr_array(values), *ids, feedback="implicit")


def model_of(unit: Unit, epsilon: float = 2.0, **settings: Any) -> PrivateTopN:
    return PrivateTopN(epsilon=epsilon, unit=unit, items="from ratings", **settings)


class Silent:
    """No noise at all: what is released is what was computed."""

    private = False

    def draw(self, n: int) -> Integers:
        return np.zeros(n, dtype=np.int64)


@pytest.mark.parametrize("unit", UNITS)
def test_what_was_released_costs_no_more_than_was_asked(unit: Unit) -> None:
    model = model_of(unit).fit(made_up())
    stated = model.guarantee()
    assert (stated.status, stated.unit, stated.adjacency) == ("proved", unit, "add/remove")
    assert (stated.epsilon, stated.delta) == (2.0, 1e-5)
    assert 0.99 * 2.0 < model.account_.epsilon(1e-5) <= 2.0
    assert [each.name for each in model.account_.releases] == ["item counts", "co-occurrence"]
    first, _ = (each.mu_squared for each in model.account_.releases)
    assert first == pytest.approx(COUNTS_SHARE * model.account_.mu**2, rel=1e-4)


@pytest.mark.parametrize("unit", UNITS)
def test_it_lists_what_goes_together(unit: Unit) -> None:
    events = made_up()
    model = model_of(unit, epsilon=20.0).fit(events)
    for start in (0, N_ITEMS // 2):
        own = [f"i{item}" for item in range(start + 3, start + 9)]
        listed = model.answer_list(own, n=10).items
        inside = [start <= int(item[1:]) < start + N_ITEMS // 2 for item in listed]
        assert sum(inside) >= 9
        assert not set(own) & set(listed)


@pytest.mark.parametrize("unit", UNITS)
def test_what_is_released_is_what_the_formulas_say(unit: Unit) -> None:
    """Without noise: counts, each user's at 1/sqrt(n) for the unit user, and y yᵀ over its length or its square."""
    events = made_up(n_users=40)
    dense, profiles = events.csr.toarray(), EventProfiles.of(events)
    n = dense.sum(axis=1, keepdims=True)
    found = release_counts(profiles, unit, 1.0, Publisher(Silent()))
    each = dense / (np.sqrt(np.maximum(n, 1)) if unit == "user" else 1.0)
    assert found.values == pytest.approx(each.sum(axis=0), abs=1e-4)
    centre = np.full(N_ITEMS, int(2**20 / np.sqrt(N_ITEMS)))
    chosen = np.arange(N_ITEMS)
    pairs = release_co_occurrence(profiles, chosen, centre, unit, 1.0, Publisher(Silent()))
    v = centre / 2**20
    rest = dense - np.outer(dense @ v, v)
    left = n[:, 0] - (dense @ v) ** 2 + 0.25
    weights = 1 / (left if unit == "user" else np.sqrt(left))
    exact = rest.T @ (weights[:, None] * rest)
    np.fill_diagonal(exact, 0)
    assert pairs.values == pytest.approx(exact, abs=2e-4)


def test_how_often_does_not_matter() -> None:
    once, often = made_up(), made_up(counts=True)
    models = [model_of("event", rng=3).fit(each) for each in (once, often)]
    assert (models[0].model_.factors == models[1].model_.factors).all()
    assert models[1].ratings_.scale.highest == 1
    asked = models[1].answer({"i3": 7.0, "i5": 1.0}, ["i4"])
    assert asked == models[0].answer(["i3", "i5"], ["i4"])


def test_ratings_are_refused_with_the_way_to_likes() -> None:
    films = gf.load("movietweetings")
    with pytest.raises(DataError, match="likes"):
        model_of("event").fit(films)
    with pytest.raises(DataError, match="events"):
        gf.PrivateCF(epsilon=1.0, items="from ratings").fit(made_up())


@pytest.mark.parametrize("unit", UNITS)
def test_a_seed_repeats_the_fit_and_guarantees_nothing(unit: Unit) -> None:
    events = made_up()
    model = model_of(unit, rng=7)
    first = model.fit(events).recommend_many(n=5)
    again = model.fit(events).recommend_many(n=5)
    assert (first.columns == again.columns).all()
    assert (first.scores == again.scores).all()
    assert model.guarantee().status == "none"
    assert "seed" in model.guarantee().reason


def test_without_a_seed_every_fit_is_another() -> None:
    events, model = made_up(), model_of("event")
    first = model.fit(events).model_.popularity
    assert (model.fit(events).model_.popularity != first).any()


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 1500.0])
@pytest.mark.parametrize("shape", [(3, 5), (2, 1), (4, 2)])
def test_no_events_at_all_can_be_fitted(unit: Unit, epsilon: float, shape: tuple[int, int]) -> None:
    """An error here would tell that nobody has anything; a list is then made of noise."""
    ids = range(shape[0]), range(shape[1])
    nothing = Ratings(sparse.csr_array(shape), *ids, feedback="implicit")
    model = model_of(unit, epsilon).fit(nothing)
    assert np.isfinite(model.predict([1, 1], [0, shape[1] - 1])).all()
    assert len(model.recommend(0, n=3).items) == min(3, shape[1])


@pytest.mark.parametrize("unit", UNITS)
def test_everybody_having_everything_can_be_fitted(unit: Unit) -> None:
    """Profiles along the centre: what is left of them is nearly nothing."""
    every = Ratings(sparse.csr_array(np.ones((50, 70))), range(50), range(70), feedback="implicit")
    model = model_of(unit).fit(every)
    assert np.isfinite(model.predict([1], [2])).all()
    assert len(model.recommend(0).items) == 0


def test_an_out_of_sample_user_gets_what_a_row_with_these_events_gets() -> None:
    events = made_up()
    model = model_of("event", rng=1).fit(events)
    own = events.items[events.csr[[5]].tocoo().coords[1]].tolist()
    assert model.answer(own, events.items) == pytest.approx(model.predict([5] * N_ITEMS, events.items), rel=1e-6)
    alone, listed = model.recommend(5, n=7), model.answer_list(own, n=7)
    together = next(iter(model.recommend_many([5], n=7)))
    assert list(alone.items) == list(listed.items) == list(together.items)


def test_lists_are_unseen_allowed_and_best_first() -> None:
    events = made_up()
    model = model_of("user").fit(events)
    allowed = events.items[10:40]
    found = model.recommend(3, n=8, allowed=allowed)
    seen = set(events.items[events.csr[[3]].tocoo().coords[1]])
    assert len(found.items) == 8
    assert not seen & set(found.items)
    assert set(found.items) <= set(allowed)
    assert (np.diff(found.scores) <= 0).all()


@pytest.mark.parametrize("n", [1, 12, 75, 200])
def test_lists_are_those_of_all_scores_sorted(n: int) -> None:
    """Of items that were not chosen only the most popular are scored: the lists are the same."""
    events = made_up(n_users=60)
    model = model_of("event", epsilon=0.2).fit(events)
    assert (~model.model_.factors.any(axis=1)).sum() >= N_ITEMS - 64
    allowed = [item for item in range(N_ITEMS) if item % 7]
    found = model.recommend_many(n=n, allowed=[f"i{item}" for item in allowed])
    for row, columns in enumerate(found.columns):
        seen = events.csr[[row]].tocoo().coords[1].tolist()
        scores = model.answer([f"i{item}" for item in seen], events.items)
        twin = [column for column, _ in reference.best_list(scores, seen, allowed, n)]
        assert columns[columns >= 0].tolist() == twin


def test_an_empty_profile_is_listed_what_is_popular() -> None:
    model = model_of("event", epsilon=5.0).fit(made_up())
    order = np.argsort(-model.model_.popularity, kind="stable")[:6]
    assert list(model.answer_list([], n=6).items) == [f"i{item}" for item in order]


def test_another_users_events_reach_a_list_only_through_the_release() -> None:
    events = made_up()
    model = model_of("event", rng=1).fit(events)
    before = model.recommend(0, n=10)
    others = events.csr.copy().tolil()
    others[5:, :] = 0
    emptied = events.replaced(sparse.csr_array(others.tocsr()))
    model.restore(emptied, model.model_, model.record_)
    assert list(model.recommend(0, n=10).items) == list(before.items)


@pytest.mark.parametrize("unit", UNITS)
def test_saved_and_restored(unit: Unit, tmp_path: Path) -> None:
    model = model_of(unit).fit(made_up())
    model.save(tmp_path / "model")
    again = gf.load_model(tmp_path / "model")
    assert again.guarantee() == model.guarantee()
    assert repr(again) == repr(model)
    assert (again.recommend_many(n=4).columns == model.recommend_many(n=4).columns).all()


def test_saved_without_the_events(tmp_path: Path) -> None:
    model = model_of("event").fit(made_up(counts=True))
    model.save(tmp_path / "model", ratings=False)
    _, settings, arrays = read_model(tmp_path / "model")
    assert len(arrays["data"]) == len(arrays["indices"]) == len(arrays["users"]) == 0
    assert settings["ratings"]["scale"]["highest"] == 1  # how often somebody had something is not there
    again = gf.PrivateTopN.load(tmp_path / "model")
    assert again.guarantee() == model.guarantee()
    assert list(again.answer_list(["i3"]).items) == list(model.answer_list(["i3"]).items)
    with pytest.raises(UnknownId, match="saved without ratings answers a profile only"):
        again.predict([1], ["i1"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("popularity", lambda array: array[:3]),
        ("popularity", lambda array: array * np.nan),
        ("popularity", lambda array: array + 1e4),
        ("factors", lambda array: array[:3]),
        ("factors", lambda array: array + 2),
        ("factors", lambda array: np.zeros((len(array), MOST_FACTORS + 1))),
        ("factors", lambda array: array.astype(np.int64)),
        ("data", lambda array: array + 1),
    ],
)
def test_arrays_that_no_fit_wrote_are_refused(name: str, change: Any, tmp_path: Path) -> None:
    model_of("event").fit(made_up()).save(tmp_path / "model")
    _, settings, arrays = read_model(tmp_path / "model")
    assert PrivateTopN.from_saved(settings, arrays).guarantee().status == "proved"
    with pytest.raises(ModelFileError):
        PrivateTopN.from_saved(settings, {**arrays, name: change(arrays[name])})


def test_a_catalogue_hides_which_items_occur() -> None:
    """An item that one user alone has does not show in what is released."""
    columns = {False: [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], True: [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]}
    shapes = set()
    for cells in columns.values():
        events = Ratings(sparse.csr_array(cells), [1, 2], [10, 20, 99], feedback="implicit")
        model = PrivateTopN(epsilon=0.5, catalogue=[10, 20, 30]).fit(events)
        shapes.add((model.model_.popularity.shape, model.account_.releases[0].dimension))
        assert "The given catalogue is public." in model.guarantee().reason
        assert model.ratings_.items.tolist() == [10, 20, 30]
    assert len(shapes) == 1


def test_without_a_list_of_items_a_fit_is_refused() -> None:
    csr = sparse.csr_array(np.eye(3))
    observed = Ratings(csr, range(3), range(3), feedback="implicit", items_declared=False)
    with pytest.raises(SettingError, match="catalogue"):
        PrivateTopN().fit(observed)


@pytest.mark.parametrize(
    "settings", [{"epsilon": 0.0}, {"delta": 1.0}, {"unit": "rating"}, {"unit": "household"}, {"items": "all"}]
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        PrivateTopN(**settings)
    assert all(
        parameter.kind is parameter.KEYWORD_ONLY for parameter in inspect.signature(PrivateTopN).parameters.values()
    )


def test_a_budget_beyond_the_ends_of_the_noise_is_refused() -> None:
    with pytest.raises(SettingError, match="epsilon must be smaller"):
        model_of("event", epsilon=8000.0).fit(made_up(n_users=4))


def test_asked_before_it_is_fitted() -> None:
    with pytest.raises(NotFittedError):
        model_of("event").recommend(1)
    stated = model_of("event").guarantee()
    assert stated.unit == "event"
    assert "a user's own events are used for their own lists only" in stated.reason
    assert stated.reason.endswith("The list of items in the events is public. Each fit spends this again.")


def test_how_many_are_chosen_is_decided_by_noisy_counts() -> None:
    """It takes no events at all: the more often items occur, the more are chosen; at least 64, if there are."""
    assert "profiles" not in inspect.signature(how_many).parameters
    rare, often = (Noisy(count * np.ones(1000), 10.0) for count in (0.5, 1e5))
    assert how_many(rare, "event", 0.25) == 64
    assert how_many(often, "event", 0.25) == 1000
    assert how_many(Noisy(np.ones(5), 1.0), "user", 0.25) == 5
    between = Noisy(np.linspace(400.0, 0.0, 1000), 10.0)
    assert 64 < how_many(between, "event", 0.25) < 1000


def test_noise_alone_gives_no_factors() -> None:
    """Its eigenvalues end at the edge: nothing stands out, and lists are those of the counts."""
    rng = np.random.default_rng(5)
    noise = np.triu(rng.normal(0, 3.0, (300, 300)), 1)
    found = list_factors(Noisy(noise + noise.T, 3.0), np.full(300, 300**-0.5))
    assert found.shape[1] <= 2
    strong = np.outer(np.sign(np.arange(300) - 149.5), np.sign(np.arange(300) - 149.5)) * 3.0
    np.fill_diagonal(strong, 0)
    found = list_factors(Noisy(noise + noise.T + strong, 3.0), np.full(300, 300**-0.5))
    overlap = found[:, 0] @ np.sign(np.arange(300) - 149.5) / np.sqrt(300)
    assert abs(overlap) > 0.95


def test_a_factor_that_an_accounts_own_items_carry_alone_counts_little() -> None:
    # Three factors, each carried by one item and trusted wholly; the fourth item is only popular.
    model = ListModel(np.array([0.5, 0.25, -0.25, 0.75]), np.eye(4)[:, :3])
    profiles = sparse.csr_array(np.array([[1.0, 0, 0, 0], [1, 1, 0, 1], [1, 1, 1, 0]]))
    of_popularity, *of_factors = model.weigh(profiles).T
    assert of_popularity == pytest.approx([0.501, 1.501, 0.751])  # what is negative is left out
    # The items carry a factor 3, 3/2 and 1 times as much as all in the mean; 2 are allowed.
    assert np.transpose(of_factors) == pytest.approx(np.array([[(2 / 3) ** 4, 0, 0], [1, 1, 0], [1, 1, 1]]))
