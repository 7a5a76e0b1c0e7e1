"""perftrail starts Python in directories of other people, and imports nothing from there."""

from __future__ import annotations

import re
import subprocess

from perftrail.own_python import own_python
from tests.starting import REPOSITORY

WORDS_FOR_PEOPLE = {
    "src/perftrail/own_python.py",
    "src/perftrail/present/output_settings.py",
    "src/perftrail/sources/packages/pypi.py",
}
"""Files with the path of the interpreter: one starts it, the others print it."""

STARTED = re.compile(r"""(?:python[0-9.]*|PERFTRAIL_PYTHON)["']?[ ]+-(?!I\b|P\b)""")
"""A Python that imports from the current directory, in a shell line."""


def tracked(*patterns: str) -> list[str]:
    words = ["git", "ls-files", "--", *patterns]
    return subprocess.run(words, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.split()


def test_a_started_python_imports_nothing_from_the_current_directory() -> None:
    assert own_python("-m", "perftrail")[1:3] == ["-P", "-s"]


def test_python_is_started_in_one_way() -> None:
    found = {
        name for name in tracked("src/*.py") if "sys.executable" in (REPOSITORY / name).read_text("utf-8")
    }
    assert found == WORDS_FOR_PEOPLE


def test_scripts_and_templates_start_an_isolated_python() -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in tracked("ci/*", "action.yml", "deploy/*", "docs/how-to/ci.md")
        for number, line in enumerate((REPOSITORY / name).read_text("utf-8").splitlines(), start=1)
        if STARTED.search(line) and not line.lstrip().startswith("#")
    ]
    assert found == []
