"""A stand-in for perftrail, to be killed: starts a launcher, prints the process ids and runs one command.

Usage: perftrail_stand_in.py LAUNCHER MARK PROGRAM ARGUMENT…
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from perftrail.errors import LauncherError
from perftrail.model.process import Command
from perftrail.process.launcher import Launcher


def say(*words: object) -> None:
    """Print a line for the test, unbuffered."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the command, then another one, and print how both ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
    with Launcher(Path(sys.argv[1])) as launcher:
        can = launcher.start()
        say(can.pid, can.server_pid)
        command = Command(
            arguments=tuple(sys.argv[3:]), environment={"PERFTRAIL_TRIAL": sys.argv[2]}, directory="/"
        )
        try:
            say(launcher.run(command).ended)
        except KeyboardInterrupt:
            say("interrupted")
        except LauncherError as error:
            say(f"error: {error}")
        say(launcher.run(Command(arguments=("/bin/true",), environment={}, directory="/")).ended)


if __name__ == "__main__":
    main()
