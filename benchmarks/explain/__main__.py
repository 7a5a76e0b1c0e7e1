"""Plant each change in a history of two commits, explain it, and count the right answers."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.explain.programs import PLANTS, Plant
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Sequence

STUDY = """\
[study]
title = "planted"
[source]
kind = "git"
location = "{repository}"
range = "HEAD~1..HEAD"
[build]
steps = ['''{build}''']
outputs = ["*"]
[benchmark.work]
command = '''{command}'''
timeout = "60s"
"""
TOOLS = {"C": "cc", "C++": "c++", "Rust": "rustc", "Go": "go", "Python": "python3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was reported about one planted change. `rank` is that of the right function, 0 if it is missing."""

    plant: Plant
    rank: int
    shift: bool
    blamed: tuple[str, ...]
    words: str
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the report is as expected."""
        if self.plant.expected == "function":
            return self.rank == 1
        if self.plant.expected == "shift":
            return self.shift and (not self.blamed or self.rank == 1)
        return not self.blamed


def explained(plant: Plant, directory: Path, *, invocations: int) -> dict[str, Any]:
    """Return the JSON of `explain` of a planted change."""
    repository, study = directory / "repository", directory / "study"
    repository.mkdir()
    study.mkdir()

    def git(*words: str) -> None:
        identity = ("-c", "user.name=planted", "-c", "user.email=planted@example.com")
        subprocess.run(["git", *identity, *words], cwd=repository, check=True, capture_output=True)

    git("init", "-q")
    for files, subject in ((plant.program.files, "before"), (plant.files(), plant.kind)):
        for name, text in files.items():
            (repository / name).write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", subject)
    text = STUDY.format(
        repository=repository,
        build=plant.program.build.replace("{", "{{").replace("}", "}}"),
        command=plant.program.command,
    )
    (study / "perftrail.toml").write_text(text)
    program = Path(sys.executable).with_name("perftrail")
    done = subprocess.run(
        [program, "explain", "HEAD", str(study), "--invocations", str(invocations), "--json", "--quiet"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{plant.program.language}, {plant.kind}: {done.stdout}{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def judged(plant: Plant, answer: dict[str, Any], seconds: float) -> Result:
    """Return where the right function is in a report."""
    [point] = answer["points"]
    functions = point["functions"]
    if functions is None:
        return Result(
            plant=plant, rank=0, shift=False, blamed=(), words=str(point["unavailable"]), seconds=seconds
        )
    names = [each["function"]["name"] for each in functions["functions"] if each["responsible"]]
    shifts = [(each["before"]["name"], each["after"]["name"]) for each in functions["shifts"]]
    rank = next((number for number, name in enumerate(names, 1) if _is_one(name, plant)), 0)
    return Result(
        plant=plant,
        rank=rank,
        shift=any(_is_one(name, plant) for shift in shifts for name in shift),
        blamed=tuple(names),
        words=", ".join(
            f"{each['contribution']['value']:+.1%} {each['function']['name']}"
            for each in functions["functions"][:3]
            if each["responsible"]
        )
        + "".join(f"; {before} → {after}" for before, after in shifts[:2]),
        seconds=seconds,
    )


def _is_one(name: str, plant: Plant) -> bool:
    """Return whether a function is a right answer: its name without namespaces, types and parameters."""
    bare = name.partition("(")[0].replace(">::", "::").rstrip(":")
    return any(
        bare == right or bare.endswith((f"::{right}", f".{right}", f"<{right}")) or name.endswith(right)
        for right in plant.right
    )


def _summary(results: Sequence[Result]) -> str:
    """Return a table of the results of each language."""
    lines = [("language", "changes with a right function", "first", "first three", "others as expected")]
    languages = dict.fromkeys(each.plant.program.language for each in results)
    for language in (*languages, "all"):
        chosen = [each for each in results if language in (each.plant.program.language, "all")]
        named = [each for each in chosen if each.plant.expected == "function"]
        others = [each for each in chosen if each.plant.expected != "function"]
        counts = Counter(each.rank for each in named)
        first_three = sum(counts[rank] for rank in (1, 2, 3))
        expected = f"{sum(each.right for each in others)} of {len(others)}" if others else ""
        lines.append((language, str(len(named)), str(counts[1]), str(first_three), expected))
    return table(lines)


def _stored(results: Path | None) -> dict[str, dict[str, Any]]:
    """Return the answer and the seconds of each change in a file of results, by language and kind."""
    if results is None or not results.exists():
        return {}
    return {line["change"]: line for line in map(json.loads, results.read_text().splitlines())}


def main() -> None:
    """Explain the planted changes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="text in the language or the kind of a change")
    parser.add_argument(
        "--results", type=Path, help="file of results: a change that it contains is not repeated"
    )
    parser.add_argument("--invocations", type=int, default=5, help="invocations of each revision")
    arguments = parser.parse_args()
    stored = _stored(arguments.results)
    results = []
    print("| language | change | right function | reported |\n|---|---|---|---|")
    for plant in PLANTS:
        name = f"{plant.program.language}, {plant.kind}"
        if arguments.only not in name:
            continue
        if shutil.which(TOOLS[plant.program.language]) is None:
            continue
        if name not in stored:
            with tempfile.TemporaryDirectory(prefix="planted-") as directory:
                start = time.monotonic()
                answer = explained(plant, Path(directory), invocations=arguments.invocations)
                stored[name] = {"answer": answer, "seconds": time.monotonic() - start}
            if arguments.results is not None:
                with arguments.results.open("a") as lines:
                    lines.write(json.dumps({"change": name, **stored[name]}) + "\n")
        result = judged(plant, stored[name]["answer"], stored[name]["seconds"])
        results.append(result)
        rank = str(result.rank) if plant.expected == "function" else plant.expected
        mark = "" if result.right else " **wrong**"
        print(f"| {plant.program.language} | {plant.kind} | {rank}{mark} | {result.words} |", flush=True)
    print(f"\n{_summary(results)}")


if __name__ == "__main__":
    main()
