"""Main function of the guard process: it restores settings after the end of `perftrail.process.machine.settings`."""

from __future__ import annotations

import sys

from perftrail.process.machine.settings import run_guard

if __name__ == "__main__":
    run_guard(int(sys.argv[1]))
