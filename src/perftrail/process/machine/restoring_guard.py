"""Start the guard process, which restores the machine's settings when perftrail ends."""

from __future__ import annotations

import sys

from perftrail.process.machine.settings import run_guard

if __name__ == "__main__":
    run_guard(int(sys.argv[1]))
