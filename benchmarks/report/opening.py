"""The time to open a page in a real browser: from the navigation until all is read and the first screen is drawn."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from pathlib import Path


FIRST_SCREEN_DRAWN = """() => {
  const shown = [...document.querySelectorAll("figure")].filter(
    (figure) => figure.getBoundingClientRect().top < innerHeight);
  return document.readyState === "complete" && shown.length > 0
    && shown.every((figure) => figure.querySelector("svg.marks path"));
}"""


def opening_seconds(page: Path, *, chromium: str, times: int) -> list[float]:
    """Open a page repeatedly, each time in a new context of one browser; return the seconds."""
    seconds = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(times):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            opened = context.new_page()
            began = time.perf_counter()
            opened.goto(page.as_uri(), wait_until="commit")
            opened.wait_for_function(FIRST_SCREEN_DRAWN)
            seconds.append(time.perf_counter() - began)
            context.close()
        browser.close()
    return seconds
