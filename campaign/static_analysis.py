"""The analysers of gcc and clang over all C files of the launcher and of the preloaded objects."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from campaign import Result

REPOSITORY = Path(__file__).parents[1]
TOOLS = {
    "gcc -fanalyzer": ("gcc", "-fanalyzer", "-O1", "-c", "-o", "/dev/null"),
    "clang --analyze": ("clang", "--analyze", "-Xclang", "-analyzer-output=text", "-o", "/dev/null"),
}
OPTIONS = (
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-D_GNU_SOURCE",
    '-DLAUNCHER_VERSION=""',
    '-DLAUNCHER_LINKING=""',
)


def run(seconds: float, seed: int) -> Result:  # noqa: ARG001 - it takes what it takes, and draws nothing
    """Analyse every file with every installed tool: each is a trial, each warning a loss."""
    files = sorted((REPOSITORY / "launcher").glob("**/*.c"))
    losses: list[str] = []
    notes: list[str] = []
    trials = 0
    for tool, command in TOOLS.items():
        if shutil.which(command[0]) is None:
            notes.append(f"{tool}: not installed")
            continue
        for file in files:
            trials += 1
            done = subprocess.run(
                [*command, *OPTIONS, file], capture_output=True, text=True, check=False, cwd=REPOSITORY
            )
            found = re.findall(r".*(?:warning|error): .*", done.stderr)
            losses += [f"{tool}: {line}" for line in found]
            if done.returncode and not found:
                losses.append(f"{tool}: {file.name}: not analysed: {done.stderr.strip()[-200:]}")
        notes.append(f"{tool}: {len(files)} files")
    return Result(trials=trials, losses=tuple(losses), notes=tuple(notes))
