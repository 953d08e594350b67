"""`PrivateTopN`: what it guarantees, what it lists, what it refuses."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goodfence as gf
from goodfence.arrays import Floats, Integers
from goodfence.data.ratings import Ratings
from goodfence.errors import DataError, ModelFileError, NotFittedError, SettingError, UnknownId
from goodfence.models.persistence import read_model
from goodfence.models.private import co_occurrence, top_n
from goodfence.models.private.co_occurrence import (
    COUNTS_SHARE,
    EventProfiles,
    ReleasedLists,
    how_many,
    release_co_occurrence,
    release_counts,
    require_exact,
)
from goodfence.models.private.releases import Noisy
from goodfence.models.private.top_n import (
    PrivateTopN,
    denoised_cells,
    estimate_gram,
    estimate_lists,
    event_weight,
    partial_correlations,
)
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
def test_events_that_would_overflow_are_refused_by_noisy_counts(unit: Unit) -> None:
    """And the fit that failed has spent its budget: the next one says that it is not the first."""
    few, many = (Noisy(count * np.ones(40), 10.0) for count in (1e3, 2.0**31))
    require_exact(few, unit, 2.0**24)
    with pytest.raises(SettingError, match="epsilon must be smaller"):
        require_exact(many, unit, 2.0**24)
    model = model_of(unit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(co_occurrence, "_LARGEST_PART", 1 << 62)
        with pytest.raises(SettingError):
            model.fit(made_up())
    assert model.fit(made_up()).record_.n_fits == 2


@pytest.mark.parametrize("unit", UNITS)
def test_it_lists_what_goes_together(unit: Unit) -> None:
    events = made_up()
    model = model_of(unit, epsilon=20.0).fit(events)
    for start in (0, N_ITEMS // 2):
        own = [f"i{item}" for item in range(start + 3, start + 9)]
        listed = model.recommend(own, n=10).items
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
    assert (models[0].model_.weights == models[1].model_.weights).all()
    assert models[1].ratings_.scale.highest == 1
    asked = models[1].predict({"i3": 7.0, "i5": 1.0}, ["i4"])
    assert asked == models[0].predict([["i3", "i5"]], ["i4"])


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
    own = dict.fromkeys(events.items[events.csr[[5]].tocoo().coords[1]].tolist(), 1.0)
    assert model.predict(own, events.items) == pytest.approx(model.predict([5] * N_ITEMS, events.items), rel=1e-6)
    alone, listed = model.recommend(5, n=7), model.recommend(own, n=7)
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
    assert len(model.model_.chosen) == 64 < N_ITEMS
    allowed = [item for item in range(N_ITEMS) if item % 7]
    found = model.recommend_many(n=n, allowed=[f"i{item}" for item in allowed])
    for row, columns in enumerate(found.columns):
        seen = events.csr[[row]].tocoo().coords[1].tolist()
        scores = model.predict({f"i{item}": 1.0 for item in seen}, events.items)
        twin = [column for column, _ in reference.best_list(scores, seen, allowed, n)]
        assert columns[columns >= 0].tolist() == twin


def test_an_empty_profile_is_listed_what_is_popular() -> None:
    model = model_of("event", epsilon=5.0).fit(made_up())
    order = np.argsort(-model.model_.popularity, kind="stable")[:6]
    assert list(model.recommend([], n=6).items) == [f"i{item}" for item in order]


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
    assert list(again.recommend(["i3"]).items) == list(model.recommend(["i3"]).items)
    with pytest.raises(UnknownId, match="saved without ratings answers a profile only"):
        again.predict([1], ["i1"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("popularity", lambda array: array[:3]),
        ("popularity", lambda array: array * np.nan),
        ("popularity", lambda array: array + 1e4),
        ("chosen", lambda array: array[:3]),
        ("chosen", lambda array: array - 1),
        ("chosen", lambda array: array + N_ITEMS),
        ("chosen", lambda array: array[::-1].copy()),
        ("partial", lambda array: array[:3]),
        ("partial", lambda array: array + 2),
        ("partial", lambda array: array * np.float32(np.nan)),
        ("partial", lambda array: array.astype(np.float64)),
        ("scale", lambda array: array[:3]),
        ("scale", lambda array: array * 0),
        ("scale", lambda array: array + 1),
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
    assert "The list of items in the events is public." in stated.reason
    assert "Several events of one user cost mu times the root of their number." in stated.reason
    assert "several events" not in model_of("user").guarantee().reason.lower()
    assert stated.reason.endswith("Each fit spends this again.")


def test_how_many_are_chosen_is_decided_by_noisy_counts() -> None:
    """It takes no events at all: the more often items occur, the more are chosen; at least 64, if there are."""
    assert "profiles" not in inspect.signature(how_many).parameters
    rare, often = (Noisy(count * np.ones(1000), 10.0) for count in (0.5, 1e5))
    assert how_many(rare, "event", 0.25) == 64
    assert how_many(often, "event", 0.25) == 1000
    assert how_many(Noisy(np.ones(5), 1.0), "user", 0.25) == 5
    between = Noisy(np.linspace(400.0, 0.0, 1000), 10.0)
    assert 64 < how_many(between, "event", 0.25) < 1000


def released_of(pairs: Floats, noise: float = 3.0, unit: Unit = "event") -> ReleasedLists:
    """Return a release about items that all occur 400 times."""
    n_items = len(pairs)
    counts, centre = np.full(n_items, 400.0), np.full(n_items, n_items**-0.5)
    return ReleasedLists(unit, Noisy(counts, 10.0), np.arange(n_items), counts, centre, Noisy(pairs, noise))


def noise_of(n_items: int, noise: float = 3.0) -> Floats:
    above = np.triu(np.random.default_rng(5).normal(0, noise, (n_items, n_items)), 1)
    return above + above.T


def test_of_noise_alone_lists_are_those_of_the_counts() -> None:
    """Its eigenvalues end at the edge: as nothing stands out, the weights are those of popularity."""
    assert estimate_gram(released_of(noise_of(300) / 1.1)) is None
    found = estimate_lists(released_of(noise_of(300) / 1.1)).weights
    assert found[~np.eye(300, dtype=bool)] == pytest.approx(1 / 300)


def test_a_factor_that_stands_out_is_found() -> None:
    halves = np.sign(np.arange(300) - 149.5)
    strong = np.outer(halves, halves) * 3.0
    np.fill_diagonal(strong, 0)
    found = estimate_lists(released_of(noise_of(300) + strong)).weights
    assert found[:150, :150].mean() > 3 * abs(found[:150, 150:].mean())
    assert (np.diag(found) == 0).all()


def test_pairs_that_no_factor_explains_are_kept_cell_by_cell() -> None:
    """A hundred bundles of two items, beside two halves that stand out of the noise."""
    halves = np.sign(np.arange(300) - 149.5)
    strong = np.outer(halves, halves) * 3.0
    bundles = np.arange(0, 200, 2), np.arange(1, 200, 2)
    strong[bundles] += 20.0
    strong[bundles[::-1]] += 20.0
    np.fill_diagonal(strong, 0)
    found = estimate_lists(released_of(noise_of(300) + strong)).weights
    assert np.median(found[bundles]) > 5 * np.abs(found[:150, :150]).mean()


def test_cells_of_noise_alone_are_made_small() -> None:
    noise = noise_of(400)
    kept = denoised_cells(noise, np.linspace(900.0, 100.0, 400), 3.0)
    assert np.abs(kept).max() < 0.2 * np.abs(noise).max()
    real = np.where(np.random.default_rng(1).random((400, 400)) < 0.05, 30.0, 0.0)
    real = np.triu(real, 1) + np.triu(real, 1).T
    kept = denoised_cells(noise + real, np.full(400, 500.0), 3.0)
    assert np.abs(kept - real).mean() < 0.25 * np.abs(noise).mean()


def test_what_an_event_adds_to_the_diagonal_is_found() -> None:
    """A matrix without a part along the centre: its diagonal, which is not released, can be told from the rest."""
    counts = np.linspace(900.0, 100.0, 200)
    centre = counts / np.linalg.norm(counts)
    rest = np.eye(200) - np.outer(centre, centre)
    matrix = rest @ np.diag(0.1 * counts) @ rest
    weight = np.median(np.diag(matrix) / counts)
    np.fill_diagonal(matrix, 0.0)
    released = ReleasedLists("event", Noisy(counts, 1.0), np.arange(200), counts, centre, Noisy(matrix, 1e-3))
    assert event_weight(released) == pytest.approx(weight, rel=0.05)


@pytest.mark.parametrize("fails", [False, True])
def test_weights_are_those_of_ease(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """B_ij = -P_ij/P_jj with P the inverse; where LAPACK fails nothing raises, because something was released."""
    chance = np.random.default_rng(2)
    gram = np.cov(chance.normal(size=(30, 90))) + np.eye(30)
    if fails:
        monkeypatch.setattr(top_n, "eigh", _failing)
    partial, scale = partial_correlations(gram, 1e-3)
    inverse = np.linalg.inv(np.diag(np.diag(gram)) if fails else gram)
    exact = -inverse / np.diag(inverse)
    off = ~np.eye(30, dtype=bool)
    assert (partial * scale[:, None] / scale)[off] == pytest.approx(exact[off])


def _failing(_matrix: Any) -> Any:
    raise np.linalg.LinAlgError
