"""Build the fuzz harnesses, run them from the seed corpus, and print one row of the campaign's table as JSON."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LAUNCHER = HERE.parents[1] / "launcher"
MODULES = {
    "job": ("job", "job_keys", "region", "text"),
    "input": ("input", "region"),
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


def run(seconds: int, crashes_directory: Path | None = None) -> dict[str, object]:
    """Run every harness for its share of the seconds, and return a row of the campaign's table."""
    trials = 0
    named: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for harness in MODULES:
            program = build(harness, directory)
            executions, crashes = fuzz(program, max(1, seconds // len(MODULES)), directory)
            trials += executions
            named += crashes
            for crash in crashes:
                if crashes_directory is not None and (directory / crash).is_file():
                    crashes_directory.mkdir(parents=True, exist_ok=True)
                    shutil.copy(directory / crash, crashes_directory)
    return {"campaign": "fuzz_launcher", "trials": trials, "losses": len(named), "named": named}


def main() -> None:
    """Parse the command line, run, and print the row."""
    parser = argparse.ArgumentParser(prog="python -m campaign.fuzz_launcher", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="Time for all harnesses. [default: 60]")
    parser.add_argument("--crashes", type=Path, help="Directory for the inputs that crashed a harness.")
    arguments = parser.parse_args()
    row = run(arguments.seconds, arguments.crashes)
    print(json.dumps(row))
    raise SystemExit(1 if row["losses"] else 0)


if __name__ == "__main__":
    main()
