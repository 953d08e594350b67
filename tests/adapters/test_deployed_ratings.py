"""A guarded service of ratings: keys, rate limits, cold starts, late retraining, and accounts that get closed."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence import parallel
from goodfence.adapters import deployed as module
from goodfence.adapters import http
from goodfence.adapters.deployed import Deployed, ServiceMapping
from goodfence.adapters.http import Endpoint
from goodfence.errors import BlackBoxProblem, FileProblem, SettingError
from goodfence.models.recommender import unfitted_copy
from tests.support.attack_worlds import tied_ratings
from tests.support.list_recommenders import make_events
from tests.support.rating_service import (
    CLOSE,
    KEY,
    LIST,
    OPEN,
    OPEN_ALL,
    OPEN_EACH,
    PREDICT,
    PREDICT_EACH,
    Answer,
    RatingService,
    serving_ratings,
    write_tables,
)
from tests.support.recommender_service import SECRET, Service, serving
from tests.support.running import run, run_json

STARS = (1, 2, 3, 4, 5)
RATINGS = tied_ratings(3, n_users=14)
LEAKY = tied_ratings(5, n_users=20, n_items=24, values=STARS)
EVENTS = make_events(3, n_users=14)
ATTACK = gf.KNNAttack(known=6, fakes=4)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back off for milliseconds: the waits are tested, not waited for."""
    monkeypatch.setattr(http, "_FIRST_WAIT", 0.001)


def deployed(url: str, folder: Path, *tables: str) -> Deployed:
    return Deployed(Endpoint(url=url, headers=KEY, max_bytes=2**16), write_tables(folder, *tables, CLOSE))


class Refitted(gf.NeighbourCF):
    """Another class, of which an attack knows nothing but how to fit and ask it."""


@pytest.mark.parametrize("opening", [OPEN, OPEN_EACH, OPEN_ALL], ids=["one by one", "by item", "in bulk"])
@pytest.mark.parametrize("asking", [PREDICT, PREDICT_EACH], ids=["together", "by item"])
def test_a_service_of_ratings_is_attacked_as_from_inside(tmp_path: Path, opening: str, asking: str) -> None:
    service = RatingService(limit=20)
    with serving_ratings(service) as url, deployed(url, tmp_path, opening, asking) as far:
        told = ATTACK.run(LEAKY, far, targets=3, rng=5)
        assert len(service.accounts) == LEAKY.shape[0] - 1 + 4  # without the last target, with four fakes
    assert service.refused > 0
    assert not service.accounts
    near = ATTACK.run(LEAKY, Refitted(gf.KNN(k=4), progress=False), targets=3, rng=5)
    assert near.advantage > 0
    chosen = ("target_chosen",)  # which a black box does not tell
    assert told.table().drop_columns(chosen).equals(near.table().drop_columns(chosen))


def test_bulk_opens_in_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IN_BULK", 10)
    service = RatingService()
    with serving_ratings(service) as url:
        deployed(url, tmp_path, OPEN_ALL, PREDICT).fit(RATINGS)
    assert service.asked == [("POST", "/accounts")] * 2
    first = RATINGS.csr[[0]]
    held = dict(zip(map(str, RATINGS.items[first.indices].tolist()), first.data.tolist(), strict=True))
    assert service.accounts["goodfence-user 0"] == held


def test_pairs_are_answered_in_their_own_order(tmp_path: Path) -> None:
    """Users that take turns are asked once each, and null is no prediction."""
    service = RatingService()
    users, items = RATINGS.users[[0, 1, 0, 1]], RATINGS.items[[3, 5, 4, 3]]
    with serving_ratings(service) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT).fit(RATINGS)
        before = len(service.asked)
        told = far.predict(users, items)
        assert len(service.asked) - before == 2
        service.bad = lambda _method, _path: (200, b'{"rated": [{"value": null}]}', {})
        assert np.isnan(far.predict(users[:1], items[:1])).all()
    near = gf.NeighbourCF(gf.KNN(k=4), progress=False).fit(RATINGS)
    assert np.array_equal(told, near.predict(users, items), equal_nan=True)


