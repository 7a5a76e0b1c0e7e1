"""``python -m benchmarks.contention``: the causes that `perftrail show` reports for programs with known limits.

Each run is a separate study, which measures the programs with the numbers of --threads, and reads the report of each. A
reported cause is wrong if the program does not have it; several are wrong without the true one. "Cannot tell" is not
wrong.

Each finished run is stored in --into, and counts for every later command: --runs is the total. ``--runs 20`` and then
``--runs 100 --only clean`` gives each program twenty runs and the clean ones a hundred.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.contention.programs import CLEAN, NOT_MEASURED, OR, PROGRAMS, Program, programs_named
from benchmarks.contention.runs import Series
from benchmarks.machine import measured_on
from benchmarks.markdown import table
from benchmarks.search.goals import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    ReportCounts = dict[str, Counter[str]]

PAGE = Path(__file__).parents[2] / "benchmarks" / "results" / "contention.md"
BEGIN, END = "<!-- made by benchmarks.contention: begin -->", "<!-- made by benchmarks.contention: end -->"


def main() -> None:
    """Do the missing runs, print the table of all, and with --write write it into its page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--runs", type=int, default=10, help="total runs of each program [10]")
    add(
        "--invocations", type=int, default=8, help="invocations of each program at each number of threads [8]"
    )
    add(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="a program, clean or faulty; may be repeated",
    )
    add(
        "--threads",
        type=lambda text: tuple(int(each) for each in text.split(",")),
        default=(1, 2),
        metavar="N,N",
        help="numbers of threads, at most the processors [1,2]",
    )
    add("--into", type=Path, default=Path(".build/contention"), metavar="DIR", help="[.build/contention]")
    add("--write", action="store_true", help=f"write the values into {PAGE.name}")
    options = parser.parse_args()
    if max(options.threads) > (os.cpu_count() or 1):
        parser.error(f"needs {max(options.threads)} processors")
    try:
        programs = programs_named(options.only)
    except ValueError as error:
        parser.error(str(error))
    plain, counted = (
        Series(
            into=options.into.resolve(),
            invocations=options.invocations,
            counted=counted,
            threads=options.threads,
        )
        for counted in (False, True)
    )
    while _run_once_more(plain, programs, options.runs) | _run_once_more(counted, programs, options.runs):
        pass
    text = _page_text(_report_counts(plain), _report_counts(counted), invocations=options.invocations)
    print(text)
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def _run_once_more(series: Series, programs: Sequence[Program], runs: int) -> bool:
    """Run the programs with too few runs once more, with or without counts; return whether there were any."""
    reports = _report_counts(series)
    incomplete = [each.name for each in programs if reports[each.name].total() < runs]
    if incomplete:
        began = perf_counter()
        series.run(incomplete)
        done = min(reports[name].total() for name in incomplete) + 1
        counted = " with counts" if series.counted else ""
        seconds = perf_counter() - began
        print(f"run {done} of {runs}{counted}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return bool(incomplete)


def _report_counts(series: Series) -> ReportCounts:
    """Return how often each cause was reported for each program."""
    reports: ReportCounts = {each.name: Counter() for each in PROGRAMS}
    for run in series.reports():
        for name, report in run.items():
            reports[name][report] += 1
    return reports


def _page_text(plain: ReportCounts, counted: ReportCounts, *, invocations: int) -> str:
    head = ("program", "true cause", "reported cause", "reported cause, with counted locks and waits")
    lines: list[Sequence[str]] = [
        (
            each.name,
            " or ".join(sorted(each.limits)) or "nothing",
            _report_text(plain[each.name]),
            _report_text(counted[each.name]),
        )
        for each in PROGRAMS
    ]
    both = (plain, counted)
    wrong = sum(
        count
        for each in PROGRAMS
        for reports in both
        for report, count in reports[each.name].items()
        if each.is_wrong(report)
    )
    of_all = sum(reports[each.name].total() for each in PROGRAMS for reports in both)
    locks = sum(reports[name]["lock"] for name in CLEAN for reports in both)
    of_clean = sum(reports[name].total() for name in CLEAN for reports in both)
    faulty = [each for each in PROGRAMS if each.limits]
    right = [
        sum(reports[each.name][cause] for each in faulty for cause in each.limits)
        / max(1, sum(reports[each.name].total() for each in faulty))
        for reports in both
    ]
    sums = (
        f"perftrail reported a false cause in {_share(wrong, of_all)} runs. It reported a lock in "
        f"{_share(locks, of_clean)} runs of programs without a limit. In runs of programs with a limit, it "
        f"reported the true cause alone in {right[0]:.0%}, and with counted locks and waits in {right[1]:.0%}."
    )
    return f"{measured_on()}; {invocations} invocations of each point.\n\n{table([head, *lines])}\n\n{sums}\n"


def _share(count: int, of: int) -> str:
    return share(count / of, of) if of else NOT_MEASURED


def _report_text(found: Counter[str]) -> str:
    return ", ".join(f"{_short(report)} {count}" for report, count in found.most_common()) or NOT_MEASURED


def _short(report: str) -> str:
    first, *others = report.split(OR)
    return report if len(others) < 3 else f"{first}{OR}{len(others)} others"


if __name__ == "__main__":
    main()
