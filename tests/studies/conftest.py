"""A Tcl that is built once for all tests and their processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.errors import SourceError
from perftrail.opening import open_session
from tests.e2e.printing import perftrail
from tests.shared_directory import shared_directory

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="session")
def allocators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study of Tcl's allocators with the old one alone, compiled with -O0 and run once with up to eight threads.

    It is read only: all processes of a test run share it.
    """
    if not Path("/usr/include/zlib.h").is_file():
        pytest.skip("zlib1g-dev is not installed")
    return shared_directory(tmp_path_factory, "tcl", fill=_run) / "study"


def _run(directory: Path) -> None:
    study = directory / "study"
    shutil.copytree(
        STUDIES / "tcl-thread-allocator", study, ignore=shutil.ignore_patterns(".perftrail", "answers")
    )
    file = study / "perftrail.toml"
    text = file.read_text().replace('"-O2"', '"-O0"').replace('"wait 5s"', '"flag"')
    # A library has no layout: recording its links would only build it once more.
    text = (
        text.replace("[build]\n", "[build]\npin = false\n")
        .replace("invocations = 12", "invocations = 1\nwarmups = 0")
        .replace("} 25 {study}", "} 5 {study}")
    )
    file.write_text(text)
    with open_session(studyfile.load(str(file)), store=None) as session:
        try:
            [revision] = session.source.history()
            session.source.materialise(revision, str(study.parent / "tree"), str(study.parent / "log"))
        except SourceError as error:
            pytest.skip(f"Tcl's source cannot be measured here: {error}")
    perftrail("run", file, "--only=variant=shared", "--only=threads=?")
