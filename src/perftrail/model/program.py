"""What a benchmark's command runs: a program that a linker produced, or one that an interpreter runs.

Only linked programs have a memory layout that relinking changes. `may_be_linked` judges a command without its files.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import TYPE_CHECKING

from perftrail.model.fixture import services_of
from perftrail.model.plan import command_line
from perftrail.model.wording import counted, page_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study

MANUAL = page_address("how-to/layout-noise.md")
"""Address of the page about layout noise, for messages."""


LARGEST_LAYOUT_EFFECT = 1.5
"""Memory layouts are not named as the cause of a larger factor: measured layouts differed by at most 13 % (Go)."""

ALIKE = 1e-9
"""Ratios whose interval is narrower do not vary: they are ratios of counts."""


def layouts_explain(ratio: float, low: float, high: float) -> bool:
    """Whether memory layouts can explain a ratio after/before: it is small, and its interval shows that it varies.

    >>> layouts_explain(1.2, 1.1, 1.3), layouts_explain(1.2, 1.2, 1.2), layouts_explain(2.0, 1.9, 2.1)
    (True, False, False)
    """
    return high - low >= ALIKE and 1.0 / LARGEST_LAYOUT_EFFECT < ratio < LARGEST_LAYOUT_EFFECT


def layout_words(*, linked: bool, usual: str = "") -> str:
    """Return what a sure difference of two builds does not prove.

    `linked`: whether a linker produced the program. `usual` is the usual difference of builds without a change.

    >>> layout_words(linked=False)
    'an interpreter runs this program, so relinking does not apply; perftrail varied hash seeds and environment size'
    """
    if not linked:
        return (
            "an interpreter runs this program, so relinking does not apply; perftrail varied hash seeds and "
            "environment size"
        )
    difference = f"; {usual}" if usual else ""
    return (
        f"the memory layouts of these builds may cause the difference{difference}; "
        f"to rule that out, measure ten layouts with [build] relink ({MANUAL})"
    )


def layouts_words(layouts: int, *, pinned: bool) -> str:
    """Return over how many memory layouts something was measured; `pinned`: they place unchanged code alike.

    >>> layouts_words(3, pinned=True), layouts_words(2, pinned=False)
    (', layouts pinned, 3 seeds', ' over 2 layouts')
    """
    return (
        f", layouts pinned, {counted(layouts, 'seed')}" if pinned else f" over {counted(layouts, 'layout')}"
    )


def unpinned_words(reason: str) -> str:
    """Return that a program's builds are measured as linked, and why."""
    return f"layouts are not pinned: {reason}"


def has_layout_of_service(study: Study, benchmark: str) -> bool:
    """Return whether a benchmark uses a service with one start, so with one memory layout, for all its invocations."""
    services = services_of(study, study.benchmarks[benchmark])
    return any(service.restart == "never" for service in services.values())


def may_be_linked(study: Study, cell: Cell) -> bool:
    """Return whether a cell's command can run a program that a linker produced.

    A service that is not started again counts as one, because it has one memory layout for each build.
    A command of an installed interpreter cannot; an interpreter of the build is the measured program.
    A shell counts for the files that it is given.
    """
    if has_layout_of_service(study, cell.benchmark):
        return True
    prefix = " ".join(study.variants[cell.subject.variant].run.prefix)
    line = f"{prefix} {command_line(study, cell)}"
    benchmark = study.benchmarks[cell.benchmark]
    return not any(_is_interpreted(words, benchmark) for words in _commands(line))


def _commands(line: str) -> Iterator[Sequence[str]]:
    """Yield the commands of a line, each as its words."""
    for part in re.split(r"&&|\|\|?|;", line):
        try:
            yield shlex.split(part)
        except ValueError:
            yield part.split()


def _is_interpreted(words: Sequence[str], benchmark: Benchmark) -> bool:
    """Return whether a command runs an interpreter, perhaps after a wrapper such as taskset, or a built script."""
    for number, word in enumerate(words):
        name = posixpath.basename(word)
        if _VARIABLE.match(word):
            continue
        if benchmark.is_built(word):
            if _VIRTUAL_ENVIRONMENT.search(word):
                return True
            return _SCRIPT.fullmatch(posixpath.splitext(word)[1]) is not None
        if _SHELL.fullmatch(name):
            built = [each for each in words[number + 1 :] if benchmark.is_built(each)]
            return bool(built) and all(_SCRIPT.fullmatch(posixpath.splitext(each)[1]) for each in built)
        if _INTERPRETER.fullmatch(name):
            return True
    return False


_VIRTUAL_ENVIRONMENT = re.compile(r"/\.?v?env/bin/")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
_SHELL = re.compile(r"(?:ba|da|k|z|a)?sh")
_INTERPRETER = re.compile(
    r"(?:bun|clojure|deno|dotnet|elixir|erl|escript|groovy|guile|java|julia|kotlin|lua|luajit|mono|node|nodejs|npm|npx|"
    r"octave|perl|php|pypy|pytest|python|R|Rscript|ruby|scala|tclsh|uv|wish)[\d.]*"
)
_SCRIPT = re.compile(r"\.(?:bash|class|[cm]?js|clj|exs|jar|jl|ksh|lua|php|pl|pyc?|pyz|[rR]|rb|sh|tcl|zsh)")
