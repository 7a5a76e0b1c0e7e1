"""Differences between two revisions: real programs under every profiler of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import chromium, open_page
from tests.e2e.printing import perftrail_here
from tests.e2e.releases import STUDY, Releases, files, table, write_study
from tests.needs import needs
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")


def perftrail(*arguments: str, expect: int = 0, path: str | None = None) -> subprocess.CompletedProcess[str]:
    state = os.environ["XDG_STATE_HOME"]  # it knows the results
    bare = None if path is None else {"PATH": path, "HOME": "/nonexistent", "XDG_STATE_HOME": state}
    done = start(*arguments, env=bare)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    """A release, then a commit that locks a mutex in every step, then a commit that changes only the docs."""
    repository = Repository(tmp_path_factory.mktemp("locked") / "repository")
    unlocked = repository.commit(files(table(alone=20_000, together=20_000)), subject="begin")
    culprit = repository.commit(
        files(table(alone=20_000, together=20_000, lock=True)),
        subject="\x1b[31mLock the table $(touch pwned)",
    )
    docs = repository.commit(files(table(alone=20_000, together=20_000, lock=True), NEWS="1"), subject="docs")
    repository.tag("v1.0", unlocked)
    return Releases(
        repository=repository, release=unlocked, fix=culprit, after_fix=docs, tangled="", merge=""
    )


@pytest.fixture(scope="module")
def explained(locked: Releases, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    study = write_study(tmp_path_factory.mktemp("explained") / "study", locked)
    done = perftrail("explain", locked.fix, str(study), "--only", "threads=8", "--json")
    answer: dict[str, Any] = json.loads(done.stdout)
    if shutil.which("strace"):  # it shows that the program opens no file of Python or Java
        assert "Python functions" not in done.stderr
        assert "Java functions" not in done.stderr
    return study, answer


def metric(answer: dict[str, Any], name: str) -> dict[str, Any]:
    [point] = answer["points"]
    [found] = [each for each in point["metrics"] if each["name"] == name]
    return dict(found)


def test_operations_on_the_added_lock_are_counted(
    explained: tuple[Path, dict[str, Any]], locked: Releases
) -> None:
    _, answer = explained
    assert (answer["culprit"], answer["against"]) == (locked.fix, locked.release)
    locks = metric(answer, "locks")
    assert (locks["before"], locks["after"]) == (0.0, 20_000.0)
    assert locks["differs"]
    assert locks["method"] == "preload"


def test_the_largest_difference_comes_first_and_an_equal_metric_does_not_differ(
    explained: tuple[Path, dict[str, Any]],
) -> None:
    _, answer = explained
    [point] = answer["points"]
    bounds = [each["log_ratio_lower_bound"] for each in point["metrics"]]
    assert bounds == sorted(bounds, reverse=True)
    assert "lock" in point["metrics"][0]["name"]
    assert not metric(answer, "steps")["differs"]


@needs("valgrind")
def test_instructions_of_the_locking_functions_are_reported(
    explained: tuple[Path, dict[str, Any]],
) -> None:
    _, answer = explained
    total = metric(answer, "instructions")
    assert total["differs"]
    assert total["after"] - total["before"] >= 20_000 * 10
    [point] = answer["points"]
    assert any("mutex_lock" in each["name"] and each["differs"] for each in point["metrics"])


@needs("valgrind")
def test_the_report_links_the_flame_graph_of_the_difference(
    explained: tuple[Path, dict[str, Any]], locked: Releases, tmp_path: Path
) -> None:
    study, _ = explained
    perftrail("run", str(study), "--only", "threads=8", "--only", f"revision={locked.fix}")
    written = perftrail("report", str(study), "-o", str(tmp_path), "--json").stdout
    [graph] = [Path(each["file"]) for each in json.loads(written)["files"] if "flame" in each["file"]]
    page = (tmp_path / "index.html").as_uri()
    with chromium() as browser, open_page(browser, tmp_path.as_uri(), offline=True) as opened:
        opened.goto(page)
        link = opened.locator("#why a")
        assert link.inner_text().startswith(f"Flame graph of the difference: {locked.fix[:10]}")
        link.click()
        assert opened.url == graph.as_uri()
        assert int(opened.locator("#flame").get_attribute("data-frames") or 0) > 1


@needs("valgrind")
def test_a_site_and_a_copy_of_the_store_have_the_flame_graph(
    explained: tuple[Path, dict[str, Any]], locked: Releases, tmp_path: Path
) -> None:
    study, _ = explained
    copy, site, report = tmp_path / "copy", tmp_path / "site", tmp_path / "report"
    perftrail("run", str(study), "--only", "threads=8", "--only", f"revision={locked.fix}")
    perftrail("store", "copy", str(study.parent), str(copy))
    perftrail("report", str(study), "--store", str(copy), "--format", "markdown", "-o", str(report))
    [graph] = report.glob("flame-*.html")
    assert f"({graph.name})" in (report / "report.md").read_text()
    published = json.loads(
        perftrail("publish", str(study), "--store", str(copy), "-o", str(site), "--json").stdout
    )
    page = Path(published["report"])
    assert f'href="{graph.name}"' in page.read_text()
    assert (page.parent / graph.name).read_bytes() == graph.read_bytes()
    perftrail("publish", str(study), "--store", str(copy), "-o", str(site))
    assert len(list((site / "reports").iterdir())) == 1


@needs("strace")
def test_system_calls_are_counted_by_name(explained: tuple[Path, dict[str, Any]]) -> None:
    _, answer = explained
    writes = metric(answer, "calls of write")
    assert (writes["before"], writes["after"]) == (1.0, 1.0)
    assert not writes["differs"]


def test_changed_lines_are_counted_by_file(explained: tuple[Path, dict[str, Any]]) -> None:
    _, answer = explained
    assert answer["changes"] == [{"path": "table.h", "added": 2, "removed": 2}]


def test_the_printed_text_has_no_control_characters(
    explained: tuple[Path, dict[str, Any]], locked: Releases
) -> None:
    study, _ = explained
    output = perftrail("explain", locked.fix, str(study), "--only", "threads=8", "--invocations", "2").stdout
    assert output.splitlines()[0].startswith(f"{locked.fix[:10]} “")
    if shutil.which("valgrind") is not None:
        assert " % in main: " in output.splitlines()[0]
        assert "20000 new calls of pthread_mutex_lock, 20000 new calls" in output.splitlines()[0]
    assert "locks" in output
    assert "\x1b" not in output
    assert not list(study.parent.parent.rglob("pwned"))


def test_revisions_with_equal_builds_are_reported_as_equal(
    explained: tuple[Path, dict[str, Any]], locked: Releases
) -> None:
    study, _ = explained
    output = perftrail("explain", locked.after_fix, str(study)).stdout
    assert "and its reference have equal builds" in output.splitlines()[0]


def test_unavailable_tools_are_reported_with_the_remedy(
    explained: tuple[Path, dict[str, Any]], locked: Releases, tmp_path: Path
) -> None:
    study, _ = explained
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "cc", "make", "sh", "ld", "as"):
        program = shutil.which(name)
        assert program is not None
        (tools / name).symlink_to(program)
    arguments = ("explain", locked.fix, str(study), "--only", "threads=1", "--invocations", "2", "--json")
    answer = json.loads(perftrail(*arguments, path=str(tools)).stdout)
    missing = {each["what"]: each["why"] for each in answer["unavailable"]}
    assert "strace is not installed" in missing["system calls"]
    assert "Valgrind is not installed" in missing["instructions"]
    assert metric(answer, "locks")["after"] == 20_000.0


@pytest.mark.parametrize(
    ("culprit", "more", "words"),
    [
        ("nosuch", [], "no revision"),
        ("v1.0", [], "the first revision of its history"),
        ("v1.0", ["--against", "v1.0"], "cannot be compared with itself"),
        ("v1.0..HEAD", [], "a range is not a revision"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(
    locked: Releases, tmp_path: Path, culprit: str, more: list[str], words: str
) -> None:
    study = write_study(tmp_path / "study", locked)
    assert words in perftrail_here("explain", culprit, study, *more, expect=2).stderr


def test_a_revision_that_does_not_build_has_no_explanation(locked: Releases, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", locked, STUDY.replace('steps = ["make"]', 'steps = ["false"]'))
    output = perftrail("explain", locked.fix, str(study), expect=1).stdout
    assert output.startswith("no answer: ")
    assert "build: " in output
