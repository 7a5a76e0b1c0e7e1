"""What tests need of the machine: each missing program is one line at the end of a test run, with its package."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

PACKAGES = {
    "addr2line": "binutils",
    "apt-cache": "apt",
    "apt-get": "apt",
    "bwrap": "bubblewrap",
    "callgrind_annotate": "valgrind",
    "cargo": "cargo",
    "chromium": "chromium",
    "dpkg-source": "dpkg-dev",
    "g++": "g++",
    "go": "golang",
    "javac": "default-jdk-headless",
    "ld.lld": "lld",
    "man": "man-db",
    "mvn": "maven",
    "objdump": "binutils",
    "pgbench": "postgresql",
    "postgres": "postgresql",
    "readelf": "binutils",
    "rustc": "rustc",
    "/usr/include/benchmark/benchmark.h": "libbenchmark-dev",
    "/usr/lib/ccache/cc": "ccache",
}
"""Debian's package of each program or file, unless it has the same name."""

_NEEDS = "needs "


def reason(lacking: Sequence[str]) -> str:
    """Return why tests are skipped that need these missing programs or files; empty if there are none."""
    if not lacking:
        return ""
    packages = dict.fromkeys(PACKAGES.get(each, each) for each in lacking)
    return f"{_NEEDS}{', '.join(Path(each).name for each in lacking)}: apt install {' '.join(packages)}"


def missing(*programs: str) -> str:
    """Return why tests that need these programs or files are skipped; empty if all are installed."""
    return reason([each for each in programs if not _is_installed(each)])


def _is_installed(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else shutil.which(program) is not None


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip tests where a program or a file is missing."""
    why = missing(*programs)
    return pytest.mark.skipif(bool(why), reason=why or "all of them are installed")


def skip_for(*lacking: str) -> NoReturn:
    """Skip the current test, as these programs are missing."""
    pytest.skip(reason(lacking))


def summary(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return a line for each reason of skipped tests, the most frequent first."""
    reasons: Counter[str] = Counter()
    for report in reports:
        longrepr = report.longrepr
        reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    return [_line(reason, count) for reason, count in reasons.most_common()]


def _line(reason: str, count: int) -> str:
    tests = "1 test" if count == 1 else f"{count} tests"
    if not reason.startswith(_NEEDS):
        return f"{tests} skipped: {reason}"
    return f"{tests} {'needs' if count == 1 else 'need'} {reason.removeprefix(_NEEDS)}"
