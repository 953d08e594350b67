"""The pages: who sees them, what they say, that they work without scripts, and the one script they load."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

import goodfence as gf
from goodfence.cli.attackers import AttackLine
from goodfence.service import odds, site
from goodfence.service.lab import _pooled
from goodfence.service.running import entrance
from tests.support.service_shop import Shop, opened

HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
"""Of htmx 2.0.11, dist/htmx.min.js of the package htmx.org."""
VOID = {"meta", "link", "input", "br", "rect", "path", "circle"}


class Balanced(HTMLParser):
    """Raises where tags do not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]
        if tag not in VOID and tag not in ("option", "li", "p", "td", "tr", "dt", "dd"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("option", "li", "p", "td", "tr", "dt", "dd", *VOID):
            assert self.open.pop() == tag


@contextmanager
def visitor(shop: Shop, key: str | None = None) -> Iterator[httpx.Client]:
    """Hand out a browser without scripts, which entered with a key."""
    base = str(shop.client.base_url)
    with httpx.Client(base_url=base, follow_redirects=True, timeout=60, trust_env=False) as client:
        if key is not None:
            assert client.get(f"/enter?code={entrance(shop.service, shop.keys[key])}").status_code == 200
        yield client


def post(client: httpx.Client, path: str, **form: object) -> httpx.Response:
    return client.post(path, data=form, headers={"Origin": str(client.base_url).rstrip("/")})


def test_the_script_is_the_one_that_was_vendored() -> None:
    assert site.sha256_of_script() == HTMX


@pytest.mark.parametrize(
    "path", ["/overview", "/lab", "/frontier", "/ledger", "/ledger?verified=now", "/promise", "/enter"]
)
def test_a_page_is_small_sound_and_complete(shop: Shop, path: str) -> None:
    with visitor(shop, "all") as client:
        answer = client.get(path)
        assert answer.status_code == 200
        assert len(answer.content) + sum(len(client.get(f"/static/{name}").content) for name in site.FILES) < 150_000
        parser = Balanced()
        parser.feed(answer.text)
        assert not parser.open
        assert len(parser.ids) == len(set(parser.ids))
        assert '<html lang="en-GB">' in answer.text
        assert answer.text.count("<h1") == 1


def test_a_stranger_sees_the_promise_and_where_to_enter(shop: Shop) -> None:
    with visitor(shop) as client:
        promise = client.get("/")
        assert "41 of 100" in promise.text
        assert "goodfence promise check" in promise.text
        assert "Enter with your key" in client.get("/overview").text
        assert client.get("/enter?code=wrong").text.count('role="alert"') == 1
        assert post(client, "/enter", key="wrong").status_code == 401


def test_a_link_opens_the_page_once(shop: Shop) -> None:
    code = entrance(shop.service, shop.keys["all"])
    with visitor(shop) as client, visitor(shop) as other:
        assert client.get(f"/enter?code={code}").url.path == "/overview"
        assert "used already" in other.get(f"/enter?code={code}").text


def test_a_user_rates_takes_back_and_leaves_without_scripts(shop: Shop) -> None:
    with visitor(shop) as client:
        page = post(client, "/enter/open")
        assert page.url.path == "/for-you"
        item = re.findall(r'name="item" value="([^"]+)"', page.text)[0]
        rated = post(client, "/for-you/rate", item=item, value=4)
        assert "My data: 1 ratings" in rated.text
        assert post(client, "/for-you/rate", item=item, value=99).status_code == 422
        assert "My data: 0 ratings" in post(client, "/for-you/take-back", item=item).text
        assert post(client, "/for-you/forget").url.path == "/promise"


def test_a_form_of_another_site_is_refused(shop: Shop) -> None:
    with visitor(shop, "all") as client:
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {}):
            assert client.post("/overview/train", headers=headers).status_code == 403


def test_an_operator_trains_and_rolls_back(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "shop")
    with opened(tmp_path / "shop") as shop, visitor(shop, "all") as client:
        first = shop.service.model
        assert first is not None
        assert post(client, "/overview/train").url.path == "/overview"
        job = shop.service.jobs.listed(1)[0]["id"]
        done = shop.service.jobs.wait(job, 60)
        assert done is not None
        assert done["state"] == "done", done
        assert "Serve the model before" in client.get("/overview").text
        post(client, "/overview/roll-back")
        assert shop.service.model is not None
        assert shop.service.model.id == first.id


