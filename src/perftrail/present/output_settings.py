"""Settings of everything that is printed: colours, how much, and how perftrail was started.

This module imports no other of perftrail, so that every command can use it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


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
    import shlex
    import shutil

    program = sys.argv[0]
    if not program.endswith(("/perftrail", "/perftrail/__main__.py")):
        return "perftrail"
    found = shutil.which("perftrail")
    is_module = program.endswith(".py")
    ours = Path(sys.executable).with_name("perftrail") if is_module else Path(program)
    if found is not None and ours.exists() and ours.samefile(found):
        return "perftrail"
    return f"{shlex.quote(sys.executable)} -m perftrail" if is_module else shlex.quote(program)
