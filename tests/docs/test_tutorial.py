"""The tutorial: its commands work in their order, from nothing, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.starting import REPOSITORY

TUTORIAL = REPOSITORY / "docs" / "tutorial.md"


@dataclass(frozen=True)
class Command:
    """A command of a page, with the output that the page shows."""

    line: str
    shown: str


def commands(text: str) -> list[Command]:
    """Return the commands of a page's `sh` blocks, which print nothing, and `console` blocks in their order."""
    found: list[Command] = []
    for kind, block in re.findall(r"```(sh|console)\n(.*?)```", text, re.DOTALL):
        if kind == "sh":
            found.append(Command(block, ""))
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] if kind == "console" else ():
            line, _, shown = part.partition("\n")
            found.append(Command(line, shown))
    return found


def without_sign(rest: re.Match[str]) -> str:
    """Return a statement about what no change explains; only noise decides whether it is more or less."""
    return re.sub("N % (?:more|less)", "N % more or less", rest[0])


def shape(output: str) -> str:
    """Return output with names for what differs between two runs: ids, paths, durations, numbers and charts."""
    number = r"(?<![\w.])[−-]?[0-9][0-9,.]*(?:e[−-]?[0-9]+)?"
    text = re.sub(r" \([0-9]+ noisy samples?\)|[ \t]+$", "", output, flags=re.MULTILINE)
    text = re.sub(r"__strlen_\w+", "strlen", text)  # the C library has one for each kind of processor
    text = re.sub(r"/\S+/words/", "/", text)
    text = re.sub(r"[◂▸━┿│·]{5,}", "CHART", text)
    text = re.sub(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{10,40}\b", "ID", text)
    text = re.sub(rf"{number} (?:ns|µs|ms|s|min|h)\b(?: [0-9]+ s\b)?", "TIME", text)
    text = re.sub(rf"{number} (?:bytes|KiB|MiB|GiB)\b", "SIZE", text)
    text = re.sub(rf"(?:more than )?{number}", "N", text)
    text = re.sub(r"(?<=the rest, without ).*", without_sign, text)
    text = re.sub("error probability (?:at most|below) N", "error probability N", text)
    return re.sub(r"[ \t]+", " ", text)


def pattern(shown: str) -> re.Pattern[str]:
    """Return what matches the output that a page shows. A line `…` stands for any lines."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line) + r"\n"
        for line in shape(shown).splitlines()
    ]
    return re.compile("".join(lines))


def test_a_shown_output_matches_the_same_output_with_other_numbers_only() -> None:
    shown = pattern(
        "found: fff21fe0a1 “x” changed wall: 74 times (worse)\n  before 1.2 ms, after 1 min 3 s\n…\nend"
    )
    again = "found: abc1230000 “x” changed wall: 8.1 times (worse)\n  before 900 µs, after 61 s\nmore\nend\n"
    assert shown.fullmatch(shape(again))
    assert not shown.fullmatch(shape(again.replace("worse", "better")))
    assert not shown.fullmatch(shape(again.replace("end", "other")))
    explained = "the rest, without this change, is 5.2 % less (95 % interval × 0.98 to 1.01)\n"
    otherwise = "the rest, without this change, is 13 % more (95 % interval × 0.94 to 1.09)\n"
    assert pattern(explained).fullmatch(shape(otherwise))
    assert pattern("error probability at most 0.086 %\n").fullmatch(shape("error probability below 0.01 %\n"))
    assert not pattern("from end to end 5 % more\n").fullmatch(shape("from end to end 5 % less\n"))


@pytest.mark.slow("builds")
@pytest.mark.long
def test_every_command_of_the_tutorial_works_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    told = commands(TUTORIAL.read_text("utf-8"))
    assert len(told) >= 10
    script = ["set -e"]
    for at, command in enumerate(told):
        script += [f"exec > '{tmp_path}/{at:03}.out' 2> '{tmp_path}/{at:03}.err'", command.line]
    start = tmp_path / "start"
    start.mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),  # without a name for git: the page must state all that it needs
        "LANG": "C.UTF-8",
    }
    done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=start, env=environment, check=False)
    outputs = sorted(tmp_path.glob("*.out"))
    last = outputs[-1].with_suffix(".err").read_text("utf-8")
    assert done.returncode == 0, f"{told[len(outputs) - 1].line}: {last}"
    for command, file in zip(told, outputs, strict=True):
        printed = file.read_text("utf-8")
        assert pattern(command.shown).fullmatch(shape(printed)), f"$ {command.line}\n{printed}"
