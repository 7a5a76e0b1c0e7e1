"""`publish` end to end: a real history, published as it grows, in a real browser from disk and from a file server."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.axe import violations
from tests.browsing import open_page
from tests.e2e.histories import HOSTILE
from tests.e2e.printing import begin, perftrail
from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from tests.browsing import Scheme

pytestmark = pytest.mark.slow("starts")

METRICS = 44
ITEMS = range(METRICS // 2)

STUDY = """\
[study]
title = "How fast is it? <script>alert(1)</script>"

[source]
kind = "git"
location = "{location}"
range = "{range}"

[measure]
invocations = 3
warmups = 0

[benchmark.parse]
command = "sh {{build}}/work 100"
metrics = {{ {metrics} }}

[benchmark.print]
command = "sh {{build}}/work {{build}}"
metrics = {{ {metrics} }}
"""

METRIC = "item_{number:02} = {{ pattern = 'item_{number:02} ([0-9.]+)', unit = 's' }}"

WORK = """\
for n in $(od -An -N{bytes} -v -w2 -tu2 /dev/urandom); do
  i=$((i + 1)); base=100
  case $1:$i in /*:7) base={seven};; esac
  printf 'item_%02d %d.%05d\\n' $((i - 1)) $base $n
done
"""


class Project:
    """A repository of which a metric becomes slower, its study, and the site of its results."""

    def __init__(self, root: Path) -> None:
        self.root, self.site = root, root / "site"
        self.repository = Repository(root / "repository")
        (root / "study").mkdir()
        self.study = root / "study" / "perftrail.toml"
        self.count = 0
        self.tip = ""

    def measure(self, range: str) -> None:
        """Measure a range of the history on a runner that has no earlier results."""
        metrics = ", ".join(METRIC.format(number=number) for number in ITEMS)
        self.study.write_text(STUDY.format(location=self.repository.path, range=range, metrics=metrics))
        shutil.rmtree(self.study.parent / ".perftrail", ignore_errors=True)
        perftrail("run", self.study)

    def commit(self, count: int, *, seven: int = 100) -> None:
        """Commit revisions with other builds."""
        for _ in range(count):
            self.count += 1
            message = HOSTILE[self.count % len(HOSTILE)]
            self.tip = self.repository.commit(
                {"work": f"# {self.count}\n{WORK.format(seven=seven, bytes=METRICS)}"}, subject=message
            )

    def publish(self) -> dict[str, object]:
        """Publish and return the JSON."""
        data = json.loads(perftrail("publish", self.study, "-o", self.site, "--json").stdout)
        assert isinstance(data, dict)
        return data

    def files(self) -> dict[str, bytes]:
        """Return the content of each published file below reports."""
        paths = sorted(path for path in (self.site / "reports").rglob("*") if path.is_file())
        return {str(path.relative_to(self.site)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that was published before a change, and measured after it by another runner."""
    made = Project(tmp_path_factory.mktemp("project"))
    made.commit(8)
    made.measure("..main")
    made.publish()
    before = made.tip
    made.commit(8, seven=150)
    made.measure(f"{before}..main")
    return made


@pytest.fixture(scope="module")
def published(project: Project) -> dict[str, bytes]:
    """The files of the first publication; the second one is there, too."""
    before = project.files()
    second = project.publish()
    assert (second["reports"], second["revisions"], second["badge"]) == (2, 16, "1 slower")
    return before


def test_a_later_publication_keeps_everything_and_finds_the_change_over_both(
    project: Project, published: dict[str, bytes]
) -> None:
    files = project.files()
    assert {name: files[name] for name in published} == published
    state = json.loads((project.site / "state.json").read_text())
    assert (state["counts"]["slower"], state["counts"]["same"]) == (1, METRICS - 1)
    assert state["metrics"][0]["name"] == "print.item_06"
    assert state["metrics"][0]["effect"] == pytest.approx(1.5, rel=0.01)
    assert state["results"] == [name for name in files if name.endswith("results.json")]
    badge = json.loads((project.site / "badge.json").read_text())
    assert (badge["message"], badge["schemaVersion"]) == ("1 slower", 1)
    assert not list(project.site.glob(".publish-*"))


def test_nothing_new_adds_no_report(project: Project, published: dict[str, bytes]) -> None:
    before = {**project.files(), "index": (project.site / "index.html").read_bytes()}
    again = project.publish()
    assert (again["report"], again["values"], again["reports"]) == (None, 0, 2)
    assert {**project.files(), "index": (project.site / "index.html").read_bytes()} == before


def test_published_values_are_imported_again(
    project: Project, published: dict[str, bytes], tmp_path: Path
) -> None:
    done = perftrail("import", project.site / "reports", "-o", tmp_path / "imported", "--json")
    imported = json.loads(done.stdout)
    assert (len(imported["revisions"]), len(imported["benchmarks"])) == (16, 2)
    assert imported["values"] == (8 + 9) * METRICS * 3
    shown = json.loads(perftrail("show", tmp_path / "imported", "--json").stdout)
    changes = [
        row["change"]["effect"]["value"] for row in shown if row.get("change") and row["change"]["alert"]
    ]
    noise = 1.01  # each value is at most 0.7 % above its base, so a false alarm cannot be larger
    assert [each for each in changes if each > noise] == [pytest.approx(1.5, rel=0.01)]


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serve a directory as `python -m http.server` does; yield its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    handler = functools.partial(Quiet, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("from_disk", "width", "scheme"),
    [(True, 1280, "light"), (False, 390, "dark")],
    ids=["from disk", "from a file server"],
)
def test_the_site_works_from_disk_and_from_a_file_server(
    project: Project,
    published: dict[str, bytes],
    browser: Browser,
    from_disk: bool,
    width: int,
    scheme: Scheme,
) -> None:
    with served(project.site) as address:
        own = "file:" if from_disk else address
        with open_page(browser, own, "data:", "blob:", width=width, scheme=scheme) as page:
            page.goto((project.site / "index.html").as_uri() if from_disk else address)
            assert "1 of 44 metrics became slower within the newest 16" in page.locator("h1").inner_text()
            shown = page.locator(".metrics tbody tr:visible")
            assert shown.count() == 40
            assert "print.item_06" in shown.first.inner_text()
            page.get_by_text("Show all").click()
            assert shown.count() == METRICS
            page.get_by_role("searchbox").fill("parse item_0")
            assert shown.count() == 10
            page.get_by_role("searchbox").fill("")
            page.get_by_role("button", name="slower 1").click()
            assert shown.count() == 1
            page.locator(".name button").first.click()
            page.wait_for_selector(".panel svg")
            assert page.locator(".panel svg g").count() == 16
            assert "worse" in page.locator(".panel ul").inner_text()
            page.locator(".panel svg").focus()
            page.keyboard.press("Home")
            assert "3 samples" in page.locator(".panel .readout").inner_text()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate("window.pwned") is None
            assert violations(page) == []
            assert page.locator("main script, main iframe, main object").count() == 0
            page.reload()  # the address names the open metric
            page.wait_for_selector(".panel svg")
            page.locator(".reports a").last.click()
            page.wait_for_selector(".lead svg.marks")
            assert page.url.endswith("/index.html")


def test_the_badge_is_drawn(project: Project, published: dict[str, bytes], browser: Browser) -> None:
    with open_page(browser, "file:") as page:
        page.goto((project.site / "badge.svg").as_uri())
        box = page.locator("svg").bounding_box()
        assert box is not None
        assert (box["height"], 100 < box["width"] < 200) == (20, True)
        texts = page.locator("text").all_text_contents()
        assert texts == ["performance", "1 slower"]
        ends = page.evaluate(
            "[...document.querySelectorAll('text')].map(text => text.getBoundingClientRect().right)"
        )
        assert ends[-1] <= box["x"] + box["width"] - 4


def test_a_killed_publication_leaves_the_site_whole(
    project: Project, published: dict[str, bytes], tmp_path: Path
) -> None:
    site = tmp_path / "site"
    shutil.copytree(project.site, site)
    project.commit(1, seven=150)
    project.measure("main~1..main")
    before = {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    process = begin("publish", project.study, "-o", site, session=True)
    while process.poll() is None and not list(site.glob(".publish-*/*")):
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    after = {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert {name: after[name] for name in before} == before
    for name in {path.parent for path in (site / "reports").glob("*/*")}:
        assert {path.name for path in name.iterdir()} == {"index.html", "results.json"}
    done = perftrail("publish", project.study, "-o", site, "--json")
    assert json.loads(done.stdout)["reports"] == 3
    assert not list(site.glob(".publish-*"))


def test_what_is_not_a_site_is_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the manual")
    done = perftrail("publish", project.study, "-o", tmp_path, expect=2)
    assert "publish into another directory" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_a_comparison_of_the_newest_revision_is_the_state(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    base = repository.commit({"work": "echo took 100; echo kept 7\n"}, subject="the <b>base</b>")
    head = repository.commit({"work": "echo took 110; echo kept 7\n"})
    study = tmp_path / "perftrail.toml"
    study.write_text(
        f'[source]\nkind = "git"\nlocation = "{repository.path}"\n[measure]\nwarmups = 0\n'
        '[benchmark.work]\ncommand = "sh {build}/work"\n'
        "metrics.took = { pattern = 'took ([0-9]+)', unit = \"s\" }\n"
        "metrics.kept = { pattern = 'kept ([0-9]+)' }\n"
    )
    perftrail("compare", base, head, study)
    site = tmp_path / "site"
    published = json.loads(perftrail("publish", study, "-o", site, "--json").stdout)
    assert published["answer"] == f"1 of 2 metrics is slower than at {base[:10]} “the <b>base</b>”."
    assert published["badge"] == "1 slower"
    state = json.loads((site / "state.json").read_text())
    assert [(each["name"], each["state"]) for each in state["metrics"]] == [
        ("work.took", "slower"),
        ("work.kept", "same"),
    ]
    assert state["metrics"][0]["effect"] == pytest.approx(1.1)


def workflow(heading: str) -> Any:
    """Return the YAML of a section of the page about CI."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "ci.md").read_text()
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])


def github_script() -> str:
    """Return the lines of the workflow for GitHub that publish."""
    steps = workflow("Publish on GitHub Pages")["jobs"]["publish"]["steps"]
    [lines] = [step["run"] for step in steps if step.get("name") == "Publish"]
    return str(lines)


def gitlab_script() -> str:
    """Return the lines of the job for GitLab that publish."""
    lines = workflow("Publish on GitLab Pages")["pages"]["script"]
    return "\n".join(line for line in lines if not line.startswith(("pip ", "perftrail compare ")))


@pytest.mark.parametrize(
    ("script", "branch"),
    [
        (github_script, "gh-pages"),
        pytest.param(gitlab_script, "performance-pages", marks=pytest.mark.long),
    ],
)
def test_the_workflows_in_the_docs_add_to_their_branch(
    script: Callable[[], str], branch: str, tmp_path: Path
) -> None:
    origin = Repository(tmp_path / "origin")
    study = (
        '[source]\nkind = "git"\nlocation = ".."\n[measure]\ninvocations = 3\nwarmups = 0\n[benchmark.work]\n'
    )
    files = {"benchmarks/perftrail.toml": f'{study}command = "sh {{build}}/work"\n'}
    programs = tmp_path / "perftrail" / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "perftrail").symlink_to(Path(sys.executable).parent / "perftrail")
    env = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_SHA": "a1",
        "CI_COMMIT_SHA": "a1",
        "PERFTRAIL_TOKEN": "token",
        "CI_SERVER_HOST": "gitlab.invalid",
        "CI_PROJECT_PATH": "a/b",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{origin.path}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://perftrail:token@gitlab.invalid/a/b.git",
    }
    for number in (1, 2):
        origin.commit({**files, "work": f"# {number}\n"})
        checkout = tmp_path / f"checkout-{number}"
        subprocess.run(["git", "clone", "--quiet", str(origin.path), str(checkout)], check=True)
        perftrail("run", checkout / "benchmarks")
        done = subprocess.run(
            ["bash", "-e", "-c", script()], cwd=checkout, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        listed = origin.git("ls-tree", "-r", "--name-only", branch).splitlines()
        assert {"index.html", "badge.svg", "badge.json", "state.json"} <= set(listed)
        assert sum(name.endswith("/results.json") for name in listed) == number
        assert "work" not in listed
    assert len(origin.git("log", "--format=%s", branch).splitlines()) == 2
