"""Reports of real studies: a searched history and compared variants, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftrail.charts.history import Events, Mark, history
from perftrail.local_engine import LocalEngine
from perftrail.present import html_page
from perftrail.present.html_page import Drawings, Section, Verdict, write_page
from tests.axe import violations
from tests.browsing import Scheme, open_page
from tests.charts.examples import LABELS, PALETTE, along
from tests.e2e.histories import HOSTILE
from tests.e2e.printing import perftrail, perftrail_here, program, write_study
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CULPRIT = "0123456789 20 % more"
EARLIER = "fedcba9876 9.1 % more"

LOOPS = """\
[study]
title = "What do the loops cost as threads grow?"

[source]
kind = "directory"
location = "tree"

[variants.plain]
[variants.heavy]
rebuild = false
run.env = { FACTOR = "3" }

[benchmark.mt]
command = "sh {build}/loop.sh {threads}"
parameters = { threads = [1, 2, 4] }
timeout = "5s"
give_up = true
metrics = { real = { pattern = 'real ([0-9.]+)', unit = "s" } }

[measure]
invocations = 6
warmups = 0
"""

LOOP = """\
test "$1$FACTOR" = 43 && sleep 30
n=$(od -An -N1 -tu1 /dev/urandom)
echo "real $((${FACTOR:-1} * 8 / $1)).$((n % 10))"
"""

pytestmark = pytest.mark.slow("starts")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A searched history, some revisions of which do not compile, and its report."""
    root = tmp_path_factory.mktemp("searched")
    repository = Repository(root / "repository")
    for number in range(14):
        broken = "echo this does not compile >&2; exit 1" if number in (6, 7) else ""
        files = program(100 if number < 8 else 250, name=f"{number}", build=broken)
        repository.commit(files, subject=HOSTILE[(number + 4) % len(HOSTILE)])
    study = write_study(root / "study", repository)
    title = '[study]\ntitle = "Which commit made the work heavier?"\n'
    study.write_text(title + study.read_text())
    perftrail("find", study)
    perftrail("report", "-o", root / "report", study)
    return root


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two variants compared along an axis, one without its last point, and their report."""
    root = tmp_path_factory.mktemp("compared")
    (root / "tree").mkdir()
    (root / "tree" / "loop.sh").write_text(LOOP)
    (root / "perftrail.toml").write_text(LOOPS.replace('timeout = "5s"', 'timeout = "1s"'))
    perftrail("run", root)
    perftrail("report", "-o", root / "report", root)
    return root


def test_a_report_of_a_search_is_complete(searched: Path) -> None:
    page = (searched / "report" / "index.html").read_text(encoding="utf-8")
    head = page.index("<main>")
    answer = json.loads(perftrail_here("show", searched / "study", "--search", "--json").stdout)["answer"]
    [change] = answer["changes"]
    assert change["revisions"][-1][:10] in page[:head]
    for part in (
        "How the search went",
        "What was measured, where and how",
        "How to repeat it",
        "invocations",
    ):
        assert part in page
    images = {file.name for file in (searched / "report" / "charts").iterdir()}
    assert {"history-work-cost.svg", "history-work-cost.png", "belief.svg", "samples.png"} <= images
    assert "Which commit made the work heavier?" in page[:head]


def test_a_report_names_missing_revisions_with_their_logs(searched: Path) -> None:
    page = (searched / "report" / "index.html").read_text(encoding="utf-8")
    assert "Failed builds and skipped revisions" in page
    assert "this does not compile" in page


def test_hostile_messages_are_escaped(searched: Path) -> None:
    page = (searched / "report" / "index.html").read_text(encoding="utf-8")
    assert "<script>alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not any(letter in page for message in HOSTILE for letter in message if not letter.isprintable())


def test_variants_are_compared_along_the_axis(compared: Path) -> None:
    done = perftrail("report", "--format", "markdown", compared)
    assert "heavy" in done.stdout.splitlines()[2]
    assert "over 1s" in done.stdout
    images = {file.name for file in (compared / "report" / "charts").iterdir()}
    assert {"curve-mt-real-threads.svg", "speed-up-curve-mt-real-threads.svg", "against.svg"} <= images


def test_json_names_every_file_of_a_report_in_its_default_directory(compared: Path) -> None:
    report: dict[str, Any] = json.loads(perftrail("report", "--json", compared).stdout)
    assert report["question"] == "What do the loops cost as threads grow?"
    assert all(Path(each["file"]).stat().st_size == each["bytes"] for each in report["files"])
    default = compared / ".perftrail" / "report" / "index.html"
    assert str(default) in {each["file"] for each in report["files"]}


def test_a_study_without_samples_has_no_report(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "loop.sh").write_text(LOOP)
    (tmp_path / "perftrail.toml").write_text(LOOPS)
    assert "perftrail run" in perftrail_here("report", "-o", tmp_path / "out", tmp_path, expect=1).stderr


@contextmanager
def open_report(browser: Browser, report: Path, *, width: int, scheme: Scheme) -> Iterator[Page]:
    """Open the page of a report from its file, offline."""
    own = ("file:", "data:")
    with open_page(browser, *own, width=width, scheme=scheme, offline=True) as page:
        page.goto((report / "index.html").as_uri())
        yield page


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.long),
        pytest.param(390, "light", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("fixture_name", ["searched", "compared"])
def test_a_browser_draws_every_chart_and_runs_nothing_else(
    request: pytest.FixtureRequest, browser: Browser, fixture_name: str, width: int, scheme: Scheme
) -> None:
    root: Path = request.getfixturevalue(fixture_name)
    with open_report(browser, root / "report", width=width, scheme=scheme) as page:
        figures = page.query_selector_all("figure")
        for figure in figures:
            figure.scroll_into_view_if_needed()
            figure.wait_for_selector("svg.marks path")
        backgrounds = {
            page.evaluate(
                "figure => getComputedStyle(figure.querySelector('svg.marks')).backgroundColor", each
            )
            for each in figures
        }
        assert len(figures) >= 3
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("window.pwned") is None
        assert page.locator("main script, main iframe, main object").count() == 0
        assert violations(page) == []
    assert backgrounds == {"rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 29)"}


def test_a_chart_has_a_tooltip_for_each_point(searched: Path, browser: Browser) -> None:
    with open_report(browser, searched / "report", width=1280, scheme="light") as page:
        page.wait_for_selector(".lead svg.marks")
        page.locator(".lead svg .mark-symbol path").first.hover(force=True)
        shown = page.wait_for_selector("#vg-tooltip-element.visible")
        assert shown is not None
        assert "samples" in shown.inner_text()


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose chart has more revisions than it draws, with a change in each half."""
    root = tmp_path_factory.mktemp("long")
    points = along(*range(1200))
    events = Events(
        length=len(points), changes=(Mark(position=400, word=EARLIER), Mark(position=900, word=CULPRIT))
    )
    chart = history(points, events, labels=LABELS, palette=PALETTE)
    section = Section(name="lead", title="history", chart=chart, detail=tuple(points))
    verdict = Verdict(sentence="It changed.", tone="worse", facts=())
    page = html_page.Page(
        question="Where?", verdict=verdict, lead=section, sections=(), written_by="perftrail"
    )
    write_page(page, str(root / "report"), Drawings(LocalEngine()))
    return root


