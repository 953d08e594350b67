"""The pages in a real browser: network off, scripts off, on a phone, on paper."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from goodfence.report.pages import save_result
from tests.support.browser import Browser, find_browser, opened
from tests.support.frontiers import known_frontier

PROGRAM = find_browser()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(PROGRAM is None, reason="no browser found: install chromium")]

PAGES = pytest.mark.parametrize("name", ["audit", "frontier"])
SECTIONS = {
    "audit": [
        "Verdict",
        "Who attacked",
        "How much is recovered",
        "Who is exposed",
        "What would stop it",
        "Guarantees",
        "What this does not show",
        "Repeat it",
    ],
    "frontier": ["Verdict", "Leak and error", "Who attacked", "Guarantees", "What this does not show", "Repeat it"],
}
# What reaches beyond the right edge, and is not cut off by something that is inside.
BEYOND = """
    Array.from(document.querySelectorAll('body *')).filter(one => {
        const place = one.getBoundingClientRect();
        return place.width > 0 && (place.right > innerWidth + 1 || place.left < -1);
    }).map(one => one.tagName + '.' + (one.getAttribute('class') || '')).slice(0, 5)
"""
HEADINGS = "Array.from(document.querySelectorAll('h1, h2')).map(one => one.textContent)"


def shown(kind: str) -> str:
    """Return an expression: how many charts of a kind have room on the page."""
    charts = f"Array.from(document.querySelectorAll('svg.{kind}'))"
    return f"{charts}.filter(one => one.getBoundingClientRect().width > 0).length"


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A browser without a network and without scripts."""
    assert PROGRAM is not None
    with opened(PROGRAM) as one:
        one.offline()
        one.ask("Emulation.setScriptExecutionDisabled", value=True)
        yield one


