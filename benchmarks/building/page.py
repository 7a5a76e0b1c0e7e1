"""The page about the cost of building every revision."""

from __future__ import annotations

import shlex
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import taken
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.building.at_once import AtOnce
    from benchmarks.building.loops import Came, Compared
    from perftrail.model.build import Recipe

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "building.md"
GOAL = 10.0
MUCH = 1 / 3
"""A revision that takes ours this share of what it takes theirs has most of its tree compiled again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One revision, made in both ways."""

    revision: str
    seed: Came
    ours: Came
    compared: Compared | None
    load: float

    @property
    def alike(self) -> str:
        """Whether the outputs are equal, in words."""
        if self.compared is None:
            return (
                "neither builds" if self.seed.tree is None and self.ours.tree is None else "only one builds"
            )
        if self.compared.other_content:
            return f"{self.compared.other_content} differ"
        return "all but debug information" if self.compared.other_bytes else "every byte"

    def line(self) -> str:
        """The row for whoever waits."""
        wall = f"{self.seed.seconds:8.2f} s {self.ours.seconds:8.2f} s"
        cpu = f"cpu {self.seed.cpu_seconds:8.2f} s {self.ours.cpu_seconds:8.2f} s"
        return f"{self.revision[:10]} {wall} {cpu}  {self.alike}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The whole of a run: seconds of each way, ours with every check, and how the outputs compare."""

    revisions: int
    seed_seconds: float
    our_seconds: float
    seed_cpu_seconds: float
    our_cpu_seconds: float
    first_seconds: float
    check_seconds: float
    checks: int
    heavy: int
    heavy_seconds: float
    typical_seconds: float
    seed_typical_seconds: float
    other_content: int
    other_bytes: int
    files: int

    @property
    def ratio(self) -> float:
        """How many times less ours takes."""
        return self.seed_seconds / self.our_seconds

    @property
    def cpu_ratio(self) -> float:
        """How many times less CPU time ours takes."""
        return self.seed_cpu_seconds / self.our_cpu_seconds

    @property
    def fixed_seconds(self) -> float:
        """What the first build, the checks and the revisions that are mostly made again take of ours."""
        return self.first_seconds + self.check_seconds + self.heavy_seconds

    @property
    def most(self) -> float:
        """How many times less ours would take if all the rest took nothing."""
        return self.seed_seconds / self.fixed_seconds

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
                ("delete, check out, build", f"{self.seed_seconds:.1f} s"),
                ("perftrail, checks included", f"{self.our_seconds:.1f} s"),
                ("times less", f"{self.ratio:.1f}"),
                ("CPU time, theirs", f"{self.seed_cpu_seconds:.1f} s"),
                ("CPU time, ours", f"{self.our_cpu_seconds:.1f} s"),
                ("times less", f"{self.cpu_ratio:.1f}"),
                ("of it the first build", f"{self.first_seconds:.1f} s"),
                (f"of it {self.checks} checked builds", f"{self.check_seconds:.1f} s"),
                (f"of it {self.heavy} mostly made again", f"{self.heavy_seconds:.1f} s"),
                ("times less if the rest were free", f"{self.most:.1f}"),
                ("median revision, theirs", f"{self.seed_typical_seconds:.2f} s"),
                ("median revision, ours", f"{self.typical_seconds:.2f} s"),
                ("output files compared", str(self.files)),
                ("differ in what counts", str(self.other_content)),
                ("differ in a byte", str(self.other_bytes)),
            )
        )


def summary(rows: Sequence[Row], confirming: Came) -> Summary:
    """Put rows together; `confirming` is the last check, which belongs to no revision."""
    compared = [row.compared for row in rows if row.compared is not None]
    one_sided = sum((row.seed.tree is None) != (row.ours.tree is None) for row in rows)
    checks = [row.ours.seconds for row in rows if row.ours.checked]
    others = [row for row in rows[1:] if not row.ours.checked]
    heavy = [row.ours.seconds for row in others if row.ours.seconds >= MUCH * row.seed.seconds]
    return Summary(
        revisions=len(rows),
        seed_seconds=sum(row.seed.seconds for row in rows),
        our_seconds=sum(row.ours.seconds for row in rows) + confirming.seconds,
        seed_cpu_seconds=sum(row.seed.cpu_seconds for row in rows),
        our_cpu_seconds=sum(row.ours.cpu_seconds for row in rows) + confirming.cpu_seconds,
        first_seconds=rows[0].ours.seconds,
        check_seconds=sum(checks) + confirming.seconds,
        checks=len(checks) + 1,
        heavy=len(heavy),
        heavy_seconds=sum(heavy),
        typical_seconds=statistics.median(row.ours.seconds for row in rows),
        seed_typical_seconds=statistics.median(row.seed.seconds for row in rows),
        other_content=sum(each.other_content for each in compared) + one_sided,
        other_bytes=sum(each.other_bytes for each in compared) + one_sided,
        files=sum(each.files for each in compared),
    )


def page(
    name: str, range_: str, rows: Sequence[Row], found: Summary, at_once: AtOnce, *, recipe: Recipe
) -> str:
    """Write the page."""
    given = [*(("--step", step) for step in recipe.steps), *(("--output", each) for each in recipe.outputs)]
    given += [("--env", f"{variable}={value}") for variable, value in recipe.env.items()]
    given += [("--jobs", str(at_once.parallel_builds))] if at_once.parallel_builds > 1 else []
    words = " ".join(f"{option} {shlex.quote(text)}" for option, text in given)
    lines = [["revision", "clean build (s)", "perftrail (s)", "outputs equal", "load"]]
    for row in rows:
        ours = f"{row.ours.seconds:.2f}{' (verified)' if row.ours.checked else ''}"
        lines.append(
            [f"`{row.revision[:10]}`", f"{row.seed.seconds:.2f}", ours, row.alike, f"{row.load:.1f}"]
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
                ["all revisions", f"{found.seed_seconds:.1f} s", f"{found.our_seconds:.1f} s"],
                [
                    "CPU time of all revisions",
                    f"{found.seed_cpu_seconds:.1f} s",
                    f"{found.our_cpu_seconds:.1f} s",
                ],
                ["median revision", f"{found.seed_typical_seconds:.2f} s", f"{found.typical_seconds:.2f} s"],
                ["first revision", f"{rows[0].seed.seconds:.2f} s", f"{found.first_seconds:.2f} s"],
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
{found.most:.1f} times faster. In a short range, the first build and the verifications take most of the
time. Longer ranges have a better ratio.
{at_once.section(found.seed_seconds)}
## Each revision

{table(lines)}

{taken()}. Other processes used the machine. They affect both ways alike; *load* is the load average.

Repeat it: `python -m benchmarks.building REPOSITORY RANGE {words} --write`.
"""
