"""The page about the cost of building every revision."""

from __future__ import annotations

import shlex
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import measured_on
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.building.methods import BuildTime, Comparison
    from benchmarks.building.parallel import ParallelBuilds
    from perftrail.model.build import Recipe

PAGE = Path(__file__).parents[2] / "benchmarks" / "results" / "building.md"
GOAL = 10.0
REBUILT_SHARE = 1 / 3
"""A revision counts as mostly rebuilt if perftrail takes at least this share of the clean build's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One revision, built in both ways."""

    revision: str
    clean: BuildTime
    perftrail: BuildTime
    compared: Comparison | None
    load: float

    @property
    def equality(self) -> str:
        """Whether the outputs are equal, in words."""
        if self.compared is None:
            return (
                "neither builds"
                if self.clean.tree is None and self.perftrail.tree is None
                else "only one builds"
            )
        if self.compared.other_content:
            return f"{self.compared.other_content} differ"
        return "all but debug information" if self.compared.other_bytes else "every byte"

    def line(self) -> str:
        """Return the row as a line of progress."""
        wall = f"{self.clean.seconds:8.2f} s {self.perftrail.seconds:8.2f} s"
        cpu = f"cpu {self.clean.cpu_seconds:8.2f} s {self.perftrail.cpu_seconds:8.2f} s"
        return f"{self.revision[:10]} {wall} {cpu}  {self.equality}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The whole of a run: seconds of each way, perftrail's with its verifications, and how the outputs compare."""

    revisions: int
    clean_seconds: float
    perftrail_seconds: float
    clean_cpu_seconds: float
    perftrail_cpu_seconds: float
    first_seconds: float
    check_seconds: float
    checks: int
    heavy: int
    heavy_seconds: float
    typical_seconds: float
    clean_typical_seconds: float
    other_content: int
    other_bytes: int
    files: int

    @property
    def ratio(self) -> float:
        """How many times less perftrail takes."""
        return self.clean_seconds / self.perftrail_seconds

    @property
    def cpu_ratio(self) -> float:
        """How many times less CPU time perftrail takes."""
        return self.clean_cpu_seconds / self.perftrail_cpu_seconds

    @property
    def fixed_seconds(self) -> float:
        """The time that perftrail needs for the first build, the verifications and the mostly rebuilt revisions."""
        return self.first_seconds + self.check_seconds + self.heavy_seconds

    @property
    def bound(self) -> float:
        """How many times less perftrail would take if all the rest took no time."""
        return self.clean_seconds / self.fixed_seconds

    @property
    def met(self) -> bool:
        """Whether it is a tenth of the time, with every output equal."""
        return self.ratio >= GOAL and self.other_content == 0

    def text(self) -> str:
        """The summary as lines."""
        return "\n".join(
            f"{name:<34}{value}"
            for name, value in (
                ("revisions", str(self.revisions)),
                ("delete, check out, build", f"{self.clean_seconds:.1f} s"),
                ("perftrail, with verifications", f"{self.perftrail_seconds:.1f} s"),
                ("times less", f"{self.ratio:.1f}"),
                ("CPU time, clean builds", f"{self.clean_cpu_seconds:.1f} s"),
                ("CPU time, perftrail", f"{self.perftrail_cpu_seconds:.1f} s"),
                ("times less", f"{self.cpu_ratio:.1f}"),
                ("of it the first build", f"{self.first_seconds:.1f} s"),
                (f"of it {self.checks} verified builds", f"{self.check_seconds:.1f} s"),
                (f"of it {self.heavy} mostly rebuilt", f"{self.heavy_seconds:.1f} s"),
                ("times less if the rest were free", f"{self.bound:.1f}"),
                ("median revision, clean builds", f"{self.clean_typical_seconds:.2f} s"),
                ("median revision, perftrail", f"{self.typical_seconds:.2f} s"),
                ("output files compared", str(self.files)),
                ("differ in what counts", str(self.other_content)),
                ("differ in a byte", str(self.other_bytes)),
            )
        )


