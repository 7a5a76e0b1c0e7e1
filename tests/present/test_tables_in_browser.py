"""Tables and commands of the page in a real browser: sorted by a heading, searched, copied, with mouse and keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.present.html_page import Listing, Page, Section, Table, Verdict, to_html
from tests.axe import violations
from tests.browsing import chromium, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

pytestmark = [pytest.mark.long, pytest.mark.slow("browser")]

TIMES = ("2.0 ms [1.9, 2.1]", "1.000 s [0.9, 1.1]", "300 µs [290, 310]", "–")
ROWS = 40


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    short = Table(
        name="short",
        head=("name", "time"),
        rows=tuple((f"item {number}", time) for number, time in enumerate(TIMES)),
        numbers=frozenset({1}),
        best=frozenset({(2, 1)}),
    )
    grouped = Table(name="grouped", head=("subject", "finding"), rows=(("b", "1"), ("", "2"), ("a", "3")))
    long = Table(
        name="long",
        head=("name", "change", "history"),
        rows=tuple(
            (f"row {number}", f"{number} % {'less' if number % 2 else 'more'}", f"M0,{number} L160,2")
            for number in range(ROWS)
        ),
        numbers=frozenset({1}),
        sparklines=frozenset({2}),
    )
    commands = Listing(title="Commands", text="perftrail run .\nperftrail report .", commands=True)
    page = Page(
        question="Which?",
        verdict=Verdict(sentence="That one.", tone="plain", facts=()),
        lead=Section(name="lead", title="lead", tables=(short, grouped)),
        sections=(Section(name="more", title="more", tables=(long,), listings=(commands,)),),
        written_by="perftrail",
    )
    file = tmp_path_factory.mktemp("page") / "index.html"
    file.write_text(to_html(page, {}), encoding="utf-8")
    return Path(file).as_uri()


def column(page: Tab, name: str, number: int) -> list[str]:
    return page.locator(f"[aria-label={name}] tbody tr:visible td:nth-child({number})").all_inner_texts()


def test_a_short_table_is_sorted_with_the_keyboard(browser: Browser, address: str) -> None:
    with open_page(browser, "file:", offline=True) as page:
        page.goto(address)
        heading = page.locator("[aria-label=short] th").nth(1)
        button = heading.get_by_role("button", name="time")
        for state, order in (("ascending", (2, 0, 1, 3)), ("descending", (1, 0, 2, 3)), (None, (0, 1, 2, 3))):
            button.press("Enter")
            assert heading.get_attribute("aria-sort") == state
            if state != "descending":
                assert column(page, "short", 2) == [TIMES[number] for number in order]
            assert page.evaluate("document.activeElement.className") == "sort"
        page.get_by_role("button", name="name").first.click()
        assert page.locator("[aria-label=short] td.best").inner_text() == TIMES[2]
        assert page.locator("[aria-label=grouped] button").count() == 0, "its rows belong together"
        assert violations(page) == []


def test_a_long_table_is_sorted_and_searched_over_all_rows(browser: Browser, address: str) -> None:
    with open_page(browser, "file:", width=390, scheme="dark", offline=True) as page:
        page.goto(address)
        page.locator("[aria-label=long]").get_by_role("button", name="change").click()
        assert column(page, "long", 2)[:2] == ["39 % less", "37 % less"]
        paths = page.locator("[aria-label=long] td.spark path")
        assert [paths.nth(row).get_attribute("d") for row in (0, 1)] == ["M0,39 L160,2", "M0,37 L160,2"]
        page.get_by_role("searchbox").fill("ROW 3")
        assert column(page, "long", 1)[:2] == ["row 39", "row 37"]
        assert len(column(page, "long", 1)) == 11
        page.get_by_role("searchbox").fill("")
        page.get_by_role("button", name="Show more").click()
        assert len(column(page, "long", 1)) == ROWS
        assert violations(page) == []


def test_commands_are_copied(browser: Browser, address: str) -> None:
    with open_page(browser, "file:", offline=True) as page:
        page.goto(address)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == "perftrail run .\nperftrail report ."
