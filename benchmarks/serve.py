"""The service: speed beside FastAPI with implicit, a SIGKILL while writing, odd requests, timing, roll-backs.

    ./scripts/bench serve [load] [writes] [requests] [timing] [rollbacks] [door] [--seconds 20]

`load` needs wrk, and implicit for the comparison. Without a part all are run.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import httpx
import numpy as np
from scipy.stats import rankdata

import goodfence as gf
from benchmarks.results import write_table
from goodfence.errors import BrokenPromise, GoodfenceError
from goodfence.service.application import application
from goodfence.service.promises import check_promise
from goodfence.service.state import Service, ServiceSettings
from tests.support.service_shop import Shop, listening, opened

_ROUNDS = 10
PARTS = ("load", "writes", "requests", "timing", "rollbacks", "door")
PEER = """
import sys, numpy as np, scipy.sparse as sp, uvicorn
from fastapi import FastAPI
from implicit.als import AlternatingLeastSquares
liked = sp.load_npz(sys.argv[1]).tocsr().astype(np.float32)
model = AlternatingLeastSquares(iterations=2, num_threads=1, random_state=7)  # with its usual 100 factors
model.fit(liked, show_progress=False)
app = FastAPI()
@app.get("/recommend/{user}")
async def recommend(user: int, n: int = 10):
    items, scores = model.recommend(user, liked[user], N=n, recalculate_user=True)
    return {"items": [{"item": str(i), "score": float(s)} for i, s in zip(items, scores)]}
uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False, loop="uvloop", http="httptools")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    options = parser.parse_args()
    rows = []
    for part in options.parts or PARTS:
        rows += [[part, *row] for row in globals()[part](options.seconds)]
    write_table("serve", "The service", ["part", "what", "measured"], rows, seconds=options.seconds)


