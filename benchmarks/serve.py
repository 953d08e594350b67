"""The service: speed beside FastAPI with implicit, writes and a SIGKILL, odd requests, kills, canaries, pages, attacks.

    ./scripts/bench serve [PART ...] [--share 0.1]

Without a part all are run, which takes an hour; a part that is not run keeps its rows in the table. `load` needs wrk,
and implicit for the comparison; `pages` needs chromium, and axe-core-python for violations.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
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
from benchmarks.results import FOLDER, write_table
from benchmarks.service_faults import CAP, canaries_in, holes, kill, live_curve, odd_requests, visit_pages
from goodfence.adapters.deployed import Deployed
from goodfence.adapters.http import Endpoint
from goodfence.attack.report import LeakReport
from goodfence.errors import BrokenPromise, GoodfenceError
from goodfence.models.method import parsed
from goodfence.service.application import application
from goodfence.service.promises import check_promise
from goodfence.service.running import fill_with_films
from goodfence.service.state import Service, ServiceSettings
from tests.support.browser import find_browser
from tests.support.service_shop import Shop, fill, listening, opened

_ROUNDS = 10
CANARY = ServiceSettings(scale=(1.0, 5.0, 0.0625), cap=(30.0, 1e-5))
PARTS = ("start", "load", "writes", "requests", "kills", "canaries", "timing", "rollbacks", "pages", "door")
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
@app.get("/stored/{user}")
async def stored(user: int, n: int = 10):
    items, scores = model.recommend(user, liked[user], N=n)
    return {"items": [{"item": str(i), "score": float(s)} for i, s in zip(items, scores)]}
uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False, loop="uvloop", http="httptools")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--share", type=float, default=1.0, help="of the full size: 20,000 requests, 200 kills, ...")
    options = parser.parse_args()
    rows = earlier()
    for part in options.parts or PARTS:
        busy = f"{os.getloadavg()[0]:.0f}"
        rows[part] = [[part, *row, busy] for row in globals()[part](options.share)]
        table = [row for name in PARTS for row in rows.get(name, [])]
        write_table("serve", "The service", ["part", "what", "measured", "load average before"], table)


def earlier() -> dict[str, list[list[str]]]:
    """Return the rows of the table by part: what is not measured again is kept."""
    found: dict[str, list[list[str]]] = {}
    if (file := FOLDER / "serve.md").exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] in PARTS and len(cells) == 4:
                found.setdefault(cells[0], []).append(cells)
    return found


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


def start(share: float) -> list[list[str]]:
    """Return the seconds from the command to the first answer, and how many of them the processor worked."""
    took = []
    with tempfile.TemporaryDirectory() as place:
        for turn in range(max(2, round(5 * share))):
            begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            with process(serve(Path(place) / f"shop-{turn}", 8234), 8234):
                taken = time.monotonic() - begun
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append((taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    middle = sorted(took)[len(took) // 2]
    return [
        ["a new folder, seconds until it answers; of the processor, with its stop", f"{middle[0]:.1f}; {middle[1]:.1f}"]
    ]


def load(share: float) -> list[list[str]]:
    """Return recommendations a second of ours and of the peer, measured in turns, with 16 connections."""
    from scipy import sparse

    ratings = corpus("ml-1m")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        key = trained(folder / "shop", ratings)["backend"]
        sparse.save_npz(folder / "liked.npz", sparse.csr_matrix(ratings.csr))
        (folder / "peer.py").write_text(PEER)
        asked = {
            "ours": (8231, [f"/v1/users/{user}/recommendations" for user in ratings.users[:2000].tolist()]),
            "peer": (8232, [f"/recommend/{row}" for row in range(2000)]),
            "peer, stored factors": (8232, [f"/stored/{row}" for row in range(2000)]),
        }
        found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in asked}
        peer = [sys.executable, str(folder / "peer.py"), str(folder / "liked.npz"), "8232"]
        with process(serve(folder / "shop", 8231), 8231), process(peer, 8232):
            for turn in range(1 + max(1, round(7 * share))):
                for name, (port, paths) in asked.items():
                    told = _of_wrk(_wrk(folder, f"http://127.0.0.1:{port}", paths, key if name == "ours" else None))
                    if turn:  # the first warms up
                        found[name].append(told)
    rows = []
    for name, runs in found.items():
        rate, late = (float(np.median([run[at] for run in runs])) for at in (0, 1))
        best, failed = min(run[1] for run in runs), sum(run[2] for run in runs)
        told = f"{rate:,.0f}; {late:.1f} (best {best:.1f}); {failed}"
        rows.append([f"{name}: recommendations/s; p99 ms; failed", told])
    for name, why in (("peer", "which folds users in as we do"), ("peer, stored factors", "which does not")):
        ratios = [own[0] / their[0] for own, their in zip(found["ours"], found[name], strict=True)]
        told = f"{np.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"
        rows.append([f"times FastAPI with implicit, {why}: median of {len(ratios)} rounds (all)", told])
    return rows


def _wrk(folder: Path, address: str, paths: list[str], key: str | None) -> str:
    header = f'["Authorization"]="Bearer {key}"' if key else ""
    listed = ",".join(f'"{path}"' for path in paths)
    turn = f'i=i%#u+1; return wrk.format("GET",u[i],{{{header}}})'
    (folder / "asked.lua").write_text(f"local u={{{listed}}}\nlocal i=0\nrequest=function() {turn} end")
    wrk = ["wrk", "-t1", "-c16", "-d5s", "--latency", "-s", str(folder / "asked.lua"), address]
    return subprocess.run(wrk, capture_output=True, text=True).stdout


def _of_wrk(told: str) -> tuple[float, float, int]:
    rate = re.search(r"Requests/sec:\s+([\d.]+)", told)
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", told)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    if rate is None or late is None:
        raise RuntimeError(told)
    return float(rate[1]), float(late[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[late[2]], int(failed[1]) if failed else 0


def writes(share: float) -> list[list[str]]:
    """Return how many acknowledged writes were lost: 200 a second while reading, then SIGKILL and a restart."""
    ratings, lock, seconds, n = gf.load("movietweetings"), threading.Lock(), 600 * share, 0
    acknowledged, sent = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "shop"
        key = trained(folder, ratings)["backend"]
        items, end = [str(item) for item in ratings.items.tolist()], time.monotonic() + seconds

        def write(number: int) -> None:
            nonlocal n
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
                            n += 1
                    time.sleep(0.01)

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
    what = f"{seconds:.0f} s of writes while reading, then SIGKILL: acknowledged; a second; lost"
    return [[what, f"{n:,}; {n / seconds:.0f}; {lost}"]]


def requests(share: float) -> list[list[str]]:
    """Return how many odd requests to every route got a 5xx, or an answer without the right, with each key and none."""
    with (
        tempfile.TemporaryDirectory() as place,
        opened(Path(place) / "shop", CAP, self_service=True, compat="gorse") as shop,
    ):
        fill(shop)
        train(shop)
        asked, gave = holes(shop)
        statuses, wrong = odd_requests(shop, round(20_000 * share))
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(statuses.items()))
    return [
        ["routes and identities without the right; holes", f"{asked:,}; {len(gave)}"],
        ["odd requests; faults (5xx, or answered without the right)", f"{statuses.total():,} ({kinds}); {len(wrong)}"],
        *[["fault", one] for one in sorted({*gave, *wrong})],
    ]


def kills(share: float) -> list[list[str]]:
    """Return how many kills left something half done that was served, or unpaid that was released."""
    with tempfile.TemporaryDirectory() as place:
        counts, wrong = kill(Path(place), round(200 * share))
    kinds = ", ".join(f"{n} in {kind}" for kind, n in counts.items())
    return [
        ["kills; faults", f"{counts.total()} ({kinds}); {len(wrong)}"],
        *[["fault", one] for one in sorted(set(wrong))],
    ]


def canaries(share: float) -> list[list[str]]:
    """Return how many lines of log, pages, metrics and errors hold an id, a rating or a token of one user."""
    with tempfile.TemporaryDirectory() as place, opened(Path(place) / "shop", CANARY, self_service=True) as shop:
        fill(shop)
        train(shop)
        lines, texts, wrong = canaries_in(shop, round(10_000 * share))
    return [["lines of log; other texts; that hold an id, rating or token", f"{lines:,}; {texts}; {len(wrong)}"]]


def pages(share: float) -> list[list[str]]:
    """Return how fast, large and accessible the pages are, and how soon the curve of the lab begins."""
    program = find_browser()
    if program is None:
        raise RuntimeError("install chromium")
    with tempfile.TemporaryDirectory() as place:
        settings = ServiceSettings(scale=(0.0, 10.0, 1.0), cap=(1.0, 1e-5))
        with opened(Path(place) / "shop", settings, self_service=True) as shop:
            fill_with_films(shop.service)
            train(shop)
            cold, warm = live_curve(shop), live_curve(shop)
            seen = [one for _ in range(max(1, round(3 * share))) for one in visit_pages(shop, program)]
    late = sorted(one[3] for one in seen)
    wrong = sorted({f"{one[0]} {one[1]} {one[2]} px: {fault}" for one in seen for fault in one[6]})
    size, foreign = max(one[4] for one in seen), sum(one[5] for one in seen)
    curve = f"{warm[0]:.1f}; {warm[1]:.1f} (first attack since the start: {cold[0]:.1f}; {cold[1]:.1f})"
    return [
        ["pages in two themes and two widths", f"{len(seen)}"],
        ["first byte, ms: median; longest", f"{late[len(late) // 2]:.0f}; {late[-1]:.0f}"],
        ["largest page with all it loads, kB; foreign requests", f"{size / 1000:.0f}; {foreign}"],
        ["violations of axe, and pages wider than the screen", f"{len(wrong)}"],
        ["live curve, s: first point; 100 users of kNN", curve],
        *[["fault", one] for one in wrong],
    ]


def timing(share: float) -> list[list[str]]:
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
                for _ in range(max(1, round(20_000 * share / _ROUNDS))):
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


def rollbacks(share: float) -> list[list[str]]:
    """Return how many services that were put back a client noticed who had seen a later head."""
    ratings, noticed, tried = gf.load("movietweetings"), 0, 0
    small = gf.Ratings(ratings.csr[:80], ratings.users[:80], ratings.items, ratings.scale)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        trained(folder / "shop", small, cap=(30.0, 1e-5))
        shutil.copytree(folder / "shop", folder / "older")
        with opened(folder / "shop") as shop:
            train(shop)
            check_promise(str(shop.client.base_url).rstrip("/"), folder / "heads.json")
        [kept] = json.loads((folder / "heads.json").read_text()).values()
        while tried < round(500 * share):
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


def door(share: float) -> list[list[str]]:
    """Return what attackers recover through the API and in the laboratory, of 300 users of the bundled films."""
    films, rows = gf.load("movietweetings"), []
    small = gf.Ratings(films.csr[:300], films.users[:300], films.items, films.scale)
    targets = max(4, round(60 * share))
    for method in ("knn k=20", "ppns k=20 beta=3", "private-cf epsilon=1", "private-means epsilon=1"):
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
            left = shop.service.store.read("SELECT count(*) FROM account WHERE ext LIKE 'goodfence-%'")[0][0]
        alone = attack.run(small, parsed(method, public={"items": "from ratings"}).recommender, targets=targets, rng=7)
        what = f"{method}, {targets} users: recovered, advantage (95%) at the door; in the laboratory; accounts left"
        rows.append([what, f"{_leak(told)}; {_leak(alone)}; {left} ({taken:.0f} s)"])
    return rows


def _leak(report: LeakReport) -> str:
    _, low, high = report.estimates["advantage"]
    return f"{report.recovery:.2f}, {report.advantage:+.2f} ({low:+.2f} to {high:+.2f})"


if __name__ == "__main__":
    main()
