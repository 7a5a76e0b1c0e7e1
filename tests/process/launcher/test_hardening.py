"""Hardening options of the build, read from its executables."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.needs import needs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs("readelf")


def read_elf(file: Path, *options: str) -> str:
    return subprocess.run(
        ["readelf", "-W", *options, file], check=True, capture_output=True, text=True
    ).stdout


def test_the_launcher_has_read_only_relocations_and_no_executable_stack(plain_launcher: Path) -> None:
    segments = read_elf(plain_launcher, "--program-headers").splitlines()
    assert any(line.split()[:1] == ["GNU_RELRO"] for line in segments)
    assert [line.split()[-2] for line in segments if "GNU_STACK" in line] == ["RW"]
    assert not [line for line in segments if line.split()[:1] == ["LOAD"] and "RWE" in line]


def test_the_launcher_is_compiled_with_a_stack_protector(plain_launcher: Path) -> None:
    flags = (plain_launcher.parent / "CMakeFiles/perftrail-launcher.dir/flags.make").read_text()
    assert "-fstack-protector-strong" in flags
    assert "-D_FORTIFY_SOURCE=2" in flags


@pytest.mark.parametrize("name", ["locks", "allocations"])
def test_a_preloaded_object_has_read_only_relocations_and_a_stack_protector(
    plain_launcher: Path, name: str
) -> None:
    file = plain_launcher.parent / f"perftrail-{name}.so"
    assert "GNU_RELRO" in read_elf(file, "--program-headers")
    assert "BIND_NOW" in read_elf(file, "--dynamic")
    assert "__stack_chk_fail" in read_elf(file, "--symbols")