@contextmanager
def process(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                HTTPConnection("127.0.0.1", port, timeout=1).request("GET", "/")
                break
            except OSError:
                time.sleep(0.1)
        yield running
    finally:
        running.terminate()
        running.wait()


def serve(folder: Path, port: int, *more: str) -> list[str]:
    return [sys.executable, "-m", "goodfence", "serve", str(folder), "--port", str(port), "-q", *more]


def filled(shop: Shop, ratings: gf.Ratings) -> None:
    csv = {"headers": {"Content-Type": "text/csv"}}
    items = "item\n" + "".join(f"{item}\n" for item in ratings.items.tolist())
    shop.told("POST", "/v1/import/items", "operator", content=items, **csv)
    cells = ratings.csr.tocoo()
    rows = zip(ratings.users[cells.row].tolist(), ratings.items[cells.col].tolist(), cells.data.tolist(), strict=True)
    lines = "user,item,value\n" + "".join(f"{user},{item},{value:g}\n" for user, item, value in rows)
    shop.told("POST", "/v1/import/events", "operator", content=lines, **csv)


def train(shop: Shop) -> None:
    job = shop.told("POST", "/v1/models?wait=300", "operator", json={})["job"]
    if job["state"] != "done":
        raise RuntimeError(job)


def trained(folder: Path, ratings: gf.Ratings, **settings: object) -> dict[str, str]:
    scale = ratings.scale
    told = ServiceSettings(scale=(scale.lowest, scale.highest, scale.step or 0.5), **settings)
    with opened(folder, told) as shop:
        filled(shop, ratings)
        train(shop)
        return shop.keys


def corpus(name: str) -> gf.Ratings:
    try:
        return gf.load(name)
    except GoodfenceError:
        return gf.load("movietweetings")


def load(seconds: float) -> list[list[str]]:
    """Return recommendations a second of both, measured in turns, with 16 connections."""
    from scipy import sparse

    ratings, found = corpus("ml-1m"), {"ours": [], "peer": []}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        key = trained(folder / "shop", ratings)["backend"]
        sparse.save_npz(folder / "liked.npz", sparse.csr_matrix(ratings.csr))
        (folder / "peer.py").write_text(PEER)
        paths = {
            "ours": [f"/v1/users/{user}/recommendations" for user in ratings.users[:2000].tolist()],
            "peer": [f"/recommend/{row}" for row in range(2000)],
        }
        for name, asked in paths.items():
            header = f'["Authorization"]="Bearer {key}"' if name == "ours" else ""
            listed = ",".join(f'"{path}"' for path in asked)
            turn = f'i=i%#u+1; return wrk.format("GET",u[i],{{{header}}})'
            (folder / f"{name}.lua").write_text(f"local u={{{listed}}}\nlocal i=0\nrequest=function() {turn} end")
        peer = [sys.executable, str(folder / "peer.py"), str(folder / "liked.npz"), "8232"]
        with process(serve(folder / "shop", 8231), 8231), process(peer, 8232):
            for _ in range(3):
                for name, port in (("ours", 8231), ("peer", 8232)):
                    wrk = [
                        "wrk",
                        "-t1",
                        "-c16",
                        f"-d{seconds / 3:.0f}s",
                        "--latency",
                        "-s",
                        str(folder / f"{name}.lua"),
                    ]
                    told = subprocess.run([*wrk, f"http://127.0.0.1:{port}"], capture_output=True, text=True).stdout
                    found[name].append(_of_wrk(told))
    rows = []
    for name, runs in found.items():
        middle = sorted(runs)[len(runs) // 2]
        rows.append(
            [
                f"{name}: recommendations/s, p99 ms, failed",
                f"{middle[0]:.0f}, {middle[1]:.1f}, {sum(r[2] for r in runs)}",
            ]
        )
    ratio = np.median([a[0] / b[0] for a, b in zip(found["ours"], found["peer"], strict=True)])
    return [*rows, ["times FastAPI with implicit", f"{ratio:.1f}"]]


def _of_wrk(told: str) -> tuple[float, float, int]:
    rate = re.search(r"Requests/sec:\s+([\d.]+)", told)
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", told)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    if rate is None or late is None:
        raise RuntimeError(told)
    return float(rate[1]), float(late[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[late[2]], int(failed[1]) if failed else 0


def writes(seconds: float) -> list[list[str]]:
    """Return how many acknowledged writes were lost: 200 a second while reading, then SIGKILL and a restart."""
    ratings, lock = gf.load("movietweetings"), threading.Lock()
    acknowledged, sent = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "shop"
        key = trained(folder, ratings)["backend"]
        items, end = [str(item) for item in ratings.items.tolist()], time.monotonic() + seconds

        def write(number: int) -> None:
            generator = random.Random(number)
            with httpx.Client(base_url="http://127.0.0.1:8233", headers={"X-API-Key": key}, trust_env=False) as client:
                for turn in range(10**9):
                    if time.monotonic() > end + 30:
                        return
                    user, item, value = f"w{number}", generator.choice(items), float(turn % 11)
                    body = {"events": [{"item": item, "value": value}]}
                    sent[user, item] = value  # may be kept without an answer
                    try:
                        told = client.post(f"/v1/users/{user}/events", json=body)
                        client.get(f"/v1/users/{user}/recommendations")
                    except httpx.HTTPError:
                        return
                    if told.status_code == 202:
                        with lock:
                            acknowledged[user, item] = value
                    time.sleep(0.02)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        with process(serve(folder, 8233), 8233) as server:
            for thread in threads:
                thread.start()
            time.sleep(seconds)
            with lock:
                server.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()
        service = Service(folder)
        joined = "cell JOIN account ON account.id = user_id JOIN item ON item.id = item_id"
        sql = f"SELECT account.ext, item.ext, value FROM {joined}"  # noqa: S608 - fixed text
        kept = {(user, item): value for user, item, value in service.store.read(sql) if user.startswith("w")}
        service.close()
    lost = sum(kept.get(cell) not in (value, sent[cell]) for cell, value in acknowledged.items())
    return [["cells acknowledged, lost after SIGKILL", f"{len(acknowledged):,}, {lost}"]]


def requests(seconds: float) -> list[list[str]]:
    """Return how many odd requests got a 5xx, with each key and without one."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings

    from tests.support.service_shop import fill

    asked, faults = 0, []
    with tempfile.TemporaryDirectory() as place, opened(Path(place) / "shop") as shop:
        fill(shop)
        schema = schemathesis.openapi.from_dict(shop.told("GET", "/openapi.json"))
        calm = settings(
            max_examples=10,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            for found in schema.get_all_operations():
                operation = found.ok()
                if operation.path in ("/v1/models", "/v1/audits", "/v1/jobs/{job}/events"):
                    continue  # each would train

                @calm
                @given(case=operation.as_strategy())
                def ask(case: object) -> None:
                    nonlocal asked
                    for key in (None, "user", "backend", "all"):
                        sent = case.as_transport_kwargs(base_url=str(shop.client.base_url))
                        headers = {**dict(sent.get("headers") or {}), **({"X-API-Key": shop.keys[key]} if key else {})}
                        body = {name: sent[name] for name in ("json", "data", "params") if sent.get(name) is not None}
                        if isinstance(body.get("data"), bytes | str):
                            body["content"] = body.pop("data")
                        try:
                            told = shop.client.request(sent["method"], sent["url"], headers=headers, **body)
                        except (httpx.HTTPError, UnicodeError, ValueError, TypeError):
                            continue  # what cannot be sent
                        asked += 1
                        if told.status_code >= 500 and told.status_code != 503:
                            faults.append(f"{sent['method']} {case.path} {told.status_code}")

                ask()
    return [["odd requests, 5xx", f"{asked:,}, {len(faults)}"], *[["fault", one] for one in sorted(set(faults))]]


def timing(seconds: float) -> list[list[str]]:
    """Return how well the time of an answer tells whether the target is in the data; who is served where changes."""
    ratings, taken = gf.load("movietweetings"), [list[float](), list[float]()]
    profile = [{"item": str(item), "value": 8} for item in ratings.items[:8].tolist()]
    body = json.dumps({"profile": profile}).encode()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        trained(folder / "with", ratings)
        shutil.copytree(folder / "with", folder / "without")
        forgetful = Service(folder / "without")
        forgetful.forget(forgetful.records.user_row(str(ratings.users[0])))
        forgetful.close()
        for turn in range(_ROUNDS):
            order = (0, 1) if turn % 2 else (1, 0)
            services = {which: Service(folder / ("with", "without")[which]) for which in order}
            with listening(application(services[order[0]])) as one, listening(application(services[order[1]])) as other:
                addresses = dict(zip(order, (one, other), strict=True))
                clients = {which: httpx.Client(base_url=addresses[which], trust_env=False) for which in order}
                end = time.monotonic() + seconds / _ROUNDS
                while time.monotonic() < end:
                    for which in random.sample(order, 2):
                        services[which].limiter = type(services[which].limiter)()
                        begun = time.perf_counter()
                        clients[which].post("/v1/session/recommendations", content=body)
                        taken[which].append(time.perf_counter() - begun)
                for client in clients.values():
                    client.close()
    n = len(taken[0])
    ranks = rankdata(taken[0] + taken[1])[:n].sum()
    area = (ranks - n * (n + 1) / 2) / n**2
    return [["pairs of answers, AUC with and without the target", f"{n:,}, {max(area, 1 - area):.3f}"]]


def rollbacks(seconds: float) -> list[list[str]]:
    """Return how many services that were put back a client noticed who had seen a later head."""
    ratings, noticed, tried, end = gf.load("movietweetings"), 0, 0, time.monotonic() + max(seconds, 20)
    small = gf.Ratings(ratings.csr[:80], ratings.users[:80], ratings.items, ratings.scale)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        trained(folder / "shop", small, cap=(30.0, 1e-5))
        shutil.copytree(folder / "shop", folder / "older")
        with opened(folder / "shop") as shop:
            train(shop)
            check_promise(str(shop.client.base_url).rstrip("/"), folder / "heads.json")
        [kept] = json.loads((folder / "heads.json").read_text()).values()
        while time.monotonic() < end and tried < 500:
            shutil.copytree(folder / "older", folder / "now")
            with opened(folder / "now", None, self_service=tried % 2 == 0) as shop:
                address = str(shop.client.base_url).rstrip("/")
                (folder / "heads.json").write_text(json.dumps({address: kept}))
                try:
                    check_promise(address, folder / "heads.json")
                except BrokenPromise:
                    noticed += 1
            tried += 1
            shutil.rmtree(folder / "now")
    return [["services put back, noticed", f"{tried}, {noticed}"]]


def door(_: float) -> list[list[str]]:
    """Return what attackers recover through the API and in the laboratory, of 300 users of the bundled films."""
    from goodfence.adapters.deployed import Deployed
    from goodfence.adapters.http import Endpoint
    from goodfence.models.method import parsed

    films, rows = gf.load("movietweetings"), []
    small = gf.Ratings(films.csr[:300], films.users[:300], films.items, films.scale)
    for method, targets in (("knn k=20", 8), ("ppns k=20 beta=3", 8), ("private-cf epsilon=1", 8)):
        attack = gf.KNNAttack(known=8, fakes=20)
        settings = ServiceSettings(scale=(0.0, 10.0, 1.0), method=method, cap=(300.0, 1e-5))
        with tempfile.TemporaryDirectory() as place, opened(Path(place) / "s", settings, allow_unproved=True) as shop:
            items = "item\n" + "".join(f"{item}\n" for item in films.items.tolist())
            shop.told("POST", "/v1/import/items", "operator", content=items, headers={"Content-Type": "text/csv"})
            headers = {"X-API-Key": shop.keys["all"]}
            begun = time.monotonic()
            with Deployed(Endpoint(url=str(shop.client.base_url).rstrip("/"), headers=headers), "goodfence") as box:
                told = attack.run(small, gf.BlackBox(box), targets=targets, rng=7)
            taken = time.monotonic() - begun
        alone = attack.run(small, parsed(method, public={"items": "from ratings"}).recommender, targets=targets, rng=7)
        at_door, inside = (f"{one.recovery:.2f} ({one.advantage:+.2f})" for one in (told, alone))
        what = f"{method}: recovered (advantage) at the door, in the laboratory"
        rows.append([what, f"{at_door}, {inside}; {taken:.0f} s"])
    return rows


if __name__ == "__main__":
    main()