def test_lists_come_with_their_scores(tmp_path: Path) -> None:
    """Items that the data does not have are left out together with their scores."""
    service = RatingService(feedback="implicit")
    with serving_ratings(service) as url:
        far = deployed(url, tmp_path, OPEN, LIST).fit(EVENTS)
        ids, scores = far.recommend(EVENTS.users[0], 5)
        told = [("new", 9), ("item 01", 2), ("item 00", None)]
        other = json.dumps({"entries": [{"sku": item, "score": score} for item, score in told]})
        service.bad = lambda _method, _path: (200, other.encode(), {})
        filtered = far.recommend(EVENTS.users[0], 5)
    near = gf.NeighbourCF(gf.KNN(k=4), progress=False).fit(EVENTS).recommend(EVENTS.users[0], 5)
    assert ids == near.items.tolist()
    assert np.allclose(scores, near.scores)
    assert filtered[0] == ["item 01", "item 00"]
    assert np.array_equal(filtered[1], [2, np.nan], equal_nan=True)


def test_a_cold_account_is_told_the_mean(tmp_path: Path) -> None:
    item = int(RATINGS.items[0])
    with serving_ratings(RatingService(cold=50)) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT).fit(RATINGS)
        told = far.predict(RATINGS.users[:1], [item])
    assert told == pytest.approx(RATINGS.csr[:, [0]].sum() / RATINGS.shape[0])


def test_what_the_mapping_lacks_is_told(tmp_path: Path) -> None:
    lists, ratings = (deployed("http://127.0.0.1:9", tmp_path, OPEN, one) for one in (LIST, PREDICT))
    with pytest.raises(SettingError, match="must have a table predict: ratings need predict"):
        lists.fit(RATINGS)
    with pytest.raises(SettingError, match="must have a table list"):
        ratings.fit(EVENTS)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ((OPEN,), "and list or predict"),
        ((OPEN, OPEN_ALL, LIST), "open or open_all"),
        ((LIST,), "open or open_all"),
        ((OPEN, LIST.replace("items =", "predictions =")), "list must be a table of path, method, body, items, scores"),
        ((OPEN, PREDICT.replace('"rated.*.value"', "3")), "predictions must be text"),
        ((OPEN_EACH.replace("true", '"yes"'), LIST), "each must be true or false"),
        ((OPEN + "each = true", LIST), "each must be false without"),
        ((OPEN_ALL.replace('"$accounts"', '"$users"'), LIST), "open_all must be a table with account"),
        ((OPEN_ALL.replace("account =", "#"), LIST), "open_all must be a table with account"),
        ((OPEN.replace('"$items"', "2026-01-01"), LIST), "must be JSON"),
        ((OPEN.replace('"$items"', "nan"), LIST), "must be JSON"),
        (("open = 3", LIST), "open must be a table with a path"),
        (("settle = inf", OPEN, LIST), "settle must be at least 0"),
    ],
)
def test_a_mapping_that_says_nonsense_is_refused(tmp_path: Path, tables: tuple[str, ...], words: str) -> None:
    with pytest.raises((FileProblem, SettingError), match=words):
        ServiceMapping.read(write_tables(tmp_path, *tables))


def constant(status: int, body: bytes, **headers: str) -> Callable[[str, str], Answer | None]:
    """Return a service that answers every question about recommendations like this."""
    stated = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _method, path: (status, body, stated) if "predictions" in path or "shelf" in path else None


RATED = "must have one number or null for each item at 'rated"
SCORED = "must have one number for each item at 'entries"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (SECRET.encode(), "must answer in JSON"),
        (b"\xff\xfe", "must answer in JSON"),
        (b'{"rated": [{"value": NaN}, {"value": 1}]}', "must answer in JSON"),
        (b"[" * 60_000, "must answer in JSON"),
        (b" " * 70_000, "must answer with at most"),
        (b"{}", RATED),
        (b'{"rated": [{"value": 1}]}', RATED),
        (b'{"rated": [{"value": 1}, {"other": 1}]}', RATED),
        (b'{"rated": [{"value": 1}, {"value": 1}, {"value": 1}]}', RATED),
        (b'{"rated": [{"value": 1}, {"value": "hidden-5f2c"}]}', RATED),
        (b'{"rated": [{"value": 1}, {"value": true}]}', RATED),
        (b'{"rated": [{"value": 1}, {"value": 1e999}]}', RATED),
        (b'{"rated": [{"value": 1}, {"value": 1' + b"0" * 400 + b"}]}", RATED),
    ],
)
def test_a_hostile_prediction_is_one_error_without_secrets(tmp_path: Path, body: bytes, words: str) -> None:
    with serving_ratings(RatingService(bad=constant(200, body))) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT).fit(RATINGS)
        with pytest.raises(BlackBoxProblem, match=words) as caught:
            far.predict(RATINGS.users[[0, 0]], RATINGS.items[:2])
    assert SECRET not in str(caught.value)
    assert "user " not in str(caught.value)


