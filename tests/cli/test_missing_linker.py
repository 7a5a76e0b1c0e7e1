"""Relink lines need lld: commands name the package to install where it is missing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.test_init_pinning import OBJECTS, C
from tests.sources.repositories import Repository
from tests.starting import start

SHUFFLES = "-fuse-ld=lld -Wl,--shuffle-sections=.text*={layout}"
INSTALL = "lld is not installed; install lld (Debian: lld)"


def without_lld(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose search path has every installed program except lld."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in Path(directory).iterdir() if os.access(directory, os.R_OK) else ():
            link = programs / program.name
            if "lld" not in program.name and not link.is_symlink():
                link.symlink_to(program)
    return {**os.environ, "PATH": str(programs)}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "tiny")
    found.commit({**C, "Makefile": f"all: tiny\ntiny: {OBJECTS}\n\t$(CC) -o $@ {OBJECTS}\n"})
    return found


def test_check_and_a_failed_relink_name_the_package_of_a_missing_lld(
    repository: Repository, tmp_path: Path
) -> None:
    env = without_lld(tmp_path)
    start("init", cwd=repository.path, env=env)
    file = repository.path / "perftrail.toml"
    lines = f"relink = ['rm -f tiny && make CC=\"cc {SHUFFLES}\"']"
    file.write_text(file.read_text().replace("[build]\n", f"[build]\n{lines}\n"))
    assert f"build.relink: {INSTALL}" in start("check", cwd=repository.path, env=env).stdout
    tried = start("check", "--try", "1", cwd=repository.path, env=env)
    assert "none of these were relinked" in tried.stdout, tried.stdout + tried.stderr
    assert f"cannot be relinked with layout 1: {INSTALL}" in tried.stderr
    assert f"relink: {INSTALL}" in tried.stdout
    [failure] = json.loads(start("check", "--try", "1", "--json", cwd=repository.path, env=env).stdout)[
        "failures"
    ]
    assert (failure["stage"], failure["line"]) == ("relink", INSTALL)
