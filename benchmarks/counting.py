"""The cost of counting locks, waits and instructions, and which of Valgrind's tools counts fastest.

``python -m benchmarks.counting`` runs each program without and with counting, alternating, and prints medians.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from perftrail.model.process import Command
from perftrail.process.launcher import Launcher

LOCKS = """
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long shared;
static int contended;
static void *work(void *unused) {
    (void)unused;
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER, *mutex = contended ? &common : &own;
    for (int round = 0; round < 2000000; round++) {
        pthread_mutex_lock(mutex);
        for (int step = 0; contended && step < 20; step++) shared += 1;
        pthread_mutex_unlock(mutex);
    }
    return 0;
}
int main(int count, char **arguments) {
    (void)arguments;
    contended = count > 1;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(threads + i, 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
"""
ACQUISITIONS = 4_000_000

WAITS = """
#include <pthread.h>
#include <semaphore.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static sem_t given;
static int turn;
static void *by_turns(void *me) {
    for (int round = 0; round < 20000; round++) {
        pthread_mutex_lock(&mutex);
        while (turn != (me != 0)) pthread_cond_wait(&moved, &mutex);
        turn = me == 0;
        pthread_cond_signal(&moved);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
int main(int count, char **arguments) {
    (void)arguments;
    pthread_t threads[2];
    sem_init(&given, 0, 0);
    if (count == 1) {
        for (int i = 0; i < 2; i++) pthread_create(threads + i, 0, by_turns, i ? &turn : 0);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    }
    for (int round = 0; count > 1 && round < 4000000; round++) sem_post(&given), sem_wait(&given);
    return 0;
}
"""
HANDOVERS = 40_000

LOOP = """
#include <stdint.h>
int main(void) {
    uint64_t state = 88172645463325252ULL;
    for (long step = 0; step < 20000000; step++) {
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        __asm__ volatile("" : "+r"(state));
    }
    return 0;
}
"""
VALGRIND = {
    "cachegrind, no caches": ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"),
    "callgrind": ("--tool=callgrind", "--callgrind-out-file=/dev/null"),
    "lackey": ("--tool=lackey", "--basic-counts=yes"),
    "exp-bbv": ("--tool=exp-bbv", "--bb-out-file=/dev/null", "--pc-out-file=/dev/null"),
}
COUNT = re.compile(r"(?:I\s+refs:|guest instrs:|Total instructions:)\s+([0-9,]+)")


def compile_program(directory: Path, name: str, source: str) -> str:
    """Compile a program; return the path of its file."""
    file = directory / f"{name}.c"
    file.write_text(source)
    subprocess.run(["cc", "-O2", "-pthread", "-o", str(directory / name), str(file)], check=True)
    return str(directory / name)


def lock_lines(launcher: Launcher, program: str, rounds: int) -> list[str]:
    """Run two threads without and with contention, alternately without and with counting."""
    lines = []
    for kind, arguments in (("no thread waits", ()), ("two threads contend", ("contend",))):
        plain = Command(arguments=(program, *arguments), environment={}, directory="/", tree_memory="off")
        counting = replace(plain, lock_counter="preload")
        pairs = [(launcher.run(plain).wall_seconds, launcher.run(counting)) for _ in range(rounds)]
        before = statistics.median(wall for wall, _ in pairs)
        after = statistics.median(ran.wall_seconds for _, ran in pairs)
        contended = statistics.median(ran.locks.contended for _, ran in pairs if ran.locks)
        lines.append(
            f"locks, {kind}: {before * 1e3:.1f} ms plain, {after * 1e3:.1f} ms counted, "
            f"{(after - before) / ACQUISITIONS * 2 * 1e9:+.1f} ns per lock and thread; "
            f"{contended / ACQUISITIONS:.1%} contended"
        )
    return lines


def wait_lines(launcher: Launcher, program: str, rounds: int) -> list[str]:
    """Run two threads that alternate, and one with a free semaphore, alternately without and with counting."""
    lines = []
    for kind, arguments, number in (
        ("handing over at a condition variable", (), HANDOVERS),
        ("a free semaphore", ("free",), ACQUISITIONS),
    ):
        plain = Command(arguments=(program, *arguments), environment={}, directory="/", tree_memory="off")
        counting = replace(plain, lock_counter="preload")
        pairs = [
            (launcher.run(plain).wall_seconds, launcher.run(counting).wall_seconds) for _ in range(rounds)
        ]
        before, after = (statistics.median(walls) for walls in zip(*pairs, strict=True))
        more = statistics.median(second - first for first, second in pairs) / number * 1e9
        lines.append(
            f"waits, {kind}: {before * 1e3:.1f} ms plain, {after * 1e3:.1f} ms counted, "
            f"{before / number * 1e9:.0f} ns each, {more:+.0f} ns counted"
        )
    return lines


def instruction_lines(launcher: Launcher, program: str, directory: Path, rounds: int) -> list[str]:
    """Run one program without Valgrind and under each of its counting tools."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return ["instructions: Valgrind is not installed"]
    command = Command(arguments=(program,), environment={}, directory="/", aslr=False, tree_memory="off")
    plain = statistics.median(launcher.run(command).wall_seconds for _ in range(rounds))
    lines = [f"instructions, plain: {plain * 1e3:.0f} ms"]
    for name, options in VALGRIND.items():
        log = directory / "log"
        line = (valgrind, *options, f"--log-file={log}", program)
        walls, counts = [], set()
        for _ in range(rounds):
            walls.append(launcher.run(replace(command, arguments=line)).wall_seconds)
            counts.update(COUNT.findall(log.read_text()))
        wall = statistics.median(walls)
        lines.append(
            f"instructions, {name}: {wall * 1e3:.0f} ms, {wall / plain:.0f} times; counts {sorted(counts)}"
        )
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counting", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name, Launcher() as launcher:
        directory = Path(name)
        locks, loop = compile_program(directory, "locks", LOCKS), compile_program(directory, "loop", LOOP)
        print(*lock_lines(launcher, locks, rounds), sep="\n")
        print(*wait_lines(launcher, compile_program(directory, "waits", WAITS), rounds), sep="\n")
        print(*instruction_lines(launcher, loop, directory, rounds), sep="\n")


if __name__ == "__main__":
    main()