@pytest.mark.parametrize("body", [b"{}", b'{"value": [1, 2]}', b'{"value": {}}', b'{"value": "hidden-5f2c"}'])
def test_a_missing_prediction_is_no_null(tmp_path: Path, body: bytes) -> None:
    with serving_ratings(RatingService(bad=constant(200, body))) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT_EACH).fit(RATINGS)
        with pytest.raises(BlackBoxProblem, match="must have one number or null"):
            far.predict(RATINGS.users[:1], RATINGS.items[:1])


@pytest.mark.parametrize(
    "entries",
    [[{"sku": "item 01"}], [{"sku": "item 01", "score": 1}, {"sku": "x"}], [{"sku": "item 01", "score": "1"}]],
)
def test_scores_of_another_length_are_told(tmp_path: Path, entries: list[Any]) -> None:
    body = json.dumps({"entries": entries}).encode()
    with serving_ratings(RatingService(feedback="implicit", bad=constant(200, body))) as url:
        far = deployed(url, tmp_path, OPEN, LIST).fit(EVENTS)
        with pytest.raises(BlackBoxProblem, match=SCORED):
            far.recommend(EVENTS.users[0], 3)


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


class Busy(RatingService):
    """Answers the first questions with a status, then as it should; notes when each question came."""

    def __init__(self, status: int, stated: str | None, times: int = 1) -> None:
        super().__init__()
        self.left, self.came = times, list[float]()
        self.told: Answer = status, SECRET.encode(), {} if stated is None else {"Retry-After": stated}

    def answer(self, *_: Any) -> Answer:
        self.came.append(time.monotonic())
        self.left -= 1
        return self.told if self.left >= 0 else (200, b"{}", {})


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the waits between tries, which take no time."""
    found: list[float] = []
    monkeypatch.setattr(http, "time", SimpleNamespace(sleep=found.append, monotonic=time.monotonic))
    monkeypatch.setattr(http, "_FIRST_WAIT", 1.0)
    return found


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("stated", "least", "most"),
    [
        ("7", 7, 7),
        (60.0, 55, 60),
        ("0", 0, 0),
        (None, 1, 1),
        ("-5", 1, 1),
        ("1e3", 1, 1),
        ("soon", 1, 1),
        (-60.0, 0, 0),
    ],
)
def test_a_busy_service_is_asked_again_when_it_says(
    waits: list[float], status: int, stated: Any, least: float, most: float
) -> None:
    service = Busy(status, in_seconds(stated) if isinstance(stated, float) else stated)
    with serving_ratings(service) as url:
        assert Endpoint(url=url).send("POST", "/x", b"{}") == b"{}"
    assert len(waits) == 1
    assert least <= waits[0] <= most


def test_waits_grow_where_no_time_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_FIRST_WAIT", 0.05)
    service = Busy(503, None, times=3)
    with serving_ratings(service) as url:
        Endpoint(url=url).send("POST", "/x", b"{}")
    assert all(wait >= least for wait, least in zip(np.diff(service.came), (0.05, 0.1, 0.2), strict=True))


@pytest.mark.parametrize(
    ("stated", "tries", "words"),
    [
        (None, 6, "was still busy after 6 tries"),
        ("0", 6, "was still busy after 6 tries"),
        ("31536000", 1, "asked to wait longer than 120 seconds"),
        ("9" * 400, 1, "asked to wait longer than 120 seconds"),
        (365 * 86400.0, 1, "asked to wait longer than 120 seconds"),
    ],
)
def test_patience_ends(waits: list[float], stated: Any, tries: int, words: str) -> None:
    service = Busy(429, in_seconds(stated) if isinstance(stated, float) else stated, times=100)
    with serving_ratings(service) as url, pytest.raises(BlackBoxProblem, match=words) as caught:
        Endpoint(url=f"{url}/{SECRET}").send("POST", "/x", b"{}")
    assert len(service.came) == tries == len(waits) + 1
    assert sum(waits) <= 120
    assert "(status 429)" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_all_waits_together_are_bounded(waits: list[float]) -> None:
    service = Busy(429, "50", times=100)
    with serving_ratings(service) as url, pytest.raises(BlackBoxProblem, match="longer than 120 seconds"):
        Endpoint(url=url).send("POST", "/x", b"{}")
    assert waits == [50, 50]


@pytest.mark.parametrize("status", [500, 502, 401, 404])
def test_nothing_else_is_asked_again(status: int) -> None:
    service = Busy(status, "0")
    with serving_ratings(service) as url, pytest.raises(BlackBoxProblem, match=f"got {status}"):
        Endpoint(url=url).send("POST", "/x", b"{}")
    assert len(service.came) == 1


def fails(calls: str, after: int) -> Callable[[str, str], Answer | None]:
    """Return a service that fails in the calls of one method, after so many."""
    left = [after]

    def bad(method: str, _path: str) -> Answer | None:
        left[0] -= method == calls
        return (500, SECRET.encode(), {}) if method == calls and left[0] < 0 else None

    return bad


@pytest.mark.parametrize("opening", [OPEN, OPEN_EACH, OPEN_ALL], ids=["one by one", "by item", "in bulk"])
def test_accounts_are_closed_after_an_error(tmp_path: Path, opening: str) -> None:
    """Also the account that failed half-way, though nobody knows whether it is there."""
    service = RatingService(bad=fails("POST" if opening == OPEN_ALL else "PUT", 0 if opening == OPEN_ALL else 5))
    with (
        serving_ratings(service) as url,
        pytest.raises(BlackBoxProblem, match="got 500") as caught,
        deployed(url, tmp_path, opening, PREDICT) as far,
    ):
        far.fit(RATINGS)
    assert service.largest > 0 or opening == OPEN_ALL
    assert not service.accounts
    assert not getattr(caught.value, "__notes__", [])


def test_accounts_are_closed_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt comes after the service has opened the account, and before it is known here."""
    service, send = RatingService(), Endpoint.send

    def interrupted(self: Endpoint, *asked: Any) -> bytes:
        told = send(self, *asked)
        if asked[0] == "PUT" and len(service.accounts) == 5:
            raise KeyboardInterrupt
        return told

    monkeypatch.setattr(Endpoint, "send", interrupted)
    with serving_ratings(service) as url:
        with pytest.raises(KeyboardInterrupt), deployed(url, tmp_path, OPEN, PREDICT) as far:
            far.fit(RATINGS)
        assert service.largest == 5
        assert not service.accounts