def test_labels_above_a_chart_are_complete_and_hidden_outside_the_visible_part(
    long_report: Path, browser: Browser
) -> None:
    words = """word => [...document.querySelectorAll("svg.marks text")]
        .filter(text => text.textContent === word)
        .map(text => text.closest("[clip-path]") === null)"""
    with open_report(browser, long_report / "report", width=1280, scheme="light") as page:
        page.wait_for_selector(".lead svg.marks path")
        assert page.evaluate(words, CULPRIT) == [True]
        box = page.locator(".lead svg.marks").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
        page.keyboard.down("Shift")
        for _number in range(12):
            page.mouse.wheel(0, -400)
        page.keyboard.up("Shift")
        page.wait_for_function(f"word => ({words})(word).length === 0", arg=CULPRIT)


@pytest.mark.parametrize(("width", "labels"), [(1280, 3), (390, 0)])
def test_a_narrow_chart_has_no_crowded_labels(
    tmp_path: Path, browser: Browser, width: int, labels: int
) -> None:
    points = along(*range(40))
    marks = tuple(Mark(position=position, word=f"change {position}") for position in (5, 20, 30))
    chart = history(points, Events(length=40, changes=marks), labels=LABELS, palette=PALETTE)
    page = html_page.Page(
        question="Where?",
        verdict=Verdict(sentence="It changed.", tone="worse", facts=()),
        lead=Section(name="lead", title="history", chart=chart),
        sections=(),
        written_by="perftrail",
    )
    (tmp_path / "index.html").write_text(html_page.to_html(page, {}), encoding="utf-8")
    with open_report(browser, tmp_path, width=width, scheme="light") as opened:
        opened.wait_for_selector(".lead svg.marks path")
        assert opened.locator("svg.marks text", has_text=re.compile(r"^change \d+$")).count() == labels


def test_labels_above_a_chart_stay_inside_its_edges(long_report: Path, browser: Browser) -> None:
    margin = """word => {
        const text = [...document.querySelectorAll("svg.marks text")].find(text => text.textContent === word);
        if (!text) return null;
        const own = text.getBoundingClientRect(), all = text.closest("svg").getBoundingClientRect();
        return Math.min(own.left - all.left, all.right - own.right);
    }"""
    with open_report(browser, long_report / "report", width=1280, scheme="light") as page:
        page.wait_for_selector(".lead svg.marks path")
        box = page.locator(".lead svg.marks").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 10, box["y"] + box["height"] / 2)
        page.keyboard.down("Shift")
        margins = []
        while (current := page.evaluate(margin, EARLIER)) is not None:
            margins.append(current)
            page.mouse.wheel(0, -60)
            page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 20)))")
        page.keyboard.up("Shift")
    assert len(margins) > 3
    assert min(margins) >= 0.0


def test_a_page_works_with_the_keyboard_and_prints_its_images(searched: Path, browser: Browser) -> None:
    with open_report(browser, searched / "report", width=1280, scheme="dark") as page:
        page.wait_for_selector(".lead svg.marks")
        focused_tags = set()
        for _number in range(12):
            page.keyboard.press("Tab")
            focused_tags.add(page.evaluate("document.activeElement.tagName"))
        assert {"A", "DIV"} <= focused_tags
        page.emulate_media(media="print")
        assert page.locator(".lead .still").is_visible()
        assert not page.locator(".lead .live").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
