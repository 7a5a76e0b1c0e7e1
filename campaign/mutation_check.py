"""Plant 20 bugs, one by one, and report which tests find each: ``python -m campaign.mutation_check [NUMBER …]``.

Each bug is one replaced text, chosen before the tests were divided between `make test` and `make test-long`. The
program copies the repository's committed files, plants a bug there, and runs the tests of `make test`: first those
whose paths the bug names, then all, until one fails. With `--all`, the tests of `make test-long` follow if none
failed. A failed test counts only if it fails again alone, and passes without the bug: all of them run once more, at
the end. Exits with 1 if `make test` missed more than 2 of 20 bugs, or with `--all`, if both missed one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
LEAST_FOUND = 18
TESTS_SECONDS = 3600.0
MAKE_TEST = "`make test`"
NO_TESTS = 5
"""Exit code of pytest if it selects no test."""
_OPTIONS = ("--exitfirst", "--quiet", "--workers", "4", "--color=no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One text of a file, replaced. `tests` are the paths of the tests that run first."""

    kind: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]

    def plant(self, tree: Path) -> None:
        """Replace the text. Raises `ValueError` unless the file has it once."""
        path = tree / self.file
        text = path.read_text("utf-8")
        if text.count(self.right) != 1:
            raise ValueError(f"{self.file} has {text.count(self.right)} times: {self.right}")
        path.write_text(text.replace(self.right, self.wrong), "utf-8")


BUGS = (
    Bug(
        kind="a dropped fsync: a rename is not durable",
        file="src/perftrail/file_tree.py",
        right="        os.fsync(directory)\n    finally:\n        os.close(directory)\n\n\nclass NewTree:",
        wrong="        os.fstat(directory)\n    finally:\n        os.close(directory)\n\n\nclass NewTree:",
        tests=("tests/test_file_tree.py", "tests/store", "tests/builds"),
    ),
    Bug(
        kind="SQLite does not sync its journal",
        file="src/perftrail/store/sqlite.py",
        right='connection.execute("PRAGMA synchronous=FULL")',
        wrong='connection.execute("PRAGMA synchronous=OFF")',
        tests=("tests/store",),
    ),
    Bug(
        kind="two processes write to a store at once",
        file="src/perftrail/store/lock.py",
        right="fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        wrong="fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        tests=("tests/store",),
    ),
    Bug(
        kind="a link followed: a directory of an untrusted tree",
        file="src/perftrail/file_tree.py",
        right="_DIRECTORY = _ROOT | os.O_NOFOLLOW",
        wrong="_DIRECTORY = _ROOT",
        tests=("tests/test_file_tree.py", "tests/sources"),
    ),
    Bug(
        kind="an archive that unpacks without a limit",
        file="src/perftrail/sources/unpacking.py",
        right="        left -= entry.size_bytes\n",
        wrong="",
        tests=("tests/sources",),
    ),
    Bug(
        kind="the sandbox shares the network",
        file="src/perftrail/process/sandbox/view.py",
        right='(*_NAMESPACES, *(() if self.network or self.shares_network else ("net",)))',
        wrong="_NAMESPACES",
        tests=("tests/process/sandbox", "tests/e2e/test_sandbox.py"),
    ),
    Bug(
        kind="another site's form is accepted by the dashboard",
        file="src/perftrail/web/guard.py",
        right="""    return origin not in {f"{scheme}://{headers.get('host', '')}" for scheme in ("https", "http")}""",
        wrong="    return False",
        tests=("tests/web",),
    ),
    Bug(
        kind="a forgotten escape: names in a flame graph",
        file="src/perftrail/present/flame_graph.py",
        right="{escape(shown)}</text>' if shown",
        wrong="{shown}</text>' if shown",
        tests=("tests/present",),
    ),
    Bug(
        kind="a forgotten escape: text in a badge",
        file="src/perftrail/present/site/badge.py",
        right="{escape(text)}</text>",
        wrong="{text}</text>",
        tests=("tests/present",),
    ),
    Bug(
        kind="an ignored noisy flag: pairs of a comparison",
        file="src/perftrail/model/noisy_samples.py",
        right="return number >= LEAST_TO_DECIDE and 2 * noisy > number",
        wrong="return number >= LEAST_TO_DECIDE",
        tests=("tests/measure",),
    ),
    Bug(
        kind="an ignored noisy flag: samples of a search",
        file="src/perftrail/find/sampler.py",
        right="return any(weight(measurement.flags) == 0.0 for measurement in found.values())",
        wrong="return any(weight(measurement.flags) < 0.0 for measurement in found.values())",
        tests=("tests/find",),
    ),
    Bug(
        kind="a stale key: samples of another standard input are reused",
        file="src/perftrail/model/runnable_key.py",
        right="            benchmark.stdin,\n",
        wrong="",
        tests=("tests/model", "tests/measure"),
    ),
    Bug(
        kind="a stale key: a build of other study files is reused",
        file="src/perftrail/builds/builder.py",
        right="            self._runner.study_files_digest(texts),\n",
        wrong="",
        tests=("tests/builds",),
    ),
    Bug(
        kind="a wrong unit: imported MiB",
        file="src/perftrail/formats/units.py",
        right='"MiB": 1 / 1024**2',
        wrong='"MiB": 1 / 1000**2',
        tests=("tests/formats",),
    ),
    Bug(
        kind="a wrong unit: peak memory of the launcher",
        file="launcher/run.c",
        right="(int64_t)more->ru_maxrss * 1024",
        wrong="(int64_t)more->ru_maxrss * 1000",
        tests=("tests/process/launcher",),
    ),
    Bug(
        kind="a wrong sign: the evidence of a decrease",
        file="src/perftrail/search/rounds.py",
        right="log_wealth(math.copysign(1.0, size) * found, scale, step)",
        wrong="log_wealth(found, scale, step)",
        tests=("tests/search",),
    ),
    Bug(
        kind="an error rate nine times too large",
        file="src/perftrail/stats/comparison.py",
        right="out=factors).sum(axis=0) / len(STAKES)",
        wrong="out=factors).sum(axis=0)",
        tests=("tests/stats",),
    ),
    Bug(
        kind="a ratio upside down: retained gain",
        file="src/perftrail/stats/retained_gain.py",
        right="shares = numerators[denominators != 0.0] / denominators[denominators != 0.0]",
        wrong="shares = denominators[denominators != 0.0] / numerators[denominators != 0.0]",
        tests=("tests/stats",),
    ),
    Bug(
        kind="more is worse also where more is better",
        file="src/perftrail/results/gate.py",
        right='worse = (found.effect > 1.0) == (self.metric.better == "lower")',
        wrong="worse = found.effect > 1.0",
        tests=("tests/results", "tests/verbs"),
    ),
    Bug(
        kind="a mistake in a study file is reported one line too early",
        file="src/perftrail/studyfile/key_lines.py",
        right="return bisect.bisect_right(self._starts, self._at)",
        wrong="return bisect.bisect_left(self._starts, self._at)",
        tests=("tests/studyfile",),
    ),
)


