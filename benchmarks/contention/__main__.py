"""``python -m benchmarks.contention``: what `perftrail show` says limits programs of which that is known, as a table.

Each run is a study of its own: programs with one thread and with two, in turns, and then what is told of each. A cause
that is told and not there is wrong, and so are several without the one that is there; that it cannot be told is not.

Each run is kept in --into as soon as it is done, and counts for every later invocation: --runs says how many there
are to be. ``--runs 20`` and then ``--runs 100 --only clean`` gives each program twenty and the clean ones a hundred.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.contention.programs import CLEAN, NOT_MEASURED, OR, PROGRAMS, Program, named
from benchmarks.contention.runs import Series
from benchmarks.machine import measured_on
from benchmarks.markdown import table
from benchmarks.search.goals import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    Told = dict[str, Counter[str]]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "scaling.md"
BEGIN, END = "<!-- made by benchmarks.contention: begin -->", "<!-- made by benchmarks.contention: end -->"


def main() -> None:
    """Take the runs that are not there yet, print the table of all, and with --write put it into its page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--runs", type=int, default=10, help="of each program, those that are there included [10]")
    add("--invocations", type=int, default=8, help="of each program at each count of threads [8]")
    add(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="a program, clean or faulty; may be repeated",
    )
    add("--into", type=Path, default=Path(".build/contention"), metavar="DIR", help="[.build/contention]")
    add("--write", action="store_true", help=f"put the values into {PAGE.name}")
    options = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        parser.error("takes two processors")
    try:
        programs = named(options.only)
    except ValueError as error:
        parser.error(str(error))
    plain, counted = (
        Series(into=options.into.resolve(), invocations=options.invocations, counted=counted)
        for counted in (False, True)
    )
    while _one_more(plain, programs, options.runs) | _one_more(counted, programs, options.runs):
        pass
    text = _shown(_told(plain), _told(counted), invocations=options.invocations)
    print(text)
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def _one_more(series: Series, programs: Sequence[Program], runs: int) -> bool:
    """Take one more run of the programs that have too few, in turns with and without counts; whether there were any."""
    told = _told(series)
    lacking = [each.name for each in programs if told[each.name].total() < runs]
    if lacking:
        began = perf_counter()
        series.run(lacking)
        done = min(told[name].total() for name in lacking) + 1
        counted = " with counts" if series.counted else ""
        seconds = perf_counter() - began
        print(f"run {done} of {runs}{counted}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return bool(lacking)


def _told(series: Series) -> Told:
    """Return how often what was told of each program."""
    told: Told = {each.name: Counter() for each in PROGRAMS}
    for run in series.told():
        for name, words in run.items():
            told[name][words] += 1
    return told


def _shown(plain: Told, counted: Told, *, invocations: int) -> str:
    head = ("program", "true cause", "reported cause", "reported cause, with counted locks and waits")
    lines: list[Sequence[str]] = [
        (
            each.name,
            " or ".join(sorted(each.limits)) or "nothing",
            _words(plain[each.name]),
            _words(counted[each.name]),
        )
        for each in PROGRAMS
    ]
    both = (plain, counted)
    wrong = sum(
        count
        for each in PROGRAMS
        for told in both
        for words, count in told[each.name].items()
        if each.is_wrong(words)
    )
    of_all = sum(told[each.name].total() for each in PROGRAMS for told in both)
    locks = sum(told[name]["lock"] for name in CLEAN for told in both)
    of_clean = sum(told[name].total() for name in CLEAN for told in both)
    faulty = [each for each in PROGRAMS if each.limits]
    right = [
        sum(told[each.name][cause] for each in faulty for cause in each.limits)
        / max(1, sum(told[each.name].total() for each in faulty))
        for told in both
    ]
    sums = (
        f"perftrail reported a false cause in {_share(wrong, of_all)} runs. It reported a lock in "
        f"{_share(locks, of_clean)} runs of programs without a limit. In runs of programs with a limit, it "
        f"reported the true cause alone in {right[0]:.0%}, and with counted locks and waits in {right[1]:.0%}."
    )
    return f"{measured_on()}; {invocations} invocations of each point.\n\n{table([head, *lines])}\n\n{sums}\n"


def _share(held: int, of: int) -> str:
    return share(held / of, of) if of else NOT_MEASURED


def _words(found: Counter[str]) -> str:
    return ", ".join(f"{_short(told)} {count}" for told, count in found.most_common()) or NOT_MEASURED


def _short(told: str) -> str:
    first, *others = told.split(OR)
    return told if len(others) < 3 else f"{first}{OR}{len(others)} others"


if __name__ == "__main__":
    main()
