"""Each lock of `requirements/` has every dependency with hashes, in its range of pyproject.toml, for each Python."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.starting import REPOSITORY

LOCKS = REPOSITORY / "requirements"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
RUNTIME = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
BACKEND = PROJECT["build-system"]["requires"]


def ranges_in(name: str) -> list[str]:
    return [line for line in (LOCKS / name).read_text().splitlines() if line and not line.startswith("#")]


RANGES = {
    "dev.txt": [*RUNTIME, *EXTRAS["dev"], *BACKEND, *ranges_in("build.in")],
    "runtime.txt": RUNTIME,
    "action.txt": [*RUNTIME, *BACKEND, *ranges_in("build.in")],
    "image.txt": [*RUNTIME, *EXTRAS["cluster"], *EXTRAS["report"]],
    "build.txt": [*BACKEND, *ranges_in("build.in")],
    "release.txt": [*BACKEND, *ranges_in("build.in"), *ranges_in("release.in")],
    "site.txt": PROJECT["dependency-groups"]["site"],
    "tools.txt": ranges_in("tools.in"),
}


def locked(path: Path) -> list[tuple[Requirement, list[str]]]:
    """Every entry of a lock with its hashes."""
    text = re.sub(r"^\s*#.*\n?", "", path.read_text(), flags=re.MULTILINE)
    entries = []
    for entry in re.sub(r"\\\n", " ", text).splitlines():
        requirement, *hashes = entry.split(" --hash=")
        entries.append((Requirement(requirement), [each.strip() for each in hashes]))
    return entries


def versions(path: Path, python: str) -> dict[str, str]:
    """The locked version of each package for a version of Python on Linux."""
    environment = {
        "python_version": ".".join(python.split(".")[:2]),
        "python_full_version": python,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
    }
    found: dict[str, str] = {}
    for requirement, _ in locked(path):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            name = canonicalize_name(requirement.name)
            version = str(requirement.specifier).removeprefix("==")
            assert found.setdefault(name, version) == version, f"{name} is locked twice"
    return found


def test_every_lock_has_its_ranges() -> None:
    assert {path.name for path in LOCKS.glob("*.txt")} == set(RANGES)


@pytest.mark.parametrize("name", RANGES)
def test_every_entry_is_one_version_with_hashes_and_no_address(name: str) -> None:
    entries = locked(LOCKS / name)
    for requirement, hashes in entries:
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), requirement
        assert requirement.url is None
        assert hashes, f"{requirement} has no hash"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), requirement
    assert "://" not in (LOCKS / name).read_text()


@pytest.mark.parametrize("python", ["3.11.2", "3.11.9", "3.12.7", "3.13.1", "3.14.0"])
@pytest.mark.parametrize("name", RANGES)
def test_a_lock_satisfies_the_ranges_of_pyproject(name: str, python: str) -> None:
    found = versions(LOCKS / name, python)
    for text in RANGES[name]:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"python_version": python[:4]}):
            continue
        version = found.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted.name} is not locked; make lock writes the locks"
        assert wanted.specifier.contains(version, prereleases=True), f"{wanted}: {version} is locked"


@pytest.mark.parametrize("name", ["runtime.txt", "action.txt", "image.txt", "build.txt"])
def test_what_is_tested_is_what_is_installed_elsewhere(name: str) -> None:
    tested = versions(LOCKS / "dev.txt", "3.11.9")
    assert versions(LOCKS / name, "3.11.9").items() <= tested.items()


def test_everything_that_installs_perftrail_uses_a_lock_and_the_locked_backend() -> None:
    """The Makefile, the action and the image: each pip install has hashes, or installs only perftrail itself."""
    files = ("Makefile", "ci/install.sh", "deploy/image/Dockerfile")
    for name in files:
        text = re.sub(r"\\\n", " ", (REPOSITORY / name).read_text())
        installs = re.findall(
            r"(?:\$\(PIP_INSTALL\)|\"\$\{pip\[@\]\}\"|pip install --no-cache-dir)[^&\n]*", text
        )
        assert len(installs) >= 2, name
        for install in installs:
            hashed = "--require-hashes" in install
            alone = "--no-deps" in install and "--no-build-isolation" in install
            newest = "--upgrade" in install  # make setup LOCKED=
            assert hashed or alone or newest, f"{name}: {install}"


def test_the_action_passes_no_credentials_to_the_installation() -> None:
    [step] = [
        each
        for each in yaml.safe_load((REPOSITORY / "action.yml").read_text())["runs"]["steps"]
        if each["name"] == "Install perftrail"
    ]
    assert set(step["env"]) == {"PERFTRAIL_PYTHON"}


def test_the_recipe_for_conda_needs_what_the_wheel_needs() -> None:
    recipe = yaml.safe_load((REPOSITORY / "deploy/conda/recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["project"]["version"]
    needed = {str(Requirement(each.replace(" ", ""))) for each in recipe["requirements"]["run"]}
    python = f"python{PROJECT['project']['requires-python']}"
    assert needed == {str(Requirement(each)) for each in RUNTIME} | {python, "git"}
    assert set(BACKEND) <= {each.replace(" ", "") for each in recipe["requirements"]["host"]}
