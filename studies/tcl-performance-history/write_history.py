#!/usr/bin/env python3
"""Write the history of numtext, a small C library, into a git and a Fossil repository: the same trees, the same parents.

    python3 write_history.py [--length N] DIRECTORY

replaces DIRECTORY/numtext.git and DIRECTORY/numtext.fossil. All text and dates are fixed, so every id is the same
each time. The trunk has N check-ins (220). A branch that rewrites the conversion of reals is merged into it; a later
check-in gives each thread its own precision; release 1.3 has a branch without both. Some check-ins do not compile.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

LIBRARY = Path(__file__).parent / "library"
FIRST_DAY = 1_500_000_000
DAY = 86_400

STAGES = {  # the stages after `begin`, each with the message of its check-in
    "big": "Add whole numbers of any size",
    "digits": "Add the digits of a double, after Steele and White",
    "convert": "Convert reals by our own digits",
    "shortest": "Make the fewest digits that read back the default",
    "per-thread": "Give each thread its own precision",
}
BRANCH = tuple(STAGES)[:-1]

SIGNS = "metre:m gram:g second:s ampere:A kelvin:K mole:mol candela:cd hertz:Hz newton:N pascal:Pa joule:J watt:W "
SIGNS += "coulomb:C volt:V farad:F siemens:S weber:Wb tesla:T henry:H lumen:lm lux:lx becquerel:Bq gray:Gy katal:kat "
SIGNS += "litre:L hectare:ha tonne:t day:d hour:h minute:min bar:bar knot:kn neper:Np bel:B inch:in foot:ft yard:yd "
SIGNS += "mile:mi acre:ac pint:pt gallon:gal ounce:oz pound:lb stone:st dram:dr grain:gr furlong:fur chain:ch rod:rd "
SIGNS += (
    "fathom:ftm league:lea hand:hh barrel:bbl bushel:bu peck:pk erg:erg dyne:dyn gauss:G stokes:St poise:P"
)
UNITS = tuple(tuple(each.split(":")) for each in SIGNS.split())


@dataclass(frozen=True)
class Library:
    """All that differs between check-ins; it determines the tree."""

    version: str = "1.2"
    units: int = 7
    keep: tuple[tuple[int, int], ...] = ((32, 16), (64, 16), (256, 8), (2048, 4))
    cases: int = 3
    notes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    forgotten: str = ""

    def tree(self) -> dict[str, str]:
        """Return the text of every file."""
        files = {name.relative_to(LIBRARY / "begin").as_posix(): name.read_text() for name in _files("begin")}
        for stage in self.stages:
            files |= {f"src/{name.name}": name.read_text() for name in _files(stage)}
        classes = "\n".join(f"    {{ {size}, {keep} }}," for size, keep in self.keep)
        units = "\n".join(f'    {{ "{name}", "{sign}" }},' for name, sign in UNITS[: self.units])
        files["src/numtext.h"] = files["src/numtext.h"].replace("@VERSION@", self.version)
        files["src/pool.c"] = files["src/pool.c"].replace("@CLASSES@", classes)
        files["src/units.c"] = files["src/units.c"].replace("@UNITS@", units)
        if self.forgotten:
            files["src/group.c"] += f'\n#include "{self.forgotten}"\n'
        files["tests/cases.txt"] = "".join(f"{case(number)}\n" for number in range(self.cases))
        if self.notes:
            files["NOTES"] = "".join(f"{note}\n" for note in self.notes)
        return files


def _files(stage: str) -> list[Path]:
    return sorted(each for each in (LIBRARY / stage).rglob("*") if each.is_file())


def case(number: int) -> str:
    """Return a value of the test cases."""
    return f"{(number * 7919 % 10_007) / 8:.3f}"


@dataclass
class CheckIn:
    """One check-in: its branch, its message, its content and its parents."""

    number: int
    line: str
    message: str
    library: Library
    parents: tuple[int, ...]
    tags: list[str] = field(default_factory=list)


class Trail:
    """The check-ins so far, and the tip of each branch."""

    def __init__(self) -> None:
        self.check_ins: list[CheckIn] = []
        self.tips: dict[str, CheckIn] = {}

    def add(
        self, line: str, message: str, library: Library, *merged: CheckIn, onto: CheckIn | None = None
    ) -> CheckIn:
        """Check in at the tip of a branch, or start the branch at another check-in."""
        first = onto or self.tips.get(line)
        parents = tuple(each.number for each in (first, *merged) if each is not None)
        added = CheckIn(len(self.check_ins) + 1, line, message, library, parents)
        self.check_ins.append(added)
        self.tips[line] = added
        return added

    def work(self, line: str, turn: int) -> CheckIn:
        """Check in ordinary work, which does not change the results of the benchmark."""
        library, message = ordinary(self.tips[line].library, turn)
        return self.add(line, message, library)

    def release(self, line: str, version: str, following: str) -> CheckIn:
        """Tag a release; the next check-in has the next version in the header."""
        note = f"Release {version}"
        library = self.tips[line].library
        added = self.add(line, note, replace(library, version=version, notes=(*library.notes, note)))
        added.tags.append(f"v{version}")
        self.add(line, f"Begin {following}", replace(added.library, version=following))
        return added


def ordinary(library: Library, turn: int) -> tuple[Library, str]:
    """Return the library after ordinary work, and the message of its check-in."""
    if turn % 5 == 2:
        at = turn // 5 % len(library.keep)
        size, keep = library.keep[at]
        changed = (*library.keep[:at], (size, keep + 1), *library.keep[at + 1 :])
        return replace(library, keep=changed), f"Keep {keep + 1} free buffers of {size} bytes, not {keep}"
    if turn % 5 in {0, 3} and library.units < len(UNITS):
        name, sign = UNITS[library.units]
        return replace(library, units=library.units + 1), f"Know the {name} ({sign})"
    if turn % 5 == 4:
        note = f"{case(turn)} was asked for, no. {turn}"
        return replace(library, notes=(*library.notes, note)), f"Note what was asked for, no. {turn}"
    return replace(library, cases=library.cases + 1), f"Test {case(library.cases)}"


def history(length: int) -> Trail:
    """Return the whole history: a trunk of `length` check-ins, a merged branch, and the branch of an old release."""
    trail = Trail()
    trail.add("trunk", "Begin numtext", Library())
    at = {name: max(2, round(length * share)) for name, share in PLACES.items()}
    turn = 0
    while (position := sum(each.line == "trunk" for each in trail.check_ins)) < length:
        turn += 1
        tip = trail.tips["trunk"].library
        due = [name for name, place in at.items() if place <= position]
        for name in due:
            del at[name]
            event(trail, name, turn)
        if due:
            continue
        broken = any(round(length * first) <= position < round(length * last) for first, last in BROKEN)
        if broken and not tip.forgotten:
            trail.add("trunk", "Take the signs from a table", replace(tip, forgotten="signs.h"))
        elif tip.forgotten and not broken:
            trail.add("trunk", "Do without the table that was forgotten", replace(tip, forgotten=""))
        else:
            trail.work("trunk", turn)
    return trail


PLACES = {"1.2": 0.24, "1.3": 0.38, "branch": 0.45, "merge": 0.62, "2.0": 0.72, "per-thread": 0.8, "2.1": 0.9}
"""The share of the trunk before each event."""

BROKEN = ((0.17, 0.2), (0.5, 0.53), (0.66, 0.68))
"""The ranges of the trunk that do not compile, as shares of it."""


def event(trail: Trail, name: str, turn: int) -> None:
    """Add the check-ins of an event of the trunk."""
    tip = trail.tips["trunk"]
    following = {"1.2": "1.3", "1.3": "2.0", "2.0": "2.1", "2.1": "2.2"}
    if name in following:
        added = trail.release("trunk", name, following[name])
        if name == "1.3":
            maintain(trail, added)
    elif name == "branch":
        numerics(trail, tip, turn)
    elif name == "merge":
        side = trail.tips["numerics"]
        merged = replace(tip.library, stages=side.library.stages, keep=joined(tip.library, side.library))
        trail.add("trunk", "Merge numerics", merged, side)
    else:
        changed = replace(tip.library, stages=(*tip.library.stages, "per-thread"))
        trail.add("trunk", STAGES["per-thread"], changed)


def joined(trunk: Library, side: Library) -> tuple[tuple[int, int], ...]:
    """Return the pool's classes of both: those of the trunk, and the one from the branch."""
    known = dict(trunk.keep)
    return tuple(sorted((dict(side.keep) | known).items()))


