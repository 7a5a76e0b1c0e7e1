"""Fuzz the parts of the launcher that parse bytes, with AddressSanitizer and UndefinedBehaviorSanitizer.

Each harness starts from its seed corpus. libFuzzer runs it where clang is installed, else a driver that mutates.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from campaign import Result

HERE = Path(__file__).parent
LAUNCHER = HERE.parents[1] / "launcher"
MODULES = {
    "job": ("job", "job_keys", "region", "text"),
    "input": ("input", "region", "text"),
    "text": ("text",),
    "cgroup": ("region", "text"),
}
"""Each harness with the modules of the launcher that it is linked with."""

COMMON = (
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fno-sanitize-recover=all",
    f"-I{LAUNCHER}",
)


def build(harness: str, directory: Path) -> Path:
    """Build a harness with libFuzzer if clang has it, else with the mutation driver and gcc."""
    program = directory / harness
    sources = [HERE / f"{harness}.c", *(LAUNCHER / f"{module}.c" for module in MODULES[harness])]
    clang = shutil.which("clang")
    if clang:
        command: list[str | Path] = [
            clang,
            *COMMON,
            "-fsanitize=fuzzer,address,undefined",
            "-o",
            program,
            *sources,
        ]
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            return program
    gcc = shutil.which("gcc") or "cc"
    sources.append(HERE / "mutate.c")
    subprocess.run([gcc, *COMMON, "-fsanitize=address,undefined", "-o", program, *sources], check=True)
    return program


def fuzz(program: Path, seconds: int, directory: Path) -> tuple[int, list[str]]:
    """Run a harness; return the number of executions and the names of the inputs that crashed it."""
    found = directory / f"{program.name}-corpus"
    shutil.copytree(HERE / "corpus" / program.name, found)
    done = subprocess.run(
        [
            program,
            f"-max_total_time={seconds}",
            f"-artifact_prefix={directory}/{program.name}-",
            "-max_len=4096",
            "-timeout=10",
            "-print_final_stats=1",
            found,
        ],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    runs = re.findall(r"number_of_executed_units: (\d+)|Done (\d+) runs", done.stdout)
    executions = max((int(one or other) for one, other in runs), default=0)
    crashes = sorted(file.name for file in directory.glob(f"{program.name}-*") if file.is_file())
    if done.returncode != 0 and not crashes:
        crashes = [f"{program.name}: {done.stdout[-500:]}"]
    return executions, crashes


def run(seconds: float, seed: int) -> Result:  # noqa: ARG001 - libFuzzer draws its own seed
    """Run every harness for its share of the seconds: each execution is a trial, each crash a loss."""
    trials = 0
    losses: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for harness in MODULES:
            program = build(harness, directory)
            executions, crashes = fuzz(program, max(1, int(seconds) // len(MODULES)), directory)
            trials += executions
            losses += [f"{crash}: {_content(directory / crash)}" for crash in crashes]
    return Result(trials=trials, losses=tuple(losses), notes=(f"harnesses: {', '.join(MODULES)}",))


def _content(crash: Path) -> str:
    """Return the input of a crash in hexadecimal, to repeat it."""
    return crash.read_bytes().hex() if crash.is_file() else "no input"
