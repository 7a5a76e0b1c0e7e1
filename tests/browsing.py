"""A real browser for tests: the system's Chromium, and pages that must print no message and send no foreign request."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import pytest

from tests.needs import skip_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

Scheme = Literal["light", "dark"]

TIMEOUT_MS = 120_000
"""How long a page may take: long, since no test is about its speed."""

BROWSER = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium; skips where there is none."""
    if BROWSER is None:
        skip_for("chromium")
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def open_page(
    browser: Browser,
    *own: str,
    width: int = 1280,
    scheme: Scheme = "light",
    scripts: bool = True,
    offline: bool = False,
) -> Iterator[Page]:
    """A page that must print no message, open no dialog and request only addresses that begin as in `own`."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        java_script_enabled=scripts,
        offline=offline,
        has_touch=width < 600,
    )
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    reported: list[str] = []
    page.on("console", lambda message: reported.append(message.text))
    page.on("pageerror", lambda error: reported.append(str(error)))
    page.on("dialog", lambda dialog: reported.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: None if request.url.startswith(own) else reported.append(request.url))
    yield page
    context.close()
    assert reported == []
