"""The docs say what the code does: generated pages are current, every command has its line."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from perftrail.cli.main import COMMANDS
from tests.needs import needs, skip_for

ROOT = Path(__file__).parents[2]
MAN = ROOT / "man" / "man1"


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
    code = (
        "import json, runpy; found = runpy.run_path('docs/generate.py'); "
        "print(json.dumps({**found['pages'](), **found['man_pages']()}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    written: dict[str, str] = json.loads(done.stdout)
    return written


@pytest.mark.parametrize(
    "file", ["study-file.md", "study-file.schema.json", "commands.md", "notebook.md", "openapi.json"]
)
def test_a_generated_page_is_what_the_code_says(pages: dict[str, str], file: str) -> None:
    written = (ROOT / "docs" / "reference" / file).read_text(encoding="utf-8")
    assert written == pages[file], "out of date: run `make docs`"


def test_the_manual_pages_are_what_the_code_says(pages: dict[str, str]) -> None:
    written = {file.name: file.read_text(encoding="utf-8") for file in MAN.iterdir()}
    names = {"perftrail.1", "git-perftrail.1", *(f"perftrail-{command}.1" for command in COMMANDS)}
    assert written.keys() == names
    assert written == {name: pages[name] for name in names}, "out of date: run `make docs`"


MACROS = {".TH", ".SH", ".SS", ".PP", ".TP", ".BR", ".br", ".nf", ".fi", '.\\"'}


@pytest.mark.parametrize("page", sorted(MAN.iterdir()), ids=lambda page: page.name)
def test_a_manual_page_is_valid(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} <= MACROS
    if shutil.which("man") is None:
        skip_for("man")
    words = ["man", "--warnings=all", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs("man")
def test_git_help_shows_the_manual_page() -> None:
    path = (
        f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # git shows the pages of commands that it finds
    )
    environment = {
        **os.environ,
        "PATH": path,
        "MANPATH": str(MAN.parent),
        "MANPAGER": "cat",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["git", "help", "--man", "perftrail"], capture_output=True, text=True, check=False, env=environment
    )
    assert "git perftrail is perftrail: git starts it like its own commands" in done.stdout, done.stderr


def test_the_architecture_names_the_packages_of_today() -> None:
    written = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert written == generator().architecture(written), "out of date: run `make docs`"


def test_a_page_has_the_numbers_of_the_results() -> None:
    pages = generator().pages_with_results()
    assert len(pages) >= 9
    for page in pages:
        written = page.read_text(encoding="utf-8")
        assert written == generator().with_results(written), f"{page.name} is out of date: run `make docs`"


def test_no_line_begins_with_a_value_and_no_table_has_one() -> None:
    """Markdown would read it as HTML, outside of its paragraph; in a table, its bars would begin cells."""
    pages = generator().pages_with_results()
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if re.match(r"\s*(<!-- value|\|.*<!-- value)", line)] == []


def test_the_page_on_the_search_has_at_most_1500_words() -> None:
    text = (ROOT / "docs" / "explanation" / "searching.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1500


def test_a_number_that_differs_from_the_results_is_corrected() -> None:
    begin = "<!-- value results/verdicts.md | right | metric = wall | tool = perftrail measure"
    one = f"{begin} | true difference = 5% -->"
    assert generator().with_results(f"{one}200<!-- end -->") == f"{one}193<!-- end -->"
    with pytest.raises(ValueError, match="2 rows, not one"):
        generator().with_results(f"{begin} -->193<!-- end -->")


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