def test_one_failing_close_keeps_no_other_open(tmp_path: Path) -> None:
    service = RatingService()
    with serving_ratings(service) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT).fit(RATINGS)
        fail = {f"/accounts/goodfence-user%20{one}" for one in (3, 7)}
        service.bad = lambda _method, path: (500, b"", {}) if path in fail else None
        with pytest.raises(BlackBoxProblem, match=r"2 of the accounts at .* could not be closed") as caught:
            far.close()
        assert len(service.accounts) == 2
        assert "user 3" not in str(caught.value)
        service.bad = lambda _method, _path: None
        far.close()
    assert not service.accounts


def test_a_failing_close_does_not_hide_the_error(tmp_path: Path) -> None:
    service = RatingService(bad=lambda method, _path: None if method == "PUT" else (500, b"", {}))
    with (
        serving_ratings(service) as url,
        pytest.raises(BlackBoxProblem, match="got 500") as caught,
        deployed(url, tmp_path, OPEN, PREDICT) as far,
    ):
        far.fit(RATINGS).predict(RATINGS.users[:1], [1])
    assert ["14 of the accounts" in one for one in caught.value.__notes__] == [True]


def test_a_service_that_is_gone_is_not_asked_for_every_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving_ratings(RatingService()) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT).fit(RATINGS)
    tried, close = [], Deployed._close

    def noted(self: Deployed, user: Any) -> None:
        tried.append(user)
        close(self, user)

    monkeypatch.setattr(Deployed, "_close", noted)
    with pytest.raises(BlackBoxProblem, match="14 of the accounts"):
        far.close()
    assert len(tried) == 10


