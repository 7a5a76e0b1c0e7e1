"""Installs the peers, through the ordinary clients of public package registries."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HYPERFINE = "1.20.0"
DEBIAN = ("hyperfine", "time", "linux-perf", "multitime")
PYTHON = ("pyperf", "benchexec")


def default_directory() -> Path:
    """Return the default directory of the peers: a cache that may be deleted at any time."""
    return Path.home() / ".cache" / "perftrail" / "peers"


def install(directory: Path) -> list[str]:
    """Install the peers; return a line for each command that failed."""
    directory.mkdir(parents=True, exist_ok=True)
    venv = directory / "venv"
    lines = [
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *DEBIAN],
        [
            "cargo",
            "install",
            "--quiet",
            "--locked",
            "hyperfine",
            "--version",
            HYPERFINE,
            "--root",
            str(directory),
        ],
        [sys.executable, "-m", "venv", str(venv)],
        [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", *PYTHON],
    ]
    failed = []
    for line in lines:
        if shutil.which(line[0]) is None:
            failed.append(f"{line[0]}: not installed, so these are missing: {' '.join(line[1:])}")
        elif subprocess.run(line, check=False, stdout=sys.stderr).returncode != 0:
            failed.append(f"failed: {' '.join(line)}")
    return failed
