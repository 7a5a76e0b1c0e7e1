"""`python -m benchmarks.flame_graph`: frame times of the flame graph of a difference, in Chromium.

One tree has random call paths. The others have 800, 100 and 45 paths that are visible down to their ends: the most
frames, the most frames with lines for the costs, and the most names. The program zooms into frames, moves by keyboard,
and searches, each on a desktop and on a phone. A time is from the event until the browser has drawn the next frame: the
event's work, style, layout and paint.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
from playwright.sync_api import sync_playwright

from benchmarks.machine import load, measured_on
from benchmarks.markdown import table
from perftrail.model.profile import Function
from perftrail.present.flame_graph import flame_graph
from perftrail.stats.call_tree import CallTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Page

PAGE = Path(__file__).parent / "results" / "flame-graph.md"
FUNCTIONS = 500
LONGEST_PATH = 200
RUNS = 2
SEARCHES = ("f", "fu", "function_7", "function_77", "no such function", "")
SMOOTH_MS, SEARCH_MS = 1000 / 30, 200.0

UNTIL_DRAWN = """() => new Promise((done) => {
  requestAnimationFrame(() => {
    const began = performance.now();
    ACT
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => done(performance.now() - began);
      channel.port2.postMessage(0);
    });
  });
})"""
"""The message arrives after the frame that the event caused was drawn."""

CLICK = (
    "{ const canvas = document.querySelector('#frames canvas'), box = canvas.getBoundingClientRect();"
    "canvas.dispatchEvent(new MouseEvent('click', {bubbles: true,"
    "clientX: box.left + %f * box.width, clientY: box.top + %f * (window.innerHeight - box.top)})); }"
)
PLACES = ((0.5, 0.01), (0.1, 0.1), (0.3, 0.25), (0.5, 0.5), (0.7, 0.75), (0.9, 0.9))
"""Positions of clicks in the visible part of the graph: shares of its width and height."""

KEY = "document.dispatchEvent(new KeyboardEvent('keydown', {key: '%s', bubbles: true}));"
TYPE = (
    "{ const input = document.getElementById('search'); input.value = '%s';"
    "input.dispatchEvent(new Event('input', {bubbles: true})); }"
)


def random_tree(nodes: int) -> CallTree:
    """Return a tree of random paths, where every caller costs as much as its callees."""
    rng = random.Random(7)
    parents, functions = [-1], [0]
    for node in range(1, nodes):
        parents.append(rng.randrange(max(0, node // 8 - 3), max(1, node // 4)))
        functions.append(rng.randrange(1, FUNCTIONS))
    costs = [[rng.random(), rng.random()] for _ in range(nodes)]
    return _summed(parents, functions, costs)


def deep_tree(nodes: int, paths: int) -> CallTree:
    """Return a tree of deep paths with similar costs; their ends have callees too small to see."""
    rng = random.Random(7)
    parents, functions = [-1], [0]
    costs = [[0.0, 0.0]]

    def add(parent: int, cost: float) -> int:
        parents.append(parent)
        functions.append(rng.randrange(1, FUNCTIONS))
        costs.append([cost * rng.uniform(0.5, 1.5), cost * rng.uniform(0.5, 1.5)])
        return len(parents) - 1

    ends = [0]
    for width in range(paths):
        ends.append(add(ends[width // 2], 0.0))
    inner = set(parents)
    rows = [at for at in ends if at not in inner]
    for _ in range(min(LONGEST_PATH, nodes // 4 // len(rows))):
        rows = [add(at, 0.0) for at in rows]
    while len(parents) < nodes:
        add(rng.choice(rows), 1.0)
    return _summed(parents, functions, costs)


def _summed(parents: Sequence[int], functions: Sequence[int], costs: Sequence[list[float]]) -> CallTree:
    """Return the tree in which every caller has its own cost before and after, and those of its callees."""
    for node in range(len(parents) - 1, 0, -1):
        for side in (0, 1):
            costs[parents[node]][side] += costs[node][side]
    return CallTree(
        names=tuple(Function(f"function_{number}", "a.c", number) for number in range(FUNCTIONS)),
        parents=tuple(parents),
        functions=tuple(functions),
        before=tuple(each[0] for each in costs),
        after=tuple(each[1] for each in costs),
    )


def timed(page: Page, actions: Sequence[str]) -> list[float]:
    """Return the milliseconds of each action until its frame is drawn."""
    return [float(page.evaluate(UNTIL_DRAWN.replace("ACT", each))) for each in actions]


def measure(file: Path, chromium: str) -> dict[tuple[str, str, str], list[float]]:
    """Return the times by device, action, and number of frames at first."""
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for device, width in (("desktop, 1280 px", 1280), ("phone, 390 px", 390)):
            context = browser.new_context(viewport={"width": width, "height": 900}, has_touch=width < 600)
            page = context.new_page()
            page.goto(file.as_uri())
            page.wait_for_selector("#frames canvas")
            drawn = page.locator("#flame").get_attribute("data-frames") or ""
            zooms = [action for place in PLACES for action in (CLICK % place, KEY % "Escape")]
            moves = [
                KEY % key for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp") * 4
            ]
            searches = [TYPE % text for text in SEARCHES * 3]
            for name, actions in (("zoom", zooms), ("keys", moves), ("search", searches)):
                found[device, name, drawn] = timed(page, actions)
            context.close()
        browser.close()
    return found


def _line(shape: str, what: tuple[str, str, str], runs: Sequence[Sequence[float]]) -> tuple[str, ...]:
    goal = SEARCH_MS if what[1] == "search" else SMOOTH_MS
    medians = ", ".join(f"{statistics.median(times):.0f}" for times in runs)
    longest = ", ".join(f"{max(times):.0f}" for times in runs)
    return (shape, *what, str(len(runs[0])), f"{medians} ms", f"{longest} ms", f"{goal:.0f} ms")


@click.command()
@click.option("--nodes", default=100_000, show_default=True, help="Number of call paths.")
@click.option("--write", is_flag=True, help="Write the page instead of printing it.")
def main(nodes: int, *, write: bool) -> None:
    """Measure, and print or write the page."""
    chromium = next(found for name in ("chromium", "chromium-browser") if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory() as directory:
        lines: list[tuple[str, ...]] = []
        size = 0.0
        trees = {"random": random_tree(nodes)}
        trees |= {f"{paths} deep": deep_tree(nodes, paths) for paths in (800, 100, 45)}
        for shape, tree in trees.items():
            file = Path(directory) / "flame.html"
            file.write_text(flame_graph(tree, title="difference", kind="html"))
            size = max(size, file.stat().st_size / 1e6)
            runs = [measure(file, chromium) for _ in range(RUNS)]
            lines += [_line(shape, what, [each[what] for each in runs]) for what in runs[0]]
    head = ("paths", "device", "action", "frames at first", "times", "medians", "longest", "goal")
    text = f"""# Flame graphs in a browser

`python -m benchmarks.flame_graph --write` opens the flame graph of a difference with {nodes:,} call paths in Chromium
without a screen: {size:.1f} MB. It zooms, moves by keyboard, and searches, in two runs. A time is from the event until
the browser has drawn the next frame; up to 17 ms of it are the wait for that frame. The longest
times depend on what else the machine does. {measured_on()}; load {load()}.

{table([head, *lines])}

`800 deep` are 800 paths that are visible down to their ends: the most frames; `100 deep` has the most frames with
lines for the costs, and `45 deep` the most names. The goals are 30 frames in a second, and 0.2 s for a search. The page
draws only frames of at least 1.5 pixels, and only rows in the window.
"""
    if write:
        PAGE.write_text(text)
    else:
        click.echo(text)


if __name__ == "__main__":
    main()
