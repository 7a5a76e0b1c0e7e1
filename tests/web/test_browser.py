"""Every page in a real browser: without errors, usable by keyboard and on a phone, and live during a run.

A table, a chart and a flame graph are used in each test run, all else in the long tests.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.web.serving import serving
from tests.axe import violations
from tests.browsing import TIMEOUT_MS, Scheme, open_page
from tests.web.studies import Hostile

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow("browser")

LOCAL = ("data:", "blob:")

LIVE = """\
[study]
title = "What does waiting cost?"

[source]
kind = "directory"
location = "tree"

[variants.short]
[variants.long]
rebuild = false
run.env = { LONGER = "1" }

[benchmark.wait]
command = "sh {build}/wait.sh {times}"
parameters = { times = [1] }
timeout = "600s"
metrics = { took = { pattern = 'took ([0-9.]+)', unit = "s" } }

[measure]
invocations = 9
warmups = 0
"""

WAIT = """\
echo begun >> {root}/begun
[ "$(wc -l < {root}/begun)" -lt 8 ] || until [ -e {root}/go ]; do sleep 0.05; done
sleep 0.15
n=$(od -An -N1 -tu1 /dev/urandom)
echo "took $(($1 + ${{LONGER:-0}})).$((100 + n % 10))"
"""
"""The eighth start waits until the test writes `go`."""


@pytest.fixture(scope="module")
def address(hostile: Hostile) -> Iterator[str]:
    with serving(hostile.root) as served:
        yield served.address


def read(page: Page, address: str) -> None:
    """Open a page, after its study was read."""
    page.goto(address, wait_until="domcontentloaded")
    page.wait_for_selector("h1:not(:has-text('Reading'))")


def until(page: Page, expression: str) -> str:
    """Poll until a condition holds, and return its value: the page's policy forbids Playwright's own waiting."""
    over = time.monotonic() + TIMEOUT_MS / 1e3
    while not (found := page.evaluate(expression)):
        assert time.monotonic() < over, expression
        page.wait_for_timeout(50)
    return str(found)


def pages(hostile: Hostile) -> dict[str, bool]:
    """Every kind of page, and whether a chart is drawn on it."""
    return {
        "/": False,
        "/s/alpha": True,
        "/s/alpha/history": True,
        "/s/alpha/compare?a=%232&b=%2350": True,
        "/s/alpha/regressions": False,
        f"/s/alpha/searches?search={hostile.search}": True,
        f"/s/alpha/revisions/{hostile.revisions[3].id}": False,
        f"/s/alpha/samples/{hostile.runnable}": False,
    }


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_drawn_and_runs_nothing_else(
    hostile: Hostile, address: str, browser: Browser, width: int, scheme: Scheme
) -> None:
    with open_page(browser, address, *LOCAL, width=width, scheme=scheme) as page:
        for path, drawn in pages(hostile).items():
            read(page, address + path)
            charts = page.query_selector_all("[data-spec]")
            assert bool(charts) == drawn, path
            for chart in charts[:3]:
                chart.scroll_into_view_if_needed()
                chart.wait_for_selector("svg.marks path")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.evaluate("window.pwned") is None
            assert violations(page) == [], path
            back = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert back == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 29)")


@pytest.mark.long
def test_a_history_can_be_zoomed_and_its_address_is_permanent(address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL) as page:
        read(page, f"{address}/s/alpha/history")
        page.wait_for_selector("svg.marks path")
        page.get_by_role("link", name="zoom in").click()
        page.wait_for_selector("svg.marks path")
        assert re.search(r"first=\d+&last=\d+", page.url)
        drawing = page.locator("svg.marks")
        drawing.hover()
        before = page.url
        page.keyboard.down("Shift")
        page.mouse.wheel(0, -600)
        page.keyboard.up("Shift")
        until(page, f"location.href !== {json.dumps(before)}")
        closer = page.url
        page.wait_for_selector("#part svg.marks path")
        shown = page.inner_text("#part .hint")
        read(page, closer)
        assert page.inner_text("#part .hint") == shown, "the address leads to the same part"


def test_a_table_is_sorted_and_searched(address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL) as page:
        read(page, f"{address}/s/alpha/history")
        rows = page.locator("[aria-label=Revisions] tbody tr:visible")
        before = rows.count()
        heading = page.locator("[aria-label=Revisions] th").nth(2)
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == "ascending"
        words = [text.split()[:2] for text in rows.locator("td:nth-child(3)").all_inner_texts()]
        medians = [float(value) * {"s": 1.0, "ms": 1e-3}[unit] for value, unit in words]
        assert medians == sorted(medians)
        page.get_by_role("searchbox").first.fill("number 38:")
        assert rows.count() == 1 < before


def test_the_value_under_the_pointer_is_shown(address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL) as page:
        read(page, f"{address}/s/alpha/history")
        page.wait_for_selector("svg.marks path")
        page.locator("svg .mark-symbol path").first.hover(force=True)
        shown = page.wait_for_selector("#vg-tooltip-element.visible")
        assert shown is not None
        assert "samples" in shown.inner_text()


@pytest.mark.long
def test_pages_are_read_with_the_keyboard(address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL) as page:
        read(page, f"{address}/s/alpha/regressions")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        reached = set()
        for _number in range(14):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.tagName"))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", "what has the focus is seen"
        assert {"A", "SUMMARY"} <= reached


def test_a_regression_links_its_flame_graph(address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL) as page:
        read(page, f"{address}/s/alpha/regressions")
        page.get_by_role("link", name="flame graph of the difference").first.click()
        page.locator("#frames canvas").press("ArrowDown")
        assert "{{ 7 * 7 }}" in page.locator("#details").inner_text()
        assert page.evaluate("window.origin") == "null"  # the script cannot read the dashboard


@pytest.mark.long
def test_a_person_sets_the_status_of_a_regression(address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL) as page:
        read(page, f"{address}/s/beta/regressions")
        article = page.locator("article").first
        article.locator("summary").click()
        article.get_by_label("Status").select_option("acknowledged")
        article.get_by_label("Your name").fill("Ann <b>")
        article.get_by_label("Note").fill("It is the table.")
        article.get_by_role("button", name="Save").click()
        page.wait_for_selector(".note-text")
        assert "Ann <b>" in page.inner_text(".note-text")
        assert page.locator("article .pill").first.inner_text() == "acknowledged"


@pytest.mark.long
def test_pages_say_the_same_without_a_script(hostile: Hostile, address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL, scripts=False) as page:
        for path in pages(hostile):
            read(page, address + path)
            assert page.locator("h1").inner_text()
        read(page, f"{address}/s/alpha/history")
        assert page.locator("tbody tr").count() > 30


@pytest.mark.long
def test_a_link_from_another_site_ends_no_session(address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL) as page:
        read(page, f"{address}/s/beta/regressions")
        [before] = page.context.cookies()
        page.goto(f"data:text/html,<a href='{address}/s/beta/regressions'>a permalink</a>")
        page.get_by_role("link").click()
        page.wait_for_selector("h1")
        [after] = page.context.cookies()
        assert after["value"] == before["value"]


@pytest.mark.long
def test_a_hidden_page_closes_its_connection(address: str, browser: Browser) -> None:
    with open_page(browser, address, *LOCAL) as page:
        with page.expect_response("**/events"):
            read(page, f"{address}/s/beta")
        with page.expect_event("requestfailed", lambda request: request.url.endswith("/events")):
            observe(page, away=True)
        with page.expect_response("**/events"):
            observe(page, away=False)
        assert not page.locator("#lost").is_visible()


def observe(page: Page, *, away: bool) -> None:
    """Show another page in the front, or this one again."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        away,
    )


