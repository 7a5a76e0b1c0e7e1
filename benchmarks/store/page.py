"""The page about stores of many samples, from the JSON of the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Record = Mapping[str, Any]
    """The JSON output of a benchmark."""

PAGE = Path(__file__).parents[2] / "benchmarks" / "results" / "stores.md"

STORES = """\
A sample is one value of one metric; an outcome is one invocation with all its values. The benchmark fills a
file or an empty database. It first writes {durable:,} outcomes one by one, each on disk before the next,
like `perftrail run`. It writes the rest in batches of 1,000, like a copy. Then it reads.
"""

PAGES = """\
`perftrail serve` serves a study with a long history. The benchmark requests each kind of page repeatedly,
each time for another subject. The cells are the median and the 95th percentile in milliseconds. *During
writes*: another process adds two invocations a second, and the server reads the store again almost without
a pause. By default, `perftrail serve` pauses after each reading for 19 times its duration.
"""

REPORTS = """\
`perftrail report` of the same results, a new process each time: medians of {repetitions} runs.
"""


def page(results: Sequence[Record]) -> str:
    """Return the whole page from the output of the benchmarks."""
    stores = [each for each in results if "durable_median_ms" in each]
    served = [each for each in results if "pages" in each]
    reports = [each for each in results if "report" in each]
    parts = [
        "<!-- made by `python -m benchmarks.store page … --write`: do not edit -->\n",
        "# Stores of many samples\n",
        *(f"{line}.\n" for line in dict.fromkeys(each["taken"] for each in results)),
    ]
    if stores:
        parts += ["## Size and speed\n", STORES.format(durable=stores[0]["durable_outcomes"])]
        parts.append(_side_by_side(stores, STORE_LINES))
    if served:
        parts += ["\n## The dashboard's pages\n", PAGES, _pages(served), ""]
        parts.append(_side_by_side(served, SERVED_LINES))
    if reports:
        parts += ["\n## A report\n", REPORTS.format(**reports[0]), _side_by_side(reports, REPORT_LINES)]
    return "\n".join(parts) + "\n"


def read(files: Sequence[str]) -> list[Record]:
    """Read files with the output of the benchmarks."""
    return [json.loads(Path(file).read_text(encoding="utf-8")) for file in files]


def _side_by_side(found: Sequence[Record], lines: dict[str, Callable[[Record], str]]) -> str:
    """Return a table with a column for each result."""
    head = ["", *(_name(each) for each in found)]
    return table(
        [head, *([name, *(write(each) for each in found)] for name, write in (lines | LAST_LINES).items())]
    )


def _name(record: Record) -> str:
    return f"{record['database']}, {record['samples']:,} samples"


def _pages(found: Sequence[Record]) -> str:
    """Return a table with a line for each kind of page, and a column for each result and way of requesting."""
    ways = [(each, how) for each in found for how in each["pages"]]
    head = ["page", *(f"{each['database'].split()[0]}, {_short(how)}" for each, how in ways)]
    kinds = list(dict.fromkeys(kind for each, how in ways for kind in each["pages"][how]))
    return table(
        [head, *([kind, *(_times(each["pages"][how].get(kind)) for each, how in ways)] for kind in kinds)]
    )


def _short(how: str) -> str:
    return "during writes" if "written" in how else how


def _times(times: Record | None) -> str:
    return "" if times is None else f"{times['median_ms']:.0f}, {times['p95_ms']:.0f}"


STORE_LINES: dict[str, Callable[[Record], str]] = {
    "size on disk": lambda each: f"{each['size_bytes'] / 1e6:,.0f} MB",
    "bytes for each sample": lambda each: f"{each['bytes_each_sample']:.1f}",
    "one by one: outcomes a second": lambda each: f"{each['durable_outcomes_rate']:,.0f}",
    "one by one: an outcome, median": lambda each: f"{each['durable_median_ms']:.2f} ms",
    "one by one: an outcome, 99th percentile": lambda each: f"{each['durable_p99_ms']:.1f} ms",
    "in batches: outcomes a second": lambda each: f"{each['batch_outcomes_rate']:,.0f}",
    "in batches: samples a second": lambda each: f"{each['batch_samples_rate']:,.0f}",
    "opening it to read, median": lambda each: f"{each['open_ms']:.1f} ms",
    "reading the outcomes of one runnable, median": lambda each: (
        f"{each['read_one_runnable_median_ms']:.1f} ms"
    ),
    "reading the outcomes of 100 runnables, median": lambda each: (
        f"{each['read_hundred_runnables_median_ms']:.0f} ms"
    ),
    "reading one metric of all runnables": lambda each: f"{each['read_one_metric_of_all_ms'] / 1e3:.1f} s",
    "reading everything: samples a second": lambda each: f"{each['read_all_samples_rate']:,.0f}",
}

SERVED_LINES: dict[str, Callable[[Record], str]] = {
    "time to the first page": lambda each: f"{each['first_read_seconds']:.0f} s",
    "the server's peak memory": lambda each: f"{each['peak_memory_bytes'] / 2**30:.1f} GiB",
}

REPORT_LINES: dict[str, Callable[[Record], str]] = {
    "time": lambda each: f"{each['report']['passed']:.1f} s",
    "CPU time": lambda each: f"{each['report']['everything']:.1f} s",
    "CPU time to read the samples": lambda each: f"{each['report']['read the samples']:.1f} s",
    "peak memory of its main process": lambda each: f"{each['report']['peak_memory_bytes'] / 2**30:.2f} GiB",
    "size of the page": lambda each: f"{each['page_bytes'] / 1e6:.1f} MB",
    "time to the first screen in a browser": lambda each: (
        "" if each["opened_seconds"] is None else f"{each['opened_seconds']:.1f} s"
    ),
}

LAST_LINES: dict[str, Callable[[Record], str]] = {
    "load average at the end": lambda each: str(each["load"]),
}
