"""Settings of everything that is printed: colours, and how much.

This module imports no other, so that every command can use it.
"""

from __future__ import annotations

from dataclasses import dataclass


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
