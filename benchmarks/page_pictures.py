"""The pictures of the pages in README.md: For you and the Attack lab, of the bundled films.

.venv/bin/python -m benchmarks.page_pictures     (needs chromium)
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from goodfence.service.running import fill_with_films
from goodfence.service.state import ServiceSettings
from tests.support.browser import find_browser
from tests.support.browser import opened as browser_opened
from tests.support.service_shop import opened

PLACE = Path(__file__).parents[1] / "docs" / "serve"
WIDTH, HEIGHT = 1000, 700
FILM_FAN = {"1454468": 10, "1375666": 9, "1074638": 8, "1853728": 9}  # Gravity, Inception, Skyfall, Django Unchained


def main() -> None:
    program = find_browser()
    if program is None:
        raise SystemExit("no browser: install chromium")
    settings = ServiceSettings(scale=(0.0, 10.0, 1.0), cap=(1.0, 1e-5))
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "shop", settings) as shop:
        fill_with_films(shop.service)
        listed = shop.service.records.item_rows
        mine = [{"item": item, "value": value} for item, value in FILM_FAN.items() if item in listed]
        shop.told("POST", "/v1/users/u1/events", "backend", json={"events": mine})
        if shop.told("POST", "/v1/models?wait=300", "operator", json={})["job"]["state"] != "done":
            raise RuntimeError("the service could not be trained")
        asked = {"methods": ["knn k=50", "private-cf epsilon=1"], "known": 8, "fakes": 50, "targets": 50, "seed": 7}
        job = shop.service.begin_lab(asked)
        shop.service.jobs.wait(job, 300)
        base = str(shop.client.base_url).rstrip("/")
        PLACE.mkdir(exist_ok=True)
        with browser_opened(program) as browser:
            browser.width(WIDTH)
            for name, path, key in (("for-you", "/for-you", "user"), ("attack-lab", f"/lab/{job}", "all")):
                browser.ask("Network.setCookie", name="goodfence", value=shop.keys[key], url=base)
                browser.go(base + path)
                clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
                told = browser.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
                (PLACE / f"{name}.png").write_bytes(base64.b64decode(told["data"]))


if __name__ == "__main__":
    main()
