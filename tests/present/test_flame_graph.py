"""Flame graphs of a difference, in a real browser, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.flame_graph import random_tree
from perftrail.model.profile import Calls, Function, Profile
from perftrail.present.flame_graph import Kind, flame_graph
from perftrail.stats.call_tree import CallTree, call_tree
from tests.browsing import chromium, open_page

MAIN, PARSE, INSERT = (
    Function("main", "/b/main.c", 3),
    Function("parse", "/b/lib/parse.c", 9),
    Function("insert", "/b/lib/tree.c", 20),
)
GONE, NEW = Function("old_hash", "/b/lib/tree.c", 5), Function("new_hash<&>", "/b/lib/tree.c", 7)


def profile(insert: float, hashing: Function) -> Profile:
    own = {MAIN: (10.0,), PARSE: (300.0,), INSERT: (insert,), hashing: (200.0,)}
    calls = {
        (MAIN, PARSE): Calls(1.0, (300.0,)),
        (MAIN, INSERT): Calls(5.0, (insert + 200.0,)),
        (INSERT, hashing): Calls(5.0, (200.0,)),
    }
    return Profile(events=("Ir",), own=own, calls=calls)


def small_tree() -> CallTree:
    return call_tree(profile(100.0, GONE), profile(700.0, NEW))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


def shown(page: Page) -> dict[str, str]:
    """Return the visible texts of the frames with their colours."""
    rows = page.locator("#frames g[data-node]").evaluate_all(
        "all => all.map(g => "
        "[g.querySelector('text')?.textContent ?? '', g.querySelector('rect').getAttribute('fill')])"
    )
    return dict(rows)


def focus(page: Page) -> str | None:
    return page.locator("#flame").get_attribute("data-focus")


def saved(tmp_path: Path, tree: CallTree, kind: Kind, title: str = "difference") -> str:
    file = tmp_path / f"flame.{kind}"
    file.write_text(flame_graph(tree, title=title, kind=kind, roots=("/b/",)))
    return file.as_uri()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "html"])
def test_frames_are_zoomed_and_searched_by_mouse(browser: Browser, tmp_path: Path, kind: Kind) -> None:
    url = saved(tmp_path, small_tree(), kind)
    with open_page(browser, url, offline=True) as page:
        page.goto(url)
        frames = shown(page)
        assert set(frames) == {"all", "main", "parse", "insert", "old_hash", "new_hash<&>"}
        assert frames["parse"] == "#e6e6e6"
        assert frames["new_hash<&>"] == "rgb(217,95,2)"
        assert frames["old_hash"] == "rgb(33,102,172)"
        page.locator("#frames g[data-node]", has_text="insert").click()
        assert focus(page) == "insert"
        assert "insert (lib/tree.c:20)" in page.locator("#details").inner_html()
        assert "parse" not in shown(page)
        page.locator("#reset").click()
        page.locator("#search").fill("HASH")
        assert page.locator("#found").inner_text().startswith("2 frames, 32.8 % before")
        assert page.locator("#frames rect[stroke='#6a00a8']").count() == 2


@pytest.mark.slow
def test_frames_are_reached_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    url = saved(tmp_path, small_tree(), "svg")
    with open_page(browser, url, offline=True) as page:
        page.goto(url)
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        assert focus(page) == "insert"
        page.keyboard.press("Escape")
        assert focus(page) == "all"
        page.keyboard.press("/")
        page.keyboard.type("parse")
        assert page.locator("#found").inner_text().startswith("1 frame,")
        page.keyboard.press("Escape")
        assert page.locator("#found").inner_text() == ""


@pytest.mark.slow
def test_a_phone_shows_the_whole_width(browser: Browser, tmp_path: Path) -> None:
    url = saved(tmp_path, small_tree(), "html")
    with open_page(browser, url, width=390, offline=True) as page:
        page.goto(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.locator("#frames g[data-node]", has_text="insert").tap()
        assert focus(page) == "insert"


@pytest.mark.slow
def test_a_tree_of_100000_nodes_draws_few_frames(browser: Browser, tmp_path: Path) -> None:
    url = saved(tmp_path, random_tree(100_000), "svg")
    with open_page(browser, url, offline=True) as page:
        page.goto(url)
        assert 100 < int(page.locator("#flame").get_attribute("data-frames") or 0) < 10_000
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert page.locator("#frames g[data-node]").count() < 10_000
        page.locator("#search").fill("function_7")
        assert "frames" in page.locator("#found").inner_text()


@pytest.mark.slow
def test_names_and_titles_cannot_add_scripts(browser: Browser, tmp_path: Path) -> None:
    hostile = Function("]]></script><script>alert(1)</script>", '"><img src=x onerror=alert(2)>', 1)
    tree = call_tree(profile(100.0, hostile), profile(900.0, hostile))
    for kind in ("svg", "html"):
        url = saved(tmp_path, tree, kind, title="</title><script>alert(3)</script>")
        with open_page(browser, url, offline=True) as page:
            page.goto(url)
            page.locator("#frames g[data-node]").last.hover()
            assert page.locator("img").count() == 0


def test_the_drawing_without_scripts_is_valid_and_has_the_largest_frames() -> None:
    root = ElementTree.fromstring(flame_graph(small_tree(), title="a <b> & c", kind="svg"))
    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "a <b> & c"
    assert any(each.startswith("insert: 49 % before, 74 % after") for each in titles)
    assert {"all", "main", "old_hash", "new_hash<&>"} <= {each.partition(":")[0] for each in titles}


@pytest.mark.slow
def test_a_frame_that_is_too_narrow_for_an_element_can_be_pointed_at_and_zoomed(
    browser: Browser, tmp_path: Path
) -> None:
    names = [Function("main", "a.c", 1), Function("wide", "a.c", 2), Function("thin", "a.c", 3)]
    tree = CallTree(
        names=tuple(names),
        parents=(-1, 0, 0),
        functions=(0, 1, 2),
        before=(1000.0, 997.0, 3.0),
        after=(1000.0, 997.0, 3.0),
    )
    with open_page(browser, saved(tmp_path, tree, "html"), offline=True) as page:
        page.goto(saved(tmp_path, tree, "html"))
        frames = page.locator("#frames g[data-node]")
        assert frames.count() == 2
        box = page.locator("#frames path").bounding_box()
        assert box is not None and box["width"] < 6
        page.mouse.move(box["x"] + 1, box["y"] + 5)
        assert (page.locator("#details").text_content() or "").startswith("thin (a.c:3)")
        page.mouse.click(box["x"] + 1, box["y"] + 5)
        assert page.locator("#flame").get_attribute("data-focus") == "thin"