def test_the_lab_draws_a_curve_and_tells_it_in_words(shop: Shop) -> None:
    with visitor(shop, "all") as client:
        page = post(client, "/lab", method="knn k=50", beside="private-means epsilon=1", known=8, fakes=50, targets=10)
        job = page.url.path.rpartition("/")[2]
        assert "meta http-equiv" in page.text  # without scripts the page asks again by itself
        found = shop.service.jobs.wait(job, 120)
        assert found is not None
        assert found["state"] == "done", found
        chart = client.get(f"/lab/{job}/chart").text
        told = [int(part) for part in re.findall(r"</b>: (\d+) of 100 hidden ratings", chart)]
        assert told[0] > 80
        assert told[1] < 60
        assert "hx-get" not in chart
        assert post(client, "/lab", targets=5000).status_code == 422


def test_the_lab_lets_any_attacker_attack_and_shows_the_command(shop: Shop) -> None:
    found: dict[str, dict[str, float]] = {}
    with visitor(shop, "all") as client:
        for attacker in ("all compare", "adapts", "strongest"):
            page = post(client, "/lab", method="knn k=50", beside="knn k=50", attacker=attacker, targets=20)
            assert f'<option value="{attacker}" selected>' in page.text
            job = shop.service.jobs.wait(page.url.path.rpartition("/")[2], 120)
            assert job is not None
            assert job["state"] == "done", job
            found[attacker] = job["result"]["knn k=50"]
            commands = re.findall(r"<pre>(.*?)</pre>", page.text, re.DOTALL)[0].splitlines()
            lines = [
                AttackLine.parse(re.findall("--attack &#39;(.*?)&#39;", one)[0], None, "explicit") for one in commands
            ]
            assert [line.made(gf.NeighbourCF(gf.KNN(k=50)), "explicit").fakes for line in lines] == [50] * (
                3 if attacker == "strongest" else 1
            )
        assert post(client, "/lab", attacker="all").status_code == 422
        assert post(client, "/lab", attacker="adapts", fakes=1).status_code == 422
    gains = {name: one["recovered"] - one["without"] for name, one in found.items()}
    assert gains["strongest"] >= max(gains.values()) - 0.05
    assert min(gains.values()) > 0.3


def test_of_several_attackers_each_user_is_judged_by_who_is_strongest_on_others() -> None:
    weak, strong = (0.3, 0.3), (0.9, 0.3)
    assert _pooled([(10, [weak, strong])]) == {"n": 10, "recovered": 0.3, "without": 0.3}  # nobody to choose on
    told = _pooled([(10, [weak, strong]), (10, [weak, strong])])
    assert told == pytest.approx({"n": 20, "recovered": 0.9, "without": 0.3})
    lucky = _pooled([(10, [(0.9, 0.3), weak]), (10, [weak, (0.9, 0.3)])])
    assert lucky["recovered"] == pytest.approx(0.3)  # whoever was lucky here is judged there


def test_the_frontier_picks_a_setting_for_an_error(shop: Shop) -> None:
    with visitor(shop, "all") as client:
        assert "<table" not in client.get("/frontier").text
        post(client, "/frontier")
        found = shop.service.jobs.wait(shop.service.jobs.listed(1)[0]["id"], 300)
        assert found is not None
        assert found["state"] == "done", found
        points = {point["method"]: point for point in found["result"]["points"]}
        assert points["knn k=50"]["low"] > 0.2 > points["private-cf epsilon=1"]["high"]
        assert points["private-cf epsilon=1"]["status"] == "proved"
        least = min(point["error"] for point in points.values())
        page = client.get(f"/frontier?bear={least + 0.001}").text
        [best] = [method for method, point in points.items() if point["error"] == least]
        assert f"goodfence serve FOLDER --method &#39;{best}&#39;" in page or f"--method '{best}'" in page
        assert "None of them has an error" in client.get("/frontier?bear=0.01").text
        assert client.get("/frontier?bear=x").status_code == 422


def test_odds_follow_the_gaussian_curve() -> None:
    assert [odds.rounded_up(odds.at_most(0.31, epsilon, 1e-5)) for epsilon in (1, 4)] == [41, 67]
    assert odds.at_most(0.31, 1e-9, 1e-5) == pytest.approx(0.31, abs=1e-3)
