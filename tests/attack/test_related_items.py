"""Watching related-items lists: by hand, beside the slow way, and on real data."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import goodfence as gf
from goodfence.attack.related_items import RatingLog, Refreshes, RelatedItemsReport, co_rated_lists
from goodfence.errors import DataError, SettingError
from goodfence.report.serialize import plain


def random_log(seed: int, n_users: int = 25, n_items: int = 20, n: int = 260, **more: Any) -> gf.Ratings:
    """Return distinct pairs in an order of chance; popular items are rated by most."""
    generator = np.random.default_rng(seed)
    cells = generator.permutation(n_users * n_items)[:n]
    users, items = cells // n_items, cells % n_items
    times = generator.integers(0, 1000, size=n)
    names = [f"item {i}" for i in items]
    return played(users, names, times, **more)


def played(users: Any, items: Any, times: Any, **more: Any) -> gf.Ratings:
    """Return events, or ratings where these are given, with times."""
    columns = {"user": users, "item": items, "time": times, **more}
    table = pa.table({name: pa.array(list(one)) for name, one in columns.items()})
    if more:
        return gf.Ratings.from_frame(table, scale=(1, 5))
    return gf.Ratings.from_frame(table, feedback="implicit")


def by_hand() -> gf.Ratings:
    """Return a log in which the target, user 0, rates 0 and 1, others rate 2 with 3, and then the target rates 4."""
    events = [(0, 0), (0, 1), (1, 2), (1, 3), (0, 4), (0, 5), (2, 2), (2, 3)]
    users, items = zip(*events, strict=True)
    return played(users, items, range(len(events)))


def test_a_rating_of_the_target_alone_is_named() -> None:
    """Item 4, then item 5, enter the lists of items 0 and 1: both are named, and nothing is when others rate."""
    found = gf.RelatedItemsAttack(known=2, n=4, every=(1,)).run(by_hand(), targets=[0], rng=1)
    (only,) = found.refreshes
    assert (only.new.sum(), only.named.sum(), only.right.sum()) == (2, 2, 2)
    assert (only.quiet.sum(), only.alarms.sum()) == (2, 0)
    assert (found.n_targets, found.n_left_out) == (1, 2)
    assert only.named_without.sum() == 0
    assert only.gain.value == only.precision.value == 1


def test_two_ratings_in_one_refresh_leave_no_single_best() -> None:
    found = gf.RelatedItemsAttack(known=2, n=4, every=(8,)).run(by_hand(), targets=[0], rng=1)
    (only,) = found.refreshes
    assert (only.new.sum(), only.named.sum(), only.quiet.sum()) == (2, 0, 0)
    assert math.isnan(only.precision.value)
    both = gf.RelatedItemsAttack(known=2, n=4, every=(8,), at_least=2)
    (only,) = both.run(by_hand(), targets=[0], rng=1).refreshes
    assert (only.new.sum(), only.named.sum(), only.right.sum()) == (2, 2, 2)


@pytest.mark.parametrize(
    ("before", "after", "at_least", "named"),
    [
        ([[7, 8], [8, 9]], [[9, 7], [9, 8]], None, [9]),  # entered one list, moved up on the other
        ([[7, 8], [8, 9]], [[7, 8], [8, 9]], None, []),  # nothing moved
        ([[7, 8], [8, 9]], [[8, 7], [9, 8]], None, []),  # two rose once each
        ([[7, 8], [8, 9]], [[8, 7], [9, 8]], 1, [8, 9]),
        ([[7, 8], [8, 9]], [[8, 7], [9, 8]], 2, []),
        ([[7, 8], [8, 9]], [[0, 7], [0, 8]], None, []),  # known already
        ([[7, -1], [-1, -1]], [[7, 9], [-1, -1]], None, [9]),
    ],
)
def test_named_by_hand(before: Any, after: Any, at_least: int | None, named: list[int]) -> None:
    attack = gf.RelatedItemsAttack(known=2, n=2, at_least=at_least)
    old, new = (np.array(one, dtype=np.int32) for one in (before, after))
    assert attack.named(old, new, np.array([0, 1])).tolist() == named


def slow_names(known: list[Any], before: Any, after: Any, n: int) -> set[Any]:
    """Return the one item that entered or moved up on most of the known items' lists."""
    scores: dict[Any, int] = {}
    for item in known:
        for rank, other in enumerate(after[item]):
            old = before[item].index(other) if other in before[item] else n
            if rank < old and other not in known:
                scores[other] = scores.get(other, 0) + 1
    best = [one for one in scores if scores[one] == max(scores.values())]
    return set(best) if len(best) == 1 else set()


