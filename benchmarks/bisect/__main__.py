"""Create real repositories with a step of two standard deviations, and search each with both programs.

`git bisect run` takes one sample of each revision and gets the true middle between both levels; `perftrail find` gets
neither level nor noise. Both build every revision that they measure, with make and a C compiler.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from statistics import mean
from time import perf_counter

from benchmarks.bisect.history import History, create_history
from benchmarks.bisect.searches import SearchAnswer, bisect, find


def main() -> None:
    """Run both searches and print how often each was right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = perf_counter()
    answers_by_name: dict[str, list[tuple[History, SearchAnswer]]] = {
        "git bisect run": [],
        "perftrail find": [],
    }
    with tempfile.TemporaryDirectory() as directory:
        for number in range(options.repetitions):
            culprit = random.Random(f"{options.seed} {number}").randrange(1, options.commits)
            history = create_history(
                Path(directory, str(number), "repository"), commits=options.commits, culprit=culprit
            )
            seed = options.seed * 1_000_000 + number
            answers = {"git bisect run": bisect(history, seed), "perftrail find": find(history, seed)}
            for name, answer in answers.items():
                answers_by_name[name].append((history, answer))
            results = (f"{name} {_where(answer, history)}" for name, answer in answers.items())
            print(f"{number + 1}: culprit {culprit}; {'; '.join(results)}", flush=True)
    for name, history_answers in answers_by_name.items():
        print(f"{name}: {_summary(history_answers)}")
    print(f"{perf_counter() - began:.0f} s")


def _where(answer: SearchAnswer, history: History) -> str:
    """Return the numbers of the commits that a search named."""
    if not answer.commits:
        return answer.verdict
    numbers = [history.commits.index(commit) for commit in answer.commits]
    position = str(numbers[0]) if len(numbers) == 1 else f"one of {numbers[0]} to {numbers[-1]}"
    if answer.names_only_others(history):
        return f"{position} (wrong)"
    return f"{position} (right)" if answer.is_right(history) else f"{position} (it is among them)"


def _summary(results: list[tuple[History, SearchAnswer]]) -> str:
    right = sum(answer.is_right(history) for history, answer in results)
    wrong = sum(answer.names_only_others(history) for history, answer in results)
    builds = mean(answer.builds for _, answer in results)
    runs = mean(answer.runs for _, answer in results)
    return f"right {right} of {len(results)}, named another {wrong}, {builds:.1f} builds, {runs:.0f} runs"


if __name__ == "__main__":
    main()
