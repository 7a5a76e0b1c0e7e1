"""What `make release` checks in each wheel, with the programs that are installed here."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.model.process import Command
from perftrail.process.launcher import Launcher, launcher_path
from release import first_use
from release.readme import REPOSITORY as FORGE
from release.readme import with_addresses
from release.wheel import GLIBC, OBJECTS, PLATFORMS, PROGRAM, RECORDER, Elf, Platform, problems, starts
from tests.starting import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = platform.machine()
VERSION = (REPOSITORY / "pyproject.toml").read_text().split('\nversion = "')[1].split('"')[0]
pytestmark = pytest.mark.skipif(
    not Elf.read(launcher_path().read_bytes()).static, reason="the launcher here is not static"
)


PROGRAMS = {PROGRAM: launcher_path(), RECORDER: launcher_path().with_name("perftrail-recorder")}


@dataclass
class Wheel:
    """A wheel for musl with the launcher of this machine, in which a test changes something."""

    tags: tuple[str, ...] = (f"py3-none-musllinux_1_1_{HERE}",)
    programs: Mapping[str, Path] = field(default_factory=lambda: dict(PROGRAMS))
    mode: int = 0o755
    pages: tuple[str, ...] = ("perftrail-0.data/data/share/man/man1/git-perftrail.1",)

    def write(self, directory: Path) -> Path:
        file = directory / "perftrail.whl"
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("perftrail-0.dist-info/WHEEL", "".join(f"Tag: {tag}\n" for tag in self.tags))
            for name, program in self.programs.items():
                entry = zipfile.ZipInfo(name)
                entry.external_attr = self.mode << 16
                archive.writestr(entry, program.read_bytes())
            for name in self.pages:
                archive.writestr(name, "")
        return file


def test_a_complete_wheel_has_no_problems(tmp_path: Path) -> None:
    assert problems(Wheel().write(tmp_path), Platform("musl", HERE)) == []


OBJECT = launcher_path().with_name(Path(OBJECTS[0]).name)


@pytest.mark.parametrize(
    ("wheel", "problem"),
    [
        (Wheel(tags=(f"py3-none-linux_{HERE}",)), f"its tags are py3-none-linux_{HERE}"),
        (Wheel(programs={}), "its programs are missing"),
        (Wheel(mode=0o644), "is not executable"),
        (Wheel(pages=()), "no manual pages"),
        (Wheel(programs={PROGRAM: Path("/proc/self/exe")}), "is not static"),
        (Wheel(programs={PROGRAM: OBJECT}), "is not static"),
        (Wheel(programs={PROGRAM: launcher_path(), RECORDER: OBJECT}), "recorder is not static"),
        (Wheel(programs={PROGRAM: launcher_path()}), "its programs are"),
    ],
)
def test_each_mistake_is_a_problem(tmp_path: Path, wheel: Wheel, problem: str) -> None:
    found = problems(wheel.write(tmp_path), Platform("musl", HERE))
    assert any(problem in each for each in found), found


def test_a_program_of_another_architecture_is_a_problem(tmp_path: Path) -> None:
    other = "aarch64" if HERE == "x86_64" else "x86_64"
    found = problems(Wheel().write(tmp_path), Platform("musl", other))
    assert any(each.endswith(f"not for {other}") for each in found)


def test_a_wheel_for_glibc_needs_the_preloaded_objects(tmp_path: Path) -> None:
    glibc = Platform("glibc", HERE)
    wheel = Wheel(tags=tuple(f"py3-none-{tag}" for tag in glibc.tags))
    assert problems(wheel.write(tmp_path), glibc) == [f"its programs are {PROGRAM}, {RECORDER}"]


def test_a_later_glibc_than_that_of_the_tag_is_a_problem(tmp_path: Path) -> None:
    needed = Elf.read(OBJECT.read_bytes()).glibc
    found = problems(Wheel(programs={PROGRAM: OBJECT}).write(tmp_path), Platform("musl", HERE))
    assert any("needs glibc" in each for each in found) == (needed > (2, 17))
    assert needed >= (2, 2)


def test_other_files_are_not_elf() -> None:
    with pytest.raises(ValueError, match="not a 64-bit"):
        Elf.read(b"#!/bin/sh\n")


def test_there_are_wheels_for_two_c_libraries_and_two_architectures() -> None:
    tags = {tag for each in PLATFORMS for tag in each.tags}
    assert {"manylinux_2_17_x86_64", "manylinux_2_17_aarch64"} < tags
    assert {"musllinux_1_1_x86_64", "musllinux_1_1_aarch64"} < tags


def test_a_launcher_is_started_for_its_version() -> None:
    with Launcher() as launcher:
        libc = launcher.start().libc
    assert starts(launcher_path(), VERSION) == (libc == "musl")
    assert not starts(launcher_path(), "0.0.0")
    assert not starts(Path("/bin/true"), VERSION)


@pytest.mark.long
@pytest.mark.slow("starts")
def test_the_first_use_of_an_installed_perftrail_counts_with_each_preloaded_object(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first_use.main(str(Path(sys.executable).with_name("perftrail")))
    printed = capsys.readouterr().out
    assert re.search(r"^[1-9][0-9]+ allocations, [1-9][0-9]* locks$", printed, re.MULTILINE), printed


ZIG = REPOSITORY / ".build/release/bin/python"


@pytest.mark.long
@pytest.mark.slow("processor")
@pytest.mark.skipif(not ZIG.exists(), reason="Zig is not installed (make release)")
def test_objects_that_zig_builds_count_in_a_program_of_this_machine(tmp_path: Path) -> None:
    """The objects are linked for an old glibc with another compiler: they must work with the programs here."""
    asked = [str(ZIG), "-c", "import ziglang; print(ziglang.__path__[0])"]
    zig = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip() + "/zig"
    archiver = tmp_path / "zig-ar"
    archiver.write_text(f'#!/bin/sh\nexec "{zig}" ar "$@"\n')
    archiver.chmod(0o755)
    defined = {
        "CMAKE_TOOLCHAIN_FILE": REPOSITORY / "release/zig.cmake",
        "CMAKE_BUILD_TYPE": "Release",
        "ZIG": zig,
        "ZIG_AR": archiver,
        "TARGET": HERE,
        "GLIBC": GLIBC,
        "PERFTRAIL_PRELOADED": "ON",
    }
    configure = [
        "cmake",
        "-S",
        str(REPOSITORY),
        "-B",
        str(tmp_path),
        *(f"-D{k}={v}" for k, v in defined.items()),
    ]
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(REPOSITORY / ".build/zig")}
    for step in (configure, ["cmake", "--build", str(tmp_path)]):
        subprocess.run(step, env=environment, check=True, capture_output=True)
    command = Command(
        arguments=(sys.executable, "-c", "pass"), environment={"PATH": os.environ["PATH"]}, directory="/"
    )
    with Launcher(tmp_path / "perftrail-launcher") as launcher:
        assert launcher.start().libc == "musl"
        locks = launcher.run(replace(command, lock_counter="preload")).locks
        allocations = launcher.run(replace(command, allocation_counter="preload")).allocations
    assert locks is not None
    assert allocations is not None
    assert allocations.allocations > 100


WORKFLOWS = [REPOSITORY / "action.yml", *(REPOSITORY / ".github/workflows").glob("*.yml")]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_action_is_named_by_a_commit_with_its_version(file: Path) -> None:
    used = re.findall(r"uses: *(.*)", file.read_text("utf-8"))
    assert [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[0-9.]+", each)] == []
    assert used or file.name == "action.yml"


def test_one_action_has_one_commit() -> None:
    used = {each for file in WORKFLOWS for each in re.findall(r"uses: *(.*)", file.read_text("utf-8"))}
    assert len(used) == len({each.partition("@")[0] for each in used})


def test_the_image_has_a_base_with_a_digest() -> None:
    bases = re.findall(r"^FROM (.*)$", (REPOSITORY / "deploy/image/Dockerfile").read_text(), re.MULTILINE)
    assert bases
    assert all(re.fullmatch(r"[\w:.-]+@sha256:[0-9a-f]{64}", each) for each in bases), bases


def test_a_release_has_the_notes_of_its_version() -> None:
    program = [str(REPOSITORY / "release/notes.sh")]
    notes = subprocess.run([*program, VERSION], check=True, capture_output=True, text=True).stdout
    assert len(notes.splitlines()) > 10
    assert "## [" not in notes.replace("### ", "")
    assert subprocess.run([*program, "0.0.0"], check=False, capture_output=True).returncode == 1


def test_links_to_files_of_the_repository_become_addresses() -> None:
    changed = with_addresses("[![a](a.svg)](docs/a.md#b) [c](https://example.org) [d [e]](e) [here](#b)")
    assert changed == (
        f"[![a]({FORGE}/raw/main/a.svg)]({FORGE}/blob/main/docs/a.md#b) [c](https://example.org) "
        f"[d [e]]({FORGE}/blob/main/e) [here](#b)"
    )
