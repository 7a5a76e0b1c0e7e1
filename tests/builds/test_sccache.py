"""sccache, if installed, caches compiled Rust crates between builds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from perftrail.builds.compiler_caches import Caches, is_usable_sccache
from perftrail.model.build import Built
from tests.builds.subject_builder import Project, recipe
from tests.needs import reason

PYTHON_DIRECTORY = str(Path(sys.executable).parent)
MISSING = [
    name
    for name in ("cargo", "sccache")
    if shutil.which(name, path=f"{PYTHON_DIRECTORY}{os.pathsep}{os.environ['PATH']}") is None
]

BUILD = "cargo build --release --offline --quiet"
STATS = "sccache --show-stats"


def crate(vendor: Path, number: int) -> Mapping[str, str]:
    """A program that prints a number, with a library from a registry in a directory."""
    return {
        "Cargo.toml": '[package]\nname = "program"\nversion = "0.1.0"\nedition = "2021"\n'
        '[dependencies]\nadding = "1.0.0"\n',
        "src/main.rs": f'fn main() {{ println!("{{}}", adding::add({number}, 1)); }}\n',
        ".cargo/config.toml": '[source.crates-io]\nreplace-with = "vendored"\n'
        f'[source.vendored]\ndirectory = "{vendor}"\n',
    }


def vendored(directory: Path) -> Path:
    package = directory / "adding"
    (package / "src").mkdir(parents=True)
    (package / "src" / "lib.rs").write_text("pub fn add(a: u32, b: u32) -> u32 { a + b }\n")
    (package / "Cargo.toml").write_text(
        '[package]\nname = "adding"\nversion = "1.0.0"\nedition = "2021"\n[lib]\n'
    )
    (package / ".cargo-checksum.json").write_text('{"files": {}}')
    return directory


def hits(built: Built) -> int:
    """How many cache hits the server counted."""
    found = re.search(r"^Cache hits +(\d+)$", Path(built.log).read_text(), re.MULTILINE)
    assert found is not None, Path(built.log).read_text()
    return int(found[1])


@pytest.mark.slow("builds")
@pytest.mark.skipif(bool(MISSING), reason=reason(MISSING))
def test_a_dependency_that_one_build_compiled_is_reused_by_another(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = vendored(tmp_path / "vendor")
    how = recipe(f"{BUILD}; {STATS}", outputs=("target/release/program",))
    monkeypatch.setenv("PATH", f"{PYTHON_DIRECTORY}{os.pathsep}{os.environ['PATH']}")
    first = project.build(project.commit(crate(vendor, 1)), how)
    second = project.build(project.commit(crate(vendor, 2)), how)
    assert (hits(first), hits(second)) == (0, 1)
    assert f"rustc through sccache, stored in {project.builds / 'sccache'}" in Path(second.log).read_text()
    program = Path(second.directory, "target/release/program")
    assert subprocess.run([program], check=True, capture_output=True, text=True).stdout == "3\n"


def test_an_sccache_without_separate_servers_is_not_used() -> None:
    assert is_usable_sccache("sccache 0.16.0\n")
    assert is_usable_sccache("sccache 1.0.0\n")
    assert not is_usable_sccache("sccache 0.4.0-pre.6\n")
    assert not is_usable_sccache("sccache: error\n")


def test_each_build_has_a_server_of_its_own_and_a_budget_is_handed_on(tmp_path: Path) -> None:
    caches = Caches(sccache=tmp_path / "sccache", sccache_bytes=1e6)
    one, other = (caches.environment({"PATH": "/bin"}, home=tmp_path / name) for name in ("one", "other"))
    assert one["SCCACHE_SERVER_UDS"] != other["SCCACHE_SERVER_UDS"]
    assert len(one["SCCACHE_SERVER_UDS"]) < 100
    assert one["SCCACHE_CACHE_SIZE"] == "1000000"
    assert one["PATH"] == f"{tmp_path}/sccache-wrapper:/bin", "Meson and CMake find it themselves"
    assert Caches().environment({"PATH": "/bin"}, home=tmp_path) == {"PATH": "/bin"}
