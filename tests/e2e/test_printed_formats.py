"""Real programs that print other tools' formats: one invocation yields a metric of each printed benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail, perftrail_here

pytestmark = pytest.mark.slow("starts")

WORK = """\
#include <stdio.h>
#include <string.h>
#include <time.h>
static double once(long n) {
    struct timespec from, to;
    volatile long sink = 0;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < n; i++) sink += i;
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec);
}
int main(int count, char **words) {
    if (!strcmp(words[1], "go")) {
        for (int i = 0; i < 3; i++)
            printf("BenchmarkSum/size=100000-2 \\t 1\\t%.1f ns/op\\t%d.5 hits/op\\n", once(100000), i);
        printf("BenchmarkLong \\t 1\\t%.1f ns/op\\t 9 hits/op\\nPASS\\n", once(4000000));
        return 0;
    }
    printf("{\\"context\\": {\\"num_cpus\\": 2}, \\"benchmarks\\": [");
    for (long n = 1000; n <= 1000000; n *= 1000)
        printf("%s{\\"name\\": \\"BM_Sum/%ld\\", \\"run_type\\": \\"iteration\\", "
               "\\"real_time\\": %.3f, \\"cpu_time\\": 7, "
               "\\"time_unit\\": \\"us\\", \\"items_per_second\\": %ld}", n > 1000 ? "," : "", n, once(n) / 1000, n);
    printf("]}");
    return count != 2;
}
"""

STUDY = """\
[source]
kind = "directory"
location = "src"

[build]
steps = ["cc -O1 -o work work.c"]
pin = false
outputs = ["work"]

[benchmark.go]
command = "{build}/work go"
[benchmark.go.metrics]
sum = { reads = "go", item = "Sum[size=100000, threads=2]", unit = "s", pick = "median" }
hits = { reads = "go", item = "Sum[size=100000, threads=2]", item_metric = "hits/op", unit = "hits", pick = "max" }
long = { reads = "go", item = "Long[threads=1]", unit = "s" }

[benchmark.google]
command = "{build}/work google"
[benchmark.google.metrics]
short = { reads = "google-benchmark", item = "BM_Sum[arg=1000]", unit = "s" }
large = { reads = "google-benchmark", item = "BM_Sum[arg=1000000]", unit = "s" }
[benchmark.google.metrics.rate]
reads = "google-benchmark"
item = "BM_Sum[arg=1000]"
item_metric = "items_per_second"
unit = "1/s"
better = "higher"

[measure]
invocations = 3
warmups = 0
"""


def write_study(directory: Path, text: str = STUDY) -> Path:
    (directory / "src").mkdir()
    (directory / "src/work.c").write_text(WORK)
    (directory / "perftrail.toml").write_text(text)
    return directory


def test_one_invocation_yields_a_metric_for_each_item(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    perftrail("run", study)
    rows: list[dict[str, Any]] = json.loads(perftrail_here("show", study, "--json").stdout)
    medians = {(row["benchmark"], row["metric"]): row["estimate"]["value"] for row in rows if row["estimate"]}
    assert medians["go", "hits"] == 2.5
    assert medians["google", "rate"] == 1000
    assert medians["google", "short"] < medians["google", "large"] < 1
    assert 0 < medians["go", "sum"] < medians["go", "long"] < 1


def test_a_missing_item_is_a_failure_that_suggests_the_nearest_one(tmp_path: Path) -> None:
    study = write_study(tmp_path, STUDY.replace('item = "Long[threads=1]"', 'item = "Lang[threads=1]"'))
    done = perftrail("run", study, "--only", "benchmark=go", expect=1)
    assert 'no item "Lang[threads=1]"; did you mean "Long[threads=1]"' in done.stdout + done.stderr


def test_keys_that_do_not_apply_are_mistakes(tmp_path: Path) -> None:
    text = (
        STUDY.replace('reads = "go", item = "Long[threads=1]"', 'item = "Long"')
        .replace(
            'reads = "go", item = "Sum[size=100000, threads=2]", unit = "s"', 'reads = "go", pattern = "(a)"'
        )
        .replace('reads = "google-benchmark", item = "BM_Sum[arg=1000]", unit = "s"', 'reads = "google"')
    )
    stderr = perftrail_here("check", write_study(tmp_path, text), expect=2).stderr
    assert "benchmark.go.metrics.long: needs a pattern, or reads" in stderr
    assert "benchmark.go.metrics.sum.pattern: a metric has a pattern or reads, not both" in stderr
    assert "benchmark.google.metrics.short.reads: " in stderr
