"""What suites of Rust crates share: programs that the study's build copied to ``perftrail-bench/``, by package."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from perftrail.suites.shell import for_each_program, in_directory, word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perftrail.model.benchmark import Value
    from perftrail.model.suite import Suite

PROGRAMS = "perftrail-bench"
"""Directory of the copies in the build; below it, each is in the directory of its package."""


def listing_of(suite: Suite, *, mark: str, line: str) -> str:
    """Return the shell line that lists each program with `mark` in its code; `line` starts it as ``$at``.

    Programs of other harnesses are skipped, because some would run everything instead of listing it.
    """
    package = f"${{program#{PROGRAMS}/}}"
    where = (
        in_directory(suite.path)
        if suite.path
        else f'case "{package}" in */*) [ ! -d "${{directory%/*}}" ] || cd "${{directory%/*}}";; esac'
    )
    return for_each_program(
        suite,
        f'if grep -qF {word(mark)} "$program"; then (at={{build}}/"$program"; '
        f'directory="{package}"; {where}; exec {line}); fi',
    )


def at_package(suite: Suite, program: str) -> str:
    """Return the start of a line that runs in the directory of a program's package, with its path as ``$at``."""
    start = f"at={{build}}/{word(program)} && {in_directory(suite.path)}"
    package = str(PurePosixPath(_short(program)).parent)
    if suite.path or package == ".":
        return start
    return f"{start} && {{ [ ! -d {word(package)} ] || cd {word(package)}; }}"


def unique_names(found: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of benchmarks of programs, with the program before a name that several programs have.

    >>> unique_names([("perftrail-bench/a", "sum"), ("perftrail-bench/b", "sum"), ("perftrail-bench/b", "max")])
    ['a/sum', 'b/sum', 'max']
    """
    pairs = list(dict.fromkeys(found))
    programs = Counter(name for _, name in pairs)
    return [f"{_short(program)}/{name}" if programs[name] > 1 else name for program, name in pairs]


def as_value(text: str) -> Value:
    """Return a parameter's value: a number if its digits are those of the text.

    >>> as_value("10"), as_value("010")
    (10, '010')
    """
    return int(text) if re.fullmatch(r"-?[1-9]\d{0,14}|0", text) else text


def _short(program: str) -> str:
    return program.removeprefix(f"{PROGRAMS}/")