@pytest.mark.long
def test_a_stopped_server_is_reported(hostile: Hostile, browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        with serving(hostile.root) as served:
            read(page, f"{served.address}/s/beta")
            assert not page.locator("#lost").is_visible()
        page.wait_for_selector("#lost", state="visible")


@pytest.mark.long
def test_a_run_is_watched_as_it_goes(tmp_path: Path, browser: Browser) -> None:
    root = tmp_path / "waiting"
    (root / "tree").mkdir(parents=True)
    (root / "tree" / "wait.sh").write_text(WAIT.format(root=root))
    (root / "perftrail.toml").write_text(LIVE)
    with serving(root) as served, open_page(browser, served.address, *LOCAL) as page:
        read(page, f"{served.address}/s/waiting")
        assert "No samples yet" in page.inner_text("h1")
        assert page.locator(".dot.on").count() == 0
        with subprocess.Popen(
            [sys.executable, "-m", "perftrail", "run", str(root)], stderr=subprocess.PIPE
        ) as run:
            page.wait_for_selector(".dot.on")
            assert "perftrail run" in page.inner_text(".live h2")
            page.wait_for_selector(".live progress")
            live = "document.querySelector('.live').innerText"
            until(page, "Number((document.querySelector('.live progress') || {}).value) > 0.1")
            until(page, "document.querySelectorAll('.live tbody tr').length >= 3")
            until(page, f"{live}.includes('left: ')")
            some = until(page, live)
            (root / "go").touch()
            until(page, f"{live} !== {json.dumps(some)}")
            run.communicate(timeout=60)
            assert run.returncode == 0
        page.wait_for_selector(".dot:not(.on)")
        assert "No measurement is running" in page.inner_text(".live h2")
        page.get_by_role("link", name="Show newer results").click()
        page.wait_for_selector("h1:not(:has-text('No samples'))")
        assert "took" in page.inner_text("h1")