def maintain(trail: Trail, release: CheckIn) -> None:
    """Add a separate branch of release 1.3, with repairs only and two releases."""
    library = replace(release.library, version="1.3.1")
    trail.add("release-1.3", "Begin 1.3.1", library, onto=release)
    for version, following, first in (("1.3.1", "1.3.2", 1), ("1.3.2", "1.3.3", 6)):
        for turn in (first, first + 5, first + 10):
            trail.work("release-1.3", turn)
        trail.release("release-1.3", version, following)


def numerics(trail: Trail, onto: CheckIn, turn: int) -> None:
    """Rewrite the conversion of reals, on a branch from a check-in of the trunk."""
    library, first = replace(onto.library, forgotten=""), onto
    for number, stage in enumerate(BRANCH):
        library = replace(library, stages=(*library.stages, stage))
        added = trail.add("numerics", STAGES[stage], library, onto=first if number == 0 else None)
        for more in range(3):
            added = trail.work("numerics", 1 + 5 * (turn + 4 * number + more))
        library = added.library
        if stage == "digits":
            added = trail.add("numerics", "Try signs in front", replace(library, forgotten="front.h"))
            added = trail.add("numerics", "Leave signs as they were", library)
    library = replace(library, keep=tuple(sorted((*library.keep, (128, 8)))))
    trail.add("numerics", "Keep buffers of 128 bytes for long digits", library)


