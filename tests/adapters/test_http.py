"""A recommender behind an address: the same attack as from inside, and one clear error for all that goes wrong."""

from __future__ import annotations

import json
import socket
import threading
import time
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import goodfence as gf
from goodfence.adapters.black_box import BlackBox
from goodfence.adapters.http import Endpoint
from goodfence.errors import BlackBoxProblem, GoodfenceWarning, SettingError
from tests.support.attack_worlds import tied_ratings
from tests.support.recommender_service import SECRET, Service, serving

RATINGS = tied_ratings(3)
KNN = gf.NeighbourCF(gf.KNN(k=4), progress=False)
ATTACK = gf.KNNAttack(known=3, fakes=4)


def predictions(values: Any) -> bytes:
    return json.dumps({"predictions": values}).encode()


def ask(endpoint: Endpoint) -> np.ndarray[Any, Any]:
    """Fit, and ask the first user for three items."""
    box = BlackBox(endpoint).fit(RATINGS)
    told: np.ndarray[Any, Any] = box.predict(np.repeat(RATINGS.users[:1], 3), RATINGS.items[:3])
    return told


def test_the_attack_over_http_is_the_attack_from_inside() -> None:
    service = Service(gf.NeighbourCF(gf.NPNS(k=4), progress=False))
    with serving(service) as url:
        far = ATTACK.run(RATINGS, BlackBox(url), targets=3, rng=5)
    assert [path for path, _, _ in service.asked[:2]] == ["/fit", "/predict"]
    assert len(service.asked) == 2 * 2 * 3  # a fit and a question in both worlds of three targets
    seeds = [sent["seed"] for path, sent, _ in service.asked if path == "/fit"]
    assert seeds[0] == seeds[1] != seeds[2]  # one seed for both worlds of a target

    class SameSeed:
        """The same configuration, seeded as the service was."""

        rng = 0

        def fit(self, ratings: gf.Ratings) -> gf.NeighbourCF:
            unfitted = gf.NeighbourCF(gf.NPNS(k=4), rng=self.rng % 2**32, progress=False)
            return unfitted.fit(ratings)

        def predict(self, users: Any, items: Any) -> Any:
            raise NotImplementedError

    near = ATTACK.run(RATINGS, SameSeed(), targets=3, rng=5)
    chosen = ("target_chosen",)  # which a black box does not tell
    assert far.table().drop_columns(chosen).equals(near.table().drop_columns(chosen))


def test_profiles_are_asked_over_http() -> None:
    service = Service(KNN)
    with serving(service) as url:
        box = BlackBox(url, asks="profile").fit(RATINGS)
        told = box.predict({0: 5.0, np.int64(2): 1.0}, RATINGS.items)
        report = ATTACK.run(RATINGS, BlackBox(url, asks="profile"), targets=1, rng=5)
    wanted = gf.NeighbourCF(gf.KNN(k=4)).fit(RATINGS).predict({0: 5.0, 2: 1.0}, RATINGS.items)
    assert np.array_equal(told, wanted, equal_nan=True)
    assert service.asked[1][1]["profile"] == {"items": [0, 2], "ratings": [5.0, 1.0]}
    assert report.n_targets == 1


def test_null_is_no_prediction_and_headers_and_path_are_sent() -> None:
    service = Service(KNN, body=predictions([1, None, 2.5]))
    with serving(service) as url:
        told = ask(Endpoint(url=f"{url}/v1/", headers={"Authorization": SECRET}))
    assert np.array_equal(told, [1, np.nan, 2.5], equal_nan=True)
    path, sent, headers = service.asked[1]
    assert path == "/v1/predict"
    assert sent["protocol"] == 1
    assert headers["Authorization"] == SECRET
    assert headers["Content-Type"] == "application/json"


BAD = {
    "not JSON": Service(KNN, body=SECRET.encode()),
    "not text": Service(KNN, body=b"\xff\xfe"),
    "a list": Service(KNN, body=b"[1, 2, 3]"),
    "too few": Service(KNN, body=predictions([1, 2])),
    "too many": Service(KNN, body=predictions([1, 2, 3, 4])),
    "text for a number": Service(KNN, body=predictions([1, 2, SECRET])),
    "a nested number": Service(KNN, body=predictions([1, 2, [3]])),
    "true": Service(KNN, body=predictions([1, 2, True])),
    "NaN": Service(KNN, body=b'{"predictions": [1, 2, NaN]}'),
    "infinite": Service(KNN, body=b'{"predictions": [1, 2, 1e999]}'),
    "a giant": Service(KNN, body=predictions([1, 2, 10**400])),
    "nothing": Service(KNN, body=b"{}"),
    "very deep": Service(KNN, body=b"[" * 200_000),
    "no model": Service(KNN, fit_body=b"{}"),
    "a long model": Service(KNN, fit_body=json.dumps({"model": SECRET * 100}).encode()),
    "status 500": Service(KNN, status=500),
    "status 404": Service(KNN, status=404),
    "status 204": Service(KNN, status=204),
    "elsewhere": Service(KNN, status=307),
    "elsewhere, once": Service(KNN, status=302),
    "hangs up": Service(KNN, missing=10),
    "late": Service(KNN, delay=0.5),
    "drips": Service(KNN, drip=0.02, body=predictions([1.0, 2.0, 3.0])),
    "too large": Service(KNN, body=b" " * 5000 + predictions([1, 2, 3])),
}


