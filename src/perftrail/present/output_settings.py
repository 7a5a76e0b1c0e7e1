"""Settings of everything that is printed: colours, how much, and how perftrail was started.

This module imports no other of perftrail, so that every command can use it.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


@dataclass(slots=True)
class Settings:
    """The user's choices for this process.

    `color` is ``auto``, ``always`` or ``never``. `quiet` prints only warnings and answers; `verbose` prints each
    build and each invocation.
    """

    color: str = "auto"
    quiet: bool = False
    verbose: bool = False

    @property
    def terminal(self) -> bool | None:
        """Whether the output counts as a terminal; `None`: it counts as one if it is one."""
        return True if self.color == "always" else None


settings = Settings()
"""The settings; the command line changes them before anything is printed."""


def next_line(text: str) -> str:
    """Return the line that names the next useful command, as the user can type it."""
    return f"Next: {as_started(text)}"


def as_started(text: str, commands: Collection[str] = ("[a-z-]+",)) -> str:
    """Return a text whose commands begin with the words with which perftrail was started, instead of `perftrail`.

    In a text with sentences about perftrail, `commands` are the commands to look for.
    """
    if (words := _started_as()) == "perftrail":
        return text
    return re.sub(rf"(?<![\w./-])perftrail(?= (?:{'|'.join(commands)})\b)", lambda _: words, text)


@cache
def _started_as() -> str:
    """Return the words that start this perftrail in a shell: `perftrail`, if the shell's path leads to it."""
    import os
    import shlex
    import shutil

    with suppress(OSError):
        parent = os.fsdecode(Path(f"/proc/{os.getppid()}/cmdline").read_bytes()).split("\0")[:-1]
        if words := words_of_uv(parent, sys.argv[1:]):
            return shlex.join(words)
    program = sys.argv[0]
    if not program.endswith(("/perftrail", "/perftrail/__main__.py")):
        return "perftrail"
    found = shutil.which("perftrail")
    is_module = program.endswith(".py")
    ours = Path(sys.executable).with_name("perftrail") if is_module else Path(program)
    if found is not None and ours.exists() and ours.samefile(found):
        return "perftrail"
    return f"{shlex.quote(sys.executable)} -m perftrail" if is_module else shlex.quote(program)


def words_of_uv(parent: Sequence[str], arguments: Sequence[str]) -> Sequence[str]:
    """Return the words with which uv started this process; none if `parent`, its parent's command, is not uv.

    `uvx` and `uv run` put their environment on the path for this process only: the user's shell does not have it.

    >>> words_of_uv(["/opt/uv", "tool", "uvx", "--from", "a.whl", "perftrail", "find", "v1"], ["find", "v1"])
    ['uvx', '--from', 'a.whl', 'perftrail']
    >>> words_of_uv(["uv", "run", "perftrail", "find"], ["find"])
    ['uv', 'run', 'perftrail']
    >>> words_of_uv(["uv", "run", "make"], ["find"]), words_of_uv(["bash", "find"], ["find"])
    ([], [])
    """
    if not parent or Path(parent[0]).name not in {"uv", "uvx"}:
        return []
    before = len(parent) - len(arguments)
    if list(parent[before:]) != list(arguments):
        return []
    words = [Path(parent[0]).name, *parent[1:before]]
    return ["uvx", *words[3:]] if words[1:3] == ["tool", "uvx"] else words
