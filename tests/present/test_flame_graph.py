"""Flame graphs of a difference, in a real browser, and without scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.flame_graph import random_tree
from perftrail.model.profile import Calls, Function, Profile
from perftrail.present.flame_graph import Kind, flame_graph
from perftrail.stats.call_tree import CallTree, call_tree
from tests.axe import violations
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


POINTED = """() => {
  const canvas = document.querySelector("#frames canvas"), box = canvas.getBoundingClientRect(), found = {};
  const copy = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const pen = copy.getContext("2d", { willReadFrequently: true }), ratio = canvas.width / box.width;
  pen.drawImage(canvas, 0, 0);
  for (let y = 5; y < box.height; y += 10) for (let x = 2; x < box.width; x += 4) {
    const at = { clientX: box.left + x, clientY: box.top + y, bubbles: true };
    document.getElementById("details").textContent = "";
    canvas.dispatchEvent(new MouseEvent("mousemove", at));
    const name = document.getElementById("details").textContent.replace(/ \\(.*|: .*/, "");
    if (name && !found[name]) {
      const [red, green, blue] = pen.getImageData((x + 2) * ratio, Math.floor(y / ROW) * ROW * ratio + 4, 1, 1).data;
      found[name] = { x: at.clientX + 2, y: at.clientY, colour: [red, green, blue].join(",") };
    }
  }
  return found;
}"""
"""Points at the whole graph; returns the position and the colour of each frame by name."""


def pointed(page: Page, row: int = 19) -> dict[str, dict[str, Any]]:
    """Return the frames that the mouse finds, by name: where they begin, and their colour."""
    found: dict[str, dict[str, Any]] = page.evaluate(POINTED.replace("ROW", str(row)))
    return found


def click(page: Page, name: str) -> None:
    place = pointed(page)[name]
    page.mouse.click(place["x"], place["y"])


def focus(page: Page) -> str | None:
    return page.locator("#flame").get_attribute("data-focus")


def saved(tmp_path: Path, tree: CallTree, kind: Kind, title: str = "difference") -> str:
    file = tmp_path / f"flame.{kind}"
    file.write_text(flame_graph(tree, title=title, kind=kind, roots=("/b/",)))
    return file.as_uri()


@pytest.mark.long
@pytest.mark.slow("browser")
@pytest.mark.parametrize("kind", ["svg", "html"])
def test_frames_are_zoomed_and_searched_by_mouse(browser: Browser, tmp_path: Path, kind: Kind) -> None:
    url = saved(tmp_path, small_tree(), kind)
    with open_page(browser, url, offline=True) as page:
        page.goto(url)
        frames = pointed(page)
        assert set(frames) == {"all", "main", "parse", "insert", "old_hash", "new_hash<&>"}
        assert frames["parse"]["colour"] == "230,230,230"
        assert frames["new_hash<&>"]["colour"] == "217,95,2"
        assert frames["old_hash"]["colour"] == "33,102,172"
        click(page, "insert")
        assert focus(page) == "insert"
        assert "insert (lib/tree.c:20)" in page.locator("#details").inner_text()
        assert "parse" not in pointed(page)
        page.locator("#reset").click()
        page.locator("#search").fill("HASH")
        assert page.locator("#found").inner_text().startswith("2 frames, 32.8 % before")
        searched = pointed(page)
        assert searched["parse"]["colour"] == "244,244,244"
        assert searched["old_hash"]["colour"] == "33,102,172"
        assert kind == "svg" or violations(page) == []  # axe-core cannot read an SVG document


@pytest.mark.long
@pytest.mark.slow("browser")
def test_frames_have_dark_colours(browser: Browser, tmp_path: Path) -> None:
    url = saved(tmp_path, small_tree(), "html")
    with open_page(browser, url, scheme="dark", offline=True) as page:
        page.goto(url)
        frames = pointed(page)
        assert frames["parse"]["colour"] == "64,70,80"
        assert frames["new_hash<&>"]["colour"] == "217,95,2"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 29)"
        assert violations(page) == []


@pytest.mark.long
@pytest.mark.slow("browser")
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


@pytest.mark.long
@pytest.mark.slow("browser")
def test_a_phone_shows_the_whole_width(browser: Browser, tmp_path: Path) -> None:
    url = saved(tmp_path, small_tree(), "html")
    with open_page(browser, url, width=390, offline=True) as page:
        page.goto(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        place = pointed(page)["insert"]
        page.touchscreen.tap(place["x"], place["y"])
        assert focus(page) == "insert"


@pytest.mark.long
@pytest.mark.slow("browser")
def test_a_tree_of_100000_nodes_draws_few_frames(browser: Browser, tmp_path: Path) -> None:
    url = saved(tmp_path, random_tree(100_000), "svg")
    with open_page(browser, url, offline=True) as page:
        page.goto(url)
        assert 100 < int(page.locator("#flame").get_attribute("data-frames") or 0) < 10_000
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert int(page.locator("#flame").get_attribute("data-frames") or 0) < 10_000
        page.locator("#search").fill("function_7")
        assert "frames" in page.locator("#found").inner_text()


@pytest.mark.long
@pytest.mark.slow("browser")
def test_names_and_titles_cannot_add_scripts(browser: Browser, tmp_path: Path) -> None:
    hostile = Function("]]></script><script>alert(1)</script>", '"><img src=x onerror=alert(2)>', 1)
    tree = call_tree(profile(100.0, hostile), profile(900.0, hostile))
    for kind in ("svg", "html"):
        url = saved(tmp_path, tree, kind, title="</title><script>alert(3)</script>")
        with open_page(browser, url, offline=True) as page:
            page.goto(url)
            assert "]]></script><script>alert(1)</script>" in pointed(page)
            assert page.locator("h1").inner_text() == "</title><script>alert(3)</script>"
            assert page.locator("img").count() == 0


class Tags(HTMLParser):
    """The names of the elements of a page, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names[tag] += 1


@pytest.mark.parametrize("kind", ["svg", "html"])
def test_names_and_titles_add_no_element(kind: Kind) -> None:
    hostile = Function("]]></script><script>alert(1)</script>", '"><img src=x onerror=alert(2)>', 1)
    plain = Function("old_hash", "tree.c", 1)
    of_hostile, of_plain = (
        flame_graph(call_tree(profile(100.0, each), profile(900.0, each)), title=title, kind=kind)
        for each, title in ((hostile, "</title><script>alert(3)</script>"), (plain, "difference"))
    )
    assert "alert(1)" in of_hostile
    assert Tags(of_hostile).names == Tags(of_plain).names
    if kind == "svg":
        assert len([*ElementTree.fromstring(of_hostile).iter()]) == len(
            [*ElementTree.fromstring(of_plain).iter()]
        )


def test_the_drawing_without_scripts_is_valid_and_has_the_largest_frames() -> None:
    root = ElementTree.fromstring(flame_graph(small_tree(), title="a <b> & c", kind="svg"))
    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "a <b> & c"
    assert any(each.startswith("insert: 49 % before, 74 % after") for each in titles)
    assert {"all", "main", "old_hash", "new_hash<&>"} <= {each.partition(":")[0] for each in titles}


@pytest.mark.long
@pytest.mark.slow("browser")
def test_the_keyboard_scrolls_to_rows_below_the_window_and_a_reader_hears_the_frame(
    browser: Browser, tmp_path: Path
) -> None:
    depth = 150
    tree = CallTree(
        names=tuple(Function(f"f{level}", "a.c", level) for level in range(depth)),
        parents=tuple(range(-1, depth - 1)),
        functions=tuple(range(depth)),
        before=(100.0,) * depth,
        after=(100.0,) * depth,
    )
    url = saved(tmp_path, tree, "svg")
    with open_page(browser, url, offline=True) as page:
        page.goto(url)
        canvas = page.get_by_role("application", name="difference")
        assert canvas.evaluate("each => each.height") <= 900
        for _ in range(120):
            page.keyboard.press("ArrowDown")
        page.wait_for_function("window.scrollY > 1000")
        assert page.locator("#details").get_attribute("aria-live") == "polite"
        assert page.locator("#details").inner_text().startswith("f120 (a.c:120): 100 % of the total before")
        box = canvas.bounding_box()
        assert box is not None and box["y"] == 0
        assert {"f110", "f120"} <= set(pointed(page))


@pytest.mark.long
@pytest.mark.slow("browser")
def test_a_drawing_inside_another_page_replaces_only_itself(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    drawing = flame_graph(small_tree(), title="difference", kind="svg")
    file.write_text(f"<!doctype html><meta charset='utf-8'><p id='text'>Mine.</p>{drawing}")
    with open_page(browser, file.as_uri(), offline=True) as page:
        page.goto(file.as_uri())
        assert page.locator("#text").inner_text() == "Mine."
        assert page.locator("#frames canvas").count() == 1
