"""``python -m benchmarks.contention``: what `perftrail show` says limits programs of which that is known, as a table.

Each run is a study of its own: all programs with one thread and with two, in turns, and then what is told of each. A
cause that is told and not there is wrong; that it cannot be told is not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import taken
from benchmarks.markdown import table
from benchmarks.search.goals import share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "explanation" / "scaling.md"
BEGIN, END = "<!-- made by benchmarks.contention: begin -->", "<!-- made by benchmarks.contention: end -->"

TRUTH: Mapping[str, frozenset[str]] = {
    "mutex": frozenset({"lock"}),
    "half-mutex": frozenset({"lock"}),
    "writers": frozenset({"lock"}),
    "arena": frozenset({"lock", "hidden lock"}),
    "spin": frozenset({"spinning"}),
    "sharing": frozenset({"false sharing"}),
    "counter": frozenset({"false sharing"}),
    "memory": frozenset({"memory", "kernel"}),
    "imbalance": frozenset({"serial"}),
    "handover": frozenset({"handover"}),
    "barrier": frozenset({"handover"}),
    "pages": frozenset({"hidden lock", "kernel"}),
    "none": frozenset(),
    "own-mutex": frozenset(),
    "reading": frozenset(),
    "rare-mutex": frozenset(),
}
"""What limits each program of faults.c; of those that nothing limits, the word must be "scales" or "cannot tell".

A line that several processors write is called false sharing, also where they mean to share it.
"""

STUDY = """\
[source]
kind = "directory"
location = "source"

[build]
steps = ["cc -O2 -pthread faults.c -o faults"]
outputs = ["faults"]

[benchmark.work]
command = "{{build}}/faults {{fault}} {{threads}}"
parameters = {{ fault = {faults}, threads = [1, 2] }}
counters = [{counters}]

[measure]
warmups = 0
invocations = {invocations}
"""


def main() -> None:
    """Take all runs, print their table, and with --write put it into its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contention", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--invocations", type=int, default=8, help="of each program at each count of threads")
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name}")
    asked = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        parser.error("takes two processors")
    told = {counters: _told(asked.runs, asked.invocations, counters) for counters in ("", '"locks"')}
    text = _shown(told, runs=asked.runs, invocations=asked.invocations)
    print(text)
    if asked.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def _told(runs: int, invocations: int, counters: str) -> dict[str, Counter[str]]:
    """Return how often what was told of each program."""
    told: dict[str, Counter[str]] = {fault: Counter() for fault in TRUTH}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        study = Path(name) / "study"
        (study / "source").mkdir(parents=True)
        (study / "source" / "faults.c").write_bytes((HERE / "faults.c").read_bytes())
        text = STUDY.format(faults=json.dumps([*TRUTH]), counters=counters, invocations=invocations)
        (study / "perftrail.toml").write_text(text, encoding="utf-8")
        for run in range(runs):
            print(f"run {run + 1} of {runs}{' with counted locks' * bool(counters)}", file=sys.stderr)
            store = ("--store", str(study / f"run-{run}"))
            _perftrail("run", str(study), *store)
            for row in json.loads(_perftrail("show", str(study), *store, "--json")):
                if row["scaling"] is not None:
                    found = row["scaling"]["contention"]
                    words = found["candidates"] if found["outcome"] == "likely" else [found["outcome"]]
                    told[row["point"]["fault"]][words[0]] += 1
    return told


def _perftrail(*words: str) -> str:
    perftrail = Path(sys.executable).with_name("perftrail")
    done = subprocess.run([perftrail, *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode()


def _shown(told: Mapping[str, Mapping[str, Counter[str]]], *, runs: int, invocations: int) -> str:
    lines: list[Sequence[str]] = [
        (
            fault,
            " or ".join(sorted(truth)) or "nothing",
            *(_words(told[counters][fault]) for counters in told),
        )
        for fault, truth in TRUTH.items()
    ]
    head = ("program", "limited by", "told", "told, with counted locks")
    named = sum(sum(_wrong(fault, found).values()) for each in told.values() for fault, found in each.items())
    clean = [each[fault] for each in told.values() for fault, truth in TRUTH.items() if not truth]
    locks = sum(found["lock"] for found in clean)
    of_clean = sum(found.total() for found in clean)
    of_all = sum(found.total() for each in told.values() for found in each.values())
    sums = (
        f"A cause that is not there was told {share(named / of_all, of_all)}; a lock, of programs that nothing limits, "
        f"{share(locks / of_clean, of_clean)}."
    )
    return f"{taken()}; {runs} runs, {invocations} invocations of each point.\n\n{table([head, *lines])}\n\n{sums}\n"


def _wrong(fault: str, found: Counter[str]) -> Counter[str]:
    allowed = TRUTH[fault] | {"scales", "cannot tell"}
    return Counter({word: count for word, count in found.items() if word not in allowed})


def _words(found: Counter[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in found.most_common()) or "not measured"


if __name__ == "__main__":
    main()