def test_the_browser_tells_what_a_page_asks_for(browser: Browser, tmp_path: Path) -> None:
    """Without this, a page that asks for nothing would say nothing."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<body style='margin:0'><img src='http://192.0.2.1/a.png'><p style='width:900px'>wide</p>"
        "<script>document.title = 'ran'</script></body>"
    )
    browser.width(375)
    browser.go(bad)
    assert "http://192.0.2.1/a.png" in browser.requests
    assert browser.value(BEYOND)
    assert browser.value("document.title") == ""


@PAGES
def test_no_request_leaves_and_everything_is_there(browser: Browser, files: dict[str, Path], name: str) -> None:
    browser.width(1200)
    browser.go(files[name])
    asked = [url for url in browser.requests if not url.startswith("data:")]
    assert asked == [files[name].as_uri()]
    assert browser.value(HEADINGS) == SECTIONS[name]
    n_charts = {"audit": 2, "frontier": 1}[name]
    assert (browser.value(shown("wide")), browser.value(shown("narrow"))) == (n_charts, 0)
    text = str(browser.value("document.body.innerText"))
    assert "95%" in text
    assert "secret" not in text
    link = browser.value("document.querySelector('a[download]').href")
    assert str(link).startswith("data:application/json;base64,")


@PAGES
@pytest.mark.parametrize("pixels", [320, 375, 768, 1200])
def test_nothing_overflows(browser: Browser, files: dict[str, Path], name: str, pixels: int) -> None:
    browser.width(pixels, phone=pixels < 500)
    browser.go(files[name])
    browser.value("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert browser.value("innerWidth") == pixels
    assert browser.value("document.documentElement.scrollWidth") <= pixels
    assert browser.value(BEYOND) == []


@pytest.mark.parametrize(("pixels", "longest"), [(1200, 4_800), (375, 7_500)])
def test_the_page_is_not_long(browser: Browser, files: dict[str, Path], pixels: int, longest: int) -> None:
    browser.width(pixels, phone=pixels < 500)
    browser.go(files["audit"])
    assert 2_000 < browser.value("document.documentElement.scrollHeight") < longest


def test_the_verdict_and_the_squares_are_on_the_first_screen(browser: Browser, files: dict[str, Path]) -> None:
    browser.width(1200)
    browser.go(files["audit"])
    shown = "Array.from(document.querySelectorAll('.finding, .waffles'))"
    lowest = f"Math.max(...{shown}.map(one => one.getBoundingClientRect().bottom))"
    assert browser.value(lowest) < 700


def test_a_chart_runs_no_script_from_a_name(tmp_path: Path) -> None:
    """With scripts on: a chart that is saved as HTML needs them."""
    assert PROGRAM is not None
    found = known_frontier()
    name = "</script><script>document.title = 'ran'</script>"
    hostile = replace(found, points=(replace(found.points[0], family=name), *found.points[1:]))
    save_result(hostile, tmp_path / "frontier")
    with opened(PROGRAM) as one:
        one.offline()
        one.go(tmp_path / "frontier" / "chart.html")
        assert one.value("document.title") != "ran"
        assert one.value("document.querySelectorAll('script').length") >= 1


def test_a_phone_shows_the_narrow_charts_in_letters_that_can_be_read(browser: Browser, files: dict[str, Path]) -> None:
    browser.width(375, phone=True)
    browser.go(files["audit"])
    assert (browser.value(shown("wide")), browser.value(shown("narrow"))) == (0, 2)
    smallest = browser.value(
        "Math.min(...Array.from(document.querySelectorAll('svg.narrow text')).map("
        "t => t.getBoundingClientRect().height))"
    )
    assert smallest >= 12
    pixels = "parseFloat(getComputedStyle(one).fontSize)"
    texts = f"Array.from(document.querySelectorAll('p, td, li, dd, figcaption')).map(one => {pixels})"
    assert browser.value(f"Math.min(...{texts})") >= 12


# The contrast of every text with what is behind it, as the rules for accessible pages define it; the faintest first.
CONTRASTS = """
    (() => {
        const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
        const light = colour => numbers(colour).slice(0, 3).map(v => v / 255)
            .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, place) => sum + v * [0.2126, 0.7152, 0.0722][place], 0);
        const behind = one => {
            for (let up = one; up; up = up.parentElement) {
                const colour = getComputedStyle(up).backgroundColor;
                if (numbers(colour)[3] !== 0) return colour;
            }
        };
        return Array.from(document.querySelectorAll('body *'))
            .filter(one => !one.classList.contains('on') && one.getBoundingClientRect().width > 0)
            .filter(one => Array.from(one.childNodes).some(inside => inside.nodeType === 3 && inside.data.trim()))
            .filter(one => !['TITLE', 'SCRIPT'].includes(one.tagName.toUpperCase()))
            .map(one => {
                const style = getComputedStyle(one), drawn = one.tagName === 'text';
                const pair = [light(drawn ? style.fill : style.color), light(behind(one))].sort((a, b) => b - a);
                return [(pair[0] + 0.05) / (pair[1] + 0.05), one.tagName, one.textContent.trim().slice(0, 30)];
            })
            .sort((a, b) => a[0] - b[0]).slice(0, 3);
    })()
"""


@PAGES
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out(browser: Browser, files: dict[str, Path], name: str, scheme: str) -> None:
    chosen = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.ask("Emulation.setEmulatedMedia", media="screen", features=chosen)
    browser.go(files[name])
    faintest = browser.value(CONTRASTS)
    assert faintest[0][0] >= 4.5, faintest


@PAGES
def test_paper_is_white_even_for_those_who_read_in_the_dark(
    browser: Browser, files: dict[str, Path], name: str
) -> None:
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    background = "getComputedStyle(document.body).backgroundColor"
    browser.ask("Emulation.setEmulatedMedia", media="screen", features=dark)
    browser.go(files[name])
    assert browser.value(background) != "rgb(255, 255, 255)"
    browser.ask("Emulation.setEmulatedMedia", media="print", features=dark)
    assert browser.value(background) == "rgb(255, 255, 255)"
    printed = b64decode(browser.ask("Page.printToPDF", printBackground=True)["data"])
    assert printed.startswith(b"%PDF")
    assert 2 <= printed.count(b"/Type /Page\n") <= 8
