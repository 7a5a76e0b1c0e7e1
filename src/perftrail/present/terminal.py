"""How answers and progress are printed: colours, and how much. It imports nothing, so that every command can set it."""

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
"""Set by the command line before anything is printed."""
