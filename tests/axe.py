"""Check pages with axe-core, the rules for people who use a screen reader, a keyboard or large text."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


def violations(page: Page) -> list[str]:
    """Return each violated rule with the elements that violate it."""
    script = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    page.evaluate(script)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:160]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
