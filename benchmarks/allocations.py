"""Counts of allocations compared with those of Valgrind, and the cost of counting.

``python -m benchmarks.allocations`` counts the allocations of programs in several languages with perftrail and with
Valgrind's memcheck, and runs each program in interleaved pairs, without and with counting. ``--write`` replaces the
page of results.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.machine import load, measured_on
from benchmarks.markdown import table
from perftrail.model.process import AllocationCounts, Command, Exited, why_uncounted
from perftrail.process.launcher import Launcher
from perftrail.stats.estimate import estimate

PAGE = Path(__file__).parent / "results/allocations.md"

CPP = """
#include <map>
#include <string>
#include <thread>
#include <vector>
static void work(int rounds) {
    std::map<int, std::string> words;
    for (int round = 0; round < rounds; round++) {
        std::string &word = words[(round * 7919) % 5003];
        word = std::string(20 + round % 60, 'x');
        if (round % 5 == 0) words.erase(round % 5003);
    }
}
int main(int count, char **arguments) {
    int threads = std::stoi(arguments[1]);
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++) all.emplace_back(work, 2000000 / (threads ? threads : 1));
    for (auto &each : all) each.join();
    if (!threads) work(2000000);
}
"""
RUST = """
use std::collections::BTreeMap;
fn main() {
    let mut words: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for round in 0..1_000_000u64 {
        let list = words.entry(round.wrapping_mul(2654435761) % 4099).or_default();
        list.push(format!("entry {round}"));
        if list.len() > 20 { list.clear(); list.shrink_to_fit(); }
    }
    println!("{}", words.values().map(Vec::len).sum::<usize>());
}
"""
C = """
#include <stdlib.h>
#include <string.h>
struct node { struct node *left, *right; char *name; };
static struct node *insert(struct node *at, const char *name) {
    if (!at) {
        at = calloc(1, sizeof *at);
        at->name = strdup(name);
    } else {
        int order = strcmp(name, at->name);
        if (order < 0) at->left = insert(at->left, name);
        else if (order > 0) at->right = insert(at->right, name);
    }
    return at;
}
int main(void) {
    struct node *root = 0;
    unsigned state = 1;
    for (int i = 0; i < 300000; i++) {
        char name[16];
        state = state * 1664525 + 1013904223;
        for (int at = 0; at < 7; at++) name[at] = 'a' + (state >> (4 * at)) % 16;
        name[7] = 0;
        root = insert(root, name);
    }
    return root == 0;
}
"""
PYTHON = """
import json
rows = [{"id": number, "name": str(number), "tags": list(range(number % 7))} for number in range(60000)]
assert json.loads(json.dumps(rows)) == rows
"""
SQL = """
CREATE TABLE word (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 200000)
INSERT INTO word SELECT n, 'word ' || (n * 7919 % 100003), n % 100 FROM number;
CREATE INDEX by_name ON word (name);
SELECT size, count(*), max(name) FROM word GROUP BY size ORDER BY 2 LIMIT 3;
"""
PERL = (
    "my %words; $words{$_ % 50021} .= 'word' for 1..600000; my @all = sort values %words; print scalar @all;"
)

# Valgrind sets the last four. Python and Perl copy their environment, so it must have as many variables in each run.
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C",
    "PYTHONHASHSEED": "0",
    "PERL_HASH_SEED": "0",
    "GLIBCPP_FORCE_NEW": "1",
    "GLIBCXX_FORCE_NEW": "1",
    "LD_LIBRARY_PATH": "/usr/lib/debug",
    "PWD": "/",
}
TOTALS = re.compile(r"total heap usage: ([\d,]+) allocs, [\d,]+ frees, ([\d,]+) bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to count: its language and its command."""

    name: str
    language: str
    arguments: tuple[str, ...]


def programs(directory: Path) -> list[Program]:
    """Compile the programs, and return all that this machine has."""
    found = []

    def built(name: str, source: str, *compiler: str) -> str | None:
        if shutil.which(compiler[0]) is None:
            return None
        suffix = {"cc": ".c", "c++": ".cpp", "rustc": ".rs"}[compiler[0]]
        (directory / name).with_suffix(suffix).write_text(source)
        file = str((directory / name).with_suffix(suffix))
        subprocess.run([*compiler, "-o", str(directory / name), file], check=True)
        return str(directory / name)

    def add(name: str, language: str, program: str | None, *arguments: str) -> None:
        path = None if program is None else shutil.which(program)
        if path is not None:
            found.append(Program(name=name, language=language, arguments=(path, *arguments)))

    lines = directory / "lines"
    lines.write_text("".join(f"{number * 7919 % 1_000_003} line\n" for number in range(300_000)))
    script = directory / "script.sql"
    script.write_text(SQL)
    cpp = built("strings", CPP, "c++", "-O2", "-pthread")
    add("tree of words", "C", built("tree", C, "cc", "-O2"))
    add("map of strings", "C++", cpp, "0")
    add("map of strings, 2 threads", "C++", cpp, "2")
    add("map of lists", "Rust", built("lists", RUST, "rustc", "-O"))
    add("sort", "C", "sort", "--parallel=1", str(lines))
    add("sqlite3", "C", "sqlite3", ":memory:", f".read {script}")
    add("git log --stat", "C", "git", "-C", str(Path(__file__).parents[1]), "log", "--stat", "-150")
    add("Python, JSON", "Python", sys.executable, "-I", "-c", PYTHON)
    add("Perl, hash", "Perl", "perl", "-e", PERL)
    return found


