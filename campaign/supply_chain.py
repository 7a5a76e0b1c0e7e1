"""What perftrail is built from: equal wheels, licences, workflows without weaknesses, dependencies without known ones.

Tools that `make tools` did not install, and data that cannot be reached, are named in the notes and count nothing.
"""

from __future__ import annotations

import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from campaign import Result

REPOSITORY = Path(__file__).parents[1]
TOOLS = REPOSITORY / ".build/tools/bin"
WORKFLOWS = ("action.yml", ".github/workflows/release.yml", ".github/workflows/site.yml")
DATE = "1760000000"
"""Any time, the same for both builds."""

ALLOWED = frozenset(
    {
        "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-CMU", "MPL-2.0",
        "PSF-2.0", "Python-2.0", "Zlib",
    }
)  # fmt: skip
"""SPDX names of the licences that permit to distribute a package for use with perftrail, under Apache-2.0."""

ALLOWED_CLASSIFIERS = frozenset(
    {
        "Apache Software License",
        "BSD License",
        "ISC License (ISCL)",
        "MIT License",
        "Mozilla Public License 2.0 (MPL 2.0)",
        "Python Software Foundation License",
    }
)
"""The same in the classifiers of packages that state no SPDX expression."""


def run(seconds: float, seed: int) -> Result:  # noqa: ARG001 - it takes what it takes, and draws nothing
    """Build two wheels, read every licence, and run the installed tools: each is a trial."""
    trials, losses, notes = 0, [], []
    for check in (equal_wheels, licences, workflow_weaknesses, known_weaknesses):
        tried, found, note = check()
        trials += tried
        losses += found
        notes.append(note)
    return Result(trials=trials, losses=tuple(losses), notes=tuple(notes))


def equal_wheels() -> tuple[int, list[str], str]:
    """Build the wheel from two copies of the sources, in directories of different names."""
    with tempfile.TemporaryDirectory() as name:
        digests = [build_wheel(Path(name) / directory) for directory in ("one", "another-directory")]
    losses = [] if digests[0] == digests[1] else ["two builds of the wheel differ"]
    return 1, losses, f"the wheel is {digests[0][:16]} twice" if not losses else "wheels"


def build_wheel(directory: Path) -> str:
    """Copy the tracked files to a directory, build the wheel there, and return its digest."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, check=True, capture_output=True).stdout
    for file in listed.decode().split("\0"):
        if file.startswith(("src/", "launcher/", "man/", "release/")) or "/" not in file:
            if not (REPOSITORY / file).is_file():
                continue
            (directory / "source" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / file, directory / "source" / file)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    command += ["--no-build-isolation", "--no-deps", "--wheel-dir", str(directory / "dist"), "."]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": DATE}
    subprocess.run(command, cwd=directory / "source", env=environment, check=True)
    [wheel] = (directory / "dist").glob("*.whl")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def locked_names(lock: str) -> list[str]:
    """Return the names of the packages in a lock."""
    text = (REPOSITORY / "requirements" / lock).read_text()
    return list(dict.fromkeys(re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)))


def licence(package: str) -> str | None:
    """Return what an installed package states as its licence; `None` if it is not installed.

    It is an SPDX expression, or the classifiers of a package without one, or its free text.
    """
    try:
        metadata = distribution(package).metadata
    except PackageNotFoundError:
        return None
    assert isinstance(metadata, email.message.Message)
    classifiers = (each for each in metadata.get_all("Classifier") or [] if each.startswith("License ::"))
    classified = "; ".join(each.rpartition(" :: ")[2] for each in classifiers)
    return str(metadata.get("License-Expression") or classified or metadata.get("License") or "")


def is_allowed(stated: str) -> bool:
    """Whether every licence in an SPDX expression, or every classifier, is on its list.

    >>> is_allowed("MIT"), is_allowed("(MIT OR GPL-3.0-only) AND 0BSD"), is_allowed("BSD License"), is_allowed("")
    (True, False, True, False)
    """
    names = [each for each in re.split(r"[\s()]+|\b(?:AND|OR)\b", stated) if each]
    classifiers = [each for each in stated.split("; ") if each]
    return bool(names) and (ALLOWED.issuperset(names) or ALLOWED_CLASSIFIERS.issuperset(classifiers))


def licences() -> tuple[int, list[str], str]:
    """Compare the licence of every package that perftrail needs with the list of allowed ones."""
    stated = {name: licence(name) for name in locked_names("runtime.txt")}
    installed = {name: text for name, text in stated.items() if text is not None}
    losses = [f"{name}: licence {text!r}" for name, text in installed.items() if not is_allowed(text)]
    missing = sorted(set(stated) - set(installed))
    note = f"licences of {len(installed)} packages; not installed for this Python: {', '.join(missing) or 'none'}"
    return len(installed), losses, note


def workflow_weaknesses() -> tuple[int, list[str], str]:
    """Run zizmor, without the network, on the GitHub action and the workflows of this project."""
    if not (TOOLS / "zizmor").exists():
        return 0, [], "zizmor: not installed; make tools installs it"
    done = subprocess.run(
        [TOOLS / "zizmor", "--offline", "--no-progress", "--persona=pedantic", *WORKFLOWS],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    losses = [
        f"zizmor: {line}"
        for line in re.findall(r"^(?:error|warning|help|info)\[.*", done.stdout, re.MULTILINE)
    ]
    if done.returncode and not losses:
        losses = [f"zizmor failed: {done.stderr.strip()[-200:]}"]
    return len(WORKFLOWS), losses, f"zizmor: {', '.join(WORKFLOWS)}"


def known_weaknesses() -> tuple[int, list[str], str]:
    """Run pip-audit on the lock of the runtime, if its data can be reached."""
    if not (TOOLS / "pip-audit").exists():
        return 0, [], "pip-audit: not installed; make tools installs it"
    lock = REPOSITORY / "requirements/runtime.txt"
    done = subprocess.run(
        [TOOLS / "pip-audit", "--requirement", lock, "--disable-pip", "--require-hashes", "--progress-spinner=off"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    found = re.findall(r"^\S+ +\S+ +(?:PYSEC|GHSA|CVE)-.*", done.stdout, re.MULTILINE)
    skipped = done.stdout.count("could not be audited") + done.stderr.count("could not be audited")
    packages = len(locked_names("runtime.txt"))
    if skipped >= packages or (done.returncode and not found):
        return 0, [], "pip-audit: its data cannot be reached; known weaknesses were not checked"
    note = f"pip-audit: {packages - skipped} of {packages} packages"
    return packages - skipped, [f"pip-audit: {line}" for line in found], note
