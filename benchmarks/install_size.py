"""`python -m benchmarks.install_size`: what each dependency of perftrail costs, in disk space and in time to import.

The size of a dependency includes the packages that only it needs, and Python's byte code. The time is the CPU time of a
process that imports it, less that of a process that imports nothing; the median of `--runs` interleaved pairs.
"""

from __future__ import annotations

import re
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.machine import measured_on
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parent / "results/install-size.md"
BASE = ""
"""Name of the part without extras."""

PARTS = (BASE, "report", "web", "notebook", "cluster", "postgresql", "mcp", "otava")
"""Parts of the installation, as in the page Install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One direct dependency: bytes on the disk, seconds of CPU time to import it, packages that only it needs."""

    name: str
    version: str
    part: str
    bytes: int
    seconds: float
    brings: tuple[str, ...]


def size(found: Distribution) -> int:
    """Return the bytes of a package's files."""
    files = (Path(str(file.locate())) for file in found.files or ())
    return sum(file.stat().st_size for file in files if file.is_file())


@cache
def required(name: str, extra: str = "") -> frozenset[str]:
    """Return a package and all that it needs here, with one of its extras."""
    needed: frozenset[str] = frozenset({canonicalize_name(name)})
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        wanted = {"extra": extra}
        if requirement.marker is None or requirement.marker.evaluate(wanted):
            needed |= packages([requirement])
    return needed


def requirements_of(part: str) -> list[Requirement]:
    """Return the direct dependencies of a part of perftrail."""
    found = []
    for text in distribution("perftrail").requires or ():
        requirement = Requirement(text)
        extra = re.search(r'extra == "([^"]+)"', str(requirement.marker)) if requirement.marker else None
        if (extra[1] if extra else BASE) == part:
            found.append(requirement)
    return found


def packages(requirements: Sequence[Requirement]) -> frozenset[str]:
    """Return all packages that these requirements need here."""
    return frozenset[str]().union(
        *(required(each.name, extra) for each in requirements for extra in ("", *each.extras))
    )


def module_of(name: str) -> str:
    """Return the module that a package provides: its shortest public name."""
    names = [
        module
        for module, owners in packages_distributions().items()
        if name in {canonicalize_name(owner) for owner in owners} and not module.startswith("_")
    ]
    return min(names, key=len)


def import_seconds(module: str, runs: int) -> float:
    """Return the CPU time of an import."""

    def once(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    once(f"import {module}")
    pairs = [(once(f"import {module}"), once("pass")) for _ in range(runs)]
    return statistics.median(imported - nothing for imported, nothing in pairs)


def costs(parts: tuple[str, ...], runs: int) -> list[Cost]:
    """Measure each direct dependency of these parts; packages of the base count for the base."""
    base = packages(requirements_of(BASE))
    found = []
    for part in parts:
        direct = requirements_of(part)
        for requirement in direct:
            name = canonicalize_name(requirement.name)
            if part != BASE and name in base:
                continue
            others = packages([each for each in direct if each is not requirement])
            brings = packages([requirement]) - others - {name} - (base if part else frozenset())
            found.append(
                Cost(
                    name=name,
                    version=distribution(name).version,
                    part=part,
                    bytes=sum(size(distribution(each)) for each in {name, *brings}),
                    seconds=import_seconds(module_of(name), runs),
                    brings=tuple(sorted(brings)),
                )
            )
    return found


def page(found: list[Cost], runs: int) -> str:
    """Return the page of results."""
    base = packages(requirements_of(BASE))
    total = sum(size(distribution(name)) for name in base)
    lines = [["part", "package", "with", "MB", "import, ms"]]
    lines += [
        [
            f"`{each.part}`" if each.part else "base",
            f"{each.name} {each.version}",
            ", ".join(each.brings) or "–",
            f"{each.bytes / 1e6:.1f}",
            f"{each.seconds * 1e3:.0f}",
        ]
        for each in sorted(found, key=lambda each: (PARTS.index(each.part), -each.bytes))
    ]
    return f"""# What an installation costs

`python -m benchmarks.install_size --write` wrote this page. {measured_on()}.

The base installation needs {len(base)} packages with {total / 1e6:.0f} MB. *With* names the packages that only this one
needs; their size is included. The time is CPU time, median of {runs} pairs of processes. Packages that import
their parts later show a time near zero.

{table(lines)}
"""


@click.command()
@click.option("--runs", default=10, show_default=True, help="Number of pairs for each package.")
@click.option("--write", is_flag=True, help="Replace the page of results.")
def main(*, runs: int, write: bool) -> None:
    """Measure every direct dependency of perftrail in this environment."""
    text = page(costs(PARTS, runs), runs)
    if write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        click.echo(text)


if __name__ == "__main__":
    main()