def slow_counts(log: RatingLog, attack: gf.RelatedItemsAttack, users: list[Any], rng: int) -> Any:
    """Play the log with plain lists and sets: what is new, named and right, and named and right without it."""
    from goodfence.attack.targets import KNOWLEDGE
    from goodfence.rng import Streams

    counts = np.zeros((len(attack.every), 5, len(users)), dtype=int)
    names = log.ratings.items.tolist()
    for interval, every in enumerate(attack.every):
        for target, user in enumerate(users):
            row = log.ratings.users.tolist().index(user)
            own = [position for position, one in enumerate(log.rows) if one == row]
            past, new = own[: len(own) // 2], own[len(own) // 2 :]
            order = Streams(rng).order(len(past), KNOWLEDGE, row)
            known = [names[log.columns[past[place]]] for place in order[: attack.known]]
            for number in sorted({position // every for position in new}):
                ends = number * every, min((number + 1) * every, len(log.rows))
                truth = {names[log.columns[p]] for p in new if ends[0] <= p < ends[1]}
                before = co_rated_lists(log.until(ends[0]), attack.n)
                without = np.array([names.index(item) for item in truth])
                told = [len(truth)]
                for ratings in (log.until(ends[1]), log.until(ends[1], row, without)):
                    named = slow_names(known, before, co_rated_lists(ratings, attack.n), attack.n)
                    told += [len(named), len(truth & named)]
                counts[interval, :, target] += told
    return counts


@pytest.mark.parametrize("seed", range(3))
def test_the_pass_over_the_log_is_the_slow_way(seed: int) -> None:
    ratings = random_log(seed)
    attack = gf.RelatedItemsAttack(known=3, n=5, every=(1, 7, 40))
    users = [1, 5, 8, 11]
    found = attack.run(ratings, targets=users, rng=9)
    expected = slow_counts(RatingLog(ratings), attack, users, 9)
    assert (expected.sum(axis=(0, 2))[:4] > 0).all()
    for interval, one in enumerate(found.refreshes):
        np.testing.assert_array_equal(one[1:6], expected[interval])


@pytest.mark.parametrize("at_least", [None, 2])
def test_a_function_of_ones_own_gives_the_same(at_least: int | None) -> None:
    """The lists of `co_rated_lists`, made anew at every refresh, are those that are kept up to date."""
    attack = gf.RelatedItemsAttack(known=3, n=5, every=(1, 10, 60), at_least=at_least)
    fast = attack.run(random_log(4), targets=6, rng=2)
    slow = attack.run(random_log(4), lists=partial(co_rated_lists, n=5), targets=6, rng=2)
    for one, other in zip(fast.refreshes, slow.refreshes, strict=True):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, same)
    assert sum(one.alarms.sum() for one in fast.refreshes) > 0


def test_lists_of_ones_own_see_the_ratings_so_far() -> None:
    seen: list[tuple[int, float]] = []

    def lists(ratings: gf.Ratings) -> dict[Any, list[Any]]:
        seen.append((ratings.n_ratings, float(ratings.csr.data.sum())))
        return {}

    rated = random_log(5, rating=[2.0] * 260)
    found = gf.RelatedItemsAttack(known=3, n=5, every=(50,)).run(rated, lists=lists, targets=25, rng=1)
    sizes = [n for n, _ in seen]
    assert {100, 150, 200, 250, 260} <= set(sizes)
    assert set(sizes) - {0, 50, 100, 150, 200, 250, 260}  # and without the new ratings of each target
    assert all(total == 2.0 * n for n, total in seen)
    assert found.refreshes[0].named.sum() == 0


def test_lists_by_hand() -> None:
    """Item 1 was rated by four, item 2 by one of two who rated item 0: 1²/4 < 1²/1, and ties are by column."""
    log = played([0, 0, 1, 1, 2, 3, 4, 0], [0, 1, 0, 2, 1, 1, 1, 3], range(8))
    assert co_rated_lists(log) == {0: [2, 3, 1], 1: [3, 0], 2: [0], 3: [0, 1]}
    assert co_rated_lists(log, n=1) == {0: [2], 1: [3], 2: [0], 3: [0]}


def test_a_log_is_in_the_order_of_time() -> None:
    ratings = random_log(6)
    log = RatingLog(ratings)
    assert ratings.times is not None
    assert (np.diff(ratings.times[log.order]) >= 0).all()
    cells = zip(log.rows.tolist(), log.columns.tolist(), strict=True)
    assert sorted(cells) == list(zip(*ratings.csr.nonzero(), strict=True))
    assert (log.until(260).csr != ratings.csr).nnz == 0
    assert log.until(3).n_ratings == 3


def test_a_repeated_rating_counts_once() -> None:
    log = RatingLog(played([1, 1, 1, 2], [5, 5, 5, 5], [3, 1, 2, 4]))
    assert log.rows.tolist() == [0, 1]


def test_refused() -> None:
    untimed = gf.Ratings.from_frame(pa.table({"user": [1], "item": [1]}), feedback="implicit")
    with pytest.raises(DataError, match="must have times"):
        gf.RelatedItemsAttack().run(untimed)
    attack = gf.RelatedItemsAttack(known=3, n=5)
    for targets in ([1, 1], []):
        with pytest.raises(DataError, match="targets must be different users with 6 ratings"):
            attack.run(random_log(1), targets=targets)
    with pytest.raises(DataError, match="users asked for"):
        attack.run(random_log(1), targets=[99])
    with pytest.raises(SettingError, match="targets must be a positive integer"):
        attack.run(random_log(1), targets=0)
    with pytest.raises(DataError, match="nobody has 2000 ratings, twice known"):
        gf.RelatedItemsAttack(known=1000).run(random_log(1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"known": 0}, "known must be an integer of at least 1"),
        ({"n": 0}, "n must be an integer of at least 1"),
        ({"every": ()}, "every must be ascending"),
        ({"every": (20, 1)}, "every must be ascending"),
        ({"every": (0, 1)}, "every must be an integer of at least 1"),
        ({"at_least": 0}, "at_least must be an integer of at least 1"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        gf.RelatedItemsAttack(**settings)


def refreshes(every: int, named: int, right: int, chance: int = 0, n_targets: int = 400) -> Refreshes:
    counts = (np.full(n_targets, float(one)) for one in (10, named, right, 100, chance, 5, 1))
    return Refreshes(every, *counts)


@pytest.mark.parametrize(
    ("precisions", "level", "advised"),
    [
        ([1.0, 0.5, 0.04], 0.1, 100),
        ([1.0, 0.5, 0.04], 0.6, 20),
        ([0.04, 0.5, 0.04], 0.1, 100),  # what is worse in between is not hidden
        ([1.0, 0.5, 0.4], 0.1, None),
        ([1.0, None, None], 0.1, 20),  # nothing is named
    ],
)
def test_the_advice_by_hand(precisions: list[float | None], level: float, advised: int | None) -> None:
    rows = [
        refreshes(every, 0, 0) if one is None else refreshes(every, 100, int(100 * one))
        for every, one in zip((1, 20, 100), precisions, strict=True)
    ]
    report = RelatedItemsReport(refreshes=tuple(rows), n_targets=400, n_left_out=0, settings={}, seed=None)
    assert report.refresh_after(level) == advised
    assert plain(report.to_dict(level))["advice"]["refresh_after"] == advised


def test_what_chance_gives_is_no_leak() -> None:
    """Half of what is named is right, and would be without the target's ratings: nothing to wait for."""
    row = refreshes(1, 100, 50, chance=50)
    assert (row.precision.value, row.precision_without.value, row.gain.value) == (0.5, 0.5, 0)
    report = RelatedItemsReport(refreshes=(row,), n_targets=400, n_left_out=0, settings={}, seed=None)
    assert report.refresh_after(0.1) == 1


def test_a_report_is_plain_and_holds_no_id() -> None:
    found = gf.RelatedItemsAttack(known=3, n=5, every=(1, 20)).run(random_log(7), targets=5, rng=3)
    told = plain(found.to_dict())
    assert json.loads(json.dumps(told)) == told
    assert "item " not in repr(found).replace("items", "") + json.dumps(told)
    assert told["refreshes"][0]["every"] == 1
    assert repr(found).count("\n") == 2
    again = gf.RelatedItemsAttack(known=3, n=5, every=(1, 20)).run(random_log(7), targets=5, rng=3)
    assert plain(again.to_dict()) == told


@pytest.mark.real("ml-100k")
def test_real_lists_give_new_ratings_away(real_data: Any) -> None:
    """In an order of chance, as an independent trial had it: 73, 26, 18 and 7 of 100 with lists of 50."""
    events = np.loadtxt(real_data / "ml-100k" / "u.data", dtype=np.int64)
    order = np.random.default_rng(7).permutation(len(events))
    attack = gf.RelatedItemsAttack(known=16, n=50, every=(1, 20, 100, 500))
    found = attack.run(played(events[:, 0], events[:, 1], order), targets=12, rng=7)
    yields = [one.found.value for one in found.refreshes]
    for value, trial in zip(yields, (0.73, 0.26, 0.18, 0.07), strict=True):
        assert trial / 2 < value < trial * 1.5
    precisions = [one.precision.value for one in found.refreshes]
    assert precisions[0] == 1
    assert precisions == sorted(precisions, reverse=True)
