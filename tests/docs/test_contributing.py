"""The pages for contributors are short, their steps name what exists, and their examples work where the pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.pages import PAGES, code

ROOT = Path(__file__).parents[2]
NAMES = ("new-engine.md", "new-exporter.md", "new-reader.md", "new-source.md")

WITH_ONE_MORE_KIND = """\
import runpy, sys, types
from typing import Literal
import perftrail.model.source as model
model.SourceKind = Literal["git", "fossil", "release", "directory", "samples", "snapshots"]
from perftrail import sources, studyfile
module = sys.modules["perftrail.sources.snapshots"] = types.ModuleType("perftrail.sources.snapshots")
exec(open("snapshots.py").read(), module.__dict__)
study = studyfile.load(".")
print([each.id for each in sources.open_source(study, cache="cache", starter=None).history()])
"""

STUDY = """\
[source]
kind = "snapshots"
location = "nightly"
range = "001.."
[benchmark.b]
command = "true"
"""


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


def test_a_study_file_knows_a_kind_that_is_registered_as_the_page_says(tmp_path: Path) -> None:
    for name in ("000", "001", "002"):
        (tmp_path / "nightly" / name).mkdir(parents=True)
    (tmp_path / "perftrail.toml").write_text(STUDY)
    (tmp_path / "snapshots.py").write_text(code("new-source.md"))
    command = [sys.executable, "-c", WITH_ONE_MORE_KIND]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['001', '002']\n", "")