@dataclass(slots=True)
class Copy:
    """A copy of the committed files, with perftrail installed from it into an environment of its own."""

    tree: Path

    @classmethod
    def create(cls, directory: Path) -> Copy:
        """Copy the files, and create the environment with the packages of this repository's."""
        tree = directory / "perftrail"
        subprocess.run(["git", "clone", "--quiet", "--shared", REPOSITORY, tree], check=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tree / ".venv"], check=True)
        packages = sysconfig.get_path("purelib", vars={"base": str(tree / ".venv")})
        # Only a path there: its .pth file, which would import the perftrail of this repository, is not read.
        Path(packages, "packages.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
        copy = cls(tree)
        copy.install()
        return copy

    def install(self) -> None:
        """Compile the launcher and install perftrail."""
        words = ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--editable", "."]
        subprocess.run([self.tree / ".venv/bin/python", *words], cwd=self.tree, check=True)

    def first_failure(self, tests: Sequence[str], mark: str) -> str:
        """Run tests until one fails, twice of two times, and return its name; empty if there is none."""
        disturbed: list[str] = []
        while failed := self._failed(*tests, "-m", mark, *(f"--deselect={each}" for each in disturbed)):
            if self._failed(failed):
                return failed
            disturbed.append(failed)  # by the machine, not by the bug
        return ""

    def _failed(self, *tests: str) -> str:
        """Run tests until one fails, and return its name; empty if all pass."""
        ran = subprocess.run(
            [self.tree / ".venv/bin/python", "-m", "pytest", *_OPTIONS, *tests],
            cwd=self.tree,
            env=os.environ | {"CI": "true"},
            capture_output=True,
            text=True,
            timeout=TESTS_SECONDS,
            check=False,
        )
        if ran.returncode in (0, NO_TESTS):
            return ""
        for line in ran.stdout.splitlines():
            if line.startswith(("FAILED ", "ERROR ")):
                return line.split(" ", 1)[1].split(" - ")[0]
        raise RuntimeError(f"pytest ended with {ran.returncode}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")


def main() -> None:
    """Plant the chosen bugs, and print a row for each."""
    parser = argparse.ArgumentParser(prog="python -m campaign.mutation_check", description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER", help="bugs to plant [default: all]")
    parser.add_argument("--all", action="store_true", help="run the tests of make test-long too")
    arguments = parser.parse_args()
    numbers = arguments.numbers or range(1, len(BUGS) + 1)
    missed: list[int] = []
    missed_by_all: list[int] = []
    found: dict[int, str] = {}
    print("| # | bug | found by | first test that failed | seconds |\n|---:|---|---|---|---:|", flush=True)
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        copy = Copy.create(Path(directory))
        for number in numbers:
            began = time.monotonic()
            command, test = _plant(copy, BUGS[number - 1], long=arguments.all)
            missed += [number] if command != MAKE_TEST else []
            missed_by_all += [] if command else [number]
            found |= {number: test} if test else {}
            seconds = time.monotonic() - began
            print(f"| {number} | {BUGS[number - 1].kind} | {command} | {test} | {seconds:.0f} |", flush=True)
        broken = copy.first_failure(sorted(set(found.values())), "long or not long") if found else ""
    print(f"\n{MAKE_TEST} found {len(numbers) - len(missed)} of {len(numbers)}")
    if broken:
        sys.exit(f"{broken} fails without a bug too: repair it, and run this again")
    sys.exit(len(missed) > len(BUGS) - LEAST_FOUND or (arguments.all and bool(missed_by_all)))


def _plant(copy: Copy, bug: Bug, *, long: bool) -> tuple[str, str]:
    """Return the command whose tests found a bug, and the first test that failed; both empty if none did."""
    bug.plant(copy.tree)
    compiled = bug.file.startswith("launcher/")
    if compiled:
        copy.install()
    try:
        for command, tests, mark in (
            (MAKE_TEST, bug.tests, "not long"),
            (MAKE_TEST, (), "not long"),
            *([("`make test-long`", (), "long")] if long else []),
        ):
            if test := copy.first_failure(tests, mark):
                return command, test
        return "", ""
    finally:
        subprocess.run(["git", "checkout", "--quiet", "--", bug.file], cwd=copy.tree, check=True)
        if compiled:
            copy.install()


if __name__ == "__main__":
    main()
