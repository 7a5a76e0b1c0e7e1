"""Start the command `perftrail`: handle Ctrl-C first, then import the program and run it."""

from __future__ import annotations

from perftrail.cli.interrupts import Interrupts


def main() -> None:
    """Run the command line and exit with its code."""
    interrupts = Interrupts()
    interrupts.install()
    from perftrail.cli.main import main as run

    interrupts.begin()
    try:
        run()
    except SystemExit as exit_:
        interrupts.end(exit_.code if isinstance(exit_.code, int) else 0)
        raise