def summary(rows: Sequence[Row], confirming: BuildTime) -> Summary:
    """Return the sums over the rows; `confirming` is the last verification, which belongs to no revision."""
    compared = [row.compared for row in rows if row.compared is not None]
    one_sided = sum((row.clean.tree is None) != (row.perftrail.tree is None) for row in rows)
    checks = [row.perftrail.seconds for row in rows if row.perftrail.checked]
    others = [row for row in rows[1:] if not row.perftrail.checked]
    heavy = [
        row.perftrail.seconds for row in others if row.perftrail.seconds >= REBUILT_SHARE * row.clean.seconds
    ]
    return Summary(
        revisions=len(rows),
        clean_seconds=sum(row.clean.seconds for row in rows),
        perftrail_seconds=sum(row.perftrail.seconds for row in rows) + confirming.seconds,
        clean_cpu_seconds=sum(row.clean.cpu_seconds for row in rows),
        perftrail_cpu_seconds=sum(row.perftrail.cpu_seconds for row in rows) + confirming.cpu_seconds,
        first_seconds=rows[0].perftrail.seconds,
        check_seconds=sum(checks) + confirming.seconds,
        checks=len(checks) + 1,
        heavy=len(heavy),
        heavy_seconds=sum(heavy),
        typical_seconds=statistics.median(row.perftrail.seconds for row in rows),
        clean_typical_seconds=statistics.median(row.clean.seconds for row in rows),
        other_content=sum(each.other_content for each in compared) + one_sided,
        other_bytes=sum(each.other_bytes for each in compared) + one_sided,
        files=sum(each.files for each in compared),
    )


def page(
    name: str, range_: str, rows: Sequence[Row], found: Summary, parallel: ParallelBuilds, *, recipe: Recipe
) -> str:
    """Write the page."""
    options = [*(("--step", step) for step in recipe.steps), *(("--output", each) for each in recipe.outputs)]
    options += [("--env", f"{variable}={value}") for variable, value in recipe.env.items()]
    options += [("--jobs", str(parallel.parallel_builds))] if parallel.parallel_builds > 1 else []
    arguments = " ".join(f"{option} {shlex.quote(text)}" for option, text in options)
    lines = [["revision", "clean build (s)", "perftrail (s)", "outputs equal", "load"]]
    for row in rows:
        perftrail = f"{row.perftrail.seconds:.2f}{' (verified)' if row.perftrail.checked else ''}"
        lines.append(
            [f"`{row.revision[:10]}`", f"{row.clean.seconds:.2f}", perftrail, row.equality, f"{row.load:.1f}"]
        )
    reached = "The goal of 10 is met." if found.met else "The goal of 10 is not met."
    return f"""# Cost of building every revision

This page compares two ways to build {len(rows)} consecutive revisions of {name} (`{range_}`). {name} is
a C project whose configure script is generated at each revision. One run built each revision in both
ways, in alternating order.

- **Clean builds**: delete the tree, check the revision out, generate, configure, make.
- **perftrail**: the same recipe with `incremental = true`, an empty directory and so a cold compiler
  cache. The times include fetching the history, checkout, build, hashing and copying the outputs, and
  all verifications by clean builds.

{
        table(
            [
                ["time", "clean builds", "perftrail"],
                ["all revisions", f"{found.clean_seconds:.1f} s", f"{found.perftrail_seconds:.1f} s"],
                [
                    "CPU time of all revisions",
                    f"{found.clean_cpu_seconds:.1f} s",
                    f"{found.perftrail_cpu_seconds:.1f} s",
                ],
                ["median revision", f"{found.clean_typical_seconds:.2f} s", f"{found.typical_seconds:.2f} s"],
                ["first revision", f"{rows[0].clean.seconds:.2f} s", f"{found.first_seconds:.2f} s"],
                [f"{found.checks} verifications", "", f"{found.check_seconds:.1f} s"],
                [f"{found.heavy} revisions mostly rebuilt", "", f"{found.heavy_seconds:.1f} s"],
            ]
        )
    }

**{found.ratio:.1f} times faster, with {found.cpu_ratio:.1f} times less CPU time.** {reached} perftrail
compared {found.files} output files of all revisions. {found.other_content} differ in content that
matters in use, and {found.other_bytes} differ in any byte.

## Where perftrail spends its time

- The first build is a clean build.
- A verification is also a clean build, and only the compiler cache helps. Generating and configuring
  take their full time.
- Some revisions change a header that all files include, or files of the build system. Most of the tree
  is then rebuilt.
- All other revisions need a checkout, a `make` with little or no work, and reading the outputs.

The first three take {found.fixed_seconds:.1f} s. They are necessary for a clean start, for verification
and for the dependencies in the makefiles. If all other time were zero, perftrail would be
{found.bound:.1f} times faster. In a short range, the first build and the verifications take most of the
time. Longer ranges have a better ratio.
{parallel.section(found.clean_seconds)}
## Each revision

{table(lines)}

{measured_on()}. Other processes used the machine. They affect both ways alike; *load* is the load average.

Repeat it: `python -m benchmarks.building REPOSITORY RANGE {arguments} --write`.
"""
