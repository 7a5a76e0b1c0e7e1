"""What tests cost, by kind and by file: one quiet run, stored in `durations.tsv` by `make durations`.

The workers (`tests.workers`) start the longest files first, and forecast the time left.
"""

from __future__ import annotations

import csv
import resource
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import ClassVar, Self

import pytest

from tests import starting

KINDS = (
    "browser",
    "cluster",
    "PostgreSQL",
    "simulations",
    "property tests",
    "starts of perftrail",
    "launcher",
    "builds",
    "waits",
    "examples in docstrings",
    "the rest",
)
"""Kinds of tests; a test is of the first one that fits."""

_FIXTURES = {"browser": "browser", "postgresql": "PostgreSQL", "postgresql_server": "PostgreSQL"}
_FOLDERS = {
    "tests/cluster/": "cluster",
    "tests/simulation/": "simulations",
    "tests/process/launcher/": "launcher",
    "src/": "examples in docstrings",
}
RESOURCES = {
    "browser": "browser",
    "cluster": "cluster",
    "postgresql": "PostgreSQL",
    "simulation": "simulations",
    "builds": "builds",
    "starts": "starts of perftrail",
    "waiting": "waits",
    "processor": "the rest",
}
"""What a test's mark `slow` may name, and its kind."""

WAITS_BELOW = 0.5
"""A test waits if it uses less of a processor than this share of at least a second."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds, seconds of CPU time with those of the processes that have ended, and command lines of perftrail."""

    wall: float = 0.0
    cpu: float = 0.0
    starts: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu, self.starts + other.starts)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.wall - other.wall, self.cpu - other.cpu, self.starts - other.starts)


def now() -> Spent:
    """Return what this process has spent so far."""
    usages = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(each.ru_utime + each.ru_stime for each in usages)
    return Spent(time.perf_counter(), cpu + starting.spent.cpu_seconds, starting.spent.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a test cost, set-up included. `resource` is what its mark says that it needs; empty without one."""

    test: str
    kind: str
    resource: str
    spent: Spent


def file_of(test: str) -> str:
    """Return the file of a test, from the repository's root."""
    return test.partition("::")[0]


def kind_of(item: pytest.Item, spent: Spent) -> str:
    """Return the first of `KINDS` that fits a test."""
    names = getattr(item, "fixturenames", ())
    mark = item.get_closest_marker("slow")
    found = {_FIXTURES[name] for name in names if name in _FIXTURES}
    found |= {kind for folder, kind in _FOLDERS.items() if item.nodeid.startswith(folder)}
    found |= {RESOURCES[str(mark.args[0])]} if mark else set()
    if "[postgresql" in item.nodeid:
        found.add("PostgreSQL")
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        found.add("property tests")
    if spent.starts:
        found.add("starts of perftrail")
    if item.nodeid.startswith("tests/builds/"):
        found.add("builds")
    if spent.wall > 1.0 and spent.cpu < WAITS_BELOW * spent.wall:
        found.add("waits")
    return min(found, key=KINDS.index, default=KINDS[-1])


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: the tests of one kind in one file."""

    kind: str
    file: str
    tests: int
    wall: float
    cpu: float
    starts: int


@dataclass(frozen=True, slots=True)
class Table:
    """The stored durations."""

    FILE: ClassVar[Path] = Path(__file__).with_name("durations.tsv")
    SECONDS_OF_NEW_TEST: ClassVar[float] = 0.3

    rows: tuple[Row, ...]
    by_file: Mapping[str, Spent] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        by_file: dict[str, Spent] = {}
        for row in self.rows:
            by_file[row.file] = by_file.get(row.file, Spent()) + Spent(row.wall, row.cpu, row.starts)
        object.__setattr__(self, "by_file", by_file)

    @classmethod
    def read(cls) -> Self:
        """Read the table; it is empty if it does not exist."""
        if not cls.FILE.exists():
            return cls(())
        with cls.FILE.open(encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file, delimiter="\t")
        return cls(
            tuple(
                Row(kind, name, int(n), float(wall), float(cpu), int(m))
                for kind, name, n, wall, cpu, m in rows
            )
        )

    def spent(self, file: str, tests: int) -> Spent:
        """Return what a file's tests cost; a guess for a new one."""
        guess = tests * self.SECONDS_OF_NEW_TEST
        return self.by_file.get(file, Spent(guess, guess))

    def merged(self, costs: Sequence[Cost]) -> Self:
        """Replace the rows of all files that these tests are in."""
        files = {file_of(each.test) for each in costs}
        new = {(each.kind, file_of(each.test)): [0, Spent()] for each in costs}
        rows = [row for row in self.rows if row.file not in files and Path(row.file).exists()]
        for kind, file in new:
            own = [each.spent for each in costs if (each.kind, file_of(each.test)) == (kind, file)]
            total = sum(own, Spent())
            rows.append(Row(kind, file, len(own), round(total.wall, 2), round(total.cpu, 2), total.starts))
        return type(self)(tuple(sorted(rows, key=lambda row: (KINDS.index(row.kind), row.file))))

    def write(self) -> None:
        """Write the table."""
        with self.FILE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(each.name for each in fields(Row))
            writer.writerows(astuple(row) for row in self.rows)


def by_kind(costs: Iterable[Cost]) -> tuple[str, ...]:
    """Return a line for each kind, the most CPU time first."""
    kinds: dict[str, tuple[int, Spent]] = {}
    for each in costs:
        tests, spent = kinds.get(each.kind, (0, Spent()))
        kinds[each.kind] = tests + 1, spent + each.spent
    total = (sum(tests for tests, _ in kinds.values()), sum((spent for _, spent in kinds.values()), Spent()))
    ordered = sorted(kinds.items(), key=lambda each: -each[1][1].cpu)
    header = f"{'kind':24} {'tests':>6} {'CPU s':>8} {'wall s':>8} {'starts':>6}"
    return (
        header,
        *(
            f"{kind:24} {tests:6,} {spent.cpu:8.1f} {spent.wall:8.1f} {spent.starts:6}"
            for kind, (tests, spent) in (*ordered, ("all", total))
        ),
    )
