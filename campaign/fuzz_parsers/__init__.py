"""Fuzz perftrail's parsers of untrusted bytes: each input is read, or refused with an error of perftrail's own.

Each target of `targets.py` starts from its corpus in a process of its own. Atheris guides it by coverage if
`make tools` installed it; else `guided.py` keeps mutated inputs that reach new lines.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from campaign import Result
from campaign.fuzz_parsers.targets import TARGETS, seeds

REPOSITORY = Path(__file__).parents[2]
TOOLS = REPOSITORY / f".build/tools/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
"""Packages that `make tools` installed, if any."""

_GRACE_SECONDS = 90
"""Time for the imports of a target and its first inputs on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fuzzed:
    """The inputs of one target, and those that broke it, in words."""

    executions: int
    losses: tuple[str, ...]


def has_atheris() -> bool:
    """Whether Atheris can be imported in the processes of the targets."""
    return any((directory / "atheris").is_dir() for directory in (TOOLS, *map(Path, sys.path)))


def fuzz(target: str, seconds: int, seed: int, *, engine: str) -> _Fuzzed:
    """Run one target; an input that breaks it is repeated to name the exception."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        found, broken = directory / "found", directory / "broken-"
        found.mkdir()
        for number, content in enumerate(seeds(target)):
            (found / f"seed-{number}").write_bytes(content)
        words: list[str | Path] = [
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-artifact_prefix={broken}",
            "-max_len=4096",
            "-timeout=20",
            "-rss_limit_mb=2048",
            found,
        ]
        done = _python(
            f"campaign.fuzz_parsers.{engine}", target, *words, timeout=seconds * 2 + _GRACE_SECONDS
        )
        counts = re.findall(r"Done (\d+) (?:runs|in)", done.stdout) or re.findall(
            r"^#(\d+)\t", done.stdout, re.MULTILINE
        )
        inputs = sorted(directory.glob("broken-*"))
        losses = [f"{target}: {_named(target, each)}" for each in inputs]
        if done.returncode and not inputs:
            losses.append(f"{target}: the process failed: {done.stdout.strip()[-400:]}")
        return _Fuzzed(executions=int(counts[-1]) if counts else 0, losses=tuple(losses))


def _named(target: str, file: Path) -> str:
    """Return the exception of an input in words, with the input in hexadecimal, to repeat it."""
    done = _python("campaign.fuzz_parsers.repeated", target, file, timeout=_GRACE_SECONDS)
    last = done.stdout.strip().splitlines()[-1:] or ["no exception: it took too long, or too much memory"]
    return f"{last[0][:200]}; the input is {file.read_bytes().hex()}"


def _python(module: str, *arguments: str | Path, timeout: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    try:
        return subprocess.run(
            command,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, f"not finished after {timeout:.0f} s")


def run(seconds: float, seed: int) -> Result:
    """Run every target for its share of the seconds, two at once: each input is a trial."""
    engine = "coverage_guided" if has_atheris() else "guided"
    each = max(1, round(seconds * 2 / len(TARGETS)))
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda target: fuzz(target, each, seed, engine=engine), TARGETS))
    return Result(
        trials=sum(each.executions for each in results),
        losses=tuple(loss for each in results for loss in each.losses),
        notes=(
            f"targets: {', '.join(TARGETS)}",
            "guided by Atheris" if has_atheris() else "guided by lines; make tools installs Atheris",
        ),
    )
