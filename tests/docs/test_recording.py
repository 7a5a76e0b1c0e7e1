"""The recording of a terminal: the lines that stay, each at its time, drawn without another server."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from benchmarks.recording import SPEED, SVG, Line, lines, record, svg

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = r"""
printf 'first\n'
printf '\033[?25lworking'
sleep 0.2
printf '\r\033[2K\033[1mfound: <it>\033[0m\nold\n\r\033[1A\033[2Klast\n'
"""


def test_only_lines_that_stay_are_recorded_each_with_its_time(tmp_path: Path) -> None:
    found = lines(record(["sh", "-c", SCRIPT], tmp_path, {"PATH": os.environ["PATH"]}))
    assert [line.text for line in found] == ["first", "\x1b[1mfound: <it>\x1b[0m", "last"]
    assert found[1].seconds - found[0].seconds > 0.1


def test_a_drawing_wraps_the_answer_and_shows_each_of_its_lines_at_its_time() -> None:
    drawn = svg([Line(0, "$ find"), Line(4, "a step " * 9), Line(8, "found: <it> " + "word " * 9)], 40)
    assert re.findall(
        r'line-(\d)"\)\] \{ animation: appear 0.1s ([0-9.]+)s', drawn.replace(')"]', '")]')
    ) == [
        ("1", str(4 / SPEED)),
        ("2", str(8 / SPEED)),
        ("3", str(8 / SPEED)),
    ]
    assert "&lt;it&gt;" in drawn
    assert "…" in drawn


def test_the_drawing_of_the_readme_needs_no_other_server() -> None:
    drawn = SVG.read_text("utf-8")
    assert "found:" in drawn
    assert set(re.findall(r"https?://[^\"')]+", drawn)) == {"http://www.w3.org/2000/svg"}