@pytest.mark.parametrize("service", BAD.values(), ids=BAD.keys())
def test_a_bad_service_is_one_error_without_secrets(service: Service) -> None:
    started = time.monotonic()
    limits: dict[str, Any] = {"timeout": 0.25, "max_bytes": 4096}
    with serving(service) as url, pytest.raises(BlackBoxProblem) as caught:
        ask(Endpoint(url=f"{url}/{SECRET}", headers={"X-Key": SECRET}, **limits))
    message = str(caught.value)
    assert "the recommender at http://127.0.0.1:" in message or "finite" in message
    assert SECRET not in message
    assert "user " not in message
    assert "\n" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert time.monotonic() - started < 5


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(BlackBoxProblem, match=r"cannot be reached \(ConnectionRefusedError\)"):
            ask(Endpoint(url=f"http://127.0.0.1:{port}", timeout=2))


def test_something_else_than_a_web_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)

        def speak() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(10)
                connection.sendall(b"220 mail.example ESMTP " + SECRET.encode() + b"\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        with pytest.raises(BlackBoxProblem) as caught:
            ask(Endpoint(url=f"http://127.0.0.1:{server.getsockname()[1]}", timeout=2))
        thread.join()
    assert SECRET not in str(caught.value)


def test_no_proxy_sees_the_ratings(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, service = Service(KNN), Service(KNN, body=predictions([1, 2, 3]))
    with serving(proxy) as middle, serving(service) as url:
        monkeypatch.setenv("http_proxy", middle)
        monkeypatch.delenv("no_proxy", raising=False)
        ask(Endpoint(url=url))
    assert not proxy.asked
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org",
        "file:///etc/passwd",
        "http://",
        "http://example.org:99999",
        "https://ann:hidden-5f2c@example.org",
        "https://example.org/?key=hidden-5f2c",
        "https://example.org/#hidden-5f2c",
        "https://example.org/hidden-5f2c\r\nX: y",
        "https://exam ple.org",
        "hidden-5f2c",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(SettingError, match="url must be") as caught:
        BlackBox(url)
    assert SECRET not in str(caught.value)
    assert "passwd" not in str(caught.value)


@pytest.mark.parametrize("headers", [{"A": f"{SECRET}\r\nB: c"}, {f"{SECRET}\n": "c"}, {"A": 3}, {"A": "é"}])
def test_headers_that_cannot_be_sent_are_refused_without_repeating_them(headers: Any) -> None:
    with pytest.raises(SettingError, match="headers must be") as caught:
        Endpoint(url="https://example.org", headers=headers)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("timeout", 0), ("timeout", np.inf), ("max_bytes", 0)])
def test_limits_must_be_limits(name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"{name} must be"):
        Endpoint(url="https://example.org", **{name: value})


def test_an_open_line_to_another_machine_is_warned_of() -> None:
    with pytest.warns(GoodfenceWarning, match="without encryption"):
        Endpoint(url="http://example.org")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for url in ("https://example.org", "http://localhost:8000", "http://[::1]:8000"):
            assert Endpoint(url=url).shown == url


def test_no_repr_shows_a_key() -> None:
    endpoint = Endpoint(url=f"https://example.org/{SECRET}", headers={"X": SECRET})
    assert repr(BlackBox(endpoint)) == "BlackBox(Endpoint('https://example.org'), asks='users')"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n"


@pytest.mark.parametrize("dripped", [HEAD + b"X-Slow: " + b"a" * 10_000, HEAD + b"\r\n" + b" " * 10_000])
def test_one_deadline_holds_for_dripped_headers_and_bodies(dripped: bytes) -> None:
    """A server that sends a byte now and then never lets a time-out of the socket pass."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(2**16)
                for byte in dripped:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.02)

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        start = time.monotonic()
        endpoint = Endpoint(url=f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.5)
        with pytest.raises(BlackBoxProblem, match=r"did not answer within 0\.5 seconds"):
            endpoint.post("fit", {})
        assert time.monotonic() - start < 3
        thread.join(5)
