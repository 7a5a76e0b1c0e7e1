"""Build everything that a release publishes into `dist/`, and check it. Uploading is left to the release workflow.

The wheels are built from the sdist, so it is complete. Equal commits give files with equal bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform as host
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

import ziglang
from scikit_build_core.build import build_sdist

from release.wheel import GLIBC, PLATFORMS, PROGRAM, Platform, problems, starts

ROOT = Path(__file__).parents[1]
ZIG = Path(ziglang.__file__).with_name("zig")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCUMENTS = ("sbom.json",)
"""Files of other targets of the Makefile that a release publishes, if they are in `dist/`."""


def main() -> None:
    """Build and check all files, print one line for each step, and exit with 1 if a check fails."""
    options = argparse.ArgumentParser(prog="make release", description=__doc__)
    options.add_argument("--tag", help="tag of the release, which must be v and the version")
    options.add_argument("--only", metavar="MACHINE", help="build the wheels of one architecture")
    chosen = options.parse_args()
    if chosen.tag not in (None, f"v{PROJECT['version']}"):
        sys.exit(f"the tag is {chosen.tag}, and the version in pyproject.toml is {PROJECT['version']}")
    if git("status", "--porcelain"):
        sys.exit(
            "the working tree has uncommitted changes; commit them, because the sdist would contain them"
        )
    os.environ["SOURCE_DATE_EPOCH"] = git("log", "-1", "--format=%ct")
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = str(ROOT / ".build/zig")
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    for old in (*dist.glob("*.whl"), *dist.glob("*.tar.gz")):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="perftrail-release-") as name:
        source = unpacked_sdist(dist, Path(name))
        wheels = [
            checked_wheel(source, platform, dist, Path(name))
            for platform in PLATFORMS
            if chosen.only in (None, platform.machine)
        ]
        native = next((each for each in wheels if f"manylinux2014_{host.machine()}" in each.name), None)
        if native:
            try_installed(native, Path(name))
    write_sums(dist)


def git(*arguments: str) -> str:
    """Return what git prints about this repository."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def unpacked_sdist(dist: Path, directory: Path) -> Path:
    """Build the sdist into `dist`, and return the directory of its files."""
    os.chdir(ROOT)  # a build backend builds the project in the current directory
    sdist = dist / build_sdist(str(dist))
    with tarfile.open(sdist) as archive:
        archive.extractall(directory, filter="data")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB", flush=True)
    return directory / sdist.name.removesuffix(".tar.gz")


def checked_wheel(source: Path, platform: Platform, dist: Path, directory: Path) -> Path:
    """Build the wheel of a platform into `dist`, and exit if it must not be published."""
    archiver = directory / "zig-ar"
    archiver.write_text(f'#!/bin/sh\nexec "{ZIG}" ar "$@"\n')
    archiver.chmod(0o755)
    settings = {
        "build-dir": directory / f"build-{platform.libc}-{platform.machine}",
        "wheel.tags": ";".join(f"py3-none-{tag}" for tag in platform.tags),
        "cmake.define.CMAKE_TOOLCHAIN_FILE": ROOT / "release/zig.cmake",
        "cmake.define.ZIG": ZIG,
        "cmake.define.ZIG_AR": archiver,
        "cmake.define.TARGET": platform.machine,
        "cmake.define.GLIBC": GLIBC,
        "cmake.define.PERFTRAIL_PRELOADED": "ON" if platform.libc == "glibc" else "OFF",
    }
    built = directory / "-".join((platform.libc, platform.machine))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    command += ["--no-build-isolation", "--no-deps", "--wheel-dir", str(built)]
    command += [f"-C{key}={value}" for key, value in settings.items()]
    subprocess.run([*command, str(source)], check=True)
    [wheel] = built.glob("*.whl")
    found = problems(wheel, platform)
    if platform.libc == "glibc" and platform.tags[0] not in audited(wheel):
        found.append(f"auditwheel does not confirm {platform.tags[0]}")
    launcher = Path(zipfile.ZipFile(wheel).extract(PROGRAM, built))
    launcher.chmod(0o755)
    started = ""
    if (emulator := emulator_of(platform.machine)) is None:
        started = f"; not started, because there is no qemu-{platform.machine}"
    elif not starts(launcher, PROJECT["version"], emulator):
        found.append("its launcher does not start")
    if found:
        sys.exit("\n".join(f"{wheel.name}: {each}" for each in found))
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, checked{started}", flush=True)
    return Path(shutil.copy2(wheel, dist))


def audited(wheel: Path) -> str:
    """Return what auditwheel states about the oldest systems that a wheel works on."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def emulator_of(machine: str) -> list[str] | None:
    """Return the command that runs programs of an architecture here; `None` if there is none."""
    if machine == host.machine():
        return []
    for name in (f"qemu-{machine}-static", f"qemu-{machine}"):
        if found := shutil.which(name):
            return [found]
    return None


def try_installed(wheel: Path, directory: Path) -> None:
    """Install a wheel with its locked dependencies into a new environment, and measure with it."""
    environment = directory / "installed"
    venv.create(environment, with_pip=True)
    pip = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    lock = str(ROOT / "requirements/runtime.txt")
    subprocess.run([*pip, "--require-hashes", "--only-binary", ":all:", "--requirement", lock], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    program = str(environment / "bin/perftrail")
    subprocess.run([sys.executable, str(ROOT / "release/first_use.py"), program], cwd=directory, check=True)
    print(f"{wheel.name}: installed, measured and counted with it", flush=True)


def write_sums(dist: Path) -> None:
    """Write the SHA-256 sum of each published file, for `sha256sum --check`."""
    files = [*dist.glob("*.tar.gz"), *dist.glob("*.whl"), *(dist / name for name in DOCUMENTS)]
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}"
        for file in sorted(files)
        if file.exists()
    ]
    (dist / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print(f"SHA256SUMS: {len(lines)} files", flush=True)


if __name__ == "__main__":
    main()
