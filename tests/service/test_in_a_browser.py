"""The pages in Debian's Chromium: axe finds nothing, they fit 320 px, load nothing foreign, and need no mouse."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.service_faults import PAGES, axe, visit_pages
from goodfence.service.running import entrance
from tests.support.browser import Browser, find_browser
from tests.support.browser import opened as browser_opened
from tests.support.service_shop import Shop

PROGRAM = find_browser()
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no browser found: install chromium"),
]


@pytest.fixture
def browser() -> Iterator[Browser]:
    with browser_opened(str(PROGRAM)) as found:
        yield found


def press(browser: Browser, key: str, times: int = 1) -> None:
    """Press a key; the page sees what a keyboard sends."""
    codes: dict[str, Any] = {"Tab": (9, ""), "Enter": (13, "\r"), "Space": (32, " ")}
    code, text = codes.get(key, (0, key))
    how = {"key": " " if key == "Space" else key, "windowsVirtualKeyCode": code, "text": text}
    for _ in range(times):
        for kind in ("keyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, **(how if kind == "keyDown" else {**how, "text": ""}))


def tab_to(browser: Browser, test: str) -> None:
    """Press Tab until the focused element passes a test, and check that its focus can be seen."""
    for _ in range(80):
        press(browser, "Tab")
        if browser.value(f"(e => {test})(document.activeElement)"):
            assert browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"Tab does not reach {test}")


def wait_for(browser: Browser, test: str) -> None:
    late = time.monotonic() + 60
    while not browser.value(f"Boolean(document.body && ({test}))"):
        assert time.monotonic() < late, test
        time.sleep(0.05)


def follow(browser: Browser, title: str) -> None:
    """Go to a page by its link in the header."""
    tab_to(browser, f"e.closest('nav') && e.textContent === '{title}'")
    press(browser, "Enter")
    wait_for(browser, f"(document.querySelector('[aria-current]') || {{}}).textContent === '{title}'")


def test_pages_are_accessible_in_both_themes_and_on_a_phone(shop: Shop) -> None:
    assert axe() is not None
    seen = visit_pages(shop, str(PROGRAM))
    assert len(seen) == 4 * len(PAGES)
    assert not [(*one[:3], one[6]) for one in seen if one[6]]
    assert not sum(one[5] for one in seen)
    assert max(one[4] for one in seen) < 150_000


def test_five_pages_by_keyboard(shop: Shop, browser: Browser) -> None:
    base = str(shop.client.base_url).rstrip("/")
    browser.go(f"{base}/enter?code={entrance(shop.service, shop.keys['all'])}")
    wait_for(browser, "location.pathname === '/overview'")
    press(browser, "Tab")
    assert browser.value("document.activeElement.textContent") == "Skip to the content"
    for title in ("Ledger", "Promise", "Frontier", "Attack lab"):
        follow(browser, title)
    tab_to(browser, "e.name === 'targets'")
    browser.ask("Input.dispatchKeyEvent", type="rawKeyDown", key="a", windowsVirtualKeyCode=65, commands=["selectAll"])
    press(browser, "9")
    tab_to(browser, "e.tagName === 'BUTTON' && e.textContent === 'Run'")
    press(browser, "Enter")
    wait_for(browser, "location.pathname.startsWith('/lab/')")
    wait_for(browser, "document.body.textContent.includes('done, 18 of 18 attacks')")
    assert shop.service.jobs.request(browser.value("location.pathname").rpartition("/")[2])["targets"] == 9


def test_a_user_rates_by_keyboard(shop: Shop, browser: Browser) -> None:
    base = str(shop.client.base_url).rstrip("/")
    browser.go(f"{base}/enter")
    tab_to(browser, "e.tagName === 'BUTTON' && e.textContent === 'Open an account'")
    press(browser, "Enter")
    wait_for(browser, "location.pathname === '/for-you'")
    tab_to(browser, "e.name === 'value'")
    press(browser, "4")
    press(browser, "Enter")
    wait_for(browser, "document.body.textContent.includes('My data: 1 ratings')")