def by_valgrind(program: Program, directory: Path) -> tuple[int, int]:
    """Return the allocations and bytes that Valgrind counts."""
    log = directory / "log"
    options = (
        "--run-libc-freeres=no",
        "--run-cxx-freeres=no",
        "--undef-value-errors=no",
        f"--log-file={log}",
    )
    subprocess.run(
        ["valgrind", *options, *program.arguments],
        env={**ENVIRONMENT, "PERFTRAIL_ALLOCATIONS": "/dev/null"},
        cwd="/",
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found = TOTALS.search(log.read_text())
    assert found is not None
    allocations, allocated = (int(text.replace(",", "")) for text in found.groups())
    return allocations, allocated


def plain(program: Program) -> Command:
    """Return a program's command without counting."""
    return Command(
        arguments=program.arguments, environment=ENVIRONMENT, directory="/", aslr=False, tree_memory="off"
    )


def counted(launcher: Launcher, program: Program) -> AllocationCounts:
    """Count a program's allocations once."""
    ran = launcher.run(replace(plain(program), allocation_counter="preload"))
    assert ran.ended == Exited(code=0), program
    assert not why_uncounted(ran.allocations), program
    assert ran.allocations is not None
    return ran.allocations


def overheads(launcher: Launcher, program: Program, rounds: int) -> tuple[float, list[float]]:
    """Return the CPU seconds without counting, and the relative cost of counting in each interleaved pair."""
    seconds: list[float] = []
    costs = []
    command = plain(program)
    counting = replace(command, allocation_counter="preload")
    for number in range(rounds):
        order = (command, counting) if number % 2 == 0 else (counting, command)
        cpu = {each.allocation_counter: launcher.run(each).cpu_seconds for each in order}
        seconds.append(cpu["off"])
        costs.append(cpu["preload"] / cpu["off"] - 1.0)
    return statistics.median(seconds), costs


def row(launcher: Launcher, program: Program, directory: Path, rounds: int) -> list[str]:
    """Return a program's line of the table."""
    counts = counted(launcher, program)
    again = counted(launcher, program)
    allocations, allocated = by_valgrind(program, directory)
    seconds, costs = overheads(launcher, program, rounds)
    cost = estimate(costs)
    return [
        program.name,
        program.language,
        f"{counts.allocations:,}",
        f"{allocations:,}",
        f"{counts.bytes:,}",
        f"{counts.bytes - allocated:+,}",
        "yes" if (again.allocations, again.bytes) == (counts.allocations, counts.bytes) else "no",
        f"{counts.allocations / seconds / 1e6:.1f}",
        f"{cost.value:+.1%} [{cost.low:+.1%}, {cost.high:+.1%}]",
    ]


HEAD = [
    "program", "language", "allocations", "Valgrind's", "bytes", "bytes − Valgrind's", "equal twice",
    "million allocations per CPU second", "CPU time of counting",
]  # fmt: skip


def main() -> None:
    """Measure and print, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocations", description=__doc__)
    parser.add_argument("--rounds", type=int, default=21, help="interleaved pairs of each program")
    parser.add_argument("--write", action="store_true", help=f"replace {PAGE.name}")
    options = parser.parse_args()
    busy = load()
    with tempfile.TemporaryDirectory() as name, Launcher() as launcher:
        directory = Path(name)
        lines = [HEAD]
        for program in programs(directory):
            lines.append(row(launcher, program, directory, options.rounds))
            print(*lines[-1], sep=" | ", flush=True)
    text = f"""\
<!-- made by `python -m benchmarks.allocations --write`: do not edit -->

# Results of counting allocations

{measured_on()}. Load average before: {busy}.

Each program ran under Valgrind's memcheck and with `counters = ["allocations"]`. Their environments differ in the
path of the preloaded object, whose length some programs copy. The object's thread-local variable adds 16 bytes for
each thread. **CPU time of counting** is the median of {options.rounds} interleaved pairs, with its 95 % interval.

{table(lines)}
"""
    if options.write:
        PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