def test_an_account_that_vanished_is_told(tmp_path: Path) -> None:
    """404 is taken as closed only where nobody knows whether the account was opened."""
    service = RatingService()
    with serving_ratings(service) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT).fit(RATINGS)
        service.accounts.clear()
        with pytest.raises(BlackBoxProblem, match="14 of the accounts"):
            far.close()


def test_the_wait_is_one_for_all_copies(tmp_path: Path) -> None:
    far = Deployed("http://127.0.0.1:9", write_tables(tmp_path, "settle = 2", OPEN, LIST, CLOSE))
    copies = copy.copy(far), copy.deepcopy(far), unfitted_copy(far, 7)
    assert [one.settle_ for one in copies] == [2.0] * 3
    far.settle_ = 0.25
    assert [one.settle_ for one in copies] == [0.25] * 3
    for bad in (-1, np.nan, np.inf):
        with pytest.raises(SettingError, match="settle_ must be at least 0"):
            far.settle_ = bad
    assert Deployed("http://127.0.0.1:9", write_tables(tmp_path, OPEN, LIST)).settle_ == 0


@pytest.mark.parametrize("enough", [False, True])
def test_late_retraining_is_waited_for(tmp_path: Path, enough: bool) -> None:
    """Without the wait, the answers are those of the world before."""
    before, after = RATINGS, tied_ratings(4, n_users=14)
    asked = RATINGS.users[:1].repeat(5), RATINGS.items[:5]
    service = RatingService()
    with serving_ratings(service) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT)
        far.fit(before).predict(*asked)
        far.settle_, service.retrains_after = 0.3, 0.2 if enough else 60
        told = copy.deepcopy(far).fit(after).predict(*asked)
    new = gf.NeighbourCF(gf.KNN(k=4), progress=False).fit(after).predict(*asked)
    assert np.array_equal(told, new, equal_nan=True) == enough


def test_a_world_that_was_not_learnt_is_learnt_later(tmp_path: Path) -> None:
    """The accounts are all there, and the service has not learnt from them."""
    learn = '[learn]\npath = "/accounts"\nbody = {accounts = []}\n'
    service = RatingService(bad=fails("POST", 0))
    with serving_ratings(service) as url:
        far = deployed(url, tmp_path, OPEN, PREDICT, learn)
        with pytest.raises(BlackBoxProblem, match="got 500"):
            far.fit(RATINGS)
        service.bad, service.asked = lambda _method, _path: None, []
        far.fit(RATINGS).fit(RATINGS)
    assert service.asked == [("POST", "/accounts")]


def test_only_many_accounts_have_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[Any] = []

    def noted(what: str, steps: int, *, show: bool | None) -> Any:
        bars.append((what, steps, show))
        return nullcontext(lambda _: None)

    monkeypatch.setattr(module, "bar", noted)
    for ratings in (RATINGS, LEAKY):
        with serving_ratings(RatingService()) as url, deployed(url, tmp_path, OPEN, PREDICT) as far:
            far.fit(ratings)
    assert bars == [
        (f"{what} accounts", n, show) for n, show in ((14, False), (20, None)) for what in ("opening", "closing")
    ]


def test_a_bar_within_a_bar_is_a_line_below_it() -> None:
    """Two displays would write over each other."""
    with parallel.bar("attack", 2, show=True), parallel.bar("opening accounts", 3, show=True) as advance:
        advance(1)
        (display,) = parallel._BARS
        assert [(one.description, one.completed) for one in display.tasks] == [("attack", 0), ("opening accounts", 1)]
    assert not parallel._BARS


def stars(folder: Path) -> Path:
    cells = RATINGS.csr.tocoo()
    lines = zip(RATINGS.users[cells.row], RATINGS.items[cells.col], cells.data, strict=True)
    path = folder / "stars.csv"
    path.write_text("user,item,rating\n" + "".join(f"{user},{item},{value}\n" for user, item, value in lines))
    return path


