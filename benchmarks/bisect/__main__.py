"""Plant a step of two standard deviations in real repositories, and let both look for it.

`git bisect run` takes one reading of each revision and is told the true middle between both levels; `perftrail find`
is told neither level nor noise. Both build every revision that they read, with make and a C compiler.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from statistics import mean
from time import perf_counter

from benchmarks.bisect.contest import Said, bisect, find
from benchmarks.bisect.history import History, make


def main() -> None:
    """Run the contest and print how often each was right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = perf_counter()
    said: dict[str, list[tuple[History, Said]]] = {"git bisect run": [], "perftrail find": []}
    with tempfile.TemporaryDirectory() as directory:
        for number in range(asked.repetitions):
            culprit = random.Random(f"{asked.seed} {number}").randrange(1, asked.commits)
            history = make(Path(directory, str(number), "repository"), commits=asked.commits, culprit=culprit)
            seed = asked.seed * 1_000_000 + number
            answers = {"git bisect run": bisect(history, seed), "perftrail find": find(history, seed)}
            for name, answer in answers.items():
                said[name].append((history, answer))
            told = (f"{name} {_where(answer, history)}" for name, answer in answers.items())
            print(f"{number + 1}: culprit {culprit}; {'; '.join(told)}", flush=True)
    for name, results in said.items():
        print(f"{name}: {_sum(results)}")
    print(f"{perf_counter() - began:.0f} s")


def _where(answer: Said, history: History) -> str:
    """Say which commits were named, by their numbers."""
    if not answer.commits:
        return answer.verdict
    numbers = [history.commits.index(commit) for commit in answer.commits]
    position = str(numbers[0]) if len(numbers) == 1 else f"one of {numbers[0]} to {numbers[-1]}"
    if answer.accuses(history):
        return f"{position} (wrong)"
    return f"{position} (right)" if answer.is_right(history) else f"{position} (it is among them)"


def _sum(results: list[tuple[History, Said]]) -> str:
    right = sum(answer.is_right(history) for history, answer in results)
    wrong = sum(answer.accuses(history) for history, answer in results)
    builds = mean(answer.builds for _, answer in results)
    runs = mean(answer.runs for _, answer in results)
    return f"right {right} of {len(results)}, accused another {wrong}, {builds:.1f} builds, {runs:.0f} runs"


if __name__ == "__main__":
    main()
