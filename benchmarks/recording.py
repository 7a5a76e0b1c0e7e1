"""Record a search in a terminal as docs/_static/find.svg: `python -m benchmarks.recording`.

The history is the tutorial's. Each line appears when it appeared in the terminal, at twice the speed, and then stays.
Long lines of steps are cut. A viewer that does not animate, or whose user prefers no motion, shows all lines.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
SVG = ROOT / "docs" / "_static" / "find.svg"
COMMAND = "perftrail find HEAD~11 HEAD --build make -- ./words book.txt"
COLUMNS = 104
SPEED = 2

TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>A terminal: perftrail find names the commit that made a program slower</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
/* delays */
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's, without the fonts that it loads from another server, and with a place for the delays."""


@dataclass(frozen=True)
class Line:
    """A line that stayed in the terminal, with its colours, and when it appeared."""

    seconds: float
    text: str


def record(
    command: Sequence[str], directory: Path, environment: Mapping[str, str]
) -> list[tuple[float, str]]:
    """Run a command in a terminal; return what it printed, each part with its seconds from the start."""
    controller, terminal = pty.openpty()
    started = time.monotonic()
    process = subprocess.Popen(
        command, cwd=directory, env=environment, stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    printed: list[tuple[float, str]] = []
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # Linux reports the end of a terminal so
            break
        if not part:
            break
        printed.append((time.monotonic() - started, part.decode("utf-8", "replace")))
    os.close(controller)
    if process.wait() != 0:
        raise RuntimeError(f"{command} failed: {''.join(part for _, part in printed)}")
    return printed


CONTROL = re.compile(r"(\r\n|\r|\x1b\[1A|\x1b\[2K|\x1b\[\?25[lh])")


def lines(printed: Sequence[tuple[float, str]]) -> list[Line]:
    """Return the lines that stay: not the states of a line that was written again."""
    done: list[Line] = []
    current = ""
    for seconds, part in printed:
        for token in CONTROL.split(part):
            if token == "\r\n":
                done.append(Line(seconds, current))
                current = ""
            elif token == "\x1b[1A":
                current = done.pop().text
            elif token in {"\r", "\x1b[2K"}:
                current = ""
            elif not token.startswith("\x1b[?25"):
                current += token
    return done


def svg(shown: Sequence[Line], columns: int) -> str:
    """Return a drawing of a terminal in which each line appears at its time."""
    console = Console(
        record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    delays: list[float] = []
    for line in shown:
        text = Text.from_ansi(line.text)
        wrapped = text.wrap(console, columns) if text.plain.startswith("found:") else [text]
        for row in wrapped:
            delays.append(line.seconds / SPEED)
            console.print(row, no_wrap=True, overflow="ellipsis")
    drawn = console.export_svg(title="perftrail", code_format=TEMPLATE, unique_id="terminal")
    rules = ["@media (prefers-reduced-motion: no-preference) {", "@keyframes appear { from { opacity: 0; } }"]
    rules += [
        f'text[clip-path$="-line-{at})"] {{ animation: appear 0.1s {seconds:.1f}s backwards; }}'
        for at, seconds in enumerate(delays)
        if seconds > 0
    ]
    return drawn.replace("/* delays */", "\n".join([*rules, "}"]))


def tutorial_history(directory: Path, environment: Mapping[str, str]) -> Path:
    """Create the tutorial's history of twelve commits with its own commands."""
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    script = "set -e\n" + "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    subprocess.run(["bash", "-c", script], cwd=directory, env=environment, check=True)
    return directory / "words"


def main() -> None:
    """Record the search and write the drawing."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        who = {f"GIT_{who}_{part}": "ann" for who in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": name,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "COLUMNS": "1000",  # rich's console wraps the lines
            **who,
        }
        words = tutorial_history(home, environment)
        subprocess.run(["perftrail", "doctor"], cwd=words, env=environment, check=False, capture_output=True)
        shown = lines(record(COMMAND.split(), words, environment))
    SVG.write_text(svg([Line(0, f"\x1b[1;32m$\x1b[0m {COMMAND}"), *shown], COLUMNS), "utf-8")


if __name__ == "__main__":
    main()