def options(folder: Path, url: str, *others: object) -> tuple[object, ...]:
    mapping = write_tables(folder, OPEN_ALL, PREDICT, CLOSE)
    shown = "--url", url, "--mapping", mapping, "--attack", "knn known=3 fakes=4", "--targets", 2, "--seed", 7
    return "audit", stars(folder), "--scale", "1,5,1", *shown, "--header", "X-Key=SHOP_KEY", "--quiet", *others


def test_the_command_audits_ratings_with_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    service = RatingService(limit=10)
    with serving_ratings(service) as url:
        told = run_json(*options(tmp_path, url))
    assert "estimates" in told
    assert SECRET not in json.dumps(told)
    assert service.largest == RATINGS.shape[0] + 4
    assert not service.accounts


def test_the_command_sends_headers_to_the_refit_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    service = Service(gf.NeighbourCF(gf.KNN(k=4), progress=False))
    given = "--attack", "knn known=3 fakes=4", "--targets", 1, "--seed", 7, "--quiet"
    with serving(service) as url:
        run_json("audit", stars(tmp_path), "--url", url, "--header", "X-Key=SHOP_KEY", *given)
    assert {headers.get("X-Key") for _, _, headers in service.asked} == {SECRET}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--header", f"X-Key={SECRET}"), "names an environment variable that is not set"),
        (("--header", "X-Key=EMPTY"), "names an environment variable that is not set"),
        (("--header", SECRET), "header must be NAME=ENV"),
        (("--header", "=SHOP_KEY"), "header must be NAME=ENV"),
        (("--header", "X-Key="), "header must be NAME=ENV"),
        (("--header", "X Key=SHOP_KEY"), "headers must be single lines"),
        (("--header", "X-Key=LINES"), "headers must be single lines"),
    ],
)
def test_a_header_that_cannot_be_sent_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], words: str
) -> None:
    for name, value in {"SHOP_KEY": SECRET, "EMPTY": "", "LINES": f"a\n{SECRET}"}.items():
        monkeypatch.setenv(name, value)
    code, stdout, stderr = run("audit", stars(tmp_path), "--url", "http://127.0.0.1:9", *given)
    assert code == 2
    assert words in " ".join(stderr.split())
    assert SECRET not in stdout + stderr


def test_a_header_needs_a_service(tmp_path: Path) -> None:
    code, _, stderr = run("audit", stars(tmp_path), "--header", "X-Key=SHOP_KEY")
    assert code == 2
    assert "url is required with header" in stderr


def test_a_page_shows_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from goodfence.cli.audit import Audited
    from goodfence.cli.options import command_line

    monkeypatch.setenv("SHOP_KEY", SECRET)
    shown = command_line("audit", Audited(url="https://shop.example", header=["X-Key=SHOP_KEY"]))
    assert shown == "goodfence audit --url https://shop.example --header X-Key=SHOP_KEY"


@pytest.mark.parametrize("attack", ["knn known=3 fakes=4", "membership known=6"])
@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ((500, b"", {}), 3, "got 500"),
        ((429, b"", {"Retry-After": "3600"}), 3, "longer than 120 seconds"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=["error", "rate limit", "interrupt"],
)
def test_the_command_leaves_no_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str, answer: Any, code: int, words: str
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    service, predict = RatingService(), Deployed.predict

    def stopped(self: Deployed, *asked: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        service.bad = lambda _method, path: answer if "predictions" in path else None
        return predict(self, *asked)

    monkeypatch.setattr(Deployed, "predict", stopped)
    with serving_ratings(service) as url:
        told = run(*options(tmp_path, url, "--attack", attack, "--targets", 4))
    assert told[0] == code, told
    assert words in told[2]
    assert service.largest > RATINGS.shape[0]
    assert not service.accounts


def test_the_command_tells_both_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    service = RatingService(bad=lambda _method, path: None if path == "/accounts" else (500, b"", {}))
    with serving_ratings(service) as url:
        code, _, stderr = run(*options(tmp_path, url))
    assert code == 3
    assert "got 500; 18 of the accounts" in " ".join(stderr.split())
