"""The versions of tools that belong to a build's identity."""

from __future__ import annotations

import errno
import os
import platform
from pathlib import Path

import pytest

from perftrail.builds.toolchain import Toolchain


def test_a_c_library_without_the_name_of_glibc_is_musl(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Alpine, confstr reports an invalid argument."""

    def confstr(name: str) -> str:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "confstr", confstr)
    machine, library, *tools = Toolchain(lambda *_: "", path="").fingerprint(["cc -O2 a.c"])
    assert machine == platform.machine()
    assert library == "musl"
    assert tools


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Two directories, `a` and `b`, with equal programs `planted` and `python3`."""
    for path in (tmp_path / directory / name for directory in "ab" for name in ("planted", "python3")):
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


def identities(text: str, path: Path) -> list[str]:
    """Return the identities of the programs that a text names, as a new process finds them."""
    return Toolchain(lambda *_: "Python 3\n", path=str(path)).programs([text])


def test_a_program_is_its_version_its_path_and_its_content(programs: Path) -> None:
    text = "planted < {planted}/x; python3 missing /other/planted"
    here = identities(text, programs / "a")
    planted, python = here
    assert planted.startswith(f"planted\nplanted is {programs}/a/planted, content ")
    assert python.startswith(f"python3: Python 3\npython3 is {programs}/a/python3, content ")
    assert identities(text, programs / "b") != here
    (programs / "a" / "planted").write_text("#!/bin/bash\n")
    assert identities(text, programs / "a")[0] != planted
    assert Toolchain(lambda *_: "Python 4", path=str(programs / "a")).programs([text])[1] != python


def test_a_program_below_the_study_is_the_same_in_another_directory(programs: Path) -> None:
    def identity(study: Path) -> list[str]:
        return Toolchain(lambda *_: "", path=str(programs / "a"), study=study).programs(["planted"])

    assert "{study}/a/planted" in identity(programs)[0]
    assert str(programs) in identity(programs / "b")[0]


def test_a_program_that_cannot_be_read_has_its_size_and_date(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refused)
    (found,) = Toolchain(lambda *_: "", path=str(programs / "a")).programs(["planted"])
    assert found.startswith("planted")


def test_programs_are_searched_in_the_path_of_the_study(programs: Path) -> None:
    tools = Toolchain(lambda *_: "", path=str(programs / "a"))
    (there,) = tools.programs(["planted"], path=f"/missing:{programs}/b")
    assert f"planted is {programs}/b/planted" in there


def test_words_of_paths_and_placeholders_are_no_programs(programs: Path) -> None:
    assert (
        identities("{planted} {build}/planted /opt/planted planted/x --planted x-planted", programs / "a")
        == []
    )


def test_a_cross_compiler_is_an_input_of_a_build(programs: Path) -> None:
    tools = Toolchain(lambda *_: "", path=str(programs / "a"))
    assert any(each.startswith("planted\n") for each in tools.fingerprint(["CC=planted make"]))


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="the C library here is not glibc")
def test_glibc_has_its_version() -> None:
    assert Toolchain(lambda *_: "", path="").fingerprint([])[1] == " ".join(platform.libc_ver())
