"""The docs say what the code does: generated pages are current, every command has its line."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from perftrail.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Every page as a new process writes it: click remembers the help of commands that other tests called."""
    code = "import json, runpy; print(json.dumps(runpy.run_path('docs/generate.py')['pages']()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    written: dict[str, str] = json.loads(done.stdout)
    return written


@pytest.mark.parametrize(
    "file", ["study-file.md", "study-file.schema.json", "commands.md", "notebook.md", "openapi.json"]
)
def test_a_generated_page_is_what_the_code_says(pages: dict[str, str], file: str) -> None:
    written = (ROOT / "docs" / "reference" / file).read_text(encoding="utf-8")
    assert written == pages[file], "out of date: run `make docs`"


def test_the_architecture_names_the_packages_of_today() -> None:
    written = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert written == generator().architecture(written), "out of date: run `make docs`"


@pytest.mark.parametrize(
    "path",
    sorted(set(re.findall(r"`([a-z_]+/[a-z_/]*[a-z_]+\.py)`", (ROOT / "ARCHITECTURE.md").read_text()))),
)
def test_every_file_that_the_architecture_names_is_there(path: str) -> None:
    assert (ROOT / "src" / "perftrail" / path).is_file()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_names_every_command(command: str) -> None:
    assert f"`perftrail {command}`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(file.name[:4]) for file in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


MERGE_MARKERS = re.compile(r"^(?:<<<<<<<|=======$|>>>>>>>)", re.MULTILINE)


def test_no_page_has_the_marks_of_a_merge() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "*.md", "*.toml"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in tracked.stdout.split("\0") if name]
    marked = [name for name in names if MERGE_MARKERS.search((ROOT / name).read_text(encoding="utf-8"))]
    assert len(names) > 50
    assert marked == []
