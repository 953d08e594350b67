"""Models that are updated: their sums, their noise, their guarantee, and what happens when something fails."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import goodfence as gf
from goodfence.auditing.lower_bound import lower_bound
from goodfence.errors import KeyReused, LedgerProblem, ModelFileError, SettingError
from goodfence.models.private import cf, history, releases, updated
from goodfence.models.private.life import Life
from goodfence.models.private.projected import PROJECTED_NAME, projected_totals, sharpen, turned
from goodfence.models.private.releases import COVARIANCE_GRID
from goodfence.models.private.top_n import PrivateTopN
from goodfence.models.private.updated import directions_of
from goodfence.privacy.fixed_point import Clamps
from goodfence.privacy.noise import SIGMA, SeededNoise
from goodfence.privacy.updates import (
    LEAST_PART,
    LOST,
    Terms,
    Updater,
    decoded,
    exact_weights,
    mix_batches,
    narrowed,
    open_updater,
    quiet_weights,
    total_weights,
)
from goodfence.rng import Streams
from tests.models.test_projected import Silent
from tests.support.lives import audited, distances, live, models, random_life, searched

ITEMS = list(range(40))


def batch(seed: int, n_users: int = 30, first: int = 0) -> gf.Ratings:
    rng = np.random.default_rng(seed)
    cells = rng.random((n_users, len(ITEMS))) < 0.2
    values = np.where(cells, rng.integers(1, 6, cells.shape), 0)
    return gf.Ratings(sparse.csr_array(values.astype(float)), np.arange(first, first + n_users), ITEMS, (1, 5))


def fitted(updates: int = 4, **how: Any) -> gf.PrivateCF:
    lasting = gf.Lasting(updates=updates, **{key: how.pop(key) for key in ("pairs", "half_life") if key in how})
    return gf.PrivateCF(**{"epsilon": 1.0, "catalogue": ITEMS, **how}, lasting=lasting).fit(batch(0))


@pytest.mark.parametrize("updates", [1, 2, 32, 60])
def test_totals_are_exact_without_noise(updates: int) -> None:
    lasting = gf.Lasting(updates=updates)
    coefficients, sums = lasting.coefficients, np.random.default_rng(1).integers(-(2**30), 2**30, updates)
    weights = total_weights(coefficients, Fraction(1), updates)
    for t in range(updates):
        seen = [sum(coefficients[k] * int(sums[s - k]) for k in range(s + 1)) for s in range(t + 1)]
        assert sum(weights[t - s] * seen[s] for s in range(t + 1)) == sums[: t + 1].sum()
    assert lasting.weights(updates) == pytest.approx([float(weight) for weight in weights], rel=1e-12)


def test_figures_that_the_page_states() -> None:
    assert gf.Lasting().squares == 8887
    assert [round(gf.Lasting(updates=52).factor(t), 2) for t in (1, 4, 12, 52)] == [1.52, 1.86, 2.07, 2.32]
    fading = {half: gf.Lasting(half_life=half) for half in (26, 52)}
    assert {half: (len(each.coefficients), round(each.factor(2000), 3)) for half, each in fading.items()} == {
        26: (79, 1.843),
        52: (137, 2.055),
    }


@pytest.mark.parametrize("name", list(models(3)))
def test_nothing_moves_farther_than_is_claimed(name: str) -> None:
    assert searched(name, 12) <= 1


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5, 9]), st.sampled_from(list(models(3))))
@settings(max_examples=15, deadline=None)
def test_no_sequence_of_batches_moves_more(seed: int, updates: int, name: str) -> None:
    assert max(distances(name, 1, seed, updates)) <= 1


def _count_each_time(self: Life, new: gf.Ratings) -> Any:
    return new.csr


def _everybody_present(self: Life, ratings: gf.Ratings) -> Any:
    return ratings.csr


def _calibrated_for_one(terms: Terms) -> float:
    return terms.mu * 2.0**terms.finer


def _as_of_one_fit(n_items: int, n_listed: int, target: int) -> float:
    return releases.covariance_size(dataclasses.replace(history.PAIRS, history=False), "rating", n_items, 2, target)


def _without_the_own_pairs(wide: float, move: float, flat: float) -> float:
    return wide**2 / math.sqrt(flat) + move


TWINS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "a repeat is learnt from again": (
        "means, rating",
        lambda patch: patch.setattr(Life, "_of_cells", _count_each_time),
    ),
    "the norm of C is left out": (
        "lists, event",
        lambda patch: patch.setattr(Terms, "of_batch", property(_calibrated_for_one)),
    ),
    "pairs over the history at the bound of one fit": (
        "covariance, rating, history",
        lambda patch: patch.setattr(history, "pairs_size", lambda *args: 1.9 * _as_of_one_fit(*args)),
    ),
    "pairs of events without their own part": (
        "lists, event, history",
        lambda patch: patch.setattr(history, "pairs_move", _without_the_own_pairs),
    ),
    "residuals of users at the whole budget beside the sums": (
        "residuals, user",
        lambda patch: patch.setattr(updated, "RESIDUAL_SHARES", {"rating": {}, "user": {updated.USERS_NAME: 1.0}}),
    ),
    "half steps of three times the integers": (
        "covariance, rating",
        lambda patch: patch.setattr(cf, "projected_totals", lambda *args: 3 * projected_totals(*args)),
    ),
    "users are learnt from whenever they come": (
        "lists, user",
        lambda patch: patch.setattr(Life, "_of_users", _everybody_present),
    ),
}


@pytest.mark.parametrize("twin", list(TWINS))
def test_planted_faults_are_found_by_the_search(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, plant = TWINS[twin]
    plant(monkeypatch)
    if "events" in twin:
        import goodfence.models.private.top_n as lists

        monkeypatch.setattr(lists, "events_size", history.events_size)
    assert searched(name, 40) > 1


def test_batches_that_are_cut_by_count_break_the_bound() -> None:
    """One rating moves all later ones to other batches: why batches are closed by the clock."""
    make = models(4)["means, rating"]
    steps = random_life(np.random.default_rng(3), 4)
    cells = [(user, item, 5.0) for user in range(20, 40) for item in range(6)]
    lives = []
    for one_more in (False, True):
        every = [(7, 0, 5.0)] * one_more + cells
        for at, step in enumerate(steps):
            step.cells, step.withdrawn, step.forgotten, step.more_items = every[30 * at : 30 * at + 30], [], [], 0
        lives.append(live(make(), steps))
    shift = [
        a - b
        for one, two in zip(*(life.series.values() for life in lives), strict=True)
        for a, b in zip(one.noisy, two.noisy, strict=True)
    ]
    assert math.sqrt(sum(float((each.astype(float) ** 2).sum()) for each in shift)) > 1.2 * lives[0].terms.sensitivity


def test_without_the_history_a_bound_of_sums_is_too_small() -> None:
    """One rating more in the first batch moves a residual in each later one: more than one release's bound."""
    clamps, grid, updates = Clamps(near=1.25, prior=15, wide=1.0), 1 << 20, 400
    others = np.arange(1, updates)
    move = clamps.near * (1 + others / (others + clamps.prior)) / (others + 1 + clamps.prior)
    assert math.sqrt((move**2).sum()) * grid > 1.5 * clamps.others_move(grid, updates)
    assert math.sqrt((move**2).sum()) * grid < dataclasses.replace(clamps, history=True).others_move(grid, updates)


