"""The pages for contributors are short, their steps name what exists, and their examples work where the pages say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contracts.pages import PAGES, code

ROOT = Path(__file__).parents[2]
NAMES = ("new-engine.md", "new-exporter.md", "new-reader.md", "new-source.md")

EXTENDED = """\
import sys
from typing import Literal
import perftrail.model.source
perftrail.model.source.SourceKind = Literal["git", "fossil", "release", "directory", "samples", "snapshots"]
import demobench, benchstat, pool, snapshots
from perftrail import formats
from perftrail.cluster import fleet
from perftrail.formats import exports
sys.modules |= {
    "perftrail.formats.demobench": demobench,
    "perftrail.formats.benchstat": benchstat,
    "perftrail.sources.snapshots": snapshots,
}
formats.FORMATS["demobench"] = "demobench's JSON"
exports.FORMATS["benchstat"] = exports.Format("benchstat", "everything", "Go's benchmark format.")
fleet.ENGINES["pool"] = pool.pool_workers
if __name__ == "__main__":
    from perftrail.cli.main import main
    main(sys.argv[1:])
"""
"""perftrail with the examples of all pages, each registered in the one place that its page names."""

STUDY = """\
[source]
kind = "snapshots"
location = "nightly"
range = "001.."
[build]
steps = ["true"]
outputs = ["work.sh"]
[benchmark.b]
command = "sh {build}/work.sh"
metrics.cost = { pattern = "cost ([0-9]+)" }
[measure]
warmups = 0
invocations = 2
"""


@pytest.fixture
def extended(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """perftrail, extended as the pages say; it runs in a new directory."""
    modules = {"source": "snapshots", "reader": "demobench", "exporter": "benchstat", "engine": "pool"}
    for page, module in modules.items():
        (tmp_path / f"{module}.py").write_text(code(f"new-{page}.md"))
    (tmp_path / "extended.py").write_text(EXTENDED)

    def perftrail(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "extended.py", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return perftrail


def test_these_are_the_pages() -> None:
    assert tuple(sorted(path.name for path in PAGES.glob("*.md"))) == NAMES
    contributing = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert all(f"(docs/contributing/{name})" in contributing for name in NAMES)


@pytest.mark.parametrize("page", NAMES)
def test_a_page_is_short_and_every_file_that_it_links_to_exists(page: str) -> None:
    text = (PAGES / page).read_text("utf-8")
    assert text.count("\n") < 100
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links
    assert [link for link in links if not (PAGES / link).exists()] == []


@pytest.mark.parametrize("page", NAMES)
def test_the_names_in_a_page_are_in_the_files_that_it_names(page: str) -> None:
    for name, file in re.findall(r"`(\w+)` in\s+\[`[^`]+`\]\(([^)]+)\)", (PAGES / page).read_text("utf-8")):
        assert name in (PAGES / file).read_text("utf-8")


@pytest.mark.slow("builds")
def test_a_history_of_the_new_kind_is_measured_by_the_new_engine(
    extended: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "perftrail.toml").write_text(STUDY)
    for name in ("000", "001", "002"):
        (tmp_path / "nightly" / name).mkdir(parents=True)
        (tmp_path / "nightly" / name / "work.sh").write_text(f"echo cost 1{name}")
    run = extended("run", ".", "--engine", "pool:2")
    assert run.returncode == 0, run.stderr
    shown = json.loads(extended("show", ".", "--json").stdout)
    assert {(each["revision"], each["estimate"]["value"]) for each in shown} == {("001", 1001), ("002", 1002)}
    assert extended("run", ".", "--engine", "pool:0").returncode == 2


@pytest.mark.slow("builds")
def test_the_new_reader_imports_what_the_new_exporter_writes_for_another_tool(
    extended: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "report.json").write_text(code("new-reader.md", "json"))
    imported = extended("import", "report.json", "-o", "study")
    assert imported.returncode == 0, imported.stderr
    lines = extended("export", "study", "--format", "benchstat").stdout.splitlines()
    assert "BenchmarkDemo.Sums.Fold/N=1000/Kind=list 1 2500.0 ns/op" in lines
    assert "BenchmarkDemo.Sums.Fold/N=1000/Kind=list 1 24.0 allocated" in lines
