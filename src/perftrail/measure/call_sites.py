"""Name the functions that allocate: addresses become functions with ``addr2line``, and stacks become call sites.

The call site of an allocation is the innermost function of the program itself, with its caller: libraries and
allocation functions of the language are skipped.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.process import Command, Exited
from perftrail.model.profile import Function, base_name
from perftrail.stats.profile_comparison import in_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from perftrail.model.process import AllocationStack
    from perftrail.ports import Starter

SECONDS_TO_NAME = 60.0
"""Time limit for the names of one file's addresses."""

_MOST_ADDRESSES = 2000
"""Addresses on one command line."""

_ADDRESS = re.compile(r"^0x[0-9a-f]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """The function that allocates, the base name of its source file if known, and its caller; "" for none."""

    function: str
    file: str
    caller: str

    def __str__(self) -> str:
        return (
            (f"{self.caller} → " if self.caller else "")
            + self.function
            + (f" ({self.file})" if self.file else "")
        )


@dataclass(slots=True)
class Allocated:
    """Allocations and their bytes."""

    allocations: int = 0
    bytes: int = 0


class FunctionNames:
    """Names of functions by file and address, innermost inlined function first.

    They come from ``addr2line``, which runs in the program's sandbox, because the program's file is not trusted.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._program = shutil.which("addr2line")
        self._known: dict[tuple[str, int], tuple[Function, ...]] = {}

    def named(
        self, addresses: Iterable[tuple[str, int]], *, output: Path
    ) -> Mapping[tuple[str, int], tuple[Function, ...]]:
        """Return the functions of each address; an unknown one has no functions. `output` is a temporary file."""
        by_file: defaultdict[str, list[int]] = defaultdict(list)
        for file, address in sorted(set(addresses) - self._known.keys()):
            by_file[file].append(address)
        for file, positions in by_file.items():
            for start in range(0, len(positions), _MOST_ADDRESSES):
                some = positions[start : start + _MOST_ADDRESSES]
                names = self._names(file, some, output) if file.startswith("/") else {}
                for position in some:
                    self._known[file, position] = names.get(position, ())
        output.unlink(missing_ok=True)
        return self._known

    def _names(self, file: str, positions: Sequence[int], output: Path) -> dict[int, tuple[Function, ...]]:
        if self._program is None:
            return {}
        command = Command(
            arguments=(
                self._program,
                "-a", "-f", "-i", "-C", "-e", file,
                *map(hex, positions),
            ),
            environment={"LC_ALL": "C"},
            directory="/",
            stdout=str(output),
            timeout_seconds=SECONDS_TO_NAME,
        )  # fmt: skip
        if self._starter.run(command).ended != Exited(code=0):
            return {}
        return read_addr2line(output.read_text(errors="replace"), file)


def read_addr2line(text: str, object: str) -> dict[int, tuple[Function, ...]]:
    r"""Return the functions of each address in an output of ``addr2line -a -f -i``, the innermost first.

    >>> text = "0x11a2\ncopy\n/a/b.c:7 (discriminator 2)\nmain\n??:?\n0x9\n??\n??:0\n"
    >>> [(each.name, each.file, each.line) for each in read_addr2line(text, "/bin/x")[0x11A2]]
    [('copy', '/a/b.c', 7), ('main', '', 0)]
    """
    found: dict[int, tuple[Function, ...]] = {}
    address, name = 0, ""
    for line in text.splitlines():
        if _ADDRESS.match(line):
            address, name = int(line, 16), ""
            found[address] = ()
        elif not name:
            name = line
        elif address in found:
            file, _, number = line.partition(" (")[0].rpartition(":")
            function = Function(
                "" if name == "??" else name,
                "" if file == "??" else file,
                int(number) if number.isdigit() else 0,
                object,
            )
            found[address] = (*found[address], function)
            name = ""
    return found


def call_sites(
    stacks: Sequence[AllocationStack],
    names: Mapping[tuple[str, int], tuple[Function, ...]],
    inside: Callable[[Function], bool] = in_program,
) -> Mapping[CallSite, Allocated]:
    """Return the allocations of each call site. `inside` returns whether a function belongs to the program."""
    found: defaultdict[CallSite, Allocated] = defaultdict(Allocated)
    for stack in stacks:
        functions = [function for frame in stack.frames for function in names[frame]]
        allocated = found[_site(functions, inside)]
        allocated.allocations += stack.allocations
        allocated.bytes += stack.bytes
    return found


def _site(functions: Sequence[Function], inside: Callable[[Function], bool]) -> CallSite:
    """Return the two innermost functions of the program; without one, those of libraries."""
    known = [each for each in functions if each.name]
    chosen = [each for each in known if inside(each)] or known
    if not chosen:
        return CallSite(function="unknown functions", file="", caller="")
    site = chosen[0]
    caller = next((each for each in chosen[1:] if each.key != site.key), None)
    return CallSite(
        function=base_name(site.name),
        file=site.file.rpartition("/")[2],
        caller="" if caller is None else base_name(caller.name),
    )