@pytest.mark.parametrize("pairs", ["batch", "history"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_what_is_booked_is_what_was_asked(pairs: Any, epsilon: float) -> None:
    model = fitted(updates=32, epsilon=epsilon, pairs=pairs)
    terms = model.life_.terms
    spent = math.sqrt(sum(terms.costs(31, math.floor(terms.of_batch * SIGMA), 1))) / SIGMA
    assert 0.98 * terms.mu <= spent <= terms.mu
    assert model.guarantee().epsilon == epsilon


@pytest.mark.parametrize("sizes", [[1.0] * 12, [30.0] + [1.0] * 11, list(1.25 ** np.arange(12)), [1.0]])
@pytest.mark.parametrize("lost", [(), (4,)])
def test_quiet_weights_count_all_data_with_less_noise(sizes: list[float], lost: tuple[int, ...]) -> None:
    lasting, held = gf.Lasting(updates=32), np.array(sizes)
    if lost and len(sizes) > 5:
        held[5] = 0.0  # a batch after a lost measurement is empty
    n = len(sizes)
    lost = tuple(at for at in lost if at < n)
    found, exact = quiet_weights(lasting, held, lost), exact_weights(lasting, n, lost)
    counted = np.convolve(found, lasting.coefficients[:n])[:n][::-1]
    assert counted @ held == pytest.approx(held.sum())
    assert counted[held > 0].min() >= LEAST_PART - 1e-9
    assert np.linalg.norm(found) < np.linalg.norm(exact) or n == 1
    assert all(found[n - 1 - at] == 0 for at in lost)


def test_weights_of_a_life_that_forgets_are_exact() -> None:
    lasting = gf.Lasting(half_life=4)
    assert (quiet_weights(lasting, np.ones(9), ()) == exact_weights(lasting, 9, ())).all()


@pytest.mark.parametrize("unit", ["rating", "user"])
@pytest.mark.parametrize("plan", ["means", "covariance"])
def test_users_are_forgotten_after_the_catalogue_has_grown(unit: Any, plan: Any) -> None:
    how: Any = {"epsilon": 8.0, "catalogue": ITEMS, "lasting": gf.Lasting(updates=4)}
    model = gf.PrivateCF(**how, unit=unit, plan=plan).fit(batch(0)).update(batch(1), add_items=[100, 101])
    model.forget(5)
    assert all((a == b).all() for a, b in zip(sums_of(model), recomputed(model), strict=True))
    assert model.update(batch(2)).updates_left_ == 1


def test_half_steps_add_up_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise their total is the covariance times the mean of the directions, batches counting as they do."""
    monkeypatch.setattr(cf, "_covariance_items", lambda *_: 10)
    seen: list[Any] = []

    def watched(*given: Any) -> Any:
        seen.append(given)
        return sharpen(*given)

    monkeypatch.setattr(updated, "sharpen", watched)
    model = gf.PrivateCF(epsilon=8.0, catalogue=ITEMS, lasting=gf.Lasting(updates=4), plan="covariance")
    monkeypatch.setattr(gf.PrivateCF, "_noise", lambda _: Silent())
    for t in range(3):
        model.fit(batch(t)) if t == 0 else model.update(batch(t))
    (_, (step,), _), life = seen[-1], model.life_
    updater = open_updater(life.terms, Silent(), series=life.series, now=2, sized=model._sized)
    updater.past, updater.known = life.known[:2], life.known[2]
    counted = np.convolve(updater.weights(PROJECTED_NAME), life.terms.lasting.coefficients)[2::-1]
    scale = float(life.known[2]["projected size"][0]) * COVARIANCE_GRID
    wanted = sum(g * one for g, one in zip(counted, life.series[PROJECTED_NAME].sums, strict=True)) / scale
    used = wanted.reshape(len(ITEMS), -1)[:, np.any([directions_of(each).any(axis=0) for each in life.known], axis=0)]
    assert step.rows == pytest.approx(used, abs=1e-4 * np.abs(used).max())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("directions", np.zeros(39 * 40, dtype=np.int32)),
        ("directions", np.zeros(1600)),
        ("projected size", np.array([np.nan])),
        ("pair biases", np.zeros(3)),
    ],
)
def test_unsound_half_steps_of_a_file_are_refused(
    name: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cf, "_covariance_items", lambda *_: 10)
    model = gf.PrivateCF(epsilon=8.0, catalogue=ITEMS, lasting=gf.Lasting(updates=4), plan="covariance").fit(batch(0))
    model.life_.known[0][name] = value
    model.save(tmp_path / "unsound.gf")
    with pytest.raises(ModelFileError, match="not sound"):
        gf.load_model(tmp_path / "unsound.gf")


def test_directions_are_turned_towards_earlier_ones() -> None:
    rng = np.random.default_rng(1)
    past = np.trunc(rng.normal(0, 1e5, (20, 3))).astype(np.int64)
    mixed = np.trunc(past @ np.linalg.qr(rng.normal(size=(3, 3)))[0]).astype(np.int64)
    assert np.abs(turned(mixed, past, 8)[:, :3] - past).max() <= 2
    more = np.column_stack([past[:, ::-1], np.trunc(rng.normal(0, 1e5, 20)).astype(np.int64)])
    found = turned(more, past, 8)
    assert found.any(axis=0).tolist() == [True] * 4 + [False] * 4
    assert np.linalg.svd(found[:, :4])[1] == pytest.approx(np.linalg.svd(more)[1], rel=1e-4)


@pytest.mark.statistical
def test_the_noise_of_totals_has_the_stated_covariance() -> None:
    """2,000 seeded lives of 12 updates; chi-squared for every t, and twins with the same noise twice are found."""
    lasting, lives, draws = gf.Lasting(updates=12), 2000, []
    noise = SeededNoise(Streams(5))
    for _ in range(12):
        draws.append(noise.draw(lives))
    for same_twice, good in ((False, True), (True, False)):
        used = [draws[t - t % 2] if same_twice else draws[t] for t in range(12)]
        ratios = []
        for t in range(1, 13):
            found = decoded(lasting.weights(t), used[:t])
            ratios.append(float(found.var() / (SIGMA * np.linalg.norm(lasting.weights(t))) ** 2))
        assert (max(abs(ratio - 1) for ratio in ratios) < 5.2 * math.sqrt(2 / lives)) is good


def test_seeded_updates_have_fresh_noise() -> None:
    terms = fitted(rng=3).life_.terms
    noise = SeededNoise(Streams(3))
    door = [open_updater(terms, noise, now=0) for _ in range(2)]
    empty = np.zeros(50, dtype=np.int64)
    assert (door[0].publish("x", empty, 0) != door[1].publish("x", empty, 0)).any()


def test_an_index_is_published_once() -> None:
    terms = fitted().life_.terms
    updater = open_updater(terms, SeededNoise(Streams(1)))
    first = updater.publish("sums", np.arange(5), 0)
    assert (updater.publish("sums", np.arange(5) + 9, 0) == first).all()
    with pytest.raises(SettingError, match="within what a record may cost"):
        updater.publish("more", np.arange(5), SIGMA * 100)
    with pytest.raises(SettingError, match="as few as planned"):
        open_updater(terms, SeededNoise(Streams(1))).publish("sums", np.zeros(terms.numbers + 1, dtype=np.int64), 0)


def test_sums_in_32_bits_are_mixed_in_64() -> None:
    sums = np.array([2**31 - 1, -(2**31), 7])
    assert [narrowed(sums).dtype, narrowed(sums + 1).dtype] == [np.int32, np.int64]
    assert (mix_batches([64, 32], [narrowed(sums), narrowed(sums)], 0) == 96 * sums).all()


def test_a_list_of_items_ends_at_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of several updates together may want more items than there is room for pairs."""
    monkeypatch.setattr("goodfence.models.private.cf._listed", lambda _: 10)
    monkeypatch.setattr("goodfence.models.private.cf._covariance_items", lambda *_: 9)
    model = fitted(plan="covariance").update(batch(1)).update(batch(2))
    assert len(model.life_.known[-1]["listed"]) == 10


@pytest.mark.statistical
def test_an_audit_of_whole_lives_does_not_break_the_claim() -> None:
    """The second batch depends on what the first release said; the score is the exact likelihood ratio."""
    scores, claimed = audited(1500, 4)
    bound = lower_bound(*scores, delta=1e-5)
    assert 0.3 * claimed < bound.mu <= claimed
    scores, claimed = audited(1500, 4, noise=0.5)
    assert lower_bound(*scores, delta=1e-5).mu > claimed  # half the noise is found out


@pytest.mark.parametrize(
    ("kind", "pairs"),
    [(kind, pairs) for kind in ("cf", "lists") for pairs in ("batch", "history")] + [("half", "batch")],
)
def test_forgetting_leaves_the_sums_of_the_others(kind: str, pairs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept sums are those of a life in which the user never was, to the last bit; so is a twin's that is not."""
    if kind == "half":
        monkeypatch.setattr(cf, "_covariance_items", lambda *_: 10)
    lasting = gf.Lasting(updates=4, pairs=pairs)
    how: Any = {"epsilon": 8.0, "catalogue": ITEMS, "lasting": lasting}
    model: Any = PrivateTopN(**how) if kind == "lists" else gf.PrivateCF(**how, plan="covariance")
    parts = [batch(seed) for seed in range(3)]
    parts = [part.likes(3) for part in parts] if kind == "lists" else parts
    for t, part in enumerate(parts):
        model.fit(part) if t == 0 else model.update(part)
    stored = sums_of(model)
    assert (PROJECTED_NAME in model.life_.series) == (kind == "half")
    assert all((a == b).all() for a, b in zip(stored, recomputed(model), strict=True))
    model.withdraw(6, [int(model.ratings_.items[model.ratings_.csr.indices[model.ratings_.csr.indptr[6]]])])
    model.forget(5)
    assert any((a != b).any() for a, b in zip(stored, sums_of(model), strict=True))
    assert all((a == b).all() for a, b in zip(sums_of(model), recomputed(model), strict=True))
    assert 5 not in model.ratings_.users
    before = model.life_.learnt_cells().size
    model.update(parts[0])
    added = model.life_.learnt_cells().size - before
    assert added == 0  # all were paid for, also those of the user who was forgotten and came back


def sums_of(model: Any) -> list[Any]:
    return [each.copy() for one in model.life_.series.values() for each in one.sums]


def recomputed(model: Any) -> list[Any]:
    life = model.life_
    again = [model._sums(model.profiles_in(model.ratings_, at), life.known[at]) for at in range(life.now)]
    return [
        np.ascontiguousarray(again[at][name].T).ravel()
        for name, one in life.series.items()
        for at in range(one.begun, life.now)
    ]


def test_a_changed_value_serves_its_user_alone() -> None:
    model = fitted()
    first = model.life_.batches[0].copy()
    user, item = 0, ITEMS[batch(0).csr.indices[0]]
    other = 1.0 if batch(0).csr.data[0] == 5 else 5.0
    changed = gf.Ratings(sparse.csr_array(([other], ([0], [0])), shape=(1, 1)), [user], [item], (1, 5))
    model.update(changed)
    assert model.life_.batches[1].nnz == 0
    assert (model.life_.batches[0].data == first.data).all()
    assert model.ratings_.csr[0, ITEMS.index(item)] == other


def test_users_enter_once_after_their_wait() -> None:
    lasting = gf.Lasting(updates=5, wait=1)
    model = gf.PrivateCF(epsilon=4.0, unit="user", catalogue=ITEMS, lasting=lasting).fit(batch(0))
    assert model.life_.batches[0].nnz == 0
    model.update(batch(1, first=20))  # users 20..29 come back, 30..49 are new
    entered = np.flatnonzero(np.diff(model.life_.batches[1].indptr))
    assert entered.tolist() == list(range(30))
    model.update(batch(2)).update(None)
    assert np.flatnonzero(np.diff(model.life_.batches[2].indptr)).tolist() == list(range(30, 50))
    assert model.life_.batches[3].nnz == 0


def test_what_is_refused() -> None:
    with pytest.raises(SettingError, match="catalogue"):
        gf.PrivateCF(epsilon=1.0, items="from ratings", lasting=gf.Lasting()).fit(batch(0))
    with pytest.raises(SettingError, match="half steps are not proved"):
        gf.PrivateCF(epsilon=1.0, unit="user", plan="half_step", catalogue=ITEMS, lasting=gf.Lasting())
    with pytest.raises(SettingError, match="unit 'user'"):
        gf.PrivateCF(epsilon=1.0, catalogue=ITEMS, lasting=gf.Lasting(wait=1)).fit(batch(0))
    model = fitted(updates=2)
    with pytest.raises(SettingError, match="called once"):
        model.fit(batch(1))
    model.update(batch(1))
    with pytest.raises(SettingError, match="all 2 updates have been released"):
        model.update(batch(2))
    with pytest.raises(SettingError, match="lasting"):
        gf.PrivateCF(epsilon=1.0, catalogue=ITEMS).fit(batch(0)).update(batch(1))


def test_the_guarantee_states_the_lifetime_and_nobody() -> None:
    model = fitted().update(batch(1))
    stated = str(model.guarantee())
    assert stated.startswith("proved: epsilon=1, delta=1e-05 per rating (add/remove).")
    assert "2 of 4 updates have been released, and the rest are included" in stated
    assert model.updates_left_ == 2
    empty = fitted().update(None)
    assert str(empty.guarantee()) == stated
    assert fitted(rng=1).update(None).guarantee().status == "none"
    assert "all that follow are included" in fitted(half_life=26.0).guarantee().reason


def test_items_that_are_new() -> None:
    model = fitted().update(batch(1), add_items=[100, 101])
    later = gf.Ratings(sparse.csr_array(np.full((3, 2), 4.0)), [1, 2, 90], [100, 101], (1, 5))
    model.update(later)
    assert model.ratings_.items.tolist() == [*ITEMS, 100, 101]
    assert model.life_.batches[2].nnz == 6
    with pytest.raises(SettingError, match="at most 80"):
        model.update(None, add_items=range(200, 300))


@pytest.mark.parametrize("pairs", ["batch", "history"])
def test_a_saved_life_goes_on_and_a_public_copy_does_not(pairs: Any, tmp_path: Path) -> None:
    model = fitted(epsilon=6.0, plan="covariance", pairs=pairs).update(batch(1))
    model.save(tmp_path / "whole")
    again = gf.load_model(tmp_path / "whole")
    assert isinstance(again, gf.PrivateCF)
    assert again.guarantee() == model.guarantee()
    again.update(batch(2))
    assert all((a == b).all() for a, b in zip(sums_of(again), recomputed(again), strict=True))
    model.save(tmp_path / "public", ratings=False)
    public = gf.load_model(tmp_path / "public")
    assert isinstance(public, gf.PrivateCF)
    with pytest.raises(SettingError, match="cannot be updated"):
        public.update(batch(2))
    assert public.guarantee() == model.guarantee()


def ledger_in(folder: Path) -> gf.Ledger:
    return gf.Ledger(folder / "ledger.db", anchor=folder / "anchor.log")


def test_the_same_key_gives_the_same_update(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    models = [gf.PrivateCF(epsilon=1.0, catalogue=ITEMS, lasting=gf.Lasting(updates=3)) for _ in range(2)]
    for model in models:
        model.fit(batch(0), ledger=ledger, key="1").update(batch(1), ledger=ledger, key="2")
        model.update(batch(1), ledger=ledger, key="2")
    assert models[0].updates_left_ == models[1].updates_left_ == 1
    assert (models[0].model_.bias == models[1].model_.bias).all()
    account = ledger.account("rating", "1/1")
    assert 0 < ledger.spent(account).cost <= models[0].life_.terms.sensitivity ** 2
    with pytest.raises(KeyReused):
        models[0].update(batch(5), ledger=ledger, key="2")
    models[0].update(batch(2), ledger=ledger, key="3")
    with pytest.raises(LedgerProblem):  # an old copy: its third update is another
        models[1].update(batch(3), ledger=ledger, key="4")
    with pytest.raises(SettingError, match="rng"):
        gf.PrivateMeans(epsilon=1.0, catalogue=ITEMS, rng=1, lasting=gf.Lasting()).fit(batch(0), ledger=ledger, key="x")


def test_no_update_escapes_the_ledger_of_its_life(tmp_path: Path) -> None:
    ledger, lasting = ledger_in(tmp_path), gf.Lasting(updates=4)
    model = gf.PrivateMeans(epsilon=1.0, catalogue=ITEMS, lasting=lasting)
    with pytest.raises(SettingError, match="key must be given"):
        model.fit(batch(0), ledger=ledger)
    model.fit(batch(0), ledger=ledger, key="1").save(tmp_path / "model")
    for each in (model, gf.load_model(tmp_path / "model")):
        assert isinstance(each, gf.PrivateMeans)
        with pytest.raises(SettingError, match="ledger must be given with every update"):
            each.update(batch(1), key="2")
    model.update(batch(2), ledger=ledger, key="2")  # a refused update has not begun
    assert model.updates_left_ == 2
    late = gf.PrivateMeans(epsilon=1.0, catalogue=ITEMS, lasting=lasting).fit(batch(0))
    with pytest.raises(SettingError, match="ledger must be given with the first update"):
        late.update(batch(1), ledger=ledger, key="2")
    assert late.update(batch(2)).updates_left_ == 2


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_update_that_fails_goes_on_where_it_stopped(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the first, second or third stage was published: nothing published is drawn or paid again."""
    ledger = ledger_in(tmp_path)
    model = gf.PrivateCF(epsilon=1.0, catalogue=ITEMS, lasting=gf.Lasting(updates=3)).fit(
        batch(0), ledger=ledger, key="1"
    )
    model.save(tmp_path / "model")
    whole, stages = Updater.publish, []

    def stops(self: Updater, name: str, totals: Any, sensitivity: int) -> Any:
        found = whole(self, name, totals, sensitivity)
        stages.append(name)
        if len(stages) == at + 1:
            raise MemoryError
        return found

    monkeypatch.setattr(Updater, "publish", stops)
    with pytest.raises(MemoryError):
        model.update(batch(1), ledger=ledger, key="2")
    monkeypatch.setattr(Updater, "publish", whole)
    if at == 0:
        with pytest.raises(SettingError, match="same ratings"):
            model.update(batch(2), ledger=ledger, key="3")
    killed = gf.load_model(tmp_path / "model")  # its memory is gone, the ledger is not
    assert isinstance(killed, gf.PrivateCF)
    for each in (model, killed):
        each.update(batch(1), ledger=ledger, key="2")
    assert (model.model_.bias == killed.model_.bias).all()
    cap = model.life_.terms.sensitivity**2
    assert ledger.spent(ledger.account("rating", "1/1")).cost <= cap


def test_a_charge_comes_before_the_draw_and_a_lost_draw_is_not_repeated(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    model = gf.PrivateMeans(epsilon=1.0, catalogue=ITEMS, lasting=gf.Lasting(updates=4))
    model.fit(batch(0), ledger=ledger, key="1").update(batch(1), ledger=ledger, key="2")

    class Dies:
        private = True

        def draw(self, n: int) -> Any:
            raise MemoryError(n)

    noise, model.life_.noise = model.life_.noise, Dies()
    with pytest.raises(MemoryError):
        model.update(batch(2), ledger=ledger, key="3")
    account = ledger.account("rating", "1/3")
    assert ledger.spent(account).cost > 0  # charged, burned and not given back
    model.life_.noise = noise
    model.update(batch(2), ledger=ledger, key="3")  # no room to pay again: the release stays lost
    assert len(model.life_.series["item sums and counts"].noisy[2]) == len(LOST)
    with pytest.raises(SettingError, match="None after an update whose release was lost"):
        model.update(batch(3), ledger=ledger, key="4")
    model.update(None, ledger=ledger, key="4")
    one, terms = model.life_.series["item sums and counts"], model.life_.terms
    updater = open_updater(
        dataclasses.replace(terms, lasting=gf.Lasting(updates=9)),
        SeededNoise(Streams(1)),
        series=model.life_.series,
        now=4,
    )
    found = updater.total("item sums and counts")
    off = (found - sum(one.sums)) / updater.sd
    assert 0.5 < float(np.sqrt((off**2).mean())) < 1.6


def test_same_bytes_however_often_somebody_came(tmp_path: Path) -> None:
    """Counts above 1 change nothing that is public in the saved file."""
    texts = []
    for count in (1.0, 2.0):
        csr = sparse.csr_array(([count, 1.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 3))
        events = gf.Ratings(csr, [1, 2], [1, 2, 3], feedback="implicit", liked_from=4)
        texts.append(PrivateTopN(epsilon=1.0, catalogue=[1, 2, 3]).laid_out(events))
    assert texts[0].liked_from == texts[1].liked_from == 4
    assert (texts[0].csr.data == texts[1].csr.data).all()
