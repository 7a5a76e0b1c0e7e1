"""The site: it builds without a warning, its navigation has every page, and it needs no network."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.file_tree import exclusive_lock
from tests.browsing import chromium, open_page
from tests.shared_directory import shared_directory
from tests.starting import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

DOCS = REPOSITORY / "docs"
SPHINX = REPOSITORY / ".build" / "site"
HOW_TO = sorted(page.name for page in (DOCS / "how-to").glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("section", ["how-to", "explanation", "reference"])
def test_a_section_links_to_each_of_its_pages(section: str) -> None:
    text = (DOCS / section / "README.md").read_text("utf-8")
    pages = {page.name for page in (DOCS / section).glob("*.md")} - {"README.md"}
    assert pages == {link for link in re.findall(r"\]\(([^)#]+\.md)\)", text) if "/" not in link}


@pytest.mark.parametrize(
    "name",
    ["architecture.md", "changelog.md", "code-of-conduct.md", "contributing.md", "security.md", "results"],
)
def test_pages_of_other_directories_are_links_to_them(name: str) -> None:
    assert (DOCS / name).is_symlink()
    assert (DOCS / name).resolve().is_relative_to(REPOSITORY)


def make_site(root: Path) -> subprocess.CompletedProcess[str]:
    """Run `make site` in a directory."""
    return subprocess.run(["make", "site"], cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all tracked files in which the site was built, once for all processes of a test run."""
    if not (SPHINX / "ready").exists():
        pytest.skip("Sphinx is not installed here: make site installs it")
    return shared_directory(tmp_path_factory, "site", fill=_build) / "perftrail"


def _build(directory: Path) -> None:
    """Build the site with the Sphinx of this checkout."""
    root = directory / "perftrail"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split(
        "\0"
    )
    for name in filter(None, names):
        if not (REPOSITORY / name).exists():
            continue
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, root / name, follow_symlinks=False)
    (root / ".build" / "site").mkdir(parents=True)
    for part in ("bin", "lib", "pyvenv.cfg"):
        (root / ".build" / "site" / part).symlink_to(SPHINX / part)
    (root / ".build" / "site" / "ready").touch()
    done = make_site(root)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def copy(built: Path) -> Iterator[Path]:
    """The copy, for one test at a time: it may change a page."""
    with exclusive_lock(built.parent / "one-test"):
        yield built


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.mark.slow("builds")
@pytest.mark.long
def test_every_how_to_is_in_the_navigation(copy: Path) -> None:
    home = (copy / ".build/site/html/index.html").read_text("utf-8")
    assert len(HOW_TO) > 22
    assert [page for page in HOW_TO if f'href="how-to/{Path(page).stem}.html"' not in home] == []


@pytest.mark.slow("builds")
@pytest.mark.long
@pytest.mark.parametrize("link", ["how-to/no-such-page.md", "how-to/find.md#no-such-heading"])
def test_a_dead_link_fails_the_build(copy: Path, link: str) -> None:
    page = copy / "docs" / "index.md"
    text = page.read_text("utf-8")
    page.write_text(f"{text}\n[dead]({link})\n", "utf-8")
    done = make_site(copy)
    page.write_text(text, "utf-8")
    assert done.returncode != 0
    assert "xref_missing" in done.stderr


@pytest.fixture
def served(copy: Path) -> Iterator[str]:
    """The address of the site on this machine."""
    handler = partial(QuietHandler, directory=str(copy / ".build/site/html"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.mark.slow("builds")
@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_the_screen_and_the_search_needs_no_other_server(
    served: str, browser: Browser, width: int
) -> None:
    with open_page(browser, served, width=width) as page:
        for name in ("index", "how-to/find", "reference/study-file"):
            page.goto(f"{served}{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(f"{served}search.html?q=rounds")
        page.wait_for_selector("#search-results li a")
        found = page.locator("#search-results li a").all_text_contents()
    assert any("How perftrail searches" in title for title in found)
