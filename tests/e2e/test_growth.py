"""Growth of real programs: three of known order, and one whose memory grows with its threads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail, perftrail_here

pytestmark = pytest.mark.slow("starts")

WORK = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int order(const void *a, const void *b) { long x = *(long *)a, y = *(long *)b; return (x > y) - (x < y); }
int main(int count, char **words) {
    long n = atol(words[2]), steps = 0;
    volatile long sink = 0;
    if (!strcmp(words[1], "linear")) for (long i = 0; i < 500 * n; i++) { sink += i; steps++; }
    if (!strcmp(words[1], "square")) for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) { sink += j; steps++; }
    if (!strcmp(words[1], "sort")) for (long width = n; width > 0; width /= 2) steps += n;
    long *array = malloc(n * sizeof *array);
    for (long i = 0; i < n; i++) array[i] = i * 7919 % n;
    qsort(array, n, sizeof *array, order);
    printf("steps %ld\\n", steps);
    return count != 3;
}
"""

THREADS = """\
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t all;
static void *work(void *nothing) {
    volatile char *own = malloc(4 << 20);
    for (long at = 0; at < 4 << 20; at += 1024) own[at] = 1;
    pthread_barrier_wait(&all);
    free((void *)own);
    return nothing;
}
int main(int count, char **words) {
    int threads = atoi(words[1]);
    pthread_t ids[64];
    pthread_barrier_init(&all, 0, threads);
    for (int i = 0; i < threads; i++) pthread_create(&ids[i], 0, work, 0);
    for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
    return count != 2;
}
"""

STUDY = """\
[source]
kind = "directory"
location = "src"

[build]
steps = ["cc -O1 -pthread -o work work.c", "cc -O1 -pthread -o threads threads.c"]
pin = false
outputs = ["work", "threads"]

[variants.linear]
rebuild = false
run.parts = { kind = "linear" }
[variants.sort]
rebuild = false
run.parts = { kind = "sort" }
[variants.square]
rebuild = false
run.parts = { kind = "square" }

[benchmark.size]
command = "{build}/work {kind} {size}"
parameters = { size = [100, 300, 1000, 3000, 1000000] }
exclude = [{ variant = "linear", size = 1000000 }, { variant = "sort", size = 1000000 }]
timeout = "1s"
give_up = true
metrics = { steps = { pattern = 'steps ([0-9]+)' } }

[benchmark.memory]
command = "{build}/threads {threads}"
parameters = { threads = [1, 2, 4, 8, 16] }

[measure]
invocations = 3
warmups = 0
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("growth")
    (directory / "src").mkdir()
    (directory / "src/work.c").write_text(WORK)
    (directory / "src/threads.c").write_text(THREADS)
    (directory / "perftrail.toml").write_text(STUDY)
    perftrail("run", directory)
    return directory


@pytest.fixture(scope="module")
def curves(study: Path) -> dict[tuple[str, str, str], Any]:
    rows = json.loads(perftrail_here("show", study, "--json").stdout)
    return {(row["variant"], each["axis"], each["metric"]): each for row in rows for each in row["growth"]}


@pytest.fixture(scope="module")
def shown(study: Path) -> str:
    return perftrail_here("show", study).stdout


@pytest.mark.parametrize(
    ("variant", "order", "exponent"), [("linear", "n", 1.0), ("sort", None, 1.1), ("square", "n²", 2.0)]
)
def test_counted_steps_show_the_order_of_growth(
    curves: dict[tuple[str, str, str], Any], variant: str, order: str | None, exponent: float
) -> None:
    fit = curves[variant, "size", "steps"]["fit"]
    assert order in (None, fit["order"])
    assert fit["exponent"]["value"] == pytest.approx(exponent, abs=0.1)


def test_points_beyond_a_limit_are_reported_with_the_limit(
    curves: dict[tuple[str, str, str], Any], shown: str
) -> None:
    given_up = curves["square", "size", "steps"]["given_up"]
    assert given_up == [{"value": 1e6, "stage": "timeout", "limit": 1.0}]
    assert curves["linear", "size", "steps"]["given_up"] == []
    assert "stopped at size=1000000, which takes more than 1" in shown


def test_memory_of_each_thread_is_the_memory_that_it_touches(
    curves: dict[tuple[str, str, str], Any], shown: str
) -> None:
    per_thread = curves["linear", "threads", "peak_memory"]["per_unit"]
    assert per_thread["low"] <= per_thread["value"] <= per_thread["high"]
    assert per_thread["value"] == pytest.approx(4 * 2**20, rel=0.1)
    assert per_thread["linear"]
    assert "each unit of threads adds 4." in shown


def test_variants_are_compared_along_the_axis(curves: dict[tuple[str, str, str], Any], shown: str) -> None:
    against = {each["variant"]: each for each in curves["linear", "size", "steps"]["against"]}
    [crossing] = against["square"]["crossings"]
    assert crossing["low"] <= crossing["value"] <= crossing["high"]
    assert crossing["lower"] == "linear"
    assert against["square"]["ranges"][-1]["lower"] == "linear"
    assert "size.steps, linear and square: they cross at size=" in shown
    assert "beyond it linear is lower" in shown