def stream(trail: Trail) -> Iterator[bytes]:
    """Return the history as input of git fast-import and fossil import."""
    for each in trail.check_ins:
        yield f"commit refs/heads/{each.line}\nmark :{each.number}\n".encode()
        yield f"committer {signed(each)}\n".encode()
        yield _data(each.message)
        yield "".join(
            f"{'merge' if place else 'from'} :{parent}\n" for place, parent in enumerate(each.parents)
        ).encode()
        yield b"deleteall\n"
        for name, text in sorted(each.library.tree().items()):
            yield f"M {'100755' if name == 'configure' else '100644'} inline {name}\n".encode() + _data(text)
    for each in trail.check_ins:
        for tag in each.tags:
            yield f"tag {tag}\nfrom :{each.number}\ntagger {signed(each)}\n".encode() + _data(each.message)


def signed(check_in: CheckIn) -> str:
    """Return the author and the date of a check-in: a day later each time."""
    return f"Ada Writer <ada@example.invalid> {FIRST_DAY + check_in.number * DAY} +0000"


def _data(text: str) -> bytes:
    encoded = text.encode()
    return b"data %d\n%s\n" % (len(encoded), encoded)


def write(directory: Path, length: int) -> None:
    """Write both repositories; they replace existing ones."""
    directory.mkdir(parents=True, exist_ok=True)
    content = b"".join(stream(history(length)))
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        for name in ("numtext.git", "numtext.fossil"):
            new, final = Path(scratch) / name, directory / name
            if name == "numtext.git":
                _run("git", "init", "-q", "--bare", "-b", "trunk", str(new), home=scratch)
                _run("git", "-C", str(new), "fast-import", "--quiet", home=scratch, read=content)
            else:
                _run(
                    "fossil",
                    "import",
                    "--git",
                    "--rename-master",
                    "trunk",
                    str(new),
                    home=scratch,
                    read=content,
                )
            if final.exists():
                final.rename(Path(scratch) / f"old-{name}")
            new.rename(final)


def _run(*command: str, home: str, read: bytes = b"") -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": home, "USER": "study", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(command, input=read, env=environment, capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")


def main() -> None:
    """Read the command line and write both repositories."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--length", type=int, default=220, metavar="N", help="check-ins on the trunk, 30 or more"
    )
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    if options.length < 30:
        parser.error("--length: 30 or more, so that each event has a check-in")
    write(options.directory, options.length)


if __name__ == "__main__":
    main()
