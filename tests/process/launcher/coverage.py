"""Lines and branches of the launcher that its tests and the corpora of its fuzzing execute: ``make coverage``.

Every build that runs is counted by gcov; a line or branch counts as covered if one of the builds executed it.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from campaign import fuzz_launcher

if TYPE_CHECKING:
    from collections.abc import Collection

REPOSITORY = Path(__file__).resolve().parents[3]
LAUNCHER = REPOSITORY / "launcher"
TESTS = Path(__file__).parent
NOT_COUNTED = "not sanitized and not hardening and not floor and not states_its_capabilities"
"""Tests of other builds than the counted one, and of the size of the one that users get."""

UNREACHABLE = {
    (
        "job_keys.c",
        "CPU_SET((size_t)first, &job->cpus);",
    ): "the macro of the C library checks a number that was checked",
}
"""Lines with a branch that no test can take on this machine, by file and text, and why. They count as not taken."""


@dataclass(slots=True)
class Counts:
    """Executions of one source file: by line, and by line, block and number of each branch."""

    lines: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    branches: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))


def run_tests(directory: Path, arguments: list[str]) -> None:
    """Run the launcher's tests with counted builds below a directory, in which the counts stay."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={directory}"]
    chosen = arguments or [str(TESTS)]
    subprocess.run(
        [*command, "-k", NOT_COUNTED, *chosen],
        cwd=REPOSITORY,
        env={**os.environ, "PERFTRAIL_COVERAGE": "1"},
        check=False,  # a failed test is the business of make test
    )


def run_corpora(directory: Path) -> None:
    """Run the harnesses of the fuzzing over their corpora, and a second of mutations of them."""
    gcc = shutil.which("gcc") or "cc"
    for harness, modules in fuzz_launcher.MODULES.items():
        built = directory / harness
        built.mkdir(parents=True)
        sources = [fuzz_launcher.HERE / f"{harness}.c", *(LAUNCHER / f"{module}.c" for module in modules)]
        options = ["-std=gnu11", "-D_GNU_SOURCE", "-O0", "-g", f"-I{LAUNCHER}"]
        # The harness is not counted: it may have the name of the module that it drives.
        driver = [fuzz_launcher.HERE / f"{harness}.c", fuzz_launcher.HERE / "mutate.c"]
        objects = [built / f"driver-{number}.o" for number, _ in enumerate(driver)]
        for source, into in zip(driver, objects, strict=True):
            subprocess.run([gcc, *options, "-c", "-o", into, source], check=True)
        sources = [LAUNCHER / f"{module}.c" for module in modules]
        subprocess.run([gcc, *options, "--coverage", "-o", built / "run", *sources, *objects], check=True)
        corpus = built / "corpus"
        shutil.copytree(fuzz_launcher.HERE / "corpus" / harness, corpus)
        subprocess.run(
            [built / "run", "-max_total_time=1", corpus], check=True, cwd=built, stdout=subprocess.DEVNULL
        )


def collect(directory: Path) -> dict[str, Counts]:
    """Return the counts of all builds below a directory, by file of the launcher."""
    found: dict[str, Counts] = defaultdict(Counts)
    for notes in sorted(directory.rglob("*.gcda")):
        gcov_directory = notes.parent / "gcov"
        gcov_directory.mkdir(exist_ok=True)
        command = ["gcov", "--json-format", "--branch-probabilities", str(notes)]
        if subprocess.run(command, check=False, cwd=gcov_directory, capture_output=True).returncode:
            print(f"not counted: gcov cannot read {notes}", file=sys.stderr)
        for report in gcov_directory.glob("*.gcov.json.gz"):
            for file in json.loads(gzip.decompress(report.read_bytes()))["files"]:
                path = (notes.parent / file["file"]).resolve()
                if path.is_relative_to(LAUNCHER) and path.suffix == ".c":
                    add(found[str(path.relative_to(LAUNCHER))], file)
            report.unlink()
    return found


def add(counts: Counts, file: dict[str, list[dict[str, object]]]) -> None:
    """Add one build's counts of a file."""
    for line in file["lines"]:
        number, executed = line["line_number"], line["count"]
        assert isinstance(number, int) and isinstance(executed, int)
        counts.lines[number] += executed
        branches = line["branches"]
        assert isinstance(branches, list)
        for place, branch in enumerate(branches):
            counts.branches[number, place] += branch["count"]


def table(found: dict[str, Counts]) -> str:
    """Return the share of executed lines and branches of each file and of all, and the lines without executions."""
    rows = ["| file | lines | branches | not executed |", "|---|---:|---:|---|"]
    for name, counts in sorted(found.items()):
        missing = ", ".join(str(line) for line in sorted(counts.lines) if not counts.lines[line])
        rows.append(
            f"| `{name}` | {_share(counts.lines.values())} | {_share(counts.branches.values())} | {missing} |"
        )
    every_line = {
        (name, line): count for name, counts in found.items() for line, count in counts.lines.items()
    }
    every = {(name, key): count for name, counts in found.items() for key, count in counts.branches.items()}
    rows.append(f"| all | {_share(every_line.values())} | {_share(every.values())} | |")
    return "\n".join(rows)


def not_taken(found: dict[str, Counts]) -> str:
    """Return the lines of which not all branches were taken, with the reason where no test can take them."""
    rows = []
    unused = dict(UNREACHABLE)
    for name, counts in sorted(found.items()):
        source = (LAUNCHER / name).read_text().splitlines()
        for number in sorted({line for (line, _), taken in counts.branches.items() if not taken}):
            text = source[number - 1].strip()
            reason = unused.pop((name, text), None)
            rows.append(f"- `{name}:{number}`: `{text}`" + (f": not reachable, {reason}" if reason else ""))
    rows += [f"- `{name}`: `{text}`: listed as not reachable, but taken or gone" for name, text in unused]
    return "\n".join(rows)


def _share(executions: Collection[int]) -> str:
    if not executions:
        return "–"
    executed = sum(count > 0 for count in executions)
    return f"{executed / len(executions):.1%} of {len(executions)}".replace("%", " %")


def main() -> None:
    """Run everything in `.build/coverage` and print the table; arguments choose tests."""
    directory = REPOSITORY / ".build/coverage"
    shutil.rmtree(directory, ignore_errors=True)
    run_corpora(directory / "corpora")
    run_tests(directory / "tests", sys.argv[1:])
    found = collect(directory)
    print(table(found))
    print(f"\nNot all branches taken:\n\n{not_taken(found)}")


if __name__ == "__main__":
    main()
