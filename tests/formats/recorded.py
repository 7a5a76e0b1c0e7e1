"""Recorded files of tools for the contract of readers, each with one value of the tool's report.

A new format is one more line of `RECORDED`; `data/README.md` says how its file was made.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types of its own
from pyarrow import parquet

from perftrail.formats.publication import encode
from perftrail.model.published import (
    Publication,
    PublishedMachine,
    PublishedMetric,
    PublishedRevision,
    PublishedValues,
)
from tests.formats.fixtures import DATA


@dataclass(frozen=True)
class Recorded:
    """A file's format, and its first series: benchmark, metric, unit, and the median that the tool prints."""

    format: str
    benchmark: str
    median: float
    unit: str | None = "s"
    metric: str = "wall"


RECORDED: Mapping[str, Recorded] = {
    "hyperfine/params.json": Recorded("hyperfine", "command", 0.021240536),
    "hyperfine/plain.json": Recorded("hyperfine", "command", 0.0007567380000000001),
    "pyperf/calibrated.json": Recorded("pyperf", "sum", 32.4e-6),
    "pyperf/out.json": Recorded("pyperf", "sum", 1.63e-6),
    "google-benchmark/single.json": Recorded("google-benchmark", "BM_Sort", 1.4051746400509933e-6),
    "google-benchmark/repeated.json": Recorded("google-benchmark", "BM_Sort", 4.991360995893608e-6),
    "google-benchmark/aggregates.json": Recorded("google-benchmark", "BM_SortUnits", 3.0679948395118117e-6),
    "jmh/sampled.json": Recorded("jmh", "demo.Sums.sampled", 4.604e-6),
    "jmh/fold.json": Recorded("jmh", "demo.Sums.fold", 276683, "1/s", "throughput"),
    "pytest-benchmark/data.json": Recorded("pytest-benchmark", "test_it.py::test_sum", 3.303000994492322e-6),
    "asv/bench-machine/70def084-existing-py3.json": Recorded(
        "asv", "b.Work.peakmem_work", 27254784, "B", "peak_memory"
    ),
    "asv/bench-machine/e8c3b713-existing-py3.json": Recorded(
        "asv", "b.Work.peakmem_work", 27332608, "B", "peak_memory"
    ),
    "rebench/bench.data": Recorded("rebench", "Sums/Scan", 1.367),
    "tclbench/out.list": Recorded("tclbench", 'LIST append, "long"', 2.7546e-6),
    "tclbench/out.text": Recorded("tclbench", 'LIST append, "long"', 5.87e-6),
    "tclbench/out.csv": Recorded("tclbench", 'LIST append, "long"', 6.01396e-6),
    "go/count.txt": Recorded("go", "Alone", 25.181e-6),
    "criterion/sums/fold/100/new/sample.json": Recorded("criterion", "sums/fold", 44.931784660766967e-9),
    "criterion/slow/flat/new/sample.json": Recorded("criterion", "slow/flat", 19.21547222222222e-6),
    "divan/out.txt": Recorded("divan", "sums::plain", 143.9e-9, metric="fastest"),
    "divan/binary.txt": Recorded("divan", "sums::counters::bytes", 33.6e-9, metric="fastest"),
    "benchmarkdotnet/Demo.Sums-report-full.json": Recorded("benchmarkdotnet", "Demo.Sums.Fold", 2.5e-6),
    "benchmarkdotnet/Demo.Sums-report-brief.json": Recorded("benchmarkdotnet", "Demo.Sums.Plain", 12e-9),
    "nvbench/out.json": Recorded("nvbench", "copy", 20.502485e-6),
    "vitest/out.json": Recorded("vitest", "a.bench.ts > top", 0.48100000003614696e-6),
    "mitata/summaries.json": Recorded("mitata", "noop", 0.178466796875e-9),
    "mitata/samples.json": Recorded("mitata", "sleep", 65.4037755e-3),
    "gungraun/out.txt": Recorded("gungraun", "my_bench::my_group::sums::short", 74, None, "instructions"),
    "gungraun/out.json": Recorded(
        "gungraun", "my_bench::my_group::sums::short", 3.571428571428571, "%", "D1MissRate"
    ),
    "gungraun/pretty.json": Recorded(
        "gungraun", "my_bench::my_group::sums::short", 3.571428571428571, "%", "D1MissRate"
    ),
    "otava/otava.yaml": Recorded("otava", "sort", 10.101, None, "latency"),
    "criterion/printed.txt": Recorded("criterion-text", "sum alone", 430.17e-9),
}

UNKNOWN = ("google-benchmark/repeated.txt", "hyperfine/plain.csv", "asv/benchmarks.json", "jmh/fold.txt")
"""Files of tools that no format may recognise."""


def _packed() -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table({"benchmark": ["a"], "metric": ["wall"], "value": [1.0], "n": [1]}), sink)
    return sink.getvalue()


PUBLICATION = Publication(
    published="2026-01-02T03:04:05+00:00",
    study="How fast is it?",
    perftrail="0",
    sentence="It is fast.",
    tone="plain",
    evidence=(),
    machine=PublishedMachine(id="box"),
    revisions=(PublishedRevision(id="abc", time="2026-01-01T00:00:00+00:00"),),
    metrics=(
        PublishedMetric(
            benchmark="a",
            variant="plain",
            point={"n": 1},
            metric="wall",
            unit="s",
            better="lower",
            measured=(PublishedValues(revision=0, values=(1.0, 2.0), build="b"),),
        ),
    ),
)

WRITTEN: Mapping[str, bytes] = {
    "csv": b"benchmark,metric,value,when\na,wall,1,2026-01-01\n",
    "jsonl": b'{"benchmark": "a", "metric": "wall", "value": 1, "point": {"n": 1}}\n',
    "criterion": b'{"sampling_mode":"Flat","iters":[2.0],"times":[8.0]}',
    "criterion-text": b"a/b                     time:   [1.0 ns 2.0 ns 3.0 ns]\n",
    "publication": encode(PUBLICATION),
    "parquet": _packed(),
}
"""Formats that people write themselves, and short content for tests that read it often."""


def content(path: str) -> bytes:
    """The content of a recorded file."""
    return (DATA / path).read_bytes()


WHOLE: dict[str, bytes] = {}
"""Valid content of every format: what is written above, or the first recorded file."""

for _path, _recorded in RECORDED.items():
    WHOLE.setdefault(_recorded.format, WRITTEN.get(_recorded.format) or content(_path))
WHOLE |= WRITTEN
