"""Settings of all printing: colours, and how much. Imports nothing, so that every command can set them."""

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
        """Whether to print as to a terminal; `None` to find out."""
        return True if self.color == "always" else None


settings = Settings()
"""The settings; the command line changes them before anything is printed."""
