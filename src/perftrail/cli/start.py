"""Start the command `perftrail`: handle Ctrl-C first, then import the program and run it."""

from __future__ import annotations

import os
import sys

from perftrail.cli.interrupts import Interrupts


def open_closed_streams() -> None:
    """Connect standard streams that the caller closed to /dev/null: the next file would become one of them."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the process's life
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - as above


def main() -> None:
    """Run the command line and exit with its code."""
    open_closed_streams()
    interrupts = Interrupts()
    interrupts.install()
    from perftrail.cli.main import main as run

    interrupts.begin()
    try:
        run()
    except SystemExit as exit_:
        interrupts.end(exit_.code if isinstance(exit_.code, int) else 0)
        raise
