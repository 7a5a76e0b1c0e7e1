"""The guard's process: started by `perftrail.process.machine.settings`, it puts settings back when that is gone."""

from __future__ import annotations

import sys

from perftrail.process.machine.settings import stand_guard

if __name__ == "__main__":
    stand_guard(int(sys.argv[1]))
